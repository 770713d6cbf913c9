//! Reads the bodies of creates and updates of products, Thngs, accounts and operators.
//!
//! Every fault is named; read-only and unknown members are ignored, `null` counts as absent (decisions 1).

use std::{collections::BTreeMap, str::FromStr};

use serde_json::{Map, Value};
use shared::time::UnixMillis;

use super::{
    limits::{self, MAX_DESCRIPTION, MAX_LIST, MAX_NAME, MAX_TAG, MAX_URL},
    location::{Form, Location},
    members::Members,
    property::NewPoint,
    property_body,
    public_write::AUTHORITY_FIELDS,
    redirection::read_scopes,
    resource::{Common, ProductChange, ProductDetails, ThngChange, ThngDetails},
    target_hosts,
    tenant::{AccessChange, AccountChange, OperatorChange},
};

/// Whether a body makes a resource or changes one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Required members must be there.
    Create,
    /// Every member may be left out.
    Update,
}

impl ProductChange {
    /// Reads the body of `POST /products` and `PUT /products/:id`.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value, purpose: Purpose) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let name = name(&mut members, purpose);
        let details = ProductDetails {
            common: common(&mut members),
            brand: text(&mut members, "brand", 0, MAX_NAME),
            categories: texts(&mut members, "categories", MAX_TAG),
            photos: texts(&mut members, "photos", MAX_URL),
            url: text(&mut members, "url", 0, MAX_URL),
        };
        let properties = initial_properties(&mut members, purpose);
        members.finish(Some(Self { name, details, properties }))
    }
}

impl ThngChange {
    /// Reads the body of `POST /thngs` and `PUT /thngs/:id`.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value, purpose: Purpose) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let name = name(&mut members, purpose);
        let product = members.parsed("product");
        let collections = ids(&mut members, "collections");
        // Spec gap: a location in an update is not mentioned; clients send back the one they read, so it is
        // ignored like all that is read-only.
        let location = match purpose {
            Purpose::Create => Location::read(&mut members, "location", Form::Open),
            Purpose::Update => None,
        };
        let details = ThngDetails {
            common: common(&mut members),
            kind: text(&mut members, "type", 0, MAX_NAME),
            location: None,
        };
        let properties = initial_properties(&mut members, purpose);
        members.finish(Some(Self { name, product, collections, location, details, properties }))
    }
}

impl AccountChange {
    /// Reads the body of `PUT /accounts/:id`.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let change = Self {
            name: name(&mut members, Purpose::Update),
            user_rights: members.parsed("userRights"),
            thng_writable_custom_fields: thng_writable(&mut members),
            private_targets: members.boolean("privateTargets"),
            target_hosts: target_hosts::read(&mut members),
            custom_fields: custom_fields(&mut members),
        };
        members.finish(Some(change))
    }
}

/// Names of custom fields; those that verdicts go by are not a Thing's to write.
fn thng_writable(members: &mut Members<'_>) -> Option<Vec<String>> {
    const MEMBER: &str = "thngWritableCustomFields";
    let names = texts(members, MEMBER, limits::MAX_KEY)?;
    for (index, name) in names.iter().enumerate() {
        if AUTHORITY_FIELDS.contains(&name.as_str()) {
            members
                .fault(format!("{MEMBER}[{index}]: {name} is never written by a Thing: verdicts go by it."));
        }
    }
    Some(names)
}

impl AccessChange {
    /// Reads the body of `PUT /accounts/:id/accesses/:id`.
    ///
    /// # Errors
    /// The role is no text of 1 to 256 characters.
    pub fn parse(body: &Value) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let change = Self { role: text(&mut members, "role", 1, MAX_NAME) };
        members.finish(Some(change))
    }
}

impl OperatorChange {
    /// Reads the body of `PUT /operators/:id`.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let change = Self {
            first_name: text(&mut members, "firstName", 0, MAX_NAME),
            last_name: text(&mut members, "lastName", 0, MAX_NAME),
            custom_fields: custom_fields(&mut members),
        };
        members.finish(Some(change))
    }
}

pub(super) fn common(members: &mut Members<'_>) -> Common {
    Common {
        description: text(members, "description", 0, MAX_DESCRIPTION),
        tags: texts(members, "tags", MAX_TAG),
        custom_fields: custom_fields(members),
        identifiers: identifiers(members),
        activated_at: millis(members, "activatedAt"),
        scopes: members.raw("scopes").is_some().then(|| read_scopes(members)),
    }
}

// Spec gap: a client sends back the `properties` that it read; an update hears those of their own paths only.
fn initial_properties(members: &mut Members<'_>, purpose: Purpose) -> Vec<NewPoint> {
    let Some(value) = members.raw("properties").filter(|_| purpose == Purpose::Create) else {
        return Vec::new();
    };
    property_body::parse_initial(value).unwrap_or_else(|faults| {
        faults.into_iter().for_each(|fault| members.fault(fault));
        Vec::new()
    })
}

pub(super) fn name(members: &mut Members<'_>, purpose: Purpose) -> Option<String> {
    if purpose == Purpose::Create && members.raw("name").is_none() {
        members.fault("name is required.");
    }
    text(members, "name", 1, MAX_NAME)
}

pub(super) fn text(members: &mut Members<'_>, member: &str, min: usize, max: usize) -> Option<String> {
    let text = members.text(member)?;
    match limits::check_text(text, min, max) {
        Ok(()) => Some(text.to_owned()),
        Err(fault) => {
            members.fault(format!("{} {fault}.", members.path(member)));
            None
        }
    }
}

pub(super) fn texts(members: &mut Members<'_>, member: &str, max: usize) -> Option<Vec<String>> {
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

/// Ids in ascending order; one that is there twice counts once.
fn ids<Id: FromStr + Ord>(members: &mut Members<'_>, member: &str) -> Option<Vec<Id>> {
    let texts = members.texts(member)?;
    if texts.len() > MAX_LIST {
        members.fault(format!("{member} must have at most {MAX_LIST} items, not {}.", texts.len()));
        return None;
    }
    let mut ids: Vec<Id> = texts.iter().filter_map(|text| text.parse().ok()).collect();
    if ids.len() < texts.len() {
        members.fault(format!("{member} must hold ids of 24 characters."));
    }
    ids.sort_unstable();
    ids.dedup();
    Some(ids)
}

pub(super) fn custom_fields(members: &mut Members<'_>) -> Option<Map<String, Value>> {
    let fields = members.typed("customFields", "an object", Value::as_object)?;
    match limits::check_custom_fields(fields) {
        Ok(()) => Some(fields.clone()),
        Err(fault) => {
            members.fault(format!("{} {fault}.", members.path("customFields")));
            None
        }
    }
}

pub(super) fn identifiers(members: &mut Members<'_>) -> Option<BTreeMap<String, String>> {
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

pub(super) fn millis(members: &mut Members<'_>, member: &str) -> Option<UnixMillis> {
    members.typed(member, "an integer, in milliseconds since 1970", |value| {
        limits::integer(value).filter(|at| *at >= 0).map(UnixMillis)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ID: &str = "UKXAGyEf8SQ5eTDmVgGpHqAa";

    fn check(body: &Value, faults: &[&str], found: &Vec<String>) {
        assert_eq!(found.len(), faults.len(), "{body}: {found:?}");
        for (fault, part) in found.iter().zip(faults) {
            assert!(fault.contains(part), "{body}: {fault}");
        }
    }

    #[test]
    fn each_fault_of_a_product_is_named() {
        for (body, faults) in [
            (json!({"name": "x"}), vec![]),
            (json!({"name": "x", "fn": 7, "id": 1, "createdAt": "x", "unknown": {}}), vec![]),
            (json!({"name": "x", "description": null, "tags": null}), vec![]),
            (json!({}), vec!["name is required"]),
            (json!({"name": null}), vec!["name is required"]),
            (json!({"name": ""}), vec!["name must not be empty"]),
            (json!({"name": 1}), vec!["name must be a string"]),
            (json!({"name": "ü".repeat(256)}), vec![]),
            (json!({"name": "ü".repeat(257)}), vec!["name must have at most 256 characters, not 257"]),
            (json!({"name": "a\u{0}b"}), vec!["name must not hold"]),
            (json!({"name": "x", "tags": "a"}), vec!["tags must be an array"]),
            (json!({"name": "x", "tags": ["a", ""]}), vec!["tags[1] must not be empty"]),
            (json!({"name": "x", "tags": vec!["a"; 101]}), vec!["tags must have at most 100 items"]),
            (json!({"name": "x", "customFields": []}), vec!["customFields must be an object"]),
            (
                json!({"name": "x", "identifiers": {"k": 1, "l": null}}),
                vec!["identifiers.k must be a string"],
            ),
            (json!({"name": "x", "activatedAt": 1.5}), vec!["activatedAt must be an integer"]),
            (json!({"name": "x", "activatedAt": -1}), vec!["activatedAt must be an integer"]),
            (json!({"name": "x", "scopes": {"users": 1}}), vec!["scopes"]),
            (json!({"name": 1, "brand": 2, "url": 3}), vec!["name", "brand", "url"]),
            (json!("x"), vec!["The body must be a JSON object"]),
        ] {
            let found = ProductChange::parse(&body, Purpose::Create).err().unwrap_or_default();
            check(&body, &faults, &found);
        }
    }

    #[test]
    fn each_fault_of_a_thng_is_named() {
        for (body, purpose, faults) in [
            (json!({"name": "x", "product": ID, "type": "t"}), Purpose::Create, vec![]),
            (
                json!({"product": "gs1:01:1"}),
                Purpose::Create,
                vec!["name is required", "product: an id has 24"],
            ),
            (json!({}), Purpose::Update, vec![]),
            (json!({"name": ""}), Purpose::Update, vec!["name must not be empty"]),
            (json!({"product": null, "name": null}), Purpose::Update, vec![]),
        ] {
            let found = ThngChange::parse(&body, purpose).err().unwrap_or_default();
            check(&body, &faults, &found);
        }
    }

    #[test]
    fn each_fault_of_an_account_or_operator_is_named() {
        for (body, faults) in [
            (json!({"customFields": {"a": 1}}), vec![]),
            (json!({"customFields": 1, "name": 2}), vec!["name", "customFields"]),
            (json!({"userRights": "open", "thngWritableCustomFields": ["a", "b"]}), vec![]),
            (json!({"userRights": "all"}), vec!["userRights: must be own or open"]),
            (json!({"userRights": true}), vec!["userRights must be a string"]),
            (
                json!({"thngWritableCustomFields": ["a", "factory"]}),
                vec!["thngWritableCustomFields[1]: factory is never"],
            ),
            (json!({"thngWritableCustomFields": "a"}), vec!["thngWritableCustomFields must be an array"]),
        ] {
            check(&body, &faults, &AccountChange::parse(&body).err().unwrap_or_default());
        }
        for (body, faults) in [
            (json!({"firstName": "", "email": 1}), vec![]),
            (json!({"firstName": 1, "lastName": []}), vec!["firstName", "lastName"]),
        ] {
            check(&body, &faults, &OperatorChange::parse(&body).err().unwrap_or_default());
        }
    }
}
