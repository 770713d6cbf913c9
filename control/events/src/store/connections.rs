//! Connections of Thngs, and the replicas that hold them under leases.
//!
//! Times are the database's own, so no replica's clock decides whose lease has run out.

use std::time::Duration;

use shared::id::AccountId;

use super::{
    Conn, StoreError, Tx, dialect, execute, fetch_all, fetch_optional,
    lease::{Timed, milliseconds, pg_now, timed},
};

macro_rules! register {
    ($now:expr) => {
        concat!("INSERT INTO replicas (id, lease_until, gone) VALUES ($1, ", $now, " + $2, FALSE)")
    };
}
macro_rules! renew {
    ($now:expr) => {
        concat!("UPDATE replicas SET lease_until = ", $now, " + $2 WHERE id = $1 AND NOT gone")
    };
}

const REGISTER: Timed = timed!(register);
const RENEW: Timed = timed!(renew);
const PG_EXPIRE: &str =
    concat!("UPDATE replicas SET gone = TRUE WHERE id <> $1 AND NOT gone AND lease_until <= ", pg_now!());
const SQLITE_EXPIRE_OTHERS: &str = "UPDATE replicas SET gone = TRUE WHERE id <> $1";
const LEAVE: &str = "UPDATE replicas SET gone = TRUE WHERE id = $1";
const PG_HOLD: &str = "SELECT id FROM replicas WHERE id = $1 AND NOT gone FOR KEY SHARE";
const HOLD: &str = "SELECT id FROM replicas WHERE id = $1 AND NOT gone";
const OPEN: &str = "INSERT INTO connections (id, replica, account_id, thng_id) VALUES ($1, $2, $3, $4)";
const CLOSE: &str = "DELETE FROM connections WHERE id = $1";
const HAS: &str = "SELECT 1 FROM connections WHERE thng_id = $1 LIMIT 1";
const ORPHANS: &str = "SELECT c.id, c.account_id, c.thng_id FROM connections c JOIN replicas r ON r.id = c.replica \
    WHERE r.gone ORDER BY c.replica, c.id LIMIT $1";
const FORGET: &str = "DELETE FROM replicas WHERE gone AND NOT EXISTS \
    (SELECT 1 FROM connections c WHERE c.replica = replicas.id)";
/// A connection of a Thng whose replica is gone.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Orphan {
    /// Its name.
    pub id: String,
    /// The account.
    pub account_id: String,
    /// The Thng.
    pub thng_id: String,
}

/// Registers a replica under a name that was never used.
pub async fn register(tx: &mut Tx, replica: &str, lease: Duration) -> Result<(), StoreError> {
    let sql = REGISTER.of(tx);
    execute!(&mut **tx, sql, replica, milliseconds(lease))?;
    Ok(())
}

/// Renews a lease; `false` when the replica was given up: its connections are being closed by others.
pub async fn renew(tx: &mut Tx, replica: &str, lease: Duration) -> Result<bool, StoreError> {
    let sql = RENEW.of(tx);
    let renewed = execute!(&mut **tx, sql, replica, milliseconds(lease))?;
    Ok(renewed == 1)
}

/// Gives up the replicas whose lease ran out. SQLite serves one process, so every other one is dead there.
pub async fn expire_replicas(tx: &mut Tx, own: &str) -> Result<(), StoreError> {
    let sql = dialect::pick(tx, PG_EXPIRE, SQLITE_EXPIRE_OTHERS);
    execute!(&mut **tx, sql, own)?;
    Ok(())
}

/// Gives up this replica at shutdown.
pub async fn leave(tx: &mut Tx, replica: &str) -> Result<(), StoreError> {
    execute!(&mut **tx, LEAVE, replica)?;
    Ok(())
}

/// Adds a connection of a Thng that the transaction holds; `false` when the replica was given up.
pub async fn open(
    tx: &mut Tx,
    id: &str,
    replica: &str,
    account: AccountId,
    thng: &str,
) -> Result<bool, StoreError> {
    // A lock that does not block the renewal of the lease. A connection that is added while the replica is being
    // given up is closed later, because rows of dead replicas are searched until there are none.
    let sql = dialect::pick(tx, PG_HOLD, HOLD);
    let held: Option<(String,)> = fetch_optional!(&mut **tx, sql, replica)?;
    if held.is_none() {
        return Ok(false);
    }
    execute!(&mut **tx, OPEN, id, replica, account.as_str(), thng)?;
    Ok(true)
}

/// Removes a connection; `false` when somebody did before.
pub async fn close(tx: &mut Tx, id: &str) -> Result<bool, StoreError> {
    let gone = execute!(&mut **tx, CLOSE, id)?;
    Ok(gone == 1)
}

/// Whether a Thng has a connection.
pub async fn is_connected(conn: &mut Conn, thng: &str) -> Result<bool, StoreError> {
    let row: Option<(i32,)> = fetch_optional!(conn, HAS, thng)?;
    Ok(row.is_some())
}

/// Connections of replicas that are gone.
pub async fn list_orphans(conn: &mut Conn, limit: u32) -> Result<Vec<Orphan>, StoreError> {
    Ok(fetch_all!(conn, ORPHANS, i64::from(limit))?)
}

/// Forgets replicas that are gone and have no connections left.
pub async fn forget(tx: &mut Tx) -> Result<(), StoreError> {
    execute!(&mut **tx, FORGET)?;
    Ok(())
}
