//! How what `waymark demo` made is told from everything else: its project, and the mark on each of its resources.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use shared::id::ProjectId;

use super::{common::Common, scopes::Scopes};

/// The tag on everything that has tags. It is not the tag `demo`, which means that an item is on display and leaves its scans out.
pub const TAG: &str = "waymark-demo";

/// The member of `customFields` on everything that has them; in that of the project is the [`Mark`].
pub const FIELD: &str = "waymarkDemo";

/// How far a demo is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    /// Some of it is missing.
    Filling,
    /// All of it is there.
    Complete,
    /// Some of it is removed.
    Removing,
}

/// What a demo is made from; kept in the project, so that a run that goes on makes the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mark {
    /// What names, places and times follow from.
    pub seed: u32,
    /// Items with a link each.
    pub items: u32,
    /// Where the links lead.
    pub target: String,
    /// The last moment shown, in milliseconds since 1970.
    pub end: i64,
    /// How far it is.
    pub state: State,
}

/// Whether a project is one that a demo made, as a removal finds it.
#[must_use]
pub fn is_project(project: &Common) -> bool {
    let kept = project.custom_fields.as_ref().and_then(|fields| fields.get(FIELD));
    kept.is_some_and(|kept| Mark::deserialize(kept).is_ok())
}

/// Whether a resource is of the demo of a project, as a removal finds it: scoped to the project, and marked. One of the two
/// marks is enough: people edit tags and custom fields.
#[must_use]
pub fn is_resource(
    project: ProjectId,
    scopes: &Scopes,
    tags: Option<&[String]>,
    custom_fields: Option<&Map<String, Value>>,
) -> bool {
    let has_tag = tags.is_some_and(|tags| tags.iter().any(|tag| tag == TAG));
    let has_field = custom_fields.and_then(|fields| fields.get(FIELD)).is_some_and(|value| !value.is_null());
    (has_tag || has_field) && scopes.projects.iter().any(|id| id == project.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_project_of_a_demo_has_a_mark_that_can_be_read() {
        let mark = json!({"seed": 1, "items": 50, "target": "https://e.com", "end": 1, "state": "removing"});
        for (fields, expected) in [
            (json!({"waymarkDemo": mark}), true),
            (json!({"waymarkDemo": true}), false),
            (json!({"waymarkDemo": {"seed": 1}}), false),
            (json!({"demo": mark}), false),
            (json!({}), false),
        ] {
            let project = Common {
                custom_fields: fields.as_object().cloned(),
                tags: Some(vec![TAG.to_owned()]),
                ..Common::default()
            };
            assert_eq!(is_project(&project), expected, "{fields}");
        }
        assert!(!is_project(&Common::default()));
    }

    #[test]
    fn a_resource_of_a_demo_is_marked_and_scoped_to_its_project() {
        let (project, other) = (ProjectId::new(1, [1; 16]), ProjectId::new(1, [2; 16]));
        let scopes = Scopes { users: Vec::new(), projects: vec![project.to_string()] };
        let fields = json!({"waymarkDemo": "DM1"});
        let tags = [TAG.to_owned()];
        assert!(is_resource(project, &scopes, Some(&tags), None));
        assert!(is_resource(project, &scopes, None, fields.as_object()));
        assert!(!is_resource(other, &scopes, Some(&tags), fields.as_object()));
        assert!(!is_resource(project, &Scopes::default(), Some(&tags), None));
        assert!(!is_resource(
            project,
            &scopes,
            Some(&["demo".to_owned()]),
            json!({"waymarkDemo": null}).as_object()
        ));
        assert!(!is_resource(project, &scopes, None, None));
    }
}
