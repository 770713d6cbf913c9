//! What tells the project of `waymark demo` from others when it is made.

use serde::{Deserialize, Serialize};

use super::common::Common;

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

/// Whether a project carries the mark of a demo. What was made without is none, whatever is written into it later.
#[must_use]
pub fn is_project(project: &Common) -> bool {
    let kept = project.custom_fields.as_ref().and_then(|fields| fields.get(FIELD));
    kept.is_some_and(|kept| Mark::deserialize(kept).is_ok())
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
                tags: Some(vec!["waymark-demo".to_owned()]),
                ..Common::default()
            };
            assert_eq!(is_project(&project), expected, "{fields}");
        }
        assert!(!is_project(&Common::default()));
    }
}
