//! Deletes finished jobs and their logs after the retention time, in short transactions.

use shared::{id::JobId, time::UnixMillis};

use super::clear;
use crate::{
    error::ServiceError,
    service::JobState,
    store::{Ctx, job_logs, jobs},
};

/// Oldest jobs per query.
const WINDOW: u32 = 1_000;

/// Entries of a log that one transaction removes: some 300 bytes and two index rows each.
const LOG_STEP: u32 = 1_000;

/// Deletes jobs that ended before the retention time; returns how many.
///
/// # Errors
/// The database failed; what was removed stays removed.
pub async fn purge(state: &JobState) -> Result<u64, ServiceError> {
    let Some(kept) = state.kept else { return Ok(0) };
    let kept_ms = i64::try_from(kept.as_millis()).unwrap_or(i64::MAX);
    purge_before(state, UnixMillis(state.clock.now().0.saturating_sub(kept_ms))).await
}

/// Deletes jobs that ended before a time, with their logs and remaining input; returns how many. The actions that
/// they created stay.
///
/// # Errors
/// The database failed; what was removed stays removed.
pub async fn purge_before(state: &JobState, before: UnixMillis) -> Result<u64, ServiceError> {
    let mut removed = 0;
    loop {
        let mut conn = state.db.read().await?;
        let ended = jobs::list_ended(&mut conn, before, WINDOW).await?;
        drop(conn);
        if ended.is_empty() {
            return Ok(removed);
        }
        for (seq, id) in ended {
            clear(state, seq).await?;
            clear_log(state, id).await?;
            // Last: while the row exists, what is left of the job is found again.
            let mut tx = state.db.begin(&Ctx::default()).await?;
            removed += u64::from(jobs::delete(&mut tx, seq).await?);
            tx.commit().await?;
        }
    }
}

async fn clear_log(state: &JobState, id: JobId) -> Result<(), ServiceError> {
    loop {
        let mut tx = state.db.begin(&Ctx::default()).await?;
        let step = job_logs::clear(&mut tx, id, LOG_STEP).await?;
        tx.commit().await?;
        if step == 0 {
            return Ok(());
        }
    }
}
