//! Actions as the API reads them.

use serde_json::Value;
use shared::{
    id::{AccountId, ActionId, ProductId, ThngId},
    time::UnixMillis,
};
use sqlx::types::Json;

use super::{
    Conn, StoreError,
    listing::{Both, both},
    on_db, parse,
};
use crate::domain::{
    action::{Action, ActionType},
    page::PageRequest,
};

macro_rules! columns {
    () => {
        "SELECT t.seq, t.id, t.type, t.thng_id, t.product_id, t.timestamp, t.created_at, t.doc"
    };
}

const FIND: &str = concat!(columns!(), " FROM actions t WHERE account_id = $1 AND id = $2");
const ALL: Both = both!(columns!(), " FROM actions t", "");
const BY_TYPE: Both = both!(columns!(), " FROM actions t", " AND t.type = $5");
const BY_THNG: Both =
    both!(columns!(), " FROM actions t", " AND t.thng_id = $5 AND ($6 = '' OR t.type = $6)");
const BY_PRODUCT: Both =
    both!(columns!(), " FROM actions t", " AND t.product_id = $5 AND ($6 = '' OR t.type = $6)");

/// What the actions of a list are about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum About {
    /// Anything in the account.
    Anything,
    /// One Thng.
    Thng(ThngId),
    /// One product.
    Product(ProductId),
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
///
/// # Errors
/// The database failed.
pub async fn find(conn: &mut Conn, account: AccountId, id: ActionId) -> Result<Option<Action>, StoreError> {
    let row: Option<Row> = on_db!(conn, |c| sqlx::query_as(FIND)
        .bind(account.as_str())
        .bind(id.as_str())
        .fetch_optional(c)
        .await)?;
    row.map(Action::try_from).transpose()
}

/// Up to [`PageRequest::limit`] actions in order of creation.
///
/// # Errors
/// The database failed.
pub async fn list(
    conn: &mut Conn,
    account: AccountId,
    about: About,
    kind: ActionType<'_>,
    page: PageRequest,
) -> Result<Vec<Action>, StoreError> {
    let (at, seq) = page.start();
    let limit = i64::from(page.limit());
    let narrow = match (about, kind) {
        (About::Anything, ActionType::All) => (&ALL, Vec::new()),
        (About::Anything, ActionType::Of(name)) => (&BY_TYPE, vec![name.to_owned()]),
        (About::Thng(id), kind) => {
            (&BY_THNG, vec![id.to_string(), kind.name().unwrap_or_default().to_owned()])
        }
        (About::Product(id), kind) => {
            (&BY_PRODUCT, vec![id.to_string(), kind.name().unwrap_or_default().to_owned()])
        }
    };
    let (statements, texts) = narrow;
    let sql = statements.ordered(page);
    let rows: Vec<Row> = on_db!(conn, |c| {
        let query = sqlx::query_as(sql).bind(account.as_str()).bind(at).bind(seq).bind(limit);
        texts.iter().fold(query, |query, text| query.bind(text)).fetch_all(c).await
    })?;
    rows.into_iter().map(Action::try_from).collect()
}
