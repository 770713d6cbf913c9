//! Cuts periods into whole days of UTC, of which there are rows, and the hours that are left at their borders.

use super::{periods::Period, roll_ups::DAY_HOURS};

/// Rows of a table that belong to a period: from one day or hour to another one, which is not among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The index of the period.
    pub period: i32,
    /// The first day or hour, counted from 1970.
    pub from: i32,
    /// The one behind the last.
    pub to: i32,
    /// 1 for what is added, -1 for what is taken away.
    pub sign: i32,
}

/// The rows that periods are added up from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parts {
    /// Days.
    pub days: Vec<Part>,
    /// Hours.
    pub hours: Vec<Part>,
}

impl Parts {
    /// The parts of periods: of each as few rows as possible.
    ///
    /// A day in Berlin begins one or two hours before a day of UTC. It is the day of UTC, and those hours, without the
    /// hours before its end: five rows at most, and not 24.
    #[must_use]
    pub fn of(periods: &[Period]) -> Self {
        let mut parts = Self::default();
        for (period, &Period { from, to }) in (0..).zip(periods) {
            let (first, last) = (nearest_day(from), nearest_day(to));
            let (begin, end) = (first.saturating_mul(DAY_HOURS), last.saturating_mul(DAY_HOURS));
            let apart = |one: i32, other: i32| one.saturating_sub(other).saturating_abs();
            let rows =
                last.saturating_sub(first).saturating_add(apart(begin, from)).saturating_add(apart(end, to));
            if first >= last || rows >= to.saturating_sub(from) {
                parts.hours.push(Part { period, from, to, sign: 1 });
                continue;
            }
            parts.days.push(Part { period, from: first, to: last, sign: 1 });
            let borders = [
                Part { period, from, to: begin, sign: 1 },
                Part { period, from: begin, to: from, sign: -1 },
                Part { period, from: end, to, sign: 1 },
                Part { period, from: to, to: end, sign: -1 },
            ];
            parts.hours.extend(borders.into_iter().filter(|border| border.from < border.to));
        }
        parts
    }

    /// Whether each period is one day or one hour.
    #[must_use]
    pub fn are_single(&self) -> bool {
        let mut periods: Vec<i32> = self.days.iter().chain(&self.hours).map(|part| part.period).collect();
        periods.sort_unstable();
        let are_apart = periods.windows(2).all(|pair| pair[0] != pair[1]);
        are_apart
            && self.days.iter().chain(&self.hours).all(|part| part.from + 1 == part.to && part.sign == 1)
    }

    /// The first hour of rows by the hour.
    #[must_use]
    pub fn first_hour(&self) -> Option<i32> {
        self.hours.iter().map(|part| part.from).min()
    }
}

/// Day and hour one by one.
pub fn each(parts: &[Part]) -> impl Iterator<Item = (i32, i32, i32)> {
    parts.iter().flat_map(|part| (part.from..part.to).map(|bucket| (part.period, bucket, part.sign)))
}

/// The day of UTC that begins nearest to an hour.
const fn nearest_day(hour: i32) -> i32 {
    hour.saturating_add(DAY_HOURS / 2).div_euclid(DAY_HOURS)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::domain::{
        moment::find_zone,
        periods::{Interval, cut},
    };

    /// How often each hour of each period is added.
    fn hours(parts: &Parts) -> BTreeMap<(i32, i32), i32> {
        let mut found: BTreeMap<(i32, i32), i32> = BTreeMap::new();
        for (period, day, sign) in each(&parts.days) {
            for hour in day * DAY_HOURS..(day + 1) * DAY_HOURS {
                *found.entry((period, hour)).or_default() += sign;
            }
        }
        for (period, hour, sign) in each(&parts.hours) {
            *found.entry((period, hour)).or_default() += sign;
        }
        found.retain(|_, times| *times != 0);
        found
    }

    #[test]
    fn days_are_read_where_they_are_fewer_rows() {
        let rows = |periods: &[(i32, i32)]| {
            let periods: Vec<Period> = periods.iter().map(|&(from, to)| Period { from, to }).collect();
            let parts = Parts::of(&periods);
            (each(&parts.days).count(), each(&parts.hours).count())
        };
        let are_single = |periods: &[(i32, i32)]| {
            let periods: Vec<Period> = periods.iter().map(|&(from, to)| Period { from, to }).collect();
            Parts::of(&periods).are_single()
        };
        assert!(are_single(&[(240, 264), (264, 288)]) && are_single(&[(240, 241), (241, 242)]));
        assert!(!are_single(&[(239, 263)]) && !are_single(&[(240, 288)]) && !are_single(&[(240, 242)]));
        for (periods, expected, why) in [
            (vec![(240, 264)], (1, 0), "a day of UTC"),
            (vec![(239, 263)], (1, 2), "a day of an hour before"),
            (vec![(252, 276)], (0, 24), "a day of New Zealand"),
            (vec![(240, 241), (241, 242)], (0, 2), "hours"),
            (vec![(245, 245 + 8_760)], (365, 10), "a year that begins within a day"),
            (vec![(250, 250)], (0, 0), "nothing"),
        ] {
            assert_eq!(rows(&periods), expected, "{why}");
        }
    }

    proptest! {
        #[test]
        fn each_hour_of_a_period_counts_once_and_no_other_does(
            from in -5_000_i32..600_000, hours_long in 1_i32..9_000, interval in prop::sample::select(Interval::ALL.to_vec()),
            zone in prop::sample::select(vec!["UTC", "Europe/Berlin", "America/New_York", "Africa/Cairo", "Pacific/Auckland", "Pacific/Apia", "Australia/Lord_Howe"]),
        ) {
            let range = Period { from, to: from + hours_long };
            let Ok(periods) = cut(range, Some(interval), &find_zone(zone).unwrap()) else { return Ok(()) };
            let parts = Parts::of(&periods);
            let expected: BTreeMap<(i32, i32), i32> = (0..)
                .zip(&periods)
                .flat_map(|(period, one)| (one.from..one.to).map(move |hour| ((period, hour), 1)))
                .collect();
            prop_assert_eq!(hours(&parts), expected);
            prop_assert!(each(&parts.days).count() + each(&parts.hours).count() <= hours_long as usize);
        }
    }
}
