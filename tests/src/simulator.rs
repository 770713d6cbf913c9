//! A seeded simulation of items and their scans: how well the rules of assessment tell copies and diverted goods.
//!
//! What it assumes is in [`ASSUMPTIONS`] and in the figures of `people`; nothing in it comes from real scans.

mod people;
mod report;

use control::domain::assessment::{
    Facts, assess,
    profile::{Observation, Profile},
    rules::{Evidence, Item, Known, Match, points},
    settings::Settings,
    spot::CountryCode,
    spread::{Spread, Trigger},
    trigger::TriggerType,
};
use shared::standing::Risk;

pub use self::{
    people::{Kind, Mix, Rng},
    report::{Report, auc, precision},
};

/// What the figures rest on; printed beside them.
pub const ASSUMPTIONS: &[&str] = &[
    "an item is judged at one scan of its last quarter; the factory's own scans are before its commission",
    "of the devices 35 % share one user agent (an iPhone), the others are of 400 models, the first ones the commonest",
    "of the scans 10 % tell a sensor's place, 72 % an address with its city (off by some 30 km), 15 % its country, 3 % none",
    "owners scan 1 to 6 times, engaged ones 8 to 60 times, with 1 to 3 devices, at home",
    "an owner behind a VPN appears in one or two other countries, at any time, with the same devices",
    "travellers take their device along, one country after the other, at the speed of an airliner at most",
    "a resold item moves once, to another device and city, mostly of the same country",
    "a shop display is scanned by 5 to 40 devices at one place and carries no tag",
    "a copied code is on 3 to 500 copies (half of the codes on fewer than 130) in 1 to 8 cities; each copy is scanned up to twice, by a device of its own",
    "of the copied codes a tenth stays in one country, where the rules see few of them (two fifths in the shifted mix)",
    "diverted goods are sold outside of their market from the first scan on; 1 in 8 was seen inside before",
];

/// An item, its scans, and what it really is.
#[derive(Debug, Clone)]
pub struct Case {
    /// What it is.
    pub kind: Kind,
    /// Where it may be sold.
    pub market: Option<CountryCode>,
    /// Its scans in order of time; the last one is judged.
    pub scans: Vec<Observation>,
}

/// What was found of a case.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judged {
    /// What it is.
    pub kind: Kind,
    /// Points for a duplicate; 0 with too few scans.
    pub points: u32,
    /// Whether it was called a duplicate.
    pub is_duplicate: bool,
    /// What was said of the market.
    pub gray_market: Risk,
    /// The first baseline: how many sessions there were.
    pub sessions: usize,
    /// The second one: how often one would have had to fly too fast.
    pub impossible: usize,
}

/// Judges a case by its last scan.
#[must_use]
pub fn judge(case: &Case, settings: &Settings) -> Option<Judged> {
    let (last, before) = case.scans.split_last()?;
    let profile = Profile::of(before);
    let trigger = Trigger { at: last.at, agent: last.agent, spot: last.spot.clone(), is_counted: false };
    let countries: Vec<CountryCode> = last.spot.country.into_iter().collect();
    let item: Item = Known { markets: case.market.into_iter().collect(), ..Known::default() }.into();
    let found = assess(&Facts {
        item: &item,
        kind: TriggerType::ImplicitScans,
        trigger: &trigger,
        countries: &countries,
        evidence: &Evidence::default(),
        profile: &profile,
        settings,
    });
    let spread: &Spread = &found.spread;
    let is_enough = spread.previous() >= settings.scan_threshold as usize;
    let duplicate_points: u32 = points(spread, settings).iter().map(|(points, _)| points).sum();
    Some(Judged {
        kind: case.kind,
        points: if is_enough { duplicate_points } else { 0 },
        is_duplicate: found.check("duplicateChecks") == Match::True,
        gray_market: found.verdict.gray_market,
        sessions: profile.len() + 1,
        impossible: impossible(&case.scans),
    })
}

/// Pairs of neighbouring scans of different devices that are farther apart than an airliner flies.
fn impossible(scans: &[Observation]) -> usize {
    let is_too_fast = |from: &Observation, to: &Observation| {
        let (Some((a, _)), Some((b, _))) = (from.spot.located(), to.spot.located()) else { return false };
        let km = control::domain::geo::distance_km(a, b);
        let hours = (to.at.0 - from.at.0).max(1) as f64 / 3_600_000.0;
        km > 100.0 && km / hours > 900.0
    };
    scans.windows(2).filter(|pair| matches!(pair, [from, to] if is_too_fast(from, to))).count()
}

/// Makes `count` cases of a mix and judges them.
#[must_use]
pub fn run(seed: u64, count: usize, mix: Mix) -> Vec<Judged> {
    let (mut rng, settings) = (Rng::new(seed), Settings::default());
    (0..count).filter_map(|_| judge(&people::case(&mut rng, mix), &settings)).collect()
}
