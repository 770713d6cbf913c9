//! What edges counted of links with a limit: a part of the availability of each.

use redirects::domain::redirection::Redirection;
use serde_json::{Value, json};
use shared::{redirect::RedirectKey, time::UnixMillis};
use sqlx::types::Json;

use super::{Conn, StoreError, Tx, dialect};

const PG_UPDATE: &str = "UPDATE redirections r SET availability = t.availability \
    FROM UNNEST($1::text[], $2::text[], $3::jsonb[]) AS t (domain, folded, availability) \
    WHERE r.domain = t.domain AND r.folded = t.folded AND r.deleted_rev IS NULL";

// `LIMIT -1` keeps the list a table of its own: without it SQLite may walk all redirections and read the list for each.
const SQLITE_UPDATE: &str = "UPDATE redirections SET availability = t.v ->> '$[2]' \
    FROM (SELECT value ->> '$[0]' AS domain, value ->> '$[1]' AS folded, value AS v FROM json_each($1) LIMIT -1) AS t \
    WHERE redirections.domain = t.domain AND redirections.folded = t.folded AND deleted_rev IS NULL";

// Keys stay when they are revoked. The edge of `waymark up` has none.
const PG_GONE: &str = "SELECT edge_id FROM edge_keys WHERE edge_id = ANY($2) GROUP BY edge_id \
    HAVING COUNT(*) = COUNT(revoked_at) AND MAX(revoked_at) < $1 ORDER BY edge_id";
const SQLITE_GONE: &str = "SELECT edge_id FROM edge_keys WHERE edge_id IN (SELECT value FROM json_each($2)) \
    GROUP BY edge_id HAVING COUNT(*) = COUNT(revoked_at) AND MAX(revoked_at) < $1 ORDER BY edge_id";

/// Which of some edges have had no valid key since a time, so that they can have reported nothing.
pub async fn list_gone(
    conn: &mut Conn,
    edges: &[String],
    since: UnixMillis,
) -> Result<Vec<String>, StoreError> {
    let rows = dialect::fetch_in_list!(conn, (String,), PG_GONE, SQLITE_GONE, [since.0], edges)?;
    Ok(rows.into_iter().map(|(edge,)| edge).collect())
}

/// Replaces the availability of links and nothing else, by one statement, because the change log is locked meanwhile. Their
/// revisions stay: nobody changed them.
pub async fn update(tx: &mut Tx, counted: &[(RedirectKey, Redirection)]) -> Result<(), StoreError> {
    match &mut **tx {
        Conn::PgTx(c) => {
            let availability =
                counted.iter().map(|(_, link)| link.redirect.availability.as_deref().map(Json));
            sqlx::query(PG_UPDATE)
                .persistent(false)
                .bind(counted.iter().map(|(key, _)| key.domain.to_string()).collect::<Vec<_>>())
                .bind(counted.iter().map(|(key, _)| key.folded.to_string()).collect::<Vec<_>>())
                .bind(availability.collect::<Vec<_>>())
                .execute(&mut **c)
                .await?;
        }
        Conn::SqliteTx(c) => {
            let rows: Vec<Value> = counted
                .iter()
                .map(|(key, link)| json!([&*key.domain, &*key.folded, link.redirect.availability]))
                .collect();
            sqlx::query(SQLITE_UPDATE).bind(Json(rows)).execute(&mut **c).await?;
        }
        Conn::Pg(_) | Conn::Sqlite(_) => return Err(dialect::outside_transaction()),
    }
    Ok(())
}
