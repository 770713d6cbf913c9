//! How far the links that older releases made have their search terms.

use super::{Conn, StoreError, Tx, dialect, execute, on_db};

const IS_DONE: &str = "SELECT done FROM redirection_fill WHERE id = 1";
const FIND: &str = "SELECT after FROM redirection_fill WHERE id = 1 AND NOT done";
const PG_LOCK: &str = "SELECT after FROM redirection_fill WHERE id = 1 AND NOT done FOR UPDATE SKIP LOCKED";
const SET: &str = "UPDATE redirection_fill SET after = $1, done = $2 WHERE id = 1";
// A replica of an older release may have made some since. Positions are taken in the order of commits.
const OPEN: &str = "UPDATE redirection_fill SET done = false WHERE id = 1 AND done \
    AND EXISTS (SELECT 1 FROM redirections WHERE seq > after)";
const NEXT: &str = "SELECT MIN(seq) FROM redirections WHERE seq > $1";
const LAST: &str = "SELECT MAX(seq) FROM redirections WHERE seq < $1";

/// The state of the fill, for a process that wants to do a step of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Links behind this position may have no terms. It is locked until the transaction ends.
    After(i64),
    /// Another process does a step right now.
    Locked,
    /// Every link has its terms.
    Done,
}

/// Looks at the links that are newer than the last look, because a process of an older release may have made some.
pub async fn open(tx: &mut Tx) -> Result<(), StoreError> {
    execute!(&mut **tx, OPEN)?;
    Ok(())
}

/// Whether every link has its terms.
pub async fn is_done(conn: &mut Conn) -> Result<bool, StoreError> {
    Ok(on_db!(conn, |c| sqlx::query_scalar(IS_DONE).fetch_one(c).await)?)
}

/// Locks the position until the transaction ends, unless another process has locked it: it does not wait.
pub async fn lock(tx: &mut Tx) -> Result<Progress, StoreError> {
    let sql = dialect::pick(tx, PG_LOCK, FIND);
    let after: Option<i64> = on_db!(&mut **tx, |c| sqlx::query_scalar(sql).fetch_optional(c).await)?;
    if let Some(after) = after {
        return Ok(Progress::After(after));
    }
    Ok(if is_done(tx).await? { Progress::Done } else { Progress::Locked })
}

/// The position of the next link behind one, of any account.
pub async fn find_next(tx: &mut Tx, after: i64) -> Result<Option<i64>, StoreError> {
    Ok(on_db!(&mut **tx, |c| sqlx::query_scalar(NEXT).bind(after).fetch_one(c).await)?)
}

/// The position of the last link before one, of any account.
pub async fn find_last(tx: &mut Tx, before: i64) -> Result<Option<i64>, StoreError> {
    Ok(on_db!(&mut **tx, |c| sqlx::query_scalar(LAST).bind(before).fetch_one(c).await)?)
}

/// Notes how far it is, and whether no link is left.
pub async fn set(tx: &mut Tx, after: i64, done: bool) -> Result<(), StoreError> {
    execute!(&mut **tx, SET, after, done)?;
    Ok(())
}
