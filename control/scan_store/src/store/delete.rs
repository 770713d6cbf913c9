//! Removes scans: single ones, those of an account that are old, and whole months.

use kernel::{
    on_db,
    store::{Conn, Ctx, Db, StoreError, dialect},
};
use shared::{
    id::{AccountId, ActionId},
    time::UnixMillis,
};
use sqlx::AssertSqlSafe;

use super::{
    months::{self, is_gone, of_month},
    sql_scans::SqlScans,
};
use crate::domain::{ids, month::Month};

const DELETE: &str = "DELETE FROM scans WHERE account = $1 AND timestamp = $2 AND key = $3";
const PG_DELETE_OLDER: &str = "DELETE FROM scans WHERE ctid IN (SELECT t.ctid FROM scans t \
    WHERE t.account = $1 AND t.created_at < $2 ORDER BY t.created_at LIMIT $3)";
const SQLITE_DELETE_OLDER: &str = "DELETE FROM scans WHERE seq IN (SELECT t.seq FROM scans t \
    WHERE t.account = $1 AND t.created_at < $2 ORDER BY t.created_at LIMIT $3)";

/// Pages that SQLite gives back at a time, 4 KiB each: writers wait some milliseconds.
const SQLITE_SHRINK: &str = "PRAGMA incremental_vacuum(500)";
const SQLITE_FREE: &str = "PRAGMA freelist_count";

impl SqlScans {
    pub(super) async fn delete_all(&self, account: AccountId, ids: &[ActionId]) -> Result<u64, StoreError> {
        let Some(account) = self.find_account(account).await? else { return Ok(0) };
        let all = months::list(&mut self.db.read().await?).await?;
        let mut gone = 0;
        for month in all {
            let mut tx = self.db.begin(&Ctx::default()).await?;
            let deleted = delete(&mut tx, month, account, ids).await;
            match deleted {
                Ok(deleted) => gone += deleted,
                Err(error) if is_gone(&error) => continue,
                Err(error) => return Err(error),
            }
            tx.commit().await?;
        }
        Ok(gone)
    }

    pub(super) async fn delete_older(
        &self,
        account: AccountId,
        before: UnixMillis,
        limit: u32,
    ) -> Result<u64, StoreError> {
        let Some(account) = self.find_account(account).await? else { return Ok(0) };
        let all = months::list(&mut self.db.read().await?).await?;
        for month in all.into_iter().filter(|month| month.start() < before) {
            let mut tx = self.db.begin(&Ctx::default()).await?;
            let sql = of_month(dialect::pick(&tx, PG_DELETE_OLDER, SQLITE_DELETE_OLDER), month);
            let done = on_db!(&mut *tx, |c| sqlx::query(AssertSqlSafe(sql))
                .bind(account)
                .bind(before.0)
                .bind(i64::from(limit))
                .execute(c)
                .await
                .map(|done| done.rows_affected()));
            match done.map_err(StoreError::from) {
                Ok(0) => {}
                Ok(gone) => {
                    tx.commit().await?;
                    return Ok(gone);
                }
                Err(error) if is_gone(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(0)
    }

    pub(super) async fn drop_months(&self, before: UnixMillis) -> Result<Vec<Month>, StoreError> {
        let all = months::list(&mut self.db.read().await?).await?;
        let mut dropped = Vec::new();
        for month in all.into_iter().filter(|month| month.end() <= before) {
            months::remove(&self.db, month).await?;
            self.forget(month);
            dropped.push(month);
        }
        if let Db::Sqlite { write, .. } = &self.db {
            loop {
                let mut conn = write.acquire().await?;
                let free: i64 = sqlx::query_scalar(SQLITE_FREE).fetch_one(&mut *conn).await?;
                if free == 0 {
                    break;
                }
                // It works while its rows are read, and has none to give.
                sqlx::query(SQLITE_SHRINK).fetch_all(&mut *conn).await?;
            }
        }
        Ok(dropped)
    }
}

async fn delete(conn: &mut Conn, month: Month, account: i32, ids: &[ActionId]) -> Result<u64, StoreError> {
    let mut gone = 0;
    for id in ids {
        let (at, key) = ids::split(id);
        let sql = AssertSqlSafe(of_month(DELETE, month));
        gone += on_db!(conn, |c| sqlx::query(sql)
            .bind(account)
            .bind(at.0)
            .bind(key.as_slice())
            .execute(c)
            .await
            .map(|done| done.rows_affected()))?;
    }
    Ok(gone)
}
