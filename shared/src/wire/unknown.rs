//! Requests for short ids that do not exist, added up by an edge: who guesses ids, or prints some that nobody issued.

use std::collections::BTreeMap;

use ipnet::{IpNet, Ipv4Net};
use serde::{Deserialize, Serialize};

/// Most counts in a report; what is beyond is counted without its network.
pub const MAX_COUNTS: usize = 1_000;

/// Most counts that an edge holds until the next report, and so most memory that somebody who guesses can take: some
/// 500 KiB. Counts without a network take as many entries again, one for each domain and hour.
pub const MAX_HELD: usize = 4_096;

/// Milliseconds of an hour.
const HOUR_MS: i64 = 60 * 60 * 1_000;

/// What is counted apart: the hour, the domain and the network.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct UnknownKey {
    /// The hour, counted from 1970.
    pub hour: i64,
    /// Host of the short domain.
    pub domain: Box<str>,
    /// See [`network_of`](crate::networks::network_of); `0.0.0.0/0` stands for any others.
    pub network: IpNet,
}

/// How many requests there were.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnknownCount {
    /// Of what.
    #[serde(flatten)]
    pub key: UnknownKey,
    /// How many.
    pub requests: u32,
}

/// What an edge counted since its last report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnknownReport {
    /// Name of the edge.
    pub edge: Box<str>,
    /// Which start of the edge.
    pub boot: i64,
    /// The number of the report; it is sent under it until it is answered, and counted once.
    pub number: i64,
    /// At most [`MAX_COUNTS`], each key once.
    pub counts: Vec<UnknownCount>,
}

/// Counts of an edge, within bounds.
#[derive(Debug, Default)]
pub struct UnknownCounts(BTreeMap<UnknownKey, u32>);

impl UnknownCounts {
    /// Counts one request from a network.
    pub fn add(&mut self, at_ms: i64, domain: &str, network: IpNet) {
        let hour = at_ms.div_euclid(HOUR_MS);
        self.put(UnknownKey { hour, domain: domain.into(), network }, 1, MAX_HELD);
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What fits into a report, and nothing is left: the networks with most requests, and the others together.
    #[must_use]
    pub fn take(&mut self) -> Vec<UnknownCount> {
        let mut all: Vec<(UnknownKey, u32)> = std::mem::take(&mut self.0).into_iter().collect();
        all.sort_by(|(_, one), (_, other)| other.cmp(one));
        let mut kept = Self::default();
        for (key, requests) in all {
            kept.put(key, requests, MAX_COUNTS / 2);
        }
        // Without networks there are as many keys as hours and domains: those beyond the report are left out.
        let counts = kept.0.into_iter().take(MAX_COUNTS);
        counts.map(|(key, requests)| UnknownCount { key, requests }).collect()
    }

    fn put(&mut self, key: UnknownKey, requests: u32, most: usize) {
        let key = if self.0.len() < most || self.0.contains_key(&key) {
            key
        } else {
            UnknownKey { network: anywhere(), ..key }
        };
        if self.0.len() < most.saturating_mul(2) || self.0.contains_key(&key) {
            let count = self.0.entry(key).or_default();
            *count = count.saturating_add(requests);
        }
    }
}

/// Stands for all networks that are not counted apart.
#[must_use]
pub fn anywhere() -> IpNet {
    IpNet::V4(Ipv4Net::default())
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::networks::network_of;

    #[test]
    fn any_network_is_written_as_zeros() {
        assert_eq!(anywhere().to_string(), "0.0.0.0/0");
    }

    #[test]
    fn counts_are_bounded_and_none_is_lost() {
        let mut counts = UnknownCounts::default();
        for n in 0..10_000_u32 {
            counts.add(5 * HOUR_MS, "tn.gg", network_of(Ipv4Addr::from_bits(n << 8).into()));
        }
        for _ in 0..7 {
            counts.add(5 * HOUR_MS, "tn.gg", network_of(Ipv4Addr::from_bits(9_999 << 8).into()));
        }
        assert!(counts.0.len() <= MAX_HELD + 1, "{}", counts.0.len());
        let report = counts.take();
        assert!(report.len() <= MAX_COUNTS, "{}", report.len());
        assert_eq!(report.iter().map(|count| count.requests).sum::<u32>(), 10_007);
        assert!(report.iter().any(|count| count.key.network == anywhere()));
        assert!(counts.is_empty() && counts.take().is_empty());
    }

    #[test]
    fn the_most_frequent_networks_keep_their_own_count() {
        let mut counts = UnknownCounts::default();
        for n in 0..2_000_u32 {
            counts.add(0, "tn.gg", network_of(Ipv4Addr::from_bits(n << 8).into()));
        }
        (0..3).for_each(|_| counts.add(0, "tn.gg", network_of([0, 0, 5, 1].into())));
        let report = counts.take();
        let own = report.iter().find(|count| count.key.network.to_string() == "0.0.5.0/24").unwrap();
        assert_eq!((own.requests, own.key.hour), (4, 0));
    }

    #[test]
    fn a_report_is_read_back() {
        let mut counts = UnknownCounts::default();
        counts.add(HOUR_MS, "tn.gg", network_of([192, 0, 2, 7].into()));
        let report = UnknownReport { edge: "e1".into(), boot: 3, number: 4, counts: counts.take() };
        let text = serde_json::to_string(&report).unwrap();
        assert_eq!(
            text,
            r#"{"edge":"e1","boot":3,"number":4,"counts":[{"hour":1,"domain":"tn.gg","network":"192.0.2.0/24","requests":1}]}"#
        );
        assert_eq!(serde_json::from_str::<UnknownReport>(&text).unwrap(), report);
    }
}
