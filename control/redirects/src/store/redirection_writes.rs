//! Writes of many redirections by one statement: rows as arrays on Postgres, as one JSON array on SQLite.

use serde_json::{Value, json};
use shared::{redirect::RedirectKey, wire::stream::Rev};
use sqlx::types::Json;

use super::{
    Conn, StoreError, Tx,
    dialect::{outside_transaction, signed},
    execute, redirect_status,
    redirections::NewRow,
};
use crate::domain::redirection::Redirection;

const PG_REDIRECTIONS: &str = "INSERT INTO redirections (domain, folded, short_id, account_id, type, platform_id, \
    thng_id, product_id, target, forward_query, availability, scopes, hits, created_at, updated_at, rev, status_code) \
    SELECT $1, folded, short_id, $2, type, platform_id, thng_id, product_id, target, forward_query, availability, \
    scopes, 0, $3, $3, rev, status_code FROM UNNEST($4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], \
    $10::text[], $11::boolean[], $12::jsonb[], $13::jsonb[], $14::bigint[], $15::bigint[]) AS t (folded, short_id, \
    type, platform_id, thng_id, product_id, target, forward_query, availability, scopes, rev, status_code) \
    RETURNING folded, seq";

const SQLITE_REDIRECTIONS: &str = "INSERT INTO redirections (domain, folded, short_id, account_id, type, \
    platform_id, thng_id, product_id, target, forward_query, availability, scopes, hits, created_at, updated_at, rev, \
    status_code) SELECT $1, value ->> '$[0]', value ->> '$[1]', $2, value ->> '$[2]', value ->> '$[3]', value ->> '$[4]', \
    value ->> '$[5]', value ->> '$[6]', value ->> '$[7]', value ->> '$[10]', value -> '$[8]', 0, $3, $3, \
    value ->> '$[9]', value ->> '$[11]' \
    FROM json_each($4) RETURNING folded, seq";

/// Adds redirections of one domain and account; returns their folded short ids and positions, in no order.
pub async fn insert_redirections(
    tx: &mut Tx,
    domain: &str,
    account: &str,
    at_ms: i64,
    rows: &[NewRow<'_>],
) -> Result<Vec<(String, i64)>, StoreError> {
    Ok(match &mut **tx {
        Conn::PgTx(c) => {
            sqlx::query_as(PG_REDIRECTIONS)
                .bind(domain)
                .bind(account)
                .bind(at_ms)
                .bind(rows.iter().map(|r| r.folded.to_owned()).collect::<Vec<_>>())
                .bind(rows.iter().map(|r| r.redirect.short_id.to_string()).collect::<Vec<_>>())
                .bind(rows.iter().map(|r| r.redirect.resource_type.as_str().to_owned()).collect::<Vec<_>>())
                .bind(rows.iter().map(|r| r.redirect.platform_id.to_string()).collect::<Vec<_>>())
                .bind(rows.iter().map(|r| r.redirect.thng_id.map(|id| id.to_string())).collect::<Vec<_>>())
                .bind(rows.iter().map(|r| r.redirect.product_id.map(|id| id.to_string())).collect::<Vec<_>>())
                .bind(rows.iter().map(|r| r.redirect.target.to_string()).collect::<Vec<_>>())
                .bind(rows.iter().map(|r| r.redirect.forward_query).collect::<Vec<_>>())
                .bind(rows.iter().map(|r| r.redirect.availability.as_deref().map(Json)).collect::<Vec<_>>())
                .bind(rows.iter().map(|r| Json(r.scopes.clone())).collect::<Vec<_>>())
                .bind(rows.iter().map(|r| signed(r.rev)).collect::<Vec<_>>())
                .bind(
                    rows.iter().map(|r| redirect_status::stored(r.redirect.status_code)).collect::<Vec<_>>(),
                )
                .fetch_all(&mut **c)
                .await?
        }
        Conn::SqliteTx(c) => {
            let rows: Vec<Value> = rows
                .iter()
                .map(|r| {
                    json!([
                        r.folded,
                        r.redirect.short_id,
                        r.redirect.resource_type,
                        r.redirect.platform_id,
                        r.redirect.thng_id,
                        r.redirect.product_id,
                        r.redirect.target,
                        r.redirect.forward_query,
                        r.scopes,
                        r.rev,
                        r.redirect.availability,
                        redirect_status::stored(r.redirect.status_code)
                    ])
                })
                .collect();
            sqlx::query_as(SQLITE_REDIRECTIONS)
                .bind(domain)
                .bind(account)
                .bind(at_ms)
                .bind(Json(rows))
                .fetch_all(&mut **c)
                .await?
        }
        Conn::Pg(_) | Conn::Sqlite(_) => return Err(outside_transaction()),
    })
}

const PG_REDIRECTED: &str = "UPDATE redirections r SET target = t.target, forward_query = t.forward_query, \
    availability = t.availability, scopes = t.scopes, thng_id = t.thng_id, product_id = t.product_id, \
    updated_at = t.updated_at, rev = t.rev, status_code = t.status_code \
    FROM UNNEST($1::text[], $2::text[], $3::text[], $4::boolean[], $5::jsonb[], $6::jsonb[], $7::text[], $8::text[], \
    $9::bigint[], $10::bigint[], $11::bigint[]) AS t (domain, folded, target, forward_query, availability, scopes, \
    thng_id, product_id, updated_at, rev, status_code) \
    WHERE r.domain = t.domain AND r.folded = t.folded AND r.deleted_rev IS NULL";

// Why `LIMIT -1`: see SQLITE_HITS.
const SQLITE_REDIRECTED: &str = "UPDATE redirections SET target = t.v ->> '$[2]', forward_query = t.v ->> '$[3]', \
    scopes = t.v -> '$[4]', thng_id = t.v ->> '$[5]', product_id = t.v ->> '$[6]', updated_at = t.v ->> '$[7]', \
    rev = t.v ->> '$[8]', availability = t.v ->> '$[9]', status_code = t.v ->> '$[10]' \
    FROM (SELECT value ->> '$[0]' AS domain, value ->> '$[1]' AS folded, value AS v FROM json_each($1) LIMIT -1) AS t \
    WHERE redirections.domain = t.domain AND redirections.folded = t.folded AND deleted_rev IS NULL";

// Of one, as most changes are: Postgres keeps the statement, and SQLite reads no JSON.
const REDIRECTED: &str = "UPDATE redirections SET target = $3, forward_query = $4, availability = $5, scopes = $6, \
    thng_id = $7, product_id = $8, updated_at = $9, rev = $10, status_code = $11 \
    WHERE domain = $1 AND folded = $2 AND deleted_rev IS NULL";

/// Writes what redirections lead to; gives how many there are.
pub async fn update_redirections(
    tx: &mut Tx,
    changed: &[(RedirectKey, Redirection)],
) -> Result<u64, StoreError> {
    if let [(key, item)] = changed {
        let redirect = &item.redirect;
        let done = execute!(
            &mut **tx,
            REDIRECTED,
            &*key.domain,
            &*key.folded,
            &*redirect.target,
            redirect.forward_query,
            redirect.availability.as_deref().map(Json),
            Json(&item.scopes),
            redirect.thng_id.map(|id| id.to_string()),
            redirect.product_id.map(|id| id.to_string()),
            redirect.updated_at.0,
            signed(item.rev),
            redirect_status::stored(redirect.status_code)
        );
        return Ok(done?);
    }
    match &mut **tx {
        Conn::PgTx(c) => {
            let each =
                |of: fn(&(RedirectKey, Redirection)) -> String| changed.iter().map(of).collect::<Vec<_>>();
            let done = sqlx::query(PG_REDIRECTED)
                .persistent(false)
                .bind(each(|(key, _)| key.domain.to_string()))
                .bind(each(|(key, _)| key.folded.to_string()))
                .bind(each(|(_, item)| item.redirect.target.to_string()))
                .bind(changed.iter().map(|(_, item)| item.redirect.forward_query).collect::<Vec<_>>())
                .bind(
                    changed
                        .iter()
                        .map(|(_, i)| i.redirect.availability.as_deref().map(Json))
                        .collect::<Vec<_>>(),
                )
                .bind(changed.iter().map(|(_, item)| Json(item.scopes.clone())).collect::<Vec<_>>())
                .bind(
                    changed
                        .iter()
                        .map(|(_, i)| i.redirect.thng_id.map(|id| id.to_string()))
                        .collect::<Vec<_>>(),
                )
                .bind(
                    changed
                        .iter()
                        .map(|(_, i)| i.redirect.product_id.map(|id| id.to_string()))
                        .collect::<Vec<_>>(),
                )
                .bind(changed.iter().map(|(_, item)| item.redirect.updated_at.0).collect::<Vec<_>>())
                .bind(changed.iter().map(|(_, item)| signed(item.rev)).collect::<Vec<_>>())
                .bind(
                    changed
                        .iter()
                        .map(|(_, item)| redirect_status::stored(item.redirect.status_code))
                        .collect::<Vec<_>>(),
                )
                .execute(&mut **c)
                .await?;
            Ok(done.rows_affected())
        }
        Conn::SqliteTx(c) => {
            let rows: Vec<Value> = changed
                .iter()
                .map(|(key, Redirection { redirect: r, scopes, rev, .. })| {
                    json!([
                        &*key.domain,
                        &*key.folded,
                        r.target,
                        r.forward_query,
                        scopes,
                        r.thng_id,
                        r.product_id,
                        r.updated_at,
                        rev,
                        r.availability,
                        redirect_status::stored(r.status_code)
                    ])
                })
                .collect();
            Ok(sqlx::query(SQLITE_REDIRECTED).bind(Json(rows)).execute(&mut **c).await?.rows_affected())
        }
        Conn::Pg(_) | Conn::Sqlite(_) => Err(outside_transaction()),
    }
}

const PG_BURIED: &str = "UPDATE redirections r SET deleted_rev = t.rev, rev = t.rev, updated_at = $2 \
    FROM UNNEST($3::text[], $4::bigint[]) AS t (folded, rev) \
    WHERE r.domain = $1 AND r.folded = t.folded AND r.deleted_rev IS NULL";

const SQLITE_BURIED: &str = "UPDATE redirections SET deleted_rev = t.rev, rev = t.rev, updated_at = $2 \
    FROM (SELECT value ->> '$[0]' AS folded, value ->> '$[1]' AS rev FROM json_each($3) LIMIT -1) AS t \
    WHERE redirections.domain = $1 AND redirections.folded = t.folded AND deleted_rev IS NULL";

/// Turns redirections into tombstones; gives how many there were.
pub async fn delete_redirections(
    tx: &mut Tx,
    domain: &str,
    keys: &[(&str, Rev)],
    at_ms: i64,
) -> Result<u64, StoreError> {
    match &mut **tx {
        Conn::PgTx(c) => {
            let (folded, revs): (Vec<String>, Vec<i64>) =
                keys.iter().map(|(folded, rev)| ((*folded).to_owned(), signed(*rev))).unzip();
            let query =
                sqlx::query(PG_BURIED).persistent(false).bind(domain).bind(at_ms).bind(folded).bind(revs);
            Ok(query.execute(&mut **c).await?.rows_affected())
        }
        Conn::SqliteTx(c) => {
            let query = sqlx::query(SQLITE_BURIED).bind(domain).bind(at_ms).bind(Json(keys));
            Ok(query.execute(&mut **c).await?.rows_affected())
        }
        Conn::Pg(_) | Conn::Sqlite(_) => Err(outside_transaction()),
    }
}

// The timeout is below the second after which Postgres looks for deadlocks: the scans end one before a change is its
// victim. It holds for what follows in the transaction, too: redirections are locked meanwhile. By a hash of the list, the update reads a table of some 100,000 links as a whole, for a thousand of them.
const PG_HITS_SET: &str = "SELECT set_config('lock_timeout', '250ms', true), set_config('enable_hashjoin', 'off', true), \
    set_config('enable_mergejoin', 'off', true)";

// One order for all batches: the update itself takes rows as its plan finds them. One look for each row, as in
// `redirections::find_many`.
const PG_LOCK_HITS: &str = "SELECT r.seq, k.n FROM \
    (SELECT folded, n FROM UNNEST($2::text[], $3::bigint[]) AS l (folded, n) ORDER BY folded) k \
    CROSS JOIN LATERAL (SELECT seq FROM redirections WHERE domain = $1 AND folded = k.folded FOR NO KEY UPDATE) r";

// By the key of one column. By domain and short id, a table without statistics (an import, a restored dump, a new version of
// Postgres) is read once for each hit: its domain is taken for one of 200.
const PG_HITS: &str = "UPDATE redirections SET hits = hits + t.n \
    FROM UNNEST($1::bigint[], $2::bigint[]) AS t (seq, n) WHERE redirections.seq = t.seq";

// `LIMIT -1` keeps the list a table of its own: without it SQLite walks every redirection of the domain,
// and reads the list once for each (6.8 s for 600 hits among 20,000 links, against 17 ms).
const SQLITE_HITS: &str = "UPDATE redirections SET hits = hits + t.n \
    FROM (SELECT value ->> '$[0]' AS folded, value ->> '$[1]' AS n FROM json_each($2) LIMIT -1) AS t \
    WHERE redirections.domain = $1 AND redirections.folded = t.folded";

/// Adds to the hits of redirections of one domain; each key at most once in `counts`.
pub async fn add_hits(tx: &mut Tx, domain: &str, counts: &[(&str, i64)]) -> Result<(), StoreError> {
    match &mut **tx {
        Conn::PgTx(c) => {
            let keys: Vec<String> = counts.iter().map(|(key, _)| (*key).to_owned()).collect();
            let amounts: Vec<i64> = counts.iter().map(|(_, n)| *n).collect();
            sqlx::query(PG_HITS_SET).execute(&mut **c).await?;
            let locked = sqlx::query_as(PG_LOCK_HITS).persistent(false).bind(domain).bind(keys).bind(amounts);
            let rows: Vec<(i64, i64)> = locked.fetch_all(&mut **c).await?;
            let (seqs, amounts): (Vec<i64>, Vec<i64>) = rows.into_iter().unzip();
            sqlx::query(PG_HITS).persistent(false).bind(seqs).bind(amounts).execute(&mut **c).await?;
        }
        Conn::SqliteTx(c) => {
            sqlx::query(SQLITE_HITS).bind(domain).bind(Json(counts)).execute(&mut **c).await?;
        }
        Conn::Pg(_) | Conn::Sqlite(_) => return Err(outside_transaction()),
    }
    Ok(())
}
