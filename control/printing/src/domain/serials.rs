//! Serials that an order makes: numbered or random.

use std::fmt;

use kernel::domain::{
    limits::{MAX_LIST, MAX_TAG, integer},
    members::Members,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::{id::ProductId, target::Target};

/// Most characters of a serial: the element string (21) of GS1.
pub const MAX_SERIAL: usize = 20;

/// What random serials are made of: the letters and digits of short ids, which nobody takes for one another.
pub const ALPHABET: &[u8; 31] = b"ABCDEFGHKMNPQRSTUVWXY0123456789";

/// Fewest random characters: 31^13 is more than 2^64.
pub const MIN_RANDOM: usize = 13;

/// Random characters of an order that names no number: 79 bits.
pub const DEFAULT_RANDOM: usize = 16;

/// Greatest number.
pub const MAX_NUMBER: u64 = 999_999_999_999_999;

/// Digits of a number at most.
const MAX_DIGITS: usize = 15;

/// How serials are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "form")]
pub enum Form {
    /// One number after the other.
    Numbered {
        /// The first one; `None` follows on the orders before.
        start: Option<u64>,
        /// Digits, filled with zeros from the left.
        digits: usize,
    },
    /// Random letters and digits.
    Random {
        /// How many.
        length: usize,
    },
}

/// What an order of serials makes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Serials {
    /// The product of the Things.
    pub product: ProductId,
    /// How many.
    pub count: u64,
    /// What stands before the number or the random characters.
    pub prefix: String,
    /// How they are made.
    #[serde(flatten)]
    pub form: Form,
    /// Where their links lead.
    pub target: String,
    /// The short domain of their links; `None` is the account's first.
    pub short_domain: Option<String>,
    /// Tags of the Things.
    pub tags: Vec<String>,
}

impl Serials {
    /// Reads `source.serials`; faults go to `members`' owner.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(value: &Value, max_codes: u64) -> Result<Self, Vec<String>> {
        let mut members = Members::within(value, "source.serials")?;
        refuse_others(
            &mut members,
            &[
                "product",
                "count",
                "form",
                "start",
                "digits",
                "length",
                "prefix",
                "defaultRedirectUrl",
                "shortDomain",
                "tags",
            ],
        );
        for name in ["product", "count", "form", "defaultRedirectUrl"] {
            if members.raw(name).is_none() {
                let path = members.path(name);
                members.fault(format!("{path} is required."));
            }
        }
        let product = members.typed("product", "the id of a product", |value| value.as_str()?.parse().ok());
        let count = whole(&mut members, "count", 1..=max_codes);
        let prefix = prefix(&mut members);
        let form = form(&mut members, prefix.as_deref().unwrap_or_default(), count.unwrap_or(1));
        let target = members.text("defaultRedirectUrl").and_then(|text| match Target::parse(text) {
            Ok(target) => Some(target.to_string()),
            Err(fault) => {
                let path = members.path("defaultRedirectUrl");
                members.fault(format!("{path} {fault}."));
                None
            }
        });
        let short_domain = members.text("shortDomain").map(str::to_ascii_lowercase);
        let tags = tags(&mut members);
        let whole = product.zip(count).zip(prefix).zip(form).zip(target).zip(tags);
        members.finish(whole.map(|(((((product, count), prefix), form), target), tags)| Self {
            product,
            count,
            prefix,
            form,
            target,
            short_domain,
            tags,
        }))
    }

    /// Bits of randomness in a serial, rounded down; `None` for numbered ones.
    #[must_use]
    pub fn bits(&self) -> Option<u32> {
        match self.form {
            Form::Numbered { .. } => None,
            // Small and positive.
            Form::Random { length } => Some((length as f64 * (ALPHABET.len() as f64).log2()) as u32),
        }
    }

    /// The serial of a number.
    #[must_use]
    pub fn numbered(&self, number: u64, digits: usize) -> String {
        format!("{}{number:0digits$}", self.prefix)
    }

    /// A serial with as many characters as the last one, where no earlier order moves the numbers on.
    #[must_use]
    pub fn example(&self) -> String {
        match self.form {
            Form::Numbered { start, digits } => {
                let last = start.unwrap_or(1).saturating_add(self.count.saturating_sub(1));
                self.numbered(last, digits)
            }
            Form::Random { length } => self.numbered(0, length),
        }
    }

    /// A random serial of so many characters. `byte` gives random bytes.
    ///
    /// # Errors
    /// What `byte` fails with.
    pub fn random<E>(&self, length: usize, mut byte: impl FnMut() -> Result<u8, E>) -> Result<String, E> {
        let mut serial = self.prefix.clone();
        let mut left = length;
        while left > 0 {
            let byte = usize::from(byte()?);
            // Bytes beyond a multiple of the alphabet would favour its first letters.
            if byte < 256 / ALPHABET.len() * ALPHABET.len() {
                serial.push(char::from(ALPHABET[byte % ALPHABET.len()]));
                left -= 1;
            }
        }
        Ok(serial)
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Numbered { .. } => "numbered",
            Self::Random { .. } => "random",
        })
    }
}

/// Names members that are none of these.
pub(super) fn refuse_others(members: &mut Members<'_>, known: &[&str]) {
    let others: Vec<String> =
        members.names().filter(|name| !known.contains(name)).map(|name| members.path(name)).collect();
    for other in others {
        members.fault(format!("{other} is not a member of a print order."));
    }
}

/// A whole number of a range.
pub(super) fn whole(
    members: &mut Members<'_>,
    name: &str,
    range: std::ops::RangeInclusive<u64>,
) -> Option<u64> {
    let value = members.raw(name)?;
    let found = integer(value).and_then(|number| u64::try_from(number).ok()).filter(|n| range.contains(n));
    if found.is_none() {
        let (path, from, to) = (members.path(name), range.start(), range.end());
        members.fault(format!("{path} must be a whole number from {from} to {to}."));
    }
    found
}

fn prefix(members: &mut Members<'_>) -> Option<String> {
    let Some(text) = members.text("prefix") else {
        return members.raw("prefix").is_none().then(String::new);
    };
    // Letters, digits and a hyphen stand in every file name and symbol.
    let fits = text.len() < MAX_SERIAL && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if !fits {
        let path = members.path("prefix");
        members.fault(format!("{path} must have at most 19 letters, digits and hyphens."));
    }
    fits.then(|| text.to_owned())
}

fn form(members: &mut Members<'_>, prefix: &str, count: u64) -> Option<Form> {
    let room = MAX_SERIAL.saturating_sub(prefix.len());
    let (form, others): (Option<Form>, &[&str]) = match members.text("form")? {
        "numbered" => {
            let start = whole(members, "start", 0..=MAX_NUMBER);
            let digits = whole(members, "digits", 1..=MAX_DIGITS as u64);
            let is_bad = start.is_none() && members.raw("start").is_some()
                || digits.is_none() && members.raw("digits").is_some();
            let digits = digits.and_then(|digits| usize::try_from(digits).ok()).unwrap_or(1);
            let last = start.unwrap_or(1).saturating_add(count - 1);
            if digits.max(last.to_string().len()) > room.min(MAX_DIGITS) {
                let path = members.path("prefix");
                members.fault(format!(
                    "{path} and the numbers must have at most {MAX_SERIAL} characters together, and numbers {MAX_DIGITS}."
                ));
            }
            ((!is_bad).then_some(Form::Numbered { start, digits }), &["length"])
        }
        "random" => {
            if room < MIN_RANDOM {
                let path = members.path("prefix");
                members.fault(format!(
                    "{path} must leave room for {MIN_RANDOM} random characters of {MAX_SERIAL}."
                ));
                return None;
            }
            let is_given = members.raw("length").is_some();
            let length = whole(members, "length", MIN_RANDOM as u64..=room as u64)
                .and_then(|length| usize::try_from(length).ok());
            let length = if is_given { length } else { Some(DEFAULT_RANDOM.min(room)) };
            (length.map(|length| Form::Random { length }), &["start", "digits"])
        }
        _ => {
            let path = members.path("form");
            members.fault(format!("{path} must be numbered or random."));
            return None;
        }
    };
    for name in others {
        if members.raw(name).is_some() {
            let path = members.path(name);
            members.fault(format!("{path} is not for serials of this form."));
        }
    }
    form
}

fn tags(members: &mut Members<'_>) -> Option<Vec<String>> {
    let Some(tags) = members.texts("tags") else {
        return members.raw("tags").is_none().then(Vec::new);
    };
    let fits = |tag: &&str| (1..=MAX_TAG).contains(&tag.chars().count()) && !tag.contains('\0');
    if tags.len() > MAX_LIST || !tags.iter().all(fits) {
        let path = members.path("tags");
        members.fault(format!("{path} must hold at most {MAX_LIST} texts of 1 to {MAX_TAG} characters."));
        return None;
    }
    Some(tags.into_iter().map(str::to_owned).collect())
}

#[cfg(test)]
mod tests;
