//! Housekeeping: bounds the change log, stored responses and other histories.

use std::{sync::Arc, time::Duration};

use ::jobs::service::jobs;
use applications::service::users;
use assessment::service::assessment::displays;
use catalog::service::{files, properties};
use events::store::webhook_messages;
use kernel::store::{Ctx, StoreError, database, idempotency};
use link_changes::service::purge as changed_links;
use oidc::service::sign_in;
use printing::service::purge as print_orders;
use redirects::service::tasks;
use shared::time::UnixMillis;
use signin::service::throttles;
use statistics::service::{roll_ups, unknown_scans};
use tenants::service::{attempts, audit};
use tokio_util::sync::CancellationToken;

use super::scan_retention::{self, Removed};
use crate::state::ApiState;

/// Time between two runs.
const PERIOD: Duration = Duration::from_secs(15 * 60);

/// Kept answers that one transaction removes: those of imports have 100 KiB each.
const PURGE_STEP: u32 = 200;

/// Messages of webhooks that one transaction removes.
const MESSAGES_STEP: u32 = 1_000;

/// How long what webhooks were sent is kept, and what waits for one that is paused.
const MESSAGES_MS: i64 = 3 * 24 * 60 * 60 * 1_000;

/// Cleans up every 15 minutes until `shutdown`.
pub async fn run(app: Arc<ApiState>, shutdown: CancellationToken) {
    let mut ticks = tokio::time::interval(PERIOD);
    let mut displays_after = String::new();
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = shutdown.cancelled() => return,
        }
        match size(&app).await {
            Ok(bytes) => app.metrics.database_is(bytes),
            Err(error) => tracing::warn!(%error, "the size of the database is not known"),
        }
        match scan_retention::run(&app).await {
            Ok(Removed { scans: 0, months: 0 }) => {}
            Ok(Removed { scans, months }) => tracing::info!(scans, months, "deleted old scans"),
            Err(error) => tracing::warn!(%error, "deleting old scans is left for later"),
        }
        log_deleted(files::purge(&app.catalog).await, "blobs without a file");
        match clean(&app).await {
            Ok((revisions, answers)) if revisions + answers > 0 => {
                tracing::info!(revisions, answers, "deleted expired rows");
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "upkeep failed; retried later"),
        }
        match displays::learn_unknown(&app.assessment, &mut displays_after).await {
            Ok(0) => {}
            Ok(pieces) => tracing::info!(pieces, "learned where display pieces are"),
            Err(error) => tracing::warn!(%error, "where display pieces are is looked for later"),
        }
        log_deleted(audit::purge(&app.core).await, "old entries of the audit trail");
        log_deleted(attempts::purge(&app.core).await, "old counts of attempts");
        log_deleted(users::purge(&app.core).await, "expired codes and unconfirmed registrations");
        log_deleted(
            throttles::purge(&app.sign_in).await,
            "tries, codes and sessions of operators that are over",
        );
        log_deleted(sign_in::purge(&app.oidc).await, "states of sign-ins that are over");
        log_deleted(roll_ups::purge_devices(&app.core).await, "hashes of devices of days that are over");
        log_deleted(roll_ups::purge(&app.core).await, "old roll-ups of scans by the hour and by link");
        log_deleted(unknown_scans::purge(&app.core).await, "old counts of requests for unknown ids");
        app.limiter.forget();
        log_deleted(jobs::sweep(&app.jobs).await, "remaining input of finished jobs");
        log_deleted(jobs::purge(&app.jobs).await, "old jobs");
        log_deleted(print_orders::expire(&app.printing).await, "files of print orders");
        log_deleted(print_orders::purge(&app.printing).await, "old print orders");
        match changed_links::give_up(&app.link_changes).await {
            Ok(0) => {}
            Ok(changes) => tracing::info!(changes, "cancelled changes of links that nobody approved"),
            Err(error) => {
                tracing::warn!(%error, "cancelling changes of links that nobody approved is left for later")
            }
        }
        log_deleted(changed_links::expire(&app.link_changes).await, "former values of changed links");
        log_deleted(changed_links::purge(&app.link_changes).await, "old changes of links");
        match tasks::resume(&app.redirects).await {
            Ok(0) => {}
            Ok(tasks) => tracing::info!(tasks, "resumed tasks of batches"),
            Err(error) => tracing::warn!(%error, "resuming tasks of batches is left for later"),
        }
        log_deleted(properties::sweep(&app.core).await, "points of deleted properties");
    }
}

/// Logs how many rows of something were deleted; what fails is tried again in the next run.
fn log_deleted(done: Result<u64, impl std::fmt::Display>, what: &str) {
    match done {
        Ok(0) => {}
        Ok(count) => tracing::info!(count, "deleted {what}"),
        Err(error) => tracing::warn!(%error, "deleting {what} is left for later"),
    }
}

/// Bytes that the database takes on its disk.
pub async fn size(app: &ApiState) -> Result<i64, StoreError> {
    let mut tx = app.core.db.begin(&Ctx::default()).await?;
    let bytes = database::size(&mut tx).await?;
    tx.commit().await?;
    Ok(bytes)
}

/// One run; returns how many revisions and stored responses were deleted.
///
/// # Errors
/// The database failed; what was removed stays removed.
pub async fn clean(app: &ApiState) -> Result<(u64, u64), StoreError> {
    let revisions = app.hub.compact(&*app.core.clock).await?;
    let mut answers = 0;
    loop {
        let mut tx = app.core.db.begin(&Ctx::default()).await?;
        let step = idempotency::purge(&mut tx, app.core.clock.now().0, PURGE_STEP).await?;
        tx.commit().await?;
        answers += step;
        if step == 0 {
            break;
        }
    }
    loop {
        let before = UnixMillis(app.core.clock.now().0 - MESSAGES_MS);
        let mut tx = app.core.db.begin(&Ctx::default()).await?;
        let (step, pending) = webhook_messages::purge(&mut tx, before, MESSAGES_STEP).await?;
        tx.commit().await?;
        app.events.webhooks.metrics.expired.inc_by(pending);
        if step == 0 {
            return Ok((revisions, answers));
        }
    }
}
