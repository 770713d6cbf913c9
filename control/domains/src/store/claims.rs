//! The table of claims.

use kernel::store::{
    Conn, StoreError, Tx, execute, fetch_all, fetch_one, fetch_optional,
    lease::{Timed, timed},
    parse,
};
use shared::{id::AccountId, short_url::Host, time::UnixMillis};

use crate::domain::claim::{Claim, LOST_MS, MAX_AHEAD_MS, State, UNPROVEN_MS};

/// The columns of a claim that every statement reads.
macro_rules! columns {
    () => {
        "c.account_id, c.host, c.token, c.state, c.proof, c.fault, c.created_at, c.verified_at, c.checked_at, \
         c.unproven_since, c.next_check, c.failures, c.ends_at"
    };
}

const FIND: &str =
    concat!("SELECT ", columns!(), " FROM domain_claims c WHERE c.account_id = $1 AND c.host = $2");
const LIST: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM domain_claims c WHERE c.account_id = $1 ORDER BY c.created_at, c.host"
);
// Claims of all accounts. Of suspended ones those that were never proven wait: whoever loses its proof meanwhile loses the domain.
const DUE: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM domain_claims c WHERE (c.next_check <= $1 OR c.next_check > $3) AND (c.state IN ('verified', 'unproven') OR NOT EXISTS (SELECT 1 \
     FROM accounts s WHERE s.id = c.account_id AND s.suspended_at IS NOT NULL)) ORDER BY c.next_check, c.account_id, c.host LIMIT $2"
);
const COUNT: &str = "SELECT COUNT(*), COUNT(CASE WHEN state IN ('pending', 'refused') THEN 1 END) FROM domain_claims \
    WHERE account_id = $1";
// It counts as a check that was asked for: a claim that is removed and made again is no way around the limits of checks.
const INSERT: &str = "INSERT INTO domain_claims (account_id, host, token, state, created_at, asked_at, next_check, ends_at) \
    VALUES ($1, $2, $3, $4, $5, $5, $6, $7)";
const UPDATE: &str = "UPDATE domain_claims SET state = $3, proof = $4, fault = $5, verified_at = $6, checked_at = $7, \
    unproven_since = $8, next_check = $9, failures = $10, token = $11, ends_at = $12, \
    lost_until = CASE WHEN $13 = 1 THEN lost_until END WHERE account_id = $1 AND host = $2";
// Claims of all accounts; also those of suspended ones end.
const ENDED: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM domain_claims c WHERE c.ends_at <= $1 AND c.state IN ('pending', 'refused') \
     ORDER BY c.ends_at, c.account_id, c.host LIMIT $2"
);
// Of all accounts: the bound is that of the host. Without as many claims that were checked later there is no row to change.
const END_SURPLUS: &str = "UPDATE domain_claims SET ends_at = $2 WHERE host = $1 AND asked_at <= $4 AND account_id = \
    (SELECT o.account_id FROM domain_claims o WHERE o.host = $1 AND o.state IN ('pending', 'refused') AND o.ends_at > $2 \
    ORDER BY o.asked_at DESC, o.account_id LIMIT 1 OFFSET $3)";
macro_rules! open_in {
    ($now:expr) => {
        concat!("UPDATE domain_claims SET lost_until = ", $now, " + $3 WHERE account_id = $1 AND host = $2")
    };
}
const OPEN_IN: Timed = timed!(open_in);
// A release before the column left it empty.
macro_rules! is_open {
    ($now:expr) => {
        concat!(
            "SELECT COUNT(*) FROM domain_claims WHERE account_id = $1 AND host = $2 AND state = 'unproven' \
             AND COALESCE(lost_until, unproven_since + $3) <= ",
            $now
        )
    };
}
const IS_OPEN: Timed = timed!(is_open);
const POSTPONE: &str =
    "UPDATE domain_claims SET next_check = $4 WHERE account_id = $1 AND host = $2 AND next_check = $3";
const DELETE: &str = "DELETE FROM domain_claims WHERE account_id = $1 AND host = $2";
const NOTE_ASKED: &str = "UPDATE domain_claims SET asked_at = $3 WHERE account_id = $1 AND host = $2";
const LAST_ASKED: &str = "SELECT asked_at FROM domain_claims WHERE account_id = $1 AND host = $2";
const COUNT_ASKED: &str =
    "SELECT COUNT(*) FROM domain_claims WHERE account_id = $1 AND asked_at > $2 AND asked_at <= $3";

#[derive(sqlx::FromRow)]
struct Row {
    account_id: String,
    host: String,
    token: String,
    state: String,
    proof: Option<String>,
    fault: Option<String>,
    created_at: i64,
    verified_at: Option<i64>,
    checked_at: Option<i64>,
    unproven_since: Option<i64>,
    next_check: Option<i64>,
    failures: i64,
    ends_at: Option<i64>,
}

impl TryFrom<Row> for Claim {
    type Error = StoreError;

    fn try_from(row: Row) -> Result<Self, StoreError> {
        let state: State = parse("state", &row.state)?;
        // A release before the column left it empty.
        let end = row.ends_at.unwrap_or(row.created_at.saturating_add(UNPROVEN_MS));
        let ends_at = match state {
            State::Pending | State::Refused => Some(UnixMillis(end)),
            State::Verified | State::Unproven => None,
        };
        Ok(Self {
            account: parse("account_id", &row.account_id)?,
            host: parse("host", &row.host)?,
            token: row.token,
            state,
            proof: row.proof.as_deref().map(|proof| parse("proof", proof)).transpose()?,
            fault: row.fault,
            created_at: UnixMillis(row.created_at),
            verified_at: row.verified_at.map(UnixMillis),
            checked_at: row.checked_at.map(UnixMillis),
            unproven_since: row.unproven_since.map(UnixMillis),
            next_check: row.next_check.map(UnixMillis),
            failures: u32::try_from(row.failures).unwrap_or(u32::MAX),
            ends_at,
        })
    }
}

/// The claim of an account on a host.
pub async fn find(conn: &mut Conn, account: AccountId, host: &Host) -> Result<Option<Claim>, StoreError> {
    let row: Option<Row> = fetch_optional!(conn, FIND, account.as_str(), host.as_str())?;
    row.map(Claim::try_from).transpose()
}

/// The claims of an account, oldest first.
pub async fn list(conn: &mut Conn, account: AccountId) -> Result<Vec<Claim>, StoreError> {
    let rows: Vec<Row> = fetch_all!(conn, LIST, account.as_str())?;
    rows.into_iter().map(Claim::try_from).collect()
}

/// Up to `limit` claims of all accounts that are to be checked by now, and those whose next check a wrong clock has put off.
pub async fn list_due(conn: &mut Conn, now: UnixMillis, limit: u32) -> Result<Vec<Claim>, StoreError> {
    let latest = now.0.saturating_add(MAX_AHEAD_MS);
    let rows: Vec<Row> = fetch_all!(conn, DUE, now.0, i64::from(limit), latest)?;
    rows.into_iter().map(Claim::try_from).collect()
}

/// Up to `limit` claims of all accounts whose time to be proven is over.
pub async fn list_ended(conn: &mut Conn, now: UnixMillis, limit: u32) -> Result<Vec<Claim>, StoreError> {
    let rows: Vec<Row> = fetch_all!(conn, ENDED, now.0, i64::from(limit))?;
    rows.into_iter().map(Claim::try_from).collect()
}

/// Where more than `most` claims on a host are not proven, lets one end now: that behind the `most` which were checked on request
/// last, if its account asked for its check at `until` or before.
pub async fn end_surplus(
    tx: &mut Tx,
    host: &Host,
    most: u32,
    until: UnixMillis,
    now: UnixMillis,
) -> Result<(), StoreError> {
    execute!(&mut **tx, END_SURPLUS, host.as_str(), now.0, i64::from(most), until.0)?;
    Ok(())
}

/// How many claims an account has, and how many of them were never proven.
pub async fn count(conn: &mut Conn, account: AccountId) -> Result<(u64, u64), StoreError> {
    let (all, unproven): (i64, i64) = fetch_one!(conn, COUNT, account.as_str())?;
    Ok((all.unsigned_abs(), unproven.unsigned_abs()))
}

/// Adds a claim.
///
/// # Errors
/// [`StoreError::Unique`] when the account has claimed the host already.
pub async fn insert(tx: &mut Tx, claim: &Claim) -> Result<(), StoreError> {
    execute!(
        &mut **tx,
        INSERT,
        claim.account.as_str(),
        claim.host.as_str(),
        &claim.token,
        claim.state.as_str(),
        claim.created_at.0,
        claim.next_check.map(|at| at.0),
        claim.ends_at.map(|at| at.0)
    )?;
    Ok(())
}

/// Stores a claim after a check.
pub async fn update(tx: &mut Tx, claim: &Claim) -> Result<(), StoreError> {
    execute!(
        &mut **tx,
        UPDATE,
        claim.account.as_str(),
        claim.host.as_str(),
        claim.state.as_str(),
        claim.proof.map(|proof| proof.as_str()),
        claim.fault.as_deref(),
        claim.verified_at.map(|at| at.0),
        claim.checked_at.map(|at| at.0),
        claim.unproven_since.map(|at| at.0),
        claim.next_check.map(|at| at.0),
        i64::from(claim.failures),
        &claim.token,
        claim.ends_at.map(|at| at.0),
        i64::from(claim.state == State::Unproven)
    )?;
    Ok(())
}

/// Lets other accounts prove the host after so many milliseconds, if its own does not find the proof again.
pub async fn open_in(tx: &mut Tx, account: AccountId, host: &Host, ms: i64) -> Result<(), StoreError> {
    let sql = OPEN_IN.of(tx);
    execute!(&mut **tx, sql, account.as_str(), host.as_str(), ms)?;
    Ok(())
}

/// Whether other accounts can prove the host of a claim.
pub async fn is_open(conn: &mut Conn, account: AccountId, host: &Host) -> Result<bool, StoreError> {
    let sql = IS_OPEN.of(conn);
    let (count,): (i64,) = fetch_one!(conn, sql, account.as_str(), host.as_str(), LOST_MS)?;
    Ok(count > 0)
}

/// Takes a claim that is due, by putting its next check off; `false`: another worker has taken it, or it is gone.
pub async fn postpone(tx: &mut Tx, claim: &Claim, to: UnixMillis) -> Result<bool, StoreError> {
    let changed = execute!(
        &mut **tx,
        POSTPONE,
        claim.account.as_str(),
        claim.host.as_str(),
        claim.next_check.map(|at| at.0),
        to.0
    )?;
    Ok(changed == 1)
}

/// Removes a claim; whether there was one.
pub async fn delete(tx: &mut Tx, account: AccountId, host: &Host) -> Result<bool, StoreError> {
    let removed = execute!(&mut **tx, DELETE, account.as_str(), host.as_str())?;
    Ok(removed == 1)
}

/// Notes that somebody asked for a check.
pub async fn note_asked(
    tx: &mut Tx,
    account: AccountId,
    host: &Host,
    now: UnixMillis,
) -> Result<(), StoreError> {
    execute!(&mut **tx, NOTE_ASKED, account.as_str(), host.as_str(), now.0)?;
    Ok(())
}

/// When an account last asked for a check of a host that it has claimed, or claimed it.
pub async fn last_asked(conn: &mut Conn, account: AccountId, host: &Host) -> Result<UnixMillis, StoreError> {
    let (at,): (i64,) = fetch_one!(conn, LAST_ASKED, account.as_str(), host.as_str())?;
    Ok(UnixMillis(at))
}

/// Of how many hosts an account has asked for a check between two times.
pub async fn count_asked(
    conn: &mut Conn,
    account: AccountId,
    since: UnixMillis,
    until: UnixMillis,
) -> Result<i64, StoreError> {
    let (count,): (i64,) = fetch_one!(conn, COUNT_ASKED, account.as_str(), since.0, until.0)?;
    Ok(count)
}
