//! Properties: which writes are valid, and which values are kept.

use std::{collections::HashSet, fmt};

use serde_json::Value;
use shared::time::UnixMillis;

use super::limits;

/// Longest key, in characters of its lower-case form.
pub const MAX_KEY: usize = 128;

// Spec gap: the platform API limits neither values nor requests.
/// Largest value, in bytes of compact JSON: a page of 100 stays below 2 MiB.
pub const MAX_VALUE_BYTES: usize = 16 * 1024;

/// Most values of one request; those of a number and a timestamp fill less than half of the largest body.
pub const MAX_POINTS: usize = 10_000;

/// Most properties that the document of a Thng or product shows; the others are read from its list.
pub const MAX_SHOWN: u32 = 100;

/// Most characters of JSON that the values in the document of a Thng or product have together.
///
/// As much as `customFields` may have, so that a page of 100 stays below 20 MiB.
pub const MAX_SHOWN_LENGTH: u32 = 64 * 1024;

// Spec gap: whether a timestamp may lie before 1970 or in the future is not shown; devices' clocks are
// wrong and forecasts are data, so every time that clients can hold is taken.
/// Earliest and latest timestamp: 100 million days around 1970, the range of JavaScript's `Date`.
pub const MAX_TIME_MS: i64 = 8_640_000_000_000_000;

shared::words! {
    /// What has properties.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Owner {
        /// A Thng.
        Thng = "thng",
        /// A product.
        Product = "product",
    }
}

/// The name of a property, in lower case.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PropertyKey(String);

impl PropertyKey {
    /// Lower-cases a name.
    ///
    /// # Errors
    /// It is empty or too long or holds U+0000: a sentence without its subject.
    pub fn parse(text: &str) -> Result<Self, String> {
        // What does not fit before is not worth the work; no character has a shorter lower-case form.
        limits::check_text(text, 1, MAX_KEY)?;
        let key = text.to_lowercase();
        limits::check_text(&key, 1, MAX_KEY)?;
        Ok(Self(key))
    }

    /// A key that was stored.
    #[must_use]
    pub const fn stored(text: String) -> Self {
        Self(text)
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether only the platform itself writes it.
    #[must_use]
    pub fn is_system(&self) -> bool {
        self.0.starts_with('~')
    }
}

impl fmt::Display for PropertyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A value that a request gives.
#[derive(Debug, Clone, PartialEq)]
pub struct NewPoint {
    /// Name of the property.
    pub key: PropertyKey,
    /// Anything but `null`.
    pub value: Value,
    /// Its timestamp; `None` means the time of the request.
    pub timestamp: Option<UnixMillis>,
}

/// A value of a property at a point in time.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// Name of the property.
    pub key: PropertyKey,
    /// Anything but `null`.
    pub value: Value,
    /// When it was so.
    pub timestamp: UnixMillis,
    /// When it was written.
    pub created_at: UnixMillis,
}

/// A timestamp, if it is in the range.
#[must_use]
pub fn time(ms: i64) -> Option<UnixMillis> {
    (-MAX_TIME_MS..=MAX_TIME_MS).contains(&ms).then_some(UnixMillis(ms))
}

/// The values of one request that are written: in their order, each with its timestamp; of two with one key and
/// timestamp the later.
#[must_use]
pub fn settle(points: Vec<NewPoint>, now: UnixMillis) -> Vec<Point> {
    let mut seen = HashSet::with_capacity(points.len());
    let mut kept: Vec<Point> = points
        .into_iter()
        .rev()
        .map(|NewPoint { key, value, timestamp }| Point {
            key,
            value,
            timestamp: timestamp.unwrap_or(now),
            created_at: now,
        })
        .filter(|point| seen.insert((point.key.clone(), point.timestamp)))
        .collect();
    kept.reverse();
    kept
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn key(text: &str) -> PropertyKey {
        PropertyKey::parse(text).unwrap()
    }

    #[test]
    fn keys_are_lower_cased_and_limited() {
        for (text, expected) in [
            ("Temp", Some("temp")),
            ("ÄÖÜ ΣΑΣ", Some("äöü σας")),
            ("ДA", Some("дa")),
            ("~Connected", Some("~connected")),
            ("", None),
            ("a\0", None),
            ("a/b c", Some("a/b c")),
        ] {
            assert_eq!(PropertyKey::parse(text).ok().as_ref().map(PropertyKey::as_str), expected, "{text:?}");
        }
        assert!(PropertyKey::parse(&"ü".repeat(128)).is_ok());
        assert!(PropertyKey::parse(&"ü".repeat(129)).is_err());
        // The lower-case form of this letter has two characters.
        assert!(PropertyKey::parse(&"İ".repeat(64)).is_ok());
        assert!(PropertyKey::parse(&"İ".repeat(65)).is_err());
        assert!(key("~x").is_system() && !key("x~").is_system());
    }

    #[test]
    fn of_two_values_with_one_timestamp_the_later_write_wins() {
        let new = |name: &str, value: i32, at: Option<i64>| NewPoint {
            key: key(name),
            value: json!(value),
            timestamp: at.map(UnixMillis),
        };
        let points = vec![
            new("a", 1, None),
            new("A", 2, Some(7)),
            new("b", 3, None),
            new("a", 4, Some(50)),
            new("a", 5, Some(7)),
        ];
        let kept: Vec<_> = settle(points, UnixMillis(50))
            .into_iter()
            .map(|point| (point.key.to_string(), point.value, point.timestamp.0, point.created_at.0))
            .collect();
        assert_eq!(
            kept,
            [
                ("b".to_owned(), json!(3), 50, 50),
                ("a".to_owned(), json!(4), 50, 50),
                ("a".to_owned(), json!(5), 7, 50),
            ]
        );
    }
}
