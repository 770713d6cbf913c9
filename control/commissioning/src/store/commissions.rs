//! The commissioning state of Thngs, stored in columns of their table.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, hash_map::Entry},
    iter,
};

use futures_util::TryStreamExt;
use shared::{
    commission::CommissionState,
    gtin,
    id::{AccountId, ProductId, ThngId},
};
use sqlx::types::Json;

use super::{
    Conn, StoreError, Tx, execute, fetch_all, fetch_one, fetch_optional, parse, standing::parse_state,
};
use crate::domain::{commissioning::Commission, commissioning_body::Pair};

const FIND: &str = "SELECT commission FROM thngs WHERE account_id = $1 AND id = $2";
const PUT: &str = "UPDATE thngs SET commission_state = $3, commission_product = $4, commission = $5 \
    WHERE account_id = $1 AND id = $2";
const ENCODED: &str = "SELECT EXISTS (SELECT 1 FROM actions WHERE account_id = $1 AND thng_id = $2 \
    AND type = 'encodings')";
const OF_PRODUCT: &str = "SELECT t.id FROM identifiers i JOIN thngs t ON t.id = i.resource_id \
    WHERE i.account_id = $1 AND i.kind = 'thng' AND i.key = $2 AND i.value = $3 AND t.product_id = $4 \
    ORDER BY t.id LIMIT 2";
// One look-up in the index `thngs_commissioned` for all Thngs of a product, which are the part of the list $2 from $4
// to $5. `IS TRUE` keeps Postgres from using an index by account if nothing was analysed since the table grew.
const PG_PAIRS: &str = "SELECT k.value, t.serial, t.commission_state, t.occurred_at, t.latest \
    FROM UNNEST($3::text[], $4::int[], $5::int[]) AS k (value, first, last) \
    CROSS JOIN LATERAL (SELECT array_agg(resource_id) AS ids FROM identifiers \
    WHERE account_id = $1 AND kind = 'product' AND key = 'gs1:01' AND value = k.value) i \
    CROSS JOIN LATERAL (SELECT doc -> 'identifiers' ->> 'gs1:21' AS serial, commission_state, \
    commission ->> 'occurredAt' AS occurred_at, CAST(commission #>> '{steps,-1,at}' AS BIGINT) AS latest FROM thngs \
    WHERE doc -> 'identifiers' ->> 'gs1:21' = ANY (($2::text[])[k.first:k.last]) AND commission_product = ANY (i.ids) \
    AND commission_state IS NOT NULL AND (account_id = $1) IS TRUE OFFSET 0) t";
// With `MAX` the other columns are those of the row that has it.
const SQLITE_PAIRS: &str = "WITH p AS MATERIALIZED (SELECT key, value ->> '$[0]' AS thng, value ->> '$[1]' AS product \
    FROM json_each($2)) SELECT p.product, p.thng, t.commission_state, \
    t.commission ->> '$.occurredAt', MAX(t.commission ->> '$.steps[#-1].at') FROM p \
    CROSS JOIN identifiers q ON q.account_id = $1 AND q.kind = 'product' AND q.key = 'gs1:01' AND q.value = p.product \
    CROSS JOIN thngs t ON t.doc ->> '$.identifiers.\"gs1:21\"' = p.thng \
    AND t.commission_product = q.resource_id AND t.commission_state IS NOT NULL AND t.account_id = $1 \
    GROUP BY p.key";

/// The commissioning state of a Thng; `None` when it was never commissioned or does not exist.
pub async fn find(
    conn: &mut Conn,
    account: AccountId,
    thng: ThngId,
) -> Result<Option<Commission>, StoreError> {
    let row: Option<(Option<Json<Commission>>,)> =
        fetch_optional!(conn, FIND, account.as_str(), thng.as_str())?;
    Ok(row.and_then(|(found,)| found).map(|found| found.0))
}

/// Puts a Thng's step on record; the Thng is locked by the caller.
///
/// # Errors
/// The Thng is gone.
pub async fn put(
    tx: &mut Tx,
    account: AccountId,
    thng: ThngId,
    commission: &Commission,
) -> Result<(), StoreError> {
    let written = execute!(
        &mut **tx,
        PUT,
        account.as_str(),
        thng.as_str(),
        commission.state.as_str(),
        commission.product.as_str(),
        Json(commission)
    )?;
    if written == 1 { Ok(()) } else { Err(StoreError::Row(format!("thng {thng} is gone"))) }
}

/// Whether a Thng has an `encodings` action.
pub async fn is_encoded(conn: &mut Conn, account: AccountId, thng: ThngId) -> Result<bool, StoreError> {
    let (found,): (bool,) = fetch_one!(conn, ENCODED, account.as_str(), thng.as_str())?;
    Ok(found)
}

/// The one Thng of a product that has an identifier; `None` when none or several are.
pub async fn find_of_product(
    conn: &mut Conn,
    account: AccountId,
    (key, value): (&str, &str),
    product: ProductId,
) -> Result<Option<ThngId>, StoreError> {
    let rows: Vec<(String,)> = fetch_all!(conn, OF_PRODUCT, account.as_str(), key, value, product.as_str())?;
    match rows.as_slice() {
        [(id,)] => Ok(Some(parse("id", id)?)),
        _ => Ok(None),
    }
}

/// The stored state of one pair of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The state.
    pub state: CommissionState,
    /// When the last step happened, as the factory wrote it.
    pub occurred_at: String,
    /// The same moment.
    latest: i64,
}

/// The identifiers of product and Thng, and the rest.
type PairRow = (String, String, String, String, i64);

/// The states of pairs whose Thng was last commissioned as their product, in their order and by one statement.
///
/// Of several Thngs with the identifiers of one pair, the one with the latest step counts.
pub async fn list(
    conn: &mut Conn,
    account: AccountId,
    pairs: &[Pair],
) -> Result<Vec<Option<Found>>, StoreError> {
    let mut by_product: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for pair in pairs {
        // In normalised form, and as given, which older releases stored.
        for product in [gtin::canonical(&pair.product), pair.product.clone()] {
            by_product.entry(product).or_default().insert(&pair.thng);
        }
    }
    let mut best: HashMap<(String, &str), Found> = HashMap::with_capacity(pairs.len());
    let mut take = |(product, thng, state, occurred_at, latest): PairRow| {
        let asked = by_product.get(&product).and_then(|thngs| thngs.get(&*thng).copied());
        let thng = asked.ok_or_else(|| StoreError::Row(format!("{thng} of {product}")))?;
        let asked = (gtin::canonical(&product), thng);
        let found = Found { state: parse_state(&state)?, occurred_at, latest };
        match best.entry(asked) {
            Entry::Vacant(place) => drop(place.insert(found)),
            Entry::Occupied(mut place) if place.get().latest < latest => drop(place.insert(found)),
            Entry::Occupied(_) => {}
        }
        Ok::<_, StoreError>(())
    };
    match conn.raw() {
        super::Raw::Pg(c) => {
            let thngs: Vec<&str> = by_product.values().flatten().copied().collect();
            let products: Vec<&str> = by_product.keys().map(String::as_str).collect();
            let lasts: Vec<i32> = by_product
                .values()
                .scan(0, |last, thngs| {
                    *last += i32::try_from(thngs.len()).ok()?;
                    Some(*last)
                })
                .collect();
            let firsts: Vec<i32> = iter::once(1).chain(lasts.iter().map(|last| last + 1)).collect();
            let firsts = &firsts[..products.len()];
            let query = sqlx::query_as(PG_PAIRS).bind(account.as_str()).bind(thngs).bind(products);
            // Row by row: the number of Thngs with the same identifiers is not bounded.
            let mut rows = query.bind(firsts).bind(lasts).fetch(c);
            while let Some(row) = rows.try_next().await? {
                take(row)?;
            }
        }
        super::Raw::Sqlite(c) => {
            let each = by_product
                .iter()
                .flat_map(|(product, thngs)| thngs.iter().map(move |thng| [*thng, product.as_str()]));
            let query =
                sqlx::query_as(SQLITE_PAIRS).bind(account.as_str()).bind(Json(each.collect::<Vec<_>>()));
            query.fetch_all(c).await?.into_iter().try_for_each(take)?;
        }
    }
    Ok(pairs.iter().map(|pair| best.get(&(gtin::canonical(&pair.product), &*pair.thng)).cloned()).collect())
}
