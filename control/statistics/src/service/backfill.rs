//! Counts scans that were stored by a release without statistics.

use shared::time::UnixMillis;
use tracing::instrument;

use super::{StatisticsState, roll_ups::Sums};
use crate::{
    domain::counted_scan::CountedScan,
    error::ServiceError,
    store::{Ctx, Db, backfill},
};

/// Actions that one step passes; on SQLite, where changes wait meanwhile, fewer.
const STEP: (u32, u32) = (2_000, 200);

/// How old an action must be. Numbers are given before a commit makes the row visible; no transaction of a batch of scans
/// lasts as long, so that none appears behind the backfill.
const SETTLED_MS: i64 = 10 * 60 * 1_000;

/// What a step did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// It passed some actions; there may be more.
    Passed {
        /// How many of them it counted.
        counted: u64,
    },
    /// There is nothing to pass now.
    AtEnd {
        /// Everything that was stored before this time is counted.
        until: UnixMillis,
    },
}

/// Counts the next scans, in a transaction with how far it is; replicas may do so at the same time.
#[instrument(skip_all)]
pub async fn step(state: &StatisticsState) -> Result<Step, ServiceError> {
    let limit = match &state.db {
        Db::Pg(_) => STEP.0,
        Db::Sqlite { .. } => STEP.1,
    };
    let until = UnixMillis(state.clock.now().0 - SETTLED_MS);
    // Most of the time there is nothing: that is found out without holding the writer.
    let progress = backfill::read(&mut state.db.read().await?).await?;
    let is_there = {
        let next = backfill::list_next(&mut state.db.read().await?, progress.after, 1).await?;
        next.first().is_some_and(|(_, at)| *at < until)
    };
    if !is_there && progress.is_done {
        return Ok(Step::AtEnd { until });
    }
    let mut tx = state.db.begin(&Ctx::default()).await?;
    let progress = backfill::lock(&mut tx).await?;
    let next = backfill::list_next(&mut tx, progress.after, limit).await?;
    let settled = next.iter().take_while(|(_, at)| *at < until).map(|(seq, _)| *seq).last();
    let Some(last) = settled else {
        backfill::save(&mut tx, backfill::Progress { is_done: true, ..progress }).await?;
        tx.commit().await?;
        return Ok(Step::AtEnd { until });
    };
    let stored = backfill::list_uncounted(&mut tx, progress.after, last).await?;
    let scans: Vec<CountedScan> = stored
        .iter()
        .filter_map(|scan| {
            CountedScan::of_action(&state.devices, scan.account, scan.product, scan.at, &scan.document)
        })
        .collect();
    let mut sums = Sums::of_old(state.clock.now(), &scans.iter().collect::<Vec<_>>());
    sums.add_devices(&mut tx).await?;
    backfill::save(&mut tx, backfill::Progress { after: last, ..progress }).await?;
    sums.take_turn(&mut tx).await?;
    sums.write(&mut tx).await?;
    tx.commit().await?;
    Ok(Step::Passed { counted: scans.len() as u64 })
}

/// The number of the last action, for [`follow`].
#[instrument(skip_all)]
pub async fn head(state: &StatisticsState) -> Result<i64, ServiceError> {
    Ok(backfill::head(&mut state.db.read().await?).await?)
}

/// Moves the backfill to a number, when everything up to it is counted: the next start begins there, and does not read
/// all that was stored since the one before.
#[instrument(skip_all)]
pub async fn follow(state: &StatisticsState, after: i64) -> Result<(), ServiceError> {
    let mut tx = state.db.begin(&Ctx::default()).await?;
    backfill::follow(&mut tx, after).await?;
    Ok(tx.commit().await?)
}
