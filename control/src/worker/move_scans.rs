//! Moves scans by edges that older releases stored as actions into their own store, a step at a time.
//!
//! A step stores its scans there and then removes them here. Lists read both, actions first, so a scan is in every list at
//! each moment; one that is in both has the same position and is shown once. On Postgres both are one transaction. On SQLite
//! they are two, so that the writer of links is not held while the other file is written: after a kill between them the
//! step is done again, and what is there already is passed over. A scan that a request deletes in between is deleted there,
//! too; only if the process is killed in that very moment it stays.
//!
//! Statistics count older scans where they stand (`statistics::worker::backfill`), and know none that are elsewhere. So a
//! step ends before the first scan that they have not counted, and goes on when they have.

use std::{
    collections::{BTreeMap, HashSet},
    sync::Arc,
};

use ::actions::store::scan_moves::{self, Found, LegacyScan};
use kernel::{
    domain::scan_source::Source,
    service::backfill::{self, Next},
    store::{Ctx, Db, StoreError, Tx},
};
use scan_store::NewScan;
use shared::{
    id::{AccountId, ActionId},
    time::UnixMillis,
};
use tokio_util::sync::CancellationToken;

use crate::state::ApiState;

/// Scans of one step.
const STEP: u32 = 100;

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
    let app = &*app;
    let stepped = || async {
        let moved = step(app).await?;
        let next = match moved {
            Moved { is_done: true, .. } => Next::Done,
            Moved { waits: true, .. } => Next::Wait,
            Moved { .. } => Next::Step,
        };
        Ok::<_, StoreError>(backfill::Step { rows: moved.moved, next })
    };
    backfill::run("scans in their own store", || open(app), stepped, shutdown).await;
}

async fn open(app: &ApiState) -> Result<(), StoreError> {
    let mut tx = app.core.db.begin(&Ctx::default()).await?;
    scan_moves::open(&mut tx).await?;
    tx.commit().await
}

/// Moves the next scans.
///
/// # Errors
/// A store failed; the step is done again.
pub async fn step(app: &ApiState) -> Result<Moved, StoreError> {
    let done = Moved { moved: 0, is_done: true, waits: false };
    let Some(after) = scan_moves::find(&mut app.core.db.read().await?).await? else { return Ok(done) };
    if matches!(app.core.db, Db::Pg(_)) {
        let mut tx = app.core.db.begin(&Ctx::default()).await?;
        // Another process may have moved the last ones.
        let Some(after) = scan_moves::lock(&mut tx).await? else { return Ok(done) };
        let step = Step::of(scan_moves::list(&mut tx, after, STEP).await?, after);
        app.actions.scans.reserved.adopt(Some(&mut tx), app.core.clock.now(), &step.scans).await?;
        return step.finish(app, tx).await;
    }
    let step = Step::of(scan_moves::list(&mut app.core.db.read().await?, after, STEP).await?, after);
    app.actions.scans.pool.adopt(None, app.core.clock.now(), &step.scans).await?;
    let mut tx = app.core.db.begin(&Ctx::default()).await?;
    if scan_moves::lock(&mut tx).await? != Some(after) {
        return Err(StoreError::Row("another process moves scans of this file".to_owned()));
    }
    step.finish(app, tx).await
}

/// The scans of a step.
struct Step {
    scans: Vec<(i64, UnixMillis, NewScan)>,
    last: i64,
    is_done: bool,
    waits: bool,
}

impl Step {
    fn of(found: Found, after: i64) -> Self {
        let (mut last, mut is_done, mut waits) = (found.last, !found.is_more, false);
        let (mut scans, mut passed) = (Vec::new(), after);
        for (seq, scan) in found.scans {
            if scan.as_ref().is_some_and(|scan| !scan.is_counted) {
                (last, is_done, waits) = (passed, false, true);
                break;
            }
            passed = seq;
            let Some(LegacyScan { id, account, thng, product, timestamp, created_at, doc, .. }) = scan else {
                continue;
            };
            let is_by_edge =
                doc.as_object().is_some_and(|members| Source::of_members(members) == Source::Edge);
            // What requests recorded stays, and what does not fit.
            if is_by_edge && let Some(scan) = NewScan::of(account, id, timestamp, (thng, product), &doc) {
                scans.push((seq, created_at, scan));
            }
        }
        Self { scans, last, is_done, waits }
    }

    /// Removes the scans, which are stored elsewhere.
    async fn finish(self, app: &ApiState, mut tx: Tx) -> Result<Moved, StoreError> {
        let seqs: Vec<i64> = self.scans.iter().map(|(seq, ..)| *seq).collect();
        let moved: HashSet<i64> = scan_moves::delete(&mut tx, &seqs).await?.into_iter().collect();
        let mut deleted: BTreeMap<AccountId, Vec<ActionId>> = BTreeMap::new();
        for (_, _, scan) in self.scans.iter().filter(|(seq, ..)| !moved.contains(seq)) {
            deleted.entry(scan.account).or_default().extend(scan.id());
        }
        for (account, ids) in deleted {
            app.actions.scans.reserved.delete(account, &ids).await?;
        }
        scan_moves::set(&mut tx, self.last, self.is_done).await?;
        tx.commit().await?;
        Ok(Moved { moved: moved.len(), is_done: self.is_done, waits: self.waits })
    }
}
