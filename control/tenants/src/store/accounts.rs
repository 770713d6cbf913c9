//! Accounts, their short domains and their operators.

use shared::{
    domain_paths::DomainPaths,
    id::{AccountId, OperatorId},
    short_url::ShortDomain,
    time::UnixMillis,
};
use sqlx::types::Json;

use super::{Conn, StoreError, Tx, dialect, execute, fetch_all, fetch_optional, parse, quota_limits};
use crate::domain::access::UserRights;

const INSERT: &str =
    "INSERT INTO accounts (id, name, enterprise, created_at, updated_at) VALUES ($1, $2, $3, $4, $4)";
const SET_USER_RIGHTS: &str = "UPDATE accounts SET user_rights = $2 WHERE id = $1";
const FIRST: &str = "SELECT id FROM accounts ORDER BY seq LIMIT 1";
const IDS: &str = "SELECT id FROM accounts ORDER BY created_at, id";
// Beside the shared locks that rows of the account take by their foreign keys.
const PG_LOCK: &str = "SELECT id FROM accounts WHERE id = $1 FOR NO KEY UPDATE";
const LOCK: &str = "SELECT id FROM accounts WHERE id = $1";
const EXISTS: &str = "SELECT 1 FROM accounts WHERE id = $1";
const IS_SUSPENDED: &str = "SELECT 1 FROM accounts WHERE id = $1 AND suspended_at IS NOT NULL";
const INSERT_OPERATOR: &str = "INSERT INTO operators (id, account_id, email, first_name, last_name, created_at, \
    updated_at) VALUES ($1, $2, $3, $4, $5, $6, $6)";
const FIRST_OWNER: &str = "SELECT id, account_id FROM operators WHERE ',' || roles || ',' LIKE '%,owner,%' \
    AND projects IS NULL AND invitation IS NULL ORDER BY seq LIMIT 1";
const INSERT_DOMAIN: &str = "INSERT INTO short_domains (host, account_id, position, scheme, case_sensitive) \
    VALUES ($1, $2, (SELECT COALESCE(MAX(position) + 1, 0) FROM short_domains WHERE account_id = $2), $3, $4)";
const DOMAINS_OF: &str = "SELECT d.host, d.scheme, d.case_sensitive, d.account_id, a.personal_data, d.redirect_max_age, \
    d.digital_links, d.paths FROM short_domains d JOIN accounts a ON a.id = d.account_id WHERE d.account_id = $1 \
    ORDER BY d.position, d.host";
const PUT_FIRST: &str = "UPDATE short_domains SET position = (SELECT MIN(position) - 1 FROM short_domains \
    WHERE account_id = $1) WHERE account_id = $1 AND host = $2";
const ALL_DOMAINS: &str = "SELECT d.host, d.scheme, d.case_sensitive, d.account_id, a.personal_data, d.redirect_max_age, \
    d.digital_links, d.paths FROM short_domains d JOIN accounts a ON a.id = d.account_id ORDER BY d.host";
const DOMAINS_IN_ORDER: &str = "SELECT d.host, d.scheme, d.case_sensitive, d.account_id, a.personal_data, d.redirect_max_age, \
    d.digital_links, d.paths FROM short_domains d JOIN accounts a ON a.id = d.account_id \
    ORDER BY d.account_id, d.position, d.host";
const DOMAIN: &str = "SELECT d.host, d.scheme, d.case_sensitive, d.account_id, a.personal_data, d.redirect_max_age, \
    d.digital_links, d.paths FROM short_domains d JOIN accounts a ON a.id = d.account_id WHERE d.host = $1";

// Only without codes, because printed codes must stay valid: a deleted short id keeps its row.
const CHANGE_DOMAIN: &str = "UPDATE short_domains SET scheme = $3, case_sensitive = $4 WHERE host = $1 \
    AND account_id = $2 AND NOT EXISTS (SELECT 1 FROM redirections WHERE domain = $1)";

const SET_SETTINGS: &str = "UPDATE short_domains SET redirect_max_age = $3, digital_links = $4, paths = $5 WHERE host = $1 \
    AND account_id = $2";

type DomainRow = (String, String, bool, String, String, Option<i64>, bool, Option<Json<DomainPaths>>);

/// Adds an account.
pub async fn insert(
    tx: &mut Tx,
    id: AccountId,
    name: &str,
    enterprise: bool,
    at_ms: i64,
) -> Result<(), StoreError> {
    execute!(&mut **tx, INSERT, id.as_str(), name, enterprise, at_ms)?;
    quota_limits::begin_account(tx, id, UnixMillis(at_ms)).await
}

/// Sets what users of an account's applications may do.
pub async fn set_user_rights(tx: &mut Tx, id: AccountId, rights: UserRights) -> Result<(), StoreError> {
    execute!(&mut **tx, SET_USER_RIGHTS, id.as_str(), rights.as_str())?;
    Ok(())
}

/// Locks an account until the transaction ends, for checks that two concurrent requests could otherwise both pass,
/// such as the number of something.
pub async fn lock(tx: &mut Tx, account: AccountId) -> Result<(), StoreError> {
    let sql = dialect::pick(tx, PG_LOCK, LOCK);
    let _: Option<(String,)> = fetch_optional!(&mut **tx, sql, account.as_str())?;
    Ok(())
}

/// The first account, if there is one.
pub async fn find_first(conn: &mut Conn) -> Result<Option<AccountId>, StoreError> {
    let row: Option<(String,)> = fetch_optional!(conn, FIRST)?;
    row.map(|(id,)| parse("id", &id)).transpose()
}

/// The ids of all accounts, oldest first.
pub async fn list_ids(conn: &mut Conn) -> Result<Vec<AccountId>, StoreError> {
    let rows: Vec<(String,)> = fetch_all!(conn, IDS)?;
    rows.iter().map(|(id,)| parse("id", id)).collect()
}

/// Whether there is such an account.
pub async fn exists(conn: &mut Conn, id: AccountId) -> Result<bool, StoreError> {
    let row: Option<(i32,)> = fetch_optional!(conn, EXISTS, id.as_str())?;
    Ok(row.is_some())
}

/// Whether an account is suspended by the platform operator.
pub async fn is_suspended(conn: &mut Conn, id: AccountId) -> Result<bool, StoreError> {
    let row: Option<(i32,)> = fetch_optional!(conn, IS_SUSPENDED, id.as_str())?;
    Ok(row.is_some())
}

/// Adds an operator who may do everything.
pub async fn insert_operator(
    tx: &mut Tx,
    id: OperatorId,
    account: AccountId,
    email: &str,
    names: (&str, &str),
    at_ms: i64,
) -> Result<(), StoreError> {
    execute!(&mut **tx, INSERT_OPERATOR, id.as_str(), account.as_str(), email, names.0, names.1, at_ms)?;
    Ok(())
}

/// The first operator who may do everything, with its account.
pub async fn find_first_owner(conn: &mut Conn) -> Result<Option<(OperatorId, AccountId)>, StoreError> {
    let row: Option<(String, String)> = fetch_optional!(conn, FIRST_OWNER)?;
    row.map(|(id, account)| Ok((parse("id", &id)?, parse("account_id", &account)?))).transpose()
}

/// Changes scheme and case of a short domain of an account; whether it did: not once a code was created on it.
pub async fn change_domain(
    tx: &mut Tx,
    account: AccountId,
    domain: &ShortDomain,
) -> Result<bool, StoreError> {
    let changed = execute!(
        &mut **tx,
        CHANGE_DOMAIN,
        domain.host.as_str(),
        account.as_str(),
        domain.scheme.as_str(),
        domain.case_sensitive
    )?;
    Ok(changed == 1)
}

/// Adds a short domain behind those that the account has.
///
/// # Errors
/// [`StoreError::Unique`] when some account has the host.
pub async fn insert_domain(tx: &mut Tx, account: AccountId, domain: &ShortDomain) -> Result<(), StoreError> {
    execute!(
        &mut **tx,
        INSERT_DOMAIN,
        domain.host.as_str(),
        account.as_str(),
        domain.scheme.as_str(),
        domain.case_sensitive
    )?;
    Ok(())
}

/// Makes a short domain the first one of its account: codes without a named domain are created on it.
pub async fn put_first(tx: &mut Tx, account: AccountId, domain: &ShortDomain) -> Result<(), StoreError> {
    execute!(&mut **tx, PUT_FIRST, account.as_str(), domain.host.as_str())?;
    Ok(())
}

/// Sets how long redirects of a short domain of an account may be kept, whether it resolves Digital Links, and its paths; whether
/// it has the domain.
pub async fn set_settings(tx: &mut Tx, account: AccountId, domain: &ShortDomain) -> Result<bool, StoreError> {
    let changed = execute!(
        &mut **tx,
        SET_SETTINGS,
        domain.host.as_str(),
        account.as_str(),
        domain.redirect_max_age.map(i64::from),
        domain.digital_links,
        (!domain.paths.is_default()).then_some(Json(&domain.paths))
    )?;
    Ok(changed == 1)
}

/// The short domains of an account, its first one first.
pub async fn list_domains(conn: &mut Conn, account: AccountId) -> Result<Vec<ShortDomain>, StoreError> {
    let rows: Vec<DomainRow> = fetch_all!(conn, DOMAINS_OF, account.as_str())?;
    rows.into_iter().map(domain).collect()
}

/// The short domains of every account.
pub async fn list_all_domains(conn: &mut Conn) -> Result<Vec<ShortDomain>, StoreError> {
    let rows: Vec<DomainRow> = fetch_all!(conn, ALL_DOMAINS)?;
    rows.into_iter().map(domain).collect()
}

/// The short domains of every account, those of one in the order of [`list_domains`].
pub async fn list_domains_in_order(conn: &mut Conn) -> Result<Vec<ShortDomain>, StoreError> {
    let rows: Vec<DomainRow> = fetch_all!(conn, DOMAINS_IN_ORDER)?;
    rows.into_iter().map(domain).collect()
}

/// The short domain of a host, whichever account has it.
pub async fn find_domain(conn: &mut Conn, host: &str) -> Result<Option<ShortDomain>, StoreError> {
    let row: Option<DomainRow> = fetch_optional!(conn, DOMAIN, host)?;
    row.map(domain).transpose()
}

fn domain(
    (host, scheme, case_sensitive, account, personal_data, redirect_max_age, digital_links, paths): DomainRow,
) -> Result<ShortDomain, StoreError> {
    Ok(ShortDomain {
        host: parse("host", &host)?,
        scheme: parse("scheme", &scheme)?,
        case_sensitive,
        account: Some(parse("account_id", &account)?),
        personal_data: Some(parse("personal_data", &personal_data)?),
        redirect_max_age: redirect_max_age.map(redirect_age).transpose()?,
        digital_links,
        files: None,
        removed: false,
        pages: None,
        paths: paths.map(|paths| paths.0).unwrap_or_default(),
    })
}

fn redirect_age(seconds: i64) -> Result<u32, StoreError> {
    u32::try_from(seconds).map_err(|_| StoreError::Row(format!("redirect_max_age: {seconds}")))
}
