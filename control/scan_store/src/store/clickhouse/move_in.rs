//! Moves the scans of a database into ClickHouse, while nobody stores others.

use std::time::Duration;

use kernel::{
    fetch_all, on_db,
    store::{Raw, StoreError, dialect::unsigned},
};
use serde_json::Value;
use shared::{id::AccountId, time::UnixMillis};
use sqlx::AssertSqlSafe;

use super::super::{
    months::{self, of_month},
    retention::ACCOUNTS,
};
use super::{ClickHouseScans, append::Placed, params::Params, rows};
use crate::{NewScan, Seen, Sought};

const PG_NO_TIMEOUT: &str = "SET statement_timeout = 0";
const HERE: &str = "SELECT COUNT(*) FROM scans t WHERE t.account = $1";
const THERE: &str =
    "SELECT toUInt64(count()) FROM scans FINAL WHERE account = {account:String} AND month = {month:Int32}";

/// Longest time in which the scans of an account in a month are counted: nobody waits for an answer.
const COUNT_LIMIT: Duration = Duration::from_secs(600);

impl ClickHouseScans {
    /// Copies the scans of every account in their positions, and then removes them from the database. Scans that are there
    /// already are passed over, so that a move that was broken off is simply begun again. `says` hears of each account.
    ///
    /// # Errors
    /// A scan cannot be read, or fewer arrived than there are: then none was removed.
    pub(in super::super) async fn move_in(
        &self,
        mut says: impl FnMut(AccountId, u64),
    ) -> Result<(), StoreError> {
        let accounts: Vec<(i32, String)> = {
            let mut conn = self.cursors.db.read().await?;
            fetch_all!(&mut conn, ACCOUNTS)?
        };
        for (_, account) in accounts {
            let unread = |_| StoreError::Row(format!("{account:?} is no account"));
            let account: AccountId = account.parse().map_err(unread)?;
            says(account, self.move_account(account).await?);
        }
        let all = months::list(&mut self.cursors.db.read().await?).await?;
        for month in all {
            if !months::remove(&self.cursors.db, month).await? {
                return Err(StoreError::Row(format!(
                    "all scans are moved, but somebody reads those of {} in the database: try again to remove them",
                    month.number()
                )));
            }
        }
        Ok(())
    }

    async fn move_account(&self, account: AccountId) -> Result<u64, StoreError> {
        let all = Sought::Created { from: UnixMillis(i64::MIN), to: UnixMillis(i64::MAX) };
        let mut after = None;
        loop {
            let step = self.cursors.seek_some(account, &all, after).await?;
            let Some(end) = step.end else { break };
            after = Some(end);
            let mut rows: Vec<Placed> = Vec::with_capacity(step.found.len());
            for (Seen { position, .. }, scan) in step.found {
                let (id, about) = (scan.id, (scan.thng, scan.product));
                let new = NewScan::of(account, id, scan.timestamp, about, &Value::Object(scan.members));
                let new = new.ok_or_else(|| StoreError::Row(format!("scan {id} cannot be stored again")))?;
                rows.push((position.seq, UnixMillis(position.at), new));
            }
            self.adopt_all(&rows).await?;
        }
        let (here, there) = (self.count_here(account).await?, self.count_there(account).await?);
        if there < here {
            return Err(StoreError::Row(format!(
                "of {here} scans of account {account} only {there} are in ClickHouse; none was removed"
            )));
        }
        Ok(here)
    }

    async fn count_here(&self, account: AccountId) -> Result<u64, StoreError> {
        let Some(number) = self.cursors.find_account(account).await? else { return Ok(0) };
        let mut conn = self.cursors.db.read().await?;
        // The connections of the cursors are those of this command alone.
        if let Raw::Pg(c) = conn.raw() {
            sqlx::query(PG_NO_TIMEOUT).execute(c).await?;
        }
        let mut found = 0;
        for month in months::list(&mut conn).await? {
            let sql = AssertSqlSafe(of_month(HERE, month));
            let scans: i64 = on_db!(&mut conn, |c| sqlx::query_scalar(sql).bind(number).fetch_one(c).await)?;
            found += unsigned(scans);
        }
        Ok(found)
    }

    async fn count_there(&self, account: AccountId) -> Result<u64, StoreError> {
        let mut found = 0;
        for month in self.months().await? {
            let params = Params::of(account, month);
            found += rows::count(&self.client.query(THERE, &params, COUNT_LIMIT).await?)?;
        }
        Ok(found)
    }
}
