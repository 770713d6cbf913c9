//! Deleted redirections: their rows stay as tombstones, so that no short id is given out twice.

use shared::id::AccountId;

use super::Row;
use crate::{
    domain::redirection::Redirection,
    store::{Conn, StoreError, Tx, execute, fetch_optional, redirection_columns::redirection_columns},
};

const FIND_DELETED: &str = concat!(
    "SELECT ",
    redirection_columns!("r."),
    ", d.scheme, d.case_sensitive, d.digital_links, d.paths, t.name AS thng_name, t.commission_state, t.verdict FROM redirections r \
     JOIN short_domains d ON d.host = r.domain LEFT JOIN thngs t ON t.id = r.thng_id \
     WHERE r.domain = $1 AND r.folded = $2 AND r.account_id = $3 AND r.deleted_rev IS NOT NULL"
);
const REVIVE: &str = "UPDATE redirections SET deleted_rev = NULL \
    WHERE domain = $1 AND folded = $2 AND account_id = $3 AND deleted_rev IS NOT NULL";

/// What is left of a deleted redirection of an account: all but its descriptive fields.
pub async fn find_deleted(
    conn: &mut Conn,
    domain: &str,
    folded: &str,
    account: AccountId,
) -> Result<Option<Redirection>, StoreError> {
    let row: Option<Row> = fetch_optional!(conn, FIND_DELETED, domain, folded, account.as_str())?;
    row.map(Redirection::try_from).transpose()
}

/// Makes a deleted redirection of an account one that [`update`](super::update) writes; returns how many there were.
pub async fn revive(tx: &mut Tx, domain: &str, folded: &str, account: AccountId) -> Result<u64, StoreError> {
    Ok(execute!(&mut **tx, REVIVE, domain, folded, account.as_str())?)
}
