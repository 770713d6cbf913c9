//! Pages by the `Accept-Language` that they answered, so that a value that came before is not parsed again.

use std::{
    hash::BuildHasher,
    sync::{
        Arc, Weak,
        atomic::{AtomicU8, Ordering::Relaxed},
    },
};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use foldhash::quality::RandomState;
use shared::{pages::Pages, problem::Code};

use crate::page::Kind;

/// Places for pages: some hundred values are common, and most domains show the same pages.
const PLACES: u64 = 1_024;
/// Most bytes of a value that is remembered; browsers send under 100.
const MAX_ACCEPTED: usize = 128;
/// Most bytes of a page that is remembered: all that have no logo. With [`PLACES`] it bounds the memory to 8 MiB.
const MAX_PAGE: usize = 8 << 10;
/// Other pages that want the place of one in vain, at most: fewer if it was asked for less often. So a sender of values that nobody
/// else sends does not push out those that many send.
const MAX_HITS: u8 = 15;

/// What decides about a page.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) code: Code,
    pub(crate) kind: Kind,
    /// `Accept-Language` as sent.
    pub(crate) accepted: &'a [u8],
    pub(crate) pages: Option<&'a Arc<Pages>>,
    pub(crate) shows_link: bool,
}

#[derive(Debug)]
struct Answer {
    code: Code,
    kind: Kind,
    accepted: Box<[u8]>,
    /// Keeps the address of the pages in memory, so that no others come to it, but not what they hold.
    pages: Option<Weak<Pages>>,
    shows_link: bool,
    page: Bytes,
    /// How often it was asked for, less the pages that wanted its place.
    hits: AtomicU8,
}

impl Answer {
    fn is_to(&self, asked: &Asked<'_>) -> bool {
        self.pages.as_ref().map(Weak::as_ptr) == asked.pages.map(Arc::as_ptr)
            && (self.code, self.kind, self.shows_link) == (asked.code, asked.kind, asked.shows_link)
            && *self.accepted == *asked.accepted
    }

    /// Whether its pages were replaced: then nobody asks for it any more.
    fn is_over(&self) -> bool {
        self.pages.as_ref().is_some_and(|pages| pages.strong_count() == 0)
    }
}

/// A table with one place for each hash: a later page takes the place of an earlier one that is not asked for. Reading it takes no
/// lock.
#[derive(Debug)]
pub(crate) struct Answered {
    places: Box<[ArcSwapOption<Answer>]>,
    hashes: RandomState,
}

impl Default for Answered {
    fn default() -> Self {
        let places = (0..PLACES).map(|_| ArcSwapOption::empty()).collect();
        Self { places, hashes: RandomState::default() }
    }
}

impl Answered {
    /// The page that was the answer before.
    pub(crate) fn find(&self, asked: &Asked<'_>) -> Option<Bytes> {
        let held: &Option<Arc<Answer>> = &self.place(asked)?.load();
        let answer = held.as_ref().filter(|answer| answer.is_to(asked))?;
        let hits = answer.hits.load(Relaxed);
        // Of a page that is asked for often it stays as it is, and so does its line in the caches of all processors.
        if hits < MAX_HITS {
            answer.hits.store(hits + 1, Relaxed);
        }
        Some(answer.page.clone())
    }

    /// Remembers a page, unless its place is that of one which is asked for.
    pub(crate) fn put(&self, asked: &Asked<'_>, page: &Bytes) {
        let Some(place) = self.place(asked).filter(|_| page.len() <= MAX_PAGE) else { return };
        let held: &Option<Arc<Answer>> = &place.load();
        if let Some(held) = held.as_ref().filter(|held| !held.is_over()) {
            let hits = held.hits.load(Relaxed);
            if hits > 0 {
                held.hits.store(hits - 1, Relaxed);
                return;
            }
        }
        let Asked { code, kind, accepted, pages, shows_link } = *asked;
        let (accepted, pages, hits) = (accepted.into(), pages.map(Arc::downgrade), AtomicU8::new(0));
        let page = page.clone();
        place.store(Some(Arc::new(Answer { code, kind, accepted, pages, shows_link, page, hits })));
    }

    /// The place of a page; `None` where the value is too long.
    fn place(&self, asked: &Asked<'_>) -> Option<&ArcSwapOption<Answer>> {
        if asked.accepted.len() > MAX_ACCEPTED {
            return None;
        }
        let Asked { code, kind, accepted, pages, .. } = *asked;
        let hash = self.hashes.hash_one((accepted, code, kind, pages.map(Arc::as_ptr)));
        self.places.get(usize::try_from(hash % PLACES).ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(accepted: &[u8]) -> Asked<'_> {
        Asked { code: Code::ShortIdUnknown, kind: Kind::Unknown, accepted, pages: None, shows_link: false }
    }

    #[test]
    fn values_that_come_once_push_out_none_that_come_often() {
        let (table, page) = (Answered::default(), Bytes::from_static(b"page"));
        let common = asked(b"de-DE,de;q=0.9");
        table.put(&common, &page);
        // Each time some are for its place.
        for round in 0..20 {
            for _ in 0..MAX_HITS {
                assert!(table.find(&common).is_some(), "{round}");
            }
            for number in 0..PLACES {
                table.put(&asked(format!("x{round}-{number}").as_bytes()), &page);
            }
        }
        // Nobody asks for it any more.
        for number in 0..50 * PLACES {
            table.put(&asked(format!("y{number}").as_bytes()), &page);
        }
        assert!(table.find(&common).is_none());
    }

    #[test]
    fn pages_that_were_replaced_keep_no_place() {
        let (table, page) = (Answered::default(), Bytes::from_static(b"page"));
        let (old, new) = (Arc::<Pages>::default(), Arc::<Pages>::default());
        for number in 0..4 * PLACES {
            let accepted = format!("x{number}");
            let asked = Asked { pages: Some(&old), ..asked(accepted.as_bytes()) };
            table.put(&asked, &page);
            for _ in 0..MAX_HITS {
                table.find(&asked);
            }
        }
        drop(old);
        let asked = Asked { pages: Some(&new), ..asked(b"de") };
        table.put(&asked, &page);
        assert!(table.find(&asked).is_some());
    }
}
