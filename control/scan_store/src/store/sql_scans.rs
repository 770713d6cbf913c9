//! The store in SQL: Postgres or SQLite.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fmt,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
};

use futures_util::future::BoxFuture;
use kernel::{
    domain::action::Action,
    execute, on_db,
    store::{Conn, Ctx, Db, StoreError, Tx, listing::Selection},
};
use shared::{
    id::{AccountId, ActionId},
    time::UnixMillis,
};

use super::{months, pass_on::passed_on, text_cache::TextCache};
use crate::{
    Appended, Batch, Boot, Count, Description, NewScan, ScanPosition, ScanStore, Seen, Sighted, Sought,
    domain::month::{DAY_MS, Month, day_of},
};

const FIND_ACCOUNT: &str = "SELECT id FROM scan_accounts WHERE account_id = $1";
const ADD_ACCOUNT: &str =
    "INSERT INTO scan_accounts (account_id) VALUES ($1) ON CONFLICT (account_id) DO NOTHING";

/// Scans in a SQL database.
pub struct SqlScans {
    pub(super) db: Db,
    /// Numbers of texts.
    pub(super) texts: Mutex<TextCache>,
    /// Numbers of accounts, which never change.
    accounts: Mutex<HashMap<AccountId, i32>>,
    /// Months that have tables.
    made: Mutex<BTreeSet<Month>>,
    pub(super) last_created: LastCreated,
}

/// When the last scan of this process was created.
#[derive(Debug, Default)]
pub(super) struct LastCreated(AtomicI64);

impl LastCreated {
    /// The same time, or that of the last scan where a clock went back a little. One that goes back further was wrong.
    pub(super) fn next(&self, now: UnixMillis) -> UnixMillis {
        let last = self.0.swap(now.0, Ordering::Relaxed);
        if !(0..BACK_MS).contains(&(last - now.0)) {
            return now;
        }
        self.0.fetch_max(last, Ordering::Relaxed);
        UnixMillis(last)
    }
}

/// How far a clock is evened out.
const BACK_MS: i64 = 60_000;

impl SqlScans {
    /// The store in a database that has its tables.
    #[must_use]
    pub fn new(db: Db) -> Self {
        Self {
            db,
            texts: Mutex::default(),
            accounts: Mutex::default(),
            made: Mutex::default(),
            last_created: LastCreated::default(),
        }
    }

    /// The number of an account; `None` when it never had a scan.
    pub(super) async fn find_account(&self, account: AccountId) -> Result<Option<i32>, StoreError> {
        if let Some(known) = lock(&self.accounts).get(&account) {
            return Ok(Some(*known));
        }
        let found = find_account(&mut self.db.read().await?, account).await?;
        if let Some(number) = found {
            lock(&self.accounts).insert(account, number);
        }
        Ok(found)
    }

    /// The number of an account, which is given one if it has none.
    pub(super) async fn account(&self, account: AccountId) -> Result<i32, StoreError> {
        if let Some(known) = self.find_account(account).await? {
            return Ok(known);
        }
        let mut tx = self.db.begin(&Ctx::default()).await?;
        let id = account.as_str();
        execute!(&mut *tx, ADD_ACCOUNT, id)?;
        tx.commit().await?;
        let found = self.find_account(account).await?;
        found.ok_or_else(|| StoreError::Row(format!("account {account} has no number")))
    }

    /// Makes the tables of a month, unless this process saw them.
    pub(super) async fn make_known(&self, month: Month) -> Result<(), StoreError> {
        if lock(&self.made).contains(&month) {
            return Ok(());
        }
        months::make(&self.db, month).await?;
        lock(&self.made).insert(month);
        Ok(())
    }

    /// Forgets what is known of a month that was dropped.
    pub(super) fn forget(&self, month: Month) {
        lock(&self.made).remove(&month);
        lock(&self.texts).forget();
    }
}

/// What a lock guards is whole at each moment, also where a thread panicked.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn find_account(conn: &mut Conn, account: AccountId) -> Result<Option<i32>, StoreError> {
    let id = account.as_str();
    Ok(on_db!(conn, |c| sqlx::query_scalar(FIND_ACCOUNT).bind(id).fetch_optional(c).await)?)
}

impl fmt::Debug for SqlScans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SqlScans")
    }
}

impl ScanStore for SqlScans {
    passed_on!();

    fn find_next_seq<'a>(&'a self, boot: Boot<'a>) -> BoxFuture<'a, Result<Option<u64>, StoreError>> {
        Box::pin(self.next_seq(boot))
    }

    fn adopt<'a>(
        &'a self,
        within: Option<&'a mut Tx>,
        now: UnixMillis,
        scans: &'a [(i64, UnixMillis, NewScan)],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.adopt_all(within, now, scans))
    }

    fn rewrite<'a>(
        &'a self,
        now: UnixMillis,
        scans: &'a [(Seen, NewScan)],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.rewrite_all(now, scans))
    }

    fn erase_texts(
        &self,
        account: AccountId,
        after: Option<ScanPosition>,
    ) -> BoxFuture<'_, Result<Option<ScanPosition>, StoreError>> {
        Box::pin(self.erase_some_texts(account, after))
    }

    fn make_month(&self, at: UnixMillis) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.make_known(Month::of(at)))
    }

    fn begin_day(&self, now: UnixMillis) -> BoxFuture<'_, Result<(UnixMillis, bool), StoreError>> {
        Box::pin(async move {
            let (day, is_mine) = self.day_of_retention(day_of(now)).await?;
            Ok((UnixMillis(i64::from(day) * DAY_MS), is_mine))
        })
    }

    fn delete_before<'a>(
        &'a self,
        kept: &'a BTreeMap<AccountId, UnixMillis>,
        day: UnixMillis,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(async move {
            let gone = self.delete_older(kept).await?;
            // Batches of yesterday may be under way.
            self.delete_loose(day_of(day) - 1).await?;
            self.delete_boots().await?;
            Ok(gone)
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.db.close())
    }
}
