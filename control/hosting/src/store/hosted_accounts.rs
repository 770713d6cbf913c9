//! Accounts as the platform operator sees them.

use shared::{id::AccountId, time::UnixMillis};

use super::{Conn, StoreError, Tx, execute, fetch_all, fetch_optional, parse};
use crate::domain::{
    hosted_account::{HostedAccount, Suspension},
    page::PageRequest,
};

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT a.id, a.name, a.created_at, a.seq, w.reason, w.author, w.created_at AS since FROM accounts a \
             LEFT JOIN withheld w ON w.kind = 'account' AND w.subject = a.id WHERE ",
            $rest
        )
    };
}

const FIND: &str = select!("a.id = $1");
const ASCENDING: &str = select!("(a.created_at, a.seq) > ($1, $2) ORDER BY a.created_at, a.seq LIMIT $3");
const DESCENDING: &str =
    select!("(a.created_at, a.seq) < ($1, $2) ORDER BY a.created_at DESC, a.seq DESC LIMIT $3");
const SET_SUSPENDED: &str = "UPDATE accounts SET suspended_at = $2 WHERE id = $1";

#[derive(sqlx::FromRow)]
struct Row {
    id: String,
    name: String,
    created_at: i64,
    seq: i64,
    reason: Option<String>,
    author: Option<String>,
    since: Option<i64>,
}

impl TryFrom<Row> for HostedAccount {
    type Error = StoreError;

    fn try_from(row: Row) -> Result<Self, StoreError> {
        let suspension = match (row.reason, row.author, row.since) {
            (Some(reason), Some(author), Some(since)) => {
                Some(Suspension { reason, author, since: UnixMillis(since) })
            }
            _ => None,
        };
        let id = parse("id", &row.id)?;
        let created_at = UnixMillis(row.created_at);
        Ok(Self { id, name: row.name, created_at, seq: row.seq, suspension })
    }
}

/// An account.
pub async fn find(conn: &mut Conn, id: AccountId) -> Result<Option<HostedAccount>, StoreError> {
    let row: Option<Row> = fetch_optional!(conn, FIND, id.as_str())?;
    row.map(HostedAccount::try_from).transpose()
}

/// A page of all accounts, with one more to know whether another follows.
pub async fn list(conn: &mut Conn, page: PageRequest) -> Result<Vec<HostedAccount>, StoreError> {
    let sql = if page.is_ascending() { ASCENDING } else { DESCENDING };
    let (at, seq) = page.start();
    let rows: Vec<Row> = fetch_all!(conn, sql, at, seq, i64::from(page.limit()))?;
    rows.into_iter().map(HostedAccount::try_from).collect()
}

/// Notes since when an account is suspended; `None` when it is in service again.
pub async fn set_suspended(tx: &mut Tx, id: AccountId, since: Option<UnixMillis>) -> Result<(), StoreError> {
    execute!(&mut **tx, SET_SUSPENDED, id.as_str(), since.map(|at| at.0))?;
    Ok(())
}
