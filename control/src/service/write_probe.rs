//! Whether the database takes writes: a small real one now and then, for readiness.

use std::sync::atomic::{AtomicI64, Ordering::SeqCst};

use shared::time::UnixMillis;

use super::App;
use crate::store::{StoreError, write_probe};

/// Bytes of a probe, as of a small request: four pages of SQLite.
const FILLER: [u8; 16 << 10] = [0; 16 << 10];

/// What the last probe said.
#[derive(Debug, Default)]
pub struct WriteProbe {
    /// The first failure of an unbroken row of them; 0 while there is none.
    failing_since: AtomicI64,
}

impl WriteProbe {
    /// Since when writes fail; `None` while the database takes them.
    #[must_use]
    pub fn failing_since(&self) -> Option<UnixMillis> {
        Some(self.failing_since.load(SeqCst)).filter(|since| *since != 0).map(UnixMillis)
    }

    fn failed(&self, now: UnixMillis) -> bool {
        self.failing_since.compare_exchange(0, now.0.max(1), SeqCst, SeqCst).is_ok()
    }

    fn succeeded(&self) -> bool {
        self.failing_since.swap(0, SeqCst) != 0
    }
}

/// Writes once under `id`, which no other process has; gives whether the database took it.
///
/// A database that is busy is no fault: then others are writing.
pub async fn probe(app: &App, id: i64) -> bool {
    match write(app, id).await {
        Ok(()) => {
            if app.write_probe.succeeded() {
                tracing::info!("the database takes writes again");
            }
            true
        }
        Err(StoreError::Busy | StoreError::Timeout | StoreError::Stopped) => {
            app.write_probe.failing_since().is_none()
        }
        Err(error) => {
            if app.write_probe.failed(app.clock.now()) {
                tracing::error!(%error, "the database takes no writes: this process is not ready");
            }
            false
        }
    }
}

async fn write(app: &App, id: i64) -> Result<(), StoreError> {
    let mut tx = app.db.begin().await?;
    write_probe::write(&mut tx, id, app.clock.now(), &FILLER).await?;
    tx.commit().await
}

/// Deletes the rows of processes that are gone.
///
/// # Errors
/// The database failed.
pub async fn forget(app: &App, silence_ms: i64) -> Result<(), StoreError> {
    let mut tx = app.db.begin().await?;
    write_probe::forget(&mut tx, UnixMillis(app.clock.now().0 - silence_ms)).await?;
    tx.commit().await
}
