//! The table of tries with an address; the subject is a keyed hash of what is tried, project and address.

use shared::{id::AccountId, time::UnixMillis};

use super::{StoreError, Tx, dialect, dialect::unsigned, execute, fetch_optional};
use crate::domain::attempts::Attempts;

const OPEN: &str = "INSERT INTO user_attempts (subject, account_id, count, until, last_at) \
    VALUES ($1, $2, 0, 0, $3) ON CONFLICT (subject) DO NOTHING";
const FIND: &str = "SELECT count, until, last_at FROM user_attempts WHERE subject = $1";
const PG_FIND_LOCKED: &str = "SELECT count, until, last_at FROM user_attempts WHERE subject = $1 FOR UPDATE";
const UPDATE: &str = "UPDATE user_attempts SET count = $2, until = $3, last_at = $4 WHERE subject = $1";
const DELETE: &str = "DELETE FROM user_attempts WHERE subject = $1";
const PURGE: &str = "DELETE FROM user_attempts WHERE subject IN \
    (SELECT subject FROM user_attempts WHERE last_at <= $1 ORDER BY last_at, subject LIMIT $2)";

/// The tries of a subject, which nobody else changes until the transaction ends.
pub async fn open(
    tx: &mut Tx,
    subject: &[u8; 32],
    account: AccountId,
    now: UnixMillis,
) -> Result<Attempts, StoreError> {
    execute!(&mut **tx, OPEN, &subject[..], account.as_str(), now.0)?;
    let sql = dialect::pick(tx, PG_FIND_LOCKED, FIND);
    // It is gone if its owner logged in a moment ago: then this try is the first, and is not counted.
    let row: Option<(i64, i64, i64)> = fetch_optional!(&mut **tx, sql, &subject[..])?;
    Ok(row.map_or_else(Attempts::default, |(count, until, last_at)| Attempts {
        count: u32::try_from(unsigned(count)).unwrap_or(u32::MAX),
        until: UnixMillis(until),
        last_at: UnixMillis(last_at),
    }))
}

/// Writes the tries of a subject that [`open`] gave, changed.
pub async fn update(tx: &mut Tx, subject: &[u8; 32], attempts: Attempts) -> Result<(), StoreError> {
    execute!(
        &mut **tx,
        UPDATE,
        &subject[..],
        i64::from(attempts.count),
        attempts.until.0,
        attempts.last_at.0
    )?;
    Ok(())
}

/// Forgets the tries of a subject.
pub async fn delete(tx: &mut Tx, subject: &[u8; 32]) -> Result<(), StoreError> {
    execute!(&mut **tx, DELETE, &subject[..])?;
    Ok(())
}

/// Removes some subjects without a try since `before`; returns how many.
pub async fn purge(tx: &mut Tx, before: UnixMillis, limit: u32) -> Result<u64, StoreError> {
    tx.purge(PURGE, before, limit).await
}
