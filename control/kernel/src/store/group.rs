//! What requests that share a transaction of the writer write together at its end, and read once.

use std::sync::Arc;

use serde_json::Value;
use shared::{short_url::ShortDomain, wire::stream::Rev};

use super::{
    StoreError,
    events::NewEvent,
    savepoints::{Marked, Marks},
};

/// An entry of the change log: its revision, its time in milliseconds since 1970, and the change.
pub type NewChange = (Rev, i64, Value);

/// The state of a transaction that holds the order of changes, so that nobody else takes revisions or changes short domains.
#[derive(Debug, Default)]
pub struct Group {
    /// The head of the change log as it is stored.
    head: Rev,
    taken: Marked<u64>,
    changes: Marked<NewChange>,
    pub(super) events: Marked<NewEvent>,
    /// The short domains of all accounts, once a request has read them.
    pub domains: Option<Arc<[ShortDomain]>>,
}

impl Group {
    /// Of a transaction that has locked the change log at `head`.
    pub fn new(head: Rev) -> Self {
        Self { head, ..Self::default() }
    }

    /// The head of the change log behind the revisions that were taken.
    pub fn head(&self) -> Rev {
        self.head + self.taken.items().iter().sum::<Rev>()
    }

    /// Takes `count` revisions; the first of them comes back.
    pub fn take_revs(&mut self, count: u64) -> Rev {
        let first = self.head() + 1;
        self.taken.extend([count]);
        first
    }

    /// Adds entries of the change log.
    pub fn append(&mut self, changes: impl IntoIterator<Item = NewChange>) {
        self.changes.extend(changes);
    }

    /// Takes what is to be stored of the change log: its head, and its new entries.
    pub fn take_changes(&mut self) -> (Rev, Vec<NewChange>) {
        self.head = self.head();
        self.taken.take();
        (self.head, self.changes.take())
    }

    /// That everything of the change log was taken to be stored.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let is_done = self.taken.items().is_empty() && self.changes.items().is_empty();
        if is_done { Ok(()) } else { Err(StoreError::Row("changes that are not in the log".to_owned())) }
    }

    pub(super) fn lists(&mut self) -> [&mut dyn Marks; 3] {
        [&mut self.taken, &mut self.changes, &mut self.events]
    }
}
