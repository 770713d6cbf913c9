//! Descriptive fields of a link (title, tags, notes, custom fields, authors). Only control stores them; edges never receive
//! them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use serde_with_macros::skip_serializing_none;

use super::{
    access::Actor,
    body, facets,
    limits::{MAX_DESCRIPTION, MAX_TAG},
    members::Members,
};

/// Longest title, in characters: a line of a list.
pub const MAX_TITLE: usize = 200;

/// Longest notes, in characters; as long as a description.
pub const MAX_NOTES: usize = MAX_DESCRIPTION;

/// Most values in `customFields`, at all depths. Each is a facet and a token of its own, and one request changes 1,000 links
/// while it holds the lock of the change log: with this and 100 tags, that is at most 350,000 hashes.
pub const MAX_FIELD_VALUES: usize = 250;

/// Largest size of the facets of `customFields`, in bytes: at most 32 MiB for 1,000 links.
pub const MAX_FIELD_FACETS_BYTES: usize = 32 * 1024;

/// The members that a request may give.
///
/// `PUT` keeps these when absent: older clients do not know them and would erase them.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Described {
    /// What people call it.
    pub title: Option<String>,
    /// Labels.
    pub tags: Option<Vec<String>>,
    /// Free text.
    pub notes: Option<String>,
    /// The caller's own members.
    pub custom_fields: Option<Map<String, Value>>,
}

impl Described {
    /// Reads the members of a body.
    pub fn read(members: &mut Members<'_>) -> Self {
        let title = body::text(members, "title", 0, MAX_TITLE);
        let tags = body::texts(members, "tags", MAX_TAG);
        let notes = body::text(members, "notes", 0, MAX_NOTES);
        let custom_fields = body::custom_fields(members);
        if let Some(Err(fault)) = custom_fields.as_ref().map(check_facets) {
            members.fault(format!("{} {fault}.", members.path("customFields")));
        }
        Self { title, tags, notes, custom_fields }
    }

    /// The members after a change.
    #[must_use]
    pub fn merge(self, change: Self) -> Self {
        Self {
            title: change.title.or(self.title),
            tags: change.tags.or(self.tags),
            notes: change.notes.or(self.notes),
            custom_fields: change.custom_fields.or(self.custom_fields),
        }
    }
}

/// Checks how much `customFields` adds to the index; the fault is a sentence without its subject.
fn check_facets(fields: &Map<String, Value>) -> Result<(), String> {
    let values: usize = fields.values().map(facets::count).sum();
    if values > MAX_FIELD_VALUES {
        return Err(format!("must have at most {MAX_FIELD_VALUES} values, not {values}"));
    }
    let found = facets::of(&json!({ "customFields": fields }), &["customFields"]);
    let bytes: usize = found.iter().map(String::len).sum();
    if bytes > MAX_FIELD_FACETS_BYTES {
        return Err(format!(
            "must have at most {MAX_FIELD_FACETS_BYTES} bytes of values with their paths, not {bytes}"
        ));
    }
    Ok(())
}

/// Who wrote something, as the audit trail names them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Author {
    /// The kind of key.
    pub actor_type: String,
    /// Id of the operator, application, user or Thng.
    pub actor: String,
}

impl From<&Actor> for Author {
    fn from(actor: &Actor) -> Self {
        Self { actor_type: actor.kind.as_str().to_owned(), actor: actor.id.clone() }
    }
}

/// All of it, as it is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LinkDetails {
    /// What requests give.
    #[serde(flatten)]
    pub described: Described,
    /// Who created it; unknown of what releases before this member created.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created_by: Option<Author>,
    /// Who changed it last by a request about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_by: Option<Author>,
}

impl LinkDetails {
    /// Of a link that an actor creates.
    #[must_use]
    pub fn new(described: Described, actor: &Actor) -> Self {
        let author = Author::from(actor);
        Self { described, created_by: Some(author.clone()), updated_by: Some(author) }
    }

    /// After a change by an actor.
    #[must_use]
    pub fn change(self, change: Described, actor: &Actor) -> Self {
        Self { described: self.described.merge(change), updated_by: Some(actor.into()), ..self }
    }

    /// With these members and no others, by an actor.
    #[must_use]
    pub fn replace(self, described: Described, actor: &Actor) -> Self {
        Self { described, updated_by: Some(actor.into()), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &Value) -> Result<Described, Vec<String>> {
        let mut members = Members::of(body)?;
        let read = Described::read(&mut members);
        members.finish(Some(read))
    }

    /// Texts of which each is a facet of the greatest length.
    fn long_texts(count: usize) -> Value {
        (0..count).map(|n| (n.to_string(), json!("x".repeat(300)))).collect::<Map<_, _>>().into()
    }

    #[test]
    fn each_member_has_its_limit() {
        for (body, fault) in [
            (json!({}), None),
            (json!({"title": "", "tags": [], "notes": "", "customFields": {}}), None),
            (json!({"title": "ü".repeat(200)}), None),
            (json!({"title": "x".repeat(201)}), Some("title must have at most 200 characters, not 201.")),
            (json!({"title": 1}), Some("title must be a string.")),
            (json!({"title": "a\0"}), Some("title must not hold the character U+0000.")),
            (json!({"tags": "a"}), Some("tags must be an array of strings.")),
            (json!({"tags": [""]}), Some("tags[0] must not be empty.")),
            (json!({"tags": vec!["a"; 101]}), Some("tags must have at most 100 items, not 101.")),
            (json!({"tags": ["x".repeat(129)]}), Some("tags[0] must have at most 128 characters, not 129.")),
            (json!({"notes": "x".repeat(4_096)}), None),
            (json!({"notes": "x".repeat(4_097)}), Some("notes must have at most 4096 characters, not 4097.")),
            (json!({"customFields": []}), Some("customFields must be an object.")),
            (json!({"customFields": {"": 1}}), Some("customFields has a key that must not be empty.")),
            (json!({"customFields": {"a": vec![1; 249], "b": [{"c": true, "d": null}]}}), None),
            (
                json!({"customFields": {"a": vec![1; 249], "b": {"c": ["x", true]}}}),
                Some("customFields must have at most 250 values, not 251."),
            ),
            // As few as 100 long texts fit.
            (json!({"customFields": long_texts(100)}), None),
            (
                json!({"customFields": long_texts(150)}),
                Some("customFields must have at most 32768 bytes of values with their paths, not 39750."),
            ),
        ] {
            let faults = read(&body).err().unwrap_or_default();
            assert_eq!(
                faults.iter().map(String::as_str).collect::<Vec<_>>(),
                Vec::from_iter(fault),
                "{body}"
            );
        }
    }

    #[test]
    fn what_a_change_leaves_out_stays() {
        let before = read(&json!({"title": "a", "tags": ["x"], "notes": "n"})).unwrap();
        let same = before.clone().merge(read(&json!({"title": null})).unwrap());
        assert_eq!(same, before);
        let after = before.merge(read(&json!({"title": "", "tags": [], "customFields": {"k": 1}})).unwrap());
        let expected = json!({"title": "", "tags": [], "notes": "n", "customFields": {"k": 1}});
        assert_eq!(serde_json::to_value(after).unwrap(), expected);
    }
}
