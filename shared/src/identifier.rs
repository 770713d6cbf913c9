//! Identifiers of the form `<key>:<value>`, such as `gs1:21:ABC`.

use std::{fmt, str::FromStr};

/// A Thng's or product's own identifier: the last `:` separates key from value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Identifier {
    /// The identifier's key, which may hold `:` itself (`gs1:21`).
    pub key: String,
    /// The identifier's value.
    pub value: String,
}

/// Why a text is not an identifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an identifier has the form <key>:<value>, both not empty")]
pub struct InvalidIdentifier;

impl FromStr for Identifier {
    type Err = InvalidIdentifier;

    fn from_str(text: &str) -> Result<Self, InvalidIdentifier> {
        match text.rsplit_once(':') {
            Some((key, value)) if !key.is_empty() && !value.is_empty() => {
                Ok(Self { key: key.to_owned(), value: value.to_owned() })
            }
            Some(_) | None => Err(InvalidIdentifier),
        }
    }
}

impl fmt::Display for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.key, self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_colon_separates() {
        for (text, expected) in [
            ("gs1:21:ABC", Some(("gs1:21", "ABC"))),
            ("serial:1", Some(("serial", "1"))),
            ("a:b:c:d", Some(("a:b:c", "d"))),
            ("plain", None),
            (":x", None),
            ("x:", None),
            ("", None),
        ] {
            let parsed = text.parse::<Identifier>().ok();
            assert_eq!(parsed.as_ref().map(|id| (id.key.as_str(), id.value.as_str())), expected, "{text}");
        }
    }
}
