//! Which bytes of a file a request asks for (RFC 9110, section 14): one range.

use std::ops::Range;

/// The part of a file that is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    /// All of it: no range, several, or one of other bytes.
    Whole,
    /// These bytes; never none.
    Bytes(Range<u64>),
    /// There are no such bytes.
    Unsatisfiable,
}

impl Part {
    /// Reads `Range` and `If-Range` for a file of `size` bytes; `etag` is the file's own, with its quotes.
    pub(super) fn of(range: Option<&str>, if_range: Option<&str>, etag: &str, size: u64) -> Self {
        let is_of_these = if_range.is_none_or(|known| known.trim() == etag);
        match range.filter(|_| is_of_these).and_then(bounds) {
            None => Self::Whole,
            Some(Bounds::From(first, last)) if first < size => {
                Self::Bytes(first..last.saturating_add(1).min(size))
            }
            Some(Bounds::Last(count)) if count > 0 && size > 0 => {
                Self::Bytes(size.saturating_sub(count)..size)
            }
            Some(Bounds::From(..) | Bounds::Last(_)) => Self::Unsatisfiable,
        }
    }
}

enum Bounds {
    /// The first and the last byte.
    From(u64, u64),
    /// So many at the end.
    Last(u64),
}

/// The bounds of a single range; `None` for anything else, which counts as not sent.
fn bounds(text: &str) -> Option<Bounds> {
    let (unit, range) = text.split_once('=')?;
    let (first, last) = range.trim().split_once('-')?;
    if !unit.trim().eq_ignore_ascii_case("bytes") {
        return None;
    }
    match (first, last) {
        ("", last) => Some(Bounds::Last(number(last)?)),
        (first, "") => Some(Bounds::From(number(first)?, u64::MAX)),
        (first, last) => {
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then_some(Bounds::From(first, last))
        }
    }
}

/// Digits alone; what is larger than any file counts as the largest number.
fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_of_these_bytes_is_a_part() {
        for (range, expected, why) in [
            ("bytes=0-0", Part::Bytes(0..1), "both ends belong to it"),
            ("bytes=10-", Part::Bytes(10..100), "up to the end"),
            ("Bytes = 10-19", Part::Bytes(10..20), "units have no case"),
            ("bytes=90-500", Part::Bytes(90..100), "what is not there is left out"),
            ("bytes=-10", Part::Bytes(90..100), "the last ones"),
            ("bytes=-500", Part::Bytes(0..100), "all"),
            ("bytes=0-99999999999999999999999", Part::Bytes(0..100), "more than a number holds"),
            ("bytes=100-", Part::Unsatisfiable, "behind the end"),
            ("bytes=99999999999999999999999-", Part::Unsatisfiable, "far behind the end"),
            ("bytes=-0", Part::Unsatisfiable, "none"),
            ("bytes=0-1,5-6", Part::Whole, "several"),
            ("bytes=9-3", Part::Whole, "no range"),
            ("bytes=-", Part::Whole, "no range"),
            ("bytes=+1-2", Part::Whole, "no number"),
            ("lines=1-2", Part::Whole, "another unit"),
            ("bytes", Part::Whole, "no range"),
        ] {
            assert_eq!(Part::of(Some(range), None, "\"a\"", 100), expected, "{range}: {why}");
        }
        assert_eq!(Part::of(None, None, "\"a\"", 100), Part::Whole);
        assert_eq!(Part::of(Some("bytes=-1"), None, "\"a\"", 0), Part::Unsatisfiable, "an empty file");
    }

    #[test]
    fn a_range_of_other_bytes_gets_all() {
        let of = |known: &str| Part::of(Some("bytes=5-"), Some(known), "\"a\"", 10);
        assert_eq!(of("\"a\""), Part::Bytes(5..10));
        for known in ["\"b\"", "W/\"a\"", "a", "Wed, 21 Oct 2015 07:28:00 GMT"] {
            assert_eq!(of(known), Part::Whole, "{known}");
        }
    }
}
