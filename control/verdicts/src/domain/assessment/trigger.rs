//! The trigger: the action that requests an assessment.

use std::fmt;

use serde_json::{Map, Value};
use shared::{
    id::{ActionId, ThngId},
    time::UnixMillis,
};

use crate::domain::action_names::TriggerType;
use crate::domain::{
    action::Action,
    body::millis,
    limits::{MAX_IDENTIFIER, MAX_TAG, check_custom_fields, check_text, shorten},
    location::{Coordinates, Form, Location},
    members::Members,
};

/// Where the caller says its coordinates come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocationSource {
    /// By address, from the stored scan.
    GeoIp,
    /// The device: the coordinates count.
    Sensor,
    /// Not known.
    Unknown,
}

impl LocationSource {
    /// As it is written in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::GeoIp => "geoIp",
            Self::Sensor => "sensor",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for LocationSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Named {
    /// The id or the text as a result repeats it; `None` for nothing, and for what cannot be stored.
    #[must_use]
    pub fn shown(&self) -> Option<String> {
        match self {
            Self::Nothing => None,
            Self::Id(id) => Some(id.to_string()),
            Self::Malformed(text) | Self::Value(text) => {
                let shown = shorten(text);
                check_text(shown, 1, MAX_IDENTIFIER).is_ok().then(|| shown.to_owned())
            }
        }
    }
}

/// How a trigger names the Thng.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// Not at all.
    Nothing,
    /// By its id.
    Id(ThngId),
    /// By a text that is no id.
    Malformed(String),
    /// By the scanned value.
    Value(String),
}

/// A request for an assessment.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The action that asks.
    pub id: ActionId,
    /// Its type.
    pub kind: TriggerType,
    /// The Thng.
    pub named: Named,
    /// Time of the scan, if the caller gives it.
    pub timestamp: Option<UnixMillis>,
    /// Where the coordinates come from.
    pub source: LocationSource,
    /// The coordinates; only a sensor's must be given.
    pub at: Option<Coordinates>,
    /// The caller's own members: evidence among them.
    pub custom: Map<String, Value>,
}

/// A request as received. Members that it lacks may come from the stored action with its `id`.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The action that asks.
    pub id: ActionId,
    /// The Thng.
    pub named: Named,
    kind: Option<TriggerType>,
    timestamp: Option<UnixMillis>,
    source: Option<LocationSource>,
    at: Option<Coordinates>,
    custom: Option<Map<String, Value>>,
}

impl Asked {
    /// Whether the request itself has a location.
    #[must_use]
    pub const fn gives_location(&self) -> bool {
        self.at.is_some()
    }

    /// Whether the request itself has custom fields.
    #[must_use]
    pub const fn gives_custom_fields(&self) -> bool {
        self.custom.is_some()
    }

    /// The request, with missing members taken from the stored action.
    ///
    /// # Errors
    /// Members that neither has.
    pub fn complete(self, stored: Option<&Action>) -> Result<Request, Vec<String>> {
        // An action of another type does not supply members.
        let stored = stored.filter(|action| self.kind.is_none_or(|kind| kind.as_str() == action.kind));
        let mut faults = Vec::new();
        let kind = self.kind.or_else(|| stored.and_then(|action| action.kind.parse().ok()));
        if kind.is_none() {
            faults.push("type is required.".to_owned());
        }
        let member = |name: &str| stored.and_then(|action| action.members.get(name));
        let of_stored = || match member("locationSource").and_then(Value::as_str)? {
            "geoIp" => Some(LocationSource::GeoIp),
            "sensor" => Some(LocationSource::Sensor),
            _ => Some(LocationSource::Unknown),
        };
        let source = self.source.or_else(of_stored);
        if source.is_none() {
            faults.push("locationSource is required.".to_owned());
        }
        let degrees = |name: &str| member("location").and_then(|location| location.get(name)?.as_f64());
        let at = self.at.or_else(|| Coordinates::new(degrees("latitude")?, degrees("longitude")?));
        if at.is_none() && source.is_none_or(|source| source == LocationSource::Sensor) {
            faults.push("location is required.".to_owned());
        }
        let of_stored = || member("customFields").and_then(Value::as_object).filter(|fields| is_good(fields));
        let custom = self.custom.or_else(|| of_stored().cloned()).unwrap_or_default();
        match (kind, source) {
            (Some(kind), Some(source)) if faults.is_empty() => {
                let Self { id, named, timestamp, .. } = self;
                Ok(Request { id, kind, named, timestamp, source, at, custom })
            }
            _ => Err(faults),
        }
    }

    /// Parses the body of `POST /authentication`.
    ///
    /// # Errors
    /// Every fault found, each naming its member. A malformed `thng` is not a fault: it is what the assessment is
    /// about.
    pub fn parse(body: &Value) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        if members.raw("id").is_none() {
            // No stored action can supply these.
            for name in ["id", "type", "locationSource", "location"] {
                if members.raw(name).is_none() {
                    members.fault(format!("{name} is required."));
                }
            }
        }
        let id = members.parsed("id");
        let kind = members.text("type").and_then(|text| {
            let kind = text.parse::<TriggerType>();
            kind.map_err(|error| members.fault(format!("type {error}, not {}.", shorten(text)))).ok()
        });
        let source =
            members.typed("locationSource", "geoIp, sensor or unknown", |value| match value.as_str()? {
                "geoIp" => Some(LocationSource::GeoIp),
                "sensor" => Some(LocationSource::Sensor),
                "unknown" => Some(LocationSource::Unknown),
                _ => None,
            });
        let at =
            Location::read(&mut members, "location", Form::Trigger).and_then(|location| location.coordinates);
        let timestamp = millis(&mut members, "timestamp");
        millis(&mut members, "createdAt");
        let given = members.typed("customFields", "an object", Value::as_object).cloned();
        let custom = given.clone().unwrap_or_default();
        if let Err(fault) = check_custom_fields(&custom) {
            members.fault(format!("customFields {fault}."));
        }
        check_evidence(&mut members, &custom);
        let thng = members.text("thng");
        let named =
            match (thng.filter(|text| !text.is_empty()), custom.get("scanValue").and_then(Value::as_str)) {
                (Some(text), _) => text.parse().map_or_else(|_| Named::Malformed(text.to_owned()), Named::Id),
                (None, Some(value)) if !value.is_empty() => Named::Value(value.to_owned()),
                (None, _) => Named::Nothing,
            };
        members.finish(id.map(|id| Self { id, named, kind, timestamp, source, at, custom: given }))
    }
}

/// Whether stored members could have been sent with a trigger.
fn is_good(fields: &Map<String, Value>) -> bool {
    let body = Value::Object(Map::new());
    let Ok(mut members) = Members::of(&body) else { return false };
    check_evidence(&mut members, fields);
    check_custom_fields(fields).is_ok() && members.finish(Some(())).is_ok()
}

impl Request {
    /// Whether the item is named by a scanned value.
    #[must_use]
    pub fn is_by_value(&self) -> bool {
        matches!(self.named, Named::Value(_))
    }

    /// The same with its point changed. If the point is removed, the source becomes `unknown`.
    #[must_use]
    pub fn with_point(mut self, change: impl Fn(Coordinates) -> Option<Coordinates>) -> Self {
        if let Some(at) = self.at {
            self.at = change(at);
            if self.at.is_none() {
                self.source = LocationSource::Unknown;
            }
        }
        self
    }

    /// A member of `customFields` that is a text.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.custom.get(name).and_then(Value::as_str)
    }
}

/// The members of `customFields` that rules use.
fn check_evidence(members: &mut Members<'_>, custom: &Map<String, Value>) {
    let there = |name: &str| custom.get(name).filter(|value| !value.is_null());
    if there("inspectedProductMatch").is_some_and(|value| !matches!(value.as_str(), Some("yes" | "no"))) {
        members.fault("customFields.inspectedProductMatch must be yes or no.");
    }
    for (name, most) in [
        ("requestSource", MAX_TAG - "source:".len()),
        ("requestUser", 256),
        ("requestUserName", 256),
        ("watermark", 1_024),
        ("scanValue", 2_048),
    ] {
        let fault = match there(name) {
            None => None,
            Some(Value::String(text)) => check_text(text, 0, most).err(),
            Some(_) => Some("must be a string".to_owned()),
        };
        if let Some(fault) = fault {
            members.fault(format!("customFields.{name} {fault}."));
        }
    }
    let is_list = |value: &Value| {
        value.as_array().is_some_and(|items| {
            items.len() <= 100
                && items
                    .iter()
                    .all(|item| item.as_str().is_some_and(|text| text.chars().count() <= MAX_IDENTIFIER))
        })
    };
    if there("markings").is_some_and(|value| !is_list(value)) {
        members.fault("customFields.markings must be an array of at most 100 strings.");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ID: &str = "UKXAGyEf8SQ5eTDmVgGpHqAa";

    fn with(name: &str, value: Value) -> Value {
        let mut body = json!({"id": ID, "type": "scans", "locationSource": "sensor",
            "location": {"latitude": 1.0, "longitude": 2.0,
                "position": {"type": "Point", "coordinates": [2.00005, 1.0]}}});
        body[name] = value;
        body
    }

    #[test]
    fn each_fault_is_named() {
        let point = |x: f64, y: f64| json!({"type": "Point", "coordinates": [x, y]});
        let cases: Vec<(Value, &[&str])> = vec![
            (with("unknown", json!(1)), &[]),
            (with("thng", json!("x")), &[]),
            (with("createdAt", json!(1)), &[]),
            (
                with("customFields", json!({"inspectedProductMatch": "yes", "markings": ["a"], "more": 1})),
                &[],
            ),
            (json!({}), &["id is", "type is", "locationSource is", "location is"]),
            (json!([]), &["must be a JSON object"]),
            (with("id", json!("x")), &["id: an id has 24"]),
            (with("id", json!(1)), &["id must be a string"]),
            (with("type", json!("own")), &["type must be inspectorScans"]),
            (with("type", json!(1)), &["type must be a string"]),
            (with("locationSource", json!("place")), &["locationSource must be geoIp, sensor or unknown"]),
            (with("locationSource", json!(1)), &["locationSource must be"]),
            (with("location", json!({})), &["location must have latitude, longitude and position"]),
            (with("location", json!({"latitude": 1, "longitude": 2})), &["location must have"]),
            (
                with(
                    "location",
                    json!({"latitude": 1, "longitude": 2, "position": point(2.0, 1.0), "place": ID}),
                ),
                &["location.place is not a member"],
            ),
            (
                with("location", json!({"latitude": 91, "longitude": 2, "position": point(2.0, 1.0)})),
                &["location.latitude"],
            ),
            (
                with("location", json!({"latitude": 1, "longitude": 181, "position": point(2.0, 1.0)})),
                &["location.longitude"],
            ),
            // The position wins.
            (with("location", json!({"latitude": 1, "longitude": 2, "position": point(2.5, 1.0)})), &[]),
            (with("timestamp", json!("x")), &["timestamp must be an integer"]),
            (with("timestamp", json!(-1)), &["timestamp must be an integer"]),
            (with("createdAt", json!(1.5)), &["createdAt must be an integer"]),
            (with("thng", json!(1)), &["thng must be a string"]),
            (with("customFields", json!([])), &["customFields must be an object"]),
            (
                with("customFields", json!({"inspectedProductMatch": "maybe"})),
                &["inspectedProductMatch must be"],
            ),
            (
                with("customFields", json!({"inspectedProductMatch": true})),
                &["inspectedProductMatch must be"],
            ),
            (
                with("customFields", json!({"requestSource": 1, "watermark": 2})),
                &["requestSource", "watermark"],
            ),
            (with("customFields", json!({"scanValue": "x".repeat(2_049)})), &["scanValue must have at most"]),
            (with("customFields", json!({"markings": "a"})), &["markings must be an array"]),
            (with("customFields", json!({"markings": [1]})), &["markings must be an array"]),
        ];
        for (body, expected) in cases {
            let found = Asked::parse(&body).err().unwrap_or_default();
            assert_eq!(found.len(), expected.len(), "{body}: {found:?}");
            for (fault, part) in found.iter().zip(expected) {
                assert!(fault.contains(part), "{body}: {fault}");
            }
        }
    }

    #[test]
    fn the_thng_takes_precedence_over_the_scanned_value() {
        let value = json!({"scanValue": "https://tn.gg/X"});
        let named = |body: Value| Asked::parse(&body).unwrap().named;
        assert_eq!(named(with("thng", json!(ID))), Named::Id(ID.parse().unwrap()));
        assert_eq!(named(with("thng", json!("x"))), Named::Malformed("x".to_owned()));
        assert_eq!(named(with("customFields", value.clone())), Named::Value("https://tn.gg/X".to_owned()));
        let mut both = with("thng", json!(ID));
        both["customFields"] = value;
        assert_eq!(named(both), Named::Id(ID.parse().unwrap()));
        assert_eq!(named(with("thng", json!(""))), Named::Nothing);
    }

    #[test]
    fn the_position_wins_over_latitude_and_longitude() {
        let location = json!({"latitude": 1, "longitude": 2, "position":
            {"type": "Point", "coordinates": [30.0, 40.0]}});
        let asked = Asked::parse(&with("location", location)).unwrap().complete(None).unwrap();
        assert_eq!(asked.at, Coordinates::new(40.0, 30.0));
    }

    #[test]
    fn a_stored_action_supplies_what_the_request_lacks() {
        let id: ActionId = ID.parse().unwrap();
        let stored = |members: Value| Action {
            id,
            seq: 1,
            created_at: UnixMillis(1),
            timestamp: UnixMillis(1),
            kind: "implicitScans".to_owned(),
            thng: None,
            product: None,
            members: members.as_object().cloned().unwrap(),
        };
        let without = stored(json!({"locationSource": "unknown", "customFields": {"bot": true}}));
        let located =
            stored(json!({"locationSource": "geoIp", "location": {"latitude": 1.0, "longitude": 2.0}}));
        let complete = |body: Value, stored: Option<&Action>| Asked::parse(&body).unwrap().complete(stored);
        let bare = json!({"id": ID});
        let request = complete(bare.clone(), Some(&without)).unwrap();
        let found = (request.kind, request.source, request.at);
        assert_eq!(found, (TriggerType::ImplicitScans, LocationSource::Unknown, None));
        assert_eq!(request.custom["bot"], true);
        let request = complete(bare.clone(), Some(&located)).unwrap();
        assert_eq!((request.source, request.at), (LocationSource::GeoIp, Coordinates::new(1.0, 2.0)));
        // As it was recorded: no geography, no location.
        let recorded = json!({"id": ID, "type": "scans", "locationSource": "unknown"});
        assert_eq!(complete(recorded, None).unwrap().at, None);
        let faults = complete(bare, None).unwrap_err();
        assert_eq!(faults, ["type is required.", "locationSource is required.", "location is required."]);
        let sensor = json!({"id": ID, "type": "scans", "locationSource": "sensor"});
        assert_eq!(complete(sensor, None).unwrap_err(), ["location is required."]);
    }
}
