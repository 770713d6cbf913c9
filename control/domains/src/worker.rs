//! Looks for the proofs of claims that are due: any number of processes; each claim is taken by one.

use std::{sync::Arc, time::Duration};

use certificates::store::clock;
use futures_util::future::join_all;
use kernel::store::StoreError;
use tokio_util::sync::CancellationToken;

use crate::{
    domain::claim::Claim,
    service::{DomainState, checks},
    store::claims,
};

/// Time between two looks.
const LOOK: Duration = Duration::from_secs(10);

/// Claims of one look: each is due once a day, so this is enough for 800,000.
const BATCH: u32 = 100;

/// Checks at one time: each waits for servers of others, for 20 seconds at most.
const AT_ONCE: usize = 8;

/// Looks for proofs until `stop`.
pub async fn run(state: Arc<DomainState>, stop: CancellationToken) {
    while !stop.is_cancelled() {
        let worked = tokio::select! {
            worked = work(&state) => worked,
            // What was taken is due again after a moment.
            () = stop.cancelled() => return,
        };
        if let Err(error) = worked {
            tracing::warn!(%error, "claims of short domains cannot be read");
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

/// Ends the claims whose time is over, and checks those that are due, a bounded number of both; returns how many were due.
///
/// # Errors
/// The store failed. What fails of a claim is logged, and done again later.
pub async fn work(state: &Arc<DomainState>) -> Result<usize, StoreError> {
    // A connection is not held while others are asked for.
    let mut conn = state.db.read().await?;
    let now = clock::now(&mut conn).await?;
    let ended = claims::list_ended(&mut conn, now, BATCH).await?;
    drop(conn);
    for claim in ended {
        if let Err(error) = checks::end(state, &claim).await {
            tracing::warn!(%error, host = %claim.host, "a claim that was not proven could not be ended");
        }
    }
    let mut conn = state.db.read().await?;
    let now = clock::now(&mut conn).await?;
    let due = claims::list_due(&mut conn, now, BATCH).await?;
    drop(conn);
    let count = due.len();
    let mut due = due.into_iter();
    loop {
        let some: Vec<_> = due.by_ref().take(AT_ONCE).map(|claim| check(state.clone(), claim)).collect();
        if some.is_empty() {
            return Ok(count);
        }
        join_all(some).await;
    }
}

async fn check(state: Arc<DomainState>, claim: Claim) {
    if let Err(error) = checks::check_due(&state, &claim).await {
        tracing::warn!(%error, host = %claim.host, "a short domain could not be checked");
    }
}
