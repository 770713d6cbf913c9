//! Adds scans up into rows: for each hour and for each day of UTC how many there were, by each set of dimensions.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use shared::id::AccountId;

use super::{
    counted_scan::{CountedScan, Device},
    dimension::{Dimension, SERIES, Series},
    labels,
    retention::Kept,
};

/// Milliseconds of an hour, which roll-ups are kept by.
pub const HOUR_MS: i64 = 60 * 60 * 1_000;

/// The hour of a time, counted from 1970.
#[must_use]
pub fn hour(at_ms: i64) -> i32 {
    let hour = at_ms.div_euclid(HOUR_MS);
    i32::try_from(hour).unwrap_or(if hour < 0 { i32::MIN } else { i32::MAX })
}

/// Hours in a day of UTC.
pub const DAY_HOURS: i32 = 24;

/// What a row is about. Rows are written in this order.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key<'a> {
    /// The account.
    pub account: AccountId,
    /// The project; empty for the account as a whole.
    pub project: &'a str,
    /// The number of the set of dimensions.
    pub series: i16,
    /// The hour or the day, counted from 1970.
    pub bucket: i32,
    /// The value of the first dimension; empty where it is unknown or there is none.
    pub value: &'a str,
    /// The value of the second dimension, in the same way.
    pub second: &'a str,
}

/// How many scans there were.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Scans of people.
    pub scans: i64,
    /// Those of them by a device that was new on its day.
    pub new_devices: i64,
    /// Scans of robots.
    pub robots: i64,
}

impl Counts {
    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self {
            scans: self.scans.saturating_add(other.scans),
            new_devices: self.new_devices.saturating_add(other.new_devices),
            robots: self.robots.saturating_add(other.robots),
        }
    }
}

/// Counts by the keys of their rows.
#[derive(Debug, Default)]
pub struct Totals<'a> {
    places: BTreeMap<Key<'a>, usize>,
    counts: Vec<Counts>,
}

impl<'a> Totals<'a> {
    /// The rows, in the order of their keys.
    pub fn rows(&self) -> impl Iterator<Item = (&Key<'a>, &Counts)> {
        self.places.iter().filter_map(|(key, place)| Some((key, self.counts.get(*place)?)))
    }

    /// Adds to a row; gives its place.
    fn add(&mut self, key: Key<'a>, counts: Counts) -> usize {
        let place = *self.places.entry(key).or_insert(self.counts.len());
        match self.counts.get_mut(place) {
            Some(row) => *row = row.plus(counts),
            None => self.counts.push(counts),
        }
        place
    }
}

/// The rows that scans add to.
#[derive(Debug, Default)]
pub struct Rows<'a> {
    /// By the hour.
    pub hours: Totals<'a>,
    /// By the day of UTC: the same counts, and those that are kept by the day only.
    pub days: Totals<'a>,
    /// Devices that were taken for new ones, and which of `places` are of the scan.
    new: Vec<(Device, Range<usize>)>,
    places: Vec<Place>,
}

/// A row that a scan was added to.
#[derive(Debug, Clone, Copy)]
enum Place {
    Hour(usize),
    Day(usize),
}

impl<'a> Rows<'a> {
    /// Says which devices are new. All that may be were taken for it, because most devices scan once a day; the others are
    /// taken out again.
    pub fn set_new_devices(&mut self, new: &BTreeSet<Device>) {
        let known = std::mem::take(&mut self.new).into_iter().filter(|(device, _)| !new.contains(device));
        for (_, places) in known {
            for place in self.places.get(places).unwrap_or_default() {
                let row = match *place {
                    Place::Hour(place) => self.hours.counts.get_mut(place),
                    Place::Day(place) => self.days.counts.get_mut(place),
                };
                if let Some(row) = row {
                    row.new_devices -= 1;
                }
            }
        }
    }

    fn add_scan(&mut self, scan: &'a CountedScan, kept: Kept, counts: Counts) {
        let views = std::iter::once("").chain(scan.projects.iter().map(|id| id.as_str()));
        for project in views {
            for series in SERIES {
                let key = |value, second| Key {
                    account: scan.account,
                    project,
                    series: series.number,
                    bucket: hour(scan.at.0),
                    value,
                    second,
                };
                match series.first {
                    // A scan may be of several projects; a project sees none but itself.
                    Some(Dimension::Project) if project.is_empty() => {
                        for own in &scan.projects {
                            self.add(series, kept, key(own.as_str(), ""), counts);
                        }
                    }
                    Some(Dimension::Project) => {}
                    Some(Dimension::Gtin) if scan.gtin.is_empty() => {}
                    first => {
                        let value = |of: Option<Dimension>| of.map_or("", |dimension| value(scan, dimension));
                        self.add(series, kept, key(value(first), value(series.second)), counts);
                    }
                }
            }
        }
    }

    fn add(&mut self, series: &Series, kept: Kept, key: Key<'a>, counts: Counts) {
        let day = key.bucket.div_euclid(DAY_HOURS);
        if !series.is_daily() && key.bucket >= kept.from_hour {
            self.places.push(Place::Hour(self.hours.add(key.clone(), counts)));
        }
        if !series.is_daily() || day >= kept.links_from_day {
            self.places.push(Place::Day(self.days.add(Key { bucket: day, ..key }, counts)));
        }
    }
}

/// The rows that scans add to; with each scan, whether its device is new. Rows that would be removed at once are left out.
#[must_use]
pub fn add_up<'a>(scans: &[(&'a CountedScan, bool)], kept: Kept) -> Rows<'a> {
    let mut rows = Rows::default();
    for &(scan, is_new) in scans {
        let count = i64::from(scan.count);
        let counts = if scan.is_robot {
            Counts { robots: count, ..Counts::default() }
        } else {
            Counts { scans: count, new_devices: i64::from(is_new), robots: 0 }
        };
        let begin = rows.places.len();
        rows.add_scan(scan, kept, counts);
        match scan.device.filter(|_| counts.new_devices > 0) {
            Some(device) => rows.new.push((device, begin..rows.places.len())),
            None => rows.places.truncate(begin),
        }
    }
    rows
}

fn value(scan: &CountedScan, dimension: Dimension) -> &str {
    match dimension {
        Dimension::Country => &scan.country,
        Dimension::Region => &scan.region,
        Dimension::City => &scan.city,
        Dimension::System => &scan.system,
        Dimension::Device => labels::device(&scan.system),
        Dimension::Language => &scan.language,
        Dimension::Verdict => scan.verdict,
        Dimension::Product => scan.product.as_ref().map_or("", |id| id.as_str()),
        Dimension::Link => &scan.link,
        Dimension::Gtin => &scan.gtin,
        Dimension::Lot => &scan.lot,
        // It has several values: see above.
        Dimension::Project => "",
    }
}

#[cfg(test)]
mod tests {
    use shared::{id::ProjectId, time::UnixMillis};

    use super::*;

    const ALL: Kept = Kept { from_hour: i32::MIN, links_from_day: i32::MIN };

    fn scan() -> CountedScan {
        CountedScan {
            account: AccountId::new(1, [1; 16]),
            at: UnixMillis(27 * HOUR_MS + 1),
            projects: Vec::new(),
            product: None,
            link: "tn.gg/A".to_owned(),
            gtin: "09521234543213".to_owned(),
            lot: String::new(),
            country: "DE".to_owned(),
            region: "Berlin".to_owned(),
            city: String::new(),
            system: "iPad".to_owned(),
            language: "de".to_owned(),
            verdict: "",
            is_robot: false,
            count: 1,
            device: None,
        }
    }

    #[test]
    fn each_set_of_dimensions_adds_up_to_all_scans() {
        let project: ProjectId = "UKXAGyEf8SQ5eTDmVgGpHqAa".parse().unwrap();
        let scoped = CountedScan { projects: vec![project], ..scan() };
        let robot = CountedScan { is_robot: true, country: "FR".to_owned(), ..scan() };
        let sum = CountedScan { count: 7, ..scan() };
        let rows = add_up(&[(&scoped, true), (&robot, false), (&sum, false)], ALL);
        for series in SERIES.iter().filter(|series| series.first != Some(Dimension::Project)) {
            for (rows, is_kept) in [(&rows.hours, !series.is_daily()), (&rows.days, true)] {
                let of = |project: &str| {
                    let own =
                        rows.rows().filter(|(key, _)| key.series == series.number && key.project == project);
                    own.fold(Counts::default(), |all, (_, counts)| all.plus(*counts))
                };
                let expected = |counts| if is_kept { counts } else { Counts::default() };
                let (all, one) = (
                    Counts { scans: 8, new_devices: 1, robots: 1 },
                    Counts { scans: 1, new_devices: 1, robots: 0 },
                );
                assert_eq!(of(""), expected(all), "{series:?}");
                assert_eq!(of(project.as_str()), expected(one), "{series:?}");
            }
        }
        for (rows, bucket) in [(&rows.hours, 27), (&rows.days, 1)] {
            let by_project: Vec<_> = rows.rows().filter(|(key, _)| key.series == 9).collect();
            assert_eq!(by_project.len(), 1, "the project sees no projects: {by_project:?}");
            assert!(rows.rows().all(|(key, _)| key.bucket == bucket));
            let (device, _) = rows.rows().find(|(key, _)| key.series == 6).unwrap();
            assert_eq!(device.value, "tablet");
        }
    }

    #[test]
    fn rows_that_would_be_removed_are_not_written() {
        let scan = scan();
        let rows = |from_hour, links_from_day| add_up(&[(&scan, true)], Kept { from_hour, links_from_day });
        let all = rows(27, 1);
        let counts = (all.hours.rows().count(), all.days.rows().count());
        assert_eq!(counts, (SERIES.len() - 2, SERIES.len() - 1));
        assert_eq!(rows(28, 1).hours.rows().count(), 0);
        assert_eq!(rows(28, 2).days.rows().count(), SERIES.len() - 2, "days of anything but links stay");
    }

    #[test]
    fn only_devices_that_turn_out_to_be_new_are_counted() {
        let list = |rows: &Rows<'_>| {
            let rows = rows.hours.rows().chain(rows.days.rows());
            rows.map(|(key, counts)| (format!("{key:?}"), *counts)).collect::<Vec<_>>()
        };
        let device = |hash| Device { day: 1, hash };
        let by = |hash, is_robot| CountedScan { device: Some(device(hash)), is_robot, ..scan() };
        let (one, other, robot) = (by(1, false), by(2, false), by(3, true));
        let flagged = |is_one_new, are_others_new| {
            let scans =
                [(&one, is_one_new), (&other, are_others_new), (&robot, are_others_new), (&one, false)];
            add_up(&scans, ALL)
        };
        for (new, is_one_new, are_others_new) in
            [(vec![], false, false), (vec![device(1)], true, false), (vec![device(1), device(2)], true, true)]
        {
            let mut rows = flagged(true, true);
            rows.set_new_devices(&new.into_iter().collect());
            assert_eq!(list(&rows), list(&flagged(is_one_new, are_others_new)));
        }
    }

    #[test]
    fn scans_of_no_gtin_are_in_no_count_of_gtins() {
        let (one, other) = (scan(), CountedScan { gtin: String::new(), ..scan() });
        let rows = add_up(&[(&one, false), (&other, false)], ALL);
        let of_gtins: Vec<_> = rows.days.rows().filter(|(key, _)| key.series == 25).collect();
        assert_eq!(of_gtins.len(), 1);
        assert_eq!((of_gtins[0].0.value, of_gtins[0].1.scans), ("09521234543213", 1));
    }

    #[test]
    fn hours_are_rounded_down_and_bounded() {
        for (at, expected) in
            [(0, 0), (-1, -1), (HOUR_MS, 1), (HOUR_MS - 1, 0), (i64::MAX, i32::MAX), (i64::MIN, i32::MIN)]
        {
            assert_eq!(hour(at), expected, "{at}");
        }
    }
}
