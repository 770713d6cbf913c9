//! Properties of Thngs and products: the latest value of each, and its history.
//!
//! History rows refer to the number of a property, and every read goes through the property's row. A property is gone
//! as soon as that row is deleted; its points are removed later in bounded steps.

use std::collections::{BTreeMap, HashMap};

use serde_json::Value;
use shared::{id::AccountId, time::UnixMillis};

use super::{
    Conn, StoreError, Tx, dialect, execute, fetch_all, fetch_optional,
    listing::{self, Column, Selection, Table},
    property_writes,
};
use crate::domain::{
    grant::Limit,
    listing::ListRequest,
    page::{Page, PageRequest, Position},
    property::{MAX_SHOWN, MAX_SHOWN_LENGTH, Point, PropertyKey},
};

macro_rules! latest {
    ($compare:literal, $order:literal) => {
        concat!(
            "SELECT seq, key, value, timestamp, written_at, created_at FROM properties \
             WHERE account_id = $1 AND resource_id = $2 AND (created_at, seq) ",
            $compare,
            " ($3, $4) ORDER BY ",
            $order,
            " LIMIT $5"
        )
    };
}

const LATEST_ASCENDING: &str = latest!(">", "created_at, seq");
const LATEST_DESCENDING: &str = latest!("<", "created_at DESC, seq DESC");

// CROSS JOIN: SQLite has no statistics and must begin with the one property.
const HISTORY: Table = Table {
    select: "SELECT t.seq, t.key, t.timestamp, t.created_at, t.value FROM (SELECT s.account_id, s.resource_id, s.seq, \
        s.key, p.timestamp, p.created_at, p.value FROM properties s CROSS JOIN property_points p \
        WHERE p.property = s.seq) t",
    order: ("t.timestamp", "t.seq"),
    columns: &[("property", Column::Whole("t.seq")), ("timestamp", Column::Whole("t.timestamp"))],
    identifiers: None,
    faceted: false,
    itself: "t.resource_id",
};

// Points of a page of resources are cut to those shown inside of the database: a Thng may have thousands.
const PG_SHOWN: &str = "SELECT l.resource_id, l.key, l.value FROM UNNEST($4::text[]) AS r (id) \
    CROSS JOIN LATERAL (SELECT n.*, SUM(LENGTH(n.value)) OVER (ORDER BY n.created_at DESC, n.seq DESC) AS total \
        FROM (SELECT * FROM properties WHERE account_id = $1 AND resource_id = r.id \
            ORDER BY created_at DESC, seq DESC LIMIT $2) n) l \
    WHERE l.total <= $3";
const SQLITE_SHOWN: &str = "SELECT p.resource_id, p.key, p.value FROM json_each($4) r CROSS JOIN properties p \
    WHERE p.seq IN (SELECT l.seq FROM (SELECT n.seq, \
        SUM(LENGTH(n.value)) OVER (ORDER BY n.created_at DESC, n.seq DESC) AS total \
        FROM (SELECT seq, value, created_at FROM properties WHERE account_id = $1 AND resource_id = r.value \
            ORDER BY created_at DESC, seq DESC LIMIT $2) n) l \
    WHERE l.total <= $3)";

const FIND: &str =
    "SELECT seq, timestamp FROM properties WHERE account_id = $1 AND resource_id = $2 AND key = $3";

const LATEST_OF: &str = "SELECT seq, key, value, timestamp, written_at, created_at FROM properties \
    WHERE account_id = $1 AND resource_id = $2 AND key = $3";

const NOTE_ONE: &str = "INSERT INTO properties_dropped (property) \
    SELECT seq FROM properties WHERE account_id = $1 AND resource_id = $2 AND key = $3";
const DROP_ONE: &str = "DELETE FROM properties WHERE account_id = $1 AND resource_id = $2 AND key = $3";
// System properties stay unless their owner goes; `~` is the letter that no key of a caller begins with.
const NOTE_OWN: &str = "INSERT INTO properties_dropped (property) \
    SELECT seq FROM properties WHERE account_id = $1 AND resource_id = $2 AND SUBSTR(key, 1, 1) <> '~'";
const DROP_OWN: &str =
    "DELETE FROM properties WHERE account_id = $1 AND resource_id = $2 AND SUBSTR(key, 1, 1) <> '~'";
const NOTE_ALL: &str = "INSERT INTO properties_dropped (property) \
    SELECT seq FROM properties WHERE account_id = $1 AND resource_id = $2";
const DROP_ALL: &str = "DELETE FROM properties WHERE account_id = $1 AND resource_id = $2";

const REMOVE_BEFORE: &str = "DELETE FROM property_points WHERE property = $1 AND timestamp IN \
    (SELECT timestamp FROM property_points WHERE property = $1 AND timestamp < $2 ORDER BY timestamp LIMIT $3)";
const SWEEP: &str = "DELETE FROM property_points WHERE (property, timestamp) IN \
    (SELECT p.property, p.timestamp FROM properties_dropped d CROSS JOIN property_points p \
    WHERE p.property = d.property ORDER BY p.property, p.timestamp LIMIT $1)";
const SWEPT: &str = "DELETE FROM properties_dropped WHERE NOT EXISTS \
    (SELECT 1 FROM property_points p WHERE p.property = properties_dropped.property)";

/// Values of one Thng or product; no two have one key and time.
#[derive(Debug, Clone, Copy)]
pub struct Values<'a> {
    /// The account.
    pub account: AccountId,
    /// Id of the Thng or product.
    pub resource: &'a str,
    /// The values, all written at one moment.
    pub points: &'a [Point],
}

/// Writes values of Thngs and products that the transaction has locked, each at most once.
pub async fn write(tx: &mut Tx, values: &[Values<'_>], now: UnixMillis) -> Result<(), StoreError> {
    // In the order of resources and keys, in which all writers take the rows.
    let mut latest: BTreeMap<(&str, &PropertyKey), (AccountId, &Point)> = BTreeMap::new();
    for Values { account, resource, points } in values {
        for point in *points {
            let kept = latest.entry((resource, &point.key)).or_insert((*account, point));
            if kept.1.timestamp < point.timestamp {
                kept.1 = point;
            }
        }
    }
    if latest.is_empty() {
        return Ok(());
    }
    let rows: Vec<_> =
        latest.into_iter().map(|((resource, _), (account, point))| (account, resource, point)).collect();
    let found = property_writes::write_latest(tx, &rows, now).await?;
    let seqs: HashMap<(&str, &str), i64> =
        found.iter().map(|(resource, key, seq)| ((resource.as_str(), key.as_str()), *seq)).collect();
    let mut numbered = Vec::with_capacity(values.iter().map(|values| values.points.len()).sum());
    for Values { resource, points, .. } in values {
        for point in *points {
            let seq = seqs.get(&(*resource, point.key.as_str())).copied();
            let seq = seq.ok_or_else(|| StoreError::Row(format!("property {} is missing", point.key)))?;
            numbered.push((seq, point));
        }
    }
    // Neighbours in the index are written one after the other.
    numbered.sort_unstable_by_key(|(seq, point)| (*seq, point.timestamp));
    property_writes::write_points(tx, &numbered, now).await
}

#[derive(sqlx::FromRow)]
struct LatestRow {
    seq: i64,
    key: String,
    value: String,
    timestamp: i64,
    written_at: i64,
    created_at: i64,
}

/// The latest value of each property of a resource, in order of their first writing, each with its place.
pub async fn list_latest(
    conn: &mut Conn,
    account: AccountId,
    resource: &str,
    page: PageRequest,
) -> Result<Vec<(Position, Point)>, StoreError> {
    let sql = if page.is_ascending() { LATEST_ASCENDING } else { LATEST_DESCENDING };
    let (at, seq) = page.start();
    let rows: Vec<LatestRow> =
        fetch_all!(conn, sql, account.as_str(), resource, at, seq, i64::from(page.limit()))?;
    let place = |row: &LatestRow| Position { at: UnixMillis(row.created_at), seq: row.seq };
    let read = |row: LatestRow| {
        let place = place(&row);
        let point = Point {
            value: read_value(&row.value)?,
            key: PropertyKey::stored(row.key),
            timestamp: UnixMillis(row.timestamp),
            created_at: UnixMillis(row.written_at),
        };
        Ok((place, point))
    };
    rows.into_iter().map(read).collect()
}

/// The latest value of one property.
pub async fn find_latest(
    conn: &mut Conn,
    account: AccountId,
    resource: &str,
    key: &PropertyKey,
) -> Result<Option<Point>, StoreError> {
    let row: Option<LatestRow> = fetch_optional!(conn, LATEST_OF, account.as_str(), resource, key.as_str())?;
    row.map(|row| {
        Ok(Point {
            value: read_value(&row.value)?,
            key: PropertyKey::stored(row.key),
            timestamp: UnixMillis(row.timestamp),
            created_at: UnixMillis(row.written_at),
        })
    })
    .transpose()
}

#[derive(sqlx::FromRow)]
struct HistoryRow {
    seq: i64,
    key: String,
    timestamp: i64,
    created_at: i64,
    value: String,
}

/// A point with the place of its property, which is the same for a whole history.
struct Placed(i64, Point);

impl TryFrom<HistoryRow> for Placed {
    type Error = StoreError;

    fn try_from(row: HistoryRow) -> Result<Self, StoreError> {
        let point = Point {
            value: read_value(&row.value)?,
            key: PropertyKey::stored(row.key),
            timestamp: UnixMillis(row.timestamp),
            created_at: UnixMillis(row.created_at),
        };
        Ok(Self(row.seq, point))
    }
}

/// A page of the values of a property by timestamp; empty when there is no such property.
///
/// The property is found first: with its number Postgres sees that the index of its points has their order, and
/// without it sorts them all.
pub async fn list_history(
    conn: &mut Conn,
    account: AccountId,
    resource: &str,
    key: &PropertyKey,
    request: &ListRequest,
) -> Result<Page<Point>, StoreError> {
    let Some((seq, _)) = find(conn, account, resource, key).await? else {
        let total = request.counted.then_some(0);
        return Ok(Page { items: Vec::new(), next: None, total });
    };
    let number = seq.to_string();
    let within = [("property", number.as_str())];
    let selection = Selection { account, limit: &Limit::Account, request, within: &within };
    let place = |Placed(seq, point): &Placed| Position { at: point.timestamp, seq: *seq };
    let page = listing::page::<HistoryRow, Placed>(conn, &HISTORY, &selection, place).await?;
    page.try_map(|Placed(_, point)| Ok(point))
}

/// Number of a property and time of its latest value.
async fn find(
    conn: &mut Conn,
    account: AccountId,
    resource: &str,
    key: &PropertyKey,
) -> Result<Option<(i64, i64)>, StoreError> {
    Ok(fetch_optional!(conn, FIND, account.as_str(), resource, key.as_str())?)
}

/// The properties in the documents of resources: the newest of each resource, up to a number and length.
pub async fn list_shown(
    conn: &mut Conn,
    account: AccountId,
    resources: &[String],
) -> Result<HashMap<String, BTreeMap<String, Value>>, StoreError> {
    let mut found: HashMap<String, BTreeMap<String, Value>> = HashMap::new();
    if resources.is_empty() {
        return Ok(found);
    }
    let (count, length) = (i64::from(MAX_SHOWN), i64::from(MAX_SHOWN_LENGTH));
    let rows: Vec<(String, String, String)> = dialect::fetch_in_list!(
        conn,
        (String, String, String),
        PG_SHOWN,
        SQLITE_SHOWN,
        [account.as_str(), count, length],
        resources
    )?;
    for (resource, key, value) in rows {
        found.entry(resource).or_default().insert(key, read_value(&value)?);
    }
    Ok(found)
}

/// The remaining work of a deletion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// There was no such property.
    Nothing,
    /// Nothing that can be read.
    Done,
    /// Points of this number before the time, by [`remove_before`].
    Before(i64, UnixMillis),
}

/// Removes a property of a resource that the transaction holds [alone](super::property_owners::Hold::Alone); `before` keeps what is not older.
pub async fn remove(
    tx: &mut Tx,
    account: AccountId,
    resource: &str,
    key: &PropertyKey,
    before: Option<UnixMillis>,
) -> Result<Removal, StoreError> {
    match (find(tx, account, resource, key).await?, before) {
        (None, _) => Ok(Removal::Nothing),
        // The latest stays, so the property does.
        (Some((seq, latest)), Some(before)) if latest >= before.0 => Ok(Removal::Before(seq, before)),
        (Some(_), _) => {
            for sql in [NOTE_ONE, DROP_ONE] {
                execute!(&mut **tx, sql, account.as_str(), resource, key.as_str())?;
            }
            Ok(Removal::Done)
        }
    }
}

/// Removes all properties of a resource that the transaction holds [alone](super::property_owners::Hold::Alone), but for the system's own.
pub async fn remove_own(tx: &mut Tx, account: AccountId, resource: &str) -> Result<(), StoreError> {
    remove_by(tx, account, resource, [NOTE_OWN, DROP_OWN]).await
}

/// Removes all properties of a resource that is deleted.
pub async fn remove_all(tx: &mut Tx, account: AccountId, resource: &str) -> Result<(), StoreError> {
    remove_by(tx, account, resource, [NOTE_ALL, DROP_ALL]).await
}

async fn remove_by(
    tx: &mut Tx,
    account: AccountId,
    resource: &str,
    statements: [&'static str; 2],
) -> Result<(), StoreError> {
    for sql in statements {
        execute!(&mut **tx, sql, account.as_str(), resource)?;
    }
    Ok(())
}

/// One step of [`Removal::Before`], oldest first; returns how many points went, fewer than `step` at the end.
pub async fn remove_before(
    tx: &mut Tx,
    property: i64,
    before: UnixMillis,
    step: u32,
) -> Result<u64, StoreError> {
    Ok(execute!(&mut **tx, REMOVE_BEFORE, property, before.0, i64::from(step))?)
}

/// Removes points of properties that are gone; returns how many, fewer than `step` when none are left.
pub async fn sweep(tx: &mut Tx, step: u32) -> Result<u64, StoreError> {
    let gone = execute!(&mut **tx, SWEEP, i64::from(step))?;
    if gone < u64::from(step) {
        execute!(&mut **tx, SWEPT)?;
    }
    Ok(gone)
}

fn read_value(text: &str) -> Result<Value, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Row(format!("value: {error}")))
}
