//! The audit trail: its entries, and the chain of each account.

use shared::{id::AccountId, time::UnixMillis};
use sqlx::types::Json;

use super::{
    Conn, StoreError, Tx, dialect, execute, fetch_all, fetch_one, fetch_optional,
    listing::{self, Column, Selection, Table},
    parse,
};
use crate::domain::{
    audit::{Chain, Entry, Hash},
    page::{Page, Position},
};

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT seq, account_id, at, actor_kind, actor_id, key_id, network, request_id, operation, resource, \
             resource_id, before, after, number, hash FROM audit_entries",
            $rest
        )
    };
}

// Another replica chains the entries that it has locked.
const PG_UNCHAINED: &str = select!(" WHERE number IS NULL ORDER BY seq LIMIT $1 FOR UPDATE SKIP LOCKED");
const UNCHAINED: &str = select!(" WHERE number IS NULL ORDER BY seq LIMIT $1");
const CHAINED: &str = select!(" WHERE account_id = $1 AND number > $2 ORDER BY number LIMIT $3");
const PG_PLACE: &str = "UPDATE audit_entries e SET number = t.number, hash = t.hash \
    FROM UNNEST($1::bigint[], $2::bigint[], $3::bytea[]) AS t (seq, number, hash) WHERE e.seq = t.seq";
const SQLITE_PLACE: &str = "UPDATE audit_entries SET number = t.value ->> '$[1]', hash = unhex(t.value ->> '$[2]') \
    FROM json_each($1) t WHERE seq = t.value ->> '$[0]'";
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
const NEWEST: &str = "SELECT MAX(number) FROM audit_entries WHERE account_id = $1";

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

/// Entries that have no place in their chain yet, oldest first; locked until the transaction ends.
pub async fn list_unchained(tx: &mut Tx, most: i64) -> Result<Vec<Entry>, StoreError> {
    let sql = dialect::pick(tx, PG_UNCHAINED, UNCHAINED);
    let rows: Vec<Row> = fetch_all!(&mut **tx, sql, most)?;
    rows.into_iter().map(Entry::try_from).collect()
}

/// A page of the entries of an account.
pub async fn list(conn: &mut Conn, selection: &Selection<'_>) -> Result<Page<Entry>, StoreError> {
    listing::page::<Row, Entry>(conn, &LIST, selection, |entry| Position { at: entry.at, seq: entry.seq })
        .await
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

/// Gives entries, by the order of their insertion, their number and hash.
pub async fn place(tx: &mut Tx, places: &[(i64, i64, Hash)]) -> Result<(), StoreError> {
    match &mut **tx {
        Conn::PgTx(c) => {
            sqlx::query(PG_PLACE)
                .bind(places.iter().map(|(seq, ..)| *seq).collect::<Vec<_>>())
                .bind(places.iter().map(|(_, number, _)| *number).collect::<Vec<_>>())
                .bind(places.iter().map(|(.., hash)| hash.to_vec()).collect::<Vec<_>>())
                .execute(&mut **c)
                .await?;
        }
        Conn::SqliteTx(c) => {
            let rows: Vec<(i64, i64, String)> = places
                .iter()
                .map(|(seq, number, hash)| {
                    (*seq, *number, blake3::Hash::from_bytes(*hash).to_hex().to_string())
                })
                .collect();
            sqlx::query(SQLITE_PLACE).bind(Json(rows)).execute(&mut **c).await?;
        }
        Conn::Pg(_) | Conn::Sqlite(_) => return Err(dialect::outside_transaction()),
    }
    Ok(())
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
