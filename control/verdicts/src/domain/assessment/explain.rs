//! Certainty of an assessment: the figures that decided it, their thresholds, and what a person could do to settle it.
//!
//! Reasons are worded from these figures, so both always agree.

pub use self::sign::{Sign, signs, sum, unit};
use super::{
    peak::{Level, Peak},
    rules::{Finding, Known, Match, WITHDRAWN},
    settings::Settings,
    spot::Precision,
    spread::Spread,
};
use countries::CountryCode;

mod display;
pub mod form;
mod settle;
mod sign;

pub use display::Displays;
pub use settle::Settle;

/// Fewest previous sessions for the points of many far devices, and for what looks like a display piece.
pub const MANY_SESSIONS: usize = 10;

/// An item is at home in its market if sessions inside × this factor ≥ sessions outside.
const HOME_SHARE: usize = 4;

/// The points that are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bars {
    /// For a suspected duplicate.
    pub suspected: u32,
    /// For a duplicate.
    pub duplicate: u32,
}

impl Bars {
    /// The bars of the settings; half again as high, rounded up, where the signs of languages count.
    #[must_use]
    pub const fn of(spread: &Spread, settings: &Settings) -> Self {
        let Settings { suspected_points: suspected, duplicate_points: duplicate, .. } = *settings;
        if spread.people.is_known {
            Self {
                suspected: suspected + suspected.div_ceil(2),
                duplicate: duplicate + duplicate.div_ceil(2),
            }
        } else {
            Self { suspected, duplicate }
        }
    }
}

/// What has to be so, beside enough points, before an item is called a duplicate: one of the three is enough.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gate {
    /// Whether one of them is.
    pub is_open: bool,
    /// Regions that it was seen in.
    pub regions: usize,
    /// More than these open the gate.
    pub regions_threshold: u32,
    /// Largest distance between two positions from addresses, in kilometres.
    pub geo_ip_km: f64,
    /// More than this opens the gate.
    pub geo_ip_threshold_km: f64,
    /// Largest distance between two positions from sensors, in kilometres.
    pub sensor_km: f64,
    /// More than this opens the gate.
    pub sensor_threshold_km: f64,
}

impl Gate {
    fn of(spread: &Spread, settings: &Settings) -> Self {
        let Settings { regions_threshold, geo_ip_spread_threshold_km, sensor_spread_threshold_km, .. } =
            *settings;
        let is_open = spread.regions.len() > regions_threshold as usize
            || spread.geo_ip_spread_km > geo_ip_spread_threshold_km
            || spread.sensor_spread_km > sensor_spread_threshold_km;
        Self {
            is_open,
            regions: spread.regions.len(),
            regions_threshold,
            geo_ip_km: shown(spread.geo_ip_spread_km, geo_ip_spread_threshold_km),
            geo_ip_threshold_km: geo_ip_spread_threshold_km,
            sensor_km: shown(spread.sensor_spread_km, sensor_spread_threshold_km),
            sensor_threshold_km: sensor_spread_threshold_km,
        }
    }
}

/// The region with most sessions, and how many of all these are.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    /// The region, with its country.
    pub region: String,
    /// Sessions there.
    pub sessions: usize,
    /// Sessions in any region that is known.
    pub of: usize,
    /// The share.
    pub share: f64,
    /// With a larger share it is not called a duplicate.
    pub threshold: f64,
    /// Whether it is larger.
    pub is_above: bool,
}

/// How sure the check of duplicates is.
#[derive(Debug, Clone, PartialEq)]
pub struct Certainty {
    /// The points of the signs.
    pub points: u32,
    /// The points that are needed.
    pub bars: Bars,
    /// Whether the language of at least half of the sessions is known: then its signs count, and the bars are higher.
    pub languages_known: bool,
    /// The highest bar that the points reach, else the lowest.
    pub bar: u32,
    /// The bar above that.
    pub next_bar: Option<u32>,
    /// The greatest points since the commissioning, if the verdict is based on them.
    pub kept_points: Option<u32>,
    /// Sessions before.
    pub previous: usize,
    /// Fewer of them say nothing.
    pub needed: u32,
    /// Devices.
    pub devices: usize,
    /// The gate.
    pub gate: Gate,
    /// The region with most sessions.
    pub share: Option<Share>,
    /// What speaks for a duplicate.
    pub signs: Vec<Sign>,
    /// Whether it looks like an item on display.
    pub looks_like_display: bool,
    /// Items that are tagged as display pieces at the same place, where it looks like one.
    pub displays_nearby: Option<u64>,
    /// What settles it.
    pub settles: Vec<Settle>,
}

impl Certainty {
    /// The figures of some sessions; nothing settles them yet.
    #[must_use]
    pub fn of(spread: &Spread, settings: &Settings) -> Self {
        let signs = signs(spread, settings);
        let points = sum(&signs);
        let bars = Bars::of(spread, settings);
        let duplicate = bars.duplicate;
        let lowest = bars.suspected.min(duplicate);
        let bar = if points >= duplicate { duplicate } else { lowest };
        let threshold = settings.region_share_threshold;
        let share = spread.home.as_ref().map(|home| Share {
            region: home.region.clone(),
            sessions: home.sessions,
            of: home.of,
            share: shown(home.share() * 100.0, threshold * 100.0) / 100.0,
            threshold,
            is_above: home.share() > threshold,
        });
        let (previous, devices) = (spread.previous(), spread.agents.len());
        let is_at_one_place = share.as_ref().is_some_and(|share| share.is_above);
        Self {
            points,
            bars,
            languages_known: spread.people.is_known,
            bar,
            next_bar: Some(duplicate).filter(|next| *next > bar),
            kept_points: None,
            previous,
            needed: settings.scan_threshold,
            devices,
            gate: Gate::of(spread, settings),
            looks_like_display: is_at_one_place
                && previous >= MANY_SESSIONS
                && devices > settings.user_agents_threshold as usize,
            displays_nearby: None,
            share,
            signs,
            settles: Vec::new(),
        }
    }

    /// The same once the level is known, which may be that of a greatest before.
    #[must_use]
    pub fn settled(mut self, level: Level, kept: Option<&Peak>) -> Self {
        self.kept_points = kept.map(|peak| peak.points);
        if level.max(kept.map_or(Level::None, |peak| peak.level)) > Level::None {
            let is_at_one_place = self.share.as_ref().is_some_and(|share| share.is_above);
            let fits = [
                (Settle::TagDisplay, self.looks_like_display),
                (Settle::AllowPlace, is_at_one_place),
                (Settle::Inspect, true),
                (Settle::DecideCase, true),
            ];
            self.settles = fits.into_iter().filter(|(_, fits)| *fits).map(|(settle, _)| settle).collect();
        }
        self
    }
}

/// Where an item was before, by its markets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sightings {
    /// Sessions inside.
    pub inside: usize,
    /// Sessions outside.
    pub outside: usize,
    /// Whether the first of them was inside; `None` without any.
    pub first_was_inside: Option<bool>,
    /// Sessions inside that are needed to be at home, with this many outside.
    pub needed: usize,
    /// Whether one device saw it inside and outside.
    pub shared_device: bool,
}

impl Sightings {
    /// The sessions before, by the markets of the item.
    #[must_use]
    pub fn of(markets: &[CountryCode], spread: &Spread) -> Self {
        let is_in = |country: &CountryCode| markets.contains(country);
        let before = || spread.previous_countries.iter().flatten();
        let inside = before().filter(|country| is_in(country)).count();
        let outside = before().count() - inside;
        Self {
            inside,
            outside,
            first_was_inside: before().next().map(is_in),
            needed: outside.div_ceil(HOME_SHARE),
            shared_device: super::rules::travels_with_its_owner(spread, &is_in),
        }
    }

    /// Whether the item is at home in its markets. Goods that come back after they were sold outside are not at home by
    /// one scan.
    #[must_use]
    pub fn is_at_home(&self) -> bool {
        (self.first_was_inside == Some(true) || self.shared_device) && self.inside >= self.needed
    }
}

/// How sure an assessment is, by the scans that are believed.
#[derive(Debug, Clone, PartialEq)]
pub struct Explained {
    /// Of duplicates.
    pub duplicate: Certainty,
    /// Of the market; `None` where none is set.
    pub sightings: Option<Sightings>,
    /// What settles the question of the market.
    pub diversion: Vec<Settle>,
    /// What settles whether the item was declared.
    pub unauthorized: Vec<Settle>,
}

impl Explained {
    /// Facts besides the findings.
    #[must_use]
    pub fn of(
        known: &Known,
        spread: &Spread,
        precision: Precision,
        (duplicate, diversion, unauthorized): (Certainty, &Finding, &Finding),
    ) -> Self {
        let sightings = (!known.markets.is_empty()).then(|| Sightings::of(&known.markets, spread));
        let of_market: &[Settle] = match diversion.matched {
            Match::Unknown if sightings.is_none() => &[Settle::SetMarkets],
            Match::Unknown => &[Settle::AskForPlace],
            Match::True if precision == Precision::Sensor => &[Settle::DecideCase],
            Match::True => &[Settle::AskForPlace, Settle::DecideCase],
            Match::False => &[],
        };
        let is_withdrawn = known.tags.iter().any(|tag| WITHDRAWN.contains(&tag.as_str()));
        let of_factory: &[Settle] = match unauthorized.matched {
            Match::True | Match::Unknown if !is_withdrawn => &[Settle::Commission],
            Match::True | Match::Unknown | Match::False => &[],
        };
        Self { duplicate, sightings, diversion: of_market.to_vec(), unauthorized: of_factory.to_vec() }
    }
}

/// A figure for display: with as few decimals as keep it on its side of the threshold.
fn shown(figure: f64, threshold: f64) -> f64 {
    let places = [1.0, 1_000.0].map(|scale| (figure * scale).round() / scale);
    places.into_iter().find(|one| (*one > threshold) == (figure > threshold)).unwrap_or(figure)
}

/// A figure in words: thousands apart, no more places than it has.
pub fn plain(figure: f64) -> String {
    let text = figure.to_string();
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut out = String::new();
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out + rest
}

#[cfg(test)]
mod tests;
