//! Operations: one function each, called by HTTP handlers and workers alike.
//!
//! Functions fail when the database does; their docs list other errors only.

pub use ::events::service::*;

pub mod backfill;
pub mod live_scans;
pub mod project_counts;
pub mod roll_ups;
pub mod rule_statistics;
pub mod scan_limits;
pub mod stats;
pub mod unknown_scans;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use shared::id::AccountId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use crate::domain::counted_scan::DeviceHasher;

/// Questions that are answered at the same moment; each may read up to 1,000,000 rows.
const ANSWERS: usize = 4;

/// What the operations on statistics need.
#[derive(Clone)]
pub struct StatisticsState {
    /// What every operation needs.
    pub core: Arc<Core>,
    /// The log of events, and the limits of streams.
    pub events: Arc<EventState>,
    /// Makes the hashes of devices.
    pub devices: DeviceHasher,
    reads: Arc<Reads>,
}

#[derive(Debug)]
struct Reads {
    all: Semaphore,
    by_account: Mutex<HashMap<AccountId, Arc<Semaphore>>>,
}

/// A permit to read for an answer.
pub(crate) struct ReadPermit<'a> {
    _all: SemaphorePermit<'a>,
    _own: OwnedSemaphorePermit,
}

impl StatisticsState {
    /// The state of a process.
    #[must_use]
    pub fn new(core: Arc<Core>, events: Arc<EventState>) -> Self {
        let devices = DeviceHasher::new(&core.secrets.scan_id);
        let reads = Reads { all: Semaphore::new(ANSWERS), by_account: Mutex::default() };
        Self { core, events, devices, reads: Arc::new(reads) }
    }

    /// Waits for a permit to read. An account has one, so that the others are served whatever it asks.
    pub(crate) async fn read_permit(&self, account: AccountId) -> Option<ReadPermit<'_>> {
        let own = {
            let mut table = self.reads.by_account.lock().unwrap_or_else(PoisonError::into_inner);
            // Drops permits that are neither held nor waited for.
            table.retain(|_, permits| Arc::strong_count(permits) > 1);
            table.entry(account).or_insert_with(|| Arc::new(Semaphore::new(1))).clone()
        };
        // They are never closed.
        let own = own.acquire_owned().await.ok()?;
        Some(ReadPermit { _all: self.reads.all.acquire().await.ok()?, _own: own })
    }
}

kernel::has_core!(StatisticsState, core);
