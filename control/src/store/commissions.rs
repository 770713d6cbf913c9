//! What the factory declared of Thngs: it stands beside their other columns and goes with them.

use std::collections::{BTreeSet, HashMap, hash_map::Entry};

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
// Serials and products are looked up one by one, and paired by the caller: what joins them here takes all pairs of both
// where the plan goes wrong, and so does a list as a whole in a table that was not analysed since it grew. `OFFSET 0`
// keeps each look a look by itself, `IS TRUE` keeps the products a set that is looked into.
const PG_PAIRS: &str = "WITH q AS MATERIALIZED (SELECT p.value, p.resource_id FROM UNNEST($3::text[]) AS k (value) \
    CROSS JOIN LATERAL (SELECT value, resource_id FROM identifiers WHERE account_id = $1 AND kind = 'product' \
    AND key = $5 AND value = k.value OFFSET 0) p) \
    SELECT value, resource_id, NULL AS state, NULL AS occurred_at, NULL AS latest FROM q UNION ALL \
    SELECT i.value, t.commission_product, t.commission_state, t.commission ->> 'occurredAt', \
    CAST(t.commission #>> '{steps,-1,at}' AS BIGINT) FROM UNNEST($2::text[]) AS k (value) \
    CROSS JOIN LATERAL (SELECT value, resource_id FROM identifiers WHERE account_id = $1 AND kind = 'thng' \
    AND key = $4 AND value = k.value OFFSET 0) i \
    JOIN thngs t ON t.id = i.resource_id AND t.commission_state IS NOT NULL \
    WHERE (t.commission_product IN (SELECT resource_id FROM q)) IS TRUE";
const SQLITE_PAIRS: &str = "WITH q AS MATERIALIZED (SELECT value, resource_id FROM identifiers \
    WHERE account_id = $1 AND kind = 'product' AND key = $5 AND value IN (SELECT value FROM json_each($3))) \
    SELECT value, resource_id, NULL AS state, NULL AS occurred_at, NULL AS latest FROM q UNION ALL \
    SELECT i.value, t.commission_product, t.commission_state, t.commission ->> '$.occurredAt', \
    t.commission ->> '$.steps[#-1].at' \
    FROM identifiers i CROSS JOIN thngs t ON t.id = i.resource_id AND t.commission_state IS NOT NULL \
    WHERE i.account_id = $1 AND i.kind = 'thng' AND i.key = $4 AND i.value IN (SELECT value FROM json_each($2)) \
    AND t.commission_product IN (SELECT resource_id FROM q)";

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
    /// The state.
    pub state: CommissionState,
    /// When the last step happened, as the factory wrote it.
    pub occurred_at: String,
    /// The same moment.
    latest: Option<i64>,
}

/// A serial, the product of its Thng, and the rest; or the identifier of a product, and the product.
type PairRow = (String, String, Option<String>, Option<String>, Option<i64>);

/// What is on record of pairs whose Thng was last commissioned as their product, in their order and by one statement.
///
/// Of several Thngs with the identifiers of one pair, the one with the latest step counts.
///
/// # Errors
/// The database failed.
pub async fn list(
    conn: &mut Conn,
    account: AccountId,
    pairs: &[Pair],
) -> Result<Vec<Option<Found>>, StoreError> {
    let thngs: BTreeSet<&str> = pairs.iter().map(|pair| &*pair.thng).collect();
    let products: BTreeSet<&str> = pairs.iter().map(|pair| &*pair.product).collect();
    let (thngs, products): (Vec<&str>, Vec<&str>) =
        (thngs.into_iter().collect(), products.into_iter().collect());
    let rows: Vec<PairRow> = match conn.raw() {
        super::Raw::Pg(c) => {
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
            sqlx::query_as(SQLITE_PAIRS)
                .bind(account.as_str())
                .bind(Json(thngs))
                .bind(Json(products))
                .bind(THNG_KEY)
                .bind(PRODUCT_KEY)
                .fetch_all(c)
                .await?
        }
    };
    let mut named: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut states: HashMap<(&str, &str), Found> = HashMap::new();
    for (value, product, state, occurred_at, latest) in &rows {
        let Some(state) = state else {
            named.entry(value).or_default().push(product);
            continue;
        };
        let Some(occurred_at) = occurred_at else {
            return Err(StoreError::Row(format!("commission of {value} as {product}")));
        };
        let found = Found { state: parse_state(state)?, occurred_at: occurred_at.clone(), latest: *latest };
        // Spec gap: two Thngs of one serial and product are not shown; the one with the latest step is told.
        match states.entry((value, product)) {
            Entry::Vacant(place) => drop(place.insert(found)),
            Entry::Occupied(mut place) if place.get().latest < found.latest => drop(place.insert(found)),
            Entry::Occupied(_) => {}
        }
    }
    let mut found = Vec::with_capacity(pairs.len());
    for pair in pairs {
        let products = named.get(&*pair.product).into_iter().flatten();
        let each = products.filter_map(|product| states.get(&(&*pair.thng, *product)));
        found.push(each.max_by_key(|found| found.latest).cloned());
    }
    Ok(found)
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
