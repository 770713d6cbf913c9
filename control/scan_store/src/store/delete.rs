//! Removes single scans.

use std::collections::BTreeSet;

use kernel::{
    fetch_all,
    store::{Conn, Ctx, Raw, StoreError, dialect},
};
use shared::id::{AccountId, ActionId};
use sqlx::{AssertSqlSafe, types::Json};

use super::{
    months::{self, is_gone, of_month},
    sql_scans::SqlScans,
};
use crate::domain::{ids, month::Month};

const DELETE: &str = "DELETE FROM scans WHERE account = $1 AND timestamp = $2 AND key = $3 \
    RETURNING agent, place, referer, language";
// In one order, so that two of these do not lock each other out.
const PG_LOCK: &str = "SELECT t.id FROM scan_texts t WHERE t.id = ANY($1) ORDER BY t.id FOR UPDATE";
const PG_LOOSEN: &str = "UPDATE scan_texts SET is_loose = true WHERE id = ANY($1) AND NOT is_loose";
const SQLITE_LOOSEN: &str = "UPDATE scan_texts SET is_loose = true \
    WHERE id IN (SELECT value FROM json_each($1)) AND NOT is_loose";

/// Texts of a scan that may be those of a person: browser, place, referer and language.
pub(super) type Texts = (Option<i32>, Option<i32>, Option<i32>, Option<i32>);

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
}

async fn delete(conn: &mut Conn, month: Month, account: i32, ids: &[ActionId]) -> Result<u64, StoreError> {
    let (mut gone, mut loose) = (0, BTreeSet::new());
    for id in ids {
        let (at, key) = ids::split(id);
        let sql = AssertSqlSafe(of_month(DELETE, month));
        let rows: Vec<Texts> = fetch_all!(conn, sql, account, at.0, key.as_slice())?;
        for (agent, place, referer, language) in rows {
            gone += 1;
            loose.extend([agent, place, referer, language].into_iter().flatten());
        }
    }
    loosen(conn, month, loose).await?;
    Ok(gone)
}

/// Locks texts until the transaction ends: on Postgres, because on SQLite nobody else writes.
pub(super) async fn lock_texts(conn: &mut Conn, month: Month, ids: &[i32]) -> Result<(), StoreError> {
    if let Raw::Pg(c) = conn.raw() {
        let sql = AssertSqlSafe(of_month(PG_LOCK, month));
        sqlx::query(sql).bind(ids).execute(c).await?;
    }
    Ok(())
}

/// Notes that scans with these texts are gone, so that perhaps none is left.
pub(super) async fn loosen(conn: &mut Conn, month: Month, texts: BTreeSet<i32>) -> Result<(), StoreError> {
    let loose: Vec<i32> = texts.into_iter().collect();
    if loose.is_empty() {
        return Ok(());
    }
    // Those that are loose, too: retention may be about to note that they are used.
    lock_texts(conn, month, &loose).await?;
    // What no other scan has goes when the day is over: until then batches under way may name it.
    let sql = AssertSqlSafe(of_month(dialect::pick(conn, PG_LOOSEN, SQLITE_LOOSEN), month));
    match conn.raw() {
        Raw::Pg(c) => {
            sqlx::query(sql).bind(loose).execute(c).await?;
        }
        Raw::Sqlite(c) => {
            sqlx::query(sql).bind(Json(loose)).execute(c).await?;
        }
    }
    Ok(())
}
