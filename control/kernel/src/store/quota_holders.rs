//! What accounts have open, by the process that holds it, each under a lease on the database's clock.

use std::time::Duration;

use serde_json::{Value, json};
use shared::id::AccountId;
use sqlx::types::Json;

use super::{
    Conn, Db, StoreError, Tx, dialect,
    dialect::{signed, unsigned},
    execute, fetch_one,
    lease::{self, Timed, milliseconds, pg_now, sqlite_now, timed},
};
use crate::domain::quota::Quota;

/// How long a process counts as alive after it last said what it holds.
pub const LEASE: Duration = Duration::from_secs(30);

macro_rules! others {
    ($now:expr) => {
        concat!(
            "SELECT CAST(COALESCE(SUM(used), 0) AS BIGINT) FROM quota_holders WHERE account_id = $1 AND kind = $2 \
             AND holder <> $3 AND lease_until > ",
            $now
        )
    };
}
macro_rules! delete_dead {
    ($now:expr) => {
        concat!("DELETE FROM quota_holders WHERE lease_until <= ", $now)
    };
}
const OTHERS: Timed = timed!(others);
const PG_PUT: &str = concat!(
    "INSERT INTO quota_holders (account_id, kind, holder, used, lease_until) \
     SELECT t.account_id, t.kind, $1, t.used, $2 + ",
    pg_now!(),
    " FROM UNNEST($3::text[], $4::text[], $5::bigint[]) AS t (account_id, kind, used) \
     ON CONFLICT (account_id, kind, holder) DO UPDATE SET used = excluded.used, lease_until = excluded.lease_until"
);
// The condition tells `ON CONFLICT` from one of a join.
const SQLITE_PUT: &str = concat!(
    "INSERT INTO quota_holders (account_id, kind, holder, used, lease_until) \
     SELECT value ->> '$[0]', value ->> '$[1]', $1, value ->> '$[2]', $2 + ",
    sqlite_now!(),
    " FROM json_each($3) WHERE true \
     ON CONFLICT (account_id, kind, holder) DO UPDATE SET used = excluded.used, lease_until = excluded.lease_until"
);
const DELETE_ENDED: &str = "DELETE FROM quota_holders WHERE holder = $1 AND used = 0";
const DELETE_DEAD: Timed = timed!(delete_dead);
const LEAVE: &str = "DELETE FROM quota_holders WHERE holder = $1";
const FREE: &str = "DELETE FROM quota_holders";

/// How much other processes hold for an account; all of them with an empty name.
pub async fn count_others(
    conn: &mut Conn,
    account: AccountId,
    quota: Quota,
    holder: &str,
) -> Result<u64, StoreError> {
    let sql = OTHERS.of(conn);
    let (used,): (i64,) = fetch_one!(conn, sql, account.as_str(), quota.as_str(), holder)?;
    Ok(unsigned(used))
}

/// Writes how much a process holds, and renews its leases.
pub async fn put(tx: &mut Tx, holder: &str, held: &[(AccountId, Quota, u64)]) -> Result<(), StoreError> {
    let lease = milliseconds(LEASE);
    match &mut **tx {
        Conn::PgTx(c) => {
            sqlx::query(PG_PUT)
                .bind(holder)
                .bind(lease)
                .bind(held.iter().map(|(account, ..)| account.to_string()).collect::<Vec<_>>())
                .bind(held.iter().map(|(_, quota, _)| quota.as_str()).collect::<Vec<_>>())
                .bind(held.iter().map(|(.., used)| signed(*used)).collect::<Vec<_>>())
                .execute(&mut **c)
                .await?;
        }
        Conn::SqliteTx(c) => {
            let rows: Vec<Value> =
                held.iter().map(|(account, quota, used)| json!([account, quota.as_str(), used])).collect();
            sqlx::query(SQLITE_PUT).bind(holder).bind(lease).bind(Json(rows)).execute(&mut **c).await?;
        }
        Conn::Pg(_) | Conn::Sqlite(_) => return Err(dialect::outside_transaction()),
    }
    execute!(&mut **tx, DELETE_ENDED, holder)?;
    Ok(())
}

/// Removes what processes held that are gone.
pub async fn delete_dead(tx: &mut Tx) -> Result<(), StoreError> {
    let sql = DELETE_DEAD.of(tx);
    execute!(&mut **tx, sql)?;
    Ok(())
}

/// Removes what a process holds, at its end.
pub async fn leave(tx: &mut Tx, holder: &str) -> Result<(), StoreError> {
    execute!(&mut **tx, LEAVE, holder)?;
    Ok(())
}

/// Removes what an earlier process held, where there is one process only: on SQLite.
pub async fn free_all(db: &Db) -> Result<(), StoreError> {
    lease::free_all(db, FREE).await
}
