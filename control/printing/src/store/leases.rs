//! The statements by which workers hold orders.

use background::{
    claim_work, hold_work, release_work, save_work,
    store::work::{self, Mark, Stored, Work},
    timed_on,
};
use kernel::store::{
    StoreError, Tx,
    lease::{Timed, timed, timed_lock},
};
use shared::time::UnixMillis;

use super::orders::Row;
use crate::domain::order::{Details, Order};

pub use background::store::work::{hold, save};

/// An order in the hands of a worker.
pub type Claimed = work::Claimed<Order>;

macro_rules! claim {
    ($now:expr, $and:expr, $lock:expr) => {
        claim_work!(
            $now,
            $lock,
            "print_orders",
            $and,
            "id, seq, account_id, name, status, doc, created_at, updated_at, completed_at, files_until"
        )
    };
}
// Of an order that has ended, what is left is removed.
macro_rules! claim_any {
    ($now:expr, $lock:expr) => {
        claim!($now, "", $lock)
    };
}
const CLAIM: Timed = timed_lock!(claim_any, " FOR UPDATE OF e SKIP LOCKED");
// What makes links needs the writer, and what waits for edges a replica among them.
macro_rules! claim_drawing {
    ($now:expr, $lock:expr) => {
        claim!(
            $now,
            " AND (e.completed_at IS NOT NULL OR e.doc ->> 'stage' NOT IN ('make', 'publish'))",
            $lock
        )
    };
}
const CLAIM_DRAWING: Timed = timed_lock!(claim_drawing, " FOR UPDATE OF e SKIP LOCKED");
macro_rules! save {
    ($now:expr) => {
        save_work!($now, "print_orders", "files_until")
    };
}

impl Work for Order {
    const RELEASE: Timed = timed_on!(release_work, "print_orders");
    const FREE: &'static str =
        "UPDATE print_orders SET lease_until = 0 WHERE settled = 0 AND lease_until > 0";

    fn mark(&self) -> Mark<'_> {
        let (status, is_over) = (self.status.as_str(), self.status.is_terminal());
        Mark { id: self.id.as_str(), seq: self.stamp.seq, status, is_over }
    }
}

impl Stored for Order {
    const HOLD: Timed = timed_on!(hold_work, "print_orders");
    const SAVE: Timed = timed!(save);
    type Details = Details;

    fn details(&self) -> &Details {
        &self.details
    }

    fn times(&self) -> (UnixMillis, Option<UnixMillis>, Option<UnixMillis>) {
        (self.stamp.updated_at, self.completed_at, self.files_until)
    }
}

/// Claims the order that was worked on longest ago, if nobody holds it.
pub async fn claim(tx: &mut Tx) -> Result<Option<Claimed>, StoreError> {
    work::claim::<Row, Order>(tx, CLAIM).await
}

/// The same among orders whose next step makes no links and waits for no edge: see [`Stage::is_drawing`].
///
/// [`Stage::is_drawing`]: crate::domain::order::Stage::is_drawing
pub async fn claim_drawing(tx: &mut Tx) -> Result<Option<Claimed>, StoreError> {
    work::claim::<Row, Order>(tx, CLAIM_DRAWING).await
}
