//! Places.

use futures_util::TryStreamExt;
use shared::{
    id::{AccountId, PlaceId},
    time::UnixMillis,
};
use sqlx::types::Json;

use super::{
    Conn, StoreError, Tx, dialect, facets, identifiers,
    listing::{self, Column, Selection, Table},
    on_db, parse,
};
use crate::domain::{
    geo::{Bounds, Nearest},
    location::Coordinates,
    page::Page,
    place::{Place, PlaceDetails},
    redirection::Scopes,
    resource::Stamp,
};

const KIND: &str = "place";

macro_rules! columns {
    () => {
        "SELECT t.id, t.seq, t.name, t.latitude, t.longitude, t.doc, t.created_at, t.updated_at"
    };
}

const INSERT: &str = "INSERT INTO places (id, account_id, name, latitude, longitude, doc, facets, created_at, \
    updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $8) RETURNING seq";
const FIND: &str = concat!(columns!(), " FROM places t WHERE account_id = $1 AND id = $2");
const PG_FIND_LOCKED: &str =
    concat!(columns!(), " FROM places t WHERE account_id = $1 AND id = $2 FOR UPDATE");
const PG_FIND_MANY: &str = concat!(columns!(), " FROM places t WHERE account_id = $1 AND id = ANY($2)");
const SQLITE_FIND_MANY: &str =
    concat!(columns!(), " FROM places t WHERE account_id = $1 AND id IN (SELECT value FROM json_each($2))");
const UPDATE: &str = "UPDATE places SET name = $2, latitude = $3, longitude = $4, doc = $5, facets = $6, \
    updated_at = $7 WHERE id = $1";
const DELETE: &str = "DELETE FROM places WHERE account_id = $1 AND id = $2";
const LIST: Table = Table {
    select: concat!(columns!(), " FROM places t"),
    order: ("t.created_at", "t.seq"),
    columns: &[("name", Column::Text("t.name"))],
    identifiers: Some(KIND),
    faceted: true,
    itself: "t.id",
};
const IN_BOX: &str = "SELECT id, seq, latitude, longitude, doc -> 'scopes' FROM places WHERE account_id = $1 \
    AND latitude >= $2 AND latitude <= $3 AND longitude >= $4 AND longitude <= $5";
const IN_BOX_OVER_DATE_LINE: &str = "SELECT id, seq, latitude, longitude, doc -> 'scopes' FROM places \
    WHERE account_id = $1 AND latitude >= $2 AND latitude <= $3 AND (longitude >= $4 OR longitude <= $5)";

#[derive(sqlx::FromRow)]
struct Row {
    id: String,
    seq: i64,
    name: String,
    latitude: Option<f64>,
    longitude: Option<f64>,
    doc: Json<PlaceDetails>,
    created_at: i64,
    updated_at: i64,
}

/// What a search looks at: id, insertion order, point, scopes.
type Candidate = (String, i64, f64, f64, Option<Json<Scopes>>);

impl TryFrom<Row> for Place {
    type Error = StoreError;

    fn try_from(row: Row) -> Result<Self, StoreError> {
        Ok(Self {
            id: parse("id", &row.id)?,
            stamp: Stamp {
                seq: row.seq,
                created_at: UnixMillis(row.created_at),
                updated_at: UnixMillis(row.updated_at),
            },
            name: row.name,
            coordinates: read_point(row.latitude, row.longitude)?,
            details: row.doc.0,
        })
    }
}

/// Reads the two columns of a point back.
pub(super) fn read_point(
    latitude: Option<f64>,
    longitude: Option<f64>,
) -> Result<Option<Coordinates>, StoreError> {
    let Some((latitude, longitude)) = latitude.zip(longitude) else { return Ok(None) };
    let point = Coordinates::new(latitude, longitude);
    point.map(Some).ok_or_else(|| StoreError::Row(format!("point: {latitude}, {longitude}")))
}

/// Adds a place; it comes back with its place in lists.
///
/// # Errors
/// [`StoreError::Unique`] when the id exists.
pub async fn insert(
    tx: &mut Tx,
    account: AccountId,
    id: PlaceId,
    name: String,
    coordinates: Option<Coordinates>,
    details: PlaceDetails,
    now: UnixMillis,
) -> Result<Place, StoreError> {
    let facets = facets::of(&details, facets::RESOURCES)?;
    let (seq,): (i64,) = on_db!(&mut **tx, |c| sqlx::query_as(INSERT)
        .bind(id.as_str())
        .bind(account.as_str())
        .bind(&name)
        .bind(coordinates.map(Coordinates::latitude))
        .bind(coordinates.map(Coordinates::longitude))
        .bind(Json(&details))
        .bind(&facets)
        .bind(now.0)
        .fetch_one(c)
        .await)?;
    if let Some(named) = &details.common.identifiers {
        identifiers::replace(tx, account, KIND, id.as_str(), named).await?;
    }
    let stamp = Stamp { seq, created_at: now, updated_at: now };
    Ok(Place { id, stamp, name, coordinates, details })
}

/// A place of an account.
///
/// # Errors
/// The database failed.
pub async fn find(conn: &mut Conn, account: AccountId, id: PlaceId) -> Result<Option<Place>, StoreError> {
    let row: Option<Row> = on_db!(conn, |c| sqlx::query_as(FIND)
        .bind(account.as_str())
        .bind(id.as_str())
        .fetch_optional(c)
        .await)?;
    row.map(Place::try_from).transpose()
}

/// A place of an account, which nobody else changes until the transaction ends.
///
/// # Errors
/// The database failed.
pub async fn find_locked(tx: &mut Tx, account: AccountId, id: PlaceId) -> Result<Option<Place>, StoreError> {
    let sql = dialect::lock_row(tx, PG_FIND_LOCKED, FIND);
    let row: Option<Row> = on_db!(&mut **tx, |c| sqlx::query_as(sql)
        .bind(account.as_str())
        .bind(id.as_str())
        .fetch_optional(c)
        .await)?;
    row.map(Place::try_from).transpose()
}

/// Those of some ids that are places of the account, in no order.
///
/// # Errors
/// The database failed.
pub async fn find_many(
    conn: &mut Conn,
    account: AccountId,
    ids: &[String],
) -> Result<Vec<Place>, StoreError> {
    let rows = dialect::fetch_in_list!(conn, Row, PG_FIND_MANY, SQLITE_FIND_MANY, [account.as_str()], ids)?;
    rows.into_iter().map(Place::try_from).collect()
}

/// A page of places.
///
/// # Errors
/// The database failed.
pub async fn list(conn: &mut Conn, selection: &Selection<'_>) -> Result<Page<Place>, StoreError> {
    listing::page::<Row, Place>(conn, &LIST, selection, |place| place.stamp.position()).await
}

/// Offers the ids of all places in a box that `admits` lets through; holds one row at a time.
///
/// # Errors
/// The database failed.
pub async fn offer_in_box(
    conn: &mut Conn,
    account: AccountId,
    bounds: Bounds,
    admits: impl Fn(&str, Option<&Scopes>) -> bool,
    nearest: &mut Nearest<String>,
) -> Result<(), StoreError> {
    let sql = if bounds.wraps() { IN_BOX_OVER_DATE_LINE } else { IN_BOX };
    on_db!(conn, |c| {
        let mut rows = sqlx::query_as::<_, Candidate>(sql)
            .bind(account.as_str())
            .bind(bounds.south)
            .bind(bounds.north)
            .bind(bounds.west)
            .bind(bounds.east)
            .fetch(c);
        while let Some((id, seq, latitude, longitude, scopes)) = rows.try_next().await? {
            if admits(&id, scopes.as_ref().map(|scopes| &scopes.0))
                && let Some(at) = read_point(Some(latitude), Some(longitude))?
            {
                nearest.offer(at, seq, id);
            }
        }
        Ok(())
    })
}

/// Writes a place that [`find_locked`] gave, changed.
///
/// # Errors
/// The database failed.
pub async fn update(tx: &mut Tx, account: AccountId, place: &Place) -> Result<(), StoreError> {
    let facets = facets::of(&place.details, facets::RESOURCES)?;
    on_db!(&mut **tx, |c| sqlx::query(UPDATE)
        .bind(place.id.as_str())
        .bind(&place.name)
        .bind(place.coordinates.map(Coordinates::latitude))
        .bind(place.coordinates.map(Coordinates::longitude))
        .bind(Json(&place.details))
        .bind(&facets)
        .bind(place.stamp.updated_at.0)
        .execute(c)
        .await
        .map(|_| ()))?;
    let none = std::collections::BTreeMap::new();
    let named = place.details.common.identifiers.as_ref().unwrap_or(&none);
    identifiers::replace(tx, account, KIND, place.id.as_str(), named).await
}

/// Removes a place and its identifiers; gives whether it was there. What points at it stays.
///
/// # Errors
/// The database failed.
pub async fn delete(tx: &mut Tx, account: AccountId, id: PlaceId) -> Result<bool, StoreError> {
    let gone = on_db!(&mut **tx, |c| sqlx::query(DELETE)
        .bind(account.as_str())
        .bind(id.as_str())
        .execute(c)
        .await
        .map(|done| done.rows_affected()))?
        == 1;
    if gone {
        identifiers::delete(tx, id.as_str()).await?;
    }
    Ok(gone)
}
