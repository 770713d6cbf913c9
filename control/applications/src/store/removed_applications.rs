//! Applications that were deleted and whose users are still to be removed: a worker holds one under a lease.

use background::{
    release_work,
    store::work::{self, Claimed, Mark, Work},
    timed_on,
};
use kernel::store::lease::{self, Timed, hold_lease, timed, timed_lock};
use shared::{
    id::{AccountId, ApplicationId},
    time::UnixMillis,
};

use super::{StoreError, Tx, execute, fetch_optional, parse};

const INSERT: &str =
    "INSERT INTO removed_applications (app_id, account_id, users, created_at) VALUES ($1, $2, $3, $4)";
// Of whatever account, also of a suspended one: what is personal must go.
macro_rules! claim {
    ($now:expr, $lock:expr) => {
        concat!(
            "UPDATE removed_applications SET fence = fence + 1, failures = failures + 1, lease_until = ",
            $now,
            " + $1 WHERE seq = (SELECT e.seq FROM removed_applications e WHERE e.lease_until <= ",
            $now,
            " ORDER BY e.lease_until, e.seq LIMIT 1",
            $lock,
            ") RETURNING seq, account_id, app_id, fence, failures"
        )
    };
}
const CLAIM: Timed = timed_lock!(claim, " FOR UPDATE OF e SKIP LOCKED");
macro_rules! hold {
    ($now:expr) => {
        hold_lease!($now, "removed_applications", ", failures = 0", "")
    };
}
const HOLD: Timed = timed!(hold);
const COUNT: &str = "UPDATE removed_applications SET users = users + $3 WHERE account_id = $1 AND app_id = $2 RETURNING users";
const DELETE: &str = "DELETE FROM removed_applications WHERE account_id = $1 AND app_id = $2";

/// A deleted application whose users are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Removal {
    /// Whose it was.
    pub account: AccountId,
    /// Its id.
    pub app: ApplicationId,
    seq: i64,
}

#[derive(sqlx::FromRow)]
struct Row {
    seq: i64,
    account_id: String,
    app_id: String,
}

impl TryFrom<Row> for Removal {
    type Error = StoreError;

    fn try_from(row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            account: parse("account_id", &row.account_id)?,
            app: parse("app_id", &row.app_id)?,
            seq: row.seq,
        })
    }
}

impl Work for Removal {
    const RELEASE: Timed = timed_on!(release_work, "removed_applications");
    const FREE: &'static str = "UPDATE removed_applications SET lease_until = 0 WHERE lease_until > 0";

    fn mark(&self) -> Mark<'_> {
        // Its row goes with its last step.
        Mark { id: self.app.as_str(), seq: self.seq, status: "removing", is_over: false }
    }
}

/// Notes that users of an application are left, of which `users` were removed.
pub async fn insert(
    tx: &mut Tx,
    account: AccountId,
    app: ApplicationId,
    users: u32,
    now: UnixMillis,
) -> Result<(), StoreError> {
    execute!(&mut **tx, INSERT, app.as_str(), account.as_str(), i64::from(users), now.0)?;
    Ok(())
}

/// Claims the one that was worked on longest ago, if nobody holds it.
pub async fn claim(tx: &mut Tx) -> Result<Option<Claimed<Removal>>, StoreError> {
    work::claim::<Row, Removal>(tx, CLAIM).await
}

/// Holds one for another lease, and its row until the transaction ends, with which its failures are forgotten; `false` when
/// somebody else has taken it.
pub async fn hold(tx: &mut Tx, claimed: &Claimed<Removal>) -> Result<bool, StoreError> {
    lease::hold(tx, HOLD, claimed.item.seq, claimed.fence, work::LEASE).await
}

/// Counts users that were removed; returns how many there were in all.
pub async fn count(
    tx: &mut Tx,
    account: AccountId,
    app: ApplicationId,
    users: u32,
) -> Result<i64, StoreError> {
    let row: Option<(i64,)> =
        fetch_optional!(&mut **tx, COUNT, account.as_str(), app.as_str(), i64::from(users))?;
    Ok(row.map_or(0, |(users,)| users))
}

/// Forgets an application of which nothing is left.
pub async fn delete(tx: &mut Tx, account: AccountId, app: ApplicationId) -> Result<(), StoreError> {
    execute!(&mut **tx, DELETE, account.as_str(), app.as_str())?;
    Ok(())
}
