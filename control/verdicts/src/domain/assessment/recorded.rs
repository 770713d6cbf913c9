//! Accepts a trigger whose location is sent back as it was recorded.
//!
//! The API's form of a trigger only has a point. A stored action may have a place, a time or custom fields in its
//! location, and `place` as its source; a client that sends "the action as recorded" sends them too.

use serde_json::Value;

use crate::domain::action::Action;

/// Members of a location that the form of a trigger has not.
const MORE: [&str; 3] = ["place", "timestamp", "customFields"];

/// Whether a body has what only a recorded action has.
#[must_use]
pub fn has_recorded_location(body: &Value) -> bool {
    body["locationSource"] == "place" || MORE.iter().any(|name| body["location"].get(name).is_some())
}

/// The body without its location and the source of it, if both are those of the stored action.
#[must_use]
pub fn without_location(body: &Value, stored: &Action) -> Option<Value> {
    let is_recorded = |name: &str| match body.get(name) {
        None | Some(Value::Null) => true,
        Some(sent) => stored.members.get(name).is_some_and(|kept| is_same(sent, kept)),
    };
    if !is_recorded("location") || !is_recorded("locationSource") {
        return None;
    }
    let mut members = body.as_object()?.clone();
    members.remove("location");
    members.remove("locationSource");
    Some(Value::Object(members))
}

/// Whether two values are the same to a client that has one kind of number.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| is_same(a, b)))
        }
        (a, b) => a == b,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shared::time::UnixMillis;

    use super::*;

    #[test]
    fn only_recorded_members_are_dropped() {
        let id = "UKXAGyEf8SQ5eTDmVgGpHqAa";
        let members =
            json!({"locationSource": "place", "location": {"place": id, "latitude": 1.0, "timestamp": 5}});
        let stored = Action {
            id: id.parse().unwrap(),
            seq: 1,
            created_at: UnixMillis(1),
            timestamp: UnixMillis(1),
            kind: "scans".to_owned(),
            thng: None,
            product: None,
            members: members.as_object().cloned().unwrap(),
        };
        let body = |location: Value| json!({"id": id, "locationSource": "place", "location": location});
        for (location, is_recorded) in [
            (json!({"place": id, "latitude": 1, "timestamp": 5}), true),
            (json!({"timestamp": 5, "latitude": 1.0, "place": id}), true),
            (Value::Null, true),
            (json!({"place": id, "latitude": 1, "timestamp": 6}), false),
            (json!({"place": id, "latitude": 1}), false),
            (json!({"place": id, "latitude": 1, "timestamp": 5, "more": 1}), false),
        ] {
            let body = body(location);
            assert!(has_recorded_location(&body), "{body}");
            let expected = is_recorded.then(|| json!({"id": id}));
            assert_eq!(without_location(&body, &stored), expected, "{body}");
        }
        let mut other = body(json!({"place": id, "latitude": 1, "timestamp": 5}));
        other["locationSource"] = json!("sensor");
        assert_eq!(without_location(&other, &stored), None);
        assert!(!has_recorded_location(&json!({"locationSource": "sensor", "location": {"latitude": 1}})));
    }
}
