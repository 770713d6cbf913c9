//! Parses the bodies of requests that write properties.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    limits,
    members::Members,
    property::{MAX_POINTS, MAX_TIME_MS, MAX_VALUE_BYTES, NewPoint, PropertyKey, time},
};

/// Reads the body of a write of several properties: an array of `{key, value, timestamp?}`, or one such object.
///
/// # Errors
/// Every fault found, each naming the item and its member.
pub fn parse_many(body: &Value) -> Result<Vec<NewPoint>, Vec<String>> {
    match body {
        Value::Array(items) => parse_items(items, None),
        Value::Object(_) => parse_items(std::slice::from_ref(body), None),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            Err(vec!["The body must be an array of {key, value, timestamp}.".to_owned()])
        }
    }
}

// Spec gap: the forms of the single PUT are not shown. An array always lists points, so an array as a value is
// sent as `{"value": […]}`; an object with a member `value` is a point, any other object is itself the value.
/// Reads the body of a write of one property: an array of `{value, timestamp?}`, one of them, or a bare value.
///
/// # Errors
/// Every fault found, each naming the item and its member.
pub fn parse_values(key: &PropertyKey, body: &Value) -> Result<Vec<NewPoint>, Vec<String>> {
    match body {
        Value::Array(items) => parse_items(items, Some(key)),
        Value::Object(members) if members.contains_key("value") => {
            parse_items(std::slice::from_ref(body), Some(key))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            check_value(body).map_err(|fault| vec![format!("value {fault}.")])?;
            Ok(vec![NewPoint { key: key.clone(), value: body.clone(), timestamp: None }])
        }
    }
}

/// Reads the member `properties` of a new Thng or product: an object of keys and values, or an array as in
/// [`parse_many`].
///
/// # Errors
/// Every fault found, each naming the property or item.
pub fn parse_initial(value: &Value) -> Result<Vec<NewPoint>, Vec<String>> {
    let Value::Object(members) = value else {
        let Value::Array(items) = value else {
            return Err(vec!["properties must be an object or an array.".to_owned()]);
        };
        let named =
            |fault: String| format!("properties{}{fault}", if fault.starts_with('[') { "" } else { ": " });
        return parse_items(items, None).map_err(|faults| faults.into_iter().map(named).collect());
    };
    if members.len() > MAX_POINTS {
        return Err(vec![format!("properties must have at most {MAX_POINTS} members.")]);
    }
    let mut faults = Vec::new();
    let mut points = Vec::with_capacity(members.len());
    let mut seen = HashSet::new();
    for (name, value) in members {
        let key = match PropertyKey::parse(name) {
            Ok(key) => key,
            Err(fault) => {
                faults.push(format!("properties has a key that {fault}."));
                continue;
            }
        };
        if let Err(fault) = check_value(value) {
            faults.push(format!("properties.{} {fault}.", limits::shorten(name)));
        }
        // The members of an object have no order that could say which one is the later.
        if !seen.insert(key.clone()) {
            faults.push(format!("properties names {} twice.", limits::shorten(key.as_str())));
        }
        points.push(NewPoint { key, value: value.clone(), timestamp: None });
    }
    if faults.is_empty() { Ok(points) } else { Err(faults) }
}

fn parse_items(items: &[Value], path_key: Option<&PropertyKey>) -> Result<Vec<NewPoint>, Vec<String>> {
    /// Most faults that are reported; for a body of thousands of invalid items these are enough.
    const MAX_FAULTS: usize = 100;
    if items.len() > MAX_POINTS {
        return Err(vec![format!("The body must have at most {MAX_POINTS} items, not {}.", items.len())]);
    }
    let mut faults = Vec::new();
    let mut points = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        match parse_item(item, path_key) {
            Ok(point) => points.push(point),
            Err(found) => faults.extend(found.into_iter().map(|fault| format!("[{index}].{fault}"))),
        }
        if faults.len() >= MAX_FAULTS {
            break;
        }
    }
    if faults.is_empty() { Ok(points) } else { Err(faults) }
}

fn parse_item(item: &Value, path_key: Option<&PropertyKey>) -> Result<NewPoint, Vec<String>> {
    let mut members = Members::of(item).map_err(|_| vec!["value: the item must be an object.".to_owned()])?;
    let named = match members.text("key").map(PropertyKey::parse) {
        Some(Ok(key)) => Some(key),
        Some(Err(fault)) => {
            members.fault(format!("key {fault}."));
            None
        }
        None => None,
    };
    let key = match (named, path_key) {
        (Some(named), Some(key)) if named != *key => {
            members.fault("key must be the one of the path, or be left out.");
            None
        }
        (named, Some(key)) => named.or_else(|| Some(key.clone())),
        (named, None) => {
            if named.is_none() && members.raw("key").is_none() {
                members.fault("key is required.");
            }
            named
        }
    };
    let value = match item.get("value") {
        None => {
            members.fault("value is required.");
            None
        }
        Some(value) => match check_value(value) {
            Ok(()) => Some(value.clone()),
            Err(fault) => {
                members.fault(format!("value {fault}."));
                None
            }
        },
    };
    let expected = format!("an integer of milliseconds from -{MAX_TIME_MS} to {MAX_TIME_MS}");
    let timestamp = members.typed("timestamp", &expected, |value| limits::integer(value).and_then(time));
    let point = key.zip(value).map(|(key, value)| NewPoint { key, value, timestamp });
    members.finish(point)
}

/// Whether a property can have a value.
///
/// # Errors
/// What is wrong with it.
pub fn check_value(value: &Value) -> Result<(), String> {
    if value.is_null() {
        return Err("must be a string, number, boolean, array or object, not null".to_owned());
    }
    let size_bytes = value.to_string().len();
    if size_bytes > MAX_VALUE_BYTES {
        return Err(format!("must have at most {MAX_VALUE_BYTES} bytes, not {size_bytes}"));
    }
    limits::check_nested(value)
}

#[cfg(test)]
mod tests {
    use kernel::domain::body::assert_faults;
    use serde_json::json;
    use shared::time::UnixMillis;

    use super::*;

    fn key(text: &str) -> PropertyKey {
        PropertyKey::parse(text).unwrap()
    }

    fn nested(depth: usize) -> Value {
        (0..depth).fold(json!(1), |inner, _| json!([inner]))
    }

    #[test]
    fn one_property_takes_three_forms() {
        let temp = key("temp");
        let point = |value: Value, at: Option<i64>| NewPoint {
            key: temp.clone(),
            value,
            timestamp: at.map(UnixMillis),
        };
        for (body, expected) in [
            (json!(43), vec![point(json!(43), None)]),
            (json!("x"), vec![point(json!("x"), None)]),
            (json!(false), vec![point(json!(false), None)]),
            (json!({"lat": 1}), vec![point(json!({"lat": 1}), None)]),
            (json!({}), vec![point(json!({}), None)]),
            (json!({"value": 1}), vec![point(json!(1), None)]),
            (json!({"value": [1, 2], "timestamp": -5, "own": 1}), vec![point(json!([1, 2]), Some(-5))]),
            (json!({"value": {"value": 1}}), vec![point(json!({"value": 1}), None)]),
            (
                json!([{"value": 1}, {"value": "b", "timestamp": 9, "key": "TEMP"}]),
                vec![point(json!(1), None), point(json!("b"), Some(9))],
            ),
            (json!([{"value": 1, "timestamp": null}]), vec![point(json!(1), None)]),
            (json!([]), vec![]),
        ] {
            assert_eq!(parse_values(&temp, &body), Ok(expected), "{body}");
        }
        for (body, faults) in [
            (json!(null), vec!["value must be"]),
            (json!({"value": null}), vec!["[0].value must be"]),
            (json!(["a", "b"]), vec!["[0].value: the item", "[1].value: the item"]),
            (json!([{"value": 1}, {}]), vec!["[1].value is required"]),
            (json!([{"value": 1, "timestamp": 1.5}]), vec!["[0].timestamp must be"]),
            (json!([{"value": 1, "timestamp": "2026"}]), vec!["[0].timestamp must be"]),
            (json!([{"value": 1, "timestamp": MAX_TIME_MS + 1}]), vec!["[0].timestamp must be"]),
            (json!([{"value": 1, "timestamp": u64::MAX}]), vec!["[0].timestamp must be"]),
            (json!([{"value": 1, "key": "other"}]), vec!["[0].key must be the one"]),
            (json!([{"value": null, "key": 7, "timestamp": "x"}]), vec!["key", "value", "timestamp"]),
            (json!("x".repeat(MAX_VALUE_BYTES)), vec!["value must have at most"]),
            (json!({"value": nested(17)}), vec!["nested deeper"]),
            (json!({"a": "nul \0"}), vec!["U+0000"]),
            (json!(vec![json!({"value": 1}); MAX_POINTS + 1]), vec!["at most 10000 items"]),
        ] {
            assert_faults(&body, |body| parse_values(&temp, body), &faults);
        }
        assert_eq!(parse_values(&temp, &json!(vec![1; 5_000])).unwrap_err().len(), 100);
    }

    #[test]
    fn several_properties_name_their_keys() {
        let body = json!([{"key": "A", "value": 1}, {"key": "b", "value": [], "timestamp": 4}]);
        let points = parse_many(&body).unwrap();
        assert_eq!(points.iter().map(|point| point.key.as_str()).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(parse_many(&body[0]).unwrap(), points[..1]);
        for (body, faults) in [
            (json!(1), vec!["The body must be an array"]),
            (json!({}), vec!["[0].key is required", "[0].value is required"]),
            (json!([{"key": "", "value": 1}]), vec!["[0].key must not be empty"]),
            (json!([{"key": 1, "value": 1}]), vec!["[0].key must be a string"]),
        ] {
            assert_faults(&body, parse_many, &faults);
        }
    }

    #[test]
    fn a_new_resource_may_have_properties() {
        assert_eq!(parse_initial(&json!({"A": 1, "b": {}})).unwrap().len(), 2);
        assert_eq!(parse_initial(&json!([{"key": "A", "value": 1}])).unwrap()[0].key, key("a"));
        for (value, fault) in [
            (json!("x"), "properties must be an object"),
            (json!({"A": 1, "a": 2}), "properties names a twice"),
            (json!({"": 1}), "properties has a key that must not be empty"),
            (json!({"a": null}), "properties.a must be"),
            (json!([{"key": "a"}]), "properties[0].value is required"),
        ] {
            let found = parse_initial(&value).unwrap_err();
            assert!(found.len() == 1 && found[0].contains(fault), "{value}: {found:?}");
        }
    }
}
