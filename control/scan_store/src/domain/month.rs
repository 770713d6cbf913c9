//! Months and days in UTC, by which scans are kept.

use jiff::{Timestamp, ToSpan as _, civil::Date, tz::TimeZone};
use shared::time::UnixMillis;

/// A month, as `202611`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Month(i32);

impl Month {
    /// The month of a time; one outside of the calendar counts as the first month of 1970.
    #[must_use]
    pub fn of(at: UnixMillis) -> Self {
        let date = Timestamp::from_millisecond(at.0).map(|time| time.to_zoned_datetime(TimeZone::UTC).date());
        let date = date.unwrap_or(Date::constant(1970, 1, 1));
        Self(i32::from(date.year()) * 100 + i32::from(date.month()))
    }

    /// Reads a stored month; `None` when there is no such month.
    #[must_use]
    pub fn stored(number: i32) -> Option<Self> {
        first_day(number).map(|_| Self(number))
    }

    /// As it is stored, and stands in the names of tables.
    #[must_use]
    pub const fn number(self) -> i32 {
        self.0
    }

    /// When it begins.
    #[must_use]
    pub fn start(self) -> UnixMillis {
        millis(first_day(self.0))
    }

    /// When the next one begins.
    #[must_use]
    pub fn end(self) -> UnixMillis {
        millis(first_day(self.0).map(|day| day.saturating_add(1.month())))
    }
}

/// Milliseconds of a day.
pub const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// The day of a time in UTC, since 1970.
#[must_use]
pub fn day_of(at: UnixMillis) -> i32 {
    i32::try_from(at.0.div_euclid(DAY_MS)).unwrap_or_default()
}

fn first_day(number: i32) -> Option<Date> {
    Date::new(i16::try_from(number / 100).ok()?, i8::try_from(number % 100).ok()?, 1).ok()
}

fn millis(day: Option<Date>) -> UnixMillis {
    let at = day.and_then(|day| day.to_zoned_datetime(TimeZone::UTC).ok());
    UnixMillis(at.map_or(0, |at| at.timestamp().as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_within_its_month() {
        for (at, number) in [
            (0, 197_001),
            (1_760_000_000_000, 202_510),
            (1_767_225_599_999, 202_512),
            (1_767_225_600_000, 202_601),
            (i64::MAX, 197_001),
        ] {
            assert_eq!(Month::of(UnixMillis(at)).number(), number, "{at}");
        }
        let month = Month::of(UnixMillis(1_767_225_600_000));
        assert_eq!((month.start().0, month.end().0), (1_767_225_600_000, 1_769_904_000_000));
        assert_eq!(Month::stored(202_601), Some(month));
        assert_eq!((Month::stored(202_613), Month::stored(0)), (None, None));
    }
}
