//! Adds scans to the roll-ups, in the transaction that writes what follows from them.

use std::collections::BTreeSet;

use shared::{id::AccountId, time::UnixMillis};
use tracing::instrument;

use super::Core;
use crate::{
    domain::{
        counted_scan::{CountedScan, Device, day},
        retention::Kept,
        roll_ups::{Rows, add_up},
    },
    error::ServiceError,
    store::{Ctx, Tx, backfill, devices, roll_up_writes, scan_statistics},
};

/// Days for which devices are known: a scan that comes later is counted, but not as one of a new device.
const DEVICE_DAYS: i32 = 3;

/// Rows that one transaction removes.
const PURGE_STEP: u32 = 5_000;

/// What scans add to the roll-ups. It is added up in memory, before a transaction begins.
#[derive(Debug)]
pub struct Sums<'a> {
    scans: Vec<&'a CountedScan>,
    /// Devices of the scans whose day is known.
    met: BTreeSet<Device>,
    kept: Kept,
    rows: Rows<'a>,
}

impl<'a> Sums<'a> {
    /// Adds up scans that are stored and that nobody counted before.
    #[must_use]
    pub fn of(now: UnixMillis, scans: Vec<&'a CountedScan>) -> Self {
        let today = day(now.0);
        Self::with(now, scans, |device| (today - DEVICE_DAYS..=today.saturating_add(1)).contains(&device.day))
    }

    /// Adds up scans of any age, whose devices are all known.
    pub(super) fn of_old(now: UnixMillis, scans: Vec<&'a CountedScan>) -> Self {
        Self::with(now, scans, |_| true)
    }

    /// Takes every device for a new one: most of them scan once a day.
    fn with(now: UnixMillis, scans: Vec<&'a CountedScan>, is_known: impl Fn(&Device) -> bool) -> Self {
        let kept = Kept::at(now);
        let met: BTreeSet<Device> = scans.iter().filter_map(|scan| scan.device).filter(is_known).collect();
        let rows = add_up(&by_first_scan(&scans, met.clone()), kept);
        Self { scans, met, kept, rows }
    }

    /// Stores which devices scanned, and takes those that had scanned before out of the new ones.
    pub async fn add_devices(&mut self, tx: &mut Tx) -> Result<(), ServiceError> {
        let new = devices::add(tx, &self.met).await?;
        let known: BTreeSet<Device> = self.met.difference(&new).copied().collect();
        for (scan, is_first) in by_first_scan(&self.scans, known) {
            if is_first {
                self.rows.set_known_device(scan, self.kept);
            }
        }
        Ok(())
    }

    /// Waits until no other batch is between here and its commit that adds to the roll-ups of the same accounts: all of them
    /// add to the same few rows, such as all scans of an hour. A caller that holds other rows by then does not hold them
    /// while it waits for these.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`](kernel::store::StoreError::Unavailable) when another transaction takes longer than 2 s.
    pub async fn take_turn(&self, tx: &mut Tx) -> Result<(), ServiceError> {
        let accounts: BTreeSet<AccountId> = self.scans.iter().map(|scan| scan.account).collect();
        if accounts.is_empty() {
            return Ok(());
        }
        roll_up_writes::bound_wait(tx).await?;
        Ok(roll_up_writes::take_turn(tx, &accounts).await?)
    }

    /// Adds to the roll-ups. It is the last statement before the commit, so that their rows are locked for a short time.
    #[instrument(skip_all, fields(scans = self.scans.len()))]
    pub async fn write(&self, tx: &mut Tx) -> Result<(), ServiceError> {
        if self.scans.is_empty() {
            return Ok(());
        }
        Ok(roll_up_writes::add(tx, &self.rows).await?)
    }
}

/// Each scan, with whether it is the first one of one of these devices.
fn by_first_scan<'a>(
    scans: &[&'a CountedScan],
    mut devices: BTreeSet<Device>,
) -> Vec<(&'a CountedScan, bool)> {
    scans.iter().map(|scan| (*scan, scan.device.is_some_and(|device| devices.remove(&device)))).collect()
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
