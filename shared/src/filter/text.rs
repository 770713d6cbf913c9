//! Prints a tree as text that parses to the same tree.

use std::fmt;

use super::{Expr, Operator, Term, parse::SIGNS};

impl<F: fmt::Display> fmt::Display for Expr<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::And(branches) => join(f, branches, '&', |one| matches!(one, Self::And(_) | Self::Or(_))),
            Self::Or(branches) => join(f, branches, '|', |one| matches!(one, Self::Or(_))),
            Self::Not(one) => {
                f.write_str("!")?;
                write(f, one, matches!(**one, Self::And(_) | Self::Or(_)))
            }
            Self::Term(term) => term.fmt(f),
        }
    }
}

impl<F: fmt::Display> fmt::Display for Term<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escape(f, &self.field.to_string())?;
        f.write_str(self.operator.as_str())?;
        escape(f, self.value.as_str())
    }
}

/// The opposite of a term.
struct Negated<'a, F>(&'a Term<F>);

impl<F: fmt::Display> fmt::Display for Negated<'_, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        escape(f, &self.0.field.to_string())?;
        write!(f, "!{}", self.0.operator.as_str())?;
        escape(f, self.0.value.as_str())
    }
}

impl<F: fmt::Display> Term<F> {
    /// The text of the opposite condition, which parses: `country!=DE`.
    #[must_use]
    pub fn negated(&self) -> String {
        Negated(self).to_string()
    }
}

impl Operator {
    /// The sign.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::Prefix => "~",
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Greater => ">",
            Self::AtLeast => ">=",
        }
    }
}

impl<F: fmt::Display> From<Expr<F>> for String {
    fn from(expr: Expr<F>) -> Self {
        expr.to_string()
    }
}

fn join<F: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    branches: &[Expr<F>],
    sign: char,
    enclosed: impl Fn(&Expr<F>) -> bool,
) -> fmt::Result {
    for (index, branch) in branches.iter().enumerate() {
        if index > 0 {
            write!(f, "{sign}")?;
        }
        write(f, branch, enclosed(branch))?;
    }
    Ok(())
}

fn write<F: fmt::Display>(f: &mut fmt::Formatter<'_>, expr: &Expr<F>, enclosed: bool) -> fmt::Result {
    if enclosed { write!(f, "({expr})") } else { write!(f, "{expr}") }
}

fn escape(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    for c in text.chars() {
        if SIGNS.contains(&c) {
            f.write_str("\\")?;
        }
        write!(f, "{c}")?;
    }
    Ok(())
}
