//! Projects.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::{id::ProjectId, time::UnixMillis};

use super::{
    body::{Purpose, common, millis, name},
    common::{Common, Stamp},
    members::Members,
    named::named,
};

/// The members of a project beside its name; stored as one document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProjectDetails {
    /// What all resources have.
    #[serde(flatten)]
    pub common: Common,
    /// When it begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starts_at: Option<UnixMillis>,
    /// When it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<UnixMillis>,
    /// Whether it was made for a demo. No body says so: the server notes it when it makes the project.
    #[serde(rename = "demo", skip_serializing_if = "std::ops::Not::not")]
    pub is_demo: bool,
}

/// A project: a named part of an account, which keys may be confined to.
#[derive(Debug, Clone, PartialEq)]
pub struct Project {
    /// Its id.
    pub id: ProjectId,
    /// Order and times.
    pub stamp: Stamp,
    /// Its name.
    pub name: String,
    /// Everything else.
    pub details: ProjectDetails,
}

/// The members of a create or update of a project; `None` means not given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProjectChange {
    /// Its name, required on create.
    pub name: Option<String>,
    /// Everything else.
    pub details: ProjectDetails,
}

impl ProjectChange {
    /// Reads the body of `POST /projects` and `PUT /projects/:id`.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value, purpose: Purpose) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let name = name(&mut members, purpose);
        let details = ProjectDetails {
            common: common(&mut members),
            starts_at: millis(&mut members, "startsAt"),
            ends_at: millis(&mut members, "endsAt"),
            is_demo: false,
        };
        members.finish(Some(Self { name, details }))
    }
}

impl Project {
    /// The project after a change at `now`.
    #[must_use]
    pub fn apply(self, change: ProjectChange, now: UnixMillis) -> Self {
        let (old, new) = (self.details, change.details);
        let details = ProjectDetails {
            common: old.common.merge(new.common),
            starts_at: new.starts_at.or(old.starts_at),
            ends_at: new.ends_at.or(old.ends_at),
            is_demo: old.is_demo,
        };
        Self { id: self.id, stamp: self.stamp.touch(now), name: change.name.unwrap_or(self.name), details }
    }
}

named! {
    Project: ProjectId, ProjectDetails, "project", Projects;
}

#[cfg(test)]
mod tests {
    use kernel::domain::body::assert_faults;
    use serde_json::json;

    use super::*;

    #[test]
    fn each_fault_is_named() {
        for (body, purpose, faults) in [
            (json!({"name": "x", "startsAt": 1, "endsAt": 2, "project": 7}), Purpose::Create, vec![]),
            (json!({}), Purpose::Create, vec!["name is required"]),
            (json!({}), Purpose::Update, vec![]),
            (json!({"startsAt": "x", "tags": 1}), Purpose::Update, vec!["tags", "startsAt"]),
            (json!([]), Purpose::Update, vec!["must be a JSON object"]),
        ] {
            assert_faults(&body, |body| ProjectChange::parse(body, purpose), &faults);
        }
    }

    #[test]
    fn an_update_keeps_other_members() {
        let project = Project {
            id: ProjectId::new(1, [1; 16]),
            stamp: Stamp { seq: 1, created_at: UnixMillis(5), updated_at: UnixMillis(5) },
            name: "a".to_owned(),
            details: ProjectDetails { ends_at: Some(UnixMillis(9)), ..ProjectDetails::default() },
        };
        let change = ProjectChange::parse(&json!({"startsAt": 3, "tags": ["t"]}), Purpose::Update).unwrap();
        let changed = project.apply(change, UnixMillis(5));
        assert_eq!(
            (changed.details.starts_at, changed.details.ends_at),
            (Some(UnixMillis(3)), Some(UnixMillis(9)))
        );
        assert_eq!((changed.name.as_str(), changed.stamp.updated_at), ("a", UnixMillis(6)));
        assert_eq!(changed.details.common.tags, Some(vec!["t".to_owned()]));
        let text = serde_json::to_string(&changed.details).unwrap();
        assert_eq!(serde_json::from_str::<ProjectDetails>(&text).unwrap(), changed.details);
    }
}
