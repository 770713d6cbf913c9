//! Queries for actions as they are stored: results of assessments lack members, which `service::lists` adds.

use serde_json::Value;
use shared::{
    id::{AccountId, ActionId, CollectionId, ProductId, ThngId},
    time::UnixMillis,
};
use sqlx::types::Json;

use super::{
    Conn, StoreError,
    dialect::fetch_in_list,
    fetch_optional,
    listing::{self, Column, Explained, Selection, Table},
    parse,
};
use crate::domain::{action::Action, page::Page};

macro_rules! columns {
    () => {
        "SELECT t.seq, t.id, t.type, t.thng_id, t.product_id, t.timestamp, t.created_at, t.doc"
    };
}

const FIND: &str = concat!(columns!(), " FROM actions t WHERE account_id = $1 AND id = $2");
// One index look-up per id, as for redirections: with the list as a whole, Postgres reads all rows of the account if
// the table was not analysed since it grew.
const PG_FIND_MANY: &str = concat!(
    columns!(),
    " FROM UNNEST($2::text[]) AS k (id) \
     CROSS JOIN LATERAL (SELECT * FROM actions WHERE id = k.id LIMIT 1) t WHERE t.account_id = $1 ORDER BY t.seq"
);
const SQLITE_FIND_MANY: &str = concat!(
    columns!(),
    " FROM actions t WHERE account_id = $1 AND id IN (SELECT value FROM json_each($2)) ORDER BY t.seq"
);
const FIRST: &str = "SELECT created_at FROM actions WHERE account_id = $1 AND created_at >= $2 \
    ORDER BY created_at, seq LIMIT 1";
const LIST: Table = Table {
    select: concat!(columns!(), " FROM actions t"),
    order: ("t.created_at", "t.seq"),
    columns: &[
        ("timestamp", Column::Whole("t.timestamp")),
        ("type", Column::Text("t.type")),
        ("thng", Column::Text("t.thng_id")),
        ("product", Column::Text("t.product_id")),
    ],
    identifiers: None,
    faceted: true,
    // A Thng's key sees what happened to it.
    itself: "t.thng_id",
};

/// The target of the actions of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// Anything in the account.
    Anything,
    /// One Thng.
    Thng(ThngId),
    /// One product.
    Product(ProductId),
    /// One collection.
    Collection(CollectionId),
}

#[derive(sqlx::FromRow)]
struct Row {
    seq: i64,
    id: String,
    r#type: String,
    thng_id: Option<String>,
    product_id: Option<String>,
    timestamp: i64,
    created_at: i64,
    doc: Json<Value>,
}

impl TryFrom<Row> for Action {
    type Error = StoreError;

    fn try_from(row: Row) -> Result<Self, StoreError> {
        let Value::Object(members) = row.doc.0 else {
            return Err(StoreError::Row(format!("action {} has no document", row.id)));
        };
        Ok(Self {
            id: parse("id", &row.id)?,
            seq: row.seq,
            created_at: UnixMillis(row.created_at),
            timestamp: UnixMillis(row.timestamp),
            kind: row.r#type,
            thng: row.thng_id.as_deref().map(|id| parse("thng_id", id)).transpose()?,
            product: row.product_id.as_deref().map(|id| parse("product_id", id)).transpose()?,
            members,
        })
    }
}

/// An action of an account.
pub async fn find(conn: &mut Conn, account: AccountId, id: ActionId) -> Result<Option<Action>, StoreError> {
    let row: Option<Row> = fetch_optional!(conn, FIND, account.as_str(), id.as_str())?;
    row.map(Action::try_from).transpose()
}

/// Creation time of the first action of an account at or after a time.
pub async fn find_first_since(
    conn: &mut Conn,
    account: AccountId,
    since: UnixMillis,
) -> Result<Option<UnixMillis>, StoreError> {
    let row: Option<(i64,)> = fetch_optional!(conn, FIRST, account.as_str(), since.0)?;
    Ok(row.map(|(at,)| UnixMillis(at)))
}

/// The existing ones of some actions of an account, in order of creation.
pub async fn find_many(
    conn: &mut Conn,
    account: AccountId,
    ids: &[ActionId],
) -> Result<Vec<Action>, StoreError> {
    let ids: Vec<&str> = ids.iter().map(ActionId::as_str).collect();
    let rows = fetch_in_list!(conn, Row, PG_FIND_MANY, SQLITE_FIND_MANY, [account.as_str()], ids)?;
    rows.into_iter().map(Action::try_from).collect()
}

/// The statement of [`list`] and its plan.
pub async fn explain(conn: &mut Conn, selection: &Selection<'_>) -> Result<Explained, StoreError> {
    listing::explain(conn, &LIST, selection).await
}

/// A page of actions.
pub async fn list(conn: &mut Conn, selection: &Selection<'_>) -> Result<Page<Action>, StoreError> {
    listing::page::<Row, Action>(conn, &LIST, selection, Action::position).await
}
