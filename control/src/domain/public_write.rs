//! What holders of public keys may write into resources: nothing that a verdict goes by.

use serde_json::{Map, Value};

use super::resource::{Common, Thng, ThngChange};

/// Custom fields of Things and products that verdicts go by; operators and trusted applications write them.
pub const AUTHORITY_FIELDS: [&str; 4] =
    ["permittedCountries", "expectedWatermark", "expectedMarkings", "factory"];

/// Labels that verdicts go by.
pub const AUTHORITY_TAGS: [&str; 5] = ["recalled", "stolen", "destroyed", "demo", "display"];

/// Keeps what verdicts go by as it is stored; gives a fault for each of it that the change would change.
///
/// What the change leaves out of `customFields` or `tags` stays where it belongs to the authority.
pub fn keep_authority(stored: Option<&Common>, change: &mut Common) -> Vec<String> {
    let mut faults = Vec::new();
    if let Some(fields) = &mut change.custom_fields {
        let known = stored.and_then(|stored| stored.custom_fields.as_ref());
        for name in AUTHORITY_FIELDS {
            match (fields.get(name), known.and_then(|known| known.get(name))) {
                (None, Some(value)) => drop(fields.insert(name.to_owned(), value.clone())),
                (new, old) if new != old => faults.push(refusal(&format!("customFields.{name}"))),
                _ => {}
            }
        }
    }
    if let Some(tags) = &mut change.tags {
        let known = stored.and_then(|stored| stored.tags.as_deref()).unwrap_or_default();
        for name in AUTHORITY_TAGS {
            let holds = |tags: &[String]| tags.iter().any(|tag| tag == name);
            match (holds(tags), holds(known)) {
                (false, true) => tags.push(name.to_owned()),
                (true, false) => faults.push(refusal(&format!("tags: the tag {name}"))),
                (true, true) | (false, false) => {}
            }
        }
    }
    faults
}

/// Whether a change gives a resource other identifiers than it has.
#[must_use]
pub fn changes_identifiers(stored: Option<&Common>, change: &Common) -> bool {
    let known = stored.and_then(|stored| stored.identifiers.clone()).unwrap_or_default();
    change.identifiers.as_ref().is_some_and(|new| *new != known)
}

/// Takes from a change what a Thng may say of itself; gives a fault for each other member that it would change.
///
/// `writable` are the custom fields that the account lets Things write; the others stay as they are.
pub fn confine_thng(stored: &Thng, change: &mut ThngChange, writable: &[String]) -> Vec<String> {
    let (known, new) = (&stored.details, &change.details);
    let mut faults: Vec<String> = [
        ("identifiers", changes_identifiers(Some(&known.common), &new.common)),
        ("product", change.product.is_some() && change.product != stored.product),
        ("type", new.kind.is_some() && new.kind != known.kind),
        (
            "activatedAt",
            new.common.activated_at.is_some() && new.common.activated_at != known.common.activated_at,
        ),
        ("collections", change.collections.as_ref().is_some_and(|new| *new != stored.collections)),
    ]
    .into_iter()
    .filter(|(_, is_changed)| *is_changed)
    .map(|(member, _)| refusal(member))
    .collect();
    if let Some(fields) = &mut change.details.common.custom_fields {
        let none = Map::new();
        let known = known.common.custom_fields.as_ref().unwrap_or(&none);
        let may_write = |name: &String| writable.contains(name) && !AUTHORITY_FIELDS.contains(&name.as_str());
        let is_refused =
            |(name, value): &(&String, &Value)| known.get(*name) != Some(*value) && !may_write(name);
        let refused = fields.iter().filter(is_refused);
        faults.extend(refused.map(|(name, _)| refusal(&format!("customFields.{name}"))));
        for (name, value) in known.iter().filter(|(name, _)| !may_write(name)) {
            fields.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }
    // Said already where it is a custom field.
    for fault in keep_authority(Some(&stored.details.common), &mut change.details.common) {
        if !faults.contains(&fault) {
            faults.push(fault);
        }
    }
    faults
}

/// What is said of a member that the key may not write.
#[must_use]
pub fn refusal(member: &str) -> String {
    format!("{member}: this kind of key may not change it.")
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shared::{id::ThngId, time::UnixMillis};

    use super::*;
    use crate::domain::{resource::ThngDetails, resource_body::Purpose};

    fn stored() -> Thng {
        let details = ThngDetails {
            common: Common {
                tags: Some(vec!["a".to_owned(), "recalled".to_owned()]),
                custom_fields: json!({"permittedCountries": ["CH"], "colour": "red", "note": 1})
                    .as_object()
                    .cloned(),
                identifiers: Some([("gs1:21".to_owned(), "A".to_owned())].into()),
                ..Common::default()
            },
            ..ThngDetails::default()
        };
        Thng::new(ThngId::new(1, [1; 16]), "t".to_owned(), None, details, UnixMillis(1))
    }

    #[test]
    fn a_thng_writes_what_it_may_say_of_itself() {
        for (body, faults) in [
            (json!({"name": "new", "description": "d", "tags": ["b"]}), vec![]),
            // What it read may come back.
            (json!({"identifiers": {"gs1:21": "A"}, "customFields": {"colour": "red"}}), vec![]),
            (json!({"customFields": {"note": 2}}), vec![]),
            (json!({"customFields": {"colour": "blue"}}), vec!["customFields.colour"]),
            (
                json!({"customFields": {"permittedCountries": ["US"]}}),
                vec!["customFields.permittedCountries"],
            ),
            (json!({"customFields": {"factory": "F"}}), vec!["customFields.factory"]),
            (json!({"tags": ["demo"]}), vec!["tags: the tag demo"]),
            (json!({"identifiers": {}}), vec!["identifiers"]),
            (json!({"type": "x", "activatedAt": 7}), vec!["type", "activatedAt"]),
            (json!({"product": "UKXAGyEf8SQ5eTDmVgGpHqAa"}), vec!["product"]),
            (json!({"collections": ["UKXAGyEf8SQ5eTDmVgGpHqAa"]}), vec!["collections"]),
        ] {
            let mut change = ThngChange::parse(&body, Purpose::Update).unwrap();
            let writable = ["note".to_owned(), "factory".to_owned()];
            let found = confine_thng(&stored(), &mut change, &writable);
            let wanted: Vec<String> = faults.into_iter().map(refusal).collect();
            assert_eq!(found, wanted, "{body}");
            if found.is_empty() {
                let after = stored().apply(change, UnixMillis(2)).details.common;
                let fields = after.custom_fields.unwrap();
                assert_eq!(
                    (&fields["permittedCountries"], &fields["colour"]),
                    (&json!(["CH"]), &json!("red"))
                );
                assert!(after.tags.unwrap().contains(&"recalled".to_owned()), "{body}");
            }
        }
    }

    #[test]
    fn what_verdicts_go_by_stays() {
        let common = stored().details.common;
        for (stored, body, faults) in [
            (None, json!({"customFields": {"a": 1}, "tags": ["x"]}), vec![]),
            (
                None,
                json!({"customFields": {"expectedWatermark": "w"}}),
                vec!["customFields.expectedWatermark"],
            ),
            (None, json!({"tags": ["display"]}), vec!["tags: the tag display"]),
            (Some(&common), json!({"customFields": {}, "tags": []}), vec![]),
            (Some(&common), json!({"tags": ["stolen"]}), vec!["tags: the tag stolen"]),
        ] {
            let mut change = ThngChange::parse(&body, Purpose::Update).unwrap().details.common;
            let found = keep_authority(stored, &mut change);
            assert_eq!(found, faults.into_iter().map(refusal).collect::<Vec<_>>(), "{body}");
            if stored.is_some() && found.is_empty() {
                assert_eq!(change.custom_fields.unwrap()["permittedCountries"], json!(["CH"]));
                assert_eq!(change.tags.unwrap(), ["recalled"]);
            }
        }
    }
}
