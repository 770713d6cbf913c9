//! The template of an action: its members from the draft, and the document for each target.

use serde_json::{Map, Value, json};
use shared::time::UnixMillis;

use super::Target;
use crate::domain::scopes::Scopes;

/// The members of a draft without its target.
pub(super) struct Template {
    pub kind: String,
    pub timestamp: UnixMillis,
    /// The document without what depends on the target.
    pub doc: Map<String, Value>,
    /// Its own scopes; without them, those of the target.
    pub scopes: Option<Scopes>,
}

impl Template {
    /// The document of the action about a target.
    pub(super) fn doc_about(&self, target: &Target) -> Value {
        let mut doc = self.doc.clone();
        if let Some(collection) = target.collection {
            doc.insert("collection".to_owned(), json!(collection));
        }
        // Spec gap: the platform API does not show the scopes of an action without any: it gets the projects of its
        // target.
        let of_target = || Scopes { users: Vec::new(), projects: target.projects.clone() };
        let scopes = self.scopes.clone().unwrap_or_else(of_target);
        if !is_empty(&scopes) {
            doc.insert("scopes".to_owned(), json!(scopes));
        }
        Value::Object(doc)
    }
}

pub(super) const fn is_empty(scopes: &Scopes) -> bool {
    scopes.users.is_empty() && scopes.projects.is_empty()
}
