//! A seeded simulation of items and their scans: how well the rules of assessment detect copies and diverted goods.
//!
//! What it assumes is in [`ASSUMPTIONS`], with reasons; nothing in it comes from real scans. Seeds below
//! [`FIRST_EVALUATION_SEED`] are for work on the rules, those from it on are for published figures.

mod assumptions;
mod atlas;
mod attackers;
mod floors;
mod items;
mod kept;
mod lines;
mod people;
mod population;
mod report;
pub mod second;

use countries::CountryCode;
use shared::{commission::CommissionState, id::ProductId, standing::Risk, time::UnixMillis};
use verdicts::domain::{
    action_names::TriggerType,
    assessment::{
        Assessment, Facts, assess,
        decided::Decided,
        explain::{Sign, signs, sum},
        profile::{Observation, Profile},
        rules::{Evidence, Item, Known, Match, duplicate},
        settings::Settings,
        spread::Trigger,
    },
    commissioning::{Commission, Taken},
};

pub use self::{
    assumptions::{ASSUMPTIONS, Assumption, Figures},
    attackers::{ATTACKED, Attack, Attacker, attack},
    floors::{Bound, FLOORS, Floor, MISSED, Measured, Missed, Quantity, measure},
    kept::{KEPT_HEAD, KEPT_ITEMS, kept_table, run_kept},
    people::Rng,
    population::Population,
    report::{Rate, Report, auc, precision},
};

/// Seeds from here on are not looked at while the rules are worked on.
pub const FIRST_EVALUATION_SEED: u64 = 9_000;

/// What an item really is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Genuine, in its market.
    Genuine,
    /// Genuine, and outside of its market.
    Diverted,
    /// One of many with the same code.
    Copied,
}

/// An item, its scans, and what it really is.
#[derive(Debug, Clone)]
pub struct Case {
    /// What it is.
    pub kind: Kind,
    /// What became of it, of those that are told apart.
    pub who: &'static str,
    /// Where it may be sold.
    pub market: Vec<CountryCode>,
    /// Whether it is tagged as a display piece.
    pub is_tagged: bool,
    /// Its scans in order of time, from its commission at 0 on and before; the last one is judged.
    pub scans: Vec<Observation>,
    /// How many distinct items with this code are among the scans: one, but for copied ones.
    pub items_seen: usize,
}

/// What was found of a case.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// What it is.
    pub kind: Kind,
    /// What became of it.
    pub who: &'static str,
    /// Points for a duplicate, also below the number of scans that a verdict takes.
    pub points: u32,
    /// The signs that make up the points.
    pub signs: Vec<Sign>,
    /// Whether it was called a duplicate.
    pub is_duplicate: bool,
    /// Whether it was suspected to be one.
    pub is_suspected: bool,
    /// Whether an earlier session was outside of its market: the first scan there by an address alone is only suspected.
    pub is_seen_outside_before: bool,
    /// How many distinct items with its code were scanned.
    pub items_seen: usize,
    /// What was said of the market.
    pub gray_market: Risk,
    /// The first baseline: how many sessions there were.
    pub sessions: usize,
    /// The second one: how often one would have had to fly too fast.
    pub impossible: usize,
}

/// Assesses a case by a scan, with the scans of a profile.
fn assessed(case: &Case, last: &Observation, profile: &Profile, settings: &Settings) -> Assessment {
    let trigger = Trigger {
        at: last.at,
        agent: last.agent,
        network: last.network,
        language: last.language,
        spot: last.spot.clone(),
        is_counted: false,
    };
    let countries: Vec<CountryCode> = last.spot.country.into_iter().collect();
    let commission = Commission {
        state: CommissionState::Commissioned,
        product: ProductId::new(1, [1; 16]),
        occurred_at: String::new(),
        factory: None,
        purchase_order: None,
        steps: vec![Taken { at: UnixMillis(0), to: CommissionState::Commissioned }],
    };
    let item: Item = Known {
        tags: if case.is_tagged { vec!["display".to_owned()] } else { Vec::new() },
        commission: Some(commission),
        markets: case.market.clone(),
        ..Known::default()
    }
    .into();
    assess(&Facts {
        item: &item,
        kind: TriggerType::ImplicitScans,
        trigger: &trigger,
        countries: &countries,
        evidence: &Evidence::default(),
        profile,
        settings,
        source: last.source,
        peak: None,
        decided: &Decided::default(),
    })
}

/// Judges a case by its last scan.
#[must_use]
pub fn judge(case: &Case, settings: &Settings) -> Option<Judged> {
    let (last, before) = case.scans.split_last()?;
    let found = assessed(case, last, &Profile::of(before), settings);
    let signs = signs(&found.spread, settings);
    let earlier = &found.spread.previous_countries;
    let after: Vec<&Observation> = case.scans.iter().filter(|scan| scan.at.0 >= 0).collect();
    Some(Judged {
        kind: case.kind,
        who: case.who,
        points: sum(&signs),
        signs,
        is_duplicate: found.check("duplicateChecks") == Match::True,
        is_suspected: duplicate(&found.spread, settings).1,
        is_seen_outside_before: earlier.iter().flatten().any(|country| !case.market.contains(country)),
        items_seen: case.items_seen,
        gray_market: found.verdict.gray_market,
        sessions: after.len(),
        impossible: impossible(&after),
    })
}

/// Pairs of neighbouring scans that are farther apart than an airliner flies.
fn impossible(scans: &[&Observation]) -> usize {
    let is_too_fast = |from: &Observation, to: &Observation| {
        let (Some((a, _)), Some((b, _))) = (from.spot.located(), to.spot.located()) else { return false };
        let km = countries::distance::distance_km(a, b);
        let hours = (to.at.0 - from.at.0).max(1) as f64 / items::HOUR as f64;
        km > 100.0 && km / hours > 900.0
    };
    scans.windows(2).filter(|pair| matches!(pair, [from, to] if is_too_fast(from, to))).count()
}

/// Makes `count` cases of a population and judges them.
#[must_use]
pub fn run(seed: u64, count: usize, population: Population) -> Vec<Judged> {
    let (mut rng, settings) = (Rng::new(seed), Settings::default());
    (0..count).filter_map(|_| judge(&population.case(&mut rng), &settings)).collect()
}
