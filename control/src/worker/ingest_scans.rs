//! The intake of scans: batches of edges become actions and hits, each scan once (design: push, 6).

use std::{collections::HashMap, sync::atomic::Ordering};

use shared::{
    problem::Code,
    wire::scan::{MAX_BATCH, ScanBatch, ScanReceipt, ScanRecord},
};

use crate::{
    domain::{
        redirection::Redirection,
        scan::{self, IMPLICIT_SCANS},
    },
    error::ServiceError,
    service::App,
    store::{
        Tx,
        actions::{self, NewAction},
        redirections, scans,
    },
};

/// Takes a batch: its new scans become actions and hits, and its cursor moves, in one transaction.
///
/// # Errors
/// 400 for a batch that is too large; the store's errors (repeat the batch, nothing of it was stored).
pub async fn ingest(app: &App, batch: &ScanBatch) -> Result<ScanReceipt, ServiceError> {
    if batch.records.len() > MAX_BATCH {
        let text = format!("A batch holds at most {MAX_BATCH} scans, not {}.", batch.records.len());
        return Err(ServiceError::refused(Code::Invalid, text));
    }
    let end = batch
        .first_seq
        .checked_add(batch.records.len() as u64)
        .ok_or_else(|| ServiceError::refused(Code::Invalid, "firstSeq is too large."))?;
    let mut tx = app.db.begin().await?;
    let next = scans::lock_cursor(&mut tx, &batch.edge, batch.boot).await?;
    if end <= next {
        app.intake.repeated.fetch_add(batch.records.len() as u64, Ordering::Relaxed);
        return Ok(ScanReceipt { next_seq: next });
    }
    // An overlap was stored before; a gap was lost on the edge and stays visible in the counter.
    let skip = next.saturating_sub(batch.first_seq);
    let missing = batch.first_seq.saturating_sub(next);
    let from = batch.first_seq + skip;
    let fresh =
        &batch.records[usize::try_from(skip).unwrap_or(batch.records.len()).min(batch.records.len())..];
    let stored = store(app, &mut tx, batch, from, fresh).await?;
    scans::move_cursor(&mut tx, &batch.edge, batch.boot, next, end).await?;
    tx.commit().await?;
    if missing > 0 {
        tracing::error!(edge = %batch.edge, boot = batch.boot, missing, "scans are missing before a batch");
    }
    app.intake.missing.fetch_add(missing, Ordering::Relaxed);
    app.intake.repeated.fetch_add(skip, Ordering::Relaxed);
    app.intake.stored.fetch_add(stored, Ordering::Relaxed);
    app.intake.unknown.fetch_add(fresh.len() as u64 - stored, Ordering::Relaxed);
    Ok(ScanReceipt { next_seq: end })
}

/// Stores scans as actions and counts hits; gives how many had a known short id.
async fn store(
    app: &App,
    tx: &mut Tx,
    batch: &ScanBatch,
    from: u64,
    records: &[ScanRecord],
) -> Result<u64, ServiceError> {
    let mut keys: HashMap<&str, Vec<String>> = HashMap::new();
    for record in records {
        keys.entry(&record.domain).or_default().push(record.folded.to_string());
    }
    let mut known: HashMap<(String, String), Redirection> = HashMap::new();
    for (domain, mut folded) in keys {
        folded.sort_unstable();
        folded.dedup();
        for item in redirections::list_many(tx, domain, &folded).await? {
            let key = item.domain.fold(&item.redirect.short_id).into();
            known.insert((domain.to_owned(), key), item);
        }
    }
    let mut hits: HashMap<&str, HashMap<&str, i64>> = HashMap::new();
    let mut new = Vec::with_capacity(records.len());
    for (seq, record) in (from..).zip(records) {
        let Some(item) = known.get(&(record.domain.to_string(), record.folded.to_string())) else { continue };
        let agent = scan::read_agent(&app.agents, record.user_agent.as_deref());
        if !agent.bot {
            *hits.entry(&record.domain).or_default().entry(&record.folded).or_default() += 1;
        }
        new.push(NewAction {
            id: scan::action_id(&app.secrets.scan_id, &batch.edge, batch.boot, seq, record),
            account: item.account,
            kind: IMPLICIT_SCANS.to_owned(),
            thng: item.redirect.thng_id,
            product: item.redirect.product_id,
            timestamp: record.at,
            doc: scan::document(record, item.redirect.short_id.as_str(), agent, &app.geo_ip.find(record.ip)),
        });
    }
    if !new.is_empty() {
        actions::insert(tx, app.clock.now(), &new).await?;
    }
    // One order for all batches: two that touch the same rows do not lock each other out.
    let mut hits: Vec<(&str, HashMap<&str, i64>)> = hits.into_iter().collect();
    hits.sort_unstable_by_key(|(domain, _)| *domain);
    for (domain, counts) in hits {
        let mut counts: Vec<(&str, i64)> = counts.into_iter().collect();
        counts.sort_unstable();
        redirections::add_hits(tx, domain, &counts).await?;
    }
    Ok(new.len() as u64)
}
