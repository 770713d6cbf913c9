//! Removes scans whose time is over, and tells how much is stored.

use std::{collections::BTreeMap, time::Duration};

use kernel::store::{STATEMENT_TIMEOUT, StoreError};
use shared::{id::AccountId, time::UnixMillis};

use super::{ClickHouseScans, client::failed, params::Params, row_binary::Reader, rows};
use crate::{Description, domain::month::Month};

const MONTHS: &str = "SELECT DISTINCT toInt32(partition) AS month FROM system.parts WHERE active AND rows > 0 \
    AND database = currentDatabase() AND table = {table:String} ORDER BY month";
const BYTES: &str = "SELECT toUInt64(sum(bytes_on_disk)) FROM system.parts WHERE active \
    AND database = currentDatabase() AND table = {table:String}";
// Without `FINAL`, which would read whole months: a scan that was deleted counts until its parts are merged.
const OLDEST: &str = "SELECT toUInt64(count()), min(created_at) FROM scans \
    WHERE month = {month:Int32} AND version < 4294967295";
const FIRST: &str = "SELECT account, min(created_at) FROM scans WHERE month = {month:Int32} GROUP BY account";
const COUNT_OLDER: &str = "SELECT toUInt64(count()) FROM scans FINAL WHERE account = {account:String} \
    AND month = {month:Int32} AND version < 4294967295 AND created_at < {before:Int64}";
// With what says that scans were deleted.
const DELETE_OLDER: &str = "DELETE FROM scans WHERE account = {account:String} AND month = {month:Int32} \
    AND created_at < {before:Int64}";
/// Followed by the month. Deleted rows are only masked, and a month of one part is never merged again.
const APPLY: &str = "ALTER TABLE scans APPLY DELETED MASK IN PARTITION ";
/// Followed by the month, a number of this store. A `DROP` takes no parameters.
const DROP: &str = "ALTER TABLE scans DROP PARTITION ";

/// Longest time in which the scans of an account in a month are removed; it is tried again the next day.
const DELETE_LIMIT: Duration = Duration::from_secs(600);

impl ClickHouseScans {
    /// The months that have scans, the oldest first.
    pub(super) async fn months(&self) -> Result<Vec<Month>, StoreError> {
        let mut params = Params::default();
        params.text("table", self.shard_table());
        let answer = self.client.query(&self.of_parts(MONTHS), &params, STATEMENT_TIMEOUT).await?;
        let (mut reader, mut found) = (Reader::new(&answer), Vec::new());
        while reader.is_more() {
            found.extend(Month::stored(reader.int32()?));
        }
        Ok(found)
    }

    pub(super) async fn delete_older(
        &self,
        kept: &BTreeMap<AccountId, UnixMillis>,
    ) -> Result<u64, StoreError> {
        let Some(newest) = kept.values().max().copied() else { return Ok(0) };
        let mut gone = 0;
        for month in self.months().await?.into_iter().filter(|month| month.start() < newest) {
            let mut params = Params::default();
            params.whole("month", i64::from(month.number()));
            let answer = self.client.query(FIRST, &params, STATEMENT_TIMEOUT).await?;
            let (mut reader, mut is_over) = (Reader::new(&answer), false);
            while reader.is_more() {
                let (account, first) = (reader.text()?, reader.int64()?);
                let account: AccountId = account.parse().map_err(|_| failed("a scan without account"))?;
                let Some(before) = kept.get(&account).filter(|before| first < before.0) else { continue };
                let mut params = Params::of(account, month);
                params.time("before", *before);
                gone += rows::count(&self.client.query(COUNT_OLDER, &params, DELETE_LIMIT).await?)?;
                self.client.query(&self.of_shards(DELETE_OLDER), &params, DELETE_LIMIT).await?;
                is_over |= month.end() <= *before;
            }
            // Not each day: the server writes the whole month again, in the background.
            if is_over {
                let sql = format!("{}{}", self.of_shards(APPLY), month.number());
                self.client.query(&sql, &Params::default(), DELETE_LIMIT).await?;
            }
        }
        Ok(gone)
    }

    pub(super) async fn drop_oldest(&self, before: UnixMillis) -> Result<Option<Month>, StoreError> {
        let oldest = self.months().await?.into_iter().next().filter(|month| month.end() <= before);
        let Some(month) = oldest else { return Ok(None) };
        tracing::warn!(month = month.number(), "a month of scans is over for every account and is dropped");
        let sql = format!("{}{}", self.of_shards(DROP), month.number());
        self.client.query(&sql, &Params::default(), DELETE_LIMIT).await?;
        Ok(Some(month))
    }

    pub(super) async fn description(&self) -> Result<Description, StoreError> {
        let months = self.months().await?;
        let mut oldest = None;
        for month in &months {
            let mut params = Params::default();
            params.whole("month", i64::from(month.number()));
            let answer = self.client.query(OLDEST, &params, STATEMENT_TIMEOUT).await?;
            let mut reader = Reader::new(&answer);
            if reader.is_more() && reader.uint64()? > 0 {
                oldest = Some(UnixMillis(reader.int64()?));
                break;
            }
        }
        let mut params = Params::default();
        params.text("table", self.shard_table());
        let bytes =
            rows::count(&self.client.query(&self.of_parts(BYTES), &params, STATEMENT_TIMEOUT).await?)?;
        Ok(Description { bytes: i64::try_from(bytes).unwrap_or(i64::MAX), oldest, months })
    }

    /// The table that holds the rows.
    fn shard_table(&self) -> &'static str {
        if self.client.cluster().is_some() { "scans_local" } else { "scans" }
    }

    /// A statement that changes rows: in a cluster it goes to the tables of every shard.
    fn of_shards(&self, sql: &str) -> String {
        match self.client.cluster() {
            None => sql.to_owned(),
            // Letters, digits and `_`.
            Some(cluster) => sql.replacen(" scans ", &format!(" scans_local ON CLUSTER {cluster} "), 1),
        }
    }

    /// A statement on the parts of tables: in a cluster on those of one replica of each shard.
    fn of_parts(&self, sql: &str) -> String {
        match self.client.cluster() {
            None => sql.to_owned(),
            Some(cluster) => sql.replacen("system.parts", &format!("cluster({cluster}, system.parts)"), 1),
        }
    }
}
