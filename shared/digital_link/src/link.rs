//! A Digital Link with key 01, and the forms in which it is written.

use std::borrow::Cow;

use shared::gtin;

use crate::{ai::Ai, error::DigitalLinkError, value};

/// Digits of a GTIN in a Digital Link.
const GTIN_DIGITS: usize = 14;

/// Ends a value of variable length in an element string: FNC1 as scanners give it.
const SEPARATOR: char = '\u{1d}';

/// What may follow a GTIN in a path, in this order; `ThirdParty` stands alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Qualifier {
    /// 22: the consumer product variant.
    Variant,
    /// 10: the batch or lot.
    Lot,
    /// 21: the serial.
    Serial,
    /// 235: an extension that a third party controls.
    ThirdParty,
}

/// A GTIN with its qualifiers, percent-decoded, and the query that came with it.
///
/// All values have characters of GS1's set of 82 only, which is ASCII. What was not percent-encoded is borrowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigitalLink<'a> {
    pub(crate) stem: &'a str,
    pub(crate) gtin: Cow<'a, str>,
    /// By the place of the qualifier in `Qualifier::ALL`.
    pub(crate) values: [Option<Cow<'a, str>>; 4],
    pub(crate) query: Option<&'a str>,
}

impl Qualifier {
    /// In the order of a path.
    pub const ALL: [Self; 4] = [Self::Variant, Self::Lot, Self::Serial, Self::ThirdParty];

    /// The identifier as it stands in a path.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::Variant => "22",
            Self::Lot => "10",
            Self::Serial => "21",
            Self::ThirdParty => "235",
        }
    }

    /// The identifier.
    #[must_use]
    pub const fn ai(self) -> Ai {
        match self {
            Self::Variant => Ai::new(22, 2),
            Self::Lot => Ai::new(10, 2),
            Self::Serial => Ai::new(21, 2),
            Self::ThirdParty => Ai::new(235, 3),
        }
    }

    /// The most characters of a value.
    #[must_use]
    pub const fn max_length(self) -> usize {
        match self {
            Self::Variant | Self::Lot | Self::Serial => 20,
            Self::ThirdParty => 28,
        }
    }

    /// Looks at a value of it, which is percent-decoded.
    ///
    /// # Errors
    /// `Empty`, `Length` or `Characters`.
    pub fn check(self, value: &str) -> Result<(), DigitalLinkError> {
        check_qualifier(self, value.as_bytes())
    }

    pub(crate) const fn of(text: &str) -> Option<Self> {
        match text.as_bytes() {
            b"22" => Some(Self::Variant),
            b"10" => Some(Self::Lot),
            b"21" => Some(Self::Serial),
            b"235" => Some(Self::ThirdParty),
            _ => None,
        }
    }

    /// The place in a path: each must be behind the one before.
    pub(crate) const fn place(self) -> usize {
        match self {
            Self::Variant => 0,
            Self::Lot => 1,
            Self::Serial => 2,
            Self::ThirdParty => 3,
        }
    }
}

impl<'a> DigitalLink<'a> {
    /// The link of a product, without qualifiers.
    ///
    /// # Errors
    /// As those of a GTIN in a path: 14 digits with their check digit, not of the GS1 prefix 0000000.
    pub fn new(gtin: impl Into<Cow<'a, str>>) -> Result<Self, DigitalLinkError> {
        let gtin = gtin.into();
        check_gtin(gtin.as_bytes())?;
        Ok(Self { stem: "", gtin, values: [const { None }; 4], query: None })
    }

    /// The same with one qualifier more, or with another value of it.
    ///
    /// # Errors
    /// `Empty`, `Length` or `Characters`; `Order` where a third party's extension would not stand alone.
    pub fn with(
        mut self,
        qualifier: Qualifier,
        value: impl Into<Cow<'a, str>>,
    ) -> Result<Self, DigitalLinkError> {
        let value = value.into();
        check_qualifier(qualifier, value.as_bytes())?;
        let mixed = self.qualifiers().any(|(other, _)| {
            other != qualifier && (other == Qualifier::ThirdParty || qualifier == Qualifier::ThirdParty)
        });
        if mixed {
            return Err(DigitalLinkError::Order { ai: qualifier.ai() });
        }
        if let Some(slot) = self.values.get_mut(qualifier.place()) {
            *slot = Some(value);
        }
        Ok(self)
    }

    /// What stood before the key in the path, raw, such as `/some/path`; mostly empty.
    #[must_use]
    pub const fn stem(&self) -> &'a str {
        self.stem
    }

    /// The GTIN, 14 digits.
    #[must_use]
    pub fn gtin(&self) -> &str {
        &self.gtin
    }

    /// The value of a qualifier, if the path has it.
    #[must_use]
    pub fn get(&self, qualifier: Qualifier) -> Option<&str> {
        self.values.get(qualifier.place()).and_then(Option::as_deref)
    }

    /// The query as it came, to be forwarded byte for byte.
    #[must_use]
    pub const fn query(&self) -> Option<&'a str> {
        self.query
    }

    /// The qualifiers that are there, in the order of a path.
    pub fn qualifiers(&self) -> impl Iterator<Item = (Qualifier, &str)> {
        let values = self.values.iter().map(Option::as_deref);
        Qualifier::ALL.into_iter().zip(values).filter_map(|(qualifier, value)| Some((qualifier, value?)))
    }

    /// The canonical path, without stem and query: `/01/…/22/…/10/…/21/…`.
    #[must_use]
    pub fn path(&self) -> String {
        let mut out = String::with_capacity(64);
        self.push_path(&mut out);
        out
    }

    /// The canonical path with these of its qualifiers alone, and without its first slash: the short id of a level, such as
    /// `01/09528765123457/10/L1`.
    #[must_use]
    pub fn level(&self, kept: &[Qualifier]) -> String {
        let mut out = String::with_capacity(32);
        out.push_str("01/");
        out.push_str(&self.gtin);
        self.push_qualifiers(&mut out, |qualifier| kept.contains(&qualifier));
        out
    }

    /// The canonical URI on a host, without stem and query: what a code of this item says.
    #[must_use]
    pub fn uri(&self, host: &str) -> String {
        let mut out = String::with_capacity(64 + host.len());
        out.push_str("https://");
        out.push_str(host);
        self.push_path(&mut out);
        out
    }

    /// The element string of GTIN and qualifiers, as a scanner gives it: a value of variable length ends with the
    /// separator U+001D, but for the last one.
    #[must_use]
    pub fn element_string(&self) -> String {
        let mut out = format!("01{}", self.gtin);
        for (nth, (qualifier, value)) in self.qualifiers().enumerate() {
            if nth > 0 {
                out.push(SEPARATOR);
            }
            out.push_str(qualifier.text());
            out.push_str(value);
        }
        out
    }

    /// The text below a code, for people: `(01)…(22)…(10)…(21)…`.
    #[must_use]
    pub fn human_readable(&self) -> String {
        let mut out = format!("(01){}", self.gtin);
        for (qualifier, value) in self.qualifiers() {
            for part in ["(", qualifier.text(), ")", value] {
                out.push_str(part);
            }
        }
        out
    }

    /// Appends [`Self::path`].
    pub fn push_path(&self, out: &mut String) {
        out.push_str("/01/");
        out.push_str(&self.gtin);
        self.push_qualifiers(out, |_| true);
    }

    fn push_qualifiers(&self, out: &mut String, is_kept: impl Fn(Qualifier) -> bool) {
        for (qualifier, value) in self.qualifiers().filter(|(qualifier, _)| is_kept(*qualifier)) {
            for part in ["/", qualifier.text(), "/"] {
                out.push_str(part);
            }
            value::push_encoded(value, out);
        }
    }
}

pub(crate) fn check_gtin(digits: &[u8]) -> Result<(), DigitalLinkError> {
    let ai = Ai::GTIN;
    if digits.is_empty() {
        return Err(DigitalLinkError::Empty { ai });
    }
    if digits.len() != GTIN_DIGITS {
        let (least, most) = (GTIN_DIGITS, GTIN_DIGITS);
        return Err(DigitalLinkError::Length { ai, given: digits.len(), least, most });
    }
    if !digits.iter().all(u8::is_ascii_digit) {
        return Err(DigitalLinkError::Characters { ai });
    }
    if !gtin::has_check_digit(digits) {
        return Err(DigitalLinkError::CheckDigit { ai });
    }
    // The indicator, then the prefix.
    match digits {
        [_, b'0', b'0', b'0', b'0', b'0', b'0', b'0', ..] => Err(DigitalLinkError::Prefix),
        _ => Ok(()),
    }
}

pub(crate) fn check_qualifier(qualifier: Qualifier, text: &[u8]) -> Result<(), DigitalLinkError> {
    check_length(qualifier, text)?;
    if value::Kinds::of(text).are_cset82() {
        Ok(())
    } else {
        Err(DigitalLinkError::Characters { ai: qualifier.ai() })
    }
}

pub(crate) fn check_length(qualifier: Qualifier, text: &[u8]) -> Result<(), DigitalLinkError> {
    let (ai, most) = (qualifier.ai(), qualifier.max_length());
    match text.len() {
        0 => Err(DigitalLinkError::Empty { ai }),
        given if given > most => Err(DigitalLinkError::Length { ai, given, least: 1, most }),
        _ => Ok(()),
    }
}
