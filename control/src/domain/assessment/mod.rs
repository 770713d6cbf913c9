//! Assessment of items: what the factory declared and what the scans say, put together (design: assessment).
//!
//! Everything here is a plain function from facts to findings. A profile of the last sessions stands for the scans,
//! so an assessment takes the same time however many there were.

pub mod agent;
pub mod countries;
pub mod document;
pub mod profile;
pub mod rules;
pub mod settings;
pub mod spot;
pub mod spread;
pub mod trigger;
pub mod verdict;

use shared::standing::{Risk, Verdict};

use self::{
    profile::Profile,
    rules::{Evidence, Finding, Item, Known, Match},
    settings::Settings,
    spot::{CountryCode, Precision},
    spread::{Spread, Trigger},
    trigger::TriggerType,
    verdict::Findings,
};

/// Which rules these are; it grows with each change that may change a verdict.
///
/// 2: points for many sessions of several devices, so that copies within one country are told, with bars of 10 and 8
/// points instead of 8 and 6; no confirmed diversion where one device saw the item inside of its market and outside.
///
/// 3: what is mostly seen in one region is suspected and not called a duplicate; points for phones with one user agent
/// that are too far apart to be two.
pub const RULES_VERSION: u32 = 3;

/// Everything that an assessment goes by.
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
    /// What the caller saw; counts only from some types.
    pub evidence: &'a Evidence,
    /// The sessions before, and maybe the trigger's own.
    pub profile: &'a Profile,
    /// The settings of the item.
    pub settings: &'a Settings,
}

/// What was found, and what follows.
#[derive(Debug, Clone, PartialEq)]
pub struct Assessment {
    /// Of each rule in the order of the design; those behind `duplicateChecks` only where they were evaluated.
    pub checks: Vec<(&'static str, Finding)>,
    /// The figures.
    pub spread: Spread,
    /// The statuses.
    pub verdict: Verdict,
}

impl Assessment {
    /// What a rule found.
    #[must_use]
    pub fn check(&self, name: &str) -> Match {
        let found = self.checks.iter().find(|(known, _)| *known == name);
        found.map_or(Match::Unknown, |(_, finding)| finding.matched)
    }
}

/// Assesses an item.
#[must_use]
pub fn assess(facts: &Facts<'_>) -> Assessment {
    let invalid = rules::invalid(facts.item);
    let known = match facts.item {
        Item::Found(known) => known.as_ref(),
        // The contract fixes this result: all other checks are unknown.
        Item::NotGiven | Item::Malformed(_) | Item::Absent(_) => return of_no_item(facts, invalid),
    };
    let since = known.commission.as_ref().and_then(|commission| commission.commissioned_at(facts.trigger.at));
    let nothing = Profile::default();
    let profile = if known.is_display() { &nothing } else { facts.profile };
    let spread = Spread::of(profile, facts.trigger, since, facts.settings);
    let unauthorized = rules::unauthorized(known, facts.trigger.at, facts.settings);
    let place = rules::Place {
        countries: facts.countries,
        precision: facts.trigger.spot.precision,
        is_professional: facts.kind.event_group() != "consumer",
    };
    let (diversion, gray_market) = rules::diversion(known, place, &spread, facts.settings.diversion_mode);
    let (duplicate, duplicate_suspected) = rules::duplicate(&spread, facts.settings);
    let evidence = Some(facts.evidence).filter(|_| facts.settings.evidence_types.contains(&facts.kind));
    let seen = [
        ("physicalChecks", rules::physical(evidence)),
        ("watermarkChecks", rules::watermark(known, evidence)),
        ("markingsChecks", rules::markings(known, evidence)),
    ];
    let is_true = |finding: &Option<Finding>| finding.as_ref().is_some_and(|one| one.matched == Match::True);
    let by_evidence =
        if seen.iter().any(|(_, finding)| is_true(finding)) { Match::True } else { Match::Unknown };
    let verdict = verdict::verdict(Findings {
        invalid: invalid.matched,
        evidence: by_evidence,
        unauthorized: unauthorized.matched,
        duplicate: duplicate.matched,
        duplicate_suspected,
        is_outlier: spread.outlier == Some(true),
        diversion: diversion.matched,
        gray_market,
        is_confirmed_item: evidence.and_then(|evidence| evidence.inspected) == Some(true),
    });
    let mut checks = vec![
        ("invalidChecks", invalid),
        ("unauthorizedChecks", unauthorized),
        ("diversionChecks", diversion),
        ("duplicateChecks", duplicate),
    ];
    checks.extend(seen.into_iter().filter_map(|(name, finding)| Some((name, finding?))));
    Assessment { checks, spread, verdict }
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
    Assessment { checks, spread, verdict }
}

/// The place of a scan as a spot and the countries that it may be in: a sensor's word counts before an address's.
#[must_use]
pub fn locate(
    sensor: Option<crate::domain::location::Coordinates>,
    by_address: spot::Spot,
) -> (spot::Spot, Vec<CountryCode>) {
    match sensor {
        Some(at) => {
            let found = countries::find(at);
            // The region is known of the address only, and says something where both agree.
            let region = by_address.region.as_deref().filter(|_| by_address.country == found.likely);
            let spot = spot::Spot::of_sensor(at, found.likely, region);
            debug_assert!(spot.precision == Precision::Sensor);
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
