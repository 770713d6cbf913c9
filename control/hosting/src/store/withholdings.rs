//! The table of what is withheld, as the platform operator writes it.

use shared::{id::AccountId, time::UnixMillis, withheld::Withheld};

use super::{
    Conn, StoreError, Tx,
    dialect::unsigned,
    execute, fetch_all, fetch_one, fetch_optional,
    lease::{Timed, timed},
    parse,
    withheld::{columns, of_columns},
};
use crate::domain::{page::PageRequest, platform_take_down::PlatformTakeDown};

macro_rules! select {
    ($rest:expr) => {
        concat!(
            "SELECT seq, kind, subject, account_id, reason, author, created_at, ends_at FROM withheld WHERE ",
            $rest
        )
    };
}
// By the clock of the database: one replica whose clock is ahead must not end anything early. Kinds of a newer release are
// left to it.
macro_rules! over {
    ($now:expr) => {
        select!(concat!("kind IN ('link', 'host') AND ends_at <= ", $now, " ORDER BY ends_at, seq LIMIT $1"))
    };
}
macro_rules! find_over {
    ($now:expr) => {
        select!(concat!("kind = $1 AND subject = $2 AND ends_at <= ", $now))
    };
}

const PUT: &str = "INSERT INTO withheld (kind, subject, account_id, reason, author, created_at, ends_at) \
    VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (kind, subject) DO UPDATE SET reason = excluded.reason, \
    author = excluded.author, ends_at = excluded.ends_at";
const FIND: &str = select!("kind = $1 AND subject = $2");
const DELETE: &str = "DELETE FROM withheld WHERE kind = $1 AND subject = $2";
const ASCENDING: &str =
    select!("kind IN ('link', 'host') AND (created_at, seq) > ($1, $2) ORDER BY created_at, seq LIMIT $3");
const DESCENDING: &str = select!(
    "kind IN ('link', 'host') AND (created_at, seq) < ($1, $2) ORDER BY created_at DESC, seq DESC LIMIT $3"
);
const OVER: Timed = timed!(over);
const FIND_OVER: Timed = timed!(find_over);
const COUNT: &str = "SELECT COUNT(*) FROM withheld WHERE kind <> 'account'";

#[derive(sqlx::FromRow)]
struct Row {
    seq: i64,
    kind: String,
    subject: String,
    account_id: Option<String>,
    reason: String,
    author: String,
    created_at: i64,
    ends_at: Option<i64>,
}

impl TryFrom<Row> for PlatformTakeDown {
    type Error = StoreError;

    fn try_from(row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            what: of_columns(&row.kind, &row.subject)?,
            account: row.account_id.as_deref().map(|id| parse("account_id", id)).transpose()?,
            reason: row.reason,
            author: row.author,
            created_at: UnixMillis(row.created_at),
            until: row.ends_at.map(UnixMillis),
            seq: row.seq,
        })
    }
}

/// What is to be withheld.
#[derive(Debug)]
pub struct NewRow<'a> {
    /// The account, the link or the host.
    pub what: &'a Withheld,
    /// Whose it is, where it is one account's.
    pub account: Option<AccountId>,
    /// Why.
    pub reason: &'a str,
    /// Who does it.
    pub author: &'a str,
    /// When it ends by itself.
    pub until: Option<UnixMillis>,
}

/// Adds something, or replaces why and until when it is withheld.
pub async fn put(tx: &mut Tx, row: &NewRow<'_>, now: UnixMillis) -> Result<(), StoreError> {
    let (kind, subject) = columns(row.what);
    execute!(
        &mut **tx,
        PUT,
        kind,
        subject,
        row.account.map(|id| id.to_string()),
        row.reason,
        row.author,
        now.0,
        row.until.map(|at| at.0)
    )?;
    Ok(())
}

/// Something that is withheld.
pub async fn find(conn: &mut Conn, what: &Withheld) -> Result<Option<PlatformTakeDown>, StoreError> {
    let (kind, subject) = columns(what);
    let row: Option<Row> = fetch_optional!(conn, FIND, kind, subject)?;
    row.map(PlatformTakeDown::try_from).transpose()
}

/// Removes something.
pub async fn delete(tx: &mut Tx, what: &Withheld) -> Result<(), StoreError> {
    let (kind, subject) = columns(what);
    execute!(&mut **tx, DELETE, kind, subject)?;
    Ok(())
}

/// A page of all take-downs, with one more to know whether another follows.
pub async fn list(conn: &mut Conn, page: PageRequest) -> Result<Vec<PlatformTakeDown>, StoreError> {
    let sql = if page.is_ascending() { ASCENDING } else { DESCENDING };
    let (at, seq) = page.start();
    let rows: Vec<Row> = fetch_all!(conn, sql, at, seq, i64::from(page.limit()))?;
    rows.into_iter().map(PlatformTakeDown::try_from).collect()
}

/// Those whose time is over by the clock of the database, at most `limit`.
pub async fn list_over(conn: &mut Conn, limit: u32) -> Result<Vec<PlatformTakeDown>, StoreError> {
    let sql = OVER.of(conn);
    let rows: Vec<Row> = fetch_all!(conn, sql, i64::from(limit))?;
    rows.into_iter().map(PlatformTakeDown::try_from).collect()
}

/// Something that is withheld and whose time is over by the clock of the database.
pub async fn find_over(conn: &mut Conn, what: &Withheld) -> Result<Option<PlatformTakeDown>, StoreError> {
    let (kind, subject) = columns(what);
    let sql = FIND_OVER.of(conn);
    let row: Option<Row> = fetch_optional!(conn, sql, kind, subject)?;
    row.map(PlatformTakeDown::try_from).transpose()
}

/// How many take-downs there are.
pub async fn count(conn: &mut Conn) -> Result<u64, StoreError> {
    let (count,): (i64,) = fetch_one!(conn, COUNT)?;
    Ok(unsigned(count))
}
