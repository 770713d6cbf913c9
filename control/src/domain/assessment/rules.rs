//! The seven rules: plain functions from what is known to what is found, each with its reasons.

use std::collections::BTreeSet;

use shared::{commission::CommissionState, standing::Risk, time::UnixMillis};

use super::{
    peak::{ByScan, Level, Peak},
    settings::{DiversionMode, Settings},
    spot::{CountryCode, Precision},
    spread::{Home, PHONES_OF_ONE, Spread},
};
use crate::domain::commissioning::Commission;

/// What a rule found; `match` in a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Match {
    /// What the rule looks for is so.
    True,
    /// It is not so.
    False,
    /// It cannot be said.
    Unknown,
}

impl Match {
    /// As it stands in a result.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "true",
            Self::False => "false",
            Self::Unknown => "unknown",
        }
    }
}

/// What a rule found, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What was found.
    pub matched: Match,
    /// Why: a word, and figures for people.
    pub reason: String,
}

impl Finding {
    fn new(matched: Match, reason: impl Into<String>) -> Self {
        Self { matched, reason: reason.into() }
    }
}

/// The item that a trigger is about.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// Neither a Thng nor what was scanned is given.
    NotGiven,
    /// The text cannot name an item.
    Malformed(String),
    /// There is no such item for the caller.
    Absent(String),
    /// The item.
    Found(Box<Known>),
}

/// What is known of an item.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Known {
    /// Its tags.
    pub tags: Vec<String>,
    /// `customFields.factory`.
    pub factory: Option<String>,
    /// What the factory declared.
    pub commission: Option<Commission>,
    /// Where it may be sold; empty when nothing says so.
    pub markets: Vec<CountryCode>,
    /// The watermark that it must have.
    pub watermark: Option<String>,
    /// The markings that it must have.
    pub markings: Vec<String>,
}

impl Known {
    /// Whether it hangs in a shop window: its scans say nothing.
    #[must_use]
    pub fn is_display(&self) -> bool {
        self.tags.iter().any(|tag| ["demo", "display"].contains(&tag.as_str()))
    }
}

/// Invalid: the item does not exist.
#[must_use]
pub fn invalid(item: &Item) -> Finding {
    match item {
        Item::NotGiven => Finding::new(Match::Unknown, "Neither thng nor customFields.scanValue is given."),
        Item::Malformed(text) => Finding::new(
            Match::True,
            format!("MALFORMED_ID: {text:?} is no id, and its check digit or form is wrong."),
        ),
        Item::Absent(text) => {
            Finding::new(Match::True, format!("UNKNOWN_ITEM: no item is known as {text:?}."))
        }
        Item::Found(_) => Finding::new(Match::False, "The item is known."),
    }
}

/// Tags of items that must not be about.
const WITHDRAWN: [&str; 3] = ["recalled", "stolen", "destroyed"];

/// Unauthorised: the factory did not declare the item, or it was withdrawn.
#[must_use]
pub fn unauthorized(known: &Known, at: UnixMillis, settings: &Settings) -> Finding {
    if let Some(tag) = known.tags.iter().find(|tag| WITHDRAWN.contains(&tag.as_str())) {
        return Finding::new(Match::True, format!("WITHDRAWN: the item is tagged {tag}."));
    }
    let Some(commission) = &known.commission else {
        return if settings.require_commissioning {
            Finding::new(Match::True, "NOT_ACTIVATED: the item was never commissioned.")
        } else {
            Finding::new(Match::Unknown, "The item was never commissioned, and need not be.")
        };
    };
    match commission.state_at(at) {
        CommissionState::NotCommissioned => Finding::new(
            Match::True,
            "SCANNED_BEFORE_ACTIVATION: the item was commissioned only after this scan.",
        ),
        CommissionState::Decommissioned => {
            Finding::new(Match::True, "DECOMMISSIONED: the item was withdrawn before this scan.")
        }
        CommissionState::Commissioned if known.factory != commission.factory => {
            let name = |factory: &Option<String>| factory.clone().unwrap_or_else(|| "none".to_owned());
            Finding::new(
                Match::True,
                format!(
                    "FACTORY_MISMATCH: the item names the factory {}, its commission {}.",
                    name(&known.factory),
                    name(&commission.factory)
                ),
            )
        }
        CommissionState::Commissioned => Finding::new(Match::False, "The item is commissioned."),
    }
}

/// What is asked of the rule of diversion.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// Countries that the trigger may be in.
    pub countries: &'a [CountryCode],
    /// How well its place is known.
    pub precision: Precision,
    /// Whether an inspector or the supply chain scanned.
    pub is_professional: bool,
}

/// An item is at home in its market if the sessions inside, so many times, are no fewer than those outside.
const HOME_SHARE: usize = 4;

/// Diversion: the item is outside of its markets; and how sure that is, as `grayMarketStatus`.
#[must_use]
pub fn diversion(known: &Known, place: Place<'_>, spread: &Spread, mode: DiversionMode) -> (Finding, Risk) {
    let markets = &known.markets;
    if markets.is_empty() {
        return (Finding::new(Match::Unknown, "NO_MARKETS: no permitted countries are set."), Risk::Unknown);
    }
    let is_in = |country: &CountryCode| markets.contains(country);
    let (inside, outside): (Vec<CountryCode>, Vec<CountryCode>) =
        place.countries.iter().copied().partition(is_in);
    if place.countries.is_empty() {
        return (Finding::new(Match::Unknown, "NO_COUNTRY: the country is not known."), Risk::Unknown);
    }
    // A country that is not decided counts as none, whichever of them are permitted.
    if place.countries.len() > 1 {
        let text = format!("NO_COUNTRY: near the border of {}.", list(place.countries));
        return (Finding::new(Match::Unknown, text), Risk::Unknown);
    }
    if outside.is_empty() {
        return (
            Finding::new(Match::False, format!("Seen in {}, which is permitted.", list(&inside))),
            Risk::None,
        );
    }
    let before = || spread.previous_countries.iter().flatten();
    let (home, away) = (before().filter(|c| is_in(c)).count(), before().filter(|c| !is_in(c)).count());
    let travels = travels_with_its_owner(spread, &is_in);
    // Goods that come back after they were sold outside are not at home by one scan.
    let was_first_inside = before().next().is_some_and(is_in);
    let has_home = (was_first_inside || travels) && home * HOME_SHARE >= away;
    let is_backed = place.precision == Precision::Sensor || place.is_professional || away > 0;
    let risk = match mode {
        DiversionMode::Trigger => Risk::Confirmed,
        DiversionMode::Profile if !has_home && is_backed => Risk::Confirmed,
        DiversionMode::Profile => Risk::Suspected,
    };
    let mut reason = format!(
        "OUTSIDE_MARKET: seen in {}, permitted are {}; {home} sessions inside before, {away} outside.",
        list(&outside),
        list(markets)
    );
    if mode == DiversionMode::Profile && has_home {
        let why =
            if travels { "a device outside saw it inside, too" } else { "it was at home in its market" };
        reason.push_str(&format!(" HOME_IN_MARKET: {why}."));
    } else if away == 0 {
        reason.push_str(" FIRST_OUTSIDE_SCAN.");
    }
    (Finding::new(Match::True, reason), risk)
}

/// Whether one device saw the item inside of the markets and outside: who bought it there took it along. Goods that
/// are diverted change hands before they are seen again.
fn travels_with_its_owner(spread: &Spread, is_in: &dyn Fn(&CountryCode) -> bool) -> bool {
    let seen = || spread.previous_countries.iter().zip(&spread.previous_agents);
    let of = |inside: bool| {
        let there = seen().filter(move |(country, _)| country.is_some_and(|one| is_in(&one) == inside));
        there.filter_map(|(_, agent)| *agent).collect::<BTreeSet<_>>()
    };
    let (inside, mut outside) = (of(true), of(false));
    outside.extend(spread.agent);
    !inside.is_disjoint(&outside)
}

fn list(countries: &[CountryCode]) -> String {
    let names: Vec<String> = countries.iter().take(20).map(ToString::to_string).collect();
    let more = if countries.len() > names.len() { " and more" } else { "" };
    format!("{}{more}", names.join(", "))
}

/// Fewest previous sessions for the points of many far devices.
const MANY_SESSIONS: usize = 10;

/// Previous sessions for a point each, where several devices had them.
const BUSY: [usize; 3] = [5, 10, 20];

/// An owner has one device, with his household two: these are several.
const SEVERAL_DEVICES: usize = 3;

/// What speaks for a duplicate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sign {
    /// Which one it is.
    pub name: &'static str,
    /// How much it counts.
    pub points: u32,
    /// What was seen.
    pub seen: String,
}

/// The signs of a duplicate that were seen.
#[must_use]
pub fn signs(spread: &Spread, settings: &Settings) -> Vec<Sign> {
    let over_one = |count: usize| count.clamp(1, 4) as u32 - 1;
    let (countries, places, agents) =
        (spread.countries.len(), spread.independent_places, spread.agents.len());
    let many_agents = agents > settings.user_agents_threshold as usize;
    let previous = spread.previous();
    // What many devices scan many times is on many items, wherever these are: owners come back with their own device.
    let busy =
        if agents >= SEVERAL_DEVICES { BUSY.iter().filter(|least| previous >= **least).count() } else { 0 };
    let is_far = spread.geo_ip_spread_km > settings.geo_ip_spread_threshold_km;
    let halves = 2 * countries - spread.country_halves.min(2 * countries);
    let countries_seen = match halves {
        0 => format!("{countries} countries"),
        _ => format!(
            "{countries} countries, {halves} of them by devices that were in another one within a day"
        ),
    };
    let all = [
        ("countries", spread.country_halves.clamp(2, 8) as u32 - 2, countries_seen),
        ("places", over_one(places), format!("{places} independent places")),
        ("overlap", 2 * u32::from(spread.overlap), "two of them at the same time".to_owned()),
        ("devices", u32::from(many_agents), format!("{agents} devices")),
        ("sessions", busy as u32, format!("{previous} sessions of several devices")),
        (
            "alike",
            2 * spread.alike.saturating_sub(PHONES_OF_ONE) as u32,
            format!("{} phones alike at a time", spread.alike),
        ),
        (
            "sensors",
            u32::from(spread.sensor_spread_km > settings.sensor_spread_threshold_km),
            format!("{:.0} km between sensors", spread.sensor_spread_km),
        ),
        ("kinematic", u32::from(spread.kinematic), "faster than an airliner".to_owned()),
        (
            "far",
            2 * u32::from(previous >= MANY_SESSIONS && many_agents && is_far),
            format!("{previous} sessions over {:.0} km", spread.geo_ip_spread_km),
        ),
    ];
    let seen = all.into_iter().filter(|(_, points, _)| *points > 0);
    seen.map(|(name, points, seen)| Sign { name, points, seen }).collect()
}

/// The points of some signs.
#[must_use]
pub fn sum(signs: &[Sign]) -> u32 {
    signs.iter().map(|sign| sign.points).sum()
}

/// Duplicate: the code is on more than one item; and whether it may be one.
///
/// Copies go to many places. Where most sessions are in one region, the others may be visitors, roaming phones and
/// VPNs: one item in a shop window looks like that, and so do copies that are sold in one town. It is suspected then,
/// and not called a duplicate.
#[must_use]
pub fn duplicate(spread: &Spread, settings: &Settings) -> (Finding, bool) {
    let previous = spread.previous();
    if previous < settings.scan_threshold as usize {
        let text =
            format!("TOO_FEW_SCANS: {previous} sessions before, {} are needed.", settings.scan_threshold);
        return (Finding::new(Match::Unknown, text), false);
    }
    let signs = signs(spread, settings);
    let sum = sum(&signs);
    let is_open = spread.regions.len() > settings.regions_threshold as usize
        || spread.geo_ip_spread_km > settings.geo_ip_spread_threshold_km
        || spread.sensor_spread_km > settings.sensor_spread_threshold_km;
    let told: Vec<String> = signs.iter().map(|sign| format!("{} for {}", sign.points, sign.seen)).collect();
    let told = if told.is_empty() { String::new() } else { format!(": {}", told.join(", ")) };
    let home = spread.home.as_ref().filter(|home| home.share() > settings.region_share_threshold);
    if sum >= settings.duplicate_points && is_open && home.is_none() {
        return (Finding::new(Match::True, format!("DUPLICATE with {sum} points{told}.")), false);
    }
    let is_suspected = sum >= settings.suspected_points;
    let what = if is_suspected { "It may be a DUPLICATE" } else { "No duplicate" };
    let mut reason = format!("{what}: {sum} of {} points{told}.", settings.duplicate_points);
    if let Some(Home { region, sessions, of }) = home.filter(|_| is_suspected) {
        reason.push_str(&format!(" MOSTLY_IN_ONE_REGION: {sessions} of {of} sessions are in {region}."));
        let devices = spread.agents.len();
        if previous >= MANY_SESSIONS && devices > settings.user_agents_threshold as usize {
            reason.push_str(&format!(
                " LOOKS_LIKE_DISPLAY: {devices} devices, mostly at one place; if it is on display, add the tag display."
            ));
        }
    }
    (Finding::new(Match::False, reason), is_suspected)
}

/// What was found of duplicates where it was worse before: a verdict does not forget what other sessions pushed out.
#[must_use]
pub fn remembered(found: &Finding, peak: &Peak) -> Finding {
    let Peak { points, points_by, level, level_by, .. } = peak;
    let day = super::decided::day;
    let (matched, word) = match level {
        Level::Duplicate => (Match::True, "DUPLICATE"),
        Level::Suspected => (found.matched, "It may be a DUPLICATE"),
        Level::None => (found.matched, "No duplicate"),
    };
    let now = &found.reason;
    let ByScan { scan, at } = level_by;
    // Another scan may have brought the points.
    let by = if points_by == level_by {
        String::new()
    } else {
        format!(" by the scan {} of {}", points_by.scan, day(points_by.at))
    };
    let day = day(*at);
    Finding::new(
        matched,
        format!("{word} since the scan {scan} of {day}, with {points} points{by}. Now: {now}"),
    )
}

/// A finding that rests on scans by public keys: it is kept to be read, and is unknown.
#[must_use]
pub fn unverified(found: &Finding) -> Finding {
    Finding::new(Match::Unknown, format!("UNVERIFIED, by public keys only: {}", found.reason))
}

/// Evidence of an inspector; each is `None` where it was not looked for.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evidence {
    /// `inspectedProductMatch`.
    pub inspected: Option<bool>,
    /// The watermark that was read.
    pub watermark: Option<String>,
    /// The markings that were seen.
    pub markings: Vec<String>,
}

/// Physical: the item does not match its digital description. `None` when nobody looked.
#[must_use]
pub fn physical(evidence: Option<&Evidence>) -> Option<Finding> {
    match evidence?.inspected? {
        true => Some(Finding::new(Match::False, "The inspector says that it matches.")),
        false => Some(Finding::new(Match::True, "The inspector says that it does not match.")),
    }
}

/// Watermark: the expected one is missing or another. `None` when none is expected, or nobody looked.
#[must_use]
pub fn watermark(known: &Known, evidence: Option<&Evidence>) -> Option<Finding> {
    let (expected, evidence) = (known.watermark.as_ref()?, evidence?);
    Some(match &evidence.watermark {
        None => Finding::new(Match::True, "WATERMARK_MISSING: one is expected, none was read."),
        Some(found) if found == expected => Finding::new(Match::False, "The watermark is the expected one."),
        Some(_) => Finding::new(Match::True, "WATERMARK_MISMATCH: it is another one than expected."),
    })
}

/// Markings: an expected one was not seen. `None` when none is expected, or nobody looked.
#[must_use]
pub fn markings(known: &Known, evidence: Option<&Evidence>) -> Option<Finding> {
    let evidence = evidence.filter(|_| !known.markings.is_empty())?;
    let missing: Vec<&str> =
        known.markings.iter().filter(|one| !evidence.markings.contains(one)).map(String::as_str).collect();
    Some(if missing.is_empty() {
        Finding::new(Match::False, "Every expected marking is there.")
    } else {
        Finding::new(Match::True, format!("MARKING_MISSING: {}.", missing.join(", ")))
    })
}

#[cfg(test)]
mod tests;
