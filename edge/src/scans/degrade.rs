//! Scans beyond the disk budget, added up for each link and minute (design: push, 6).
//!
//! Their sums go into the spool as records of their own, for which a sixteenth of the budget is kept back. A
//! sum stays in memory until its minute is over: a kill loses at most that.

use std::{collections::HashMap, num::NonZeroU32, sync::Arc};

use shared::{
    time::UnixMillis,
    wire::scan::{ScanRecord, is_bot},
};

/// Milliseconds of a minute.
const MINUTE: i64 = 60_000;
/// Sums kept at once: more links a minute than one edge serves while its disk is full for long; some 1 MiB.
const MOST: usize = 10_000;

/// Link and minute.
type Place = (Arc<str>, Arc<str>, i64);

/// Sums of scans.
#[derive(Default)]
pub(super) struct Sums {
    open: HashMap<Place, u32>,
    newest: i64,
    parser: Option<woothee::parser::Parser>,
}

impl Sums {
    /// Adds a scan; false when there is no room for another link.
    pub(super) fn add(&mut self, record: &ScanRecord) -> bool {
        let minute = record.at.0.div_euclid(MINUTE);
        self.newest = self.newest.max(minute);
        // A sum cannot tell people from robots later, and robots do not count in hits.
        let parser = self.parser.get_or_insert_with(woothee::parser::Parser::new);
        let agent = record.user_agent.as_deref();
        let is_crawler = |agent: &str| parser.parse(agent).is_some_and(|found| found.category == "crawler");
        if agent.is_none_or(|agent| is_bot(agent) || is_crawler(agent)) {
            return true;
        }
        let place = (record.domain.clone(), record.folded.clone(), minute);
        if !self.open.contains_key(&place) && self.open.len() >= MOST {
            return false;
        }
        let sum = self.open.entry(place).or_default();
        *sum = sum.saturating_add(1);
        true
    }

    /// Takes the sums of minutes that are over, or all of them.
    pub(super) fn take(&mut self, all: bool) -> Vec<Sum> {
        let newest = self.newest;
        let over: Vec<Place> =
            self.open.keys().filter(|(_, _, minute)| all || *minute < newest).cloned().collect();
        let sums = over.into_iter().filter_map(|place| {
            let count = NonZeroU32::new(self.open.remove(&place)?)?;
            let (domain, folded, minute) = place;
            Some(Sum { at: UnixMillis(minute * MINUTE), domain, folded, count })
        });
        sums.collect()
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
