//! The statements by which workers hold changes.

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

use super::changes::Row;
use crate::domain::change::{Details, LinkChange};

pub use background::store::work::{hold, release, save};

/// A change in the hands of a worker.
pub type Claimed = work::Claimed<LinkChange>;

// Those that nobody has approved wait.
macro_rules! claim {
    ($now:expr, $lock:expr) => {
        claim_work!(
            $now,
            $lock,
            "link_changes",
            " AND e.status <> 'awaitingApproval'",
            "id, seq, account_id, kind, of_change, made_by, status, doc, created_at, updated_at, completed_at, undo_until"
        )
    };
}
const CLAIM: Timed = timed_lock!(claim, " FOR UPDATE OF e SKIP LOCKED");
macro_rules! save {
    ($now:expr) => {
        save_work!($now, "link_changes", "undo_until")
    };
}

impl Work for LinkChange {
    const RELEASE: Timed = timed_on!(release_work, "link_changes");
    const FREE: &'static str =
        "UPDATE link_changes SET lease_until = 0 WHERE settled = 0 AND lease_until > 0";

    fn mark(&self) -> Mark<'_> {
        let (status, is_over) = (self.status.as_str(), self.status.is_terminal());
        Mark { id: self.id.as_str(), seq: self.stamp.seq, status, is_over }
    }
}

impl Stored for LinkChange {
    const HOLD: Timed = timed_on!(hold_work, "link_changes");
    const SAVE: Timed = timed!(save);
    type Details = Details;

    fn details(&self) -> &Details {
        &self.details
    }

    fn times(&self) -> (UnixMillis, Option<UnixMillis>, Option<UnixMillis>) {
        (self.stamp.updated_at, self.completed_at, self.undo_until)
    }
}

/// Claims the change that was worked on longest ago, if nobody holds it.
pub async fn claim(tx: &mut Tx) -> Result<Option<Claimed>, StoreError> {
    work::claim::<Row, LinkChange>(tx, CLAIM).await
}
