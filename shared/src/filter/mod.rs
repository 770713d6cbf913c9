//! The filter language of lists and redirect rules: a parser, a typed tree, and the tree as text.
//!
//! ```text
//! filter      = conjunction *( "|" conjunction )
//! conjunction = factor *( "&" factor )
//! factor      = "!" factor / "(" filter ")" / term
//! term        = field [ "!" ] operator value *( "|" value )
//! operator    = "=" / "~" / "<" / ">" / "<=" / ">="
//! ```
//!
//! `~` is the prefix match. `a!=b` is the same tree as `!a=b`, and `a=b|c` the same as `(a=b|a=c)`: text behind `|`
//! that has no operator is another value of the preceding condition. A backslash escapes `& | ! > < = ~ ( ) ,` and
//! itself; before any other character it is literal. A field ends at the first operator, a value at the first `&`, `|`
//! or unpaired `)`. Other operators inside a value are literal, so that names that clients send unescaped are found.
//! White space is significant.
//!
//! Spec gap: the platform API names the operators but no grammar. `<=` and `>=` are additions; the comma has no
//! meaning.

mod parse;
mod text;
pub mod write;

use std::fmt;

use serde::{Deserialize, Serialize};

/// Longest text of a filter that a caller writes, in bytes: a URL of the API holds it even where every
/// byte is escaped. What we print escapes more than was written; it is read back by `TryFrom<String>`.
pub const MAX_BYTES: usize = 4_096;
/// Most terms of a filter: each is a condition on every row that a list reads.
pub const MAX_TERMS: usize = 64;
/// Deepest nesting of parentheses and negations.
pub const MAX_DEPTH: usize = 16;

/// Why a text is no filter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} at character {position}")]
pub struct InvalidFilter {
    /// Where, in characters from 1; one past the last where something is missing at the end.
    pub position: usize,
    /// The fault, without a full stop.
    pub what: String,
}

/// How a field is compared with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `=`
    Equal,
    /// `~`: the field begins with the value.
    Prefix,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
}

/// A value as it was written; one that reads as a number is compared as a number.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    text: String,
    number: Option<f64>,
}

/// One condition on one field.
#[derive(Debug, Clone, PartialEq)]
pub struct Term<F = String> {
    /// The field: the name as written, or the result of [`Expr::try_map`].
    pub field: F,
    /// How.
    pub operator: Operator,
    /// With what.
    pub value: Value,
}

/// A filter as a tree. `And` and `Or` hold two branches or more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String", bound(serialize = "F: Clone + fmt::Display"))]
#[serde(bound(deserialize = "Expr<F>: TryFrom<String, Error = InvalidFilter>"))]
pub enum Expr<F = String> {
    /// Every branch holds.
    And(Vec<Self>),
    /// Some branch holds.
    Or(Vec<Self>),
    /// The branch does not hold.
    Not(Box<Self>),
    /// The condition holds.
    Term(Term<F>),
}

/// The value of a field in the facts that a filter is evaluated on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fact<'a> {
    /// A text.
    Text(&'a str),
    /// A number, such as milliseconds since 1970.
    Number(f64),
}

impl Value {
    /// A value as it was written.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        let number = read_number(&text);
        Self { text, number }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The number that the text writes.
    #[must_use]
    pub const fn number(&self) -> Option<f64> {
        self.number
    }
}

impl<F> Term<F> {
    /// Whether one fact meets the condition; allocates nothing but for the prefix of a number.
    ///
    /// Equality is that of texts; order is that of numbers where both are numbers, else that of code points.
    #[must_use]
    pub fn admits(&self, fact: Fact<'_>) -> bool {
        use std::cmp::Ordering;

        let order = || match (fact, self.value.number) {
            (Fact::Number(fact), Some(value)) => fact.partial_cmp(&value),
            (Fact::Number(_), None) => None,
            (Fact::Text(fact), None) => Some(fact.cmp(&self.value.text)),
            (Fact::Text(fact), Some(value)) => match read_number(fact) {
                Some(fact) => fact.partial_cmp(&value),
                None => Some(fact.cmp(&self.value.text)),
            },
        };
        match (self.operator, fact) {
            (Operator::Equal, Fact::Text(fact)) => fact == self.value.text,
            (Operator::Equal, Fact::Number(_)) => order() == Some(Ordering::Equal),
            (Operator::Prefix, Fact::Text(fact)) => fact.starts_with(&self.value.text),
            (Operator::Prefix, Fact::Number(fact)) => fact.to_string().starts_with(&self.value.text),
            (Operator::Less, _) => order() == Some(Ordering::Less),
            (Operator::AtMost, _) => matches!(order(), Some(Ordering::Less | Ordering::Equal)),
            (Operator::Greater, _) => order() == Some(Ordering::Greater),
            (Operator::AtLeast, _) => matches!(order(), Some(Ordering::Greater | Ordering::Equal)),
        }
    }
}

impl<F> Expr<F> {
    /// Evaluates the filter: `holds` returns for each term whether one of its field's values meets it.
    ///
    /// Branches are evaluated in order and only as far as needed.
    pub fn eval(&self, holds: &mut impl FnMut(&Term<F>) -> bool) -> bool {
        match self {
            Self::And(all) => all.iter().all(|one| one.eval(holds)),
            Self::Or(any) => any.iter().any(|one| one.eval(holds)),
            Self::Not(one) => !one.eval(holds),
            Self::Term(term) => holds(term),
        }
    }

    /// The same tree with other terms: resolves names once, before many evaluations.
    ///
    /// # Errors
    /// The first error of `map`.
    pub fn try_map<G, E>(self, map: &mut impl FnMut(Term<F>) -> Result<Term<G>, E>) -> Result<Expr<G>, E> {
        let mut each = |branches: Vec<Self>| -> Result<Vec<Expr<G>>, E> {
            branches.into_iter().map(|one| one.try_map(map)).collect()
        };
        Ok(match self {
            Self::And(all) => Expr::And(each(all)?),
            Self::Or(any) => Expr::Or(each(any)?),
            Self::Not(one) => Expr::Not(Box::new(one.try_map(map)?)),
            Self::Term(term) => Expr::Term(map(term)?),
        })
    }

    /// Every term, in the order of the text.
    pub fn terms(&self) -> Vec<&Term<F>> {
        match self {
            Self::And(branches) | Self::Or(branches) => branches.iter().flat_map(Self::terms).collect(),
            Self::Not(one) => one.terms(),
            Self::Term(term) => vec![term],
        }
    }
}

/// Parses a number; infinities and NaN are texts.
fn read_number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests;
