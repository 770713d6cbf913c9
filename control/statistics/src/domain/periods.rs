//! Cuts a range into hours, days, weeks or months of a time zone.

use jiff::{Timestamp, ToSpan, civil::Date, tz::TimeZone};

use super::roll_ups::HOUR_MS;

shared::words! {
    /// How long the periods of an answer are.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Interval {
        /// Hours.
        Hour = "hour",
        /// Days of the time zone, of 23 to 25 hours.
        Day = "day",
        /// Weeks from Monday on.
        Week = "week",
        /// Months of the calendar.
        Month = "month",
    } else ()
}

/// Hours from one to another one, which is not among them; counted from 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    /// The first one.
    pub from: i32,
    /// The one behind the last.
    pub to: i32,
}

impl Period {
    /// How many hours it has.
    #[must_use]
    pub const fn hours(self) -> i32 {
        self.to.saturating_sub(self.from)
    }
}

/// Why a range cannot be cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoPeriods {
    /// A period begins within an hour of UTC, by which scans are counted.
    WithinHour,
    /// The calendar ends before the range does.
    OutOfCalendar,
}

/// Cuts a range; the first and the last period are shorter where the range begins or ends within one.
///
/// # Errors
/// A period begins within an hour.
pub fn cut(range: Period, interval: Option<Interval>, zone: &TimeZone) -> Result<Vec<Period>, NoPeriods> {
    let Some(interval) = interval else { return Ok(vec![range]) };
    let (begin, end) = (at(range.from)?, at(range.to)?);
    let mut starts = Vec::new();
    match interval {
        Interval::Hour => {
            for hour in range.from..range.to {
                if zone.to_offset(at(hour)?).seconds() % 3_600 != 0 {
                    return Err(NoPeriods::WithinHour);
                }
                starts.push(hour);
            }
        }
        Interval::Day | Interval::Week | Interval::Month => {
            let mut date = first(begin.to_zoned_datetime(zone.clone()).date(), interval)?;
            loop {
                let start = beginning(date, zone)?;
                if start >= end {
                    break;
                }
                let start = start.as_millisecond();
                if start % HOUR_MS != 0 {
                    return Err(NoPeriods::WithinHour);
                }
                starts.push(super::roll_ups::hour(start).max(range.from));
                date = next(date, interval)?;
            }
        }
    }
    let ends = starts.iter().copied().skip(1).chain([range.to]);
    Ok(starts
        .iter()
        .copied()
        .zip(ends)
        .map(|(from, to)| Period { from, to })
        .filter(|one| one.hours() > 0)
        .collect())
}

fn at(hour: i32) -> Result<Timestamp, NoPeriods> {
    Timestamp::from_millisecond(i64::from(hour) * HOUR_MS).map_err(|_| NoPeriods::OutOfCalendar)
}

/// When a day begins: where midnight is left out, when the clock was put forward.
fn beginning(date: Date, zone: &TimeZone) -> Result<Timestamp, NoPeriods> {
    let zoned = date.to_zoned_datetime(zone.clone()).map_err(|_| NoPeriods::OutOfCalendar)?;
    Ok(zoned.timestamp())
}

/// The first day of the period that a day is in.
fn first(date: Date, interval: Interval) -> Result<Date, NoPeriods> {
    match interval {
        Interval::Hour | Interval::Day => Ok(date),
        Interval::Week => date
            .checked_sub(i64::from(date.weekday().to_monday_zero_offset()).days())
            .map_err(|_| NoPeriods::OutOfCalendar),
        Interval::Month => Ok(date.first_of_month()),
    }
}

/// The first day of the next period.
fn next(date: Date, interval: Interval) -> Result<Date, NoPeriods> {
    let span = match interval {
        Interval::Hour | Interval::Day => 1.day(),
        Interval::Week => 1.week(),
        Interval::Month => 1.month(),
    };
    date.checked_add(span).map_err(|_| NoPeriods::OutOfCalendar)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{super::moment::find_zone, *};

    /// The hour of a date-time.
    fn hour(text: &str) -> i32 {
        let at: Timestamp = text.parse().unwrap();
        super::super::roll_ups::hour(at.as_millisecond())
    }

    fn lengths(from: &str, to: &str, interval: Interval, zone: &str) -> Result<Vec<i32>, NoPeriods> {
        let range = Period { from: hour(from), to: hour(to) };
        let periods = cut(range, Some(interval), &find_zone(zone).unwrap())?;
        Ok(periods.into_iter().map(Period::hours).collect())
    }

    #[test]
    fn days_follow_daylight_saving() {
        for (from, to, interval, zone, expected, why) in [
            (
                "2026-03-28T00:00:00+01:00",
                "2026-03-31T00:00:00+02:00",
                Interval::Day,
                "Europe/Berlin",
                vec![24, 23, 24],
                "spring",
            ),
            (
                "2026-10-24T00:00:00+02:00",
                "2026-10-27T00:00:00+01:00",
                Interval::Day,
                "Europe/Berlin",
                vec![24, 25, 24],
                "autumn",
            ),
            (
                "2026-03-28T06:00:00+01:00",
                "2026-03-29T12:00:00+02:00",
                Interval::Day,
                "Europe/Berlin",
                vec![18, 11],
                "cut at both ends",
            ),
            (
                "2026-03-23T00:00:00+01:00",
                "2026-04-06T00:00:00+02:00",
                Interval::Week,
                "Europe/Berlin",
                vec![167, 168],
                "weeks from Monday",
            ),
            (
                "2026-10-01T00:00:00+02:00",
                "2026-12-01T00:00:00+01:00",
                Interval::Month,
                "Europe/Berlin",
                vec![745, 720],
                "months",
            ),
            (
                "2018-11-03T00:00:00-03:00",
                "2018-11-06T00:00:00-02:00",
                Interval::Day,
                "America/Sao_Paulo",
                vec![24, 23, 24],
                "no midnight",
            ),
            (
                "2026-10-25T00:00:00Z",
                "2026-10-25T03:00:00Z",
                Interval::Hour,
                "Europe/Berlin",
                vec![1, 1, 1],
                "an hour comes twice",
            ),
            ("2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z", Interval::Day, "UTC", vec![24], "UTC"),
        ] {
            assert_eq!(lengths(from, to, interval, zone), Ok(expected), "{why}");
        }
        for interval in Interval::ALL {
            let cut = lengths("2026-01-01T00:00:00Z", "2026-01-09T00:00:00Z", interval, "Asia/Kolkata");
            assert_eq!(cut, Err(NoPeriods::WithinHour), "{interval:?}");
        }
    }

    proptest! {
        #[test]
        fn periods_cover_the_range_without_a_gap(
            from in 300_000_i32..600_000, hours in 1_i32..20_000, interval in prop::sample::select(Interval::ALL.to_vec()),
            zone in prop::sample::select(vec!["UTC", "Europe/Berlin", "America/Sao_Paulo", "Africa/Cairo", "Pacific/Apia"]),
        ) {
            let range = Period { from, to: from + hours };
            let zone = find_zone(zone).unwrap();
            let periods = cut(range, Some(interval), &zone).unwrap();
            prop_assert_eq!(periods.first().unwrap().from, range.from);
            prop_assert_eq!(periods.last().unwrap().to, range.to);
            for pair in periods.windows(2) {
                prop_assert_eq!(pair[0].to, pair[1].from);
                // Each next one begins at midnight of the zone, or where there is none, at the first moment of the day.
                if interval != Interval::Hour {
                    let start = at(pair[1].from).unwrap().to_zoned_datetime(zone.clone());
                    prop_assert_eq!(start.start_of_day().unwrap().timestamp(), start.timestamp());
                }
            }
        }
    }
}
