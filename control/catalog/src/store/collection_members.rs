//! The members of collections: Thngs and other collections.

use shared::id::{AccountId, CollectionId, ThngId};

use super::{Conn, StoreError, Tx, dialect, on_db};
use crate::domain::collection::MemberKind;

const PG_ADD_THNGS: &str = "INSERT INTO collection_thngs (account_id, collection_id, thng_id, created_at, seq) \
    SELECT account_id, $1, id, created_at, seq FROM thngs WHERE account_id = $2 AND id = ANY($3) \
    ON CONFLICT DO NOTHING RETURNING thng_id";
const SQLITE_ADD_THNGS: &str = "INSERT INTO collection_thngs (account_id, collection_id, thng_id, created_at, seq) \
    SELECT account_id, $1, id, created_at, seq FROM thngs WHERE account_id = $2 \
    AND id IN (SELECT value FROM json_each($3)) ON CONFLICT DO NOTHING RETURNING thng_id";
const REMOVE_THNG: &str =
    "DELETE FROM collection_thngs WHERE account_id = $1 AND collection_id = $2 AND thng_id = $3";
const REMOVE_THNGS: &str = "DELETE FROM collection_thngs WHERE account_id = $1 AND collection_id = $2";
const FORGET_THNG: &str = "DELETE FROM collection_thngs WHERE account_id = $1 AND thng_id = $2";

const PG_ADD_COLLECTIONS: &str = "INSERT INTO collection_collections (account_id, collection_id, member_id, \
    created_at, seq) SELECT account_id, $1, id, created_at, seq FROM collections WHERE account_id = $2 \
    AND id = ANY($3) ON CONFLICT DO NOTHING RETURNING member_id";
const SQLITE_ADD_COLLECTIONS: &str = "INSERT INTO collection_collections (account_id, collection_id, member_id, \
    created_at, seq) SELECT account_id, $1, id, created_at, seq FROM collections WHERE account_id = $2 \
    AND id IN (SELECT value FROM json_each($3)) ON CONFLICT DO NOTHING RETURNING member_id";
const REMOVE_COLLECTION: &str =
    "DELETE FROM collection_collections WHERE account_id = $1 AND collection_id = $2 AND member_id = $3";
const REMOVE_COLLECTIONS: &str =
    "DELETE FROM collection_collections WHERE account_id = $1 AND collection_id = $2";
const FORGET_COLLECTION: &str = "DELETE FROM collection_collections WHERE account_id = $1 AND member_id = $2";

const PG_ABOVE: &str = "SELECT DISTINCT collection_id FROM collection_collections WHERE account_id = $1 \
    AND member_id = ANY($2)";
const SQLITE_ABOVE: &str = "SELECT DISTINCT collection_id FROM collection_collections WHERE account_id = $1 \
    AND member_id IN (SELECT value FROM json_each($2))";
const PG_BELOW: &str = "SELECT DISTINCT member_id FROM collection_collections WHERE account_id = $1 \
    AND collection_id = ANY($2)";
const SQLITE_BELOW: &str = "SELECT DISTINCT member_id FROM collection_collections WHERE account_id = $1 \
    AND collection_id IN (SELECT value FROM json_each($2))";

/// Direction of the search from a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// At those that hold it.
    Above,
    /// At those that it holds.
    Below,
}

/// Adds those of some ids that the account has; those that are in stay. Of collections `accounts::lock` of `tenants` first.
pub async fn add(
    tx: &mut Tx,
    kind: MemberKind,
    account: AccountId,
    collection: CollectionId,
    ids: &[String],
) -> Result<(), StoreError> {
    let (pg, sqlite) = match kind {
        MemberKind::Thngs => (PG_ADD_THNGS, SQLITE_ADD_THNGS),
        MemberKind::Collections => (PG_ADD_COLLECTIONS, SQLITE_ADD_COLLECTIONS),
    };
    let binds = (collection.as_str(), account.as_str());
    let _: Vec<(String,)> =
        dialect::fetch_in_list!(&mut **tx, (String,), pg, sqlite, [binds.0, binds.1], ids)?;
    Ok(())
}

/// Takes a member out; returns whether it was in.
pub async fn remove(
    tx: &mut Tx,
    kind: MemberKind,
    account: AccountId,
    collection: CollectionId,
    member: &str,
) -> Result<bool, StoreError> {
    let sql = match kind {
        MemberKind::Thngs => REMOVE_THNG,
        MemberKind::Collections => REMOVE_COLLECTION,
    };
    Ok(execute(tx, sql, [account.as_str(), collection.as_str()], Some(member)).await? > 0)
}

/// Takes every member out.
pub async fn remove_all(
    tx: &mut Tx,
    kind: MemberKind,
    account: AccountId,
    collection: CollectionId,
) -> Result<(), StoreError> {
    let sql = match kind {
        MemberKind::Thngs => REMOVE_THNGS,
        MemberKind::Collections => REMOVE_COLLECTIONS,
    };
    execute(tx, sql, [account.as_str(), collection.as_str()], None).await.map(|_| ())
}

/// Takes a Thng out of every collection.
pub async fn forget_thng(tx: &mut Tx, account: AccountId, thng: ThngId) -> Result<(), StoreError> {
    execute(tx, FORGET_THNG, [account.as_str(), thng.as_str()], None).await.map(|_| ())
}

/// Forgets all that is in a collection, and that it is in others.
pub async fn forget_collection(
    tx: &mut Tx,
    account: AccountId,
    collection: CollectionId,
) -> Result<(), StoreError> {
    remove_all(tx, MemberKind::Thngs, account, collection).await?;
    remove_all(tx, MemberKind::Collections, account, collection).await?;
    execute(tx, FORGET_COLLECTION, [account.as_str(), collection.as_str()], None).await.map(|_| ())
}

/// The next level from some collections.
pub async fn list_level(
    conn: &mut Conn,
    account: AccountId,
    ids: &[String],
    direction: Direction,
) -> Result<Vec<String>, StoreError> {
    let account = account.as_str();
    let rows: Vec<(String,)> = match direction {
        Direction::Above => dialect::fetch_in_list!(conn, (String,), PG_ABOVE, SQLITE_ABOVE, [account], ids)?,
        Direction::Below => dialect::fetch_in_list!(conn, (String,), PG_BELOW, SQLITE_BELOW, [account], ids)?,
    };
    Ok(rows.into_iter().map(|(id,)| id).collect())
}

async fn execute(
    tx: &mut Tx,
    sql: &'static str,
    ids: [&str; 2],
    third: Option<&str>,
) -> Result<u64, StoreError> {
    let [first, second] = ids;
    let done = on_db!(&mut **tx, |c| {
        let query = sqlx::query(sql).bind(first).bind(second);
        let query = if let Some(third) = third { query.bind(third) } else { query };
        query.execute(c).await.map(|done| done.rows_affected())
    })?;
    Ok(done)
}
