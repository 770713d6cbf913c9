//! The seam between scans and what keeps them.

use std::{fmt, sync::Arc};

use futures_util::future::BoxFuture;
use kernel::{
    domain::action::Action,
    store::{StoreError, listing::Selection},
};
use serde_json::Value;
use shared::{
    id::{AccountId, ActionId, ProductId, ThngId},
    time::UnixMillis,
};

use crate::domain::{columns::Columns, ids, month::Month};

/// The place of the first scan that is stored here: no database of actions counts so far.
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

    /// Stores scans of one account that stood elsewhere, in their places; those that are there already are passed over.
    fn adopt<'a>(
        &'a self,
        account: AccountId,
        scans: &'a [(i64, UnixMillis, NewScan)],
    ) -> BoxFuture<'a, Result<(), StoreError>>;

    /// The first scans of a list, in its order: one more than a page, if there are so many.
    ///
    /// # Errors
    /// [`StoreError::Timeout`] when too many scans had to be looked at.
    fn page<'a>(&'a self, selection: &'a Selection<'a>) -> BoxFuture<'a, Result<Vec<Action>, StoreError>>;

    /// The existing ones of some scans, in order of their places.
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

    /// Removes up to so many scans of an account that were created before a time; returns how many.
    fn delete_before(
        &self,
        account: AccountId,
        before: UnixMillis,
        limit: u32,
    ) -> BoxFuture<'_, Result<u64, StoreError>>;

    /// Removes months that are over by a time, with the scans of all accounts, and gives their space back.
    fn drop_before(&self, before: UnixMillis) -> BoxFuture<'_, Result<Vec<Month>, StoreError>>;

    /// What there is.
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
    pub alone: Arc<dyn ScanStore>,
    /// For callers that hold one. They read little.
    pub nested: Arc<dyn ScanStore>,
}

impl Scans {
    /// Waits for what runs, and closes every connection; on Postgres those of the database, too.
    pub async fn close(&self) {
        self.nested.close().await;
        self.alone.close().await;
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
#[derive(Debug)]
pub struct Batch<'a> {
    /// Whose they are.
    pub boot: Boot<'a>,
    /// What is expected next where nothing of the boot was stored here, and at least.
    pub stored_elsewhere: u64,
    /// The number after the last of the batch.
    pub end: u64,
    /// When they are created.
    pub created_at: UnixMillis,
    /// The scans with their numbers; one that is not to be stored is left out.
    pub scans: Vec<(u64, NewScan)>,
}

/// What became of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// The number that was expected next before it: scans below it had been stored.
    pub expected: u64,
    /// How many scans were stored.
    pub stored: u64,
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
