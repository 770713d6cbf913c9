//! Facets: texts `path=value` by which rows are found where a value has no column of its own.
//!
//! One index over the facets of a table serves every tag, custom field, identifier and scope. A number is written as in
//! JSON, so `1` and `"1"` are the same facet.

use serde_json::Value;

/// Longest facet that is stored whole, in bytes: an index entry of Postgres has at most 2,700.
const MAX_BYTES: usize = 255;
/// Bytes that are stored of a longer one, before the hash of the whole; with it, longer than any stored whole.
const KEPT_BYTES: usize = 200;
/// Longest path, in bytes; values below a longer one have no facet. A key of 128 characters fits.
const MAX_PATH_BYTES: usize = 1_024;

/// The facets of a document: every scalar at or below one of `paths`, each once, in order.
#[must_use]
pub fn of(doc: &Value, paths: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for path in paths {
        let value = path.split('.').try_fold(doc, |value, name| value.get(name));
        if let Some(value) = value {
            collect(&mut (*path).to_owned(), value, &mut found);
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

/// How many scalars a value holds; each becomes at most one facet.
#[must_use]
pub fn count(value: &Value) -> usize {
    match value {
        Value::Null => 0,
        Value::Bool(_) | Value::Number(_) | Value::String(_) => 1,
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
    }
}

/// The facet of one value of a field.
#[must_use]
pub fn facet(path: &str, value: &str) -> String {
    let whole = format!("{path}={value}");
    if whole.len() <= MAX_BYTES {
        return whole;
    }
    let hash = blake3::hash(whole.as_bytes()).to_hex();
    format!("{}#{hash}", &whole[..whole.floor_char_boundary(KEPT_BYTES)])
}

/// Whether prefix matches on this field can be answered from its facets alone.
#[must_use]
pub fn holds_prefix(path: &str, prefix: &str) -> bool {
    path.len() + 1 + prefix.len() <= KEPT_BYTES - 3
}

fn collect(path: &mut String, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Null => {}
        Value::Bool(value) => found.push(facet(path, if *value { "true" } else { "false" })),
        Value::Number(value) => found.push(facet(path, &value.to_string())),
        Value::String(value) => found.push(facet(path, value)),
        Value::Array(items) => items.iter().for_each(|item| collect(path, item, found)),
        Value::Object(members) => {
            let length = path.len();
            for (key, value) in members {
                if length + 1 + key.len() <= MAX_PATH_BYTES {
                    path.push('.');
                    path.push_str(key);
                    collect(path, value, found);
                    path.truncate(length);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_scalar_below_the_paths_is_a_facet() {
        let doc = json!({
            "tags": ["b", "a", "b"],
            "customFields": {"n": 1, "t": "1", "yes": true, "no": null, "deep": {"list": [1.5, {"x": "y"}]}},
            "context": {"city": "Bern", "userAgent": "left out"},
            "scopes": {"users": ["all"], "projects": []},
        });
        assert_eq!(
            of(&doc, &["tags", "customFields", "context.city", "context.countryCode", "scopes"]),
            [
                "context.city=Bern",
                "customFields.deep.list.x=y",
                "customFields.deep.list=1.5",
                "customFields.n=1",
                "customFields.t=1",
                "customFields.yes=true",
                "scopes.users=all",
                "tags=a",
                "tags=b",
            ]
        );
        assert!(of(&json!("x"), &["tags"]).is_empty());
        assert_eq!([count(&doc["customFields"]), count(&doc["tags"]), count(&json!(null))], [5, 3, 0]);
    }

    #[test]
    fn long_facets_are_truncated_and_stay_distinct() {
        let (long, other) = ("ü".repeat(200), format!("{}x", "ü".repeat(199)));
        let facet_of = |value: &str| facet("tags", value);
        assert_eq!(facet_of(&long), facet_of(&long));
        assert_ne!(facet_of(&long), facet_of(&other));
        assert!((MAX_BYTES + 1..300).contains(&facet_of(&long).len()));
        assert_eq!(facet_of(&"x".repeat(250)).len(), 255);
        let longest = "ü".repeat(96);
        assert!(holds_prefix("tags", &longest) && facet_of(&long).starts_with(&format!("tags={longest}")));
        assert!(!holds_prefix("tags", &"ü".repeat(97)));
        let deep = json!({"customFields": {"k".repeat(2_000): 1, "a": 1}});
        assert_eq!(of(&deep, &["customFields"]), ["customFields.a=1"]);
    }
}
