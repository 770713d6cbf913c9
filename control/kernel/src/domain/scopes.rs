//! Who may see and change a resource beside operators.

use serde::{Deserialize, Serialize};
use shared::id::ProjectId;

use super::members::Members;

/// Most entries in each list of a scope.
const MAX_SCOPES: usize = 100;

/// Who may see and change a resource beside operators; `users` holds ids or the word `all`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scopes {
    /// Application users.
    #[serde(default)]
    pub users: Vec<String>,
    /// Projects.
    #[serde(default)]
    pub projects: Vec<String>,
}

impl Scopes {
    /// The projects, as edges hold them: texts that are no ids name none.
    #[must_use]
    pub fn project_ids(&self) -> Box<[ProjectId]> {
        self.projects.iter().filter_map(|id| id.parse().ok()).collect()
    }

    /// Adds a project unless it is among them.
    pub fn add_project(&mut self, project: ProjectId) {
        if !self.projects.iter().any(|known| known == project.as_str()) {
            self.projects.push(project.to_string());
        }
    }
}

/// Reads the member `scopes` of a body; a fault names what is wrong with it.
pub fn read_scopes(members: &mut Members<'_>) -> Scopes {
    let Some(value) = members.raw("scopes") else { return Scopes::default() };
    let read = value.is_object().then(|| serde_json::from_value::<Scopes>(value.clone()).ok()).flatten();
    match read {
        Some(scopes) if scopes.users.len() <= MAX_SCOPES && scopes.projects.len() <= MAX_SCOPES => {
            if scopes.users.iter().chain(&scopes.projects).any(|id| id != "all" && !shared::id::is_valid(id))
            {
                members.fault(format!("{} must hold ids of 24 characters.", members.path("scopes")));
            }
            scopes
        }
        Some(_) => {
            let path = members.path("scopes");
            members.fault(format!("{path} must hold at most {MAX_SCOPES} users and projects each."));
            Scopes::default()
        }
        None => {
            let path = members.path("scopes");
            members
                .fault(format!("{path} must be an object with users and projects, both arrays of strings."));
            Scopes::default()
        }
    }
}
