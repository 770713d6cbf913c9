//! Removes what changes leave: former values whose time is over, and old jobs. Cancels what nobody approves.

use background::retention;
use futures_util::FutureExt;
use kernel::store::Ctx;
use shared::time::UnixMillis;

use super::{LinkChangeState, steps};
use crate::{
    domain::change::{APPROVAL_MS, LinkChange, Status},
    error::ServiceError,
    store::{changes, conflicts, former},
};

/// Rows that one transaction removes.
const ROWS: u32 = 500;

/// Changes that one query finds.
const WINDOW: u32 = 200;

/// Removes former values whose time is over; the changes stay. Returns of how many changes.
///
/// # Errors
/// The store failed; what was removed stays removed.
pub async fn expire(state: &LinkChangeState) -> Result<u64, ServiceError> {
    let now = state.clock.now();
    retention::remove_each(
        &state.db,
        |conn| changes::list_expired(conn, now, WINDOW).boxed(),
        |mut change: LinkChange| {
            async move {
                let seq = change.stamp.seq;
                retention::clear(&state.db, ROWS, |tx| former::clear(tx, seq, ROWS).boxed()).await?;
                change.details.former_removed_at = Some(now);
                let mut tx = state.db.begin(&Ctx::default()).await?;
                let is_removed = changes::forget_former(&mut tx, &change).await?;
                tx.commit().await?;
                Ok(is_removed)
            }
            .boxed()
        },
    )
    .await
}

/// Cancels what nobody has approved in time; returns how many changes.
///
/// # Errors
/// The store failed; what was cancelled stays so.
pub async fn give_up(state: &LinkChangeState) -> Result<u64, ServiceError> {
    let now = state.clock.now();
    let before = UnixMillis(now.0.saturating_sub(APPROVAL_MS));
    let given_up = retention::remove_each(
        &state.db,
        |conn| changes::list_unapproved(conn, before, WINDOW).boxed(),
        |change: LinkChange| {
            async move {
                let message = "Nobody approved it within 30 days.".to_owned();
                let ended = change.ended(Status::Cancelled, Some(message), now);
                let mut tx = state.db.begin(&Ctx::default()).await?;
                let is_over = changes::give_up(&mut tx, &ended).await?;
                if is_over {
                    steps::record_end(&mut tx, &ended, ended.stamp.updated_at).await?;
                }
                tx.commit().await?;
                Ok(is_over)
            }
            .boxed()
        },
    )
    .await?;
    if given_up > 0 {
        state.readers.wake_events();
    }
    Ok(given_up)
}

/// Removes changes that ended longer ago than jobs are kept and cannot be undone any more; returns how many.
///
/// # Errors
/// The store failed; what was removed stays removed.
pub async fn purge(state: &LinkChangeState) -> Result<u64, ServiceError> {
    let Some(before) = retention::limit(state.clock.now(), state.kept) else { return Ok(0) };
    retention::remove_each(
        &state.db,
        |conn| changes::list_ended(conn, before, WINDOW).boxed(),
        |change: LinkChange| {
            async move {
                let (account, id) = (change.account, change.id);
                retention::clear(&state.db, ROWS, |tx| conflicts::clear(tx, account, id, ROWS).boxed())
                    .await?;
                let mut tx = state.db.begin(&Ctx::default()).await?;
                let is_removed = changes::delete(&mut tx, change.stamp.seq).await?;
                tx.commit().await?;
                Ok(is_removed)
            }
            .boxed()
        },
    )
    .await
}
