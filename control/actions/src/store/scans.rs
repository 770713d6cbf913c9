//! Scan cursors: how far the effects of the scans of each boot of each edge are written.
//!
//! The scans themselves have a cursor in their own store (crate `scan_store`).

use std::collections::{BTreeMap, HashMap};

use shared::{id::AccountId, time::UnixMillis};

use super::{
    Conn, StoreError, Tx, dialect,
    dialect::{signed, unsigned},
    execute, fetch_one, on_db,
};

const CREATE: &str = "INSERT INTO scan_cursors (edge_id, boot, next_seq) VALUES ($1, $2, 0) ON CONFLICT (edge_id, boot) DO NOTHING";
const LOAD_PG: &str = "SELECT next_seq FROM scan_cursors WHERE edge_id = $1 AND boot = $2 FOR UPDATE";
const LOAD: &str = "SELECT next_seq FROM scan_cursors WHERE edge_id = $1 AND boot = $2";
const MOVE: &str = "UPDATE scan_cursors SET next_seq = $3 WHERE edge_id = $1 AND boot = $2";

// In the order of the lists, which is the same for all: two transactions do not lock each other out.
const PG_CREATE_MANY: &str = "INSERT INTO scan_cursors (edge_id, boot, next_seq) SELECT edge_id, boot, 0 \
    FROM UNNEST($1::text[], $2::bigint[]) WITH ORDINALITY AS t (edge_id, boot, n) ORDER BY n \
    ON CONFLICT (edge_id, boot) DO NOTHING";
const PG_LOAD_MANY: &str = "SELECT c.edge_id, c.boot, c.next_seq FROM UNNEST($1::text[], $2::bigint[]) \
    WITH ORDINALITY AS t (edge_id, boot, n) JOIN scan_cursors c ON c.edge_id = t.edge_id AND c.boot = t.boot \
    ORDER BY t.n FOR UPDATE OF c";
const PG_MOVE_MANY: &str = "UPDATE scan_cursors AS c SET next_seq = t.next_seq \
    FROM UNNEST($1::text[], $2::bigint[], $3::bigint[]) AS t (edge_id, boot, next_seq) \
    WHERE c.edge_id = t.edge_id AND c.boot = t.boot";

// Those that are not counted yet wait for statistics.
const DELETE_OLD: &str = "DELETE FROM actions WHERE seq IN (SELECT a.seq FROM actions a WHERE a.account_id = $1 \
         AND a.type = 'implicitScans' AND a.created_at < $2 AND a.doc ->> 'scanSource' = 'edge' \
         AND (a.counted IS NOT NULL OR a.seq <= (SELECT after_seq FROM scan_backfill WHERE id = 1)) \
         ORDER BY a.created_at LIMIT $3)";

/// Name of an edge, and which boot of it.
pub type Boot<'a> = (&'a str, u64);

/// The sequence number expected next of each boot.
pub type Cursors<'a> = BTreeMap<Boot<'a>, u64>;

/// Removes up to so many scans by edges of an account that stand here and were created before a time; returns how many.
pub async fn delete_before(
    tx: &mut Tx,
    account: AccountId,
    before: UnixMillis,
    limit: u32,
) -> Result<u64, StoreError> {
    Ok(execute!(&mut **tx, DELETE_OLD, account.as_str(), before.0, i64::from(limit))?)
}

/// The sequence number expected next of a boot.
pub async fn find_cursor(conn: &mut Conn, edge: &str, boot: u64) -> Result<u64, StoreError> {
    let boot = signed(boot);
    let next: Option<i64> =
        on_db!(conn, |c| sqlx::query_scalar(LOAD).bind(edge).bind(boot).fetch_optional(c).await)?;
    Ok(next.map_or(0, unsigned))
}

/// The sequence number expected next of a boot; the row stays locked until the transaction ends.
pub async fn lock_cursor(tx: &mut Tx, edge: &str, boot: u64) -> Result<u64, StoreError> {
    let boot = signed(boot);
    execute!(&mut **tx, CREATE, edge, boot)?;
    let sql = dialect::pick(tx, LOAD_PG, LOAD);
    let (next,): (i64,) = fetch_one!(&mut **tx, sql, edge, boot)?;
    Ok(unsigned(next))
}

/// The sequence numbers expected next of boots, which are sorted; the rows stay locked until the transaction ends.
///
/// # Errors
/// A row is gone.
pub async fn lock_cursors<'a>(tx: &mut Tx, boots: &[Boot<'a>]) -> Result<Cursors<'a>, StoreError> {
    let mut cursors = Cursors::new();
    let Conn::PgTx(c) = &mut **tx else {
        // There is one writer, and no way to the database.
        for (edge, boot) in boots {
            cursors.insert((*edge, *boot), lock_cursor(tx, edge, *boot).await?);
        }
        return Ok(cursors);
    };
    let (edges, numbers): (Vec<&str>, Vec<i64>) =
        boots.iter().map(|(edge, boot)| (*edge, signed(*boot))).unzip();
    sqlx::query(PG_CREATE_MANY).bind(&edges).bind(&numbers).execute(&mut **c).await?;
    let rows: Vec<(String, i64, i64)> =
        sqlx::query_as(PG_LOAD_MANY).bind(&edges).bind(&numbers).fetch_all(&mut **c).await?;
    let found: HashMap<(&str, i64), i64> =
        rows.iter().map(|(edge, boot, next)| ((edge.as_str(), *boot), *next)).collect();
    for &(edge, boot) in boots {
        let next = found.get(&(edge, signed(boot)));
        let next = next.ok_or_else(|| StoreError::Row(format!("the cursor of {edge}/{boot} is gone")))?;
        cursors.insert((edge, boot), unsigned(*next));
    }
    Ok(cursors)
}

/// Moves cursors that are locked to other values.
///
/// # Errors
/// A row is gone.
pub async fn move_cursors(tx: &mut Tx, to: &Cursors<'_>) -> Result<(), StoreError> {
    let mut moved = 0;
    if let Conn::PgTx(c) = &mut **tx {
        let edges: Vec<&str> = to.keys().map(|(edge, _)| *edge).collect();
        let boots: Vec<i64> = to.keys().map(|(_, boot)| signed(*boot)).collect();
        let next: Vec<i64> = to.values().map(|next| signed(*next)).collect();
        let query = sqlx::query(PG_MOVE_MANY).bind(edges).bind(boots).bind(next);
        moved += query.execute(&mut **c).await?.rows_affected();
    } else {
        for ((edge, boot), next) in to {
            moved += execute!(&mut **tx, MOVE, *edge, signed(*boot), signed(*next))?;
        }
    }
    if moved == to.len() as u64 {
        Ok(())
    } else {
        Err(StoreError::Row(format!("{moved} scan cursors of {} are there", to.len())))
    }
}
