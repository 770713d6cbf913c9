//! Deletes finished jobs and their logs, by request and after the retention time, in short transactions.

use background::retention;
use futures_util::FutureExt;
use serde_json::json;
use shared::{id::JobId, time::UnixMillis};
use tracing::instrument;

use super::{KIND, admitted, clear, not_found, parse};
use crate::{
    domain::permission::{Subject::Jobs, Verb},
    error::{JobsError, ServiceError},
    service::{
        JobState,
        access::{Caller, require},
    },
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
    match retention::limit(state.clock.now(), state.kept) {
        None => Ok(0),
        Some(before) => purge_before(state, before).await,
    }
}

/// Deletes jobs that ended before a time, with their logs and remaining input; returns how many. The actions that
/// they created stay.
///
/// # Errors
/// The database failed; what was removed stays removed.
pub async fn purge_before(state: &JobState, before: UnixMillis) -> Result<u64, ServiceError> {
    retention::remove_each(
        &state.db,
        |conn| jobs::list_ended(conn, before, WINDOW).boxed(),
        |(seq, id): (i64, JobId)| {
            async move {
                clear(state, seq).await?;
                clear_log(state, id).await?;
                // Last: while the row exists, what is left of the job is found again.
                let mut tx = state.db.begin(&Ctx::default()).await?;
                let is_removed = jobs::delete(&mut tx, seq).await?;
                tx.commit().await?;
                Ok(is_removed)
            }
            .boxed()
        },
    )
    .await
}

/// Deletes a job that has ended, with its log and remaining input. The actions that it created stay.
///
/// # Errors
/// It does not exist (404) or has not ended (409).
#[instrument(skip_all)]
pub async fn delete(state: &JobState, caller: &Caller, id: &str) -> Result<(), ServiceError> {
    let grant = require(caller, Verb::Delete, Jobs)?;
    let parsed = parse(id)?;
    let mut conn = state.db.read().await?;
    let job = admitted(jobs::find(&mut conn, caller.account, parsed).await?, &grant, id)?;
    drop(conn);
    if job.completed_at.is_none() {
        return Err(JobsError::NotEnded { id: parsed, status: job.status.as_str() }.into());
    }
    // In steps, because a log may be long. Who is cut off asks again, and the row is still there.
    clear(state, job.seq).await?;
    clear_log(state, job.id).await?;
    let mut tx = state.db.begin(&caller.ctx).await?;
    if !jobs::delete(&mut tx, job.seq).await? {
        return Err(not_found(id));
    }
    tx.note(caller.account, (KIND, parsed.as_str()), || (Some(json!({"status": job.status.as_str()})), None));
    tx.commit().await?;
    Ok(())
}

async fn clear_log(state: &JobState, id: JobId) -> Result<(), ServiceError> {
    retention::clear(&state.db, LOG_STEP, |tx| job_logs::clear(tx, id, LOG_STEP).boxed()).await?;
    Ok(())
}
