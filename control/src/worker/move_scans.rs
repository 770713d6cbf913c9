//! Moves scans by edges that older releases stored as actions into their own store, a step at a time.
//!
//! A step stores its scans there and then removes them here, in the transaction that notes how far it came. Lists read
//! both, actions first, so a scan is in every list at each moment; one that is in both has the same place and is shown
//! once. After a kill between the two the step is done again, and what is there already is passed over. The rows are
//! locked meanwhile: one that is deleted by a request was moved before, and is deleted there.
//!
//! Statistics count older scans where they stand (`statistics::worker::backfill`), and know none that are elsewhere. So a
//! step ends before the first scan that they have not counted, and goes on when they have.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use ::actions::store::scan_moves::{self, Standing};
use kernel::{
    domain::scan_source::Source,
    store::{Ctx, StoreError},
};
use scan_store::NewScan;
use shared::{id::AccountId, time::UnixMillis};
use tokio_util::sync::CancellationToken;

use crate::state::ApiState;

/// Scans of one step: on SQLite changes of users wait for it, some ten milliseconds.
const STEP: u32 = 100;

/// Time between two steps, in which others write.
const PAUSE: Duration = Duration::from_millis(10);

/// Time until the next try after a failure, or where statistics have to count first.
const WAIT: Duration = Duration::from_secs(60);

/// What one step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moved {
    /// Scans that are in their own store now.
    pub moved: usize,
    /// Whether none are left.
    pub is_done: bool,
    /// Whether the next one is not counted yet.
    pub waits: bool,
}

/// Moves scans until none are left, and then waits for `shutdown`.
pub async fn run(app: Arc<ApiState>, shutdown: CancellationToken) {
    let mut all = 0;
    while !shutdown.is_cancelled() {
        let pause = match step(&app).await {
            Ok(moved) => {
                all += moved.moved;
                if moved.is_done {
                    break;
                }
                if moved.waits { WAIT } else { PAUSE }
            }
            Err(error) => {
                tracing::warn!(%error, "moving scans into their own store is left for later");
                WAIT
            }
        };
        shutdown.run_until_cancelled(tokio::time::sleep(pause)).await;
    }
    if all > 0 {
        tracing::info!(scans = all, "moved scans into their own store");
    }
    shutdown.cancelled().await;
}

/// Moves the next scans.
///
/// # Errors
/// A store failed; the step is done again.
pub async fn step(app: &ApiState) -> Result<Moved, StoreError> {
    let done = Moved { moved: 0, is_done: true, waits: false };
    if !scan_moves::is_open(&mut app.core.db.read().await?).await? {
        return Ok(done);
    }
    let mut tx = app.core.db.begin(&Ctx::default()).await?;
    // Another process may have moved the last ones.
    let Some(after) = scan_moves::lock(&mut tx).await? else { return Ok(done) };
    let mut rows = scan_moves::list(&mut tx, after, STEP).await?;
    let is_last = rows.len() < STEP as usize;
    let uncounted = rows.iter().position(|row| !row.is_counted);
    rows.truncate(uncounted.unwrap_or(rows.len()));
    let (last, waits) = (rows.last().map_or(after, |row| row.seq), uncounted.is_some());
    let is_done = is_last && !waits;
    let mut scans: BTreeMap<AccountId, Vec<(i64, UnixMillis, NewScan)>> = BTreeMap::new();
    for row in rows {
        let Standing { seq, id, account, thng, product, timestamp, created_at, doc, is_counted: _ } = row;
        let is_by_edge = doc.as_object().is_some_and(|members| Source::of_members(members) == Source::Edge);
        // What requests recorded stays, and what does not fit.
        if is_by_edge && let Some(scan) = NewScan::of(account, id, timestamp, (thng, product), &doc) {
            scans.entry(account).or_default().push((seq, created_at, scan));
        }
    }
    for (account, scans) in &scans {
        app.actions.scans.nested.adopt(*account, scans).await?;
    }
    let seqs: Vec<i64> = scans.values().flatten().map(|(seq, ..)| *seq).collect();
    let moved = scan_moves::delete(&mut tx, &seqs).await?;
    scan_moves::set(&mut tx, last, is_done).await?;
    tx.commit().await?;
    Ok(Moved { moved, is_done, waits })
}
