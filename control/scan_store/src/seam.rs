//! The seam between scans and what keeps them.

use std::{collections::BTreeMap, fmt, net::IpAddr, sync::Arc};

use futures_util::future::BoxFuture;
use kernel::{
    domain::action::Action,
    store::{StoreError, Tx, listing::Selection},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::{
    id::{AccountId, ActionId, ProductId, ThngId},
    time::{Clock, UnixMillis},
};

use crate::domain::{columns::Columns, ids, month::Month};

/// The position of the first scan that is stored here: no database of actions counts so far.
pub const FIRST_SEQ: i64 = 1 << 48;

/// Keeps scans by edges.
///
/// Every method fails when the store does; what they do on one account never shows on another.
pub trait ScanStore: fmt::Debug + Send + Sync + 'static {
    /// The sequence number that is expected next of a boot of an edge; `None` when nothing of it was stored.
    fn find_next_seq<'a>(&'a self, boot: Boot<'a>) -> BoxFuture<'a, Result<Option<u64>, StoreError>>;

    /// Stores the scans of a batch that were not stored before, and moves the cursor of its boot to the end of the
    /// batch, both or neither.
    fn append<'a>(&'a self, batch: &'a Batch<'a>) -> BoxFuture<'a, Result<Appended, StoreError>>;

    /// Stores scans that stood elsewhere, in their positions; those that are there already are passed over. On Postgres
    /// within the transaction that removes them there, so that nobody else does the same; on SQLite that is another file.
    fn adopt<'a>(
        &'a self,
        within: Option<&'a mut Tx>,
        now: UnixMillis,
        scans: &'a [(i64, UnixMillis, NewScan)],
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// The first scans of a list, in its order: one more than a page, if there are so many.
    ///
    /// # Errors
    /// [`StoreError::Timeout`] when too many scans had to be looked at.
    fn page<'a>(&'a self, selection: &'a Selection<'a>) -> BoxFuture<'a, Result<Vec<Action>, StoreError>>;

    /// The existing ones of some scans, in order of their positions.
    fn find_many<'a>(
        &'a self,
        account: AccountId,
        ids: &'a [ActionId],
    ) -> BoxFuture<'a, Result<Vec<Action>, StoreError>>;

    /// When the first scan at or after a time was created.
    fn find_first_since(
        &self,
        account: AccountId,
        since: UnixMillis,
    ) -> BoxFuture<'_, Result<Option<UnixMillis>, StoreError>>;

    /// How many scans were created in each piece of a time; pieces without one are left out.
    fn count<'a>(&'a self, count: &'a Count) -> BoxFuture<'a, Result<Vec<(UnixMillis, u64)>, StoreError>>;

    /// How many scans were created at or after a time, by looking at no more than `most`.
    fn count_since(
        &self,
        account: AccountId,
        since: UnixMillis,
        most: u64,
    ) -> BoxFuture<'_, Result<u64, StoreError>>;

    /// Removes scans; returns how many there were.
    fn delete<'a>(
        &'a self,
        account: AccountId,
        ids: &'a [ActionId],
    ) -> BoxFuture<'a, Result<u64, StoreError>>;

    /// Looks through some scans of an account, after a position, for those that are sought.
    fn seek<'a>(
        &'a self,
        account: AccountId,
        sought: &'a Sought,
        after: Option<ScanPosition>,
    ) -> BoxFuture<'a, Result<Sighted, StoreError>>;

    /// Replaces the documents of scans that a search saw, in their positions; those that are gone are passed over.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when some are not what the search saw any more, where the store can tell: these stay as
    /// they are, and are to be sought again.
    fn rewrite<'a>(
        &'a self,
        now: UnixMillis,
        scans: &'a [(Seen, NewScan)],
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// Takes what may tell of a person out of the shared texts of a month that no scan has any more, after a position; gives
    /// the position of the last one, or `None` when none are left. It looks at every scan of the account in the month. A
    /// scan of the same day with the same text has what is left.
    fn erase_texts(
        &self,
        account: AccountId,
        after: Option<ScanPosition>,
    ) -> BoxFuture<'_, Result<Option<ScanPosition>, StoreError>>;

    /// Makes the tables of the month of a time, so that intake does not have to.
    fn make_month(&self, at: UnixMillis) -> BoxFuture<'_, Result<(), StoreError>>;

    /// The day, as its begin, that retention takes as today, and whether the caller is the first one to hear of it. It
    /// follows the clock by one day at a time: a wrong clock removes few scans before somebody sees it.
    fn begin_day(&self, now: UnixMillis) -> BoxFuture<'_, Result<(UnixMillis, bool), StoreError>>;

    /// Removes the scans of accounts that were created before a time, which is another one for each, and on `day` what is
    /// left of single ones that were deleted before; returns how many.
    fn delete_before<'a>(
        &'a self,
        kept: &'a BTreeMap<AccountId, UnixMillis>,
        day: UnixMillis,
    ) -> BoxFuture<'a, Result<u64, StoreError>>;

    /// Removes the oldest month with the scans of all accounts, if it is over by a time and nobody reads it, and gives
    /// space back. One a call, so that somebody may stop it.
    fn drop_before(&self, before: UnixMillis) -> BoxFuture<'_, Result<Option<Month>, StoreError>>;

    /// How much is stored.
    fn describe(&self) -> BoxFuture<'_, Result<Description, StoreError>>;

    /// Waits for what runs, and closes every connection.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// The store of scans, for two kinds of callers.
///
/// Whoever holds a connection to the database, as in a transaction, and waits for another one of the same pool can wait
/// for ever: all may be held by others who do the same. So there are a few connections for these alone.
#[derive(Debug, Clone)]
pub struct Scans {
    /// For callers that hold no connection to the database.
    pub pool: Arc<dyn ScanStore>,
    /// For callers that hold one. They read little.
    pub reserved: Arc<dyn ScanStore>,
}

impl Scans {
    /// Waits for what runs, and closes every connection; on Postgres those of the database, too.
    pub async fn close(&self) {
        self.reserved.close().await;
        self.pool.close().await;
    }
}

/// A boot of an edge, in which it numbers its scans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Boot<'a> {
    /// Name of the edge.
    pub edge: &'a str,
    /// Which boot.
    pub boot: u64,
}

/// Scans of one boot of an edge, in order.
pub struct Batch<'a> {
    /// Whose they are.
    pub boot: Boot<'a>,
    /// What is expected next where nothing of the boot was stored here, and at least.
    pub stored_elsewhere: u64,
    /// The number after the last of the batch.
    pub end: u64,
    /// What says when they are created, once nobody else stores scans of the boot.
    pub clock: &'a dyn Clock,
    /// The scans with their numbers; one that is not to be stored is left out.
    pub scans: Vec<(u64, NewScan)>,
}

/// What became of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appended {
    /// The number that was expected next before it: scans below it had been stored.
    pub expected: u64,
    /// When its scans were created.
    pub created_at: UnixMillis,
    /// The numbers of the scans that were stored, with their positions in lists.
    pub positions: Vec<(u64, i64)>,
}

/// A scan to be stored.
#[derive(Debug, Clone)]
pub struct NewScan {
    /// Its account.
    pub account: AccountId,
    /// The part of its id that does not follow from its time.
    pub(crate) key: [u8; 12],
    /// When it happened.
    pub(crate) timestamp: UnixMillis,
    /// The Thng it is about, packed.
    pub(crate) thng: Option<Vec<u8>>,
    /// Its document.
    pub(crate) columns: Columns,
}

impl NewScan {
    /// A scan from the parts of an action; `None` when it would not come back as it is.
    #[must_use]
    pub fn of(
        account: AccountId,
        id: ActionId,
        timestamp: UnixMillis,
        (thng, product): (Option<ThngId>, Option<ProductId>),
        doc: &Value,
    ) -> Option<Self> {
        let (at, key) = ids::split(&id);
        let columns = Columns::of(product, doc.as_object()?)?;
        let fits = at == timestamp && ids::join(at, &key) == Some(id);
        fits.then(|| Self { account, key, timestamp, thng: thng.as_ref().map(ids::pack), columns })
    }

    /// Its id.
    #[must_use]
    pub fn id(&self) -> Option<ActionId> {
        ids::join(self.timestamp, &self.key)
    }
}

/// Which scans of an account are sought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sought {
    /// Those of a Thng.
    Thng(ThngId),
    /// Those from a range of addresses that happened in a time.
    Network {
        /// The first address.
        first: IpAddr,
        /// The last one, of the same family.
        last: IpAddr,
        /// From this time on.
        from: UnixMillis,
        /// To before this one.
        to: UnixMillis,
    },
    /// All that were created in a time.
    Created {
        /// From this time on.
        from: UnixMillis,
        /// To before this one.
        to: UnixMillis,
    },
}

/// Where a search is, in the order of months, times and numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ScanPosition {
    /// The month of the tables, such as 202611.
    pub month: i32,
    /// When it was created.
    pub at: i64,
    /// Its number.
    pub seq: i64,
}

/// A scan as a search saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Seen {
    /// Where it is.
    pub position: ScanPosition,
    /// Which version of its document; always 0 where a document is changed in place.
    pub version: u32,
}

/// What a step of a search saw.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sighted {
    /// What was found, in order.
    pub found: Vec<(Seen, Action)>,
    /// The position up to which it looked; `None` when there was nothing left to look at.
    pub end: Option<ScanPosition>,
}

/// What to count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    /// The account.
    pub account: AccountId,
    /// From this time on.
    pub from: UnixMillis,
    /// To before this one.
    pub to: UnixMillis,
    /// Length of a piece, at least 1.
    pub piece_ms: i64,
}

/// The size of a store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Description {
    /// Bytes on its disk.
    pub bytes: i64,
    /// When the oldest scan was created.
    pub oldest: Option<UnixMillis>,
    /// The months that are kept apart, the oldest first; one is removed as a whole.
    pub months: Vec<Month>,
}
