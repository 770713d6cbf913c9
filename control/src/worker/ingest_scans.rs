//! Scan intake: stores batches from edges and writes what follows from them, each scan once (`control/README.md`, "Scan
//! intake").

mod charge;
mod prepared;

use std::{
    collections::{BTreeSet, HashMap},
    sync::atomic::Ordering,
};

use ::actions::store::{actions, scans};
use assessment::service::assessment::observe;
use kernel::store::{Ctx, Db, Tx};
use redirects::store::redirections;
use scan_store::{Batch, Boot};
use shared::{
    id::AccountId,
    wire::scan::{MAX_BATCH, ScanBatch, ScanReceipt},
};
use statistics::service::roll_ups;

use self::prepared::Scan;
use crate::{
    error::{ControlError, ServiceError},
    state::ApiState,
};

/// Scans whose effects are written in one transaction on SQLite, where there is one writer and changes of users wait for
/// it.
const SQLITE_STEP: usize = 100;

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
    let step = match &app.core.db {
        Db::Sqlite { .. } => SQLITE_STEP,
        Db::Pg(_) => MAX_BATCH,
    };
    let (mut first_seq, mut left) = (batch.first_seq, scans);
    loop {
        let rest = left.split_off(left.len().min(step));
        let end = first_seq + left.len() as u64;
        let receipt = write_effects(app, batch, first_seq, left).await?;
        if rest.is_empty() {
            return Ok(receipt);
        }
        (first_seq, left) = (end, rest);
    }
}

/// Stores the scans of a batch that were not stored before, in one transaction of their own store. `written` says how far
/// the effects of the boot are written.
async fn store(
    app: &ApiState,
    batch: &ScanBatch,
    scans: &mut [Scan<'_>],
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

/// Writes what follows from scans that are stored: events, profiles, hits and roll-ups, in the transaction that moves
/// their cursor.
async fn write_effects(
    app: &ApiState,
    batch: &ScanBatch,
    first_seq: u64,
    scans: Vec<Scan<'_>>,
) -> Result<ScanReceipt, ServiceError> {
    let (all, end) = (scans.len() as u64, first_seq + scans.len() as u64);
    let mut tx = app.core.db.begin(&Ctx::default()).await?;
    let next = scans::lock_cursor(&mut tx, &batch.edge, batch.boot).await?;
    if end <= next {
        app.intake.repeated.fetch_add(all, Ordering::Relaxed);
        return Ok(ScanReceipt { next_seq: next });
    }
    // An overlap was written before; a gap was lost on the edge and stays visible in the counter.
    let skip = next.saturating_sub(first_seq);
    let missing = first_seq.saturating_sub(next);
    let fresh: Vec<Scan<'_>> = scans.into_iter().skip(usize::try_from(skip).unwrap_or(usize::MAX)).collect();
    let count = fresh.len() as u64;
    let known = fresh.iter().filter(|scan| scan.is_known).count() as u64;
    let over = fresh.iter().filter(|scan| scan.is_known && scan.is_above).count() as u64;
    write(app, &mut tx, fresh).await?;
    scans::move_cursor(&mut tx, &batch.edge, batch.boot, next, end).await?;
    tx.commit().await?;
    app.core.readers.wake_events();
    if missing > 0 {
        tracing::error!(edge = %batch.edge, boot = batch.boot, missing, "scans are missing before a batch");
    }
    app.intake.missing.fetch_add(missing, Ordering::Relaxed);
    app.intake.repeated.fetch_add(skip, Ordering::Relaxed);
    app.intake.stored.fetch_add(known - over, Ordering::Relaxed);
    app.intake.over_quota.fetch_add(over, Ordering::Relaxed);
    app.intake.unknown.fetch_add(count - known, Ordering::Relaxed);
    Ok(ScanReceipt { next_seq: end })
}

/// Records scans for subscribers and profiles, counts hits, and adds to the roll-ups.
async fn write(app: &ApiState, tx: &mut Tx, scans: Vec<Scan<'_>>) -> Result<(), ServiceError> {
    let mut hits: HashMap<&str, HashMap<&str, i64>> = HashMap::new();
    let (mut stored, mut others) = (Vec::with_capacity(scans.len()), Vec::new());
    let mut counted = Vec::with_capacity(scans.len());
    let mut positions = HashMap::new();
    for scan in scans.into_iter().filter(|scan| scan.is_known) {
        if scan.hits > 0 {
            let domain = hits.entry(&scan.record.domain).or_default();
            *domain.entry(&scan.record.folded).or_default() += scan.hits;
        }
        positions.extend(scan.action.as_ref().map(|action| action.id).zip(scan.position));
        if scan.is_scan { &mut stored } else { &mut others }.extend(scan.action);
        counted.extend(scan.counted);
    }
    let now = app.core.clock.now();
    actions::record(tx, now, &stored).await?;
    actions::insert_counted(tx, now, &others).await?;
    stored.extend(others);
    let accounts: BTreeSet<AccountId> = stored.iter().map(|action| action.account).collect();
    for account in accounts {
        observe::record(app.assessment.sources(), tx, (account, now), &stored, &positions).await?;
    }
    // Batches wait for each other here until the commit, because they add to the same rows. Hits come behind: redirections
    // are held from there to the commit, and whoever changes one waits no longer than that.
    roll_ups::record(tx, now, &counted).await?;
    // One order for all batches: two that touch the same rows do not lock each other out.
    let mut hits: Vec<(&str, HashMap<&str, i64>)> = hits.into_iter().collect();
    hits.sort_unstable_by_key(|(domain, _)| *domain);
    for (domain, counts) in hits {
        let mut counts: Vec<(&str, i64)> = counts.into_iter().collect();
        counts.sort_unstable();
        redirections::add_hits(tx, domain, &counts).await?;
    }
    Ok(())
}
