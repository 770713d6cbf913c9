//! A question to the statistics: range, periods, grouping and filter.

use jiff::{Timestamp, tz::TimeZone};
use shared::{
    filter::{Expr, Operator, Term},
    id::{ProductId, ProjectId},
    time::UnixMillis,
};

use super::{
    dimension::{Dimension, Series},
    limits::shorten,
    moment,
    parts::Parts,
    periods::{self, Interval, NoPeriods, Period},
    retention::{KEPT_DAYS, oldest_hour},
    roll_ups::{DAY_HOURS, HOUR_MS, hour},
};

/// Groups of an answer without `top`, and at most.
pub const TOP: (u32, u32) = (20, 1_000);

/// Most rows of an answer: periods times groups. At some 120 bytes a row the answer has 2.4 MB.
pub const MAX_ROWS: usize = 20_000;

/// Most values of a filter on one dimension.
const MAX_VALUES: usize = 50;

/// Longest value of a filter, in bytes: a short domain and a short id are shorter.
const MAX_VALUE: usize = 320;

/// The range without `from`: a week.
const DEFAULT_HOURS: i32 = 7 * 24;

/// Longest range by the hour, and by link, of which there are as many as items.
const MAX_HOURS: i32 = 31 * 24 + 1;

/// Longest range by the day.
const MAX_DAYS_HOURS: i32 = 400 * 24;

/// Longest range: five years.
const MAX_RANGE_HOURS: i32 = 5 * 366 * 24;

/// The parameters of a question as they were sent.
#[derive(Debug, Clone, Copy, Default)]
pub struct Asked<'a> {
    /// `from`.
    pub from: Option<&'a str>,
    /// `to`.
    pub to: Option<&'a str>,
    /// `interval`.
    pub interval: Option<&'a str>,
    /// `timeZone`.
    pub time_zone: Option<&'a str>,
    /// `groupBy`.
    pub group_by: Option<&'a str>,
    /// `filter`.
    pub filter: Option<&'a str>,
    /// `top`.
    pub top: u32,
}

/// A question that can be answered.
#[derive(Debug, Clone)]
pub struct StatsQuery {
    /// The range in whole hours.
    pub range: Period,
    /// The periods of the answer; one without an interval.
    pub periods: Vec<Period>,
    /// The rows that the periods are added up from.
    pub parts: Parts,
    /// How long the periods are.
    pub interval: Option<Interval>,
    /// The time zone of days, weeks and months.
    pub zone: TimeZone,
    /// What is grouped by, in the order of the answer.
    pub group_by: Vec<Dimension>,
    /// The roll-ups that answer it.
    pub series: &'static Series,
    /// Values of the first dimension of the series; `None` for all.
    pub first: Option<Vec<String>>,
    /// Values of the second one, in the same way.
    pub second: Option<Vec<String>>,
    /// The project whose scans are counted; `None` for all of the account.
    pub project: Option<ProjectId>,
    /// Most groups.
    pub top: u32,
}

impl StatsQuery {
    /// Reads a question.
    ///
    /// # Errors
    /// Every fault found, each naming its parameter.
    pub fn parse(asked: &Asked<'_>, now: UnixMillis) -> Result<Self, Vec<String>> {
        let mut faults = Vec::new();
        let zone = zone(asked.time_zone, &mut faults);
        let range = range(asked.from, asked.to, &zone, now, &mut faults);
        let interval = asked.interval.and_then(|text| {
            let fault = |()| faults.push("interval must be hour, day, week or month.".to_owned());
            text.parse().map_err(fault).ok()
        });
        let group_by = group_by(asked.group_by, &mut faults);
        let mut filters = filters(asked.filter, &mut faults);
        let project = take_project(&mut filters, &mut faults);
        if project.is_some() && group_by.contains(&Dimension::Project) {
            faults.push(
                "groupBy: the filter names one project already; leave project out of groupBy.".to_owned(),
            );
        }
        let wanted =
            group_by.iter().copied().chain(filters.iter().map(|(dimension, _)| *dimension)).collect();
        let series = Series::find(wanted);
        if series.is_none() {
            faults.push(format!(
                "groupBy and filter: scans are not counted by these together; they are by: {}; and within one project.",
                Series::list()
            ));
        }
        let Some((range, series)) = range.zip(series).filter(|_| faults.is_empty()) else {
            return Err(faults);
        };
        check_length(range, interval, series, &filters, &mut faults);
        let range = if series.is_daily() { whole_days(range) } else { range };
        let top = if group_by.is_empty() { 1 } else { asked.top };
        let periods = if faults.is_empty() {
            periods::cut(range, interval, &zone).unwrap_or_else(|fault| {
                faults.push(match fault {
                    NoPeriods::WithinHour => {
                        "timeZone: scans are counted by the hour of UTC, and the periods of this \
                        zone begin within one; take a zone that is whole hours from UTC."
                            .to_owned()
                    }
                    NoPeriods::OutOfCalendar => "from and to must be within the calendar.".to_owned(),
                });
                Vec::new()
            })
        } else {
            Vec::new()
        };
        if periods.len().saturating_mul(top as usize) > MAX_ROWS {
            faults.push(format!(
                "top: {} periods of {top} groups are more than {MAX_ROWS} rows; ask for fewer groups, longer periods or \
                 a shorter range.",
                periods.len()
            ));
        }
        let parts = Parts::of(&periods);
        check_age(range, &parts, interval, series, oldest_hour(now), &mut faults);
        if !faults.is_empty() {
            return Err(faults);
        }
        let mut values = |dimension: Option<Dimension>| {
            let at = filters.iter().position(|(own, _)| Some(*own) == dimension)?;
            Some(filters.swap_remove(at).1)
        };
        let (first, second) = (values(series.first), values(series.second));
        Ok(Self {
            range,
            periods,
            parts,
            interval,
            zone,
            group_by: complete(group_by),
            series,
            first,
            second,
            project,
            top,
        })
    }

    /// Whether the question is about something that names a person's place.
    #[must_use]
    pub fn is_personal(&self) -> bool {
        self.series.second == Some(Dimension::City)
    }
}

fn zone(name: Option<&str>, faults: &mut Vec<String>) -> TimeZone {
    let Some(name) = name else { return TimeZone::UTC };
    moment::find_zone(name).unwrap_or_else(|| {
        faults.push(format!(
            "timeZone: {:?} is no time zone of the IANA, such as Europe/Berlin.",
            shorten(name)
        ));
        TimeZone::UTC
    })
}

/// The range: hours that begin before `from` or end behind `to` are whole in it.
pub(super) fn range(
    from: Option<&str>,
    to: Option<&str>,
    zone: &TimeZone,
    now: UnixMillis,
    faults: &mut Vec<String>,
) -> Option<Period> {
    let mut read = |name: &str, text: Option<&str>| -> Result<Option<i64>, ()> {
        let Some(text) = text else { return Ok(None) };
        match moment::read(text, zone).map(Timestamp::as_millisecond) {
            Some(at) => Ok(Some(at)),
            None => {
                faults.push(format!(
                    "{name} must be milliseconds since 1970, a date such as 2026-11-01, or a date and time with an offset."
                ));
                Err(())
            }
        }
    };
    let (from, to) = (read("from", from), read("to", to));
    let (from, to) = (from.ok()?, to.ok()?);
    let to = hour(to.unwrap_or(now.0).saturating_add(HOUR_MS - 1));
    let from = from.map_or(to.saturating_sub(DEFAULT_HOURS), hour);
    if from >= to {
        faults.push("from must be before to.".to_owned());
        return None;
    }
    Some(Period { from, to })
}

fn group_by(text: Option<&str>, faults: &mut Vec<String>) -> Vec<Dimension> {
    let mut found: Vec<Dimension> = Vec::new();
    for name in
        text.filter(|text| !text.is_empty()).into_iter().flat_map(|text| text.split(',')).map(str::trim)
    {
        match name.parse() {
            Ok(dimension) if found.contains(&dimension) => {
                faults.push(format!("groupBy names {name} twice."));
                break;
            }
            Ok(dimension) => found.push(dimension),
            Err(()) => {
                let names: Vec<&str> = Dimension::ALL.iter().map(|dimension| dimension.as_str()).collect();
                faults.push(format!("groupBy: {:?} is none of {}.", shorten(name), names.join(", ")));
                break;
            }
        }
    }
    found
}

/// Groups by region or city are within their country, which is shown.
fn complete(mut group_by: Vec<Dimension>) -> Vec<Dimension> {
    let is_inner = |dimension: &Dimension| matches!(dimension, Dimension::Region | Dimension::City);
    if let Some(at) = group_by.iter().position(is_inner)
        && !group_by.contains(&Dimension::Country)
    {
        group_by.insert(at, Dimension::Country);
    }
    group_by
}

/// The values that each dimension must have.
fn filters(text: Option<&str>, faults: &mut Vec<String>) -> Vec<(Dimension, Vec<String>)> {
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Vec::new() };
    let read = || -> Result<Vec<(Dimension, Vec<String>)>, String> {
        let expr: Expr = text.parse().map_err(|fault| format!("{fault}"))?;
        let factors = match expr {
            Expr::And(all) => all,
            one => vec![one],
        };
        let mut found: Vec<(Dimension, Vec<String>)> = Vec::new();
        for factor in factors {
            let (dimension, values) = values_of(&factor)?;
            if found.iter().any(|(known, _)| *known == dimension) {
                return Err(format!("{} is named twice", dimension.as_str()));
            }
            found.push((dimension, values));
        }
        Ok(found)
    };
    read().unwrap_or_else(|fault| {
        faults.push(format!("filter: {fault}."));
        Vec::new()
    })
}

/// The dimension and the values of `country=DE|AT`.
fn values_of(factor: &Expr) -> Result<(Dimension, Vec<String>), String> {
    let alternatives = match factor {
        Expr::Or(any) => any.iter().collect(),
        one => vec![one],
    };
    let mut found: Option<(Dimension, Vec<String>)> = None;
    for one in alternatives {
        let Expr::Term(Term { field, operator: Operator::Equal, value }) = one else {
            return Err("only conditions such as country=DE|AT, joined by &, can be answered".to_owned());
        };
        let name = shorten(field);
        let dimension: Dimension = field.parse().map_err(|()| format!("{name:?} cannot be filtered by"))?;
        let value = value.as_str();
        if !is_value(dimension, value) {
            return Err(format!("{:?} is no {name}", shorten(value)));
        }
        let (own, values) = found.get_or_insert_with(|| (dimension, Vec::new()));
        if *own != dimension {
            return Err("different dimensions can only be joined by &".to_owned());
        }
        if values.len() >= MAX_VALUES {
            return Err(format!("{name} has more than {MAX_VALUES} values"));
        }
        // Named twice it counts once.
        if !values.iter().any(|known| known == value) {
            values.push(value.to_owned());
        }
    }
    found.ok_or_else(|| "there is no condition".to_owned())
}

/// Whether a dimension can have a value.
fn is_value(dimension: Dimension, value: &str) -> bool {
    match dimension {
        Dimension::Product => value.parse::<ProductId>().is_ok(),
        Dimension::Project => value.parse::<ProjectId>().is_ok(),
        Dimension::Link => {
            value.len() <= MAX_VALUE
                && value.split_once('/').is_some_and(|(host, id)| !host.is_empty() && !id.is_empty())
        }
        Dimension::Gtin => value.len() == 14 && value.bytes().all(|byte| byte.is_ascii_digit()),
        Dimension::Lot
        | Dimension::Country
        | Dimension::Region
        | Dimension::City
        | Dimension::System
        | Dimension::Device
        | Dimension::Language
        | Dimension::Verdict => !value.is_empty() && value.len() <= MAX_VALUE,
    }
}

fn take_project(filters: &mut Vec<(Dimension, Vec<String>)>, faults: &mut Vec<String>) -> Option<ProjectId> {
    let at = filters.iter().position(|(dimension, _)| *dimension == Dimension::Project)?;
    let (_, values) = filters.swap_remove(at);
    if values.len() > 1 {
        faults.push("filter: only one project can be named, because a scan may be of several.".to_owned());
    }
    values.first().and_then(|id| id.parse().ok())
}

fn check_length(
    range: Period,
    interval: Option<Interval>,
    series: &Series,
    filters: &[(Dimension, Vec<String>)],
    faults: &mut Vec<String>,
) {
    let (most, of) = match interval {
        Some(Interval::Hour) => (MAX_HOURS, "by the hour"),
        _ if series.first == Some(Dimension::Link) && filters.is_empty() => (MAX_HOURS, "by link"),
        Some(Interval::Day) => (MAX_DAYS_HOURS, "by the day"),
        Some(Interval::Week | Interval::Month) | None => (MAX_RANGE_HOURS, "at all"),
    };
    if range.hours() > most {
        faults.push(format!("from and to: the range may have at most {} days {of}.", most / 24));
    }
}

/// Days of UTC that a range is in.
fn whole_days(range: Period) -> Period {
    let start = |hour: i32| hour.div_euclid(DAY_HOURS).saturating_mul(DAY_HOURS);
    Period { from: start(range.from), to: start(range.to.saturating_add(DAY_HOURS - 1)) }
}

/// Whether the rows that a question needs are kept.
fn check_age(
    range: Period,
    parts: &Parts,
    interval: Option<Interval>,
    series: &Series,
    oldest: i32,
    faults: &mut Vec<String>,
) {
    let first = parts.first_hour();
    if series.is_daily() {
        if first.is_some() {
            faults.push(
                if interval == Some(Interval::Hour) {
                    "interval: links are counted by the day; take day, week or month."
                } else {
                    "timeZone: links are counted by the day of UTC; leave timeZone out."
                }
                .to_owned(),
            );
        }
        if range.from < oldest.saturating_sub(DAY_HOURS) {
            faults.push(format!("from: counts of links are kept for {KEPT_DAYS} days."));
        }
    } else if first.is_some_and(|first| first < oldest) {
        faults.push(format!(
            "from: counts by the hour are kept for {KEPT_DAYS} days, and by the day of UTC for longer; for a range that \
             begins before, take dates, an interval of day, week or month, and leave timeZone out."
        ));
    }
}

#[cfg(test)]
mod tests;
