//! Rows of Digital Links among the redirections, and their links.

use kernel::{
    domain::scopes::Scopes,
    store::{Conn, StoreError, Tx, dialect, execute, fetch_all, fetch_optional},
};
use shared::{digital_link::LinkSet, id::AccountId, redirect::Redirect, wire::stream::Rev};
use sqlx::types::Json;

// What is left of a row that was removed is used again, and keeps its hits. On a domain that another account had before, it is
// made anew: only the holder of a domain has rows on it that were not removed. A row of another resource is not touched.
const PUT: &str = "INSERT INTO redirections (domain, folded, short_id, account_id, type, platform_id, thng_id, product_id, \
    target, forward_query, scopes, hits, created_at, updated_at, rev) \
    VALUES ($1, $2, $2, $3, $4, $5, $6, $7, $8, TRUE, $9, 0, $10, $10, $11) \
    ON CONFLICT (domain, folded) DO UPDATE SET account_id = excluded.account_id, type = excluded.type, \
    platform_id = excluded.platform_id, thng_id = excluded.thng_id, product_id = excluded.product_id, target = excluded.target, \
    forward_query = TRUE, scopes = excluded.scopes, updated_at = excluded.updated_at, rev = excluded.rev, deleted_rev = NULL, \
    hits = CASE WHEN redirections.account_id = excluded.account_id THEN redirections.hits ELSE 0 END, created_at = \
    CASE WHEN redirections.account_id = excluded.account_id THEN redirections.created_at ELSE excluded.created_at END \
    WHERE redirections.deleted_rev IS NOT NULL OR (redirections.account_id = excluded.account_id \
    AND redirections.platform_id = excluded.platform_id) RETURNING seq, created_at";
const PUT_SET: &str = "INSERT INTO link_sets (seq, account_id, platform_id, doc) VALUES ($1, $2, $3, $4) \
    ON CONFLICT (seq) DO UPDATE SET account_id = excluded.account_id, platform_id = excluded.platform_id, doc = excluded.doc";
const OF_RESOURCE: &str = "SELECT r.domain, r.folded FROM link_sets g JOIN redirections r ON r.seq = g.seq \
    WHERE g.account_id = $1 AND g.platform_id = $2 AND r.account_id = $1 AND r.deleted_rev IS NULL ORDER BY r.domain, r.folded";
const PG_DELETE_SETS: &str = "DELETE FROM link_sets WHERE account_id = $1 AND seq = ANY($2)";
const SQLITE_DELETE_SETS: &str =
    "DELETE FROM link_sets WHERE account_id = $1 AND seq IN (SELECT value FROM json_each($2))";

/// Writes a row and its links; returns when the row was first made, or `None` where another resource has it.
pub async fn put(
    tx: &mut Tx,
    account: AccountId,
    redirect: &Redirect,
    (set, scopes): (&LinkSet, &Scopes),
    rev: Rev,
) -> Result<Option<i64>, StoreError> {
    let row: Option<(i64, i64)> = fetch_optional!(
        &mut **tx,
        PUT,
        redirect.domain.as_str(),
        redirect.short_id.as_str(),
        account.as_str(),
        redirect.resource_type.as_str(),
        redirect.platform_id.as_str(),
        redirect.thng_id.map(|id| id.to_string()),
        redirect.product_id.map(|id| id.to_string()),
        &*redirect.target,
        Json(scopes),
        redirect.updated_at.0,
        dialect::signed(rev)
    )?;
    let Some((seq, created_at)) = row else { return Ok(None) };
    execute!(&mut **tx, PUT_SET, seq, account.as_str(), redirect.platform_id.as_str(), Json(set))?;
    Ok(Some(created_at))
}

/// Domain and folded short id of each row of a resource.
pub async fn list_keys(
    conn: &mut Conn,
    account: AccountId,
    resource: &str,
) -> Result<Vec<(String, String)>, StoreError> {
    Ok(fetch_all!(conn, OF_RESOURCE, account.as_str(), resource)?)
}

/// Removes the links of rows, by their positions.
pub async fn delete_sets(tx: &mut Tx, account: AccountId, seqs: &[i64]) -> Result<(), StoreError> {
    match &mut **tx {
        Conn::PgTx(c) => {
            sqlx::query(PG_DELETE_SETS).bind(account.as_str()).bind(seqs).execute(&mut **c).await?;
        }
        Conn::SqliteTx(c) => {
            let query = sqlx::query(SQLITE_DELETE_SETS).bind(account.as_str());
            query.bind(Json(seqs)).execute(&mut **c).await?;
        }
        Conn::Pg(_) | Conn::Sqlite(_) => return Err(dialect::outside_transaction()),
    }
    Ok(())
}
