//! Removes what orders leave: chunks, files whose time is over, and old orders.

use background::retention;
use futures_util::FutureExt;
use kernel::{
    domain::quota::Quota,
    store::{Ctx, StoreError, quotas},
};

use super::{PrintState, assemble, render};
use crate::{
    domain::order::{Order, Status},
    error::ServiceError,
    store::{
        chunks::{self, StoredChunk},
        codes,
        leases::{self, Claimed},
        orders,
    },
};

/// Chunks that one step removes.
const CHUNKS: u32 = 50;

/// Rows of codes that one transaction removes: of 25 to 500 codes each.
const CODES: u32 = 500;

/// Orders that one query finds.
const WINDOW: u32 = 200;

/// Files that an order may have, whatever it draws.
const FILES: [&str; 5] = ["codes.zip", "codes.pdf", "codes.zpl", "manifest.csv", "receipt.json"];

/// How much of an order was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cleared {
    /// There is more.
    More,
    /// Nothing is left.
    All,
    /// Another worker holds the order.
    Lost,
}

/// Removes some of what only the work on an order needs. Of an order that failed or was cancelled, files go, too: it may have
/// been cancelled when they were there, or a worker may have died while it wrote them.
pub(super) async fn clear_some(state: &PrintState, claimed: &Claimed) -> Result<Cleared, ServiceError> {
    let (order, seq) = (&claimed.item, claimed.item.stamp.seq);
    let mut conn = state.db.read().await?;
    let found = chunks::list(&mut conn, seq, CHUNKS).await?;
    drop(conn);
    for (_, blob) in &found {
        remove_chunk(state, blob).await?;
    }
    let mut tx = state.db.begin(&Ctx::default()).await?;
    // Written, not only held: what moves on is no failed try, however many turns a large order takes.
    if !leases::save(&mut tx, claimed, order, false).await? {
        return Ok(Cleared::Lost);
    }
    for (number, _) in &found {
        chunks::delete(&mut tx, seq, *number).await?;
    }
    let is_more = !found.is_empty() || codes::clear(&mut tx, seq, CODES).await? > 0;
    tx.commit().await?;
    if is_more {
        return Ok(Cleared::More);
    }
    // That which a worker wrote and did not note.
    remove_chunk(state, &render::blob(order, order.details.chunks)).await?;
    if order.status.is_terminal() {
        for name in FILES {
            state.blobs.delete(&assemble::file_blob(order, name)).await?;
        }
    }
    Ok(Cleared::All)
}

async fn remove_chunk(state: &PrintState, blob: &str) -> Result<(), StoreError> {
    state.blobs.delete(blob).await?;
    state.blobs.delete(&StoredChunk::manifest_blob(blob)).await
}

/// Removes a blob that was written for an order, if the order has ended meanwhile and no other worker will.
pub(super) async fn remove_if_ended(state: &PrintState, order: &Order, blob: &str) -> Result<(), StoreError> {
    let mut conn = state.db.read().await?;
    let found = orders::find(&mut conn, order.account, order.id).await?;
    drop(conn);
    let is_kept = found.is_some_and(|found| match found.status {
        Status::Waiting | Status::Making | Status::Rendering | Status::Publishing => true,
        Status::Complete => found.details.files.iter().any(|file| file.blob == blob),
        Status::Failed | Status::Cancelled => false,
    });
    if !is_kept {
        remove_chunk(state, blob).await?;
    }
    Ok(())
}

/// Removes the files of an order that has ended.
pub(super) async fn remove_files(state: &PrintState, order: &Order) -> Result<(), StoreError> {
    for file in &order.details.files {
        state.blobs.delete(&file.blob).await?;
    }
    Ok(())
}

/// Removes files whose time is over; the orders stay. Returns of how many orders.
///
/// # Errors
/// A store failed; what was removed stays removed.
pub async fn expire(state: &PrintState) -> Result<u64, ServiceError> {
    let now = state.clock.now();
    retention::remove_each(
        &state.db,
        |conn| orders::list_expired(conn, now, WINDOW).boxed(),
        |mut order: Order| {
            async move {
                remove_files(state, &order).await?;
                let removed_bytes = order.details.file_bytes();
                order.details.files.clear();
                order.details.files_removed_at = Some(now);
                let mut tx = state.db.begin(&Ctx::default()).await?;
                // Another process may do the same: bytes are given back once.
                let is_removed = orders::forget_files(&mut tx, &order).await?;
                if is_removed {
                    quotas::release(&mut tx, order.account, Quota::StorageBytes, removed_bytes);
                }
                tx.commit().await?;
                Ok(is_removed)
            }
            .boxed()
        },
    )
    .await
}

/// Removes orders that ended longer ago than orders are kept, with their files; returns how many.
///
/// # Errors
/// A store failed; what was removed stays removed.
pub async fn purge(state: &PrintState) -> Result<u64, ServiceError> {
    let Some(before) = retention::limit(state.clock.now(), state.limits.orders_kept) else { return Ok(0) };
    retention::remove_each(
        &state.db,
        |conn| orders::list_ended(conn, before, WINDOW).boxed(),
        |order: Order| {
            async move {
                remove_files(state, &order).await?;
                let mut tx = state.db.begin(&Ctx::default()).await?;
                let is_removed = orders::delete(&mut tx, order.account, order.stamp.seq).await?;
                tx.commit().await?;
                Ok(is_removed)
            }
            .boxed()
        },
    )
    .await
}
