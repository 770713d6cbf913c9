//! Gives links that older releases made their search terms, a step at a time.
//!
//! Until it is done, `q` does not find those that wait, but where a list finds them without the index; other conditions do. A
//! link that is changed meanwhile gets its terms from the change, and the step leaves them. Progress is stored with each step,
//! so a restart goes on. Of several replicas one fills, and the others wait.

use tokio_util::sync::CancellationToken;

use crate::{
    service::backfill::{self, Next, Step},
    store::{
        Ctx, Db, StoreError, log, redirection_details,
        redirection_fill::{self, Progress},
        redirections,
    },
};

/// Links of one step: some 10 ms.
const STEP: u32 = 200;

/// Positions that one step looks at: those of tombstones, and of links that have their terms, are passed over.
const WINDOW: i64 = 5_000;

/// Fills until no link is left, and then waits for `shutdown`.
pub async fn run(db: Db, shutdown: CancellationToken) {
    let db = &db;
    backfill::run("search terms of links", || open(db), || step(db), shutdown).await;
}

/// Begins where the last fill ended.
pub async fn open(db: &Db) -> Result<(), StoreError> {
    let mut tx = db.begin(&Ctx::default()).await?;
    redirection_fill::open(&mut tx).await?;
    tx.commit().await
}

/// Fills the next links. A link that cannot be read is passed over.
///
/// # Errors
/// The database failed; the step is done again.
pub async fn step(db: &Db) -> Result<Step, StoreError> {
    let mut tx = db.begin(&Ctx::default()).await?;
    let after = match redirection_fill::lock(&mut tx).await? {
        Progress::After(after) => after,
        Progress::Locked => return Ok(Step { rows: 0, next: Next::Wait }),
        Progress::Done => return Ok(Step { rows: 0, next: Next::Done }),
    };
    // As each write of links does, before it reads them: else a link may be deleted meanwhile, whose details would stay, and
    // both may wait for rows of the other.
    log::lock(&mut tx).await?;
    let Some(next) = redirection_fill::find_next(&mut tx, after).await? else {
        redirection_fill::set(&mut tx, after, true).await?;
        tx.commit().await?;
        return Ok(Step { rows: 0, next: Next::Done });
    };
    let end = next.saturating_add(WINDOW);
    let found = redirections::list_without_details(&mut tx, next, end, STEP).await?;
    // A position beyond the last link would pass over those that are made next.
    let last = match found.last() {
        Some((seq, _)) if found.len() == STEP as usize => *seq,
        Some(_) | None => redirection_fill::find_last(&mut tx, end).await?.unwrap_or(next),
    };
    let mut links = Vec::with_capacity(found.len());
    for (seq, link) in found {
        match link {
            Ok(link) => links.push(link),
            Err(error) => {
                tracing::warn!(seq, %error, "a link cannot be read and gets no search terms");
            }
        }
    }
    redirection_details::insert(&mut tx, links.iter()).await?;
    redirection_fill::set(&mut tx, last, false).await?;
    tx.commit().await?;
    Ok(Step { rows: links.len(), next: Next::Step })
}
