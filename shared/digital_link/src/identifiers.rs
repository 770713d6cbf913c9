//! What GS1's syntax dictionary says of application identifiers: the form of their values, and which go together.

mod table;

use self::table::ROWS;
pub(crate) use self::table::{COUNTRIES, COUNTRY_LETTERS, CURRENCIES, MEDIA};
use crate::{ai::Ai, checks, error::DigitalLinkError};

/// AIs from the first to the last number, with so many digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span(u16, u16, u8);

/// What is known of a range of AIs.
#[derive(Debug)]
pub(crate) struct Row {
    ais: Span,
    /// A primary key.
    pub(crate) key: bool,
    /// May stand in a query.
    pub(crate) attribute: bool,
    /// Empty where the AI is neither an attribute nor a qualifier of a GTIN.
    parts: &'static [Part],
    /// Each list must be met: one of its alternatives, of which all AIs must be there.
    pub(crate) requires: &'static [&'static [&'static [Span]]],
    pub(crate) excludes: &'static [Span],
}

/// A part of a value: its characters, its least and greatest length, and what else is checked.
#[derive(Debug)]
struct Part(Need, Set, u8, u8, &'static [Check]);

/// Whether a value must have a part. One that it may have is absent or has at least its least length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    Must,
    May,
}

/// A set of characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Set {
    Digits,
    Cset82,
    Cset39,
    /// Base64 for URLs, with padding.
    Cset64,
}

/// A check of the content of a part. The dictionary calls them linters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Check {
    /// The check digit of keys of digits.
    Modulo10,
    /// The pair of check characters of a Global Model Number.
    Modulo1021,
    Country,
    CountryLetters,
    CountryOr999,
    Coupon,
    CouponOffer,
    Currency,
    Date,
    /// A date whose day may be `00`.
    DateOrMonth,
    Hour,
    HourMinute,
    Hyphen,
    Iban,
    Latitude,
    /// A date with four digits of the year.
    LongDate,
    Longitude,
    Medium,
    Minute,
    NotZero,
    PercentEncoded,
    PieceOfTotal,
    Position,
    /// A company prefix: at least four digits.
    Prefix,
    PrefixBehindFirst,
    Second,
    Sex,
    Winding,
    YesNo,
    Zero,
}

impl Span {
    pub(crate) const fn contains(self, ai: Ai) -> bool {
        self.2 == ai.digits() && self.0 <= ai.number() && ai.number() <= self.1
    }

    /// The text of the dictionary, such as `310n`; the range must be one AI or end with nines.
    pub(crate) fn pattern(self) -> String {
        let (first, last) = (Ai::new(self.0, self.2).to_string(), Ai::new(self.1, self.2).to_string());
        first.chars().zip(last.chars()).map(|(low, high)| if low == high { low } else { 'n' }).collect()
    }
}

impl Row {
    /// The row of an AI, if GS1 assigned it.
    pub(crate) fn find(ai: Ai) -> Option<&'static Self> {
        let behind = ROWS.partition_point(|row| Ai::new(row.ais.0, row.ais.2).order() <= ai.order());
        ROWS.get(behind.checked_sub(1)?).filter(|row| row.ais.contains(ai))
    }

    /// The least and the greatest length of a value.
    pub(crate) fn lengths(&self) -> (usize, usize) {
        self.parts.iter().fold((0, 0), |(least, most), Part(need, _, low, high, _)| {
            let low = if *need == Need::Must { usize::from(*low) } else { 0 };
            (least + low, most + usize::from(*high))
        })
    }

    /// Checks a value, percent-decoded.
    ///
    /// # Errors
    /// The first fault: `Length`, `Characters` or `Content`.
    pub(crate) fn check(&self, ai: Ai, value: &[u8]) -> Result<(), DigitalLinkError> {
        let (least, most) = self.lengths();
        let wrong_length = || DigitalLinkError::Length { ai, given: value.len(), least, most };
        if !(least..=most).contains(&value.len()) {
            return Err(wrong_length());
        }
        let mut rest = value;
        for Part(need, set, low, high, content) in self.parts {
            let (part, behind) = rest.split_at_checked(usize::from(*high)).unwrap_or((rest, &[]));
            rest = behind;
            if part.is_empty() && *need == Need::May {
                continue;
            }
            if part.len() < usize::from(*low) {
                return Err(wrong_length());
            }
            if !checks::is_of(*set, part) {
                return Err(DigitalLinkError::Characters { ai });
            }
            if let Some(check) = content.iter().find(|check| !checks::holds(**check, part)) {
                return Err(match check {
                    Check::Modulo10 => DigitalLinkError::CheckDigit { ai },
                    other => DigitalLinkError::Content { ai, wanted: checks::wanted(*other) },
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
