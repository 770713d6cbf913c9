//! Mails that wait. `due_at` is when the next try may begin; a claim moves it by the lease, on the database's clock.

use std::time::Duration;

use shared::id::AccountId;

use super::{
    Conn, StoreError, Tx, execute, fetch_one, fetch_optional,
    lease::{Timed, milliseconds, timed, timed_lock},
};

macro_rules! insert {
    ($now:expr) => {
        concat!(
            "INSERT INTO mails (id, account_id, sealed, tries, due_at, created_at) VALUES ($1, $2, $3, 0, ",
            $now,
            ", ",
            $now,
            ")"
        )
    };
}
macro_rules! is_due {
    ($now:expr) => {
        concat!(
            "SELECT COUNT(*) FROM (SELECT 1 AS one FROM mails m WHERE m.due_at <= ",
            $now,
            " AND m.created_at <= ",
            $now,
            " - $1 LIMIT 1) t"
        )
    };
}
// Of the accounts whose mails are due, the one that was served longest ago.
macro_rules! turn {
    ($now:expr, $lock:expr) => {
        concat!(
            "UPDATE mail_turns SET turn = (SELECT MAX(turn) + 1 FROM mail_turns) WHERE account_id = \
             (SELECT t.account_id FROM mail_turns t WHERE EXISTS (SELECT 1 FROM mails m \
             WHERE COALESCE(m.account_id, '') = t.account_id AND m.due_at <= ",
            $now,
            " AND m.created_at <= ",
            $now,
            " - $1) ORDER BY t.turn, t.account_id LIMIT 1",
            $lock,
            ") RETURNING account_id"
        )
    };
}
macro_rules! claim {
    ($now:expr, $lock:expr) => {
        concat!(
            "UPDATE mails SET tries = tries + 1, due_at = ",
            $now,
            " + $2 WHERE seq = (SELECT m.seq FROM mails m WHERE COALESCE(m.account_id, '') = $1 AND m.due_at <= ",
            $now,
            " AND m.created_at <= ",
            $now,
            " - $3 ORDER BY m.due_at, m.seq LIMIT 1",
            $lock,
            ") RETURNING id, sealed, tries, ",
            $now,
            " - created_at"
        )
    };
}
// A release before this one gives no turns.
macro_rules! open_missing {
    ($now:expr) => {
        concat!(
            "INSERT INTO mail_turns (account_id, turn) SELECT DISTINCT COALESCE(m.account_id, ''), 0 FROM mails m \
             WHERE m.due_at <= ",
            $now,
            " ON CONFLICT (account_id) DO NOTHING"
        )
    };
}
macro_rules! postpone {
    ($now:expr) => {
        concat!("UPDATE mails SET due_at = ", $now, " + $3 WHERE id = $1 AND tries = $2")
    };
}

const INSERT: Timed = timed!(insert);
const IS_DUE: Timed = timed!(is_due);
const OPEN: &str =
    "INSERT INTO mail_turns (account_id, turn) VALUES ($1, 0) ON CONFLICT (account_id) DO NOTHING";
const OPEN_MISSING: Timed = timed!(open_missing);
const TURN: Timed = timed_lock!(turn, " FOR UPDATE SKIP LOCKED");
const CLAIM: Timed = timed_lock!(claim, " FOR UPDATE SKIP LOCKED");
const POSTPONE: Timed = timed!(postpone);
const DELETE: &str = "DELETE FROM mails WHERE id = $1 AND tries = $2";

/// A mail in the hands of a worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// Its id.
    pub id: String,
    /// The mail, encrypted.
    pub sealed: Vec<u8>,
    /// How often it was claimed, this time included; whoever claimed it last may end it.
    pub tries: i64,
    /// How long it waits.
    pub age: Duration,
}

/// Adds a mail that may be sent at once.
pub async fn insert(
    tx: &mut Tx,
    id: &str,
    account: Option<AccountId>,
    sealed: &[u8],
) -> Result<(), StoreError> {
    let sql = INSERT.of(tx);
    execute!(&mut **tx, sql, id, account.as_ref().map(AccountId::as_str), sealed)?;
    let whose = account.as_ref().map_or("", AccountId::as_str);
    execute!(&mut **tx, OPEN, whose)?;
    Ok(())
}

/// Whether there is a mail of some age to claim.
pub async fn is_due(conn: &mut Conn, least_age: Duration) -> Result<bool, StoreError> {
    let sql = IS_DUE.of(conn);
    let (found,): (i64,) = fetch_one!(conn, sql, milliseconds(least_age))?;
    Ok(found > 0)
}

/// Claims mails of some age for the length of a lease, one of each account in turn, of each those first that wait longest:
/// an account with many mails does not delay those of others.
pub async fn claim(
    tx: &mut Tx,
    limit: u32,
    lease: Duration,
    least_age: Duration,
) -> Result<Vec<Claimed>, StoreError> {
    let mut claimed = Vec::new();
    for _ in 0..limit {
        let Some(account) = take_turn(tx, least_age).await? else { break };
        claimed.extend(claim_of(tx, &account, lease, least_age).await?);
    }
    if claimed.is_empty() {
        let sql = OPEN_MISSING.of(tx);
        execute!(&mut **tx, sql)?;
    }
    Ok(claimed)
}

async fn take_turn(tx: &mut Tx, least_age: Duration) -> Result<Option<String>, StoreError> {
    let sql = TURN.of(tx);
    let row: Option<(String,)> = fetch_optional!(&mut **tx, sql, milliseconds(least_age))?;
    Ok(row.map(|(account,)| account))
}

/// The next mail of an account; another worker may have been faster.
async fn claim_of(
    tx: &mut Tx,
    account: &str,
    lease: Duration,
    least_age: Duration,
) -> Result<Option<Claimed>, StoreError> {
    let sql = CLAIM.of(tx);
    let row: Option<(String, Vec<u8>, i64, i64)> =
        fetch_optional!(&mut **tx, sql, account, milliseconds(lease), milliseconds(least_age))?;
    Ok(row.map(|(id, sealed, tries, age_ms)| {
        let age = Duration::from_millis(u64::try_from(age_ms).unwrap_or_default());
        Claimed { id, sealed, tries, age }
    }))
}

/// Lets a claimed mail be claimed again after a pause; returns whether it was still held.
pub async fn postpone(tx: &mut Tx, claimed: &Claimed, pause: Duration) -> Result<bool, StoreError> {
    let sql = POSTPONE.of(tx);
    Ok(execute!(&mut **tx, sql, &claimed.id, claimed.tries, milliseconds(pause))? == 1)
}

/// Removes a claimed mail; returns whether it was still held.
pub async fn delete(tx: &mut Tx, claimed: &Claimed) -> Result<bool, StoreError> {
    Ok(execute!(&mut **tx, DELETE, &claimed.id, claimed.tries)? == 1)
}
