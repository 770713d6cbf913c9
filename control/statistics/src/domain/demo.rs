//! How what `waymark demo` made is told from everything else: its project, and the mark on each of its resources.

use serde_json::{Map, Value};
use shared::id::ProjectId;

use super::scopes::Scopes;
pub use ::events::domain::demo::{FIELD, Mark, State};

/// The tag on everything that has tags. It is not the tag `demo`, which means that an item is on display and leaves its scans out.
pub const TAG: &str = "waymark-demo";

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
