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
        match files::purge(&app.catalog).await {
            Ok(blobs) if blobs > 0 => tracing::info!(blobs, "deleted blobs without a file"),
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "blobs were not deleted; retried later"),
        }
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
        match audit::purge(&app.core).await {
            Ok(0) => {}
            Ok(entries) => tracing::info!(entries, "deleted old entries of the audit trail"),
            Err(error) => tracing::warn!(%error, "deleting old entries of the audit trail is left for later"),
        }
        match attempts::purge(&app.core).await {
            Ok(0) => {}
            Ok(counts) => tracing::info!(counts, "deleted old counts of attempts"),
            Err(error) => tracing::warn!(%error, "deleting old counts of attempts is left for later"),
        }
        match users::purge(&app.core).await {
            Ok(0) => {}
            Ok(rows) => tracing::info!(rows, "deleted expired codes and unconfirmed registrations"),
            Err(error) => tracing::warn!(%error, "deleting expired codes is left for later"),
        }
        match throttles::purge(&app.sign_in).await {
            Ok(0) => {}
            Ok(rows) => tracing::info!(rows, "deleted tries, codes and sessions of operators that are over"),
            Err(error) => {
                tracing::warn!(%error, "deleting tries and sessions of operators is left for later")
            }
        }
        match sign_in::purge(&app.oidc).await {
            Ok(0) => {}
            Ok(rows) => tracing::info!(rows, "deleted states of sign-ins that are over"),
            Err(error) => tracing::warn!(%error, "deleting states of sign-ins is left for later"),
        }
        match roll_ups::purge_devices(&app.core).await {
            Ok(0) => {}
            Ok(rows) => tracing::info!(rows, "deleted hashes of devices of days that are over"),
            Err(error) => tracing::warn!(%error, "deleting hashes of devices is left for later"),
        }
        match roll_ups::purge(&app.core).await {
            Ok(0) => {}
            Ok(rows) => tracing::info!(rows, "deleted old roll-ups of scans by the hour and by link"),
            Err(error) => tracing::warn!(%error, "deleting old roll-ups of scans is left for later"),
        }
        match unknown_scans::purge(&app.core).await {
            Ok(0) => {}
            Ok(rows) => tracing::info!(rows, "deleted old counts of requests for unknown ids"),
            Err(error) => {
                tracing::warn!(%error, "deleting counts of requests for unknown ids is left for later")
            }
        }
        app.limiter.forget();
        match jobs::sweep(&app.jobs).await {
            Ok(0) => {}
            Ok(parts) => tracing::info!(parts, "deleted remaining input of finished jobs"),
            Err(error) => tracing::warn!(%error, "deleting the input of finished jobs is left for later"),
        }
        match jobs::purge(&app.jobs).await {
            Ok(0) => {}
            Ok(ended) => tracing::info!(ended, "deleted old jobs"),
            Err(error) => tracing::warn!(%error, "deleting old jobs is left for later"),
        }
        match print_orders::expire(&app.printing).await {
            Ok(0) => {}
            Ok(orders) => tracing::info!(orders, "deleted files of print orders"),
            Err(error) => tracing::warn!(%error, "deleting files of print orders is left for later"),
        }
        match print_orders::purge(&app.printing).await {
            Ok(0) => {}
            Ok(orders) => tracing::info!(orders, "deleted old print orders"),
            Err(error) => tracing::warn!(%error, "deleting old print orders is left for later"),
        }
        match changed_links::give_up(&app.link_changes).await {
            Ok(0) => {}
            Ok(changes) => tracing::info!(changes, "cancelled changes of links that nobody approved"),
            Err(error) => {
                tracing::warn!(%error, "cancelling changes of links that nobody approved is left for later")
            }
        }
        match changed_links::expire(&app.link_changes).await {
            Ok(0) => {}
            Ok(changes) => tracing::info!(changes, "deleted former values of changed links"),
            Err(error) => tracing::warn!(%error, "deleting former values of links is left for later"),
        }
        match changed_links::purge(&app.link_changes).await {
            Ok(0) => {}
            Ok(changes) => tracing::info!(changes, "deleted old changes of links"),
            Err(error) => tracing::warn!(%error, "deleting old changes of links is left for later"),
        }
        match tasks::resume(&app.redirects).await {
            Ok(0) => {}
            Ok(tasks) => tracing::info!(tasks, "resumed tasks of batches"),
            Err(error) => tracing::warn!(%error, "resuming tasks of batches is left for later"),
        }
        match properties::sweep(&app.core).await {
            Ok(0) => {}
            Ok(points) => tracing::info!(points, "deleted points of deleted properties"),
            Err(error) => tracing::warn!(%error, "deleting points of deleted properties is left for later"),
        }
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
