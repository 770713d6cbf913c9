//! The table of redirections, which edges replicate.

mod deleted;
mod fill;
mod row;

use std::{collections::HashMap, sync::Arc};

use shared::{
    id::AccountId,
    redirect::{Redirect, RedirectKey, ResourceType},
    short_url::ShortDomain,
    time::UnixMillis,
    wire::stream::Rev,
};
use sqlx::{FromRow, Row as _};

pub use self::deleted::{find_deleted, revive};
pub use self::fill::load_fill;
pub(super) use self::row::Row;
use super::{
    Conn, StoreError, Tx, dialect, fetch_all, fetch_optional, on_db, parse,
    redirection_columns::redirection_columns, redirection_details, redirection_writes,
};
use crate::domain::{link_details::LinkDetails, page::Position, redirection::Redirection, scopes::Scopes};

/// Columns of a redirection with its domain; the statements below differ in what follows.
macro_rules! select {
    ($rest:literal) => {
        select_from!("", "redirections", "", "", $rest)
    };
}

/// The same with its descriptive fields, which are needed to show or to change it.
macro_rules! select_whole {
    ($rest:literal) => {
        select_from!(
            ", x.doc",
            "redirections",
            "",
            "LEFT JOIN redirection_details x ON x.seq = r.seq ",
            $rest
        )
    };
}

/// The same from another source than the whole table, in two parts, and with another table beside it.
macro_rules! select_from {
    ($columns:literal, $from:literal, $joined:expr, $beside:literal, $rest:literal) => {
        concat!(
            "SELECT ",
            redirection_columns!("r."),
            ", d.scheme, d.case_sensitive, d.digital_links, d.paths, t.name AS thng_name, t.commission_state, t.verdict, g.doc AS link_set",
            $columns,
            " FROM ",
            $from,
            $joined,
            " r JOIN short_domains d ON d.host = r.domain LEFT JOIN thngs t ON t.id = r.thng_id \
             LEFT JOIN link_sets g ON g.seq = r.seq ",
            $beside,
            $rest
        )
    };
}

/// One look-up in the index of short ids for each entry of a list, on Postgres.
///
/// A comparison with the list as a whole is planned by the table's statistics. While an import fills the table there
/// are none, and the whole domain was read for each chunk (5 s at 200,000 links).
macro_rules! select_each {
    ($columns:literal, $list:literal, $beside:literal, $rest:literal) => {
        select_from!(
            $columns,
            $list,
            concat!(
                " AS k (folded) CROSS JOIN LATERAL (SELECT ",
                redirection_columns!(""),
                ", deleted_rev FROM redirections WHERE domain = $1 AND folded = k.folded LIMIT 1)"
            ),
            $beside,
            $rest
        )
    };
}

const FIND: &str =
    select_whole!("WHERE r.domain = $1 AND r.folded = $2 AND r.account_id = $3 AND r.deleted_rev IS NULL");
const FIND_ANY: &str = select!("WHERE r.domain = $1 AND r.folded = $2 AND r.deleted_rev IS NULL");
const PG_FIND_ANY_MANY: &str = select_each!("", "UNNEST($2::text[])", "", "WHERE r.deleted_rev IS NULL");
const SQLITE_FIND_ANY_MANY: &str = select!(
    "WHERE r.domain = $1 AND r.folded IN (SELECT value FROM json_each($2)) AND r.deleted_rev IS NULL"
);
const PG_TAKEN: &str = "SELECT r.folded FROM UNNEST($2::text[]) AS k (folded) CROSS JOIN LATERAL \
    (SELECT folded FROM redirections WHERE domain = $1 AND folded = k.folded LIMIT 1) r";
const SQLITE_TAKEN: &str =
    "SELECT folded FROM redirections WHERE domain = $1 AND folded IN (SELECT value FROM json_each($2))";
const PG_FIND_MANY: &str = select_each!("", "UNNEST($2::text[])", "", "");
const SQLITE_FIND_MANY: &str =
    select!("WHERE r.domain = $1 AND r.folded IN (SELECT value FROM json_each($2))");
const PG_THNGS: &str = "SELECT r.folded, r.type, r.platform_id FROM redirections r \
    WHERE r.domain = $1 AND r.account_id = $2 AND r.deleted_rev IS NULL AND r.folded = ANY($3)";
const SQLITE_THNGS: &str = "SELECT r.folded, r.type, r.platform_id FROM redirections r \
    WHERE r.domain = $1 AND r.account_id = $2 AND r.deleted_rev IS NULL \
    AND r.folded IN (SELECT value FROM json_each($3))";
const PG_FIND_LIVE: &str = select_each!(
    ", x.doc",
    "UNNEST($3::text[])",
    "LEFT JOIN redirection_details x ON x.seq = r.seq ",
    "WHERE r.account_id = $2 AND r.deleted_rev IS NULL"
);
const SQLITE_FIND_LIVE: &str = select_whole!(
    "WHERE r.domain = $1 AND r.folded IN (SELECT value FROM json_each($3)) AND r.account_id = $2 \
     AND r.deleted_rev IS NULL"
);
const OF_RESOURCE: &str = select_whole!(
    "WHERE r.account_id = $1 AND r.platform_id = $2 AND r.deleted_rev IS NULL AND (r.created_at, r.seq) > ($3, $4) \
     ORDER BY r.created_at, r.seq LIMIT $5"
);
const PG_OLDEST: &str = select_from!(
    ", x.doc",
    "UNNEST($2::text[])",
    concat!(
        " AS k (id) CROSS JOIN LATERAL (SELECT ",
        redirection_columns!(""),
        " FROM redirections WHERE account_id = $1 AND platform_id = k.id AND deleted_rev IS NULL \
         AND folded NOT LIKE '01/%' ORDER BY created_at, seq LIMIT 1)"
    ),
    "LEFT JOIN redirection_details x ON x.seq = r.seq ",
    ""
);
const SQLITE_OLDEST: &str = select_whole!(
    "WHERE r.seq IN (SELECT (SELECT o.seq FROM redirections o WHERE o.account_id = $1 AND o.platform_id = k.value \
     AND o.deleted_rev IS NULL AND o.folded NOT LIKE '01/%' ORDER BY o.created_at, o.seq LIMIT 1) FROM json_each($2) k)"
);
const WITHOUT_DETAILS: &str = select!(
    "WHERE r.seq >= $1 AND r.seq < $2 AND r.deleted_rev IS NULL AND NOT EXISTS \
     (SELECT 1 FROM redirection_details x WHERE x.seq = r.seq) ORDER BY r.seq LIMIT $3"
);
const AFTER_KEY: &str = select!(
    "WHERE (r.domain, r.folded) > ($1, $2) AND r.deleted_rev IS NULL ORDER BY r.domain, r.folded LIMIT $3"
);
const OF_DOMAIN: &str =
    select!("WHERE r.domain = $1 AND r.folded > $2 AND r.deleted_rev IS NULL ORDER BY r.folded LIMIT $3");
/// A redirection to be added; domain, account and time are those of the whole batch.
#[derive(Debug)]
pub struct NewRow<'a> {
    /// The short id, folded according to the domain.
    pub folded: &'a str,
    /// What edges hold too.
    pub redirect: &'a Redirect,
    /// Access besides operators.
    pub scopes: &'a Scopes,
    /// Its descriptive fields.
    pub details: &'a LinkDetails,
    /// The revision that writes it.
    pub rev: Rev,
}

/// Adds redirections of one domain and account, all of one moment; returns them as they are stored now.
///
/// # Errors
/// [`StoreError::Unique`] when a short id is taken, by a tombstone too; then none is added.
pub async fn insert(
    tx: &mut Tx,
    domain: &ShortDomain,
    account: AccountId,
    at: UnixMillis,
    rows: &[NewRow<'_>],
) -> Result<Vec<Redirection>, StoreError> {
    let host = domain.host.as_str();
    let made = redirection_writes::insert_redirections(tx, host, account.as_str(), at.0, rows).await?;
    let made: HashMap<String, i64> = made.into_iter().collect();
    let links: Vec<Redirection> = rows
        .iter()
        .filter_map(|row| {
            Some(Redirection {
                account,
                domain: ShortDomain { personal_data: None, redirect_max_age: None, ..domain.clone() },
                redirect: row.redirect.clone(),
                scopes: row.scopes.clone(),
                hits: 0,
                rev: row.rev,
                seq: *made.get(row.folded)?,
                details: row.details.clone(),
                taken_down: None,
            })
        })
        .collect();
    redirection_details::insert(tx, links.iter()).await?;
    Ok(links)
}

/// A redirection of an account.
pub async fn find(
    conn: &mut Conn,
    domain: &str,
    folded: &str,
    account: AccountId,
) -> Result<Option<Redirection>, StoreError> {
    let row: Option<Row> = fetch_optional!(conn, FIND, domain, folded, account.as_str())?;
    row.map(Redirection::try_from).transpose()
}

/// A redirection of any account.
pub async fn find_any(
    conn: &mut Conn,
    domain: &str,
    folded: &str,
) -> Result<Option<Redirection>, StoreError> {
    let row: Option<Row> = fetch_optional!(conn, FIND_ANY, domain, folded)?;
    row.map(Redirection::try_from).transpose()
}

/// Redirections of one domain and any account by folded short id: for following chains of short URLs.
pub async fn list_any(
    conn: &mut Conn,
    domain: &str,
    folded: &[String],
) -> Result<Vec<Redirection>, StoreError> {
    let rows = dialect::fetch_by_keys!(conn, Row, PG_FIND_ANY_MANY, SQLITE_FIND_ANY_MANY, [domain], folded)?;
    rows.into_iter().map(Redirection::try_from).collect()
}

/// Redirections of one domain by folded short id, deleted ones too: for the intake of scans.
pub async fn list_many(
    conn: &mut Conn,
    domain: &str,
    folded: &[String],
) -> Result<Vec<Redirection>, StoreError> {
    let rows = dialect::fetch_in_list!(conn, Row, PG_FIND_MANY, SQLITE_FIND_MANY, [domain], folded)?;
    rows.into_iter().map(Redirection::try_from).collect()
}

/// What some folded short ids of a domain belong to, by kind and id; only redirections of the account.
pub async fn list_owners(
    conn: &mut Conn,
    domain: &str,
    account: AccountId,
    folded: &[String],
) -> Result<Vec<(String, ResourceType, String)>, StoreError> {
    type Found = (String, String, String);
    let account = account.as_str();
    let rows = dialect::fetch_in_list!(conn, Found, PG_THNGS, SQLITE_THNGS, [domain, account], folded)?;
    rows.into_iter().map(|(folded, kind, id)| Ok((folded, parse("type", &kind)?, id))).collect()
}

/// Redirections of an account on one domain by folded short id, in no order.
pub async fn find_many(
    conn: &mut Conn,
    domain: &str,
    folded: &[String],
    account: AccountId,
) -> Result<Vec<Redirection>, StoreError> {
    let rows = dialect::fetch_by_keys!(
        conn,
        Row,
        PG_FIND_LIVE,
        SQLITE_FIND_LIVE,
        [domain, account.as_str()],
        folded
    )?;
    rows.into_iter().map(Redirection::try_from).collect()
}

/// Which of some folded short ids were ever given out on a domain.
pub async fn list_taken(conn: &mut Conn, domain: &str, folded: &[String]) -> Result<Vec<String>, StoreError> {
    let rows = dialect::fetch_by_keys!(conn, (String,), PG_TAKEN, SQLITE_TAKEN, [domain], folded)?;
    Ok(rows.into_iter().map(|(folded,)| folded).collect())
}

/// Up to `limit` redirections of a resource after a position, in order of creation.
pub async fn list_of_resource(
    conn: &mut Conn,
    account: AccountId,
    platform_id: &str,
    after: Option<Position>,
    limit: u32,
) -> Result<Vec<Redirection>, StoreError> {
    let (at, seq) = after.map_or((i64::MIN, i64::MIN), |after| (after.at.0, after.seq));
    let rows: Vec<Row> =
        fetch_all!(conn, OF_RESOURCE, account.as_str(), platform_id, at, seq, i64::from(limit))?;
    rows.into_iter().map(Redirection::try_from).collect()
}

/// The oldest redirection of each of some resources of an account, in no order.
pub async fn list_oldest(
    conn: &mut Conn,
    account: AccountId,
    resources: &[String],
) -> Result<Vec<Redirection>, StoreError> {
    let rows = dialect::fetch_in_list!(conn, Row, PG_OLDEST, SQLITE_OLDEST, [account.as_str()], resources)?;
    rows.into_iter().map(Redirection::try_from).collect()
}

/// Up to `limit` redirections of all accounts with positions from `from` to below `to` that have no details yet, each with
/// its position. One that cannot be read does not hide the others.
pub async fn list_without_details(
    conn: &mut Conn,
    from: i64,
    to: i64,
    limit: u32,
) -> Result<Vec<(i64, Result<Redirection, StoreError>)>, StoreError> {
    let rows = on_db!(conn, |c| {
        let query = sqlx::query(WITHOUT_DETAILS).bind(from).bind(to).bind(i64::from(limit));
        let rows = query.fetch_all(c).await?;
        rows.iter()
            .map(|row| Ok((row.try_get("seq")?, Row::from_row(row))))
            .collect::<Result<Vec<(i64, Result<Row, sqlx::Error>)>, sqlx::Error>>()
    })?;
    let read = |row: Result<Row, sqlx::Error>| Redirection::try_from(row?);
    Ok(rows.into_iter().map(|(seq, row)| (seq, read(row))).collect())
}

/// Up to `limit` redirections of all accounts whose key follows `after`, in the database's order of keys.
pub async fn list_after_key(
    conn: &mut Conn,
    after: &RedirectKey,
    limit: u32,
) -> Result<Vec<(RedirectKey, Rev, Arc<Redirect>)>, StoreError> {
    let rows: Vec<Row> = fetch_all!(conn, AFTER_KEY, &*after.domain, &*after.folded, i64::from(limit))?;
    rows.into_iter().map(by_key).collect()
}

/// Up to `limit` redirections of a domain whose folded short id follows `after`, in the database's order of ids.
pub async fn list_of_domain(
    conn: &mut Conn,
    domain: &str,
    after: &str,
    limit: u32,
) -> Result<Vec<(RedirectKey, Rev, Arc<Redirect>)>, StoreError> {
    let rows: Vec<Row> = fetch_all!(conn, OF_DOMAIN, domain, after, i64::from(limit))?;
    rows.into_iter().map(by_key).collect()
}

fn by_key(row: Row) -> Result<(RedirectKey, Rev, Arc<Redirect>), StoreError> {
    let key = RedirectKey::new(&row.domain, &row.folded);
    let redirection = Redirection::try_from(row)?;
    Ok((key, redirection.rev, Arc::new(redirection.redirect)))
}

/// Replaces what redirections lead to, each at its new revision; returns how many there are.
pub async fn update(tx: &mut Tx, changed: &[(RedirectKey, Redirection)]) -> Result<u64, StoreError> {
    let count = redirection_writes::update_redirections(tx, changed).await?;
    redirection_details::replace(tx, changed.iter().map(|(_, item)| item)).await?;
    Ok(count)
}

/// Replaces redirections of one domain by tombstones, each at its revision, and removes their descriptive fields; returns
/// how many there were. `seqs` are their positions.
pub async fn delete(
    tx: &mut Tx,
    domain: &str,
    keys: &[(&str, Rev)],
    seqs: &[i64],
    at: UnixMillis,
) -> Result<u64, StoreError> {
    redirection_details::delete(tx, seqs).await?;
    redirection_writes::delete_redirections(tx, domain, keys, at.0).await
}

/// Adds to the hits of redirections of one domain; each key at most once in `counts`, in order.
///
/// Changes lock rows in the order of the request, so on Postgres a batch of scans and a group of changes may each
/// want a row that the other holds. The scans give up, because they are retried.
///
/// # Errors
/// [`StoreError::Unavailable`] when another transaction holds one of the rows for longer than a moment.
pub async fn add_hits(tx: &mut Tx, domain: &str, counts: &[(&str, i64)]) -> Result<(), StoreError> {
    redirection_writes::add_hits(tx, domain, counts).await
}
