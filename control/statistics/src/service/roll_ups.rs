//! Adds scans to the roll-ups, in the transaction that writes what follows from them.

use std::collections::BTreeSet;

use shared::time::UnixMillis;
use tracing::instrument;

use super::Core;
use crate::{
    domain::{
        counted_scan::{CountedScan, Device, day},
        retention::Kept,
        roll_ups::add_up,
    },
    error::ServiceError,
    store::{Ctx, Tx, backfill, devices, scan_statistics},
};

/// Days for which devices are known: a scan that comes later is counted, but not as one of a new device.
const DEVICE_DAYS: i32 = 3;

/// Rows that one transaction removes.
const PURGE_STEP: u32 = 5_000;

/// Adds scans that are stored and that nobody counted before.
#[instrument(skip_all, fields(scans = scans.len()))]
pub async fn record(tx: &mut Tx, now: UnixMillis, scans: &[CountedScan]) -> Result<(), ServiceError> {
    let today = day(now.0);
    let is_known = |device: &Device| (today - DEVICE_DAYS..=today.saturating_add(1)).contains(&device.day);
    add(tx, now, scans, is_known).await
}

/// Adds scans of any age, whose devices are all known.
pub(super) async fn record_old(
    tx: &mut Tx,
    now: UnixMillis,
    scans: &[CountedScan],
) -> Result<(), ServiceError> {
    add(tx, now, scans, |_| true).await
}

async fn add(
    tx: &mut Tx,
    now: UnixMillis,
    scans: &[CountedScan],
    is_known: impl Fn(&Device) -> bool,
) -> Result<(), ServiceError> {
    if scans.is_empty() {
        return Ok(());
    }
    scan_statistics::bound_wait(tx).await?;
    let met: BTreeSet<Device> = scans.iter().filter_map(|scan| scan.device).filter(is_known).collect();
    let mut new = devices::add(tx, &met).await?;
    // Of several scans by a new device the first one is by a new device.
    let counted: Vec<(&CountedScan, bool)> =
        scans.iter().map(|scan| (scan, scan.device.is_some_and(|device| new.remove(&device)))).collect();
    Ok(scan_statistics::add(tx, &add_up(&counted, Kept::at(now))).await?)
}

/// Removes rows by the hour, and those of links, that cannot be asked for any more; returns how many.
#[instrument(skip_all)]
pub async fn purge(core: &Core) -> Result<u64, ServiceError> {
    let kept = Kept::at(core.clock.now());
    let mut gone = 0;
    loop {
        let mut tx = core.db.begin(&Ctx::default()).await?;
        let hours = scan_statistics::purge_hours(&mut tx, kept.from_hour, PURGE_STEP).await?;
        let days = scan_statistics::purge_links(&mut tx, kept.links_from_day, PURGE_STEP).await?;
        tx.commit().await?;
        gone += hours + days;
        if hours.max(days) < u64::from(PURGE_STEP) {
            return Ok(gone);
        }
    }
}

/// Removes devices of days that are over; returns how many. While the backfill runs they stay, because it meets old days.
#[instrument(skip_all)]
pub async fn purge_devices(core: &Core) -> Result<u64, ServiceError> {
    let mut gone = 0;
    if !backfill::read(&mut core.db.read().await?).await?.is_done {
        return Ok(gone);
    }
    let before = day(core.clock.now().0) - DEVICE_DAYS;
    loop {
        let mut tx = core.db.begin(&Ctx::default()).await?;
        let step = devices::purge(&mut tx, before, PURGE_STEP).await?;
        tx.commit().await?;
        gone += step;
        if step < u64::from(PURGE_STEP) {
            return Ok(gone);
        }
    }
}
