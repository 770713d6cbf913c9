//! Size limits of the members of resources, and the checks for them.
//!
//! Spec gap: the platform API gives no request limits. They are chosen so that a resource stays below a fifth of
//! [`MAX_BODY_BYTES`], and a page of 100 of them below 20 MiB.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// Largest body of a request: 1 MiB, which is also a bulk write of 2,000 redirections.
pub const MAX_BODY_BYTES: usize = 1024 * 1024;

/// Longest name, brand or type, in characters.
pub const MAX_NAME: usize = 256;
/// Longest description, in characters.
pub const MAX_DESCRIPTION: usize = 4_096;
/// Longest URL of a product or photo, in bytes; as long as a redirection's target.
pub const MAX_URL: usize = 2_048;
/// Most tags, categories, photos or scopes of one resource.
pub const MAX_LIST: usize = 100;
/// Longest tag or category, in characters.
pub const MAX_TAG: usize = 128;
/// Most identifiers of one resource.
pub const MAX_IDENTIFIERS: usize = 50;
/// Longest key of an identifier or custom field, in characters.
pub const MAX_KEY: usize = 128;
/// Longest value of an identifier, in characters; GS1 serials have 20.
pub const MAX_IDENTIFIER: usize = 256;
/// Largest `customFields`, in bytes of compact JSON.
pub const MAX_CUSTOM_FIELDS_BYTES: usize = 64 * 1024;
/// Deepest nesting inside `customFields`: its own members are at depth 1.
pub const MAX_CUSTOM_FIELDS_DEPTH: usize = 16;

/// Checks a text against its limits; the fault is a sentence without its subject.
///
/// # Errors
/// The text is shorter or longer than allowed, or holds U+0000, which no database column takes.
pub fn check_text(text: &str, min: usize, max: usize) -> Result<(), String> {
    let length = text.chars().count();
    if length < min {
        return Err("must not be empty".to_owned());
    }
    if length > max {
        return Err(format!("must have at most {max} characters, not {length}"));
    }
    if text.contains('\0') {
        return Err("must not hold the character U+0000".to_owned());
    }
    Ok(())
}

/// Checks `customFields`: size, depth and keys.
///
/// # Errors
/// The first limit that is passed, as a sentence without its subject.
pub fn check_custom_fields(fields: &Map<String, Value>) -> Result<(), String> {
    let size_bytes = serde_json::to_string(fields).map_or(usize::MAX, |text| text.len());
    if size_bytes > MAX_CUSTOM_FIELDS_BYTES {
        return Err(format!("must have at most {MAX_CUSTOM_FIELDS_BYTES} bytes, not {size_bytes}"));
    }
    for key in fields.keys() {
        check_text(key, 1, MAX_KEY).map_err(|fault| format!("has a key that {fault}"))?;
    }
    fields.values().try_for_each(|value| check_value(value, 1))
}

/// Checks a JSON value that is a member of its own: depth and texts.
///
/// # Errors
/// The first limit that is passed, as a sentence without its subject.
pub fn check_nested(value: &Value) -> Result<(), String> {
    check_value(value, 1)
}

fn check_value(value: &Value, depth: usize) -> Result<(), String> {
    if depth > MAX_CUSTOM_FIELDS_DEPTH {
        return Err(format!("must not be nested deeper than {MAX_CUSTOM_FIELDS_DEPTH}"));
    }
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        Value::String(text) => check_text(text, 0, usize::MAX),
        Value::Array(items) => items.iter().try_for_each(|item| check_value(item, depth + 1)),
        Value::Object(members) => members.iter().try_for_each(|(key, value)| {
            check_text(key, 0, usize::MAX)?;
            check_value(value, depth + 1)
        }),
    }
}

/// Checks `identifiers`: how many, keys and values.
///
/// # Errors
/// Every fault, as a sentence that names the identifier.
pub fn check_identifiers(identifiers: &BTreeMap<String, String>) -> Result<(), Vec<String>> {
    let mut faults = Vec::new();
    if identifiers.len() > MAX_IDENTIFIERS {
        faults.push(format!("identifiers must have at most {MAX_IDENTIFIERS} members."));
    }
    for (key, value) in identifiers {
        if let Err(fault) = check_text(key, 1, MAX_KEY) {
            faults.push(format!("identifiers has a key that {fault}."));
        }
        if let Err(fault) = check_text(value, 1, MAX_IDENTIFIER) {
            faults.push(format!("identifiers.{} {fault}.", shorten(key)));
        }
    }
    if faults.is_empty() { Ok(()) } else { Err(faults) }
}

/// A whole number, also if it is written with a decimal point: in JSON `1464.0` is an integer.
#[must_use]
pub fn integer(value: &Value) -> Option<i64> {
    let whole = || value.as_f64().filter(|number| number.fract() == 0.0);
    value.as_i64().or_else(|| format!("{:.0}", whole()?).parse().ok())
}

/// The start of a text, for use in an error.
#[must_use]
pub fn shorten(text: &str) -> &str {
    &text[..text.floor_char_boundary(64)]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn nested(depth: usize) -> Value {
        (0..depth).fold(json!(1), |inner, _| json!([inner]))
    }

    #[test]
    fn custom_fields_have_limits() {
        for (fields, fits) in [
            (json!({}), true),
            (json!({"Color": "red", "color": null, "n": [1, {"m": true}]}), true),
            (json!({"": 1}), false),
            (json!({"k".repeat(128): 1}), true),
            (json!({"k".repeat(129): 1}), false),
            (json!({"a": "x".repeat(MAX_CUSTOM_FIELDS_BYTES)}), false),
            (json!({"a": "nul \0"}), false),
            (json!({"a": {"nul \0": 1}}), false),
            (json!({"a": nested(15)}), true),
            (json!({"a": nested(16)}), false),
        ] {
            let Value::Object(map) = fields else { panic!("not an object") };
            assert_eq!(check_custom_fields(&map).is_ok(), fits, "{:?}", map.keys());
        }
    }

    #[test]
    fn whole_numbers_are_integers() {
        for (value, expected) in [
            (json!(1464), Some(1464)),
            (json!(1464.0), Some(1464)),
            (json!(-1.0), Some(-1)),
            (json!(1.5), None),
            (json!(1e300), None),
            (json!(u64::MAX), None),
            (json!("1"), None),
            (json!(true), None),
        ] {
            assert_eq!(integer(&value), expected, "{value}");
        }
    }

    #[test]
    fn identifiers_have_limits() {
        let many = |n: usize| (0..n).map(|i| (format!("k{i}"), "v".to_owned())).collect::<BTreeMap<_, _>>();
        assert!(check_identifiers(&many(50)).is_ok());
        assert!(check_identifiers(&many(51)).is_err());
        for (key, value, faults) in
            [("gs1:21", "A", 0), ("", "A", 1), ("k", "", 1), ("", "", 2), ("k", "\0", 1), ("\0", "v", 1)]
        {
            let found = check_identifiers(&BTreeMap::from([(key.to_owned(), value.to_owned())]));
            assert_eq!(found.err().map_or(0, |f| f.len()), faults, "{key:?} {value:?}");
        }
    }
}
