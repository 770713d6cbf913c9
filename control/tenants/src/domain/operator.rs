//! Operators: the people and programs that work in an account, with their roles.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::{
    entity_tag::EntityTag,
    id::{AccountId, OperatorId, ProjectId},
    time::UnixMillis,
};

use super::{
    body::{Purpose, common, custom_fields, name, text, texts},
    common::{Common, updated_at},
    email::Email,
    limits::{MAX_NAME, shorten},
    members::Members,
    role::OWNER,
};

/// How long an invitation can be accepted: 7 days.
pub const INVITATION_MS: i64 = 7 * 24 * 60 * 60 * 1_000;

/// Most roles of an operator, and most projects that it is confined to.
const MAX_ROLES: usize = 20;

/// What a condition says before the id of a project.
const OF_PROJECT: &str = "project=";

shared::words! {
    /// Who an operator is.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum OperatorKind {
        /// Somebody with a mail address.
        Person = "person",
        /// A program, with a name.
        Machine = "machine",
    } else ()
}

/// An invitation that was not accepted yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Invitation {
    /// SHA-256 of its code.
    pub code: [u8; 32],
    /// When it ends.
    pub until: UnixMillis,
}

/// The members of an operator that are not queried; stored as one document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OperatorDetails {
    /// What all resources have.
    #[serde(flatten)]
    pub common: Common,
    /// The name of a program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

/// A person or program that works in an account.
#[derive(Debug, Clone, PartialEq)]
pub struct Operator {
    /// Its id.
    pub id: OperatorId,
    /// Its account.
    pub account: AccountId,
    /// Who it is.
    pub kind: OperatorKind,
    /// Address of a person; not changed through the API.
    pub email: String,
    /// First name.
    pub first_name: String,
    /// Last name.
    pub last_name: String,
    /// Ids of its roles, at least one.
    pub roles: Vec<String>,
    /// The projects that it is confined to; `None` is the whole account.
    pub projects: Option<Vec<ProjectId>>,
    /// Until it accepts it.
    pub invitation: Option<Invitation>,
    /// Everything else.
    pub details: OperatorDetails,
    /// When it was created.
    pub created_at: UnixMillis,
    /// When it was last changed.
    pub updated_at: UnixMillis,
}

/// The members of an update of an operator; `None` means not given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OperatorChange {
    /// First name.
    pub first_name: Option<String>,
    /// Last name.
    pub last_name: Option<String>,
    /// The caller's own members, replaced as a whole.
    pub common: Common,
}

/// What an operator may do, as a body says it; `None` means not given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AccessChange {
    /// Address of a person who is invited.
    pub email: Option<Email>,
    /// Name of a program.
    pub name: Option<String>,
    /// Ids of roles.
    pub roles: Option<Vec<String>>,
    /// The projects; inside, `None` is the whole account.
    pub projects: Option<Option<Vec<ProjectId>>>,
    /// Names and own members.
    pub about: OperatorChange,
}

impl Operator {
    /// Whether it may do everything in the whole account.
    #[must_use]
    pub fn is_owner(&self) -> bool {
        self.projects.is_none() && self.invitation.is_none() && self.roles.iter().any(|role| role == OWNER)
    }

    /// The operator after a change at `now`.
    #[must_use]
    pub fn apply(self, change: OperatorChange, now: UnixMillis) -> Self {
        let details =
            OperatorDetails { common: self.details.common.merge(change.common), name: self.details.name };
        Self {
            first_name: change.first_name.unwrap_or(self.first_name),
            last_name: change.last_name.unwrap_or(self.last_name),
            details,
            updated_at: updated_at(now, self.created_at, self.updated_at),
            ..self
        }
    }

    /// Names the state that it is in.
    #[must_use]
    pub fn tag(&self) -> EntityTag {
        EntityTag::of_members(self)
    }

    /// The operator after a change of its access at `now`.
    #[must_use]
    pub fn apply_access(self, change: AccessChange, now: UnixMillis) -> Self {
        let mut changed = self.apply(change.about, now);
        changed.details.name = change.name.or(changed.details.name);
        Self {
            roles: change.roles.unwrap_or(changed.roles),
            projects: change.projects.unwrap_or(changed.projects),
            ..changed
        }
    }
}

impl OperatorChange {
    /// Reads the body of `PUT /operators/:id`.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let custom_fields = custom_fields(&mut members);
        let change = Self { common: Common { custom_fields, ..Common::default() }, ..names(&mut members) };
        members.finish(Some(change))
    }
}

fn names(members: &mut Members<'_>) -> OperatorChange {
    OperatorChange {
        first_name: text(members, "firstName", 0, MAX_NAME),
        last_name: text(members, "lastName", 0, MAX_NAME),
        common: Common::default(),
    }
}

impl AccessChange {
    /// Reads the body of `POST /accounts/:id/operatorAccess` and `PUT /accounts/:id/operatorAccess/:id`.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value, purpose: Purpose) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let (email, name) = match purpose {
            Purpose::Create => (read_email(&mut members), None),
            Purpose::Update => (None, name(&mut members, purpose)),
        };
        let about = names(&mut members);
        Self::read(members, purpose, Self { email, name, about, ..Self::default() })
    }

    /// Reads the body of `POST /accessTokens`.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse_token(body: &Value) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let name = name(&mut members, Purpose::Create);
        Self::read(members, Purpose::Create, Self { name, ..Self::default() })
    }

    fn read(mut members: Members<'_>, purpose: Purpose, read: Self) -> Result<Self, Vec<String>> {
        let roles = roles(&mut members, purpose);
        let projects = projects(&mut members);
        let common = Common { scopes: None, activated_at: None, ..common(&mut members) };
        let about = OperatorChange { common, ..read.about };
        members.finish(Some(Self { roles, projects, about, ..read }))
    }
}

fn read_email(members: &mut Members<'_>) -> Option<Email> {
    match members.text("email") {
        None if members.raw("email").is_none() => members.fault("email is required."),
        None => {}
        Some(text) => match Email::parse(text) {
            Ok(email) => return Some(email),
            Err(fault) => members.fault(format!("email {fault}.")),
        },
    }
    None
}

/// `role` names the only one, or `policies` all of them.
fn roles(members: &mut Members<'_>, purpose: Purpose) -> Option<Vec<String>> {
    let role = text(members, "role", 1, MAX_NAME);
    let policies = texts(members, "policies", MAX_NAME);
    match (role, policies) {
        // As an access that was read has both.
        (Some(role), Some(policies)) if policies.first() != Some(&role) => {
            members.fault("role is not the first of policies: give one of them.");
            None
        }
        (_, Some(policies)) if policies.is_empty() || policies.len() > MAX_ROLES => {
            members.fault(format!("policies must name 1 to {MAX_ROLES} roles."));
            None
        }
        (_, Some(mut policies)) => {
            let mut seen = std::collections::HashSet::new();
            policies.retain(|id| seen.insert(id.clone()));
            Some(policies)
        }
        (Some(role), None) => Some(vec![role]),
        (None, None) => {
            let is_missing = members.raw("role").is_none() && members.raw("policies").is_none();
            if purpose == Purpose::Create && is_missing {
                members.fault("role or policies is required.");
            }
            None
        }
    }
}

/// Conditions such as `project=<id>`; none is the whole account.
fn projects(members: &mut Members<'_>) -> Option<Option<Vec<ProjectId>>> {
    let conditions = texts(members, "conditions", MAX_NAME)?;
    if conditions.len() > MAX_ROLES {
        members.fault(format!("conditions must be at most {MAX_ROLES}."));
    }
    let mut found = Vec::new();
    for (index, condition) in conditions.iter().enumerate() {
        match condition.strip_prefix(OF_PROJECT).and_then(|id| id.parse::<ProjectId>().ok()) {
            Some(project) if found.contains(&project) => {}
            Some(project) => found.push(project),
            None => {
                let shown = shorten(condition);
                members.fault(format!("conditions[{index}]: {shown:?} is none; project=<id> is one."));
            }
        }
    }
    Some((!found.is_empty()).then_some(found))
}

/// Reads the body of `POST /invitations`: the code, and the names.
///
/// # Errors
/// Every fault found, each naming its member.
pub fn parse_acceptance(body: &Value) -> Result<(String, OperatorChange), Vec<String>> {
    let mut members = Members::of(body)?;
    if members.raw("code").is_none() {
        members.fault("code is required.");
    }
    let (code, names) = (text(&mut members, "code", 1, MAX_NAME), names(&mut members));
    members.finish(code.map(|code| (code, names)))
}

/// The projects of an operator as conditions.
#[must_use]
pub fn conditions(projects: Option<&[ProjectId]>) -> Vec<String> {
    projects.unwrap_or_default().iter().map(|id| format!("{OF_PROJECT}{id}")).collect()
}

#[cfg(test)]
mod tests {
    use kernel::domain::body::assert_faults;
    use serde_json::json;

    use super::*;

    #[test]
    fn each_fault_of_an_access_is_named() {
        let project = "UKXAGyEf8SQ5eTDmVgGpHqAa";
        for (body, purpose, faults) in [
            (json!({"email": "a@b", "role": "viewer"}), Purpose::Create, vec![]),
            (json!({"email": "a@b", "policies": ["viewer", "x"], "conditions": []}), Purpose::Create, vec![]),
            (json!({}), Purpose::Create, vec!["email is required", "role or policies is required"]),
            (json!({}), Purpose::Update, vec![]),
            (json!({"email": "a", "role": 1}), Purpose::Create, vec!["email must be", "role must be"]),
            (json!({"role": "a", "policies": ["b"]}), Purpose::Update, vec!["role is not the first"]),
            (json!({"role": "a", "policies": ["a", "b"], "name": "x"}), Purpose::Update, vec![]),
            (json!({"name": ""}), Purpose::Update, vec!["name must"]),
            (json!({"policies": []}), Purpose::Update, vec!["policies must name"]),
            (json!({"conditions": [format!("project={project}")]}), Purpose::Update, vec![]),
            (
                json!({"conditions": ["project=x", "a"]}),
                Purpose::Update,
                vec!["conditions[0]", "conditions[1]"],
            ),
        ] {
            assert_faults(&body, |body| AccessChange::parse(body, purpose), &faults);
        }
        for (body, faults) in [
            (json!({"name": "press", "role": "printer"}), vec![]),
            (json!({"policies": ["printer"]}), vec!["name is required"]),
        ] {
            assert_faults(&body, AccessChange::parse_token, &faults);
        }
        for (body, faults) in [
            (json!({"firstName": "", "email": 1}), vec![]),
            (json!({"firstName": 1, "lastName": []}), vec!["firstName", "lastName"]),
        ] {
            assert_faults(&body, OperatorChange::parse, &faults);
        }
    }

    #[test]
    fn conditions_become_projects_and_back() {
        let text = "project=UKXAGyEf8SQ5eTDmVgGpHqAa";
        let read = |value: Value| AccessChange::parse(&json!({"conditions": value}), Purpose::Update);
        let projects = read(json!([text, text])).unwrap().projects.unwrap().unwrap();
        assert_eq!(conditions(Some(&projects)), [text]);
        assert_eq!(read(json!([])).unwrap().projects, Some(None));
        assert_eq!(conditions(None), Vec::<String>::new());
    }
}
