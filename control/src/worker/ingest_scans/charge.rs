//! Charges scans to the quotas of their accounts, before they are stored and each once.
//!
//! What was decided is kept until its effects are written: a batch that comes again, whole or in other pieces, is stored
//! as it was decided the first time, also where a quota has changed since.

use std::collections::{BTreeMap, BTreeSet};

use ::actions::{
    domain::scan_charges::{Charges, NotStored},
    store::scan_charges,
};
use kernel::{
    domain::quota::Quota,
    error::ServiceError,
    store::{Ctx, Tx, quotas},
};
use scan_store::Boot;
use shared::{id::AccountId, wire::scan::ScanBatch};

use super::prepared::Scan;
use crate::state::ApiState;

/// Charges those scans of a batch that nobody charged before; returns which ones are not to be stored. `written` says how
/// far the effects of the boot are written.
pub(super) async fn charge(
    app: &ApiState,
    batch: &ScanBatch,
    scans: &[Scan],
    written: u64,
) -> Result<NotStored, ServiceError> {
    let end = batch.first_seq + scans.len() as u64;
    let accounts: BTreeSet<AccountId> =
        scans.iter().filter_map(|scan| scan.action.as_ref()).map(|action| action.account).collect();
    let accounts: Vec<AccountId> = accounts.into_iter().collect();
    let mut conn = app.core.db.read().await?;
    let known = scan_charges::find(&mut conn, &batch.edge, batch.boot).await?;
    // Few accounts have a quota: for the others nothing is written.
    let is_limited = known.next_seq < end
        && written < end
        && !quotas::list_limited(&mut conn, Quota::ScansPerDay, &accounts).await?.is_empty();
    drop(conn);
    if !is_limited {
        return Ok(known.not_stored);
    }
    // What was stored before there was a quota is not charged.
    let boot = Boot { edge: &batch.edge, boot: batch.boot };
    let stored = app.actions.scans.pool.find_next_seq(boot).await?.unwrap_or_default();
    let mut tx = app.core.db.begin(&Ctx::default()).await?;
    let mut charges = scan_charges::lock(&mut tx, &batch.edge, batch.boot).await?;
    let first = charges.next_seq.max(stored).max(written);
    if first >= end {
        return Ok(charges.not_stored);
    }
    charges.not_stored.forget_below(written);
    decide(app, &mut tx, scans.iter().filter(|scan| scan.seq >= first), &mut charges).await?;
    charges.next_seq = end;
    scan_charges::write(&mut tx, &batch.edge, batch.boot, &charges).await?;
    tx.commit().await?;
    Ok(charges.not_stored)
}

/// Charges as many scans as their accounts may store, those that came first. What is above is counted: whoever scanned was
/// redirected, and `hits` have it.
async fn decide<'a>(
    app: &ApiState,
    tx: &mut Tx,
    scans: impl Iterator<Item = &'a Scan> + Clone,
    charges: &mut Charges,
) -> Result<(), ServiceError> {
    let now = app.core.clock.now();
    let mut wanted: BTreeMap<AccountId, u64> = BTreeMap::new();
    for action in scans.clone().filter_map(|scan| scan.action.as_ref()) {
        *wanted.entry(action.account).or_default() += 1;
    }
    let mut room = quotas::charge_many(tx, Quota::ScansPerDay, &wanted, now).await?;
    for scan in scans {
        match scan.action.as_ref().map(|action| room.get_mut(&action.account)) {
            Some(Some(0)) => charges.not_stored.above.push(scan.seq),
            Some(Some(left)) => *left -= 1,
            // All of this account fit.
            Some(None) => {}
            None if !scan.is_known => charges.not_stored.unknown.push(scan.seq),
            // A sum, of which no action is stored.
            None => {}
        }
    }
    Ok(())
}
