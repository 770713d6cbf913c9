//! Applications that were deleted and whose users are still to be removed.

use shared::{
    id::{AccountId, ApplicationId},
    time::UnixMillis,
};

use super::{StoreError, Tx, dialect, execute, fetch_optional, parse};

const INSERT: &str =
    "INSERT INTO removed_applications (app_id, account_id, users, created_at) VALUES ($1, $2, $3, $4)";
// Of whatever account: a worker asks. It holds the row until its step is committed.
const PG_NEXT: &str = "SELECT account_id, app_id FROM removed_applications ORDER BY app_id LIMIT 1 \
    FOR UPDATE SKIP LOCKED";
const NEXT: &str = "SELECT account_id, app_id FROM removed_applications ORDER BY app_id LIMIT 1";
const COUNT: &str = "UPDATE removed_applications SET users = users + $3 WHERE account_id = $1 AND app_id = $2 RETURNING users";
const DELETE: &str = "DELETE FROM removed_applications WHERE account_id = $1 AND app_id = $2";

/// Notes that users of an application are left, of which `users` were removed.
pub async fn insert(
    tx: &mut Tx,
    account: AccountId,
    app: ApplicationId,
    users: u32,
    now: UnixMillis,
) -> Result<(), StoreError> {
    execute!(&mut **tx, INSERT, app.as_str(), account.as_str(), i64::from(users), now.0)?;
    Ok(())
}

/// One that nobody works on. On Postgres nobody else does until the transaction ends.
pub async fn find_next(tx: &mut Tx) -> Result<Option<(AccountId, ApplicationId)>, StoreError> {
    let sql = dialect::pick(tx, PG_NEXT, NEXT);
    let row: Option<(String, String)> = fetch_optional!(&mut **tx, sql)?;
    row.map(|(account, app)| Ok((parse("account_id", &account)?, parse("app_id", &app)?))).transpose()
}

/// Counts users that were removed; returns how many there were in all.
pub async fn count(
    tx: &mut Tx,
    account: AccountId,
    app: ApplicationId,
    users: u32,
) -> Result<i64, StoreError> {
    let row: Option<(i64,)> =
        fetch_optional!(&mut **tx, COUNT, account.as_str(), app.as_str(), i64::from(users))?;
    Ok(row.map_or(0, |(users,)| users))
}

/// Forgets an application of which nothing is left.
pub async fn delete(tx: &mut Tx, account: AccountId, app: ApplicationId) -> Result<(), StoreError> {
    execute!(&mut **tx, DELETE, account.as_str(), app.as_str())?;
    Ok(())
}
