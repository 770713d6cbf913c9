//! Points and locations as they travel (contract: Common conventions).

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::location::Coordinates;

/// A point in all the forms in which it may be given.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[schema(example = json!({"latitude": 52.52, "longitude": 13.405,
    "position": {"type": "Point", "coordinates": [13.405, 52.52]}}))]
pub(super) struct CoordinatesDocument {
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
pub(super) struct PointDocument {
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
