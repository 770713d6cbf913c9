//! Places: their members, and how an update merges into them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use shared::{id::PlaceId, time::UnixMillis};

use super::{
    body::{self, Purpose},
    common::{Common, Stamp},
    limits::{MAX_NAME, MAX_URL, check_custom_fields},
    location::Coordinates,
    members::Members,
    named::named,
};

/// The members of a place beside its name and point; stored as one document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PlaceDetails {
    /// What products and Thngs have too.
    #[serde(flatten)]
    pub common: Common,
    /// A kind that the caller chose.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// URL of a picture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub icon: Option<String>,
    /// The address by its parts, as the caller calls them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<Map<String, Value>>,
}

/// A place: somewhere that Thngs and actions may be.
#[derive(Debug, Clone, PartialEq)]
pub struct Place {
    /// Its id.
    pub id: PlaceId,
    /// Order and times.
    pub stamp: Stamp,
    /// Its name.
    pub name: String,
    /// Where it is.
    pub coordinates: Option<Coordinates>,
    /// Everything else.
    pub details: PlaceDetails,
}

/// The members of a create or update of a place; `None` means not given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PlaceChange {
    /// Its name, required on create.
    pub name: Option<String>,
    /// Where it is, in whichever form it was given.
    pub coordinates: Option<Coordinates>,
    /// Everything else.
    pub details: PlaceDetails,
}

impl Place {
    /// The place after a change at `now`.
    #[must_use]
    pub fn apply(self, change: PlaceChange, now: UnixMillis) -> Self {
        let (old, new) = (self.details, change.details);
        let details = PlaceDetails {
            common: old.common.merge(new.common),
            kind: new.kind.or(old.kind),
            icon: new.icon.or(old.icon),
            address: new.address.or(old.address),
        };
        Self {
            id: self.id,
            stamp: self.stamp.touch(now),
            name: change.name.unwrap_or(self.name),
            coordinates: change.coordinates.or(self.coordinates),
            details,
        }
    }
}

impl PlaceChange {
    /// Reads the body of `POST /places` and `PUT /places/:id`.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value, purpose: Purpose) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let name = body::name(&mut members, purpose);
        let details = PlaceDetails {
            common: body::common(&mut members),
            kind: body::text(&mut members, "type", 0, MAX_NAME),
            icon: body::text(&mut members, "icon", 0, MAX_URL),
            address: address(&mut members),
        };
        let coordinates = Coordinates::read(&mut members);
        members.finish(Some(Self { name, coordinates, details }))
    }
}

// Spec gap: the parts of an address are not shown; any object is kept as it is.
fn address(members: &mut Members<'_>) -> Option<Map<String, Value>> {
    let address = members.typed("address", "an object", Value::as_object)?;
    match check_custom_fields(address) {
        Ok(()) => Some(address.clone()),
        Err(fault) => {
            members.fault(format!("address {fault}."));
            None
        }
    }
}

named! {
    Place: PlaceId, PlaceDetails, "place", Places;
}

#[cfg(test)]
mod tests {
    use kernel::domain::body::assert_faults;
    use serde_json::json;

    use super::*;

    #[test]
    fn each_fault_of_a_place_is_named() {
        let point = json!({"type": "Point", "coordinates": [13.0, 52.0]});
        for (body, faults) in [
            (json!({"name": "x"}), vec![]),
            (json!({"name": "x", "position": point}), vec![]),
            (json!({"name": "x", "position": point, "latitude": 52, "longitude": 13, "unknown": 1}), vec![]),
            (json!({"name": "x", "address": {"city": "Berlin", "lines": ["a", "b"]}, "icon": "i"}), vec![]),
            (json!({}), vec!["name is required"]),
            (json!({"name": "x", "latitude": 52}), vec!["latitude needs longitude"]),
            (json!({"name": "x", "position": point, "latitude": 52, "longitude": 14}), vec![]),
            (json!({"name": "x", "latitude": 91, "longitude": 1}), vec!["latitude must be a number"]),
            (
                json!({"name": 1, "type": 2, "icon": 3, "address": "x", "position": 4}),
                vec!["name", "type", "icon", "address", "position"],
            ),
            (json!({"name": "x", "address": {"": 1}}), vec!["address has a key"]),
            (json!([]), vec!["The body must be a JSON object"]),
        ] {
            assert_faults(&body, |body| PlaceChange::parse(body, Purpose::Create), &faults);
        }
    }

    #[test]
    fn an_update_replaces_the_members_given() {
        let place = Place {
            id: PlaceId::new(1, [1; 16]),
            stamp: Stamp { seq: 1, created_at: UnixMillis(5), updated_at: UnixMillis(5) },
            name: "a".to_owned(),
            coordinates: Coordinates::new(1.0, 2.0),
            details: PlaceDetails { icon: Some("kept".to_owned()), ..PlaceDetails::default() },
        };
        let change = PlaceChange {
            details: PlaceDetails { kind: Some("shop".to_owned()), ..PlaceDetails::default() },
            ..PlaceChange::default()
        };
        let changed = place.clone().apply(change, UnixMillis(5));
        assert_eq!((&changed.name, changed.coordinates), (&place.name, place.coordinates));
        assert_eq!(changed.details.icon.as_deref(), Some("kept"));
        assert_eq!(changed.details.kind.as_deref(), Some("shop"));
        let moved = PlaceChange { coordinates: Coordinates::new(3.0, 4.0), ..PlaceChange::default() };
        assert_eq!(place.apply(moved, UnixMillis(5)).coordinates, Coordinates::new(3.0, 4.0));
    }
}
