//! The audit trail: its entries, and the chain of each account.

use shared::{id::AccountId, time::UnixMillis};
use sqlx::types::Json;

use super::{
    Conn, Raw, StoreError, Tx, dialect, execute, fetch_all, fetch_one, fetch_optional,
    listing::{self, Column, Selection, Table},
    parse,
};
use crate::domain::{
    audit::{Chain, Entry, Hash},
    page::{Page, Position},
};

macro_rules! columns {
    () => {
        "seq, account_id, at, actor_kind, actor_id, key_id, network, request_id, operation, resource, resource_id, \
         before, after, number, hash"
    };
}

macro_rules! select {
    ($rest:literal) => {
        concat!("SELECT ", columns!(), " FROM audit_entries", $rest)
    };
}

// By `MIN`, so that no engine walks all entries, or what is left of a queue that was long, instead of an index.
const WAITING: &str = "SELECT 1 WHERE (SELECT MIN(seq) FROM audit_queue) IS NOT NULL \
    OR (SELECT MIN(seq) FROM audit_entries WHERE number IS NULL) IS NOT NULL";
// A server of the release before adds entries to the table itself, and may stop before it has given them a number.
const PG_TAKE_UNPLACED: &str = concat!(
    "DELETE FROM audit_entries WHERE seq = ANY(ARRAY(SELECT seq FROM audit_entries WHERE number IS NULL \
     ORDER BY seq LIMIT $1 FOR UPDATE)) RETURNING ",
    columns!()
);
const SQLITE_TAKE_UNPLACED: &str = concat!(
    "DELETE FROM audit_entries WHERE seq IN (SELECT seq FROM audit_entries WHERE number IS NULL \
     ORDER BY seq LIMIT $1) RETURNING ",
    columns!()
);
// Another replica may hold some of the rows: this waits for its commit, behind which they are gone from here and in the table.
// An array, so that the rows are chosen once.
const PG_TAKE: &str = "DELETE FROM audit_queue WHERE seq = ANY(ARRAY( \
    SELECT seq FROM audit_queue ORDER BY seq LIMIT $1 FOR UPDATE)) RETURNING seq, entry";
const SQLITE_FIRST: &str = "SELECT seq, entry FROM audit_queue ORDER BY seq LIMIT $1";
const SQLITE_REMOVE: &str = "DELETE FROM audit_queue WHERE seq <= $1";
// Without a condition SQLite frees the pages of the table as they are: those with entries are neither read nor written.
const SQLITE_REMOVE_ALL: &str = "DELETE FROM audit_queue";
const REJECT: &str = "INSERT INTO audit_rejects (entry, fault) VALUES ($1, $2)";
// Whose they are cannot be read.
const REJECTS: &str = "SELECT seq, fault FROM audit_rejects ORDER BY seq LIMIT $1";
const PG_ADD: &str = "INSERT INTO audit_entries (account_id, at, actor_kind, actor_id, key_id, network, request_id, \
    operation, resource, resource_id, before, after, number, hash) \
    SELECT r ->> 0, (r ->> 1)::bigint, r ->> 2, r ->> 3, r ->> 4, r ->> 5, r ->> 6, r ->> 7, r ->> 8, r ->> 9, \
    r ->> 10, r ->> 11, (r ->> 12)::bigint, decode(r ->> 13, 'hex') \
    FROM jsonb_array_elements($1) WITH ORDINALITY AS t (r, n) ORDER BY n";
const SQLITE_ADD: &str = "INSERT INTO audit_entries (account_id, at, actor_kind, actor_id, key_id, network, request_id, \
    operation, resource, resource_id, before, after, number, hash) \
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7, \
    value ->> 8, value ->> 9, value ->> 10, value ->> 11, value ->> 12, unhex(value ->> 13) FROM json_each($1) ORDER BY key";
const CHAINED: &str = select!(" WHERE account_id = $1 AND number > $2 ORDER BY number LIMIT $3");
// By the order of insertion: that of the commits, where the times are those of the requests. `+ 0`, so that no engine walks the
// whole table by its key instead of looking the resource up.
const WRITTEN_BEFORE: &str = select!(
    " WHERE account_id = $1 AND resource_id = $2 AND resource = $3 AND seq < $4 ORDER BY seq + 0 DESC LIMIT $5"
);
const ACCOUNTS: &str = "SELECT account_id FROM audit_chains ORDER BY account_id";
const PG_CHAIN: &str = "SELECT last_number, last_hash, base_number, base_hash, seal FROM audit_chains \
    WHERE account_id = $1 FOR UPDATE";
const CHAIN: &str =
    "SELECT last_number, last_hash, base_number, base_hash, seal FROM audit_chains WHERE account_id = $1";
const PUT_CHAIN: &str = "INSERT INTO audit_chains (account_id, last_number, last_hash, base_number, base_hash, \
    seal) VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (account_id) DO UPDATE SET last_number = excluded.last_number, \
    last_hash = excluded.last_hash, base_number = excluded.base_number, base_hash = excluded.base_hash, \
    seal = excluded.seal";
const DELETE: &str = "DELETE FROM audit_entries WHERE account_id = $1 AND number <= $2";
const NEWEST: &str = "SELECT MAX(number) FROM audit_entries WHERE account_id = $1 AND number IS NOT NULL";

const LIST: Table = Table {
    select: "SELECT t.seq, t.account_id, t.at, t.actor_kind, t.actor_id, t.key_id, t.network, t.request_id, t.operation, \
         t.resource, t.resource_id, t.before, t.after, t.number, t.hash FROM audit_entries t",
    order: ("t.at", "t.seq"),
    columns: &[
        ("createdAt", Column::Whole("t.at")),
        ("actor", Column::Text("t.actor_id")),
        ("key", Column::Text("t.key_id")),
        ("operation", Column::Text("t.operation")),
        ("resource", Column::Text("t.resource")),
        ("resourceId", Column::Text("t.resource_id")),
        ("requestId", Column::Text("t.request_id")),
    ],
    identifiers: None,
    faceted: false,
    itself: "t.actor_id",
};

#[derive(sqlx::FromRow)]
struct Row {
    seq: i64,
    account_id: String,
    at: i64,
    actor_kind: String,
    actor_id: Option<String>,
    key_id: Option<String>,
    network: Option<String>,
    request_id: Option<String>,
    operation: String,
    resource: String,
    resource_id: String,
    before: Option<String>,
    after: Option<String>,
    number: Option<i64>,
    hash: Option<Vec<u8>>,
}

impl TryFrom<Row> for Entry {
    type Error = StoreError;

    fn try_from(row: Row) -> Result<Self, StoreError> {
        let place = match (row.number, row.hash) {
            (Some(number), Some(hash)) => Some((number, to_hash(hash)?)),
            _ => None,
        };
        Ok(Self {
            seq: row.seq,
            account: parse("account_id", &row.account_id)?,
            at: UnixMillis(row.at),
            actor_kind: row.actor_kind,
            actor_id: row.actor_id,
            key_id: row.key_id,
            network: row.network,
            request_id: row.request_id,
            operation: row.operation,
            resource: row.resource,
            resource_id: row.resource_id,
            before: row.before,
            after: row.after,
            place,
        })
    }
}

fn to_hash(bytes: Vec<u8>) -> Result<Hash, StoreError> {
    bytes.try_into().map_err(|_| StoreError::Row("hash: another length".to_owned()))
}

/// The columns of an entry as [`crate::store::audit::Entry::row`] writes them.
type Waiting = (
    String,
    i64,
    String,
    Option<String>,
    Option<String>,
    Option<String>,
    Option<String>,
    String,
    String,
    String,
    Option<String>,
    Option<String>,
);

fn to_waiting(seq: i64, text: &str) -> Result<Entry, StoreError> {
    // What is wrong is logged: nothing of the entry is in it.
    let columns: Waiting = serde_json::from_str(text)
        .map_err(|error| StoreError::Row(format!("audit_queue: invalid at column {}", error.column())))?;
    let (
        account,
        at,
        actor_kind,
        actor_id,
        key_id,
        network,
        request_id,
        operation,
        resource,
        resource_id,
        before,
        after,
    ) = columns;
    Ok(Entry {
        seq,
        account: parse("account_id", &account)?,
        at: UnixMillis(at),
        actor_kind,
        actor_id,
        key_id,
        network,
        request_id,
        operation,
        resource,
        resource_id,
        before,
        after,
        place: None,
    })
}

/// Whether entries have no place in their chain yet.
pub async fn is_waiting(conn: &mut Conn) -> Result<bool, StoreError> {
    let row: Option<(i32,)> = fetch_optional!(conn, WAITING)?;
    Ok(row.is_some())
}

/// Takes up to `most` entries that a server of the release before left without a place, oldest first; [`add`] gives them another
/// `seq`.
pub async fn take_unplaced(tx: &mut Tx, most: i64) -> Result<Vec<Entry>, StoreError> {
    let sql = dialect::pick(tx, PG_TAKE_UNPLACED, SQLITE_TAKE_UNPLACED);
    let mut rows: Vec<Row> = fetch_all!(&mut **tx, sql, most)?;
    rows.sort_unstable_by_key(|row| row.seq);
    rows.into_iter().map(Entry::try_from).collect()
}

/// Takes up to `most` entries that wait, oldest first; until the commit others wait for them. `seq` is their order. Those that
/// cannot be read are set aside: what is wrong with each of them is returned, too.
pub async fn take(tx: &mut Tx, most: i64) -> Result<(Vec<Entry>, Vec<String>), StoreError> {
    let sql = dialect::pick(tx, PG_TAKE, SQLITE_FIRST);
    let mut rows: Vec<(i64, String)> = fetch_all!(&mut **tx, sql, most)?;
    rows.sort_unstable_by_key(|(seq, _)| *seq);
    if let Raw::Sqlite(c) = tx.raw()
        && let Some((last, _)) = rows.last()
    {
        // Nobody adds any before the commit.
        let is_all = i64::try_from(rows.len()).is_ok_and(|count| count < most);
        if is_all {
            sqlx::query(SQLITE_REMOVE_ALL).execute(c).await?;
        } else {
            sqlx::query(SQLITE_REMOVE).bind(*last).execute(c).await?;
        }
    }
    let (mut entries, mut faults) = (Vec::with_capacity(rows.len()), Vec::new());
    for (seq, text) in rows {
        match to_waiting(seq, &text) {
            Ok(entry) => entries.push(entry),
            Err(error) => {
                let fault = error.to_string();
                execute!(&mut **tx, REJECT, &text, &fault)?;
                faults.push(fault);
            }
        }
    }
    Ok((entries, faults))
}

/// Up to `most` entries of all accounts that were set aside by [`take`]: `seq`, and what is wrong.
pub async fn list_rejects(conn: &mut Conn, most: i64) -> Result<Vec<(i64, String)>, StoreError> {
    Ok(fetch_all!(conn, REJECTS, most)?)
}

/// Adds entries with their place.
pub async fn add(tx: &mut Tx, entries: &[Entry]) -> Result<(), StoreError> {
    let rows: Vec<_> = entries
        .iter()
        .filter_map(|entry| {
            let (number, hash) = entry.place?;
            Some((
                entry.account.as_str(),
                entry.at.0,
                &entry.actor_kind,
                &entry.actor_id,
                &entry.key_id,
                &entry.network,
                &entry.request_id,
                &entry.operation,
                &entry.resource,
                &entry.resource_id,
                &entry.before,
                &entry.after,
                number,
                blake3::Hash::from_bytes(hash).to_hex().to_string(),
            ))
        })
        .collect();
    let sql = dialect::pick(tx, PG_ADD, SQLITE_ADD);
    execute!(&mut **tx, sql, Json(&rows))?;
    Ok(())
}

/// A page of the entries of an account.
pub async fn list(conn: &mut Conn, selection: &Selection<'_>) -> Result<Page<Entry>, StoreError> {
    listing::page::<Row, Entry>(conn, &LIST, selection, |entry| Position { at: entry.at, seq: entry.seq })
        .await
}

/// How the database finds a page of entries, for tests.
pub async fn explain(conn: &mut Conn, selection: &Selection<'_>) -> Result<listing::Explained, StoreError> {
    listing::explain(conn, &LIST, selection).await
}

/// Up to `most` entries of a resource of an account that were written before `before`, newest first.
pub async fn list_of_resource(
    conn: &mut Conn,
    account: AccountId,
    (resource, id): (&str, &str),
    before: i64,
    most: i64,
) -> Result<Vec<Entry>, StoreError> {
    let rows: Vec<Row> = fetch_all!(conn, WRITTEN_BEFORE, account.as_str(), id, resource, before, most)?;
    rows.into_iter().map(Entry::try_from).collect()
}

/// Entries of an account behind a number, in their order.
pub async fn list_chained(
    conn: &mut Conn,
    account: AccountId,
    after: i64,
    most: i64,
) -> Result<Vec<Entry>, StoreError> {
    let rows: Vec<Row> = fetch_all!(conn, CHAINED, account.as_str(), after, most)?;
    rows.into_iter().map(Entry::try_from).collect()
}

/// The greatest number of an entry of an account.
pub async fn find_newest(conn: &mut Conn, account: AccountId) -> Result<Option<i64>, StoreError> {
    let (number,): (Option<i64>,) = fetch_one!(conn, NEWEST, account.as_str())?;
    Ok(number)
}

type ChainRow = (i64, Vec<u8>, i64, Vec<u8>, Vec<u8>);

/// A chain as it is stored, with its seal.
pub type Sealed = (Chain, Hash);

fn to_chain((last, last_hash, base, base_hash, seal): ChainRow) -> Result<Sealed, StoreError> {
    let chain = Chain { last: (last, to_hash(last_hash)?), base: (base, to_hash(base_hash)?) };
    Ok((chain, to_hash(seal)?))
}

/// The chain of an account, if it has one.
pub async fn find_chain(conn: &mut Conn, account: AccountId) -> Result<Option<Sealed>, StoreError> {
    let row: Option<ChainRow> = fetch_optional!(conn, CHAIN, account.as_str())?;
    row.map(to_chain).transpose()
}

/// [`find_chain`], with a lock until the transaction ends.
pub async fn find_chain_locked(tx: &mut Tx, account: AccountId) -> Result<Option<Sealed>, StoreError> {
    let sql = dialect::pick(tx, PG_CHAIN, CHAIN);
    let row: Option<ChainRow> = fetch_optional!(&mut **tx, sql, account.as_str())?;
    row.map(to_chain).transpose()
}

/// Writes the chain of an account.
pub async fn put_chain(tx: &mut Tx, account: AccountId, (chain, seal): &Sealed) -> Result<(), StoreError> {
    execute!(
        &mut **tx,
        PUT_CHAIN,
        account.as_str(),
        chain.last.0,
        &chain.last.1[..],
        chain.base.0,
        &chain.base.1[..],
        &seal[..]
    )?;
    Ok(())
}

/// Accounts that have a chain.
pub async fn list_accounts(conn: &mut Conn) -> Result<Vec<AccountId>, StoreError> {
    let rows: Vec<(String,)> = fetch_all!(conn, ACCOUNTS)?;
    rows.into_iter().map(|(account,)| parse("account_id", &account)).collect()
}

/// Removes the entries of an account up to a number; returns how many went.
pub async fn delete_up_to(tx: &mut Tx, account: AccountId, number: i64) -> Result<u64, StoreError> {
    Ok(execute!(&mut **tx, DELETE, account.as_str(), number)?)
}
