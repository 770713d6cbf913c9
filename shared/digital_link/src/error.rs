//! Why a path and a query are no Digital Link.

use std::fmt;

use crate::{ai::Ai, identifiers::Span};

/// Why a path and a query were refused. All but `NoKey` are faults of a Digital Link; the texts name what and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DigitalLinkError {
    /// The path is no Digital Link with key 01: it is something else, and nothing is wrong with it.
    #[error("the path has no `/01/` with a GTIN")]
    NoKey,
    /// A byte of the path that no URI may have.
    #[error("the path has a character that must be percent-encoded, at byte {offset}")]
    PathCharacter {
        /// From 0.
        offset: usize,
    },
    /// A byte of the query that no URI may have.
    #[error("the query has a character that must be percent-encoded, at byte {offset}")]
    QueryCharacter {
        /// From 0, without the `?`.
        offset: usize,
    },
    /// What follows the GTIN are not pairs of an AI and a value.
    #[error("what follows the GTIN must be pairs of an identifier and its value: 22, 10, 21, or 235 alone")]
    Unpaired,
    /// An AI that may not follow the GTIN, or not at its place.
    #[error("({ai}) may not stand there: a GTIN is followed by 22, 10 and 21 in this order, or by 235 alone")]
    Order {
        /// The identifier.
        ai: Ai,
    },
    /// An AI without a value.
    #[error("({ai}) has no value")]
    Empty {
        /// The identifier.
        ai: Ai,
    },
    /// A value that is too short or too long, counted in characters after percent-decoding.
    #[error("({ai}) has {given} characters; it must have {}", Lengths(*.least, *.most))]
    Length {
        /// The identifier.
        ai: Ai,
        /// Of the value.
        given: usize,
        /// The fewest.
        least: usize,
        /// The most.
        most: usize,
    },
    /// A value with a character that its identifier does not allow.
    #[error("({ai}) has a character that this identifier does not allow")]
    Characters {
        /// The identifier.
        ai: Ai,
    },
    /// A wrong check digit.
    #[error("({ai}) has a wrong check digit")]
    CheckDigit {
        /// The identifier.
        ai: Ai,
    },
    /// A GTIN of the GS1 prefix 0000000, which GS1 does not assign.
    #[error("(01) begins with the GS1 prefix 0000000, which nobody owns")]
    Prefix,
    /// A value with another content than its identifier has.
    #[error("({ai}) must be {wanted}")]
    Content {
        /// The identifier.
        ai: Ai,
        /// What the value must be, such as `a date YYMMDD`.
        wanted: &'static str,
    },
    /// A name of a query parameter that is digits only and no AI.
    #[error("the query has `{name}`, which is no identifier of GS1")]
    UnknownIdentifier {
        /// At most 20 characters.
        name: String,
    },
    /// An AI that may not stand in a query.
    #[error("({ai}) may not stand in a query")]
    NotAnAttribute {
        /// The identifier.
        ai: Ai,
    },
    /// An AI in the query that belongs behind the GTIN.
    #[error("({ai}) must stand in the path, not in the query")]
    BelongsInPath {
        /// The identifier.
        ai: Ai,
    },
    /// An AI that is there twice.
    #[error("({ai}) is there twice")]
    Repeated {
        /// The identifier.
        ai: Ai,
    },
    /// More AIs than the 64 that are taken.
    #[error("more than 64 identifiers")]
    TooMany,
    /// An AI without another one that it needs.
    #[error("({ai}) needs {needs}")]
    Missing {
        /// The identifier.
        ai: Ai,
        /// What would do.
        needs: Needs,
    },
    /// Two AIs that may not be there together.
    #[error("({ai}) and ({other}) may not be there together")]
    Excluded {
        /// The identifier.
        ai: Ai,
        /// The other one.
        other: Ai,
    },
    /// A digital signature (8030) beside a key without its serial.
    #[error("({ai}) needs its serial, as there is a signature (8030)")]
    UnsignedKey {
        /// The identifier.
        ai: Ai,
    },
}

/// What an AI needs beside it: one of these groups of AIs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs(pub(crate) &'static [&'static [Span]]);

impl fmt::Display for Needs {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, group) in self.0.iter().enumerate() {
            out.write_str(if nth == 0 { "" } else { " or " })?;
            for (nth, span) in group.iter().enumerate() {
                write!(out, "{}({})", if nth == 0 { "" } else { " with " }, span.pattern())?;
            }
        }
        Ok(())
    }
}

/// `14`, or `1 to 20`.
struct Lengths(usize, usize);

impl fmt::Display for Lengths {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == self.1 { write!(out, "{}", self.0) } else { write!(out, "{} to {}", self.0, self.1) }
    }
}
