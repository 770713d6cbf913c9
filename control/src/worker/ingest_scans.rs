//! Scan intake: stores batches from edges and writes what follows from them, each scan once (`control/README.md`, "Scan
//! intake").

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::atomic::Ordering,
};

use ::actions::{
    domain::{
        context::read_agent,
        scan::{self, IMPLICIT_SCANS},
    },
    store::{
        actions::{self, NewAction},
        scans,
    },
};
use assessment::service::assessment::observe;
use kernel::{
    error::ServiceError,
    store::{Ctx, Db, Tx},
};
use redirects::{domain::redirection::Redirection, store::redirections};
use scan_store::{Batch, Boot, NewScan};
use serde_json::Value;
use shared::{
    id::{AccountId, ActionId},
    problem::Code,
    wire::scan::{MAX_BATCH, ScanBatch, ScanReceipt, ScanRecord},
};

use crate::state::ApiState;

/// Scans whose effects are written in one transaction on SQLite, where there is one writer and changes of users wait for
/// it.
const SQLITE_STEP: usize = 100;

/// Takes a batch: stores its scans, and then writes what follows from them. The crate `scan_store` says why each happens
/// once.
///
/// # Errors
/// 400 for a batch that is too large; the store's errors (repeat the batch: what was done is recognised).
pub async fn ingest(app: &ApiState, batch: &ScanBatch) -> Result<ScanReceipt, ServiceError> {
    if batch.records.len() > MAX_BATCH {
        let text = format!("A batch holds at most {MAX_BATCH} scans, not {}.", batch.records.len());
        return Err(ServiceError::refused(Code::Invalid, text));
    }
    if batch.first_seq.checked_add(batch.records.len() as u64).is_none() {
        return Err(ServiceError::refused(Code::Invalid, "firstSeq is too large."));
    }
    // All that takes time happens before the transactions: they may hold the only writer.
    let mut scans = read(app, batch).await?;
    store(app, batch, &mut scans).await?;
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

/// A scan and what follows from it.
struct Scan<'a> {
    record: &'a ScanRecord,
    /// What subscribers and profiles see; none if its short id is unknown, or if it is a sum.
    action: Option<NewAction>,
    /// The same for the store of scans; taken when it is stored.
    row: Option<NewScan>,
    /// Whether the store of scans holds it; what does not fit there is stored as other actions are.
    is_scan: bool,
    hits: i64,
    is_known: bool,
}

/// Prepares the scans of a batch.
async fn read<'a>(app: &ApiState, batch: &'a ScanBatch) -> Result<Vec<Scan<'a>>, ServiceError> {
    let known = list_known(app, &batch.records).await?;
    let scan = |(seq, record): (u64, &'a ScanRecord)| {
        let agent = read_agent(&app.actions.agents, record.user_agent.as_deref());
        let found = known.get(&(record.domain.to_string(), record.folded.to_string()));
        // A sum of scans is counted in `hits` but creates no action, because its clients are unknown.
        let action = found.filter(|_| record.count.is_none()).map(|item| NewAction {
            id: scan::action_id(&app.core.secrets.scan_id, &batch.edge, batch.boot, seq, record),
            account: item.account,
            kind: IMPLICIT_SCANS.to_owned(),
            thng: item.redirect.thng_id,
            product: item.redirect.product_id,
            timestamp: record.at,
            doc: scan::document(
                record,
                item.redirect.short_id.as_str(),
                &item.scopes,
                agent,
                &app.actions.geo_ip.find(record.ip),
            ),
        });
        let row = action.as_ref().and_then(|action| {
            let about = (action.thng, action.product);
            NewScan::of(action.account, action.id, action.timestamp, about, &action.doc)
        });
        let hits = record.count.map_or(i64::from(!agent.bot), |count| i64::from(count.get()));
        Scan { record, action, is_scan: row.is_some(), row, hits, is_known: found.is_some() }
    };
    Ok((batch.first_seq..).zip(&batch.records).map(scan).collect())
}

/// Stores the scans of a batch that were not stored before, in one transaction of their own store.
async fn store(app: &ApiState, batch: &ScanBatch, scans: &mut [Scan<'_>]) -> Result<(), ServiceError> {
    let mut conn = app.core.db.read().await?;
    let written = scans::find_cursor(&mut conn, &batch.edge, batch.boot).await?;
    drop(conn);
    let numbered = (batch.first_seq..).zip(scans.iter_mut());
    let rows = numbered.filter_map(|(seq, scan)| Some((seq, scan.row.take()?))).collect();
    let new = Batch {
        boot: Boot { edge: &batch.edge, boot: batch.boot },
        stored_elsewhere: written,
        end: batch.first_seq + batch.records.len() as u64,
        created_at: app.core.clock.now(),
        scans: rows,
    };
    let appended = app.actions.scans.append(&new).await?;
    // Stored by a try that did not come to the effects.
    let unfinished = (batch.first_seq..)
        .zip(scans.iter_mut())
        .filter(|(seq, scan)| (written..appended.expected).contains(seq) && scan.is_scan)
        .map(|(_, scan)| scan)
        .collect();
    recall(app, unfinished).await
}

/// Makes scans what they were when they were stored: their links may have changed since. One that was not stored then was
/// of an unknown short id.
async fn recall(app: &ApiState, scans: Vec<&mut Scan<'_>>) -> Result<(), ServiceError> {
    let mut ids: BTreeMap<AccountId, Vec<ActionId>> = BTreeMap::new();
    for action in scans.iter().filter_map(|scan| scan.action.as_ref()) {
        ids.entry(action.account).or_default().push(action.id);
    }
    let mut stored = HashMap::new();
    for (account, ids) in ids {
        let found = app.actions.scans.find_many(account, &ids).await?;
        stored.extend(found.into_iter().map(|action| ((account, action.id), action)));
    }
    for scan in scans {
        let Some(new) = scan.action.take() else { continue };
        let then = stored.remove(&(new.account, new.id));
        scan.is_known = then.is_some();
        scan.action = then.map(|then| NewAction {
            thng: then.thng,
            product: then.product,
            doc: Value::Object(then.members),
            ..new
        });
    }
    Ok(())
}

/// Writes what follows from scans that are stored: events, profiles and hits, in the transaction that moves their cursor.
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
    let (count, stored) = (fresh.len() as u64, write(app, &mut tx, fresh).await?);
    scans::move_cursor(&mut tx, &batch.edge, batch.boot, next, end).await?;
    tx.commit().await?;
    app.core.readers.wake_events();
    if missing > 0 {
        tracing::error!(edge = %batch.edge, boot = batch.boot, missing, "scans are missing before a batch");
    }
    app.intake.missing.fetch_add(missing, Ordering::Relaxed);
    app.intake.repeated.fetch_add(skip, Ordering::Relaxed);
    app.intake.stored.fetch_add(stored, Ordering::Relaxed);
    app.intake.unknown.fetch_add(count - stored, Ordering::Relaxed);
    Ok(ScanReceipt { next_seq: end })
}

/// The redirections behind scans, deleted ones too, by domain and folded short id.
async fn list_known(
    app: &ApiState,
    records: &[ScanRecord],
) -> Result<HashMap<(String, String), Redirection>, ServiceError> {
    let mut keys: HashMap<&str, Vec<String>> = HashMap::new();
    for record in records {
        keys.entry(&record.domain).or_default().push(record.folded.to_string());
    }
    let mut conn = app.core.db.read().await?;
    let mut known = HashMap::new();
    for (domain, mut folded) in keys {
        folded.sort_unstable();
        folded.dedup();
        for item in redirections::list_many(&mut conn, domain, &folded).await? {
            let key = item.domain.fold(&item.redirect.short_id).into();
            known.insert((domain.to_owned(), key), item);
        }
    }
    Ok(known)
}

/// Records scans for subscribers and profiles, and counts hits; returns how many had a known short id.
async fn write(app: &ApiState, tx: &mut Tx, scans: Vec<Scan<'_>>) -> Result<u64, ServiceError> {
    let mut hits: HashMap<&str, HashMap<&str, i64>> = HashMap::new();
    let (mut stored, mut others) = (Vec::with_capacity(scans.len()), Vec::new());
    let mut known = 0;
    for scan in scans.into_iter().filter(|scan| scan.is_known) {
        known += 1;
        if scan.hits > 0 {
            let domain = hits.entry(&scan.record.domain).or_default();
            *domain.entry(&scan.record.folded).or_default() += scan.hits;
        }
        if scan.is_scan { &mut stored } else { &mut others }.extend(scan.action);
    }
    let now = app.core.clock.now();
    actions::record(tx, now, &stored).await?;
    actions::insert(tx, now, &others).await?;
    stored.extend(others);
    let accounts: BTreeSet<AccountId> = stored.iter().map(|action| action.account).collect();
    for account in accounts {
        observe::record(&*app.actions.scans, tx, account, now, &stored).await?;
    }
    // One order for all batches: two that touch the same rows do not lock each other out.
    let mut hits: Vec<(&str, HashMap<&str, i64>)> = hits.into_iter().collect();
    hits.sort_unstable_by_key(|(domain, _)| *domain);
    for (domain, counts) in hits {
        let mut counts: Vec<(&str, i64)> = counts.into_iter().collect();
        counts.sort_unstable();
        redirections::add_hits(tx, domain, &counts).await?;
    }
    Ok(known)
}
