//! Gives links that older releases made the words by which they are found, a step at a time.
//!
//! Until it is done, `q` does not find those that wait; other conditions do. A link that is changed meanwhile gets its words
//! from the change, and the step leaves them. Progress is stored with each step, so a restart goes on.

use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::store::{Ctx, Db, StoreError, redirection_details, redirection_fill, redirections};

/// Links of one step: some 10 ms.
const STEP: u32 = 200;

/// Positions that one step looks at: those of tombstones, and of links that have their words, are passed over.
const WINDOW: i64 = 5_000;

/// Shortest time between two steps, in which others write; it is at least as long as the step.
const PAUSE: Duration = Duration::from_millis(10);

/// Time until the next try after a failure.
const WAIT: Duration = Duration::from_secs(60);

/// What one step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Filled {
    /// Links that have their words now.
    pub links: usize,
    /// Whether none are left.
    pub is_done: bool,
}

/// Fills until no link is left, and then waits for `shutdown`.
pub async fn run(db: Db, shutdown: CancellationToken) {
    let (mut all, mut is_open) = (0, false);
    while !shutdown.is_cancelled() {
        let begun = Instant::now();
        let stepped = async {
            if !is_open {
                open(&db).await?;
                is_open = true;
            }
            step(&db).await
        };
        let pause = match stepped.await {
            Ok(filled) => {
                all += filled.links;
                if filled.is_done {
                    break;
                }
                begun.elapsed().max(PAUSE)
            }
            Err(error) => {
                tracing::warn!(%error, "giving links their words is left for later");
                WAIT
            }
        };
        shutdown.run_until_cancelled(tokio::time::sleep(pause)).await;
    }
    if all > 0 {
        tracing::info!(links = all, "gave links the words by which they are found");
    }
    shutdown.cancelled().await;
}

/// Begins where the last fill ended.
///
/// # Errors
/// The database failed.
pub async fn open(db: &Db) -> Result<(), StoreError> {
    let mut tx = db.begin(&Ctx::default()).await?;
    redirection_fill::open(&mut tx).await?;
    tx.commit().await
}

/// Fills the next links.
///
/// # Errors
/// The database failed; the step is done again.
pub async fn step(db: &Db) -> Result<Filled, StoreError> {
    let mut tx = db.begin(&Ctx::default()).await?;
    let done = Filled { links: 0, is_done: true };
    // Another process may have filled the last ones.
    let Some(after) = redirection_fill::lock(&mut tx).await? else { return Ok(done) };
    let Some(next) = redirection_fill::find_next(&mut tx, after).await? else {
        redirection_fill::set(&mut tx, after, true).await?;
        tx.commit().await?;
        return Ok(done);
    };
    let end = next.saturating_add(WINDOW);
    let found = redirections::list_without_details(&mut tx, next, end, STEP).await?;
    let is_full = found.len() == STEP as usize;
    // A position beyond the last link would pass over those that are made next.
    let last = match found.last() {
        Some(last) if is_full => last.seq,
        Some(_) | None => redirection_fill::find_last(&mut tx, end).await?.unwrap_or(next),
    };
    redirection_details::insert(&mut tx, found.iter()).await?;
    redirection_fill::set(&mut tx, last, false).await?;
    tx.commit().await?;
    Ok(Filled { links: found.len(), is_done: false })
}
