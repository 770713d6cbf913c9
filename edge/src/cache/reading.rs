//! The full replica as seen by the tasks that load it from control and save it to disk.

use std::sync::Arc;

use shared::{
    redirect::RedirectKey,
    wire::{
        links::LinksPage,
        stream::{Epoch, Rev},
    },
};

use super::{EdgeCache, PageFit, generation::Generation};
use replica::{Full, Table};

/// Links that are being read, page by page.
#[derive(Debug)]
pub(crate) struct Reading {
    /// The history that all pages must be of.
    pub(crate) epoch: Epoch,
    full: Arc<Full>,
    generation: Arc<Generation>,
}

impl Reading {
    /// The pages that are still missing.
    pub(super) fn of(generation: Arc<Generation>) -> Option<Self> {
        let full = generation.full().filter(|full| !full.is_read())?;
        let epoch = generation.epoch()?.clone();
        Some(Self { epoch, full, generation })
    }

    /// Takes a page of a domain.
    pub(crate) fn take(&self, domain: &str, page: &LinksPage) -> PageFit {
        self.generation.take_page(&self.full, domain, page)
    }

    /// Every page is in.
    pub(crate) fn end(self) {
        self.generation.end_pages(&self.full);
    }

    /// Whether these are the links that will be held; others are begun after a cut.
    pub(crate) fn is_current(&self, cache: &EdgeCache) -> bool {
        cache.generation.load().full().is_some_and(|full| Arc::ptr_eq(&full, &self.full))
    }
}

/// Every link, at `applied` or later: parts of it are as new as the last page, which events may not have reached yet,
/// for example if the stream ended right after the pages were read.
#[derive(Debug)]
pub(crate) struct Whole {
    epoch: Epoch,
    applied: Rev,
    full: Arc<Full>,
    generation: Arc<Generation>,
}

impl Whole {
    /// What may be kept.
    pub(super) fn of(generation: Arc<Generation>) -> Option<Self> {
        // In this order: the links are at least as new as `applied`.
        let applied = generation.applied();
        let full = generation.full().filter(|full| full.is_read() && !full.is_doubted())?;
        let epoch = generation.epoch()?.clone();
        Some(Self { epoch, applied, full, generation })
    }

    /// The history.
    pub(crate) fn epoch(&self) -> &Epoch {
        &self.epoch
    }

    /// Everything up to here is in the links.
    pub(crate) fn applied(&self) -> Rev {
        self.applied
    }

    /// The links.
    pub(crate) fn table(&self) -> &Table {
        self.full.table()
    }

    /// A revision that nothing which was copied of the links before is newer than, and the keys that are not among
    /// them for other reasons than that they are absent.
    pub(crate) fn last(&self) -> (Rev, Vec<RedirectKey>) {
        (self.generation.newest().max(self.full.newest_part()), self.full.list_unfit())
    }
}
