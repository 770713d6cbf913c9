//! What happened, as subscribers hear of it: values of properties, and actions.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use shared::{
    id::{AccountId, ActionId},
    time::UnixMillis,
};

use super::{
    action::Action,
    property::{Owner, Point, PropertyKey},
    redirection::Scopes,
};

/// Something that was written.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Values of properties of one resource, as one request wrote them.
    Properties {
        /// Whose they are.
        owner: Owner,
        /// Id of the Thng or product.
        resource: String,
        /// What was written, in order.
        points: Vec<Point>,
    },
    /// An action was made. It never changes, so what it says is read where somebody wants to hear it.
    Action(ActionEvent),
}

/// What says who hears of an action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActionEvent {
    /// Its id.
    pub id: ActionId,
    /// Its type.
    pub kind: String,
    /// The Thng it is about.
    pub thng: Option<String>,
    /// The product it is about.
    pub product: Option<String>,
    /// The collection it is about.
    pub collection: Option<String>,
    /// Who may see it beside operators.
    pub scopes: Option<Scopes>,
}

/// An event in its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Its number; those of one resource are in the order of their commits.
    pub seq: i64,
    /// When it was written.
    pub at: UnixMillis,
    /// The account.
    pub account: AccountId,
    /// The connection that wrote it, if it was one that also hears.
    pub origin: Option<String>,
    /// What happened.
    pub event: Event,
}

#[derive(Serialize, Deserialize)]
struct Body {
    owner: String,
    resource: String,
    points: Vec<(String, Value, i64, i64)>,
}

impl Event {
    /// The word for its kind, as stored.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Properties { .. } => "properties",
            Self::Action(_) => "action",
        }
    }

    /// It as stored.
    #[must_use]
    pub fn to_body(&self) -> Value {
        match self {
            Self::Properties { owner, resource, points } => {
                let points: Vec<Value> = points
                    .iter()
                    .map(|point| {
                        json!([point.key.as_str(), point.value, point.timestamp.0, point.created_at.0])
                    })
                    .collect();
                json!({"owner": owner.as_str(), "resource": resource, "points": points})
            }
            Self::Action(action) => json!(action),
        }
    }

    /// Reads what was stored; `None` when it is of another version.
    #[must_use]
    pub fn read(kind: &str, body: &str) -> Option<Self> {
        match kind {
            "properties" => {
                let body: Body = serde_json::from_str(body).ok()?;
                let owner = [Owner::Thng, Owner::Product].into_iter().find(|o| o.as_str() == body.owner)?;
                let point = |(key, value, timestamp, created_at)| Point {
                    key: PropertyKey::stored(key),
                    value,
                    timestamp: UnixMillis(timestamp),
                    created_at: UnixMillis(created_at),
                };
                let points = body.points.into_iter().map(point).collect();
                Some(Self::Properties { owner, resource: body.resource, points })
            }
            "action" => serde_json::from_str(body).ok().map(Self::Action),
            _ => None,
        }
    }
}

/// A value as a message holds it: the form of the HTTP API.
#[must_use]
pub fn point_message(point: &Point) -> Value {
    json!({
        "key": point.key.as_str(),
        "value": point.value,
        "timestamp": point.timestamp.0,
        "createdAt": point.created_at.0,
    })
}

/// An action as a message holds it: the form of the HTTP API, without `context` and `scopes`.
#[must_use]
pub fn action_message(action: &Action) -> Value {
    let mut members: Map<String, Value> = action.members.clone();
    members.remove("scopes");
    members.remove("context");
    // The columns win over what a document may hold under the same name.
    for (name, value) in [
        ("id", json!(action.id)),
        ("createdAt", json!(action.created_at.0)),
        ("timestamp", json!(action.timestamp.0)),
        ("type", json!(action.kind)),
    ] {
        members.insert(name.to_owned(), value);
    }
    for (name, id) in
        [("thng", action.thng.map(|id| id.to_string())), ("product", action.product.map(|id| id.to_string()))]
    {
        match id {
            Some(id) => members.insert(name.to_owned(), json!(id)),
            None => members.remove(name),
        };
    }
    Value::Object(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_comes_back() {
        let point = Point {
            key: PropertyKey::stored("temp".to_owned()),
            value: json!({"a": [1.5, null, "\u{1F45F}"]}),
            timestamp: UnixMillis(-5),
            created_at: UnixMillis(7),
        };
        let action = ActionEvent {
            id: ActionId::new(1, [2; 16]),
            kind: "_own".to_owned(),
            thng: Some("T".to_owned()),
            product: None,
            collection: None,
            scopes: Some(Scopes { users: vec!["all".to_owned()], projects: vec![] }),
        };
        for event in [
            Event::Properties { owner: Owner::Product, resource: "R".to_owned(), points: vec![point] },
            Event::Properties { owner: Owner::Thng, resource: String::new(), points: vec![] },
            Event::Action(action),
        ] {
            assert_eq!(Event::read(event.kind(), &event.to_body().to_string()), Some(event));
        }
        for (kind, body) in [("properties", "{}"), ("action", "[]"), ("later", "{}"), ("action", "")] {
            assert_eq!(Event::read(kind, body), None, "{kind} {body}");
        }
    }
}
