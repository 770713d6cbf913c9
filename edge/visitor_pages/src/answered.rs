//! Pages by the `Accept-Language` that they answered, so that a value that came before is not parsed again.

use std::{
    hash::BuildHasher,
    sync::{Arc, Weak},
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
}

impl Answer {
    fn is_to(&self, asked: &Asked<'_>) -> bool {
        self.pages.as_ref().map(Weak::as_ptr) == asked.pages.map(Arc::as_ptr)
            && (self.code, self.kind, self.shows_link) == (asked.code, asked.kind, asked.shows_link)
            && *self.accepted == *asked.accepted
    }
}

/// A table with one place for each hash: a later page takes the place of an earlier one. Reading it takes no lock.
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
        Some(answer.page.clone())
    }

    /// Remembers a page.
    pub(crate) fn put(&self, asked: &Asked<'_>, page: &Bytes) {
        let Some(place) = self.place(asked).filter(|_| page.len() <= MAX_PAGE) else { return };
        let Asked { code, kind, accepted, pages, shows_link } = *asked;
        let (accepted, pages) = (accepted.into(), pages.map(Arc::downgrade));
        place.store(Some(Arc::new(Answer { code, kind, accepted, pages, shows_link, page: page.clone() })));
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
