//! Removes scans whose time is over, with their texts: those of an account, and whole months.
//!
//! A text goes with the last scan that may have it: retention takes those whose last day is over for the account. Those of
//! single scans that were deleted are looked through once a day, and go where no other scan has them.

use std::{collections::BTreeMap, future::Future};

use kernel::{
    execute, fetch_all, on_db,
    store::{Conn, Ctx, Db, Raw, StoreError, dialect},
};
use shared::{id::AccountId, time::UnixMillis};
use sqlx::{AssertSqlSafe, types::Json};

use super::{
    months::{self, is_gone, of_month},
    sql_scans::SqlScans,
};
use crate::domain::month::{DAY_MS, Month, day_of};

// By the index of each account.
const OLD: &str = "SELECT o.id, o.account_id FROM (SELECT a.id, a.account_id, (SELECT MIN(t.created_at) FROM scans t \
    WHERE t.account = a.id) AS first FROM scan_accounts a) AS o WHERE o.first < $1 ORDER BY o.id";
pub(super) const ACCOUNTS: &str = "SELECT id, account_id FROM scan_accounts ORDER BY id";
const PG_DELETE_OLDER: &str = "DELETE FROM scans WHERE ctid IN (SELECT t.ctid FROM scans t \
    WHERE t.account = $1 AND t.created_at < $2 ORDER BY t.created_at LIMIT $3)";
const SQLITE_DELETE_OLDER: &str = "DELETE FROM scans WHERE seq IN (SELECT t.seq FROM scans t \
    WHERE t.account = $1 AND t.created_at < $2 ORDER BY t.created_at LIMIT $3)";

const PG_OLD_TEXTS: &str = "SELECT x.account, x.id FROM UNNEST($1::int[], $2::int[]) AS n (a, d) \
    JOIN scan_texts x ON x.account = n.a AND x.last_day < n.d ORDER BY x.account, x.id";
const SQLITE_OLD_TEXTS: &str = "SELECT x.account, x.id FROM json_each($1) n CROSS JOIN scan_texts x \
    ON x.account = n.value ->> '$[0]' AND x.last_day < n.value ->> '$[1]' ORDER BY x.account, x.id";
const PG_DELETE_TEXTS: &str =
    "DELETE FROM scan_texts WHERE account = $1 AND last_day < $2 AND id = ANY($3) RETURNING id";
const SQLITE_DELETE_TEXTS: &str = "DELETE FROM scan_texts WHERE account = $1 AND last_day < $2 \
    AND id IN (SELECT value FROM json_each($3)) RETURNING id";
const PG_DELETE_FACETS: &str = "DELETE FROM scan_facets WHERE account = $1 AND id = ANY($2)";
const SQLITE_DELETE_FACETS: &str =
    "DELETE FROM scan_facets WHERE account = $1 AND id IN (SELECT value FROM json_each($2))";

// The number of a boot is at least the time of its start. What was stored of one that is gone here is known by the cursor of
// its effects.
const DELETE_BOOTS: &str = "DELETE FROM scan_intake WHERE boot < \
    (SELECT MAX(n.boot) FROM scan_intake n WHERE n.edge_id = scan_intake.edge_id) - $1";

const FIND_DAY: &str = "SELECT day FROM scan_retention WHERE id = 1";
const BEGIN_DAY: &str = "INSERT INTO scan_retention (id, day) VALUES (1, $1) ON CONFLICT (id) DO NOTHING";
const MOVE_DAY: &str = "UPDATE scan_retention SET day = $2 WHERE id = 1 AND day = $1";

/// Rows that one transaction removes: some ten milliseconds.
const STEP: i64 = 1_000;

/// How much older a boot of an edge is than its last one when it is forgotten.
const BOOT_MS: i64 = 90 * DAY_MS;

/// Pages that SQLite gives back at a time, 4 KiB each: writers wait some milliseconds.
const SQLITE_SHRINK: &str = "PRAGMA incremental_vacuum(500)";
const SQLITE_FREE: &str = "PRAGMA freelist_count";

/// Most such steps of one run: 4 GB. Others of upkeep wait for it.
const MOST_SHRINKS: usize = 2_000;

impl SqlScans {
    pub(super) async fn day_of_retention(&self, today: i32) -> Result<(i32, bool), StoreError> {
        let found: Option<i32> = {
            let mut conn = self.db.read().await?;
            on_db!(&mut conn, |c| sqlx::query_scalar(FIND_DAY).fetch_optional(c).await)?
        };
        // A clock that was ahead is followed back at once, and one that leaps by a day at a time.
        let next = found.map_or(today, |day| today.min(day.saturating_add(1)));
        if found == Some(next) {
            return Ok((next, false));
        }
        let mut tx = self.db.begin(&Ctx::default()).await?;
        let changed = match found {
            None => execute!(&mut *tx, BEGIN_DAY, next)?,
            Some(day) => execute!(&mut *tx, MOVE_DAY, day, next)?,
        };
        tx.commit().await?;
        // Another replica has taken the day.
        Ok((next, changed == 1))
    }

    pub(super) async fn delete_older(
        &self,
        kept: &BTreeMap<AccountId, UnixMillis>,
    ) -> Result<u64, StoreError> {
        let Some(newest) = kept.values().max().copied() else { return Ok(0) };
        let all = months::list(&mut self.db.read().await?).await?;
        let mut gone = 0;
        for month in all.into_iter().filter(|month| month.start() < newest) {
            gone += unless_gone(self.delete_of_month(month, kept, newest)).await?;
        }
        Ok(gone)
    }

    async fn delete_of_month(
        &self,
        month: Month,
        kept: &BTreeMap<AccountId, UnixMillis>,
        newest: UnixMillis,
    ) -> Result<u64, StoreError> {
        let limits = |rows: Vec<(i32, String)>| -> Vec<(i32, UnixMillis)> {
            let limit = |(id, account): (i32, String)| Some((id, *kept.get(&account.parse().ok()?)?));
            rows.into_iter().filter_map(limit).filter(|(_, before)| month.start() < *before).collect()
        };
        let mut conn = self.db.read().await?;
        let sql = AssertSqlSafe(of_month(OLD, month));
        let old = fetch_all!(&mut conn, sql, newest.0)?;
        let accounts = fetch_all!(&mut conn, ACCOUNTS)?;
        drop(conn);
        let mut gone = 0;
        for (account, before) in limits(old) {
            loop {
                let mut tx = self.db.begin(&Ctx::default()).await?;
                let sql = of_month(dialect::pick(&tx, PG_DELETE_OLDER, SQLITE_DELETE_OLDER), month);
                let step = execute!(&mut *tx, AssertSqlSafe(sql), account, before.0, STEP)?;
                tx.commit().await?;
                gone += step;
                if step < STEP.unsigned_abs() {
                    break;
                }
            }
        }
        let limits = limits(accounts);
        let texts = list_old_texts(&mut self.db.read().await?, month, &limits).await?;
        for (account, before) in limits {
            let ids = texts.get(&account).map_or(&[][..], Vec::as_slice);
            self.delete_texts(month, account, day_of(before), ids).await?;
        }
        Ok(gone)
    }

    /// Forgets boots of edges that are over for long.
    pub(super) async fn delete_boots(&self) -> Result<(), StoreError> {
        let mut tx = self.db.begin(&Ctx::default()).await?;
        execute!(&mut *tx, DELETE_BOOTS, BOOT_MS)?;
        tx.commit().await
    }

    /// Removes texts that were last used before a day; one that was used since stays.
    pub(super) async fn delete_texts(
        &self,
        month: Month,
        account: i32,
        day: i32,
        ids: &[i32],
    ) -> Result<(), StoreError> {
        for ids in ids.chunks(usize::try_from(STEP).unwrap_or(1)) {
            let mut tx = self.db.begin(&Ctx::default()).await?;
            let sql = dialect::pick(&tx, PG_DELETE_TEXTS, SQLITE_DELETE_TEXTS);
            let sql = AssertSqlSafe(of_month(sql, month));
            let facets = dialect::pick(&tx, PG_DELETE_FACETS, SQLITE_DELETE_FACETS);
            let facets = AssertSqlSafe(of_month(facets, month));
            match tx.raw() {
                Raw::Pg(c) => {
                    let query = sqlx::query_scalar(sql).bind(account).bind(day).bind(ids);
                    let gone: Vec<i32> = query.fetch_all(&mut *c).await?;
                    sqlx::query(facets).bind(account).bind(gone).execute(c).await?;
                }
                Raw::Sqlite(c) => {
                    let query = sqlx::query_scalar(sql).bind(account).bind(day).bind(Json(ids));
                    let gone: Vec<i32> = query.fetch_all(&mut *c).await?;
                    sqlx::query(facets).bind(account).bind(Json(gone)).execute(c).await?;
                }
            }
            tx.commit().await?;
        }
        Ok(())
    }

    pub(super) async fn drop_oldest(&self, before: UnixMillis) -> Result<Option<Month>, StoreError> {
        let all = months::list(&mut self.db.read().await?).await?;
        let mut dropped = None;
        if let Some(month) = all.into_iter().next().filter(|month| month.end() <= before) {
            tracing::warn!(
                month = month.number(),
                "a month of scans is over for every account and is dropped"
            );
            if months::remove(&self.db, month).await? {
                self.forget(month);
                dropped = Some(month);
            } else {
                tracing::warn!(month = month.number(), "somebody reads scans that are over; dropped later");
            }
        }
        if let Db::Sqlite { write, .. } = &self.db {
            let mut last = i64::MAX;
            for _ in 0..MOST_SHRINKS {
                let mut conn = write.acquire().await?;
                let free: i64 = sqlx::query_scalar(SQLITE_FREE).fetch_one(&mut *conn).await?;
                // A file without `auto_vacuum` keeps them.
                if free == 0 || free >= last {
                    break;
                }
                last = free;
                // It works while its rows are read, and has none to give.
                sqlx::query(SQLITE_SHRINK).fetch_all(&mut *conn).await?;
            }
        }
        Ok(dropped)
    }
}

/// The result of what is done in a month, or nothing where it was dropped meanwhile.
pub(super) async fn unless_gone(
    done: impl Future<Output = Result<u64, StoreError>>,
) -> Result<u64, StoreError> {
    match done.await {
        Err(error) if is_gone(&error) => Ok(0),
        done => done,
    }
}

pub(super) fn by_account(rows: Vec<(i32, i32)>) -> BTreeMap<i32, Vec<i32>> {
    let mut found: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
    for (account, id) in rows {
        found.entry(account).or_default().push(id);
    }
    found
}

/// The texts that were last used before a time, which is another one for each account.
async fn list_old_texts(
    conn: &mut Conn,
    month: Month,
    limits: &[(i32, UnixMillis)],
) -> Result<BTreeMap<i32, Vec<i32>>, StoreError> {
    let sql = AssertSqlSafe(of_month(dialect::pick(conn, PG_OLD_TEXTS, SQLITE_OLD_TEXTS), month));
    let limits: Vec<(i32, i32)> =
        limits.iter().map(|(account, before)| (*account, day_of(*before))).collect();
    let rows: Vec<(i32, i32)> = match conn.raw() {
        Raw::Pg(c) => {
            let (accounts, days): (Vec<i32>, Vec<i32>) = limits.into_iter().unzip();
            sqlx::query_as(sql).bind(accounts).bind(days).fetch_all(c).await?
        }
        Raw::Sqlite(c) => sqlx::query_as(sql).bind(Json(limits)).fetch_all(c).await?,
    };
    Ok(by_account(rows))
}
