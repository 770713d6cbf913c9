//! How much there is: counts of an account, and the size of the store.

use kernel::{
    fetch_all, on_db,
    store::{
        Conn, StoreError, database,
        dialect::{signed, unsigned},
    },
};
use shared::{id::AccountId, time::UnixMillis};
use sqlx::AssertSqlSafe;

use super::{
    months::{self, is_gone, of_month},
    sql_scans::SqlScans,
};
use crate::{Count, Description, domain::month::Month};

const COUNT: &str = "SELECT (t.created_at - $2) / $4, COUNT(*) FROM scans t \
    WHERE t.account = $1 AND t.created_at >= $2 AND t.created_at < $3 GROUP BY 1 ORDER BY 1";
const SOME: &str = "SELECT COUNT(*) FROM (SELECT 1 FROM scans t \
    WHERE t.account = $1 AND t.created_at >= $2 LIMIT $3) AS found";
// By the index of each account.
const OLDEST: &str = "SELECT MIN(first) FROM (SELECT (SELECT MIN(t.created_at) FROM scans t \
    WHERE t.account = a.id) AS first FROM scan_accounts a) AS found";
const PG_SIZE: &str = "SELECT COALESCE(SUM(pg_total_relation_size(to_regclass(name))), 0)::bigint \
    FROM UNNEST($1::text[]) AS n (name)";

impl SqlScans {
    pub(super) async fn count_pieces(&self, count: &Count) -> Result<Vec<(UnixMillis, u64)>, StoreError> {
        let Some(account) = self.find_account(count.account).await? else { return Ok(Vec::new()) };
        let piece = count.piece_ms.max(1);
        let mut conn = self.db.read().await?;
        let mut found: Vec<(UnixMillis, u64)> = Vec::new();
        for month in months::list(&mut conn).await? {
            if month.start() >= count.to || month.end() <= count.from {
                continue;
            }
            let sql = AssertSqlSafe(of_month(COUNT, month));
            let rows: Result<Vec<(i64, i64)>, sqlx::Error> =
                fetch_all!(&mut conn, sql, account, count.from.0, count.to.0, piece);
            let rows = match rows.map_err(StoreError::from) {
                Err(error) if is_gone(&error) => continue,
                rows => rows?,
            };
            for (number, scans) in rows {
                let (at, scans) = (UnixMillis(count.from.0 + number * piece), scans.max(0).unsigned_abs());
                match found.last_mut().filter(|(last, _)| *last == at) {
                    // A piece that two months share.
                    Some((_, sum)) => *sum += scans,
                    None => found.push((at, scans)),
                }
            }
        }
        Ok(found)
    }

    pub(super) async fn count_some(
        &self,
        account: AccountId,
        since: UnixMillis,
        most: u64,
    ) -> Result<u64, StoreError> {
        let Some(account) = self.find_account(account).await? else { return Ok(0) };
        let mut conn = self.db.read().await?;
        let mut found = 0;
        for month in months::list(&mut conn).await?.into_iter().filter(|month| month.end() > since) {
            let sql = AssertSqlSafe(of_month(SOME, month));
            let some: Result<i64, sqlx::Error> = on_db!(&mut conn, |c| sqlx::query_scalar(sql)
                .bind(account)
                .bind(since.0)
                .bind(signed(most - found))
                .fetch_one(c)
                .await);
            found += match some.map_err(StoreError::from) {
                Err(error) if is_gone(&error) => 0,
                some => unsigned(some?),
            };
            if found >= most {
                break;
            }
        }
        Ok(found)
    }

    pub(super) async fn description(&self) -> Result<Description, StoreError> {
        let mut conn = self.db.read().await?;
        let all = months::list(&mut conn).await?;
        let mut oldest = None;
        for month in &all {
            oldest = find_oldest(&mut conn, *month).await?;
            if oldest.is_some() {
                break;
            }
        }
        let bytes = match &mut conn {
            Conn::Pg(c) => {
                let tables =
                    |month: &Month| months::TABLES.map(|table| format!("{table}_{}", month.number()));
                let names: Vec<String> = all.iter().flat_map(tables).collect();
                sqlx::query_scalar(PG_SIZE).bind(names).fetch_one(&mut **c).await?
            }
            conn => database::size(conn).await?,
        };
        Ok(Description { bytes, oldest, months: all })
    }
}

async fn find_oldest(conn: &mut Conn, month: Month) -> Result<Option<UnixMillis>, StoreError> {
    let sql = AssertSqlSafe(of_month(OLDEST, month));
    let found: Result<Option<i64>, sqlx::Error> =
        on_db!(conn, |c| sqlx::query_scalar(sql).fetch_one(c).await);
    match found.map_err(StoreError::from) {
        Err(error) if is_gone(&error) => Ok(None),
        found => Ok(found?.map(UnixMillis)),
    }
}
