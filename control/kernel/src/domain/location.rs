//! Locations: the form that places, Thngs and actions share.
//!
//! A point may be given as a GeoJSON `position`, as `latitude` and `longitude`, or as both, where `position` wins. It
//! is returned in all three.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use serde_with_macros::skip_serializing_none;
use shared::{id::PlaceId, time::UnixMillis};

use super::{body, limits, members::Members, page::Position};

/// A point on the earth, in degrees.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Coordinates {
    latitude: f64,
    longitude: f64,
}

/// A time and a point, a place or both.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Location {
    /// The point, in whichever form it was given.
    pub coordinates: Option<Coordinates>,
    /// The place; whether there is such a place is for the service to say.
    pub place: Option<PlaceId>,
    /// Time of the location, if the caller gives it.
    pub timestamp: Option<UnixMillis>,
    /// The caller's own members.
    pub custom_fields: Option<Map<String, Value>>,
}

/// A stored location of a Thng.
#[derive(Debug, Clone, PartialEq)]
pub struct LocationEntry {
    /// Its place in the history: its timestamp, and order of insertion.
    pub position: Position,
    /// When it was recorded.
    pub created_at: UnixMillis,
    /// The location, with its timestamp.
    pub location: Location,
}

/// Which members a location has to have and may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A point or a place; other members are ignored (Thngs, actions).
    Open,
    /// `position` or `place`, and no other members.
    Commissioning,
    /// `latitude`, `longitude` and `position`, and no other members.
    Trigger,
}

impl Coordinates {
    /// A point; `None` outside of -90..90 and -180..180.
    #[must_use]
    pub fn new(latitude: f64, longitude: f64) -> Option<Self> {
        let fits = (-90.0..=90.0).contains(&latitude) && (-180.0..=180.0).contains(&longitude);
        // Adding zero converts -0.0 to 0.0.
        fits.then_some(Self { latitude: latitude + 0.0, longitude: longitude + 0.0 })
    }

    /// Reads `position`, `latitude` and `longitude`; `None` without them, or with a fault.
    pub fn read(members: &mut Members<'_>) -> Option<Self> {
        let position = read_position(members);
        let latitude = read_degrees(members, "latitude", 90.0);
        let longitude = read_degrees(members, "longitude", 180.0);
        let has = |name| members.raw(name).is_some();
        if has("latitude") != has("longitude") {
            let (there, missing) =
                if has("latitude") { ("latitude", "longitude") } else { ("longitude", "latitude") };
            members.fault(format!("{} needs {missing} beside it.", members.path(there)));
            return None;
        }
        let pair = latitude.zip(longitude).and_then(|(latitude, longitude)| Self::new(latitude, longitude));
        // A client that changes the position of a resource that it read sends back the old pair beside it.
        position.or(pair)
    }

    /// The point of a stored location, by its `latitude` and `longitude`.
    #[must_use]
    pub fn of_members(members: &Map<String, Value>) -> Option<Self> {
        let degrees = |name: &str| members.get(name).and_then(Value::as_f64);
        Self::new(degrees("latitude")?, degrees("longitude")?)
    }

    /// North of the equator is positive; -90 to 90.
    #[must_use]
    pub const fn latitude(self) -> f64 {
        self.latitude
    }

    /// East of Greenwich is positive; -180 to 180.
    #[must_use]
    pub const fn longitude(self) -> f64 {
        self.longitude
    }

    /// The three members in which a point comes back: `latitude`, `longitude`, `position`.
    #[must_use]
    pub fn members(self) -> Map<String, Value> {
        let Self { latitude, longitude } = self;
        let position = json!({"type": "Point", "coordinates": [longitude, latitude]});
        Map::from_iter([
            ("latitude".to_owned(), latitude.into()),
            ("longitude".to_owned(), longitude.into()),
            ("position".to_owned(), position),
        ])
    }
}

impl Location {
    /// Reads a location that is a value of its own; faults call it by `name`.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(value: &Value, name: &str, form: Form) -> Result<Self, Vec<String>> {
        let mut members = Members::within(value, name)?;
        if let Some(allowed) = form.allowed() {
            for extra in members.names().filter(|name| !allowed.contains(name)) {
                let extra = members.path(limits::shorten(extra));
                members.fault(format!("{extra} is not a member of a location."));
            }
        }
        let coordinates = Coordinates::read(&mut members);
        let place = members.parsed("place");
        let timestamp = members.typed("timestamp", "an integer, in milliseconds since 1970", read_millis);
        let custom_fields = match form {
            Form::Open => body::custom_fields(&mut members),
            Form::Commissioning => {
                members.typed("createdAt", "an integer, in milliseconds since 1970", read_millis);
                members.typed(
                    "scopes",
                    "an object with users and projects, both arrays of strings",
                    check_scopes,
                );
                None
            }
            Form::Trigger => None,
        };
        let missing = form.missing(|name| members.raw(name).is_some());
        if let Some(missing) = missing {
            members.fault(format!("{name} must have {missing}."));
        }
        members.finish(Some(Self { coordinates, place, timestamp, custom_fields }))
    }

    /// Reads the member `name` of a body; `None` when it is absent, or has faults.
    pub fn read(members: &mut Members<'_>, name: &str, form: Form) -> Option<Self> {
        let value = members.raw(name)?;
        match Self::parse(value, &members.path(name), form) {
            Ok(location) => Some(location),
            Err(faults) => {
                faults.into_iter().for_each(|fault| members.fault(fault));
                None
            }
        }
    }

    /// The location with the point of its place where it names none itself.
    #[must_use]
    pub fn or_at(self, place: Option<Coordinates>) -> Self {
        Self { coordinates: self.coordinates.or(place), ..self }
    }

    /// The location as it comes back in an action or with a Thng.
    #[must_use]
    pub fn members(&self) -> Map<String, Value> {
        let mut members = self.coordinates.map(Coordinates::members).unwrap_or_default();
        if let Some(place) = self.place {
            members.insert("place".to_owned(), place.to_string().into());
        }
        if let Some(timestamp) = self.timestamp {
            members.insert("timestamp".to_owned(), timestamp.0.into());
        }
        if let Some(custom_fields) = &self.custom_fields {
            members.insert("customFields".to_owned(), Value::Object(custom_fields.clone()));
        }
        members
    }
}

impl Form {
    const fn allowed(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Open => None,
            Self::Commissioning => {
                Some(&["position", "createdAt", "timestamp", "longitude", "latitude", "place", "scopes"])
            }
            Self::Trigger => Some(&["latitude", "longitude", "position"]),
        }
    }

    /// The missing member of a location that has these members.
    fn missing(self, has: impl Fn(&str) -> bool) -> Option<&'static str> {
        let is_whole = match self {
            Self::Open => has("position") || has("latitude") || has("longitude") || has("place"),
            Self::Commissioning => has("position") || has("place"),
            Self::Trigger => has("position") && has("latitude") && has("longitude"),
        };
        let needed = match self {
            Self::Open => "position, latitude and longitude, or place",
            Self::Commissioning => "position or place",
            Self::Trigger => "latitude, longitude and position",
        };
        (!is_whole).then_some(needed)
    }
}

// Spec gap: a third coordinate, the height of GeoJSON, is not mentioned; it is refused.
fn read_position(members: &mut Members<'_>) -> Option<Coordinates> {
    let value = members.raw("position")?;
    let path = members.path("position");
    let point = value.get("type").and_then(Value::as_str) == Some("Point");
    let numbers: Option<Vec<f64>> = value
        .get("coordinates")
        .and_then(Value::as_array)
        .and_then(|numbers| numbers.iter().map(Value::as_f64).collect());
    let Some([longitude, latitude]) = numbers.as_deref().filter(|_| point) else {
        members.fault(format!(
            "{path} must be a GeoJSON point: type is Point, coordinates are longitude and latitude."
        ));
        return None;
    };
    let found = Coordinates::new(*latitude, *longitude);
    if found.is_none() {
        members.fault(format!(
            "{path}.coordinates must hold a longitude from -180 to 180 and a latitude from -90 to 90."
        ));
    }
    found
}

fn read_degrees(members: &mut Members<'_>, name: &str, limit: f64) -> Option<f64> {
    let degrees = |value: &Value| value.as_f64().filter(|degrees| degrees.abs() <= limit);
    members.typed(name, &format!("a number from -{limit} to {limit}"), degrees)
}

fn read_millis(value: &Value) -> Option<UnixMillis> {
    limits::integer(value).filter(|at| *at >= 0).map(UnixMillis)
}

/// The scopes of a location are read-only, but must have their form.
fn check_scopes(value: &Value) -> Option<()> {
    let is_list =
        |name| value.get(name).and_then(Value::as_array).is_some_and(|ids| ids.iter().all(Value::is_string));
    (is_list("users") && is_list("projects")).then_some(())
}

#[cfg(test)]
mod tests;
