//! Removes what changes leave: former values whose time is over, and old jobs. Cancels what nobody approves.

use kernel::store::{Ctx, StoreError};
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
    let mut expired = 0;
    loop {
        let now = state.clock.now();
        let mut conn = state.db.read().await?;
        let due = changes::list_expired(&mut conn, now, WINDOW).await?;
        drop(conn);
        if due.is_empty() {
            return Ok(expired);
        }
        for mut change in due {
            clear_former(state, &change).await?;
            change.details.former_removed_at = Some(now);
            let mut tx = state.db.begin(&Ctx::default()).await?;
            expired += u64::from(changes::forget_former(&mut tx, &change).await?);
            tx.commit().await?;
        }
    }
}

/// Cancels what nobody has approved in time; returns how many changes.
///
/// # Errors
/// The store failed; what was cancelled stays so.
pub async fn give_up(state: &LinkChangeState) -> Result<u64, ServiceError> {
    let mut given_up = 0;
    loop {
        let now = state.clock.now();
        let before = UnixMillis(now.0.saturating_sub(APPROVAL_MS));
        let mut conn = state.db.read().await?;
        let waiting = changes::list_unapproved(&mut conn, before, WINDOW).await?;
        drop(conn);
        if waiting.is_empty() {
            return Ok(given_up);
        }
        for change in waiting {
            let message = "Nobody approved it within 30 days.".to_owned();
            let ended = change.ended(Status::Cancelled, Some(message), now);
            let mut tx = state.db.begin(&Ctx::default()).await?;
            if changes::give_up(&mut tx, &ended).await? {
                steps::record_end(&mut tx, &ended, ended.stamp.updated_at).await?;
                given_up += 1;
            }
            tx.commit().await?;
        }
        state.readers.wake_events();
    }
}

async fn clear_former(state: &LinkChangeState, change: &LinkChange) -> Result<(), StoreError> {
    loop {
        let mut tx = state.db.begin(&Ctx::default()).await?;
        let removed = former::clear(&mut tx, change.stamp.seq, ROWS).await?;
        tx.commit().await?;
        if removed < u64::from(ROWS) {
            return Ok(());
        }
    }
}

async fn clear_conflicts(state: &LinkChangeState, change: &LinkChange) -> Result<(), StoreError> {
    loop {
        let mut tx = state.db.begin(&Ctx::default()).await?;
        let removed = conflicts::clear(&mut tx, change.account, change.id, ROWS).await?;
        tx.commit().await?;
        if removed < u64::from(ROWS) {
            return Ok(());
        }
    }
}

/// Removes changes that ended longer ago than jobs are kept and cannot be undone any more; returns how many.
///
/// # Errors
/// The store failed; what was removed stays removed.
pub async fn purge(state: &LinkChangeState) -> Result<u64, ServiceError> {
    let Some(kept) = state.kept else { return Ok(0) };
    let kept_ms = i64::try_from(kept.as_millis()).unwrap_or(i64::MAX);
    let before = UnixMillis(state.clock.now().0.saturating_sub(kept_ms));
    let mut removed = 0;
    loop {
        let mut conn = state.db.read().await?;
        let ended = changes::list_ended(&mut conn, before, WINDOW).await?;
        drop(conn);
        if ended.is_empty() {
            return Ok(removed);
        }
        for change in ended {
            clear_conflicts(state, &change).await?;
            let mut tx = state.db.begin(&Ctx::default()).await?;
            removed += u64::from(changes::delete(&mut tx, change.stamp.seq).await?);
            tx.commit().await?;
        }
    }
}
