//! Links as they were before a change: rows as arrays on Postgres, as one JSON array on SQLite.

use kernel::{
    execute, fetch_all, fetch_one, on_db,
    store::{
        Conn, Raw, StoreError, Tx,
        dialect::{signed, unsigned},
    },
};
use redirects::domain::redirection::Redirection;
use serde_json::{Value, json};
use shared::wire::stream::Rev;
use sqlx::types::Json;

const PG_INSERT: &str = "INSERT INTO link_change_former (change_seq, link, rev_before, rev, doc) \
    SELECT $1, link, rev_before, rev, doc \
    FROM UNNEST($2::bigint[], $3::bigint[], $4::bigint[], $5::text[]) AS t (link, rev_before, rev, doc)";
const SQLITE_INSERT: &str = "INSERT INTO link_change_former (change_seq, link, rev_before, rev, doc) \
    SELECT $1, value ->> '$[0]', value ->> '$[1]', value ->> '$[2]', value ->> '$[3]' FROM json_each($2)";
const LIST: &str = "SELECT link, rev_before, rev, doc FROM link_change_former \
    WHERE change_seq = $1 AND link > $2 ORDER BY link LIMIT $3";
const PG_DELETE: &str = "DELETE FROM link_change_former WHERE change_seq = $1 AND link = ANY($2)";
const SQLITE_DELETE: &str = "DELETE FROM link_change_former WHERE change_seq = $1 \
    AND link IN (SELECT value FROM json_each($2))";
// `LIMIT -1` keeps the list a table of its own, so that SQLite looks each link up by the index.
const PG_FOLLOW: &str = "UPDATE link_change_former f SET rev = t.rev \
    FROM UNNEST($1::bigint[], $2::bigint[], $3::bigint[]) AS t (link, old_rev, rev) \
    WHERE f.link = t.link AND f.rev = t.old_rev";
const SQLITE_FOLLOW: &str = "UPDATE link_change_former SET rev = t.rev \
    FROM (SELECT value ->> '$[0]' AS link, value ->> '$[1]' AS old_rev, value ->> '$[2]' AS rev \
    FROM json_each($1) LIMIT -1) AS t \
    WHERE link_change_former.link = t.link AND link_change_former.rev = t.old_rev";
const COUNT: &str = "SELECT COUNT(*) FROM link_change_former WHERE change_seq = $1";
// Some links at a time, each looked up by its place: of a million at once the database reads the table of all links.
const COUNT_CHANGED: &str = "SELECT COUNT(*), COUNT(r.seq), MAX(f.link) FROM (SELECT o.link, o.rev \
    FROM link_change_former o WHERE o.change_seq = $1 AND o.link > $2 ORDER BY o.link LIMIT $3) f \
    LEFT JOIN redirections r ON r.seq = f.link AND r.deleted_rev IS NULL AND r.rev = f.rev";
const CLEAR: &str = "DELETE FROM link_change_former WHERE change_seq = $1 AND link IN \
    (SELECT o.link FROM link_change_former o WHERE o.change_seq = $1 ORDER BY o.link LIMIT $2)";

/// Links that one statement compares.
const COMPARED: i64 = 2_000;

/// A link as it was before a change.
#[derive(Debug, Clone)]
pub struct FormerLink {
    /// The link.
    pub link: Redirection,
    /// Its revision then.
    pub rev_before: Rev,
    /// The revision that the change gave it.
    pub rev: Rev,
}

/// Keeps links of a change as they were; each pair is a link before and after it.
pub async fn insert(
    tx: &mut Tx,
    change: i64,
    written: &[(Redirection, Redirection)],
) -> Result<(), StoreError> {
    if written.is_empty() {
        return Ok(());
    }
    let mut rows = Vec::with_capacity(written.len());
    for (before, after) in written {
        let doc = serde_json::to_string(before).map_err(|error| StoreError::Row(format!("doc: {error}")))?;
        rows.push((before.seq, signed(before.rev), signed(after.rev), doc));
    }
    match tx.raw() {
        Raw::Pg(c) => {
            sqlx::query(PG_INSERT)
                .bind(change)
                .bind(rows.iter().map(|row| row.0).collect::<Vec<_>>())
                .bind(rows.iter().map(|row| row.1).collect::<Vec<_>>())
                .bind(rows.iter().map(|row| row.2).collect::<Vec<_>>())
                .bind(rows.iter().map(|row| row.3.as_str()).collect::<Vec<_>>())
                .execute(c)
                .await?;
        }
        Raw::Sqlite(c) => {
            let rows: Vec<Value> = rows.iter().map(|row| json!([row.0, row.1, row.2, row.3])).collect();
            sqlx::query(SQLITE_INSERT).bind(change).bind(Json(rows)).execute(c).await?;
        }
    }
    Ok(())
}

/// The first links of a change whose place follows `after`, in the order of their places.
pub async fn list(
    conn: &mut Conn,
    change: i64,
    after: i64,
    limit: u32,
) -> Result<Vec<FormerLink>, StoreError> {
    let rows: Vec<(i64, i64, i64, String)> = fetch_all!(conn, LIST, change, after, i64::from(limit))?;
    rows.into_iter()
        .map(|(link, rev_before, rev, doc)| {
            let found: Redirection = serde_json::from_str(&doc)
                .map_err(|error| StoreError::Row(format!("former link {link}: {error}")))?;
            Ok(FormerLink { link: found, rev_before: unsigned(rev_before), rev: unsigned(rev) })
        })
        .collect()
}

/// Forgets links of a change, by their places.
pub async fn delete(tx: &mut Tx, change: i64, links: &[i64]) -> Result<(), StoreError> {
    if links.is_empty() {
        return Ok(());
    }
    match tx.raw() {
        Raw::Pg(c) => {
            sqlx::query(PG_DELETE).bind(change).bind(links).execute(c).await?;
        }
        Raw::Sqlite(c) => {
            sqlx::query(SQLITE_DELETE).bind(change).bind(Json(links)).execute(c).await?;
        }
    }
    Ok(())
}

/// Links have a state again that an earlier change gave them, under another revision: each is its place, the revision of then
/// and that of now. So the earlier change can be undone, too.
pub async fn follow(tx: &mut Tx, links: &[(i64, Rev, Rev)]) -> Result<(), StoreError> {
    if links.is_empty() {
        return Ok(());
    }
    match tx.raw() {
        Raw::Pg(c) => {
            sqlx::query(PG_FOLLOW)
                .bind(links.iter().map(|link| link.0).collect::<Vec<_>>())
                .bind(links.iter().map(|link| signed(link.1)).collect::<Vec<_>>())
                .bind(links.iter().map(|link| signed(link.2)).collect::<Vec<_>>())
                .execute(c)
                .await?;
        }
        Raw::Sqlite(c) => {
            sqlx::query(SQLITE_FOLLOW).bind(Json(links)).execute(c).await?;
        }
    }
    Ok(())
}

/// How many links of a change are kept.
pub async fn count(conn: &mut Conn, change: i64) -> Result<u64, StoreError> {
    let count: i64 = on_db!(conn, |c| sqlx::query_scalar(COUNT).bind(change).fetch_one(c).await)?;
    Ok(count.unsigned_abs())
}

/// How many of them were changed or deleted since.
pub async fn count_changed(conn: &mut Conn, change: i64) -> Result<u64, StoreError> {
    let (mut after, mut changed) = (0_i64, 0_u64);
    loop {
        let (listed, same, last): (i64, i64, Option<i64>) =
            fetch_one!(conn, COUNT_CHANGED, change, after, COMPARED)?;
        changed += listed.saturating_sub(same).unsigned_abs();
        match last {
            Some(last) if listed == COMPARED => after = last,
            Some(_) | None => return Ok(changed),
        }
    }
}

/// Forgets up to `limit` links of a change; returns how many there were.
pub async fn clear(tx: &mut Tx, change: i64, limit: u32) -> Result<u64, StoreError> {
    Ok(execute!(&mut **tx, CLEAR, change, i64::from(limit))?)
}
