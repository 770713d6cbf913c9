//! Actions of an account in the order in which they were created, to take personal data out of them.

use kernel::{
    domain::{action_names::RESULTS, facets},
    on_db,
    store::{
        Conn, Raw, StoreError, Tx, dialect,
        facets::{ACTIONS, RESULTS as RESULT_FACETS},
    },
};
use serde_json::{Map, Value};
use shared::{id::AccountId, time::UnixMillis};
use sqlx::types::Json;

macro_rules! rows {
    ($of:literal, $rest:literal) => {
        concat!(
            "SELECT a.seq, a.created_at, a.timestamp, a.type, a.thng_id, a.doc FROM actions a WHERE a.account_id = $1",
            $of,
            " AND a.created_at >= $2 AND (a.created_at, a.seq) > ($2, $3) ORDER BY a.created_at, a.seq LIMIT $4",
            $rest
        )
    };
}
// Two erasures may change one action: the second one must not write what it read before the first one.
const PG_ALL: &str = rows!("", " FOR UPDATE");
const SQLITE_ALL: &str = rows!("", "");
const PG_OF_THNG: &str = rows!(" AND a.thng_id = $5", " FOR UPDATE");
const SQLITE_OF_THNG: &str = rows!(" AND a.thng_id = $5", "");
const PG_FACETS: &str = "SELECT to_jsonb(facets) AS facets FROM actions WHERE account_id = $1 AND seq = $2";
const SQLITE_FACETS: &str = "SELECT facets FROM actions WHERE account_id = $1 AND seq = $2";
const PG_UPDATE: &str = "UPDATE actions SET doc = $3, facets = $4 WHERE account_id = $1 AND seq = $2";
const SQLITE_UPDATE: &str = "UPDATE actions SET doc = $3, facets = $4 WHERE account_id = $1 AND seq = $2";

/// An action as it is stored.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct Stored {
    /// Its number.
    pub seq: i64,
    created_at: i64,
    timestamp: i64,
    /// Its type.
    #[sqlx(rename = "type")]
    pub kind: String,
    /// The Thng it is about.
    pub thng_id: Option<String>,
    doc: Json<Map<String, Value>>,
}

impl Stored {
    /// When it was created.
    #[must_use]
    pub const fn created_at(&self) -> UnixMillis {
        UnixMillis(self.created_at)
    }

    /// When it happened.
    #[must_use]
    pub const fn timestamp(&self) -> UnixMillis {
        UnixMillis(self.timestamp)
    }

    /// Its document.
    #[must_use]
    pub const fn members(&self) -> &Map<String, Value> {
        &self.doc.0
    }
}

/// The next actions after a time and a number, of one Thng or of all; on Postgres they are locked.
pub async fn list(
    tx: &mut Tx,
    account: AccountId,
    thng: Option<&str>,
    after: (i64, i64),
    limit: i64,
) -> Result<Vec<Stored>, StoreError> {
    let Some(thng) = thng else {
        let sql = dialect::pick(tx, PG_ALL, SQLITE_ALL);
        return Ok(on_db!(&mut **tx, |c| sqlx::query_as(sql)
            .persistent(false)
            .bind(account.as_str())
            .bind(after.0)
            .bind(after.1)
            .bind(limit)
            .fetch_all(c)
            .await)?);
    };
    let sql = dialect::pick(tx, PG_OF_THNG, SQLITE_OF_THNG);
    Ok(on_db!(&mut **tx, |c| sqlx::query_as(sql)
        .persistent(false)
        .bind(account.as_str())
        .bind(after.0)
        .bind(after.1)
        .bind(limit)
        .bind(thng)
        .fetch_all(c)
        .await)?)
}

/// Replaces the document of an action, and what it is found by.
pub async fn update(
    tx: &mut Tx,
    account: AccountId,
    action: &Stored,
    members: &Map<String, Value>,
) -> Result<(), StoreError> {
    let doc = Value::Object(members.clone());
    let found_by = if action.kind == RESULTS {
        // The stored form of a result lacks members that it is found by: what it had stays, but for what was cut.
        let before = facets::of(&Value::Object(action.doc.0.clone()), RESULT_FACETS);
        let now = facets::of(&doc, RESULT_FACETS);
        let stored = stored_facets(tx, account, action.seq).await?;
        stored.into_iter().filter(|facet| now.contains(facet) || !before.contains(facet)).collect()
    } else {
        facets::of(&doc, ACTIONS)
    };
    let (sql, seq) = (dialect::pick(tx, PG_UPDATE, SQLITE_UPDATE), action.seq);
    match tx.raw() {
        Raw::Pg(c) => {
            let query = sqlx::query(sql).bind(account.as_str()).bind(seq).bind(Json(doc));
            query.bind(found_by).execute(c).await?;
        }
        Raw::Sqlite(c) => {
            let query = sqlx::query(sql).bind(account.as_str()).bind(seq).bind(Json(doc));
            query.bind(Json(found_by)).execute(c).await?;
        }
    }
    Ok(())
}

async fn stored_facets(conn: &mut Conn, account: AccountId, seq: i64) -> Result<Vec<String>, StoreError> {
    let sql = dialect::pick(conn, PG_FACETS, SQLITE_FACETS);
    let found: Option<Json<Vec<String>>> =
        on_db!(conn, |c| sqlx::query_scalar(sql).bind(account.as_str()).bind(seq).fetch_one(c).await)?;
    Ok(found.map(|Json(facets)| facets).unwrap_or_default())
}
