//! Scan intake: turns batches from edges into actions and hits, each scan once (`control/README.md`, "Scan intake").

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
    domain::quota::Quota,
    error::ServiceError,
    store::{Ctx, Db, Tx, quotas},
};
use redirects::{domain::redirection::Redirection, store::redirections};
use shared::{
    id::AccountId,
    problem::Code,
    time::UnixMillis,
    wire::scan::{MAX_BATCH, ScanBatch, ScanReceipt, ScanRecord},
};
use statistics::{domain::counted_scan::CountedScan, service::roll_ups};

use crate::state::ApiState;

/// Scans per transaction on SQLite, where there is one writer and changes of users wait for it.
const SQLITE_STEP: usize = 100;

/// A part of a batch, which is stored whole.
#[derive(Clone, Copy)]
struct Part<'a> {
    edge: &'a str,
    boot: u64,
    first_seq: u64,
    records: &'a [ScanRecord],
}

/// Stores a batch, in parts: new scans become actions and hits, and the cursor moves, in one transaction each.
///
/// # Errors
/// 400 for a batch that is too large; the store's errors (repeat the batch: parts that were stored are recognised).
pub async fn ingest(app: &ApiState, batch: &ScanBatch) -> Result<ScanReceipt, ServiceError> {
    if batch.records.len() > MAX_BATCH {
        let text = format!("A batch holds at most {MAX_BATCH} scans, not {}.", batch.records.len());
        return Err(ServiceError::refused(Code::Invalid, text));
    }
    if batch.first_seq.checked_add(batch.records.len() as u64).is_none() {
        return Err(ServiceError::refused(Code::Invalid, "firstSeq is too large."));
    }
    let step = match &app.core.db {
        Db::Sqlite { .. } => SQLITE_STEP,
        Db::Pg(_) => MAX_BATCH,
    };
    let mut part = Part { edge: &batch.edge, boot: batch.boot, first_seq: batch.first_seq, records: &[] };
    let mut left = batch.records.as_slice();
    loop {
        (part.records, left) = left.split_at(left.len().min(step));
        let receipt = ingest_part(app, part).await?;
        if left.is_empty() {
            return Ok(receipt);
        }
        part.first_seq += part.records.len() as u64;
    }
}

async fn ingest_part(app: &ApiState, part: Part<'_>) -> Result<ScanReceipt, ServiceError> {
    let end = part.first_seq + part.records.len() as u64;
    // All that takes time happens before the transaction: it may hold the only writer.
    let scans = read(app, part).await?;
    let mut tx = app.core.db.begin(&Ctx::default()).await?;
    let next = scans::lock_cursor(&mut tx, part.edge, part.boot).await?;
    if end <= next {
        app.intake.repeated.fetch_add(part.records.len() as u64, Ordering::Relaxed);
        return Ok(ScanReceipt { next_seq: next });
    }
    // An overlap was stored before; a gap was lost on the edge and stays visible in the counter.
    let skip = next.saturating_sub(part.first_seq);
    let missing = part.first_seq.saturating_sub(next);
    let fresh: Vec<Scan<'_>> = scans.into_iter().skip(usize::try_from(skip).unwrap_or(usize::MAX)).collect();
    let count = fresh.len() as u64;
    let (known, over) = store(app, &mut tx, fresh).await?;
    scans::move_cursor(&mut tx, part.edge, part.boot, next, end).await?;
    tx.commit().await?;
    app.core.readers.wake_events();
    if missing > 0 {
        tracing::error!(edge = %part.edge, boot = part.boot, missing, "scans are missing before a batch");
    }
    app.intake.missing.fetch_add(missing, Ordering::Relaxed);
    app.intake.repeated.fetch_add(skip, Ordering::Relaxed);
    app.intake.stored.fetch_add(known - over, Ordering::Relaxed);
    app.intake.over_quota.fetch_add(over, Ordering::Relaxed);
    app.intake.unknown.fetch_add(count - known, Ordering::Relaxed);
    Ok(ScanReceipt { next_seq: end })
}

/// A scan prepared for storing; without an action if its short id is unknown.
struct Scan<'a> {
    record: &'a ScanRecord,
    action: Option<NewAction>,
    hits: i64,
    is_known: bool,
    counted: Option<CountedScan>,
}

/// Prepares the actions of a part's scans.
async fn read<'a>(app: &ApiState, part: Part<'a>) -> Result<Vec<Scan<'a>>, ServiceError> {
    let known = list_known(app, part.records).await?;
    let scan = |(seq, record): (u64, &'a ScanRecord)| {
        let agent = read_agent(&app.actions.agents, record.user_agent.as_deref());
        let found = known.get(&(record.domain.to_string(), record.folded.to_string()));
        let locality = app.actions.geo_ip.find(record.ip);
        let counted =
            found.map(|item| CountedScan::of_record(&app.statistics.devices, record, item, agent, &locality));
        // A sum of scans is counted in `hits` but creates no action, because its clients are unknown.
        let action = found.filter(|_| record.count.is_none()).map(|item| NewAction {
            id: scan::action_id(&app.core.secrets.scan_id, part.edge, part.boot, seq, record),
            account: item.account,
            kind: IMPLICIT_SCANS.to_owned(),
            thng: item.redirect.thng_id,
            product: item.redirect.product_id,
            timestamp: record.at,
            doc: scan::document(record, item.redirect.short_id.as_str(), &item.scopes, agent, &locality),
        });
        let hits = record.count.map_or(i64::from(!agent.bot), |count| i64::from(count.get()));
        Scan { record, action, hits, is_known: found.is_some(), counted }
    };
    Ok((part.first_seq..).zip(part.records).map(scan).collect())
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

/// Stores scans as actions and counts hits; returns how many had a known short id, and of how many the action was not
/// stored, because the account has used up its scans of the day.
async fn store(app: &ApiState, tx: &mut Tx, mut scans: Vec<Scan<'_>>) -> Result<(u64, u64), ServiceError> {
    let now = app.core.clock.now();
    let over = drop_above_quota(tx, &mut scans, now).await?;
    let mut hits: HashMap<&str, HashMap<&str, i64>> = HashMap::new();
    let mut new = Vec::with_capacity(scans.len());
    let mut counted = Vec::with_capacity(scans.len());
    let mut known = 0;
    for Scan { record, action, hits: count, is_known, counted: scan } in scans {
        if !is_known {
            continue;
        }
        known += 1;
        if count > 0 {
            *hits.entry(&record.domain).or_default().entry(&record.folded).or_default() += count;
        }
        new.extend(action);
        counted.extend(scan);
    }
    if !new.is_empty() {
        actions::insert_counted(tx, now, &new).await?;
        let accounts: BTreeSet<AccountId> = new.iter().map(|action| action.account).collect();
        for account in accounts {
            observe::record(tx, account, now, &new).await?;
        }
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
    Ok((known, over))
}

/// Drops what accounts may not store today any more, and counts it: whoever scanned was redirected, and `hits` have it.
async fn drop_above_quota(tx: &mut Tx, scans: &mut [Scan<'_>], now: UnixMillis) -> Result<u64, ServiceError> {
    let mut wanted: BTreeMap<AccountId, u64> = BTreeMap::new();
    for action in scans.iter().filter_map(|scan| scan.action.as_ref()) {
        *wanted.entry(action.account).or_default() += 1;
    }
    let mut room = quotas::charge_many(tx, Quota::ScansPerDay, &wanted, now).await?;
    let mut over = 0;
    for scan in scans {
        let Some(action) = &scan.action else { continue };
        match room.get_mut(&action.account) {
            Some(0) => {
                (scan.action, scan.counted) = (None, None);
                over += 1;
            }
            Some(left) => *left -= 1,
            None => {}
        }
    }
    Ok(over)
}
