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
use shared::{
    id::{AccountId, UserId},
    time::UnixMillis,
};
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
const PG_RESULTS: &str = rows!(" AND a.type = 'authenticationResults'", " FOR UPDATE");
const SQLITE_RESULTS: &str = rows!(" AND a.type = 'authenticationResults'", "");
// By the index of facets: it has no order, so what it finds is put into one. An action that was changed is not found again.
const PG_OF_USERS: &str = "WITH found AS MATERIALIZED (SELECT f.seq, f.created_at FROM actions f \
    WHERE f.account_id = $1 AND f.facets && $5) \
    SELECT a.seq, a.created_at, a.timestamp, a.type, a.thng_id, a.doc FROM actions a WHERE a.account_id = $1 AND a.seq IN \
    (SELECT n.seq FROM found n WHERE (n.created_at, n.seq) > ($2, $3) ORDER BY n.created_at, n.seq LIMIT $4) \
    ORDER BY a.created_at, a.seq FOR UPDATE OF a";
// Users first, and the sign: else SQLite walks all actions of the account in order.
const SQLITE_OF_USERS: &str = "SELECT a.seq, a.created_at, a.timestamp, a.type, a.thng_id, a.doc FROM actions a \
    WHERE +a.account_id = $1 AND a.seq IN (SELECT u.seq FROM json_each($5) n CROSS JOIN actions u \
    ON u.account_id = $1 AND u.doc ->> '$.user' = n.value WHERE (u.created_at, u.seq) > ($2, $3) \
    ORDER BY u.created_at, u.seq LIMIT $4) ORDER BY a.created_at, a.seq";
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

/// Which actions of an account.
#[derive(Debug, Clone, Copy)]
pub enum Of<'a> {
    /// All of them.
    Everybody,
    /// Results of assessments.
    Results,
    /// Those about a Thng, by its id.
    Thng(&'a str),
    /// Those by some users.
    Users(&'a [UserId]),
}

/// The next actions after a time and a number; on Postgres they are locked.
pub async fn list(
    tx: &mut Tx,
    account: AccountId,
    of: Of<'_>,
    after: (i64, i64),
    limit: i64,
) -> Result<Vec<Stored>, StoreError> {
    match of {
        Of::Everybody | Of::Results => {
            let sql = match of {
                Of::Results => dialect::pick(tx, PG_RESULTS, SQLITE_RESULTS),
                Of::Everybody | Of::Thng(_) | Of::Users(_) => dialect::pick(tx, PG_ALL, SQLITE_ALL),
            };
            Ok(on_db!(&mut **tx, |c| sqlx::query_as(sql)
                .persistent(false)
                .bind(account.as_str())
                .bind(after.0)
                .bind(after.1)
                .bind(limit)
                .fetch_all(c)
                .await)?)
        }
        Of::Thng(thng) => {
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
        Of::Users(users) => list_of_users(tx, account, users, after, limit).await,
    }
}

async fn list_of_users(
    tx: &mut Tx,
    account: AccountId,
    users: &[UserId],
    after: (i64, i64),
    limit: i64,
) -> Result<Vec<Stored>, StoreError> {
    let rows: Vec<Stored> = match tx.raw() {
        Raw::Pg(c) => {
            let found_by: Vec<String> =
                users.iter().map(|user| facets::facet("user", user.as_str())).collect();
            let query = sqlx::query_as(PG_OF_USERS).persistent(false).bind(account.as_str());
            query.bind(after.0).bind(after.1).bind(limit).bind(found_by).fetch_all(c).await?
        }
        Raw::Sqlite(c) => {
            let ids: Vec<&str> = users.iter().map(UserId::as_str).collect();
            let query = sqlx::query_as(SQLITE_OF_USERS).persistent(false).bind(account.as_str());
            query.bind(after.0).bind(after.1).bind(limit).bind(Json(ids)).fetch_all(c).await?
        }
    };
    Ok(rows)
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
