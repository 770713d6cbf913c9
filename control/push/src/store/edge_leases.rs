//! Leases of edges: how far each is, and which control replica holds its stream. Also the leases of replicas.
//!
//! Only on Postgres: a SQLite database serves one process, which knows its edges. Times are the database's own. Nothing
//! here must survive a crash of the database, so writes do not wait for its disk.

use std::{sync::Arc, time::Duration};

use shared::wire::stream::{Hello, Rev};
use sqlx::types::Json;

use super::{
    Conn, Raw, StoreError, Tx,
    dialect::{signed, unsigned},
    lease::{milliseconds, pg_now},
};

const PG_RELAX: &str = "SET LOCAL synchronous_commit = off";
// Returns the rejections of the previous session, which the caller keeps if the edge resumes.
const PG_OPEN: &str = concat!(
    "INSERT INTO edge_leases AS e (edge_id, session, replica, region, build, applied, rejected, lease_until) \
     VALUES ($1, nextval('edge_sessions'), $2, $3, $4, 0, '[]', ",
    pg_now!(),
    " + $5) ON CONFLICT (edge_id) DO UPDATE SET session = excluded.session, replica = excluded.replica, \
     region = excluded.region, build = excluded.build, applied = 0, lease_until = excluded.lease_until \
     WHERE e.session < excluded.session RETURNING session, rejected"
);
const PG_RENEW: &str = concat!(
    "INSERT INTO edge_leases AS e (edge_id, session, replica, region, build, applied, rejected, lease_until) \
     SELECT edge_id, session, $1, region, build, applied, rejected, ",
    pg_now!(),
    " + left_ms FROM UNNEST($2::text[], $3::bigint[], $4::text[], $5::text[], $6::bigint[], $7::jsonb[], \
     $8::bigint[]) AS t (edge_id, session, region, build, applied, rejected, left_ms) \
     ON CONFLICT (edge_id) DO UPDATE SET session = excluded.session, replica = excluded.replica, \
     region = excluded.region, build = excluded.build, applied = excluded.applied, \
     rejected = excluded.rejected, lease_until = excluded.lease_until WHERE e.session <= excluded.session"
);
// An edge without a valid key leaves the fleet once its lease has run out. Edges of the reading replica are excluded,
// because it knows their state better: of a thousand edges, none is read while it waits for them.
const PG_LIST: &str = concat!(
    "SELECT e.edge_id, e.session, e.replica, e.region, e.build, e.applied, e.rejected, e.lease_until - ",
    pg_now!(),
    " AS left_ms FROM edge_leases e WHERE CASE WHEN e.lease_until > ",
    pg_now!(),
    " THEN e.replica <> $1 \
     ELSE EXISTS (SELECT 1 FROM edge_keys k WHERE k.edge_id = e.edge_id AND k.revoked_at IS NULL) END \
     ORDER BY e.edge_id"
);
const PG_FORGET_EDGES: &str = concat!(
    "DELETE FROM edge_leases e WHERE e.lease_until < ",
    pg_now!(),
    " - $1 AND NOT EXISTS (SELECT 1 FROM edge_keys k WHERE k.edge_id = e.edge_id AND k.revoked_at IS NULL)"
);
const PG_HOLD: &str = concat!(
    "INSERT INTO control_replicas (id, lease_until) VALUES ($1, ",
    pg_now!(),
    " + $2) ON CONFLICT (id) DO UPDATE SET lease_until = excluded.lease_until"
);
const PG_REPLICAS: &str = concat!(
    "SELECT id, lease_until - ",
    pg_now!(),
    " AS left_ms FROM control_replicas \
     WHERE lease_until > ",
    pg_now!(),
    " ORDER BY id"
);
const PG_FORGET_REPLICAS: &str =
    concat!("DELETE FROM control_replicas WHERE lease_until < ", pg_now!(), " - $1");
const PG_LEAVE: &str = "DELETE FROM control_replicas WHERE id = $1";
/// A session that was opened for an edge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// Its number: of two of one edge, the greater is the newer one, whichever replica holds it.
    pub session: u64,
    /// Rejections of the previous session.
    pub rejected: Vec<Rev>,
}

/// The progress of an edge, reported by the replica that holds its stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// Name of the edge.
    pub edge_id: Arc<str>,
    /// Number of its session.
    pub session: u64,
    /// The replica that holds its stream, or did.
    pub replica: Arc<str>,
    /// Region of the edge.
    pub region: Arc<str>,
    /// Build of the edge.
    pub build: Arc<str>,
    /// The newest revision that is live on it.
    pub applied: Rev,
    /// Revisions it refused, newest last.
    pub rejected: Vec<Rev>,
    /// Milliseconds for which the lease still holds; less than 0 since it has run out.
    pub left_ms: i64,
}

/// The connection, where it is one to Postgres.
macro_rules! postgres {
    ($conn:expr) => {
        match $conn.raw() {
            Raw::Pg(c) => c,
            Raw::Sqlite(_) => return Err(StoreError::Row("a SQLite database serves one process".to_owned())),
        }
    };
}

/// Makes the commit of a transaction asynchronous.
pub async fn relax(tx: &mut Tx) -> Result<(), StoreError> {
    sqlx::query(PG_RELAX).execute(postgres!(tx)).await?;
    Ok(())
}

/// Opens a session of an edge at a replica, with a number above all its earlier ones; `None` when a newer one was
/// opened in between.
///
/// Nothing counts as applied before the edge has acknowledged it in this session.
pub async fn open(
    tx: &mut Tx,
    replica: &str,
    hello: &Hello,
    lease: Duration,
) -> Result<Option<Opened>, StoreError> {
    let row: Option<(i64, Json<Vec<Rev>>)> = sqlx::query_as(PG_OPEN)
        .bind(&*hello.edge_id)
        .bind(replica)
        .bind(&*hello.region)
        .bind(&*hello.build)
        .bind(milliseconds(lease))
        .fetch_optional(postgres!(tx))
        .await?;
    Ok(row.map(|(session, Json(rejected))| Opened { session: unsigned(session), rejected }))
}

/// Writes the progress of a replica's edges; an edge with a newer session elsewhere is skipped.
///
/// The leases must be sorted by edge, so that two replicas never deadlock.
pub async fn renew(tx: &mut Tx, replica: &str, leases: &[Lease]) -> Result<(), StoreError> {
    let texts = |of: fn(&Lease) -> &Arc<str>| leases.iter().map(|l| of(l).to_string()).collect::<Vec<_>>();
    sqlx::query(PG_RENEW)
        .bind(replica)
        .bind(texts(|l| &l.edge_id))
        .bind(leases.iter().map(|l| signed(l.session)).collect::<Vec<_>>())
        .bind(texts(|l| &l.region))
        .bind(texts(|l| &l.build))
        .bind(leases.iter().map(|l| signed(l.applied)).collect::<Vec<_>>())
        .bind(leases.iter().map(|l| Json(&l.rejected)).collect::<Vec<_>>())
        .bind(leases.iter().map(|l| l.left_ms).collect::<Vec<_>>())
        .execute(postgres!(tx))
        .await?;
    Ok(())
}

#[derive(sqlx::FromRow)]
struct Row {
    edge_id: String,
    session: i64,
    replica: String,
    region: String,
    build: String,
    applied: i64,
    rejected: Json<Vec<Rev>>,
    left_ms: i64,
}

/// The edges of the fleet that are not at this replica: those with a valid lease at another one, and those without a
/// lease that have a valid key and have connected before.
pub async fn list(conn: &mut Conn, replica: &str) -> Result<Vec<Lease>, StoreError> {
    let rows: Vec<Row> = sqlx::query_as(PG_LIST).bind(replica).fetch_all(postgres!(conn)).await?;
    Ok(rows
        .into_iter()
        .map(|row| Lease {
            edge_id: row.edge_id.into(),
            session: unsigned(row.session),
            replica: row.replica.into(),
            region: row.region.into(),
            build: row.build.into(),
            applied: unsigned(row.applied),
            rejected: row.rejected.0,
            left_ms: row.left_ms,
        })
        .collect())
}

/// Renews the lease of a replica, for this time from now.
pub async fn hold(tx: &mut Tx, replica: &str, lease: Duration) -> Result<(), StoreError> {
    sqlx::query(PG_HOLD).bind(replica).bind(milliseconds(lease)).execute(postgres!(tx)).await?;
    Ok(())
}

/// The replicas that run, each with the rest of its lease in milliseconds.
pub async fn list_replicas(conn: &mut Conn) -> Result<Vec<(Arc<str>, i64)>, StoreError> {
    let rows: Vec<(String, i64)> = sqlx::query_as(PG_REPLICAS).fetch_all(postgres!(conn)).await?;
    Ok(rows.into_iter().map(|(id, left_ms)| (id.into(), left_ms)).collect())
}

/// Ends the lease of a replica.
pub async fn leave(tx: &mut Tx, replica: &str) -> Result<(), StoreError> {
    sqlx::query(PG_LEAVE).bind(replica).execute(postgres!(tx)).await?;
    Ok(())
}

/// Deletes replicas that were silent for this long, and edges that were and have no valid key.
pub async fn forget(tx: &mut Tx, silence: Duration) -> Result<(), StoreError> {
    sqlx::query(PG_FORGET_REPLICAS).bind(milliseconds(silence)).execute(postgres!(tx)).await?;
    sqlx::query(PG_FORGET_EDGES).bind(milliseconds(silence)).execute(postgres!(tx)).await?;
    Ok(())
}
