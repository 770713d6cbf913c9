//! Time in whole milliseconds since 1970, read from a [`Clock`].

use std::sync::atomic::{AtomicI64, Ordering};

use serde::{Deserialize, Serialize};

/// Milliseconds since 1970-01-01T00:00:00Z; may be negative.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct UnixMillis(pub i64);

/// Where the time comes from; the system's clock lives in the binaries.
pub trait Clock: Send + Sync + 'static {
    /// The time now.
    fn now(&self) -> UnixMillis;
}

impl<C: Clock + ?Sized> Clock for std::sync::Arc<C> {
    fn now(&self) -> UnixMillis {
        (**self).now()
    }
}

/// A clock that stands still until it is set: for tests and simulations.
#[derive(Debug, Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    /// A clock that shows `now`.
    #[must_use]
    pub fn new(now: UnixMillis) -> Self {
        Self(AtomicI64::new(now.0))
    }

    /// Sets the time, forwards or backwards.
    pub fn set(&self, now: UnixMillis) {
        self.0.store(now.0, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> UnixMillis {
        UnixMillis(self.0.load(Ordering::SeqCst))
    }
}
