//! How much the countries of sessions count: a phone that was in two within a day makes no second one.

use std::collections::BTreeMap;

use countries::CountryCode;
use shared::time::UnixMillis;

use super::{
    super::{agent::AgentHash, spot::Spot},
    known,
};

/// A device that was in two countries within this time had a VPN or made a journey.
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// A session whose country is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Visit {
    agent: AgentHash,
    first: UnixMillis,
    last: UnixMillis,
    country: CountryCode,
}

impl Visit {
    pub(super) fn of(agent: AgentHash, (first, last): (UnixMillis, UnixMillis), spot: &Spot) -> Option<Self> {
        Some(Self { agent, first, last, country: spot.country? })
    }

    /// Whether the same device was in another country within a day of it.
    fn is_also(&self, other: &Self) -> bool {
        let gap = (other.first.0.saturating_sub(self.last.0)).max(self.first.0.saturating_sub(other.last.0));
        self.agent == other.agent && self.country != other.country && gap <= DAY_MS
    }
}

/// How much the countries of some sessions count: 2 each, and 1 where every session is of one phone that was in another
/// country within a day. It has a VPN, or its owner is on a journey.
pub(super) fn country_halves(visits: &[Visit], is_one_phone: impl Fn(AgentHash) -> bool) -> usize {
    let mut phones: BTreeMap<AgentHash, bool> = BTreeMap::new();
    let mut is_whole: BTreeMap<CountryCode, bool> = BTreeMap::new();
    for visit in visits {
        let whole = is_whole.entry(visit.country).or_default();
        let mut is_elsewhere = || {
            known(visit.agent).is_some()
                && visits.iter().any(|other| visit.is_also(other))
                && *phones.entry(visit.agent).or_insert_with(|| is_one_phone(visit.agent))
        };
        *whole = *whole || !is_elsewhere();
    }
    is_whole.values().map(|whole| 1 + usize::from(*whole)).sum()
}
