//! Where the edge stands with control, as other tasks see it.

use std::{
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering::SeqCst},
    },
    time::Duration,
};

use shared::time::{Clock, UnixMillis};
use tokio::time::Instant;

use crate::backing::{Backing, BackingStatus};

shared::words! {
    /// Where an edge stands with control; it serves in every state.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum State {
        /// No contact since the start.
        Boot = "BOOT",
        /// An attempt is under way.
        Connecting = "CONNECTING",
        /// Connected, not yet at the head.
        Sync = "SYNC",
        /// Everything up to the last heartbeat is applied.
        Live = "LIVE",
        /// Connected, but silent for a second, or resyncing after a gap.
        Lagging = "LAGGING",
        /// Was live; control is unreachable.
        Stale = "STALE",
    }
}

/// The state as other tasks see it.
#[derive(Debug, Default)]
pub(crate) struct SyncStatus {
    state: AtomicU8,
    since: AtomicI64,
    was_live: AtomicBool,
    pub(super) head: AtomicU64,
    /// Where it began without control: an index into [`BOOTS`].
    boot: AtomicU8,
    backing: OnceLock<Probe>,
    /// When a heartbeat last confirmed that everything is applied; monotonic, because the clock may jump.
    live_at: Mutex<Option<Instant>>,
}

/// Asks how the backing stands.
struct Probe(Box<dyn Fn() -> BackingStatus + Send + Sync>);

shared::opaque!(Probe);

/// Where an edge began without control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Boot {
    /// From its own disk.
    Disk = 1,
    /// From domains and rules in the view, with an empty cache.
    View = 2,
}

/// Names of a [`Boot`], by its number.
const BOOTS: [Option<&str>; 3] = [None, Some("disk"), Some("view")];

impl SyncStatus {
    /// The state, and since when.
    pub(crate) fn state(&self) -> (State, UnixMillis) {
        let index = usize::from(self.state.load(SeqCst));
        (State::ALL.get(index).copied().unwrap_or(State::Boot), UnixMillis(self.since.load(SeqCst)))
    }

    /// Whether the edge was live once: ready to serve, and stays so when control is gone.
    pub(crate) fn is_ready(&self) -> bool {
        self.was_live.load(SeqCst)
    }

    /// Asks the backing how it stands from here on.
    pub(crate) fn watch<B: Backing>(&self, backing: Arc<B>) {
        // Once for an edge.
        let _ = self.backing.set(Probe(Box::new(move || backing.status())));
    }

    /// How the backing stands.
    pub(crate) fn backing(&self) -> BackingStatus {
        self.backing.get().map(|probe| probe.0()).unwrap_or_default()
    }

    /// Where the edge began without control, until it is live.
    pub(crate) fn boot(&self) -> Option<&'static str> {
        BOOTS.get(usize::from(self.boot.load(SeqCst))).copied().flatten()
    }

    /// The edge begins without control: it serves, and is stale.
    pub(crate) fn begin(&self, boot: Boot, clock: &dyn Clock) {
        self.boot.store(boot as u8, SeqCst);
        self.was_live.store(true, SeqCst);
        self.set(State::Stale, clock);
    }

    /// The newest revision that control announced.
    pub(crate) fn head(&self) -> u64 {
        self.head.load(SeqCst)
    }

    /// How long ago everything was applied that control had; `None` before the first such moment.
    pub(crate) fn behind(&self) -> Option<Duration> {
        self.live_at.lock().unwrap_or_else(PoisonError::into_inner).map(|at| at.elapsed())
    }

    /// Enters a state.
    pub(super) fn set(&self, state: State, clock: &dyn Clock) {
        if self.state.swap(state as u8, SeqCst) != state as u8 {
            self.since.store(clock.now().0, SeqCst);
            tracing::info!(state = state.as_str(), "stream");
        }
        if state == State::Live {
            self.boot.store(0, SeqCst);
            self.was_live.store(true, SeqCst);
            *self.live_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        }
    }
}
