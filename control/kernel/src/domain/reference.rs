//! How a path names a Thng or product: by id, or by one of its identifiers.

use std::{fmt, str::FromStr};

use shared::identifier::Identifier;

/// A Thng or product as a path names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference<Id> {
    /// By its platform id.
    Id(Id),
    /// By `<key>:<value>`, which more than one may have.
    Identifier(Identifier),
}

/// A text that is neither an id nor an identifier; nothing can have that name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("neither an id nor <key>:<value>")]
pub struct InvalidReference;

impl<Id: FromStr> FromStr for Reference<Id> {
    type Err = InvalidReference;

    fn from_str(text: &str) -> Result<Self, InvalidReference> {
        if let Ok(id) = text.parse() {
            return Ok(Self::Id(id));
        }
        // U+0000 cannot be stored, and Postgres fails on a parameter that holds it.
        match text.parse() {
            Ok(identifier) if !text.contains('\0') => Ok(Self::Identifier(identifier)),
            Ok(_) | Err(_) => Err(InvalidReference),
        }
    }
}

impl<Id: fmt::Display> fmt::Display for Reference<Id> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => id.fmt(f),
            Self::Identifier(identifier) => identifier.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use shared::id::ThngId;

    use super::*;

    #[test]
    fn a_reference_is_an_id_or_an_identifier() {
        let id = "UKXAGyEf8SQ5eTDmVgGpHqAa";
        assert_eq!(id.parse(), Ok(Reference::<ThngId>::Id(id.parse().unwrap())));
        assert!(matches!("gs1:21:X".parse(), Ok(Reference::<ThngId>::Identifier(i)) if i.key == "gs1:21"));
        for text in ["", "x", "UKXAGyEf8SQ5eTDmVgGpHqA", "k:", ":v", "k:\0"] {
            assert_eq!(text.parse::<Reference<ThngId>>(), Err(InvalidReference), "{text:?}");
        }
    }
}
