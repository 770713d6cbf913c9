//! How far the links that older releases made have their words.

use super::{StoreError, Tx, dialect, on_db};

const FIND: &str = "SELECT after FROM redirection_fill WHERE id = 1 AND NOT done";
const PG_LOCK: &str = "SELECT after FROM redirection_fill WHERE id = 1 AND NOT done FOR UPDATE";
const SET: &str = "UPDATE redirection_fill SET after = $1, done = $2 WHERE id = 1";
// A replica of an older release may have made some since. Positions are taken in the order of commits.
const OPEN: &str = "UPDATE redirection_fill SET done = false WHERE id = 1 AND done \
    AND EXISTS (SELECT 1 FROM redirections WHERE seq > after)";
const NEXT: &str = "SELECT MIN(seq) FROM redirections WHERE seq > $1";
const LAST: &str = "SELECT MAX(seq) FROM redirections WHERE seq < $1";

/// Looks at the links that are newer than the last look, because a process of an older release may have made some.
pub async fn open(tx: &mut Tx) -> Result<(), StoreError> {
    on_db!(&mut **tx, |c| sqlx::query(OPEN).execute(c).await.map(|_| ()))?;
    Ok(())
}

/// The position behind which links may have no words, locked until the transaction ends; `None` when all have some.
pub async fn lock(tx: &mut Tx) -> Result<Option<i64>, StoreError> {
    let sql = dialect::lock_row(tx, PG_LOCK, FIND);
    Ok(on_db!(&mut **tx, |c| sqlx::query_scalar(sql).fetch_optional(c).await)?)
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
    on_db!(&mut **tx, |c| sqlx::query(SET).bind(after).bind(done).execute(c).await.map(|_| ()))?;
    Ok(())
}
