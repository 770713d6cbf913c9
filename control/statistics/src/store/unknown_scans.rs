//! Requests for short ids that do not exist, by hour, domain and network.

use std::collections::BTreeMap;

use serde_json::json;
use shared::{id::AccountId, personal_data::PersonalData, time::UnixMillis};
use sqlx::types::Json;

use super::{
    Conn, Raw, StoreError, Tx,
    dialect::{self, fetch_in_list},
    execute, fetch_one, parse,
};
use crate::domain::periods::Period;

const DOMAINS_PG: &str = "SELECT d.host, d.account_id, a.personal_data FROM short_domains d \
    JOIN accounts a ON a.id = d.account_id WHERE d.host = ANY($1)";
const DOMAINS_SQLITE: &str = "SELECT d.host, d.account_id, a.personal_data FROM short_domains d \
    JOIN accounts a ON a.id = d.account_id WHERE d.host IN (SELECT value FROM json_each($1))";
const CREATE_REPORT: &str = "INSERT INTO unknown_scan_reports (edge_id, boot, number) VALUES ($1, 0, 0) \
    ON CONFLICT (edge_id) DO NOTHING";
// Locked until the transaction ends: the same report may come to two replicas at once.
const LOCK_REPORT_PG: &str = "SELECT boot, number FROM unknown_scan_reports WHERE edge_id = $1 FOR UPDATE";
const LOCK_REPORT_SQLITE: &str = "SELECT boot, number FROM unknown_scan_reports WHERE edge_id = $1";
const SAVE_REPORT: &str = "UPDATE unknown_scan_reports SET boot = $2, number = $3 WHERE edge_id = $1";
const COUNT: &str =
    "SELECT COUNT(*) FROM (SELECT 1 FROM unknown_scans WHERE account_id = $1 AND hour = $2 LIMIT $3) AS t";
const PG_ADD: &str = "INSERT INTO unknown_scans (account_id, hour, domain, network, requests) \
    SELECT account_id, hour, domain, network, requests FROM UNNEST($1::text[], $2::int[], $3::text[], $4::text[], \
    $5::bigint[]) AS t (account_id, hour, domain, network, requests) ON CONFLICT (account_id, hour, domain, network) \
    DO UPDATE SET requests = unknown_scans.requests + EXCLUDED.requests";
const SQLITE_ADD: &str = "INSERT INTO unknown_scans (account_id, hour, domain, network, requests) \
    SELECT value ->> '$[0]', value ->> '$[1]', value ->> '$[2]', value ->> '$[3]', value ->> '$[4]' FROM json_each($1) \
    WHERE TRUE ON CONFLICT (account_id, hour, domain, network) DO UPDATE SET requests = requests + excluded.requests";
const TOP: &str = "SELECT domain, CASE WHEN $6 THEN network ELSE '' END AS place, CAST(SUM(requests) AS BIGINT), \
    MIN(hour), MAX(hour), COUNT(*) OVER (), CAST(SUM(SUM(requests)) OVER () AS BIGINT) FROM unknown_scans \
    WHERE account_id = $1 AND hour >= $2 AND hour < $3 AND ($4 = '' OR domain = $4) \
    GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2 LIMIT $5";
const FORGET: &str = "DELETE FROM unknown_scan_reports WHERE edge_id IN (SELECT k.edge_id FROM edge_keys k \
    GROUP BY k.edge_id HAVING COUNT(*) = COUNT(k.revoked_at) AND MAX(k.revoked_at) < $1)";
const PURGE: &str = "DELETE FROM unknown_scans WHERE (account_id, hour, domain, network) IN \
    (SELECT account_id, hour, domain, network FROM unknown_scans WHERE hour < $1 LIMIT $2)";

/// What is counted apart, in the order in which rows are written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The account of the domain.
    pub account: AccountId,
    /// The hour, counted from 1970.
    pub hour: i32,
    /// The domain.
    pub domain: String,
    /// The network.
    pub network: String,
}

/// Requests from a network to a domain, or from anywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requests {
    /// The domain.
    pub domain: String,
    /// The network; empty where networks are not told apart.
    pub network: String,
    /// How many.
    pub count: i64,
    /// The first and the last hour with some.
    pub hours: (i32, i32),
}

/// Those with most requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Top {
    /// They, most requests first.
    pub rows: Vec<Requests>,
    /// How many there are, beside those, too.
    pub count: i64,
    /// All requests.
    pub total: i64,
}

/// Whose some domains are, and how much those keep of people; domains of nobody are left out.
pub async fn find_owners(
    conn: &mut Conn,
    domains: &[&str],
) -> Result<Vec<(String, (AccountId, PersonalData))>, StoreError> {
    let rows = fetch_in_list!(conn, (String, String, String), DOMAINS_PG, DOMAINS_SQLITE, [], domains)?;
    let owner = |(host, account, kept): (String, String, String)| {
        Ok((host, (parse("account_id", &account)?, parse("personal_data", &kept)?)))
    };
    rows.into_iter().map(owner).collect()
}

/// Notes that a report of an edge is counted in this transaction; `false` if it was before, or a later one of the same
/// start of the edge: an edge sends the next one when it has the answer, so that an older one is a copy that was delayed.
pub async fn begin_report(tx: &mut Tx, edge: &str, boot: i64, number: i64) -> Result<bool, StoreError> {
    execute!(&mut **tx, CREATE_REPORT, edge)?;
    let sql = dialect::pick(tx, LOCK_REPORT_PG, LOCK_REPORT_SQLITE);
    let last: (i64, i64) = fetch_one!(&mut **tx, sql, edge)?;
    if last.0 == boot && number <= last.1 {
        return Ok(false);
    }
    execute!(&mut **tx, SAVE_REPORT, edge, boot, number)?;
    Ok(true)
}

/// How many rows an account has of an hour, counted up to `most`.
pub async fn count(conn: &mut Conn, account: AccountId, hour: i32, most: i64) -> Result<i64, StoreError> {
    let (count,): (i64,) = fetch_one!(conn, COUNT, account.as_str(), hour, most)?;
    Ok(count)
}

/// Adds requests, in one statement and in the order of their keys.
pub async fn add(tx: &mut Tx, rows: &BTreeMap<Key, i64>) -> Result<(), StoreError> {
    if rows.is_empty() {
        return Ok(());
    }
    match &mut **tx {
        Conn::PgTx(c) => {
            sqlx::query(PG_ADD)
                .bind(rows.keys().map(|key| key.account.to_string()).collect::<Vec<_>>())
                .bind(rows.keys().map(|key| key.hour).collect::<Vec<_>>())
                .bind(rows.keys().map(|key| key.domain.as_str()).collect::<Vec<_>>())
                .bind(rows.keys().map(|key| key.network.as_str()).collect::<Vec<_>>())
                .bind(rows.values().copied().collect::<Vec<_>>())
                .execute(&mut **c)
                .await?;
        }
        Conn::SqliteTx(c) => {
            let row =
                |(key, count): (&Key, &i64)| json!([key.account, key.hour, key.domain, key.network, count]);
            sqlx::query(SQLITE_ADD)
                .bind(Json(rows.iter().map(row).collect::<Vec<_>>()))
                .execute(&mut **c)
                .await?;
        }
        Conn::Pg(_) | Conn::Sqlite(_) => return Err(dialect::outside_transaction()),
    }
    Ok(())
}

/// Where most requests came from, at most `limit`; of one domain, or with an empty name of all.
pub async fn list_top(
    conn: &mut Conn,
    account: AccountId,
    range: Period,
    domain: &str,
    limit: u32,
    with_networks: bool,
) -> Result<Top, StoreError> {
    type Row = (String, String, i64, i32, i32, i64, i64);
    macro_rules! rows {
        ($c:expr) => {
            sqlx::query_as::<_, Row>(TOP)
                .bind(account.as_str())
                .bind(range.from)
                .bind(range.to)
                .bind(domain)
                .bind(i64::from(limit))
                .bind(with_networks)
                .fetch_all($c)
                .await?
        };
    }
    let rows = match conn.raw() {
        Raw::Pg(c) => rows!(c),
        Raw::Sqlite(c) => rows!(c),
    };
    let mut top = Top::default();
    for (domain, network, count, first, last, groups, total) in rows {
        (top.count, top.total) = (groups, total);
        top.rows.push(Requests { domain, network, count, hours: (first, last) });
    }
    Ok(top)
}

/// Forgets the last reports of edges without a valid key since a time; returns how many.
pub async fn forget_reports(tx: &mut Tx, since: UnixMillis) -> Result<u64, StoreError> {
    Ok(execute!(&mut **tx, FORGET, since.0)?)
}

/// Removes up to `limit` rows of hours before one; returns how many.
pub async fn purge(tx: &mut Tx, before_hour: i32, limit: u32) -> Result<u64, StoreError> {
    tx.purge(PURGE, UnixMillis(i64::from(before_hour)), limit).await
}
