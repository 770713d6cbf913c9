//! Scans beyond the disk budget, added up per link and minute.
//!
//! Sums are written to the spool as records of their own, for which a sixteenth of the budget is reserved. A sum waits
//! for one minute, and longer while the disk accepts nothing. Waiting sums are also kept in the reserve, a preallocated
//! file from which the next start reads them, so that a kill loses no more of them than of single scans.

use std::{
    collections::HashMap,
    num::NonZeroU32,
    sync::Arc,
    time::{Duration, Instant},
};

use shared::{
    time::UnixMillis,
    user_agent::read_agent,
    wire::{
        scan::ScanRecord,
        spooled::{decode, split_frame},
    },
};

/// Milliseconds of a minute.
const MINUTE: i64 = 60_000;
/// Most sums at once: more links per minute than one edge serves while its disk is full; some 1 MiB.
const MOST: usize = 10_000;
/// How long scans are added up before their sums are written.
const WAIT: Duration = Duration::from_secs(60);
/// Time until sums are tried again that the disk did not take.
const RETRY: Duration = Duration::from_secs(5);

/// Link and minute.
type Place = (Arc<str>, Arc<str>, i64);

/// Sums of scans.
#[derive(Default)]
pub(super) struct Sums {
    open: HashMap<Place, u32>,
    /// When they are to be written; `None` if there are none.
    due: Option<Instant>,
    /// Whether anything changed since the last [`Self::take_changed`].
    is_changed: bool,
    parser: Option<woothee::parser::Parser>,
}

impl Sums {
    /// Reads sums that the reserve has; gives them and what follows them.
    pub(super) fn read<'a>(&self, mut content: &'a [u8]) -> (Vec<Sum>, &'a [u8]) {
        let mut sums = Vec::new();
        while let Some((payload, rest)) = split_frame(content) {
            sums.extend(decode(payload).and_then(|record| {
                Some(Sum {
                    at: record.at,
                    domain: record.domain,
                    folded: record.folded,
                    count: record.count?,
                })
            }));
            content = rest;
        }
        (sums, content)
    }

    /// Has [`Self::take_changed`] say so the next time.
    pub(super) fn change(&mut self) {
        self.is_changed = true;
    }

    /// Adds a scan; false if there is no room for another link, or it is a robot's, which sums exclude.
    pub(super) fn add(&mut self, record: &ScanRecord) -> bool {
        let minute = record.at.0.div_euclid(MINUTE);
        // Robots cannot be separated from a sum later, and they do not count in hits.
        let parser = self.parser.get_or_insert_with(woothee::parser::Parser::new);
        let by_agent = || read_agent(parser, record.user_agent.as_deref()).bot;
        if record.client.as_deref().map_or_else(by_agent, |client| client.bot) {
            return false;
        }
        let place = (record.domain.clone(), record.folded.clone(), minute);
        if !self.open.contains_key(&place) && self.open.len() >= MOST {
            return false;
        }
        let sum = self.open.entry(place).or_default();
        *sum = sum.saturating_add(1);
        self.is_changed = true;
        self.due.get_or_insert_with(|| Instant::now() + WAIT);
        true
    }

    /// Whether sums are to be written now.
    pub(super) fn are_due(&self) -> bool {
        self.due.is_some_and(|due| due <= Instant::now())
    }

    /// Takes them.
    pub(super) fn take(&mut self) -> Vec<Sum> {
        self.due = None;
        self.is_changed |= !self.open.is_empty();
        let sums = self.open.drain().filter_map(|((domain, folded, minute), count)| {
            Some(Sum { at: UnixMillis(minute * MINUTE), domain, folded, count: NonZeroU32::new(count)? })
        });
        sums.collect()
    }

    /// Shows each, without taking it.
    pub(super) fn iter(&self) -> impl Iterator<Item = Sum> {
        self.open.iter().filter_map(|((domain, folded, minute), count)| {
            Some(Sum {
                at: UnixMillis(minute * MINUTE),
                domain: domain.clone(),
                folded: folded.clone(),
                count: NonZeroU32::new(*count)?,
            })
        })
    }

    /// Whether anything changed since this was asked last.
    pub(super) fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.is_changed)
    }

    /// Takes back what could not be written.
    pub(super) fn put_back(&mut self, sums: &[Sum]) {
        for Sum { at, domain, folded, count } in sums {
            let place = (domain.clone(), folded.clone(), at.0.div_euclid(MINUTE));
            let sum = self.open.entry(place).or_default();
            *sum = sum.saturating_add(count.get());
            self.is_changed = true;
        }
        if !self.open.is_empty() {
            self.due = Some(Instant::now() + RETRY);
        }
    }
}

/// Scans of one link in one minute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) at: UnixMillis,
    pub(super) domain: Arc<str>,
    pub(super) folded: Arc<str>,
    pub(super) count: NonZeroU32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_wait_for_a_minute_and_for_disk_space() {
        let mut sums = Sums::default();
        let phone =
            "Mozilla/5.0 (iPhone; CPU iPhone OS 17_0 like Mac OS X) AppleWebKit/605.1.15 Safari/604.1";
        let scan = |at: i64| ScanRecord {
            at: UnixMillis(at),
            domain: "tn.gg".into(),
            folded: "ABC".into(),
            ip: std::net::Ipv4Addr::LOCALHOST.into(),
            user_agent: Some(phone.into()),
            referer: None,
            language: None,
            entry_url: "https://tn.gg/ABC".into(),
            rule: None,
            count: None,
            client: None,
            digital_link: None,
        };
        assert!(sums.add(&scan(1)) && sums.add(&scan(2)) && sums.add(&scan(MINUTE)));
        for agent in [None, Some("Googlebot/2.1 (+http://www.google.com/bot.html)")] {
            assert!(!sums.add(&ScanRecord { user_agent: agent.map(Into::into), ..scan(1) }), "{agent:?}");
        }
        assert!(!sums.are_due());
        sums.due = Some(Instant::now());
        assert!(sums.are_due());
        let taken = sums.take();
        assert!(taken.len() == 2 && !sums.are_due() && sums.take().is_empty());
        sums.put_back(&taken);
        assert!(sums.add(&scan(3)) && sums.due > Some(Instant::now()));
        let counts: u32 = sums.take().iter().map(|sum| sum.count.get()).sum();
        assert_eq!(counts, 4, "what was put back is not lost");
    }
}
