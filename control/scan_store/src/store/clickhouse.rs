//! Scans in ClickHouse.
//!
//! Cursors, the counter of positions and the day of retention stay in the database (on SQLite in the file beside it), where
//! they can be locked: see [`append`]. Roll-ups of statistics stay there, too: the crate's documentation says why. A scan
//! holds its texts and facets itself, in columns with dictionaries, so there are no shared texts to look up or to erase.

mod append;
mod client;
mod erase;
mod move_in;
mod params;
mod read;
mod retention;
mod row_binary;
mod rows;
mod schema;

use std::{collections::BTreeMap, fmt};

use futures_util::future::BoxFuture;
use kernel::{
    domain::action::Action,
    store::{Db, StoreError, Tx, listing::Selection},
};
use shared::{
    id::{AccountId, ActionId},
    time::UnixMillis,
};
use tokio::sync::Semaphore;

use self::client::Client;
use super::{pass_on::passed_on, sql_scans::SqlScans};
use crate::{
    Appended, Batch, Boot, Count, Description, NewScan, ScanPosition, ScanStore, Seen, Sighted, Sought,
    domain::{month::Month, scan_server::ScanServer},
};

/// Scans in ClickHouse, with cursors in a SQL database.
pub struct ClickHouseScans {
    client: Client,
    /// The tables of the other stores; those of months stay empty.
    cursors: SqlScans,
    /// Batches at once: one on SQLite, which has one writer; on Postgres as many as there are connections.
    writers: Semaphore,
}

impl ClickHouseScans {
    /// Connects, and makes tables that are missing. `cursors` has connections of its own: a batch holds one while ClickHouse
    /// works.
    ///
    /// # Errors
    /// The server cannot be used, or the database holds scans itself, which nobody would see any more.
    pub(super) async fn open(
        server: ScanServer,
        cursors: Db,
        connections: usize,
    ) -> Result<Self, StoreError> {
        let opened = Self::connect(server, cursors, connections).await?;
        if opened.cursors.description().await?.oldest.is_some() {
            return Err(StoreError::Row(
                "the database holds scans, which would not be seen beside WAYMARK_SCANS_URL: stop every control and \
                 move them by `control move-scans`, or leave it unset"
                    .to_owned(),
            ));
        }
        Ok(opened)
    }

    /// The same beside scans in the database, which are to be moved.
    pub(super) async fn connect(
        server: ScanServer,
        cursors: Db,
        connections: usize,
    ) -> Result<Self, StoreError> {
        let writers = Semaphore::new(if matches!(cursors, Db::Sqlite { .. }) { 1 } else { connections });
        let cursors = SqlScans::new(cursors);
        let client = Client::new(server)?;
        schema::prepare(&client).await?;
        Ok(Self { client, cursors, writers })
    }
}

impl fmt::Debug for ClickHouseScans {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClickHouseScans")
    }
}

impl ScanStore for ClickHouseScans {
    passed_on!();

    fn find_next_seq<'a>(&'a self, boot: Boot<'a>) -> BoxFuture<'a, Result<Option<u64>, StoreError>> {
        self.cursors.find_next_seq(boot)
    }

    fn adopt<'a>(
        &'a self,
        _within: Option<&'a mut Tx>,
        _now: UnixMillis,
        scans: &'a [(i64, UnixMillis, NewScan)],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.adopt_all(scans))
    }

    fn rewrite<'a>(
        &'a self,
        _now: UnixMillis,
        scans: &'a [(Seen, NewScan)],
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(self.rewrite_all(scans))
    }

    /// Scans share no texts here; what was rewritten leaves the disk with the next merge.
    fn erase_texts(
        &self,
        _account: AccountId,
        _after: Option<ScanPosition>,
    ) -> BoxFuture<'_, Result<Option<ScanPosition>, StoreError>> {
        Box::pin(async { Ok(None) })
    }

    /// A partition is made by its first row.
    fn make_month(&self, _at: UnixMillis) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(async { Ok(()) })
    }

    fn begin_day(&self, now: UnixMillis) -> BoxFuture<'_, Result<(UnixMillis, bool), StoreError>> {
        self.cursors.begin_day(now)
    }

    fn delete_before<'a>(
        &'a self,
        kept: &'a BTreeMap<AccountId, UnixMillis>,
        _day: UnixMillis,
    ) -> BoxFuture<'a, Result<u64, StoreError>> {
        Box::pin(async move {
            let gone = self.delete_older(kept).await?;
            self.cursors.delete_boots().await?;
            Ok(gone)
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.cursors.close()
    }
}
