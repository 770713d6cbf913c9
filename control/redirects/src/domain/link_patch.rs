//! Changes of many links at once: the members that a `PUT` of one link may change. What is left out stays.

use serde_json::{Value, json};
use shared::{redirect_status::RedirectStatus, target::Target};

use super::{
    availability::{AvailabilityChange, Patch},
    body,
    grant::Grant,
    limits::{MAX_LIST, MAX_TAG},
    link_details::Described,
    members::Members,
    redirection::{Redirection, Writable},
    scopes::Scopes,
};

/// The members that a change may have.
const MEMBERS: [&str; 13] = [
    "defaultRedirectUrl",
    "forwardQuery",
    "statusCode",
    "validFrom",
    "validUntil",
    "maxScans",
    "status",
    "endedUrl",
    "scopes",
    "title",
    "tags",
    "notes",
    "customFields",
];

/// Those of them that `null` removes; `null` for another one counts as absent.
const REMOVABLE: [&str; 6] = ["statusCode", "validFrom", "validUntil", "maxScans", "status", "endedUrl"];

/// Stands for the target where a change has none, because the parser of a `PUT` wants one.
const STAND_IN: &str = "https://example.com/";

/// A change of many links.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkPatch {
    target: Option<Target>,
    forward_query: Option<bool>,
    status_code: Patch<RedirectStatus>,
    availability: AvailabilityChange,
    scopes: Option<Scopes>,
    described: Described,
    tags: Option<TagChange>,
}

/// Tags that are added to those of a link, and removed from them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct TagChange {
    add: Vec<String>,
    remove: Vec<String>,
}

impl LinkPatch {
    /// Reads `patch`.
    ///
    /// # Errors
    /// Every fault found, each naming its member: those of a `PUT`, members that there are not, and a change of nothing.
    pub fn parse(patch: &Value) -> Result<Self, Vec<String>> {
        let Some(given) = patch.as_object() else { return Err(vec!["patch must be an object.".to_owned()]) };
        let others = given.keys().filter(|name| !MEMBERS.contains(&name.as_str()));
        let mut faults: Vec<String> = others
            .map(|name| format!("patch.{name} is not a member that links can be changed in."))
            .collect();
        let changes =
            |(name, value): (&String, &Value)| !value.is_null() || REMOVABLE.contains(&name.as_str());
        if !given.iter().any(changes) {
            faults.push("patch must change something.".to_owned());
        }
        let has = |name: &str| given.get(name).is_some_and(|value| !value.is_null());
        let mut put = given.clone();
        let tags = match given.get("tags") {
            Some(tags) if tags.is_object() => {
                put.remove("tags");
                TagChange::parse(tags).map_err(|found| faults.extend(found)).ok()
            }
            Some(_) | None => None,
        };
        if !has("defaultRedirectUrl") {
            put.insert("defaultRedirectUrl".to_owned(), json!(STAND_IN));
        }
        match Writable::parse(&Value::Object(put)) {
            Err(found) => faults.extend(found.into_iter().map(|fault| format!("patch.{fault}"))),
            Ok(writable) if faults.is_empty() => {
                return Ok(Self {
                    target: has("defaultRedirectUrl").then_some(writable.target),
                    forward_query: has("forwardQuery").then_some(writable.forward_query),
                    status_code: writable.status_code,
                    availability: writable.availability,
                    scopes: has("scopes").then_some(writable.scopes),
                    described: writable.described,
                    tags,
                });
            }
            Ok(_) => {}
        }
        Err(faults)
    }

    /// Every URL of it that people may be led to, with its member.
    pub fn targets(&self) -> impl Iterator<Item = (&'static str, &Target)> {
        let target = self.target.as_ref().map(|target| ("defaultRedirectUrl", target));
        let ended = self.availability.ended_url.value().map(|target| ("endedUrl", target));
        target.into_iter().chain(ended)
    }

    /// Whether it changes who may see links.
    #[must_use]
    pub const fn changes_scopes(&self) -> bool {
        self.scopes.is_some()
    }

    /// A link with this change; `None` where nothing of it differs.
    ///
    /// # Errors
    /// The link cannot be changed so: it would end before it begins, or have too many tags.
    pub fn apply(&self, link: &Redirection, grant: &Grant) -> Result<Option<Redirection>, String> {
        let mut after = link.clone();
        if let Some(target) = &self.target {
            after.redirect.target = target.as_str().into();
        }
        if let Some(forward_query) = self.forward_query {
            after.redirect.forward_query = forward_query;
        }
        after.redirect.status_code = self.status_code.or_default(link.redirect.status_code);
        let availability = self.availability.apply(link.redirect.availability.as_deref());
        after.redirect.availability = availability.map_err(|fault| format!("{fault}."))?;
        if let Some(scopes) = grant.scopes_of_change(self.scopes.clone()) {
            after.scopes = scopes;
            after.redirect.projects = after.scopes.project_ids();
        }
        let mut described = self.described.clone();
        if let Some(change) = &self.tags {
            described.tags = change.apply(link.details.described.tags.as_deref())?;
        }
        after.details.described = link.details.described.clone().merge(described);
        let is_same = after.redirect == link.redirect
            && after.scopes == link.scopes
            && after.details.described == link.details.described;
        Ok((!is_same).then_some(after))
    }
}

impl TagChange {
    fn parse(value: &Value) -> Result<Self, Vec<String>> {
        let mut members = Members::within(value, "patch.tags")?;
        let others: Vec<&str> = members.names().filter(|name| !["add", "remove"].contains(name)).collect();
        for other in others {
            members.fault(format!("patch.tags.{other} is not a member of it; it has add and remove."));
        }
        let add = body::texts(&mut members, "add", MAX_TAG).unwrap_or_default();
        let remove = body::texts(&mut members, "remove", MAX_TAG).unwrap_or_default();
        for tag in add.iter().filter(|tag| remove.contains(tag)) {
            members.fault(format!("patch.tags adds and removes {tag}."));
        }
        members.finish(Some(Self { add, remove }))
    }

    /// The tags of a link after this change; `None` where it has none, before and after.
    fn apply(&self, before: Option<&[String]>) -> Result<Option<Vec<String>>, String> {
        let mut tags: Vec<String> = before.unwrap_or_default().to_vec();
        tags.retain(|tag| !self.remove.contains(tag));
        for tag in &self.add {
            if !tags.contains(tag) {
                tags.push(tag.clone());
            }
        }
        if tags.len() > MAX_LIST {
            return Err(format!("tags would have {} items, and may have {MAX_LIST}.", tags.len()));
        }
        Ok((before.is_some() || !tags.is_empty()).then_some(tags))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_named_at_once() {
        for (patch, expected) in [
            (json!({"title": "a"}), vec![]),
            (json!({"tags": ["a"], "forwardQuery": true, "statusCode": 301}), vec![]),
            (json!({"tags": {"add": ["a"], "remove": ["b"]}}), vec![]),
            (json!({"status": null}), vec![]),
            (json!([]), vec!["patch must be an object"]),
            (json!({}), vec!["patch must change something"]),
            (json!({"title": null, "defaultRedirectUrl": null}), vec!["patch must change something"]),
            (json!({"shortId": "A", "hits": 1}), vec!["patch.hits is not", "patch.shortId is not"]),
            (
                json!({"colour": 1, "title": 1, "defaultRedirectUrl": "javascript:alert(1)", "status": "off",
                    "tags": {"add": [""], "more": []}}),
                vec![
                    "patch.colour is not",
                    "patch.tags.more is not",
                    "patch.tags.add[0] must not be empty",
                    "patch.defaultRedirectUrl must be an absolute",
                    "patch.status must be active or paused",
                    "patch.title must be a string",
                ],
            ),
            (json!({"tags": {"add": ["a"], "remove": ["a"]}}), vec!["patch.tags adds and removes a"]),
            (json!({"tags": "a"}), vec!["patch.tags must be an array of strings"]),
            (json!({"validFrom": 5, "validUntil": 5}), vec!["patch.validUntil must be after validFrom"]),
        ] {
            let faults = LinkPatch::parse(&patch).err().unwrap_or_default();
            assert_eq!(faults.len(), expected.len(), "{patch}: {faults:?}");
            for part in &expected {
                assert!(faults.iter().any(|fault| fault.contains(part)), "{patch}: {part} in {faults:?}");
            }
        }
    }

    #[test]
    fn tags_are_added_and_removed() {
        let texts = |all: &[&str]| all.iter().map(|tag| (*tag).to_owned()).collect::<Vec<_>>();
        let change = TagChange { add: texts(&["b", "c"]), remove: texts(&["a"]) };
        assert_eq!(change.apply(Some(&texts(&["a", "b"]))), Ok(Some(texts(&["b", "c"]))));
        assert_eq!(change.apply(None), Ok(Some(texts(&["b", "c"]))));
        let removal = TagChange { add: Vec::new(), remove: texts(&["a"]) };
        assert_eq!(removal.apply(None), Ok(None));
        assert_eq!(removal.apply(Some(&texts(&["a"]))), Ok(Some(Vec::new())));
        let full: Vec<String> = (0..MAX_LIST).map(|n| n.to_string()).collect();
        assert!(change.apply(Some(&full)).is_err_and(|fault| fault.contains("102 items")));
    }
}
