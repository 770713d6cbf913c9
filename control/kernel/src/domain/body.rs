//! Members that many bodies have: each reader names every fault that it finds.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use shared::time::UnixMillis;

use super::{
    common::Common,
    limits::{self, MAX_DESCRIPTION, MAX_LIST, MAX_NAME, MAX_TAG},
    members::Members,
    scopes::read_scopes,
};

/// Whether a body makes a resource or changes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Required members must be there.
    Create,
    /// Every member may be left out.
    Update,
}

/// Reads the members that all named resources have.
pub fn common(members: &mut Members<'_>) -> Common {
    Common {
        description: text(members, "description", 0, MAX_DESCRIPTION),
        tags: texts(members, "tags", MAX_TAG),
        custom_fields: custom_fields(members),
        identifiers: identifiers(members),
        activated_at: millis(members, "activatedAt"),
        scopes: members.raw("scopes").is_some().then(|| read_scopes(members)),
    }
}

/// Reads `name`, which a create requires.
pub fn name(members: &mut Members<'_>, purpose: Purpose) -> Option<String> {
    if purpose == Purpose::Create && members.raw("name").is_none() {
        members.fault("name is required.");
    }
    text(members, "name", 1, MAX_NAME)
}

/// Reads a text of `min` to `max` characters.
pub fn text(members: &mut Members<'_>, member: &str, min: usize, max: usize) -> Option<String> {
    let text = members.text(member)?;
    match limits::check_text(text, min, max) {
        Ok(()) => Some(text.to_owned()),
        Err(fault) => {
            members.fault(format!("{} {fault}.", members.path(member)));
            None
        }
    }
}

/// Reads a list of at most 100 texts, each of 1 to `max` characters.
pub fn texts(members: &mut Members<'_>, member: &str, max: usize) -> Option<Vec<String>> {
    let texts = members.texts(member)?;
    if texts.len() > MAX_LIST {
        let path = members.path(member);
        members.fault(format!("{path} must have at most {MAX_LIST} items, not {}.", texts.len()));
        return None;
    }
    for (index, text) in texts.iter().enumerate() {
        if let Err(fault) = limits::check_text(text, 1, max) {
            members.fault(format!("{}[{index}] {fault}.", members.path(member)));
        }
    }
    Some(texts.into_iter().map(str::to_owned).collect())
}

/// Reads `customFields`.
pub fn custom_fields(members: &mut Members<'_>) -> Option<Map<String, Value>> {
    let fields = members.typed("customFields", "an object", Value::as_object)?;
    match limits::check_custom_fields(fields) {
        Ok(()) => Some(fields.clone()),
        Err(fault) => {
            members.fault(format!("{} {fault}.", members.path("customFields")));
            None
        }
    }
}

/// Reads `identifiers`, an object of texts.
pub fn identifiers(members: &mut Members<'_>) -> Option<BTreeMap<String, String>> {
    let given = members.typed("identifiers", "an object", Value::as_object)?;
    let mut found = BTreeMap::new();
    for (key, value) in given {
        match value {
            Value::Null => {}
            Value::String(text) => {
                found.insert(key.clone(), text.clone());
            }
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                let path = members.path("identifiers");
                members.fault(format!("{path}.{} must be a string.", limits::shorten(key)));
            }
        }
    }
    if let Err(faults) = limits::check_identifiers(&found) {
        faults.into_iter().for_each(|fault| members.fault(members.path(&fault)));
    }
    Some(found)
}

/// Reads a time in milliseconds since 1970.
pub fn millis(members: &mut Members<'_>, member: &str) -> Option<UnixMillis> {
    members.typed(member, "an integer, in milliseconds since 1970", |value| {
        limits::integer(value).filter(|at| *at >= 0).map(UnixMillis)
    })
}

/// Asserts, for tests of bodies, that the faults are as many as `parts`, each with the part at its place.
///
/// # Panics
/// Other faults were found.
#[track_caller]
pub fn assert_faults<T>(body: &Value, parse: impl FnOnce(&Value) -> Result<T, Vec<String>>, parts: &[&str]) {
    let found = parse(body).err().unwrap_or_default();
    let are_named = found.iter().zip(parts).all(|(fault, part)| fault.contains(part));
    assert!(found.len() == parts.len() && are_named, "{body}: {found:?}, not {parts:?}");
}
