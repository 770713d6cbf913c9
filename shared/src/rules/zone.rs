//! Hours and days of the week in a time zone, by the database in the binary: the same at every edge of a release.

use jiff::{
    Timestamp,
    tz::{TimeZone, TimeZoneDatabase},
};

use crate::time::UnixMillis;

/// Longest name of a time zone; the longest known one has 32 bytes.
const MAX_ZONE: usize = 64;

/// The time zone with a name of the IANA.
///
/// # Errors
/// There is none, as the end of a sentence.
pub(super) fn find(name: &str) -> Result<TimeZone, String> {
    let zone = Some(name).filter(|name| name.len() <= MAX_ZONE);
    let zone = zone.and_then(|name| TimeZoneDatabase::bundled().get(name).ok());
    zone.filter(|zone| !zone.is_unknown())
        .ok_or_else(|| format!("there is no time zone {name}; write a name such as Europe/Berlin"))
}

/// Hour of the day there, 0 to 23; `None` outside of the years -9999 to 9999.
pub(super) fn hour(zone: &TimeZone, at: UnixMillis) -> Option<i64> {
    Some(zone.to_datetime(Timestamp::from_millisecond(at.0).ok()?).hour().into())
}

/// Day of the week there, 1 on Mondays to 7 on Sundays; `None` outside of the years -9999 to 9999.
pub(super) fn weekday(zone: &TimeZone, at: UnixMillis) -> Option<i64> {
    let date = zone.to_datetime(Timestamp::from_millisecond(at.0).ok()?).date();
    Some(date.weekday().to_monday_one_offset().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_and_days_follow_daylight_saving() {
        for (zone, at, hour_there, weekday_there, why) in [
            ("Europe/Berlin", "2026-03-29T00:59:59Z", 1, 7, "before the clocks go forward"),
            ("Europe/Berlin", "2026-03-29T01:00:00Z", 3, 7, "there is no 2 o'clock"),
            ("Europe/Berlin", "2026-10-25T00:30:00Z", 2, 7, "2 o'clock for the first time"),
            ("Europe/Berlin", "2026-10-25T01:30:00Z", 2, 7, "2 o'clock for the second time"),
            ("Europe/Berlin", "2026-10-25T02:00:00Z", 3, 7, "behind it"),
            ("America/New_York", "2026-11-02T03:00:00Z", 22, 7, "still Sunday there"),
            ("Asia/Kolkata", "2026-11-01T18:30:00Z", 0, 1, "Monday by half an hour"),
            ("Asia/Kolkata", "2026-11-01T18:29:59Z", 23, 7, "not yet"),
            ("Pacific/Kiritimati", "2026-11-01T10:00:00Z", 0, 1, "14 hours ahead"),
            ("UTC", "1969-12-31T23:59:59Z", 23, 3, "before 1970"),
        ] {
            let at: Timestamp = at.parse().unwrap();
            let (zone, at) = (find(zone).unwrap(), UnixMillis(at.as_millisecond()));
            assert_eq!(
                (hour(&zone, at), weekday(&zone, at)),
                (Some(hour_there), Some(weekday_there)),
                "{why}"
            );
        }
        let berlin = find("Europe/Berlin").unwrap();
        assert_eq!(
            (hour(&berlin, UnixMillis(i64::MAX)), weekday(&berlin, UnixMillis(i64::MIN))),
            (None, None)
        );
    }

    #[test]
    fn names_of_no_time_zone_are_refused() {
        let long = "Europe/".repeat(10);
        for name in
            ["", "Berlin", "Europe/Nowhere", "UTC+1", "CET-1CEST", "Etc/Unknown", "../../etc/passwd", &long]
        {
            assert!(find(name).unwrap_err().starts_with("there is no time zone"), "{name}");
        }
    }
}
