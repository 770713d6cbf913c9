//! Points and locations in JSON.

use kernel::domain::location::{Coordinates, Location, LocationEntry};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// A point in all the forms in which it may be given.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(example = json!({"latitude": 52.52, "longitude": 13.405,
    "position": {"type": "Point", "coordinates": [13.405, 52.52]}}))]
pub struct CoordinatesDocument {
    /// Degrees, north is positive; comes with `longitude`, or is read from `position`.
    #[schema(minimum = -90, maximum = 90, required = false)]
    latitude: f64,
    /// Degrees, east is positive.
    #[schema(minimum = -180, maximum = 180, required = false)]
    longitude: f64,
    /// The same as a GeoJSON point.
    #[schema(required = false)]
    position: PointDocument,
}

/// A GeoJSON point.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(as = Point)]
pub struct PointDocument {
    /// Always `Point`.
    #[serde(rename = "type")]
    #[schema(example = "Point")]
    kind: &'static str,
    /// Longitude and latitude.
    #[schema(example = json!([13.405, 52.52]))]
    coordinates: [f64; 2],
}

impl From<Coordinates> for CoordinatesDocument {
    fn from(at: Coordinates) -> Self {
        let (latitude, longitude) = (at.latitude(), at.longitude());
        let position = PointDocument { kind: "Point", coordinates: [longitude, latitude] };
        Self { latitude, longitude, position }
    }
}

/// Where a Thng was.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Location)]
pub struct LocationDocument {
    /// When it was there, in milliseconds since 1970; the time of the request if left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<i64>,
    /// When it was recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(read_only)]
    created_at: Option<i64>,
    #[serde(flatten)]
    coordinates: Option<CoordinatesDocument>,
    /// Id of a place, which must exist; its point is taken where none is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    place: Option<String>,
    /// The caller's own members, at most 64 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    custom_fields: Option<Map<String, Value>>,
}

impl From<Location> for LocationDocument {
    fn from(location: Location) -> Self {
        Self {
            timestamp: location.timestamp.map(|at| at.0),
            created_at: None,
            coordinates: location.coordinates.map(CoordinatesDocument::from),
            place: location.place.map(|id| id.to_string()),
            custom_fields: location.custom_fields,
        }
    }
}

impl From<LocationEntry> for LocationDocument {
    fn from(entry: LocationEntry) -> Self {
        Self { created_at: Some(entry.created_at.0), ..entry.location.into() }
    }
}
