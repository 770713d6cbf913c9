//! What the factory declared of Thngs: it stands beside their other columns and goes with them.

use shared::{
    commission::CommissionState,
    id::{AccountId, ProductId, ThngId},
    standing::Standing,
};
use sqlx::types::Json;

use super::{Conn, StoreError, Tx, on_db, parse};
use crate::domain::{
    commissioning::Commission,
    commissioning_body::{PRODUCT_KEY, Pair, THNG_KEY},
};

const FIND: &str = "SELECT commission FROM thngs WHERE account_id = $1 AND id = $2";
const PUT: &str = "UPDATE thngs SET commission_state = $3, commission_product = $4, commission = $5 \
    WHERE account_id = $1 AND id = $2";
const ENCODED: &str = "SELECT EXISTS (SELECT 1 FROM actions WHERE account_id = $1 AND thng_id = $2 \
    AND type = 'encodings')";
const OF_PRODUCT: &str = "SELECT t.id FROM identifiers i JOIN thngs t ON t.id = i.resource_id \
    WHERE i.account_id = $1 AND i.kind = 'thng' AND i.key = $2 AND i.value = $3 AND t.product_id = $4 \
    ORDER BY t.id LIMIT 2";
// The pairs lead, and each is looked up by the whole of the identifiers' key.
const PG_PAIRS: &str = "SELECT p.ord - 1, t.commission_state, t.commission FROM UNNEST($2::text[], $3::text[]) \
    WITH ORDINALITY AS p (thng, product, ord) \
    JOIN identifiers i ON i.account_id = $1 AND i.kind = 'thng' AND i.key = $4 AND i.value = p.thng \
    JOIN thngs t ON t.id = i.resource_id AND t.commission_state IS NOT NULL \
    JOIN identifiers q ON q.account_id = $1 AND q.kind = 'product' AND q.key = $5 AND q.value = p.product \
    AND q.resource_id = t.commission_product";
const SQLITE_PAIRS: &str = "SELECT p.key, t.commission_state, t.commission FROM json_each($2) p \
    CROSS JOIN identifiers i ON i.account_id = $1 AND i.kind = 'thng' AND i.key = $3 \
    AND i.value = p.value ->> '$[0]' \
    CROSS JOIN thngs t ON t.id = i.resource_id AND t.commission_state IS NOT NULL \
    CROSS JOIN identifiers q ON q.account_id = $1 AND q.kind = 'product' AND q.key = $4 \
    AND q.value = p.value ->> '$[1]' AND q.resource_id = t.commission_product";

/// What is on record of a Thng; `None` when it was never commissioned, or is not there.
///
/// # Errors
/// The database failed.
pub async fn find(
    conn: &mut Conn,
    account: AccountId,
    thng: ThngId,
) -> Result<Option<Commission>, StoreError> {
    let row: Option<(Option<Json<Commission>>,)> = on_db!(conn, |c| sqlx::query_as(FIND)
        .bind(account.as_str())
        .bind(thng.as_str())
        .fetch_optional(c)
        .await)?;
    Ok(row.and_then(|(found,)| found).map(|found| found.0))
}

/// Puts a Thng's step on record; the Thng is locked by the caller.
///
/// # Errors
/// The database failed, or the Thng is gone.
pub async fn put(
    tx: &mut Tx,
    account: AccountId,
    thng: ThngId,
    commission: &Commission,
) -> Result<(), StoreError> {
    let written = on_db!(&mut **tx, |c| sqlx::query(PUT)
        .bind(account.as_str())
        .bind(thng.as_str())
        .bind(commission.state.as_str())
        .bind(commission.product.as_str())
        .bind(Json(commission))
        .execute(c)
        .await
        .map(|done| done.rows_affected()))?;
    if written == 1 { Ok(()) } else { Err(StoreError::Row(format!("thng {thng} is gone"))) }
}

/// Whether a Thng has an `encodings` action.
///
/// # Errors
/// The database failed.
pub async fn is_encoded(conn: &mut Conn, account: AccountId, thng: ThngId) -> Result<bool, StoreError> {
    let (found,): (bool,) = on_db!(conn, |c| sqlx::query_as(ENCODED)
        .bind(account.as_str())
        .bind(thng.as_str())
        .fetch_one(c)
        .await)?;
    Ok(found)
}

/// The one Thng of a product that has an identifier; `None` when none or several are.
///
/// # Errors
/// The database failed.
pub async fn find_of_product(
    conn: &mut Conn,
    account: AccountId,
    (key, value): (&str, &str),
    product: ProductId,
) -> Result<Option<ThngId>, StoreError> {
    let rows: Vec<(String,)> = on_db!(conn, |c| sqlx::query_as(OF_PRODUCT)
        .bind(account.as_str())
        .bind(key)
        .bind(value)
        .bind(product.as_str())
        .fetch_all(c)
        .await)?;
    match rows.as_slice() {
        [(id,)] => Ok(Some(parse("id", id)?)),
        _ => Ok(None),
    }
}

/// What is on record of one pair of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Index of the pair.
    pub index: usize,
    /// The state.
    pub state: CommissionState,
    /// The rest.
    pub commission: Commission,
}

type PairRow = (i64, String, Json<Commission>);

/// What is on record of pairs whose Thng was last commissioned as their product, in one statement and no order.
///
/// # Errors
/// The database failed.
pub async fn list(conn: &mut Conn, account: AccountId, pairs: &[Pair]) -> Result<Vec<Found>, StoreError> {
    let rows: Vec<PairRow> = match conn.raw() {
        super::Raw::Pg(c) => {
            let (thngs, products): (Vec<&str>, Vec<&str>) =
                pairs.iter().map(|pair| (pair.thng.as_str(), pair.product.as_str())).unzip();
            sqlx::query_as(PG_PAIRS)
                .bind(account.as_str())
                .bind(thngs)
                .bind(products)
                .bind(THNG_KEY)
                .bind(PRODUCT_KEY)
                .fetch_all(c)
                .await?
        }
        super::Raw::Sqlite(c) => {
            let pairs: Vec<[&str; 2]> = pairs.iter().map(|pair| [&*pair.thng, &*pair.product]).collect();
            sqlx::query_as(SQLITE_PAIRS)
                .bind(account.as_str())
                .bind(Json(pairs))
                .bind(THNG_KEY)
                .bind(PRODUCT_KEY)
                .fetch_all(c)
                .await?
        }
    };
    rows.into_iter()
        .map(|(index, state, Json(commission))| {
            let index = usize::try_from(index).map_err(|_| StoreError::Row(format!("index: {index}")))?;
            Ok(Found { index, state: parse_state(&state)?, commission })
        })
        .collect()
}

/// How a Thng stands, by its columns.
pub(super) fn standing(commission: Option<&str>, verdict: Option<&str>) -> Result<Standing, StoreError> {
    Ok(Standing {
        commission: commission.map(parse_state).transpose()?,
        verdict: verdict.map(|text| parse("verdict", text)).transpose()?,
    })
}

fn parse_state(text: &str) -> Result<CommissionState, StoreError> {
    parse("commission_state", text)
}
