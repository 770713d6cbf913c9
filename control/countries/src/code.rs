//! Codes of countries.

use std::{fmt, str::FromStr};

/// A country by ISO 3166-1 alpha-2.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CountryCode([u8; 2]);

/// A text that is no [`CountryCode`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a country has two letters (ISO 3166-1 alpha-2)")]
pub struct InvalidCountry;

impl CountryCode {
    /// The code of two upper-case letters.
    #[must_use]
    pub const fn new(letters: [u8; 2]) -> Option<Self> {
        if letters[0].is_ascii_uppercase() && letters[1].is_ascii_uppercase() {
            Some(Self(letters))
        } else {
            None
        }
    }

    /// The letters.
    #[must_use]
    pub const fn bytes(self) -> [u8; 2] {
        self.0
    }
}

impl FromStr for CountryCode {
    type Err = InvalidCountry;

    fn from_str(text: &str) -> Result<Self, InvalidCountry> {
        let letters: [u8; 2] = text.as_bytes().try_into().map_err(|_| InvalidCountry)?;
        Self::new(letters.map(|letter| letter.to_ascii_uppercase())).ok_or(InvalidCountry)
    }
}

impl fmt::Display for CountryCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self([first, second]) = self;
        write!(f, "{}{}", char::from(*first), char::from(*second))
    }
}

impl fmt::Debug for CountryCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
