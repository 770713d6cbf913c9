//! Files that short domains serve beside links, and short domains with them as they are published to edges.
//!
//! Other readers of short domains leave the files out: they are large, and only edges serve them.

use std::{collections::HashMap, sync::Arc};

use shared::{
    domain_files::{DomainFiles, JsonFile},
    id::AccountId,
    short_url::{Host, ShortDomain},
};

use super::{Conn, StoreError, Tx, accounts, execute, fetch_all, fetch_one, fetch_optional, parse};

const FILES_OF: &str =
    "SELECT host, robots, asset_links, app_site_association FROM domain_files WHERE account_id = $1";
const ALL_FILES: &str = "SELECT host, robots, asset_links, app_site_association FROM domain_files";
const FIND: &str = "SELECT host, robots, asset_links, app_site_association FROM domain_files \
    WHERE account_id = $1 AND host = $2";
const PUT: &str = "INSERT INTO domain_files (host, account_id, robots, asset_links, app_site_association) \
    VALUES ($2, $1, $3, $4, $5) ON CONFLICT (host) DO UPDATE SET robots = $3, asset_links = $4, \
    app_site_association = $5 WHERE domain_files.account_id = $1";
const DELETE: &str = "DELETE FROM domain_files WHERE account_id = $1 AND host = $2";

const STORED: &str = "SELECT COALESCE(SUM(CASE WHEN account_id = $1 THEN bytes ELSE 0 END), 0), COALESCE(SUM(bytes), 0) \
    FROM (SELECT account_id, OCTET_LENGTH(COALESCE(asset_links, '')) + OCTET_LENGTH(COALESCE(app_site_association, '')) \
    AS bytes FROM domain_files) t";

const IS_UNPROVEN: &str =
    "SELECT COUNT(*) FROM domain_claims WHERE account_id = $1 AND host = $2 AND state = 'unproven'";

type Row = (String, String, Option<String>, Option<String>);

/// The short domains of an account with their files, its first one first.
pub async fn list_of(conn: &mut Conn, account: AccountId) -> Result<Vec<ShortDomain>, StoreError> {
    let domains = accounts::list_domains(conn, account).await?;
    let rows: Vec<Row> = fetch_all!(conn, FILES_OF, account.as_str())?;
    with_files(domains, rows)
}

/// The short domains of every account with their files.
pub async fn list_all(conn: &mut Conn) -> Result<Vec<ShortDomain>, StoreError> {
    let domains = accounts::list_all_domains(conn).await?;
    let rows: Vec<Row> = fetch_all!(conn, ALL_FILES)?;
    with_files(domains, rows)
}

/// The files of a short domain of an account; `None`: nothing was set.
pub async fn find(
    conn: &mut Conn,
    account: AccountId,
    host: &Host,
) -> Result<Option<DomainFiles>, StoreError> {
    let row: Option<Row> = fetch_optional!(conn, FIND, account.as_str(), host.as_str())?;
    Ok(row.map(files).transpose()?.map(|(_, files)| files))
}

/// Stores the files of a short domain, which is the account's; those of a domain without settings are removed.
pub async fn put(
    tx: &mut Tx,
    account: AccountId,
    host: &Host,
    files: &DomainFiles,
) -> Result<(), StoreError> {
    if files.is_default() {
        return delete(tx, account, host).await;
    }
    execute!(
        &mut **tx,
        PUT,
        account.as_str(),
        host.as_str(),
        files.robots.as_str(),
        files.asset_links.as_ref().map(JsonFile::as_str),
        files.apple_app_site_association.as_ref().map(JsonFile::as_str)
    )?;
    Ok(())
}

/// Removes the files of a short domain of an account.
pub async fn delete(tx: &mut Tx, account: AccountId, host: &Host) -> Result<(), StoreError> {
    execute!(&mut **tx, DELETE, account.as_str(), host.as_str())?;
    Ok(())
}

/// Bytes of the JSON files of an account's short domains, and of those of all accounts.
pub async fn stored_bytes(conn: &mut Conn, account: AccountId) -> Result<(i64, i64), StoreError> {
    let stored: (i64, i64) = fetch_one!(conn, STORED, account.as_str())?;
    Ok(stored)
}

/// Whether the proof of a short domain that an account has claimed is gone: no links are made on it then.
pub async fn is_unproven(conn: &mut Conn, account: AccountId, host: &Host) -> Result<bool, StoreError> {
    let (count,): (i64,) = fetch_one!(conn, IS_UNPROVEN, account.as_str(), host.as_str())?;
    Ok(count > 0)
}

fn files((host, robots, asset_links, app_site): Row) -> Result<(String, DomainFiles), StoreError> {
    let files = DomainFiles {
        robots: parse("robots", &robots)?,
        asset_links: asset_links.map(JsonFile::stored),
        apple_app_site_association: app_site.map(JsonFile::stored),
    };
    Ok((host, files))
}

fn with_files(mut domains: Vec<ShortDomain>, rows: Vec<Row>) -> Result<Vec<ShortDomain>, StoreError> {
    let mut found = rows.into_iter().map(files).collect::<Result<HashMap<String, DomainFiles>, _>>()?;
    for domain in &mut domains {
        domain.files = found.remove(domain.host.as_str()).map(Arc::new);
    }
    Ok(domains)
}
