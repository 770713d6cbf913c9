//! Quotas: limits, and the use of accounts that have one.
//!
//! A write counts in its own transaction and holds the row of the account from then on until the commit. So of two writes
//! that want the last place one gets it, and accounts without a limit wait for nobody. To avoid deadlocks, a transaction
//! locks these rows after those of Thngs, products and users. A transaction that is to hold the order of changes locks them
//! before ([`settle`]) or waits for a moment only ([`lock_soon`]), because everybody waits with it. Scan intake and writes
//! that accounts share wait for the rows of all their accounts.
//!
//! A transaction looks once for the quotas of an account, after its first write. So a first count has to wait only for
//! transactions that had begun to write before: they may not have seen the new quota.

use std::collections::{BTreeMap, HashMap};

use shared::{id::AccountId, time::UnixMillis};

use super::{
    Conn, StoreError, Tx,
    dialect::{self, signed, unsigned},
    execute, fetch_all, fetch_optional, parse,
    savepoints::Marked,
};
use crate::domain::quota::{Exceeded, Quota};

const KINDS: &str = "SELECT kind FROM quota_uses WHERE account_id = $1";
const FIND: &str = "SELECT most, day, used, over, fence, counted_at IS NOT NULL FROM quota_uses \
    WHERE account_id = $1 AND kind = $2";
const PG_LOCK: &str = "SELECT most, day, used, over, fence, counted_at IS NOT NULL FROM quota_uses \
    WHERE account_id = $1 AND kind = $2 FOR UPDATE";
const WRITE: &str =
    "UPDATE quota_uses SET day = $3, used = $4, over = $5 WHERE account_id = $1 AND kind = $2";
const PG_LIMITED: &str = "SELECT account_id FROM quota_uses WHERE kind = $1 AND account_id = ANY($2)";
const SQLITE_LIMITED: &str = "SELECT account_id FROM quota_uses WHERE kind = $1 \
    AND account_id IN (SELECT value FROM json_each($2))";
const PG_LOCK_MANY: &str = "SELECT account_id, most, day, used, over, fence, counted_at IS NOT NULL FROM quota_uses \
    WHERE kind = $1 AND account_id = ANY($2) ORDER BY account_id FOR UPDATE";
const SQLITE_MANY: &str = "SELECT account_id, most, day, used, over, fence, counted_at IS NOT NULL FROM quota_uses \
    WHERE kind = $1 AND account_id IN (SELECT value FROM json_each($2)) ORDER BY account_id";
const PG_LOCK_SOON: &str =
    "SELECT kind FROM quota_uses WHERE account_id = $1 AND kind = ANY($2) ORDER BY kind FOR UPDATE";
const PG_SHORT_WAIT: &str = "SELECT set_config('lock_timeout', '20ms', true)";
const PG_USUAL_WAIT: &str = "SELECT set_config('lock_timeout', '0', true)";

/// What a transaction knows of quotas.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The quotas of the accounts that it has written for, each as a bit.
    limits: HashMap<AccountId, u16>,
    /// What it removed. It is counted by the commit: a row of use that is locked last is in nobody's way.
    pub(super) released: Marked<(AccountId, Quota, u64)>,
}

const fn bit(quota: Quota) -> u16 {
    1 << quota as u16
}

/// The use of an account, as its row has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Use {
    /// How much the account may have.
    pub limit: u64,
    /// How much it has, today if the quota is one of a day.
    pub used: u64,
    /// How much came above it and was not stored.
    pub over: u64,
    /// Whether it was counted: before that, nothing is refused.
    pub is_counted: bool,
    /// Grows with each count.
    pub fence: i64,
    day: i64,
    stored: i64,
}

impl Use {
    /// The value of the column, which may be below 0 until a first count.
    #[must_use]
    pub const fn stored(&self) -> i64 {
        self.stored
    }

    const fn room(&self) -> u64 {
        if self.is_counted { self.limit.saturating_sub(self.used) } else { u64::MAX }
    }
}

type Row = (i64, i64, i64, i64, i64, bool);
type ManyRow = (String, i64, i64, i64, i64, i64, bool);

fn read((most, day, used, over, fence, is_counted): Row, today: i64) -> Use {
    // Another replica's clock may be a little ahead: a day that has begun stays begun. A day further ahead comes from a
    // wrong clock, and would never end.
    let has_begun = day == today || day == today.saturating_add(1);
    let (day, stored, over) = if has_begun { (day, used, over) } else { (today, 0, 0) };
    let (limit, used, over) = (unsigned(most), unsigned(stored), unsigned(over));
    Use { limit, used, over, is_counted, fence, day, stored }
}

/// The use of an account, if it has a limit.
pub async fn find(
    conn: &mut Conn,
    account: AccountId,
    quota: Quota,
    now: UnixMillis,
) -> Result<Option<Use>, StoreError> {
    fetch(conn, FIND, account, quota, now).await
}

/// The same, locked until the transaction ends.
pub async fn lock(
    tx: &mut Tx,
    account: AccountId,
    quota: Quota,
    now: UnixMillis,
) -> Result<Option<Use>, StoreError> {
    let sql = dialect::pick(tx, PG_LOCK, FIND);
    fetch(tx, sql, account, quota, now).await
}

async fn fetch(
    conn: &mut Conn,
    sql: &'static str,
    account: AccountId,
    quota: Quota,
    now: UnixMillis,
) -> Result<Option<Use>, StoreError> {
    let row: Option<Row> = fetch_optional!(conn, sql, account.as_str(), quota.as_str())?;
    Ok(row.map(|row| read(row, quota.day(now))))
}

/// Whether an account has a limit of a kind, as the transaction saw it first.
async fn has_limit(tx: &mut Tx, account: AccountId, quota: Quota) -> Result<bool, StoreError> {
    let bits = match tx.quotas.limits.get(&account) {
        Some(bits) => *bits,
        None => {
            let rows: Vec<(String,)> = fetch_all!(&mut **tx, KINDS, account.as_str())?;
            // A kind of a newer release is counted by that release alone.
            let known = rows.iter().filter_map(|(kind,)| kind.parse().ok());
            let bits = known.fold(0, |bits, quota| bits | bit(quota));
            tx.quotas.limits.insert(account, bits);
            bits
        }
    };
    Ok(bits & bit(quota) != 0)
}

async fn write(
    tx: &mut Tx,
    account: AccountId,
    quota: Quota,
    day: i64,
    (used, over): (i64, u64),
) -> Result<(), StoreError> {
    execute!(&mut **tx, WRITE, account.as_str(), quota.as_str(), day, used, signed(over))?;
    Ok(())
}

/// The use of a quota, locked, where something is counted and there is a limit.
async fn lock_limited(
    tx: &mut Tx,
    account: AccountId,
    quota: Quota,
    amount: u64,
    now: UnixMillis,
) -> Result<Option<Use>, StoreError> {
    if amount == 0 || !has_limit(tx, account, quota).await? {
        Ok(None)
    } else {
        lock(tx, account, quota, now).await
    }
}

/// Counts what a transaction adds to an account. It must have begun to write: see the top of this file.
///
/// # Errors
/// [`StoreError::Exceeded`] when it is too much: then what was written must be given up.
pub async fn charge(
    tx: &mut Tx,
    account: AccountId,
    quota: Quota,
    amount: u64,
    now: UnixMillis,
) -> Result<(), StoreError> {
    let Some(found) = lock_limited(tx, account, quota, amount, now).await? else { return Ok(()) };
    if amount > found.room() {
        let (limit, used) = (found.limit, found.used);
        return Err(StoreError::Exceeded(Exceeded { quota, limit, used, wanted: amount }));
    }
    write(tx, account, quota, found.day, (found.stored.saturating_add(signed(amount)), found.over)).await
}

/// Counts what a transaction adds to an account, also where it is too much.
pub async fn add(
    tx: &mut Tx,
    account: AccountId,
    quota: Quota,
    amount: u64,
    now: UnixMillis,
) -> Result<(), StoreError> {
    let Some(found) = lock_limited(tx, account, quota, amount, now).await? else { return Ok(()) };
    write(tx, account, quota, found.day, (found.stored.saturating_add(signed(amount)), found.over)).await
}

/// Counts as much as fits of what a transaction is about to add; returns how much that is, and why not all of it.
pub async fn charge_some(
    tx: &mut Tx,
    account: AccountId,
    quota: Quota,
    amount: u64,
    now: UnixMillis,
) -> Result<(u64, Option<Exceeded>), StoreError> {
    let Some(found) = lock_limited(tx, account, quota, amount, now).await? else {
        return Ok((amount, None));
    };
    let granted = amount.min(found.room());
    if granted > 0 {
        write(tx, account, quota, found.day, (found.stored.saturating_add(signed(granted)), found.over))
            .await?;
    }
    let (limit, used, wanted) = (found.limit, found.used + granted, amount - granted);
    Ok((granted, (wanted > 0).then_some(Exceeded { quota, limit, used, wanted })))
}

/// Counts as much as fits of what a transaction is about to add to several accounts, and what came above; returns how
/// much of each account fits where that is not all of it.
pub async fn charge_many(
    tx: &mut Tx,
    quota: Quota,
    amounts: &BTreeMap<AccountId, u64>,
    now: UnixMillis,
) -> Result<HashMap<AccountId, u64>, StoreError> {
    let ids: Vec<&str> = amounts.keys().map(AccountId::as_str).collect();
    // One statement locks them all, in one order: two batches do not lock each other out.
    let rows = dialect::fetch_in_list!(tx, ManyRow, PG_LOCK_MANY, SQLITE_MANY, [quota.as_str()], &ids)?;
    let mut granted = HashMap::new();
    for (id, most, day, used, over, fence, is_counted) in rows {
        let account = parse("account_id", &id)?;
        let Some(amount) = amounts.get(&account).copied() else { continue };
        let found = read((most, day, used, over, fence, is_counted), quota.day(now));
        let fits = amount.min(found.room());
        let after = (found.stored.saturating_add(signed(fits)), found.over.saturating_add(amount - fits));
        write(tx, account, quota, found.day, after).await?;
        if fits < amount {
            granted.insert(account, fits);
        }
    }
    Ok(granted)
}

/// Locks the rows of some quotas of an account, for a transaction that holds the order of changes: all accounts wait with
/// it, so it waits for at most 20 ms a row.
///
/// # Errors
/// [`StoreError::Unavailable`] when another transaction holds one of them for longer.
pub async fn lock_soon(tx: &mut Tx, account: AccountId, quotas: &[Quota]) -> Result<(), StoreError> {
    let Conn::PgTx(c) = &mut **tx else { return Ok(()) };
    let kinds: Vec<&str> = quotas.iter().map(|quota| quota.as_str()).collect();
    // After an error the caller gives up its savepoint, and with it this setting.
    sqlx::query(PG_SHORT_WAIT).execute(&mut **c).await?;
    sqlx::query(PG_LOCK_SOON).bind(account.as_str()).bind(kinds).execute(&mut **c).await?;
    sqlx::query(PG_USUAL_WAIT).execute(&mut **c).await?;
    Ok(())
}

/// Counts what a transaction removed from an account, when it commits.
pub fn release(tx: &mut Tx, account: AccountId, quota: Quota, amount: u64) {
    if amount > 0 {
        tx.quotas.released.extend([(account, quota, amount)]);
    }
}

/// Counts what was removed, account by account in one order, so that two transactions never wait for each other. The commit
/// does so; who takes the order of changes afterwards does so before. Within a savepoint it is left to the commit, because
/// the savepoint may be given up.
pub async fn settle(tx: &mut Tx) -> Result<(), StoreError> {
    if tx.quotas.released.is_marked() {
        return Ok(());
    }
    let mut released: BTreeMap<(AccountId, Quota), u64> = BTreeMap::new();
    for (account, quota, amount) in tx.quotas.released.take() {
        *released.entry((account, quota)).or_default() += amount;
    }
    for ((account, quota), amount) in released {
        if !has_limit(tx, account, quota).await? {
            continue;
        }
        // Nothing that is of a day is given back, so that any time will do.
        let now = UnixMillis::default();
        if let Some(found) = lock(tx, account, quota, now).await? {
            let left = found.stored.saturating_sub(signed(amount));
            write(tx, account, quota, found.day, (left, found.over)).await?;
        }
    }
    Ok(())
}

/// Refuses what would add something to an account that is full, before anything else is looked at. It locks nothing:
/// [`charge`] decides between two that want the last place.
///
/// # Errors
/// [`StoreError::Exceeded`].
pub async fn require_room(
    conn: &mut Conn,
    account: AccountId,
    quota: Quota,
    now: UnixMillis,
) -> Result<(), StoreError> {
    match find(conn, account, quota, now).await? {
        Some(found) if found.room() == 0 => {
            let (limit, used) = (found.limit, found.used);
            Err(StoreError::Exceeded(Exceeded { quota, limit, used, wanted: 1 }))
        }
        Some(_) | None => Ok(()),
    }
}

/// Those of some accounts that have a limit of a kind.
pub async fn list_limited(
    conn: &mut Conn,
    quota: Quota,
    accounts: &[AccountId],
) -> Result<Vec<AccountId>, StoreError> {
    let ids: Vec<&str> = accounts.iter().map(AccountId::as_str).collect();
    let rows = dialect::fetch_in_list!(conn, (String,), PG_LIMITED, SQLITE_LIMITED, [quota.as_str()], &ids)?;
    rows.iter().map(|(id,)| parse("account_id", id)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_begins_once() {
        let at = |day, today| {
            let Use { used, over, day, .. } = read((10, day, 7, 2, 1, true), today);
            (used, over, day)
        };
        assert_eq!(at(5, 5), (7, 2, 5));
        assert_eq!(at(5, 6), (0, 0, 6), "a new day");
        assert_eq!(at(6, 5), (7, 2, 6), "a replica whose clock is behind");
        assert_eq!(at(7, 5), (0, 0, 5), "a clock that was wrong by days");
        assert_eq!(read((10, 0, -3, 0, 1, false), 0).room(), u64::MAX, "nothing is counted yet");
        assert_eq!(read((10, 0, 12, 0, 1, true), 0).room(), 0, "more than the limit");
    }
}
