//! Assessment of items: combines what the factory declared with what the scans show.
//!
//! Everything here is a plain function from facts to findings (`control/README.md`, "Assessment"). The scans are
//! represented by a profile of the last sessions, so an assessment takes the same time however many there were.

pub mod client;
pub mod decided;
pub mod document;
pub mod explain;
mod judgement;
pub mod packed;
pub mod peak;
pub mod profile;
pub mod recorded;
pub mod rules;
pub mod settings;
pub mod source;
pub mod spot;
pub mod spread;
pub mod standing;
pub mod trigger;
pub mod verdict;

pub use crate::domain::device as agent;

use std::collections::BTreeSet;

use countries::CountryCode;
use shared::{
    standing::{Risk, Verdict},
    time::UnixMillis,
};

use self::{
    decided::Decided,
    explain::Explained,
    judgement::Case,
    peak::{Level, Peak},
    profile::{Profile, SessionKey},
    rules::{Evidence, Finding, Item, Known, Match},
    settings::Settings,
    spot::Spot,
    spread::{Spread, Trigger},
    verdict::Findings,
};
use crate::domain::{action_names::TriggerType, scan_source::Source};

/// The version of the rules, increased with each change that may change a verdict.
///
/// 2: points for many sessions of several devices, so that copies within one country are detected, with thresholds of
/// 10 and 8 points instead of 8 and 6; no confirmed diversion where one device saw the item inside its market and
/// outside.
///
/// 3: an item that is mostly seen in one region is suspected and not called a duplicate; points for phones with one
/// user agent that are too far apart to be two.
///
/// 4: scans by public keys never move a verdict beyond unknown; an undecided country counts as none; the counterfeit
/// status does not depend on the market; the greatest points since the commissioning are kept; an item is at home in
/// its market only if it was there first, and with more than a fifth of its sessions.
///
/// 5: model numbers distinguish devices; a country counts half if only devices were there that were in another one
/// within a day.
///
/// 6: a scan of before the last commissioning raises no greatest points; a scan without a country leaves what the last
/// known country said; what people decided on cases counts.
///
/// 7: a confirmed diversion is negative also where the code is copied; points for pairs of a device and a region, where
/// no region has most of the sessions.
///
/// 8: sessions have the network and the language of their scans. Where most languages are known, points for languages,
/// for people whom device, language and network tell apart, and for the days on which they scan, with bars that are half
/// again as high.
///
/// 9: devices are told apart by hashes under a key of the account, also where user agents are stored reduced.
pub const RULES_VERSION: u32 = 9;

/// The rules version since which the hashes of devices have a key.
pub const DEVICES_SINCE: u32 = 9;

/// All facts of an assessment.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The item.
    pub item: &'a Item,
    /// What kind of scan asks.
    pub kind: TriggerType,
    /// When, by what and where it was scanned.
    pub trigger: &'a Trigger,
    /// The countries that it may be in.
    pub countries: &'a [CountryCode],
    /// The caller's observations; they count only from some types.
    pub evidence: &'a Evidence,
    /// The sessions before, and maybe the trigger's own.
    pub profile: &'a Profile,
    /// The settings of the item.
    pub settings: &'a Settings,
    /// Who reported the scan. Of a public one the trigger holds what the server saw: arrival, network and its
    /// country.
    pub source: Source,
    /// The greatest points before.
    pub peak: Option<Peak>,
    /// What people decided on its cases.
    pub decided: &'a Decided,
}

/// The findings and the verdict.
#[derive(Debug, Clone, PartialEq)]
pub struct Assessment {
    /// The finding of each rule, in a fixed order; those behind `duplicateChecks` only where they were evaluated.
    pub checks: Vec<(&'static str, Finding)>,
    /// The figures.
    pub spread: Spread,
    /// The statuses.
    pub verdict: Verdict,
    /// The points of a duplicate, of the scans that are believed.
    pub points: u32,
    /// The level of the points, even if it was dismissed.
    pub level: Level,
    /// The signs of a copy in believed scans: those of the points, and the codes and names of checks that match.
    pub signs: Vec<String>,
    /// Countries outside of the markets, in believed scans.
    pub outside: BTreeSet<CountryCode>,
    /// Since when scans count: the last commissioning.
    pub since: Option<UnixMillis>,
    /// Scans by public keys that were left out.
    pub unverified: u64,
    /// How sure it is, by the scans that are believed; nothing of an item that is not known.
    pub explained: Option<Explained>,
}

impl Assessment {
    /// The result of a check.
    #[must_use]
    pub fn check(&self, name: &str) -> Match {
        let found = self.checks.iter().find(|(known, _)| *known == name);
        found.map_or(Match::Unknown, |(_, finding)| finding.matched)
    }
}

/// Assesses an item.
///
/// If there are scans by public keys, it is judged twice: without and with them. Where they make it worse, it is
/// unknown at most.
#[must_use]
pub fn assess(facts: &Facts<'_>) -> Assessment {
    let invalid = rules::invalid(facts.item);
    let known = match facts.item {
        Item::Found(known) => known.as_ref(),
        // The platform API fixes this result: all other checks are unknown.
        Item::NotGiven | Item::Malformed(_) | Item::Absent(_) => return of_no_item(facts, invalid),
    };
    let since = known.commission.as_ref().and_then(|commission| commission.commissioned_at(facts.trigger.at));
    let nothing = Profile::default();
    let profile = if known.is_display() { &nothing } else { facts.profile };
    let is_public = facts.source == Source::Public;
    let unverified = unverified(profile, facts.trigger, since, is_public);
    let case = Case { facts, known, since };
    let neutral = Trigger {
        agent: None,
        network: None,
        language: None,
        spot: Spot::NOWHERE,
        is_counted: false,
        ..facts.trigger.clone()
    };
    let believed = case.judge(profile, if is_public { &neutral } else { facts.trigger }, is_public);
    let all =
        (is_public || unverified > 0).then(|| case.judge(&profile.with_unverified(), facts.trigger, false));
    // Of a public trigger only its country is shown: its device is its network, which must not be shown.
    let seen = Trigger { agent: None, ..facts.trigger.clone() };
    let spread =
        if is_public { Spread::of(profile, &seen, since, facts.settings) } else { believed.spread.clone() };
    let verdict = all.as_ref().map_or(believed.verdict, |all| peak::settled(believed.verdict, all.verdict));
    let (points, level) = (believed.points, believed.level);
    let explained = Some(believed.explained.clone());
    let (signs, outside) = (believed.signs.clone(), believed.outside.clone());
    let is_permitted = facts.decided.is_market_dismissed() && !outside.is_empty();
    let mut checks = vec![("invalidChecks", invalid)];
    checks.extend(believed.checks(all, is_public, unverified));
    facts.decided.note(&mut checks, is_permitted);
    Assessment { checks, spread, verdict, points, level, signs, outside, since, unverified, explained }
}

/// Scans by public keys before a trigger, as far as they are kept.
fn unverified(profile: &Profile, trigger: &Trigger, since: Option<UnixMillis>, is_public: bool) -> u64 {
    let own = is_public.then(|| SessionKey::of(trigger.at, trigger.agent));
    let oldest = spread::oldest(trigger.at, since);
    let counts =
        profile.unverified().filter(|(_, session)| session.last >= oldest && session.first <= trigger.at);
    counts.map(|(key, session)| u64::from(session.implicit).saturating_sub(u64::from(own == Some(key)))).sum()
}

fn of_no_item(facts: &Facts<'_>, invalid: Finding) -> Assessment {
    let spread = Spread::of(&Profile::default(), facts.trigger, None, facts.settings);
    let unknown = || Finding { matched: Match::Unknown, reason: "The item is not known.".to_owned() };
    let verdict = verdict::verdict(Findings {
        invalid: invalid.matched,
        evidence: Match::Unknown,
        unauthorized: Match::Unknown,
        duplicate: Match::Unknown,
        duplicate_suspected: false,
        is_outlier: false,
        diversion: Match::Unknown,
        gray_market: Risk::Unknown,
        is_confirmed_item: false,
    });
    let checks = vec![
        ("invalidChecks", invalid),
        ("unauthorizedChecks", unknown()),
        ("diversionChecks", unknown()),
        ("duplicateChecks", unknown()),
    ];
    Assessment {
        checks,
        spread,
        verdict,
        points: 0,
        level: Level::None,
        signs: Vec::new(),
        outside: BTreeSet::new(),
        since: None,
        unverified: 0,
        explained: None,
    }
}

/// The place of a scan, and the countries that it may be in: a sensor takes precedence over an address.
#[must_use]
pub fn locate(
    sensor: Option<crate::domain::location::Coordinates>,
    by_address: spot::Spot,
) -> (spot::Spot, Vec<CountryCode>) {
    match sensor {
        Some(at) => {
            let found = countries::find(at);
            let country = found.decided();
            // The region is only known from the address, and counts if both agree on the country.
            let region =
                by_address.region.as_deref().filter(|_| country.is_some() && by_address.country == country);
            let spot = spot::Spot::of_sensor(at, country, region);
            (spot, found.all)
        }
        None => {
            let countries = by_address.country.into_iter().collect();
            (by_address, countries)
        }
    }
}

/// The markets of an item: its own, else those of its purchase order, else those of its product.
#[must_use]
pub fn markets(
    own: Option<Vec<CountryCode>>,
    order: Option<&str>,
    of_product: Option<Vec<CountryCode>>,
    settings: &Settings,
) -> Vec<CountryCode> {
    let of_order = order.and_then(|order| settings.purchase_orders.get(order)).cloned();
    let all = [own, of_order, of_product].into_iter().flatten();
    all.into_iter().find(|markets| !markets.is_empty()).unwrap_or_default()
}

/// For callers that need a known item in tests and simulations.
impl From<Known> for Item {
    fn from(known: Known) -> Self {
        Self::Found(Box::new(known))
    }
}
