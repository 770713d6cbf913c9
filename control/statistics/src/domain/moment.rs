//! Times of queries: milliseconds, dates and date-times, in a time zone.

use jiff::{
    Timestamp,
    civil::Date,
    tz::{TimeZone, TimeZoneDatabase},
};

/// Longest name of a time zone; the longest known one has 32 bytes.
const MAX_ZONE: usize = 64;

/// The time zone of a name of the IANA; the same on every machine.
#[must_use]
pub fn find_zone(name: &str) -> Option<TimeZone> {
    if name.len() > MAX_ZONE {
        return None;
    }
    TimeZoneDatabase::bundled().get(name).ok()
}

/// Reads milliseconds since 1970, a date (its beginning in the zone), or a date-time with an offset.
#[must_use]
pub fn read(text: &str, zone: &TimeZone) -> Option<Timestamp> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Timestamp::from_millisecond(text.parse().ok()?).ok();
    }
    // A date-time without an offset would read as a date, too.
    if text.len() == "2026-11-01".len() {
        let date: Date = text.parse().ok()?;
        return Some(date.to_zoned_datetime(zone.clone()).ok()?.timestamp());
    }
    text.parse().ok()
}

/// A time as a date-time with the offset of a zone, such as `2026-11-01T00:00:00+01:00`.
#[must_use]
pub fn write(at_ms: i64, zone: &TimeZone) -> String {
    let Ok(at) = Timestamp::from_millisecond(at_ms) else { return at_ms.to_string() };
    at.display_with_offset(zone.to_offset(at)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_their_zone() {
        let berlin = find_zone("Europe/Berlin").unwrap();
        for (text, expected) in [
            ("1767222000000", Some(1_767_222_000_000)),
            ("2026-01-01", Some(1_767_222_000_000)),
            ("2026-01-01T00:00:00+01:00", Some(1_767_222_000_000)),
            ("2025-12-31T23:00:00Z", Some(1_767_222_000_000)),
            ("2026-01-01T00:00:00", None),
            ("2026-13-01", None),
            ("99999999999999999999", None),
            ("-5", None),
            ("yesterday", None),
            ("", None),
        ] {
            assert_eq!(read(text, &berlin).map(|at| at.as_millisecond()), expected, "{text}");
        }
        assert_eq!(write(1_767_222_000_000, &berlin), "2026-01-01T00:00:00+01:00");
        assert_eq!(find_zone("Europe/Nowhere"), None);
        assert_eq!(find_zone(&"x".repeat(65)), None);
    }
}
