//! The location history of Thngs.

use shared::{
    id::{AccountId, ThngId},
    time::UnixMillis,
};
use sqlx::types::Json;

use super::{
    Conn, StoreError, Tx, fetch_one, fetch_optional,
    listing::{self, Column, Selection, Table},
    on_db, parse,
    places::read_point,
};
use crate::domain::{
    location::{Coordinates, Location, LocationEntry},
    page::{Page, Position},
};

macro_rules! columns {
    () => {
        "SELECT t.seq, t.timestamp, t.latitude, t.longitude, t.place_id, t.doc, t.created_at"
    };
}

const INSERT: &str = "INSERT INTO thng_locations (account_id, thng_id, timestamp, latitude, longitude, place_id, doc, \
    created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING seq";
const LATEST: &str = concat!(
    columns!(),
    " FROM thng_locations t WHERE account_id = $1 AND thng_id = $2 ORDER BY timestamp DESC, seq DESC LIMIT 1"
);
const DELETE: &str = "DELETE FROM thng_locations WHERE account_id = $1 AND thng_id = $2 AND timestamp < $3";
const FORGET: &str = "DELETE FROM thng_locations WHERE account_id = $1 AND thng_id = $2";

const LIST: Table = Table {
    select: concat!(columns!(), " FROM thng_locations t"),
    order: ("t.timestamp", "t.seq"),
    columns: &[("timestamp", Column::Whole("t.timestamp")), ("thng", Column::Text("t.thng_id"))],
    identifiers: None,
    faceted: false,
    itself: "t.thng_id",
};

#[derive(sqlx::FromRow)]
struct Row {
    seq: i64,
    timestamp: i64,
    latitude: Option<f64>,
    longitude: Option<f64>,
    place_id: Option<String>,
    doc: Json<Doc>,
    created_at: i64,
}

/// The members that are not queried.
#[derive(Debug, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Doc {
    #[serde(skip_serializing_if = "Option::is_none")]
    custom_fields: Option<serde_json::Map<String, serde_json::Value>>,
}

impl TryFrom<Row> for LocationEntry {
    type Error = StoreError;

    fn try_from(row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            position: Position { at: UnixMillis(row.timestamp), seq: row.seq },
            created_at: UnixMillis(row.created_at),
            location: Location {
                coordinates: read_point(row.latitude, row.longitude)?,
                place: row.place_id.as_deref().map(|id| parse("place_id", id)).transpose()?,
                timestamp: Some(UnixMillis(row.timestamp)),
                custom_fields: row.doc.0.custom_fields,
            },
        })
    }
}

/// Adds where a Thng was at its time, or at `now`.
pub async fn insert(
    tx: &mut Tx,
    account: AccountId,
    thng: ThngId,
    location: Location,
    now: UnixMillis,
) -> Result<LocationEntry, StoreError> {
    let at = location.timestamp.unwrap_or(now);
    let doc = Doc { custom_fields: location.custom_fields.clone() };
    let (seq,): (i64,) = fetch_one!(
        &mut **tx,
        INSERT,
        account.as_str(),
        thng.as_str(),
        at.0,
        location.coordinates.map(Coordinates::latitude),
        location.coordinates.map(Coordinates::longitude),
        location.place.map(|id| id.to_string()),
        Json(&doc),
        now.0
    )?;
    Ok(LocationEntry {
        position: Position { at, seq },
        created_at: now,
        location: Location { timestamp: Some(at), ..location },
    })
}

/// Where a Thng was last.
pub async fn find_latest(
    conn: &mut Conn,
    account: AccountId,
    thng: ThngId,
) -> Result<Option<LocationEntry>, StoreError> {
    let row: Option<Row> = fetch_optional!(conn, LATEST, account.as_str(), thng.as_str())?;
    row.map(LocationEntry::try_from).transpose()
}

/// A page of where a Thng was, which the selection names as `thng`.
pub async fn list(conn: &mut Conn, selection: &Selection<'_>) -> Result<Page<LocationEntry>, StoreError> {
    listing::page::<Row, LocationEntry>(conn, &LIST, selection, |entry| entry.position).await
}

/// Removes where a Thng was before `to`, or everything.
pub async fn delete(
    tx: &mut Tx,
    account: AccountId,
    thng: ThngId,
    to: Option<UnixMillis>,
) -> Result<(), StoreError> {
    match to {
        Some(to) => on_db!(&mut **tx, |c| sqlx::query(DELETE)
            .bind(account.as_str())
            .bind(thng.as_str())
            .bind(to.0)
            .execute(c)
            .await
            .map(|_| ()))?,
        None => on_db!(&mut **tx, |c| sqlx::query(FORGET)
            .bind(account.as_str())
            .bind(thng.as_str())
            .execute(c)
            .await
            .map(|_| ()))?,
    }
    Ok(())
}
