//! Looks through the texts of scans that were deleted or changed one by one: those that no other scan has go, the others are
//! looked at no more.
//!
//! Somebody may delete the last scan of a text between the look at the scans and the note that the text is in use. The text
//! would stay as if it were in use, and no erasure would empty it. So the note is written only while the text is locked and a
//! scan still has it; who deletes or changes scans locks their texts, too, before it notes that they are loose.

use std::collections::BTreeMap;

use kernel::{
    fetch_all, on_db,
    store::{Conn, Ctx, Raw, StoreError, Tx, dialect},
};
use sqlx::{AssertSqlSafe, types::Json};

use super::{
    delete,
    months::{self, of_month},
    retention::{by_account, unless_gone},
    sql_scans::SqlScans,
};
use crate::domain::month::Month;

const LOOSE: &str = "SELECT x.account, x.id FROM scan_texts x WHERE x.is_loose AND x.last_day < $1 \
    ORDER BY x.account, x.id";
macro_rules! used {
    ($list:literal) => {
        concat!(
            "SELECT t.agent, MIN(t.created_at) FROM scans t WHERE t.account = $1 AND t.agent ",
            $list,
            " GROUP BY t.agent UNION ALL SELECT t.place, MIN(t.created_at) FROM scans t WHERE t.account = $1 AND t.place ",
            $list,
            " GROUP BY t.place UNION ALL SELECT t.referer, MIN(t.created_at) FROM scans t WHERE t.account = $1 AND t.referer ",
            $list,
            " GROUP BY t.referer UNION ALL SELECT t.language, MIN(t.created_at) FROM scans t WHERE t.account = $1 \
             AND t.language ",
            $list,
            " GROUP BY t.language"
        )
    };
}
const PG_USED: &str = used!("= ANY($2)");
const SQLITE_USED: &str = used!("IN (SELECT value FROM json_each($2))");
const STILL_USED: &str = "SELECT 1 FROM scans t WHERE t.account = $1 AND t.created_at = $2 \
    AND (t.agent = $3 OR t.place = $3 OR t.referer = $3 OR t.language = $3) LIMIT 1";
const PG_TIGHTEN: &str = "UPDATE scan_texts SET is_loose = false WHERE id = ANY($1)";
const SQLITE_TIGHTEN: &str =
    "UPDATE scan_texts SET is_loose = false WHERE id IN (SELECT value FROM json_each($1))";

/// Texts that one transaction notes as used: for each it looks at the scans of a batch.
const STEP: usize = 100;

impl SqlScans {
    /// Removes the texts of scans that were deleted one by one, where no other scan has them. `day` is over: no batch under
    /// way names a text that was last used before it.
    pub(super) async fn delete_loose(&self, day: i32) -> Result<(), StoreError> {
        for month in months::list(&mut self.db.read().await?).await? {
            unless_gone(async { self.delete_loose_of(month, day).await.map(|()| 0) }).await?;
        }
        Ok(())
    }

    async fn delete_loose_of(&self, month: Month, day: i32) -> Result<(), StoreError> {
        let sql = AssertSqlSafe(of_month(LOOSE, month));
        let rows: Vec<(i32, i32)> = {
            let mut conn = self.db.read().await?;
            fetch_all!(&mut conn, sql, day)?
        };
        for (account, ids) in by_account(rows) {
            // It reads every scan of the account in the month. Where that takes too long, the texts stay as long as the
            // account keeps scans: they name no scan and no item.
            let used = match list_used(&mut self.db.read().await?, month, account, &ids).await {
                Err(StoreError::Timeout) => continue,
                used => used?,
            };
            let unused: Vec<i32> = ids.into_iter().filter(|id| !used.contains_key(id)).collect();
            self.delete_texts(month, account, day, &unused).await?;
            let used: Vec<(i32, i64)> = used.into_iter().collect();
            for some in used.chunks(STEP) {
                let mut tx = self.db.begin(&Ctx::default()).await?;
                tighten(&mut tx, month, account, some).await?;
                tx.commit().await?;
            }
        }
        Ok(())
    }
}

/// Which texts a scan of an account has, and when the first of these was created.
async fn list_used(
    conn: &mut Conn,
    month: Month,
    account: i32,
    ids: &[i32],
) -> Result<BTreeMap<i32, i64>, StoreError> {
    let sql = AssertSqlSafe(of_month(dialect::pick(conn, PG_USED, SQLITE_USED), month));
    let used: Vec<(i32, i64)> = match conn.raw() {
        Raw::Pg(c) => sqlx::query_as(sql).bind(account).bind(ids).fetch_all(c).await?,
        Raw::Sqlite(c) => sqlx::query_as(sql).bind(account).bind(Json(ids)).fetch_all(c).await?,
    };
    Ok(used.into_iter().collect())
}

/// Notes that texts are used, each by a scan that was created at a time, unless that scan lost it meanwhile: then it stays loose
/// until the next day.
async fn tighten(tx: &mut Tx, month: Month, account: i32, used: &[(i32, i64)]) -> Result<(), StoreError> {
    let ids: Vec<i32> = used.iter().map(|(id, _)| *id).collect();
    delete::lock_texts(tx, month, &ids).await?;
    let mut tight = Vec::new();
    for (id, created_at) in used {
        let sql = AssertSqlSafe(of_month(STILL_USED, month));
        let found: Option<i32> = on_db!(&mut **tx, |c| sqlx::query_scalar(sql)
            .bind(account)
            .bind(*created_at)
            .bind(*id)
            .fetch_optional(c)
            .await)?;
        tight.extend(found.map(|_| *id));
    }
    let sql = AssertSqlSafe(of_month(dialect::pick(tx, PG_TIGHTEN, SQLITE_TIGHTEN), month));
    match tx.raw() {
        Raw::Pg(c) => {
            sqlx::query(sql).bind(tight).execute(c).await?;
        }
        Raw::Sqlite(c) => {
            sqlx::query(sql).bind(Json(tight)).execute(c).await?;
        }
    }
    Ok(())
}
