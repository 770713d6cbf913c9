//! The seven checks: plain functions from facts to findings, each with its reasons.

use std::collections::BTreeSet;

use countries::CountryCode;
use shared::{commission::CommissionState, standing::Risk, time::UnixMillis};

use super::{
    explain::{Certainty, Displays, Share, Sightings, plain},
    peak::{ByScan, Level, Peak},
    settings::{DiversionMode, Settings},
    spot::Precision,
    spread::Spread,
};
use crate::domain::commissioning::Commission;

shared::words! {
    /// The result of a check; `match` in a result.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Match {
        /// The check matches.
        True = "true",
        /// It is not so.
        False = "false",
        /// Unknown.
        Unknown = "unknown",
    }
}

/// The result of a check, with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The result.
    pub matched: Match,
    /// The reason: a code, and figures for people.
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
    /// Neither a Thng nor a scanned value is given.
    NotGiven,
    /// The text cannot name an item.
    Malformed(String),
    /// There is no such item for the caller.
    Absent(String),
    /// The item.
    Found(Box<Known>),
}

/// Facts about an item.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Known {
    /// Its tags.
    pub tags: Vec<String>,
    /// `customFields.factory`.
    pub factory: Option<String>,
    /// The factory's declaration.
    pub commission: Option<Commission>,
    /// The markets where it may be sold; empty if none are set.
    pub markets: Vec<CountryCode>,
    /// The watermark that it must have.
    pub watermark: Option<String>,
    /// The markings that it must have.
    pub markings: Vec<String>,
    /// Display pieces that are mostly seen where it is.
    pub displays: Option<Displays>,
}

impl Known {
    /// Whether it hangs in a shop window: its scans say nothing.
    #[must_use]
    pub fn is_display(&self) -> bool {
        is_display(&self.tags)
    }
}

/// Whether an item with some tags hangs in a shop window.
#[must_use]
pub fn is_display(tags: &[String]) -> bool {
    tags.iter().any(|tag| ["demo", "display"].contains(&tag.as_str()))
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
pub const WITHDRAWN: [&str; 3] = ["recalled", "stolen", "destroyed"];

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

/// Input of the diversion check.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// Countries that the trigger may be in.
    pub countries: &'a [CountryCode],
    /// How well its place is known.
    pub precision: Precision,
    /// Whether an inspector or the supply chain scanned.
    pub is_professional: bool,
}

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
    let before = Sightings::of(markets, spread);
    let (home, away, has_home) = (before.inside, before.outside, before.is_at_home());
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
        let why = if before.shared_device {
            "a device outside saw it inside, too"
        } else {
            "it was at home in its market"
        };
        let needed = before.needed;
        reason.push_str(&format!(" HOME_IN_MARKET: {why}, with {home} sessions inside of {needed} needed."));
    } else if away == 0 {
        reason.push_str(" FIRST_OUTSIDE_SCAN.");
    }
    (Finding::new(Match::True, reason), risk)
}

/// Whether one device saw the item inside of the markets and outside: who bought it there took it along. Goods that
/// are diverted change hands before they are seen again.
pub fn travels_with_its_owner(spread: &Spread, is_in: &dyn Fn(&CountryCode) -> bool) -> bool {
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

/// Duplicate: whether the code is, or may be, on more than one item.
///
/// Copies spread to many places. If most sessions are in one region, the others may be visitors, roaming phones and
/// VPNs: an item in a shop window looks like that, and so do copies that are sold in one town. Then it is suspected,
/// and not called a duplicate.
#[must_use]
pub fn duplicate(spread: &Spread, settings: &Settings) -> (Finding, bool) {
    duplicate_by(&Certainty::of(spread, settings))
}

/// The same by figures that are known.
#[must_use]
pub fn duplicate_by(found: &Certainty) -> (Finding, bool) {
    let Certainty { points, bar, previous, needed, devices, gate, .. } = found;
    if *previous < *needed as usize {
        let text = format!("TOO_FEW_SCANS: {previous} sessions before, {needed} are needed.");
        return (Finding::new(Match::Unknown, text), false);
    }
    let signs: Vec<String> =
        found.signs.iter().map(|sign| format!("{} for {}", sign.points, sign.text())).collect();
    let signs = if signs.is_empty() { String::new() } else { format!(": {}", signs.join(", ")) };
    let home = found.share.as_ref().filter(|home| home.is_above);
    let is_enough = *points >= found.bars.duplicate;
    if is_enough && gate.is_open && home.is_none() {
        let text = format!("DUPLICATE with {points} points, the bar is {bar}{signs}.");
        return (Finding::new(Match::True, text), false);
    }
    let is_suspected = *points >= found.bars.suspected;
    let what = if is_suspected { "It may be a DUPLICATE" } else { "No duplicate" };
    let next = found.next_bar.map(|next| format!(" ({next} for a duplicate)")).unwrap_or_default();
    let mut reason = format!("{what}: {points} points, the bar is {bar}{next}{signs}.");
    if is_enough && !gate.is_open {
        reason.push_str(&format!(
            " GATE_CLOSED, not called a duplicate: {} regions (more than {} needed), {} km by addresses ({}), \
             {} km by sensors ({}).",
            gate.regions,
            gate.regions_threshold,
            plain(gate.geo_ip_km),
            plain(gate.geo_ip_threshold_km),
            plain(gate.sensor_km),
            plain(gate.sensor_threshold_km)
        ));
    }
    if let Some(Share { region, sessions, of, share, threshold, .. }) = home.filter(|_| is_suspected) {
        let (share, threshold) = (plain(*share), plain(*threshold));
        reason.push_str(&format!(
            " MOSTLY_IN_ONE_REGION: {sessions} of {of} sessions are in {region}, a share of {share}; \
             with more than {threshold} it is not called a duplicate."
        ));
        if found.looks_like_display {
            reason.push_str(&format!(
                " LOOKS_LIKE_DISPLAY: {devices} devices, mostly at one place; if it is on display, add the tag display."
            ));
        }
        if let Some(count) = found.displays_nearby {
            reason.push_str(&format!(
                " DISPLAYS_NEARBY: {count} more that are tagged display or demo are mostly seen in {region}, too."
            ));
        }
    }
    (Finding::new(Match::False, reason), is_suspected)
}

/// The duplicate finding, raised to the greatest points so far: a verdict is not lowered because newer sessions
/// evicted older ones.
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

/// Physical: the item does not match its digital description. `None` without an inspection.
#[must_use]
pub fn physical(evidence: Option<&Evidence>) -> Option<Finding> {
    match evidence?.inspected? {
        true => Some(Finding::new(Match::False, "The inspector says that it matches.")),
        false => Some(Finding::new(Match::True, "The inspector says that it does not match.")),
    }
}

/// Watermark: the expected one is missing or different. `None` if none is expected, or without an inspection.
#[must_use]
pub fn watermark(known: &Known, evidence: Option<&Evidence>) -> Option<Finding> {
    let (expected, evidence) = (known.watermark.as_ref()?, evidence?);
    Some(match &evidence.watermark {
        None => Finding::new(Match::True, "WATERMARK_MISSING: one is expected, none was read."),
        Some(found) if found == expected => Finding::new(Match::False, "The watermark is the expected one."),
        Some(_) => Finding::new(Match::True, "WATERMARK_MISMATCH: it is another one than expected."),
    })
}

/// Markings: an expected one was not seen. `None` if none is expected, or without an inspection.
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
