//! Collections: their members, and how they nest.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::{id::CollectionId, time::UnixMillis};

use super::{
    body::{self, Purpose},
    common::{Common, Stamp},
    limits::{MAX_NAME, shorten},
    members::Members,
    named::named,
};

/// Most ids in one request that adds members to a collection.
pub const MAX_MEMBERS: usize = 1_000;

// Spec gap: how deep collections nest is not shown; ten levels, so that no walk is long.
/// Most collections on a path from the outermost to the innermost.
pub const MAX_DEPTH: usize = 10;

/// The members of a collection beside its name; stored as one document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CollectionDetails {
    /// What products and Thngs have too.
    #[serde(flatten)]
    pub common: Common,
    /// A kind that the caller chose.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
}

/// A collection: Thngs, and collections of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Collection {
    /// Its id.
    pub id: CollectionId,
    /// Order and times.
    pub stamp: Stamp,
    /// Its name.
    pub name: String,
    /// Everything else.
    pub details: CollectionDetails,
}

/// The members of a create or update of a collection; `None` means not given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CollectionChange {
    /// Its name, required on create.
    pub name: Option<String>,
    /// Everything else.
    pub details: CollectionDetails,
}

impl Collection {
    /// The collection after a change at `now`.
    #[must_use]
    pub fn apply(self, change: CollectionChange, now: UnixMillis) -> Self {
        let (old, new) = (self.details, change.details);
        let details = CollectionDetails { common: old.common.merge(new.common), kind: new.kind.or(old.kind) };
        Self { id: self.id, stamp: self.stamp.touch(now), name: change.name.unwrap_or(self.name), details }
    }
}

impl CollectionChange {
    /// Reads the body of `POST /collections` and `PUT /collections/:id`.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value, purpose: Purpose) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let name = body::name(&mut members, purpose);
        let details = CollectionDetails {
            common: body::common(&mut members),
            kind: body::text(&mut members, "type", 0, MAX_NAME),
        };
        members.finish(Some(Self { name, details }))
    }
}

shared::words! {
    /// What a collection holds.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum MemberKind {
        /// Thngs.
        Thngs = "thngs",
        /// Other collections.
        Collections = "collections",
    }
}

impl MemberKind {
    /// What one is called.
    #[must_use]
    pub const fn one(self) -> &'static str {
        match self {
            Self::Thngs => "thng",
            Self::Collections => "collection",
        }
    }
}

/// Parses a body that is an array of ids; duplicates count once.
///
/// # Errors
/// Every fault found, each naming its item.
pub fn parse_ids(body: &Value) -> Result<Vec<String>, Vec<String>> {
    let Some(items) = body.as_array() else {
        return Err(vec!["The body must be an array of ids.".to_owned()]);
    };
    if items.len() > MAX_MEMBERS {
        return Err(vec![format!("The body must hold at most {MAX_MEMBERS} ids, not {}.", items.len())]);
    }
    let (mut ids, mut faults) = (Vec::with_capacity(items.len()), Vec::new());
    for (index, item) in items.iter().enumerate() {
        match item.as_str().map(str::trim) {
            Some(id) if shared::id::is_valid(id) => ids.push(id.to_owned()),
            Some(text) => {
                faults.push(format!("[{index}]: {:?} is not an id of 24 characters.", shorten(text)))
            }
            None => faults.push(format!("[{index}] must be an id.")),
        }
    }
    ids.sort_unstable();
    ids.dedup();
    if faults.is_empty() { Ok(ids) } else { Err(faults) }
}

/// Why a collection cannot be a member of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CannotNest {
    /// The outer one is in the inner one, or is the same.
    #[error("a collection cannot be inside of itself")]
    Cycle,
    /// There would be too many on one path.
    #[error("collections nest at most {MAX_DEPTH} deep")]
    TooDeep,
}

/// Whether collections may become members of `outer`.
///
/// `above` are the levels of collections that hold `outer`, nearest first; `below` those that the new members
/// hold, `below[0]` being the new members themselves. An id may be on several levels.
///
/// # Errors
/// [`CannotNest`].
pub fn check_nesting(outer: &str, above: &[Vec<String>], below: &[Vec<String>]) -> Result<(), CannotNest> {
    let is_inside = |id: &str| below.iter().flatten().any(|member| member == id);
    if is_inside(outer) || above.iter().flatten().any(|id| is_inside(id)) {
        return Err(CannotNest::Cycle);
    }
    if above.len() + 1 + below.len() > MAX_DEPTH {
        return Err(CannotNest::TooDeep);
    }
    Ok(())
}

named! {
    Collection: CollectionId, CollectionDetails, "collection", Collections;
}

#[cfg(test)]
mod tests {
    use kernel::domain::body::assert_faults;
    use serde_json::json;

    use super::*;

    #[test]
    fn arrays_of_ids_are_read() {
        let (a, b) = ("UKXAGyEf8SQ5eTDmVgGpHqAa", "UKXAGyEf8SQ5eTDmVgGpHqAb");
        for (body, expected) in [
            (json!([]), Ok(vec![])),
            (json!([b, a, b]), Ok(vec![a.to_owned(), b.to_owned()])),
            (json!(vec![a; 1_000]), Ok(vec![a.to_owned()])),
            (json!(vec![a; 1_001]), Err(1)),
            (json!({"ids": [a]}), Err(1)),
            (json!(a), Err(1)),
            (json!([a, 1, null, "x", [a]]), Err(4)),
        ] {
            assert_eq!(parse_ids(&body).map_err(|faults| faults.len()), expected, "{body}");
        }
    }

    #[test]
    fn collections_nest_without_cycles_up_to_a_depth() {
        let level = |ids: &[&str]| ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>();
        let deep = |prefix: &str, count: usize| {
            (0..count).map(|n| vec![format!("{prefix}{n}")]).collect::<Vec<Vec<String>>>()
        };
        for (above, below, expected, why) in [
            (vec![], vec![level(&["b"])], Ok(()), "two that know nothing of each other"),
            (vec![], vec![level(&["a"])], Err(CannotNest::Cycle), "itself"),
            (vec![level(&["p"])], vec![level(&["b", "p"])], Err(CannotNest::Cycle), "what holds it"),
            (vec![level(&["p"]), level(&["q"])], vec![level(&["q"])], Err(CannotNest::Cycle), "farther up"),
            (vec![level(&["p"])], vec![level(&["b"]), level(&["p"])], Err(CannotNest::Cycle), "farther down"),
            (vec![], vec![level(&["b"]), level(&["c", "a"])], Err(CannotNest::Cycle), "it is inside already"),
            (deep("p", 4), deep("m", 5), Ok(()), "ten levels"),
            (deep("p", 5), deep("m", 5), Err(CannotNest::TooDeep), "eleven levels"),
            (vec![], deep("m", 10), Err(CannotNest::TooDeep), "ten below"),
        ] {
            assert_eq!(check_nesting("a", &above, &below), expected, "{why}");
        }
    }

    #[test]
    fn each_fault_of_a_collection_is_named() {
        for (body, purpose, faults) in [
            (json!({"name": "x", "type": "t", "thngs": 7}), Purpose::Create, vec![]),
            (json!({}), Purpose::Update, vec![]),
            (json!({}), Purpose::Create, vec!["name is required"]),
            (json!({"name": 1, "type": 2, "tags": 3}), Purpose::Create, vec!["name", "tags", "type"]),
        ] {
            assert_faults(&body, |body| CollectionChange::parse(body, purpose), &faults);
        }
    }
}
