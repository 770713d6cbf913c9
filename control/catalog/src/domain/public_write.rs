//! What holders of public keys may write into resources: nothing that a verdict depends on.

use serde_json::{Map, Value};

use super::{
    authority::{AUTHORITY_FIELDS, changes_identifiers, keep_authority, refusal},
    resource::{Thng, ThngChange},
};

/// Reduces an update by a Thng's key to members that it may write; returns a fault for each other one.
///
/// `writable` are the custom fields that the account lets Thngs write; the others are kept.
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
    // Already reported if it is a custom field.
    for fault in keep_authority(Some(&stored.details.common), &mut change.details.common) {
        if !faults.contains(&fault) {
            faults.push(fault);
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shared::{id::ThngId, time::UnixMillis};

    use super::*;
    use crate::domain::{body::Purpose, common::Common, resource::ThngDetails};

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
    fn a_thng_can_only_write_its_writable_members() {
        for (body, faults) in [
            (json!({"name": "new", "description": "d", "tags": ["b"]}), vec![]),
            // Values that it read may be sent back.
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
    fn members_that_verdicts_depend_on_are_kept() {
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
