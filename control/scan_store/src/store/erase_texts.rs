//! Takes what may tell of a person out of shared texts that no scan has any more.
//!
//! They are not removed: a batch under way, and the memory of every process until the day is over, may name them.

use std::collections::BTreeSet;

use kernel::{
    execute, fetch_all, on_db,
    store::{Ctx, StoreError},
};
use shared::id::AccountId;
use sqlx::AssertSqlSafe;

use super::{
    months::{self, is_gone, of_month},
    sql_scans::SqlScans,
};
use crate::{
    ScanPosition,
    domain::{columns::Kind, month::Month},
};

const LIST: &str = "SELECT x.id, x.kind, x.text FROM scan_texts x WHERE x.account = $1 AND x.is_loose AND x.id > $2 \
    ORDER BY x.id LIMIT $3";
// In pieces, because no index leads from a text to its scans.
const USED: &str = "SELECT t.created_at, t.seq, t.agent, t.place, t.referer, t.language FROM scans t \
    WHERE t.account = $1 AND t.created_at >= $2 AND (t.created_at, t.seq) > ($2, $3) \
    ORDER BY t.created_at, t.seq LIMIT $4";
// No text has this hash, so none is taken for it.
const ERASE: &str = "UPDATE scan_texts SET text = $3, hash = $4 WHERE account = $1 AND id = $2";

/// Texts that one statement reads, or one transaction changes.
const STEP: i64 = 500;

/// Scans that one statement looks at for their texts.
const WINDOW: i64 = 20_000;

/// A scan: its position, and its texts.
type Seen = (i64, i64, Option<i32>, Option<i32>, Option<i32>, Option<i32>);

impl SqlScans {
    pub(super) async fn erase_some_texts(
        &self,
        account: AccountId,
        after: Option<ScanPosition>,
    ) -> Result<Option<ScanPosition>, StoreError> {
        let Some(number) = self.find_account(account).await? else { return Ok(None) };
        for month in months::list(&mut self.db.read().await?).await? {
            let last = match after {
                Some(after) if after.month > month.number() => continue,
                Some(after) if after.month == month.number() => i32::try_from(after.seq).unwrap_or(i32::MAX),
                Some(_) | None => 0,
            };
            match self.erase_texts_of(month, number, last).await {
                Ok(Some(id)) => {
                    return Ok(Some(ScanPosition { month: month.number(), at: 0, seq: i64::from(id) }));
                }
                Ok(None) => {}
                Err(error) if is_gone(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Takes it out of all texts of a month after one, so that the scans are looked at once; gives the number of the last.
    async fn erase_texts_of(
        &self,
        month: Month,
        account: i32,
        after: i32,
    ) -> Result<Option<i32>, StoreError> {
        let mut last = None;
        let mut due: Vec<(i32, String)> = Vec::new();
        loop {
            let texts = self.list_loose(month, account, last.unwrap_or(after)).await?;
            let Some(id) = texts.last().map(|(id, ..)| *id) else { break };
            last = Some(id);
            due.extend(texts.into_iter().filter_map(|(id, kind, text)| {
                let left = Kind::stored(kind)?.erased(&text);
                // What was erased before stays loose until the day is over.
                (left != text).then_some((id, left))
            }));
        }
        let ids: Vec<i32> = due.iter().map(|(id, _)| *id).collect();
        let used = self.list_used_of(month, account, &ids).await?;
        due.retain(|(id, _)| !used.contains(id));
        for some in due.chunks(usize::try_from(STEP).unwrap_or(1)) {
            let mut tx = self.db.begin(&Ctx::default()).await?;
            for (id, left) in some {
                let hash = blake3::hash(format!("erased text {id}").as_bytes());
                let sql = AssertSqlSafe(of_month(ERASE, month));
                execute!(&mut *tx, sql, account, *id, left.as_str(), &hash.as_bytes()[..16])?;
            }
            tx.commit().await?;
        }
        Ok(last)
    }

    async fn list_loose(
        &self,
        month: Month,
        account: i32,
        after: i32,
    ) -> Result<Vec<(i32, i16, String)>, StoreError> {
        let sql = AssertSqlSafe(of_month(LIST, month));
        let mut conn = self.db.read().await?;
        Ok(fetch_all!(&mut conn, sql, account, after, STEP)?)
    }

    /// Which texts a scan of the account has: every scan of the month is looked at, or as many as have them all.
    async fn list_used_of(
        &self,
        month: Month,
        account: i32,
        ids: &[i32],
    ) -> Result<BTreeSet<i32>, StoreError> {
        let mut unseen: BTreeSet<i32> = ids.iter().copied().collect();
        let mut after = (i64::MIN, i64::MIN);
        while !unseen.is_empty() {
            let sql = AssertSqlSafe(of_month(USED, month));
            let rows: Vec<Seen> = {
                let mut conn = self.db.read().await?;
                on_db!(&mut conn, |c| sqlx::query_as(sql)
                    .persistent(false)
                    .bind(account)
                    .bind(after.0)
                    .bind(after.1)
                    .bind(WINDOW)
                    .fetch_all(c)
                    .await)?
            };
            let Some(last) = rows.last() else { break };
            after = (last.0, last.1);
            for (_, _, agent, place, referer, language) in &rows {
                for id in [agent, place, referer, language].into_iter().flatten() {
                    unseen.remove(id);
                }
            }
        }
        Ok(ids.iter().copied().filter(|id| !unseen.contains(id)).collect())
    }
}
