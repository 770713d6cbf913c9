//! The lease of each region's publisher. Its term fences off earlier holders (`control/README.md`, "Redis publisher").
//!
//! Times are the database's own, so no replica's clock decides.

use std::time::Duration;

use super::{
    Conn, StoreError, Tx,
    dialect::{signed, unsigned},
    execute, fetch_all, fetch_optional,
    lease::{Timed, milliseconds, timed},
};

macro_rules! acquire {
    ($now:expr) => {
        concat!(
            "INSERT INTO publishers (region, term, owner, lease_until, rebuild_asked, rebuild_done) \
             VALUES ($1, 1, $2, ",
            $now,
            " + $3, 0, 0) ON CONFLICT (region) DO UPDATE SET term = publishers.term + 1, \
             owner = excluded.owner, lease_until = excluded.lease_until WHERE publishers.lease_until <= ",
            $now,
            " RETURNING term"
        )
    };
}
macro_rules! renew {
    ($now:expr) => {
        concat!(
            "UPDATE publishers SET lease_until = ",
            $now,
            " + $4 WHERE region = $1 AND owner = $2 AND term = $3 RETURNING rebuild_asked, rebuild_done"
        )
    };
}
macro_rules! list {
    ($now:expr) => {
        concat!(
            "SELECT region, term, owner, lease_until > ",
            $now,
            " AS is_held, rebuild_asked, rebuild_done FROM publishers ORDER BY region"
        )
    };
}

const ACQUIRE: Timed = timed!(acquire);
const RENEW: Timed = timed!(renew);
const LIST: Timed = timed!(list);
const RAISE: &str = "UPDATE publishers SET term = CASE WHEN term > $4 THEN term ELSE $4 END + 1 \
    WHERE region = $1 AND owner = $2 AND term = $3 RETURNING term";
const RELEASE: &str = "UPDATE publishers SET lease_until = 0 WHERE region = $1 AND owner = $2";
const DONE: &str = "UPDATE publishers SET rebuild_done = $4 WHERE region = $1 AND owner = $2 AND term = $3";
const ASK: &str =
    "UPDATE publishers SET rebuild_asked = rebuild_asked + 1 WHERE $1 = '' OR region = $1 RETURNING region";

/// A lease that was taken: who holds it, for which region, under which term.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lease {
    /// The region.
    pub region: String,
    /// The publisher, by a name of its own.
    pub owner: String,
    /// Grows with each take-over and each rebuild.
    pub term: u64,
}

/// How often a rebuild was asked for, and how far that was carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rebuilds {
    /// Requests so far.
    pub asked: u64,
    /// Requests that a finished rebuild has answered.
    pub done: u64,
}

/// The publisher of a region, for operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publisher {
    /// Lease as it was last taken.
    pub lease: Lease,
    /// Whether it has not run out.
    pub is_held: bool,
    /// Rebuilds that were asked for.
    pub rebuilds: Rebuilds,
}

/// Takes the lease of a region if it is free or has run out; `None` when somebody holds it.
pub async fn acquire(
    tx: &mut Tx,
    region: &str,
    owner: &str,
    length: Duration,
) -> Result<Option<Lease>, StoreError> {
    let sql = ACQUIRE.of(tx);
    let row: Option<(i64,)> = fetch_optional!(&mut **tx, sql, region, owner, milliseconds(length))?;
    Ok(row.map(|(term,)| Lease { region: region.to_owned(), owner: owner.to_owned(), term: unsigned(term) }))
}

/// Holds the lease for `length` from now; `None` when somebody else has taken it since.
pub async fn renew(tx: &mut Tx, lease: &Lease, length: Duration) -> Result<Option<Rebuilds>, StoreError> {
    let sql = RENEW.of(tx);
    let row: Option<(i64, i64)> = fetch_optional!(
        &mut **tx,
        sql,
        &lease.region,
        &lease.owner,
        signed(lease.term),
        milliseconds(length)
    )?;
    Ok(row.map(|(asked, done)| Rebuilds { asked: unsigned(asked), done: unsigned(done) }))
}

/// Raises the holder's term, also above `seen`; `None` when another replica has taken the lease.
///
/// A view may have a higher term than the database after a restore of an older copy.
pub async fn raise(tx: &mut Tx, lease: &Lease, seen: u64) -> Result<Option<Lease>, StoreError> {
    let row: Option<(i64,)> =
        fetch_optional!(&mut **tx, RAISE, &lease.region, &lease.owner, signed(lease.term), signed(seen))?;
    Ok(row.map(|(term,)| Lease { term: unsigned(term), ..lease.clone() }))
}

/// Releases the lease, whatever its term is now, so that the next publisher need not wait for its end.
pub async fn release(tx: &mut Tx, lease: &Lease) -> Result<(), StoreError> {
    execute!(&mut **tx, RELEASE, &lease.region, &lease.owner)?;
    Ok(())
}

/// Notes that every rebuild asked for up to `asked` is carried out.
pub async fn rebuilt(tx: &mut Tx, lease: &Lease, asked: u64) -> Result<(), StoreError> {
    execute!(&mut **tx, DONE, &lease.region, &lease.owner, signed(lease.term), signed(asked))?;
    Ok(())
}

/// Asks the publisher of a region, or of every region, to rebuild its view; returns the regions.
///
/// A region is known once a publisher has run for it.
pub async fn request_rebuild(tx: &mut Tx, region: Option<&str>) -> Result<Vec<String>, StoreError> {
    let rows: Vec<(String,)> = fetch_all!(&mut **tx, ASK, region.unwrap_or_default())?;
    Ok(rows.into_iter().map(|(region,)| region).collect())
}

/// Every region that ever had a publisher, by name.
pub async fn list(conn: &mut Conn) -> Result<Vec<Publisher>, StoreError> {
    let sql = LIST.of(conn);
    let rows: Vec<(String, i64, String, bool, i64, i64)> = fetch_all!(conn, sql)?;
    Ok(rows
        .into_iter()
        .map(|(region, term, owner, is_held, asked, done)| Publisher {
            lease: Lease { region, owner, term: unsigned(term) },
            is_held,
            rebuilds: Rebuilds { asked: unsigned(asked), done: unsigned(done) },
        })
        .collect())
}
