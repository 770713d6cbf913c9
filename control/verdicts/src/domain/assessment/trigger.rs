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

shared::words! {
    /// Where the caller says its coordinates come from.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum LocationSource {
        /// By address, from the stored scan.
        GeoIp = "geoIp",
        /// The device: the coordinates count.
        Sensor = "sensor",
        /// Not known.
        Unknown = "unknown",
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
mod tests;
