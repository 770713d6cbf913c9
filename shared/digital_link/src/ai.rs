//! Application identifiers (AIs), such as `01` or `3103`.

use std::fmt;

/// An application identifier: two to four digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ai {
    number: u16,
    digits: u8,
}

impl Ai {
    pub(crate) const GTIN: Self = Self { number: 1, digits: 2 };
    pub(crate) const GTIN_TEXT: &[u8; 2] = b"01";
    pub(crate) const SIGNATURE: Self = Self { number: 8030, digits: 4 };

    pub(crate) const fn new(number: u16, digits: u8) -> Self {
        Self { number, digits }
    }

    /// Reads two to four digits; whether GS1 gave them a meaning is not looked at.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let digits = u8::try_from(text.len()).ok().filter(|digits| (2..=4).contains(digits))?;
        let number = text.bytes().try_fold(0_u16, |number, byte| {
            byte.is_ascii_digit().then(|| number * 10 + u16::from(byte - b'0'))
        })?;
        Some(Self { number, digits })
    }

    /// The number filled with zeros to four digits. No AI begins with another one, so this orders them as texts.
    pub(crate) const fn order(self) -> u16 {
        match self.digits {
            2 => self.number * 100,
            3 => self.number * 10,
            _ => self.number,
        }
    }

    pub(crate) const fn number(self) -> u16 {
        self.number
    }

    pub(crate) const fn digits(self) -> u8 {
        self.digits
    }
}

impl fmt::Display for Ai {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:0width$}", self.number, width = usize::from(self.digits))
    }
}
