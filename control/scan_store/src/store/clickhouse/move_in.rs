//! Moves the scans of a database into ClickHouse, while nobody stores others.

use kernel::{on_db, store::StoreError};
use serde_json::Value;
use shared::{id::AccountId, time::UnixMillis};

use super::super::{months, retention::ACCOUNTS};
use super::{ClickHouseScans, append::Placed};
use crate::{NewScan, Sought};

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
            on_db!(&mut conn, |c| sqlx::query_as(ACCOUNTS).fetch_all(c).await)?
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
            for (position, scan) in step.found {
                let (id, about) = (scan.id, (scan.thng, scan.product));
                let new = NewScan::of(account, id, scan.timestamp, about, &Value::Object(scan.members));
                let new = new.ok_or_else(|| StoreError::Row(format!("scan {id} cannot be stored again")))?;
                rows.push((position.seq, UnixMillis(position.at), new));
            }
            self.adopt_all(&rows).await?;
        }
        let most = i64::MAX.unsigned_abs();
        let here = self.cursors.count_some(account, UnixMillis(i64::MIN), most).await?;
        let there = self.count_some(account, UnixMillis(i64::MIN), most).await?;
        if there < here {
            return Err(StoreError::Row(format!(
                "of {here} scans of account {account} only {there} are in ClickHouse; none was removed"
            )));
        }
        Ok(here)
    }
}
