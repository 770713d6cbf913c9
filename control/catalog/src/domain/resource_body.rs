//! Reads the bodies of creates and updates of products and Thngs.
//!
//! Every fault is named; read-only and unknown members are ignored, `null` counts as absent.

use std::str::FromStr;

use serde_json::Value;

use super::{
    body::{Purpose, common, name, text, texts},
    digital_links::{ProductLinks, read_thng_links},
    limits::{MAX_LIST, MAX_NAME, MAX_TAG, MAX_URL},
    location::{Form, Location},
    members::Members,
    property::NewPoint,
    property_body,
    resource::{ProductChange, ProductDetails, ThngChange, ThngDetails},
};

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
            digital: ProductLinks::read(&mut members),
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
            links: read_thng_links(&mut members),
        };
        let properties = initial_properties(&mut members, purpose);
        members.finish(Some(Self { name, product, collections, location, details, properties }))
    }
}

// Spec gap: a client sends back the `properties` that it read; an update takes them by their own paths only.
fn initial_properties(members: &mut Members<'_>, purpose: Purpose) -> Vec<NewPoint> {
    let Some(value) = members.raw("properties").filter(|_| purpose == Purpose::Create) else {
        return Vec::new();
    };
    property_body::parse_initial(value).unwrap_or_else(|faults| {
        faults.into_iter().for_each(|fault| members.fault(fault));
        Vec::new()
    })
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

#[cfg(test)]
mod tests {
    use kernel::domain::body::assert_faults;
    use serde_json::json;

    use super::*;

    const ID: &str = "UKXAGyEf8SQ5eTDmVgGpHqAa";

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
            assert_faults(&body, |body| ProductChange::parse(body, Purpose::Create), &faults);
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
            assert_faults(&body, |body| ThngChange::parse(body, purpose), &faults);
        }
    }
}
