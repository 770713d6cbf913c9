//! Removes what items leave, in short transactions: an interruption leaves the rest for the next time.

use std::time::Duration;

use futures_util::future::BoxFuture;
use kernel::{
    error::ServiceError,
    store::{Conn, Ctx, Db, StoreError, Tx},
};
use shared::time::UnixMillis;

/// Items that may fail of those that were found together.
const MAX_FAILURES: usize = 2;

/// Items that ended before this are kept no longer; `None` when all are kept for ever.
#[must_use]
pub fn limit(now: UnixMillis, kept: Option<Duration>) -> Option<UnixMillis> {
    let kept_ms = i64::try_from(kept?.as_millis()).unwrap_or(i64::MAX);
    Some(UnixMillis(now.0.saturating_sub(kept_ms)))
}

/// Calls `remove` with each of the items that `list` finds, until it finds none; returns how many `remove` says to be removed.
/// What `remove` leaves must not be found again. An item that fails does not keep the others that were found with it.
///
/// # Errors
/// A store failed; what was removed stays removed.
pub async fn remove_each<'a, T: Send>(
    db: &Db,
    mut list: impl for<'c> FnMut(&'c mut Conn) -> BoxFuture<'c, Result<Vec<T>, StoreError>> + Send,
    mut remove: impl FnMut(T) -> BoxFuture<'a, Result<bool, ServiceError>> + Send,
) -> Result<u64, ServiceError> {
    let mut removed = 0;
    loop {
        let mut conn = db.read().await?;
        let found = list(&mut conn).await?;
        drop(conn);
        if found.is_empty() {
            return Ok(removed);
        }
        let mut failures = Vec::new();
        for item in found {
            match remove(item).await {
                Ok(is_removed) => removed += u64::from(is_removed),
                Err(error) => failures.push(error),
            }
            // A store is away.
            if failures.len() > MAX_FAILURES {
                break;
            }
        }
        // It would be found again.
        if let Some(error) = failures.pop() {
            return Err(error);
        }
    }
}

/// Repeats a statement that removes `rows` rows at most, each time in a transaction, until it removes fewer; returns how many it
/// removed.
///
/// # Errors
/// The store failed; what was removed stays removed.
pub async fn clear(
    db: &Db,
    rows: u32,
    mut remove: impl for<'t> FnMut(&'t mut Tx) -> BoxFuture<'t, Result<u64, StoreError>> + Send,
) -> Result<u64, StoreError> {
    let mut removed = 0;
    loop {
        let mut tx = db.begin(&Ctx::default()).await?;
        let some = remove(&mut tx).await?;
        tx.commit().await?;
        removed += some;
        if some < u64::from(rows) {
            return Ok(removed);
        }
    }
}
