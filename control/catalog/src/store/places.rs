//! The table of places, and the search for the nearest.

use countries::distance::{Bounds, Nearest};
use futures_util::TryStreamExt;
use shared::id::{AccountId, PlaceId};
use sqlx::types::Json;

use super::{
    Conn, StoreError,
    documents::{Base, Cell, Document, Statements, statements},
    listing::{Column, Table},
    on_db,
};
use crate::domain::{common::Stamp, location::Coordinates, place::Place, scopes::Scopes};

macro_rules! columns {
    () => {
        "SELECT t.id, t.seq, t.name, t.latitude, t.longitude, t.doc, t.created_at, t.updated_at"
    };
}

const STATEMENTS: Statements = statements!(
    "places",
    columns!(),
    ", facets, latitude, longitude",
    ", $6, $7, $8",
    ", facets = $6, latitude = $7, longitude = $8",
    LIST
);
const LIST: Table = Table {
    select: concat!(columns!(), " FROM places t"),
    order: ("t.created_at", "t.seq"),
    columns: &[("name", Column::Text("t.name"))],
    identifiers: Some("place"),
    faceted: true,
    itself: "t.id",
};
const IN_BOX: &str = "SELECT id, seq, latitude, longitude, doc -> 'scopes' FROM places WHERE account_id = $1 \
    AND latitude >= $2 AND latitude <= $3 AND longitude >= $4 AND longitude <= $5";
const IN_BOX_OVER_DATE_LINE: &str = "SELECT id, seq, latitude, longitude, doc -> 'scopes' FROM places \
    WHERE account_id = $1 AND latitude >= $2 AND latitude <= $3 AND (longitude >= $4 OR longitude <= $5)";

/// Columns of a search: id, insertion order, point, scopes.
type Candidate = (String, i64, f64, f64, Option<Json<Scopes>>);

/// The columns that only places have.
#[derive(sqlx::FromRow)]
pub struct Point {
    latitude: Option<f64>,
    longitude: Option<f64>,
}

impl Document for Place {
    type Own = Point;

    const TABLE: &'static Statements = &STATEMENTS;

    fn build(id: PlaceId, stamp: Stamp, row: Base<Self>, own: Point) -> Result<Self, StoreError> {
        let coordinates = read_point(own.latitude, own.longitude)?;
        Ok(Self { id, stamp, name: row.name, coordinates, details: row.details })
    }

    fn own(&self) -> Vec<Cell> {
        vec![
            Cell::Real(self.coordinates.map(Coordinates::latitude)),
            Cell::Real(self.coordinates.map(Coordinates::longitude)),
        ]
    }
}

/// Reads the two columns of a point back.
pub fn read_point(latitude: Option<f64>, longitude: Option<f64>) -> Result<Option<Coordinates>, StoreError> {
    let Some((latitude, longitude)) = latitude.zip(longitude) else { return Ok(None) };
    let point = Coordinates::new(latitude, longitude);
    point.map(Some).ok_or_else(|| StoreError::Row(format!("point: {latitude}, {longitude}")))
}

/// Offers the ids of all places in a box that `admits` accepts; holds one row at a time.
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
