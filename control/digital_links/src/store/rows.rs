//! Rows of Digital Links among the redirections, and their links.

use std::collections::HashMap;

use kernel::{
    domain::scopes::Scopes,
    store::{Conn, Raw, StoreError, Tx, dialect, fetch_all},
};
use shared::{digital_link::LinkSet, id::AccountId, redirect::Redirect, wire::stream::Rev};
use sqlx::types::Json;

// What is left of a row that was removed is used again, and keeps its hits. On a domain that another account had before, it is
// made anew: only the holder of a domain has rows on it that were not removed. A row of another resource is not touched.
macro_rules! put {
    ($rows:literal) => {
        concat!(
            "INSERT INTO redirections (domain, folded, short_id, account_id, type, platform_id, thng_id, product_id, \
            scopes, created_at, updated_at, target, rev, forward_query, hits) ",
            $rows,
            " ON CONFLICT (domain, folded) DO UPDATE SET account_id = excluded.account_id, type = excluded.type, \
            platform_id = excluded.platform_id, thng_id = excluded.thng_id, product_id = excluded.product_id, \
            target = excluded.target, forward_query = TRUE, scopes = excluded.scopes, updated_at = excluded.updated_at, \
            rev = excluded.rev, deleted_rev = NULL, \
            hits = CASE WHEN redirections.account_id = excluded.account_id THEN redirections.hits ELSE 0 END, created_at = \
            CASE WHEN redirections.account_id = excluded.account_id THEN redirections.created_at ELSE excluded.created_at END \
            WHERE redirections.deleted_rev IS NOT NULL OR (redirections.account_id = excluded.account_id \
            AND redirections.platform_id = excluded.platform_id) RETURNING seq, domain, folded, created_at"
        )
    };
}
const PG_PUT: &str = put!(
    "SELECT t.domain, t.folded, t.folded, $1, $2, $3, $4, $5, $6, $7, $7, t.target, t.rev, TRUE, 0 \
    FROM UNNEST($8::text[], $9::text[], $10::text[], $11::bigint[]) AS t (domain, folded, target, rev)"
);
const SQLITE_PUT: &str = put!(
    "SELECT value ->> '$[0]', value ->> '$[1]', value ->> '$[1]', $1, $2, $3, $4, $5, $6, $7, $7, value ->> '$[2]', \
    value ->> '$[3]', TRUE, 0 FROM json_each($8) WHERE true"
);
macro_rules! put_sets {
    ($rows:literal) => {
        concat!(
            "INSERT INTO link_sets (seq, account_id, platform_id, doc) ",
            $rows,
            " ON CONFLICT (seq) DO UPDATE SET account_id = excluded.account_id, platform_id = excluded.platform_id, \
            doc = excluded.doc"
        )
    };
}
const PG_PUT_SETS: &str =
    put_sets!("SELECT t.seq, $1, $2, t.doc FROM UNNEST($3::bigint[], $4::jsonb[]) AS t (seq, doc)");
const SQLITE_PUT_SETS: &str =
    put_sets!("SELECT value ->> '$[0]', $1, $2, value -> '$[1]' FROM json_each($3) WHERE true");
const OF_RESOURCE: &str = "SELECT r.domain, r.folded FROM link_sets g JOIN redirections r ON r.seq = g.seq \
    WHERE g.account_id = $1 AND g.platform_id = $2 AND r.account_id = $1 AND r.deleted_rev IS NULL ORDER BY r.domain, r.folded";
const PG_DELETE_SETS: &str = "DELETE FROM link_sets WHERE account_id = $1 AND seq = ANY($2)";
const SQLITE_DELETE_SETS: &str =
    "DELETE FROM link_sets WHERE account_id = $1 AND seq IN (SELECT value FROM json_each($2))";

/// Rows that one statement writes: at most 32 MiB, as the links of a row take 64 KiB.
const AT_ONCE: usize = 500;

/// When rows were first made, by domain and short id.
pub type Made = HashMap<(String, String), i64>;

/// Writes rows of one resource with their links, the first at this revision; returns those that were written. The others belong to
/// another resource.
pub async fn put(
    tx: &mut Tx,
    account: AccountId,
    (redirects, scopes): (&[&Redirect], &Scopes),
    mut rev: Rev,
) -> Result<Made, StoreError> {
    let mut made = Made::with_capacity(redirects.len());
    for some in redirects.chunks(AT_ONCE) {
        let written = put_some(tx, account, (some, scopes), rev).await?;
        put_sets(tx, account, some, &written).await?;
        made.extend(
            written.into_iter().map(|(_, domain, folded, created_at)| ((domain, folded), created_at)),
        );
        rev += some.len() as u64;
    }
    Ok(made)
}

/// Position, domain, short id and creation of a row.
type Written = (i64, String, String, i64);

async fn put_some(
    tx: &mut Tx,
    account: AccountId,
    (redirects, scopes): (&[&Redirect], &Scopes),
    first: Rev,
) -> Result<Vec<Written>, StoreError> {
    let Some(of) = redirects.first() else { return Ok(Vec::new()) };
    let (kind, platform, at) = (of.resource_type.as_str(), of.platform_id.as_str(), of.updated_at.0);
    let (thng, product) = (of.thng_id.map(|id| id.to_string()), of.product_id.map(|id| id.to_string()));
    let rows = redirects.iter().zip(first..);
    let rows = rows
        .map(|(one, rev)| (one.domain.as_str(), one.short_id.as_str(), &*one.target, dialect::signed(rev)));
    Ok(match tx.raw() {
        Raw::Pg(c) => {
            let (mut domains, mut folded, mut targets, mut revs) = (vec![], vec![], vec![], vec![]);
            for (domain, short_id, target, rev) in rows {
                domains.push(domain);
                folded.push(short_id);
                targets.push(target);
                revs.push(rev);
            }
            let query = sqlx::query_as::<_, Written>(PG_PUT)
                .bind(account.as_str())
                .bind(kind)
                .bind(platform)
                .bind(thng);
            let query = query.bind(product).bind(Json(scopes)).bind(at).bind(domains);
            query.bind(folded).bind(targets).bind(revs).fetch_all(c).await?
        }
        Raw::Sqlite(c) => {
            let rows: Vec<_> = rows.collect();
            let query = sqlx::query_as::<_, Written>(SQLITE_PUT)
                .bind(account.as_str())
                .bind(kind)
                .bind(platform)
                .bind(thng);
            query.bind(product).bind(Json(scopes)).bind(at).bind(Json(rows)).fetch_all(c).await?
        }
    })
}

async fn put_sets(
    tx: &mut Tx,
    account: AccountId,
    redirects: &[&Redirect],
    written: &[Written],
) -> Result<(), StoreError> {
    let Some(of) = redirects.first() else { return Ok(()) };
    let platform = of.platform_id.as_str();
    let sets: HashMap<(&str, &str), &LinkSet> = redirects
        .iter()
        .filter_map(|one| Some(((one.domain.as_str(), one.short_id.as_str()), one.digital_link.as_deref()?)))
        .collect();
    let mut rows = Vec::with_capacity(written.len());
    for (seq, domain, folded, _) in written {
        let set = sets.get(&(domain.as_str(), folded.as_str()));
        let set = set.ok_or_else(|| StoreError::Row(format!("{domain}/{folded} has no links")))?;
        rows.push((*seq, *set));
    }
    match tx.raw() {
        Raw::Pg(c) => {
            let (seqs, docs): (Vec<i64>, Vec<_>) =
                rows.into_iter().map(|(seq, set)| (seq, Json(set))).unzip();
            let query = sqlx::query(PG_PUT_SETS).bind(account.as_str()).bind(platform);
            query.bind(seqs).bind(docs).execute(c).await?;
        }
        Raw::Sqlite(c) => {
            let query = sqlx::query(SQLITE_PUT_SETS).bind(account.as_str()).bind(platform);
            query.bind(Json(rows)).execute(c).await?;
        }
    }
    Ok(())
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
