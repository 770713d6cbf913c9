//! Scan intake: stores batches from edges and writes what follows from them, each scan once (`control/README.md`, "Scan
//! intake").

mod charge;
mod effects;
mod group;
mod prepared;

use std::collections::HashMap;

use ::actions::store::scans;
use kernel::{
    service::batcher::of_all,
    store::{Db, StoreError},
};
use scan_store::{Batch, Boot};
use shared::wire::scan::{MAX_BATCH, ScanBatch, ScanReceipt};

use self::{
    effects::Piece,
    group::{Group, Groups, Turn},
    prepared::Scan,
};
use crate::{
    error::{ControlError, ServiceError},
    state::ApiState,
};

/// Scans whose effects are written in one transaction on SQLite, where there is one writer and changes of users wait for
/// it.
const SQLITE_STEP: usize = 100;

/// Most scans whose effects are written in one transaction on Postgres: with twice a full batch, what a transaction costs by
/// itself is little, and changes of the links in it wait for some 50 ms at most.
const MAX_GROUP: usize = 2 * MAX_BATCH;

/// Groups at once: while one waits for its commit, the next one writes what is no sum of all scans of an account.
const LANES: usize = 2;

/// Pieces of batches that wait for their effects to be written, on Postgres: several in one transaction.
#[derive(Debug)]
pub struct ScanGroups(Groups<Piece, Result<ScanReceipt, ServiceError>>);

impl Default for ScanGroups {
    fn default() -> Self {
        Self(Groups::new(LANES, MAX_GROUP))
    }
}

impl ScanGroups {
    /// How many batches wait that are in no transaction.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.0.count()
    }
}

/// Takes a batch: charges its scans to the quotas of their accounts, stores them, and then writes what follows from them.
/// The crate `scan_store` says why each happens once.
///
/// # Errors
/// 400 for a batch that is too large; the store's errors (repeat the batch: what was done is recognised).
pub async fn ingest(app: &ApiState, batch: &ScanBatch) -> Result<ScanReceipt, ServiceError> {
    if batch.records.len() > MAX_BATCH {
        let found = batch.records.len();
        return Err(ControlError::BatchTooLarge { most: MAX_BATCH, found }.into());
    }
    if batch.first_seq.checked_add(batch.records.len() as u64).is_none() {
        return Err(ControlError::FirstSeqTooLarge.into());
    }
    // All that takes time happens before the transactions: they may hold the only writer.
    let mut scans = prepared::read(app, batch).await?;
    let written = scans::find_cursor(&mut app.core.db.read().await?, &batch.edge, batch.boot).await?;
    let not_stored = charge::charge(app, batch, &scans, written).await?;
    scans.iter_mut().for_each(|scan| scan.apply_decision(&not_stored));
    store(app, batch, &mut scans, written).await?;
    let piece =
        Piece { edge: batch.edge.clone(), boot: batch.boot, first_seq: batch.first_seq, written, scans };
    match &app.core.db {
        Db::Sqlite { .. } => write_in_steps(app, piece).await,
        Db::Pg(_) => write_in_group(app, piece).await,
    }
}

/// Writes what follows from scans, some in each transaction.
async fn write_in_steps(app: &ApiState, mut piece: Piece) -> Result<ScanReceipt, ServiceError> {
    loop {
        let rest = piece.scans.split_off(piece.scans.len().min(SQLITE_STEP));
        let (end, written) = (piece.end(), piece.written);
        let receipt = write_alone(app, &piece).await?;
        if rest.is_empty() {
            return Ok(receipt);
        }
        piece = Piece { first_seq: end, written: written.max(end), scans: rest, ..piece };
    }
}

/// Writes what follows from scans, together with those of other batches that wait.
async fn write_in_group(app: &ApiState, piece: Piece) -> Result<ScanReceipt, ServiceError> {
    let size = piece.scans.len();
    let mut place = app.scan_groups.0.join(piece, size)?;
    loop {
        match place.next().await? {
            Turn::Answered(answer) => return answer,
            Turn::Leads(group) => lead(app, group).await,
        }
    }
}

/// Writes the effects of a group in one transaction. If that fails, each piece has one of its own, because the fault may be of one,
/// until none begins any more: the others are not to wait for a connection each.
async fn lead(app: &ApiState, mut group: Group<'_, Piece, Result<ScanReceipt, ServiceError>>) {
    let count = group.items().len();
    let written = effects::write(app, &group.items()).await;
    match written {
        Ok(receipts) => receipts.into_iter().for_each(|receipt| group.answer(Ok(receipt))),
        Err(error) if count == 1 => group.answer(Err(error)),
        Err(error) => {
            let mut fault = not_begun(&error);
            if fault.is_none() {
                tracing::warn!(%error, count, "batches of scans are written one by one");
            }
            while let Some(piece) = group.first() {
                let answer = match &fault {
                    Some(error) => Err(of_all(error).into()),
                    None => write_alone(app, piece).await,
                };
                if let Err(error) = &answer {
                    fault = not_begun(error).or(fault);
                }
                group.answer(answer);
            }
        }
    }
}

/// The error of a transaction that did not begin. It is the same for all pieces: there is no connection.
fn not_begun(error: &ServiceError) -> Option<StoreError> {
    match error {
        ServiceError::Store(error @ (StoreError::Busy | StoreError::Stopped)) => Some(of_all(error)),
        ServiceError::Store(_)
        | ServiceError::Refused { .. }
        | ServiceError::Full(_)
        | ServiceError::Internal(_) => None,
    }
}

async fn write_alone(app: &ApiState, piece: &Piece) -> Result<ScanReceipt, ServiceError> {
    let receipts = effects::write(app, &[piece]).await?;
    Ok(receipts.into_iter().next().unwrap_or(ScanReceipt { next_seq: piece.written }))
}

/// Stores the scans of a batch that were not stored before, in one transaction of their own store. `written` says how far
/// the effects of the boot are written.
async fn store(
    app: &ApiState,
    batch: &ScanBatch,
    scans: &mut [Scan],
    written: u64,
) -> Result<(), ServiceError> {
    let rows = scans.iter_mut().filter_map(|scan| Some((scan.seq, scan.row.take()?))).collect();
    let new = Batch {
        boot: Boot { edge: &batch.edge, boot: batch.boot },
        stored_elsewhere: written,
        end: batch.first_seq + batch.records.len() as u64,
        clock: &*app.core.clock,
        scans: rows,
    };
    let appended = app.actions.scans.pool.append(&new).await?;
    let positions: HashMap<u64, i64> = appended.positions.into_iter().collect();
    scans.iter_mut().for_each(|scan| scan.position = positions.get(&scan.seq).copied());
    // Stored by a try that did not come to the effects.
    let unfinished = scans
        .iter_mut()
        .filter(|scan| (written..appended.expected).contains(&scan.seq) && scan.is_scan)
        .collect();
    prepared::load_stored(app, unfinished).await
}
