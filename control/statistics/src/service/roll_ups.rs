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
    accounts: BTreeSet<AccountId>,
    /// Devices of the scans whose day is known.
    met: BTreeSet<Device>,
    rows: Rows<'a>,
}

impl<'a> Sums<'a> {
    /// Adds up scans that are stored and that nobody counted before.
    #[must_use]
    pub fn of(now: UnixMillis, scans: &[&'a CountedScan]) -> Self {
        let today = day(now.0);
        Self::with(now, scans, |device| (today - DEVICE_DAYS..=today.saturating_add(1)).contains(&device.day))
    }

    /// Adds up scans of any age, whose devices are all known.
    pub(super) fn of_old(now: UnixMillis, scans: &[&'a CountedScan]) -> Self {
        Self::with(now, scans, |_| true)
    }

    fn with(now: UnixMillis, scans: &[&'a CountedScan], is_known: impl Fn(&Device) -> bool) -> Self {
        let met: BTreeSet<Device> = scans.iter().filter_map(|scan| scan.device).filter(is_known).collect();
        // Of several scans by a new device the first one is by a new device.
        let mut first = met.clone();
        let counted: Vec<(&CountedScan, bool)> = scans
            .iter()
            .map(|scan| (*scan, scan.device.is_some_and(|device| first.remove(&device))))
            .collect();
        let accounts = scans.iter().map(|scan| scan.account).collect();
        Self { accounts, met, rows: add_up(&counted, Kept::at(now)) }
    }

    /// Stores which devices scanned; those that had scanned before are no new ones.
    pub async fn add_devices(&mut self, tx: &mut Tx) -> Result<(), ServiceError> {
        let new = devices::add(tx, &self.met).await?;
        self.rows.set_new_devices(&new);
        Ok(())
    }

    /// Waits until no other batch is between here and its commit that adds to the roll-ups of the same accounts: all of them
    /// add to the same few rows, such as all scans of an hour. What a caller locks behind this it does not hold while it waits.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`](kernel::store::StoreError::Unavailable) when another transaction takes longer than 2 s.
    pub async fn take_turn(&self, tx: &mut Tx) -> Result<(), ServiceError> {
        if self.accounts.is_empty() {
            return Ok(());
        }
        Ok(roll_up_writes::take_turn(tx, &self.accounts).await?)
    }

    /// Adds to the roll-ups. It is the last statement before the commit, so that their rows are locked for a short time. Behind
    /// hits it waits for their rows 250 ms at most, because redirections are held: only a transaction without the turn can hold them.
    #[instrument(skip_all)]
    pub async fn write(&self, tx: &mut Tx) -> Result<(), ServiceError> {
        if self.accounts.is_empty() {
            return Ok(());
        }
        Ok(roll_up_writes::add(tx, &self.rows).await?)
    }
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
