//! Links that a change, or its undoing, left as they are, and why.

use kernel::{
    domain::page::{Page, Position},
    execute,
    store::{
        Conn, Raw, StoreError, Tx,
        listing::{self, Column, Selection, Table},
    },
};
use serde_json::{Value, json};
use shared::{
    id::{AccountId, JobId},
    time::UnixMillis,
};
use sqlx::types::Json;

const LIST: Table = Table {
    select: "SELECT t.seq, t.domain, t.short_id, t.reason, t.created_at FROM link_change_conflicts t",
    order: ("t.created_at", "t.seq"),
    columns: &[
        (OF, Column::Text("t.change_id")),
        // It belongs to no project.
        ("scopes.projects", Column::Text("t.change_id")),
    ],
    identifiers: None,
    faceted: false,
    itself: "t.change_id",
};
const PG_INSERT: &str = "INSERT INTO link_change_conflicts (account_id, change_id, domain, short_id, reason, created_at) \
    SELECT $1, $2, domain, short_id, reason, $3 \
    FROM UNNEST($4::text[], $5::text[], $6::text[]) AS t (domain, short_id, reason)";
const SQLITE_INSERT: &str = "INSERT INTO link_change_conflicts (account_id, change_id, domain, short_id, reason, created_at) \
    SELECT $1, $2, value ->> '$[0]', value ->> '$[1]', value ->> '$[2]', $3 FROM json_each($4)";
const CLEAR: &str = "DELETE FROM link_change_conflicts WHERE account_id = $1 AND change_id = $2 AND seq IN \
    (SELECT o.seq FROM link_change_conflicts o WHERE o.account_id = $1 AND o.change_id = $2 \
    ORDER BY o.created_at, o.seq LIMIT $3)";

/// The field of lists that holds the change.
pub const OF: &str = "change";

/// A link that was left as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// Host of its short domain.
    pub domain: String,
    /// Its short id.
    pub short_id: String,
    /// Why; a sentence.
    pub reason: String,
    /// When it was looked at.
    pub at: UnixMillis,
    /// Order of insertion.
    pub seq: i64,
}

#[derive(sqlx::FromRow)]
struct Row {
    seq: i64,
    domain: String,
    short_id: String,
    reason: String,
    created_at: i64,
}

impl TryFrom<Row> for Conflict {
    type Error = StoreError;

    fn try_from(row: Row) -> Result<Self, StoreError> {
        let Row { seq, domain, short_id, reason, created_at } = row;
        Ok(Self { domain, short_id, reason, at: UnixMillis(created_at), seq })
    }
}

/// Notes links, each with its domain, its short id and the reason.
pub async fn insert(
    tx: &mut Tx,
    account: AccountId,
    change: JobId,
    links: &[(String, String, String)],
    at: UnixMillis,
) -> Result<(), StoreError> {
    if links.is_empty() {
        return Ok(());
    }
    match tx.raw() {
        Raw::Pg(c) => {
            sqlx::query(PG_INSERT)
                .bind(account.as_str())
                .bind(change.as_str())
                .bind(at.0)
                .bind(links.iter().map(|link| link.0.as_str()).collect::<Vec<_>>())
                .bind(links.iter().map(|link| link.1.as_str()).collect::<Vec<_>>())
                .bind(links.iter().map(|link| link.2.as_str()).collect::<Vec<_>>())
                .execute(c)
                .await?;
        }
        Raw::Sqlite(c) => {
            let rows: Vec<Value> = links.iter().map(|link| json!([link.0, link.1, link.2])).collect();
            sqlx::query(SQLITE_INSERT)
                .bind(account.as_str())
                .bind(change.as_str())
                .bind(at.0)
                .bind(Json(rows))
                .execute(c)
                .await?;
        }
    }
    Ok(())
}

/// A page of the links of a change, which `selection` names in its field [`OF`].
///
/// # Errors
/// [`StoreError::Timeout`] when too many rows had to be read.
pub async fn list(conn: &mut Conn, selection: &Selection<'_>) -> Result<Page<Conflict>, StoreError> {
    let position = |conflict: &Conflict| Position { at: conflict.at, seq: conflict.seq };
    listing::page::<Row, Conflict>(conn, &LIST, selection, position).await
}

/// Removes up to `limit` links of a change; returns how many there were.
pub async fn clear(tx: &mut Tx, account: AccountId, change: JobId, limit: u32) -> Result<u64, StoreError> {
    Ok(execute!(&mut **tx, CLEAR, account.as_str(), change.as_str(), i64::from(limit))?)
}
