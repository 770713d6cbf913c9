//! Filters as conditions of a statement.

use super::{Expr, Operator, Term};

/// A statement that grows, to which filters are written; its engine says how it spells what they are made of.
pub trait FilterWriter {
    /// Why a filter cannot be written.
    type Error;

    /// Adds a fragment.
    fn fragment(&mut self, fragment: &'static str);

    /// Adds the condition on one field.
    fn term(&mut self, term: &Term) -> Result<(), Self::Error>;

    /// A condition that always holds, or never.
    fn constant(&self, holds: bool) -> &'static str {
        if holds { "TRUE" } else { "FALSE" }
    }

    /// What stands before and behind a condition that is negated. NULL does not match, so the negation includes rows without
    /// the field.
    fn negation(&self) -> [&'static str; 2] {
        ["(", " IS NOT TRUE)"]
    }

    /// Adds a filter. `And` without branches always holds, `Or` without branches never.
    fn condition(&mut self, expr: &Expr) -> Result<(), Self::Error> {
        let (branches, sign, none) = match expr {
            Expr::And(branches) => (branches, " AND ", self.constant(true)),
            Expr::Or(branches) => (branches, " OR ", self.constant(false)),
            Expr::Not(one) => {
                let [before, behind] = self.negation();
                self.fragment(before);
                self.condition(one)?;
                self.fragment(behind);
                return Ok(());
            }
            Expr::Term(term) => return self.term(term),
        };
        self.fragment("(");
        for (index, branch) in branches.iter().enumerate() {
            if index > 0 {
                self.fragment(sign);
            }
            self.condition(branch)?;
        }
        if branches.is_empty() {
            self.fragment(none);
        }
        self.fragment(")");
        Ok(())
    }
}

/// How SQL writes an operator that it has.
#[must_use]
pub const fn sign(operator: Operator) -> Option<&'static str> {
    match operator {
        Operator::Equal => Some(" = "),
        Operator::Prefix => None,
        Operator::Less => Some(" < "),
        Operator::AtMost => Some(" <= "),
        Operator::Greater => Some(" > "),
        Operator::AtLeast => Some(" >= "),
    }
}
