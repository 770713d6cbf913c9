//! Tests with a small write every few seconds whether the database accepts writes, for readiness.

use std::{
    sync::atomic::{AtomicBool, AtomicI64, Ordering::SeqCst},
    time::Duration,
};

use kernel::store::{Ctx, StoreError, write_probe};
use shared::time::UnixMillis;

use crate::state::ApiState;

/// Bytes of a probe, as of a small request: four pages of SQLite.
const FILLER: [u8; 16 << 10] = [0; 16 << 10];

/// Longest time of a probe: twice that of a statement. A commit that takes longer hangs.
pub const LIMIT: Duration = Duration::from_secs(10);

/// The result of the last probe.
#[derive(Debug, Default)]
pub struct WriteProbe {
    /// The first failure of an unbroken series; 0 while there is none.
    failing_since: AtomicI64,
    /// Whether the last probe ended without an answer.
    in_doubt: AtomicBool,
}

impl WriteProbe {
    /// Since when writes fail; `None` while the database takes them.
    #[must_use]
    pub fn failing_since(&self) -> Option<UnixMillis> {
        Some(self.failing_since.load(SeqCst)).filter(|since| *since != 0).map(UnixMillis)
    }

    /// A probe ended without an answer; returns whether it is the second in a row.
    fn doubted(&self) -> bool {
        self.in_doubt.swap(true, SeqCst)
    }

    fn failed(&self, now: UnixMillis) -> bool {
        self.failing_since.compare_exchange(0, now.0.max(1), SeqCst, SeqCst).is_ok()
    }

    fn succeeded(&self) -> bool {
        self.in_doubt.store(false, SeqCst);
        self.failing_since.swap(0, SeqCst) != 0
    }
}

/// Writes once under `id`, which no other process has, within `limit`; returns whether the database took it.
///
/// A database that is busy once is no fault: then others are writing. Busy, or without an answer, twice in a row means
/// that it takes no writes.
pub async fn probe(app: &ApiState, id: i64, limit: Duration) -> bool {
    let written = tokio::time::timeout(limit, write(app, id)).await.unwrap_or(Err(StoreError::Timeout));
    match written {
        Ok(()) => {
            if app.write_probe.succeeded() {
                tracing::info!("the database accepts writes again");
            }
            true
        }
        Err(StoreError::Stopped) => app.write_probe.failing_since().is_none(),
        Err(StoreError::Busy | StoreError::Timeout) if !app.write_probe.doubted() => {
            app.write_probe.failing_since().is_none()
        }
        Err(error) => {
            if app.write_probe.failed(app.core.clock.now()) {
                tracing::error!(%error, "the database accepts no writes: this process is not ready");
            }
            false
        }
    }
}

async fn write(app: &ApiState, id: i64) -> Result<(), StoreError> {
    let mut tx = app.core.db.begin(&Ctx::default()).await?;
    write_probe::write(&mut tx, id, app.core.clock.now(), &FILLER).await?;
    tx.commit().await
}

/// Deletes the rows of processes that are gone.
pub async fn forget(app: &ApiState, silence_ms: i64) -> Result<(), StoreError> {
    let mut tx = app.core.db.begin(&Ctx::default()).await?;
    write_probe::forget(&mut tx, UnixMillis(app.core.clock.now().0 - silence_ms)).await?;
    tx.commit().await
}
