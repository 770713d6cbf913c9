//! Actions as a request describes them, before they are stored.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use shared::{
    id::{CollectionId, ProductId, ThngId},
    time::UnixMillis,
};

use super::{
    body::{custom_fields, identifiers, millis, texts},
    limits::MAX_TAG,
    location::{Form, Location},
    members::Members,
    reference::Reference,
    scopes::{Scopes, read_scopes},
};

// Spec gap: how many actions one request may hold is not shown.
/// Most actions of one request: at 1 KiB each, what fits into the largest body.
pub const MAX_ACTIONS: usize = 1_000;

/// The body of an action; `user` and the creator are never taken from it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ActionDraft {
    /// Its type, for a path that names none.
    pub kind: Option<String>,
    /// The Thng it is about.
    pub thng: Option<Reference<ThngId>>,
    /// The product it is about.
    pub product: Option<Reference<ProductId>>,
    /// The collection it is about.
    pub collection: Option<Reference<CollectionId>>,
    /// External identifiers; they select the target if nothing else does.
    pub identifiers: Option<BTreeMap<String, String>>,
    /// When it happened.
    pub timestamp: Option<UnixMillis>,
    /// Where it happened.
    pub location: Option<Location>,
    /// `context` unparsed: most callers may not set it, but send back what they read.
    pub context: Option<Value>,
    /// Labels.
    pub tags: Option<Vec<String>>,
    /// The caller's own members.
    pub custom_fields: Option<Map<String, Value>>,
    /// Who may see it besides operators.
    pub scopes: Option<Scopes>,
}

/// The body of a request that creates actions: one, or several.
#[derive(Debug, Clone, PartialEq)]
pub enum Drafts {
    /// An object; the answer is one too.
    One(Box<ActionDraft>),
    /// An array of 1 to [`MAX_ACTIONS`]; the answer is an array in the same order.
    Many(Vec<ActionDraft>),
}

impl Drafts {
    /// Reads the body of a `POST` of actions.
    ///
    /// # Errors
    /// Every fault found, each naming its member, as `[3].timestamp` in an array.
    pub fn parse(body: &Value) -> Result<Self, Vec<String>> {
        let Value::Array(items) = body else {
            return ActionDraft::read(Members::of(body)?).map(|draft| Self::One(Box::new(draft)));
        };
        if items.is_empty() || items.len() > MAX_ACTIONS {
            return Err(vec![format!(
                "The array must hold 1 to {MAX_ACTIONS} actions, not {}.",
                items.len()
            )]);
        }
        let (mut drafts, mut faults) = (Vec::with_capacity(items.len()), Vec::new());
        for (index, item) in items.iter().enumerate() {
            match Members::within(item, &format!("[{index}]")).and_then(ActionDraft::read) {
                Ok(draft) => drafts.push(draft),
                Err(found) => faults.extend(found),
            }
        }
        if faults.is_empty() { Ok(Self::Many(drafts)) } else { Err(faults) }
    }
}

impl ActionDraft {
    /// Reads the members of one.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn read(mut members: Members<'_>) -> Result<Self, Vec<String>> {
        let members_ = &mut members;
        let draft = Self {
            kind: members_.text("type").filter(|kind| !kind.is_empty()).map(str::to_owned),
            thng: members_.parsed("thng"),
            product: members_.parsed("product"),
            collection: members_.parsed("collection"),
            identifiers: identifiers(members_),
            timestamp: millis(members_, "timestamp"),
            location: Location::read(members_, "location", Form::Open),
            context: members_.raw("context").cloned(),
            tags: texts(members_, "tags", MAX_TAG),
            custom_fields: custom_fields(members_),
            scopes: members_.raw("scopes").is_some().then(|| read_scopes(members_)),
        };
        members.finish(Some(draft))
    }

    /// Whether it names a target.
    #[must_use]
    pub const fn names_something(&self) -> bool {
        self.thng.is_some() || self.product.is_some() || self.collection.is_some()
    }
}

#[cfg(test)]
mod tests {
    use kernel::domain::body::assert_faults;
    use serde_json::json;

    use super::*;

    const ID: &str = "UKXAGyEf8SQ5eTDmVgGpHqAa";

    #[test]
    fn each_fault_is_named() {
        for (body, faults) in [
            (json!({}), vec![]),
            (
                json!({"type": "", "thng": ID, "product": "gs1:01:1", "collection": ID, "timestamp": 0}),
                vec![],
            ),
            (
                json!({"context": 1, "user": 2, "reactions": 3, "createdByApp": 4, "locationSource": 5}),
                vec![],
            ),
            (json!({"location": {"latitude": 1, "longitude": 2}, "tags": [], "customFields": {}}), vec![]),
            (json!({"location": {"place": ID}, "scopes": {"users": ["all"], "projects": []}}), vec![]),
            (json!("x"), vec!["must be a JSON object"]),
            (json!({"type": 1}), vec!["type must be a string"]),
            (json!({"thng": "x"}), vec!["thng: neither an id nor"]),
            (json!({"product": 1, "collection": ""}), vec!["product must be", "collection: neither"]),
            (json!({"timestamp": "now"}), vec!["timestamp must be an integer"]),
            (json!({"timestamp": -1}), vec!["timestamp must be an integer"]),
            (json!({"location": {}}), vec!["location must have"]),
            (json!({"location": {"latitude": 91, "longitude": 0}}), vec!["location.latitude"]),
            (json!({"identifiers": {"k": 1}, "tags": "x"}), vec!["identifiers.k", "tags"]),
            (json!([]), vec!["The array must hold 1 to 1000"]),
            (json!(vec![json!({}); 1_001]), vec!["The array must hold 1 to 1000"]),
            (
                json!([{}, {"timestamp": 1.5, "customFields": 1, "tags": [""]}, 7]),
                vec![
                    "[1].timestamp must",
                    "[1].tags[0] must",
                    "[1].customFields must",
                    "[2] must be an object",
                ],
            ),
            (
                json!([{"identifiers": {"": "x"}, "scopes": 1, "location": {"latitude": 1}}]),
                vec!["[0].identifiers has a key", "[0].location.latitude needs", "[0].scopes must"],
            ),
        ] {
            assert_faults(&body, Drafts::parse, &faults);
        }
        assert!(matches!(Drafts::parse(&json!([{}, {}])), Ok(Drafts::Many(drafts)) if drafts.len() == 2));
    }
}
