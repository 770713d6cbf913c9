//! Authorities: the account of this service at each, and the lease of the control that asks it.

use std::time::Duration;

use kernel::store::{
    Db, StoreError, Tx, execute, fetch_optional,
    lease::{self, Timed, hold_lease, milliseconds, timed},
};

/// How long a lease holds without being renewed: so long orders stand still when their control dies.
pub const LEASE: Duration = Duration::from_secs(10);

/// Longest pause of an authority: it counts hosts of one registered domain together, and who has many of them must not hold up those
/// of others for longer.
pub const MAX_PAUSE: Duration = Duration::from_secs(60 * 60);

// A pause, or a lease, that is longer than any was made while the clock was wrong.
macro_rules! take {
    ($now:expr) => {
        concat!(
            "UPDATE certificate_authorities SET fence = fence + 1, lease_until = ",
            $now,
            " + $2 WHERE directory = $1 AND paused_until NOT BETWEEN ",
            $now,
            " + 1 AND ",
            $now,
            " + $3 AND lease_until NOT BETWEEN ",
            $now,
            " + 1 AND ",
            $now,
            " + 2 * $2 RETURNING seq, fence, credentials"
        )
    };
}
macro_rules! pause {
    ($now:expr) => {
        concat!(
            "UPDATE certificate_authorities SET paused_until = ",
            $now,
            " + $3 WHERE seq = $1 AND fence = $2"
        )
    };
}
macro_rules! hold_it {
    ($now:expr) => {
        hold_lease!($now, "certificate_authorities", "", "")
    };
}

const INSERT: &str =
    "INSERT INTO certificate_authorities (directory) VALUES ($1) ON CONFLICT (directory) DO NOTHING";
const TAKE: Timed = timed!(take);
const HOLD: Timed = timed!(hold_it);
const RELEASE: &str = "UPDATE certificate_authorities SET lease_until = 0 WHERE seq = $1 AND fence = $2";
const SET_CREDENTIALS: &str =
    "UPDATE certificate_authorities SET credentials = $3 WHERE seq = $1 AND fence = $2";
const PAUSE: Timed = timed!(pause);
const FREE: &str = "UPDATE certificate_authorities SET lease_until = 0";

/// A lease on an authority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// The key of its row.
    pub seq: i64,
    /// Grows with each holder.
    pub fence: i64,
    /// The text of the account of this service (`domain::account`); `None`: there is none yet.
    pub credentials: Option<String>,
}

/// Makes the row of an authority, unless there is one.
pub async fn add(tx: &mut Tx, directory: &str) -> Result<(), StoreError> {
    execute!(&mut **tx, INSERT, directory)?;
    Ok(())
}

/// Takes the lease of an authority, unless another control holds it or the authority is left alone.
pub async fn take(tx: &mut Tx, directory: &str) -> Result<Option<Held>, StoreError> {
    let sql = TAKE.of(tx);
    let row: Option<(i64, i64, Option<String>)> =
        fetch_optional!(&mut **tx, sql, directory, milliseconds(LEASE), milliseconds(MAX_PAUSE))?;
    Ok(row.map(|(seq, fence, credentials)| Held { seq, fence, credentials }))
}

/// Holds a lease for another [`LEASE`], and its row until the transaction ends; `false`: another control has taken it.
pub async fn hold(tx: &mut Tx, held: &Held) -> Result<bool, StoreError> {
    lease::hold(tx, HOLD, held.seq, held.fence, LEASE).await
}

/// Lets go of a lease.
pub async fn release(tx: &mut Tx, held: &Held) -> Result<(), StoreError> {
    execute!(&mut **tx, RELEASE, held.seq, held.fence)?;
    Ok(())
}

/// Stores the text of the account of this service.
pub async fn set_credentials(tx: &mut Tx, held: &Held, credentials: &str) -> Result<bool, StoreError> {
    Ok(execute!(&mut **tx, SET_CREDENTIALS, held.seq, held.fence, credentials)? == 1)
}

/// Leaves an authority alone for a time, at most [`MAX_PAUSE`].
pub async fn pause(tx: &mut Tx, held: &Held, pause: Duration) -> Result<(), StoreError> {
    let sql = PAUSE.of(tx);
    execute!(&mut **tx, sql, held.seq, held.fence, milliseconds(pause.min(MAX_PAUSE)))?;
    Ok(())
}

/// Lets go of what the process before held, where there is one process only: on SQLite.
pub async fn free_all(db: &Db) -> Result<(), StoreError> {
    lease::free_all(db, FREE).await
}
