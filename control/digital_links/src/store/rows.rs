//! Rows of Digital Links among the redirections, and their links.

use std::collections::HashMap;

use kernel::{
    domain::scopes::Scopes,
    store::{Conn, Raw, StoreError, Tx, dialect},
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
    "SELECT t.domain, t.folded, t.folded, $1, t.kind, t.platform, t.thng, t.product, t.scopes, $2, $2, t.target, t.rev, TRUE, 0 \
    FROM UNNEST($3::text[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::jsonb[], $10::text[], $11::bigint[]) \
    AS t (domain, folded, kind, platform, thng, product, scopes, target, rev)"
);
const SQLITE_PUT: &str = put!(
    "SELECT value ->> '$[0]', value ->> '$[1]', value ->> '$[1]', $1, value ->> '$[2]', value ->> '$[3]', value ->> '$[4]', \
    value ->> '$[5]', value -> '$[6]', $2, $2, value ->> '$[7]', value ->> '$[8]', TRUE, 0 FROM json_each($3) WHERE true"
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
const PG_PUT_SETS: &str = put_sets!(
    "SELECT t.seq, $1, t.platform, t.doc FROM UNNEST($2::bigint[], $3::text[], $4::jsonb[]) AS t (seq, platform, doc)"
);
const SQLITE_PUT_SETS: &str =
    put_sets!("SELECT value ->> '$[0]', $1, value ->> '$[1]', value -> '$[2]' FROM json_each($2) WHERE true");
macro_rules! of_resources {
    ($among:literal) => {
        concat!(
            "SELECT r.domain, r.folded FROM link_sets g JOIN redirections r ON r.seq = g.seq WHERE g.account_id = $1 \
            AND g.platform_id ",
            $among,
            " AND r.account_id = $1 AND r.deleted_rev IS NULL ORDER BY r.domain, r.folded"
        )
    };
}
const PG_OF_RESOURCES: &str = of_resources!("= ANY($2)");
const SQLITE_OF_RESOURCES: &str = of_resources!("IN (SELECT value FROM json_each($2))");
const PG_DELETE_SETS: &str = "DELETE FROM link_sets WHERE account_id = $1 AND seq = ANY($2)";
const SQLITE_DELETE_SETS: &str =
    "DELETE FROM link_sets WHERE account_id = $1 AND seq IN (SELECT value FROM json_each($2))";

/// Rows that one statement writes: at most 32 MiB, as the links of a row take 64 KiB.
const AT_ONCE: usize = 500;

/// When rows were first made, by domain and short id.
pub type Made = HashMap<(String, String), i64>;

/// Writes rows with their links, the first at this revision; returns those that were written. The others belong to another
/// resource. No two have the same domain and short id.
pub async fn put(
    tx: &mut Tx,
    account: AccountId,
    redirects: &[(&Redirect, &Scopes)],
    mut rev: Rev,
) -> Result<Made, StoreError> {
    let mut made = Made::with_capacity(redirects.len());
    for some in redirects.chunks(AT_ONCE) {
        let written = put_some(tx, account, some, rev).await?;
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
    redirects: &[(&Redirect, &Scopes)],
    first: Rev,
) -> Result<Vec<Written>, StoreError> {
    let Some((of, _)) = redirects.first() else { return Ok(Vec::new()) };
    let at = of.updated_at.0;
    let rows = redirects.iter().zip(first..).map(|((one, scopes), rev)| {
        let (thng, product) = (one.thng_id.map(|id| id.to_string()), one.product_id.map(|id| id.to_string()));
        let (kind, platform) = (one.resource_type.as_str(), one.platform_id.as_str());
        let (domain, folded, target) = (one.domain.as_str(), one.short_id.as_str(), &*one.target);
        (domain, folded, kind, platform, thng, product, *scopes, target, dialect::signed(rev))
    });
    Ok(match tx.raw() {
        Raw::Pg(c) => {
            let (mut domains, mut folded, mut kinds, mut platforms) = (vec![], vec![], vec![], vec![]);
            let (mut thngs, mut products, mut scopes) = (vec![], vec![], vec![]);
            let (mut targets, mut revs) = (vec![], vec![]);
            for row in rows {
                domains.push(row.0);
                folded.push(row.1);
                kinds.push(row.2);
                platforms.push(row.3);
                thngs.push(row.4);
                products.push(row.5);
                scopes.push(Json(row.6));
                targets.push(row.7);
                revs.push(row.8);
            }
            let query = sqlx::query_as::<_, Written>(PG_PUT).bind(account.as_str()).bind(at);
            let query = query.bind(domains).bind(folded).bind(kinds).bind(platforms).bind(thngs);
            query.bind(products).bind(scopes).bind(targets).bind(revs).fetch_all(c).await?
        }
        Raw::Sqlite(c) => {
            let rows: Vec<_> = rows.collect();
            let query = sqlx::query_as::<_, Written>(SQLITE_PUT).bind(account.as_str()).bind(at);
            query.bind(Json(rows)).fetch_all(c).await?
        }
    })
}

async fn put_sets(
    tx: &mut Tx,
    account: AccountId,
    redirects: &[(&Redirect, &Scopes)],
    written: &[Written],
) -> Result<(), StoreError> {
    let sets: HashMap<(&str, &str), (&str, &LinkSet)> = redirects
        .iter()
        .filter_map(|(one, _)| {
            let set = (one.platform_id.as_str(), one.digital_link.as_deref()?);
            Some(((one.domain.as_str(), one.short_id.as_str()), set))
        })
        .collect();
    let mut rows = Vec::with_capacity(written.len());
    for (seq, domain, folded, _) in written {
        let set = sets.get(&(domain.as_str(), folded.as_str()));
        let (platform, set) =
            set.ok_or_else(|| StoreError::Row(format!("{domain}/{folded} has no links")))?;
        rows.push((*seq, *platform, *set));
    }
    match tx.raw() {
        Raw::Pg(c) => {
            let (mut seqs, mut platforms, mut docs) = (vec![], vec![], vec![]);
            for (seq, platform, set) in rows {
                seqs.push(seq);
                platforms.push(platform);
                docs.push(Json(set));
            }
            let query = sqlx::query(PG_PUT_SETS).bind(account.as_str());
            query.bind(seqs).bind(platforms).bind(docs).execute(c).await?;
        }
        Raw::Sqlite(c) => {
            sqlx::query(SQLITE_PUT_SETS).bind(account.as_str()).bind(Json(rows)).execute(c).await?;
        }
    }
    Ok(())
}

/// Domain and folded short id of each row of some resources.
pub async fn list_keys(
    conn: &mut Conn,
    account: AccountId,
    resources: &[String],
) -> Result<Vec<(String, String)>, StoreError> {
    let (pg, sqlite) = (PG_OF_RESOURCES, SQLITE_OF_RESOURCES);
    Ok(dialect::fetch_by_keys!(conn, (String, String), pg, sqlite, [account.as_str()], resources)?)
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
