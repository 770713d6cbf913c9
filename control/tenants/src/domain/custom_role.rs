//! Roles that an account makes: for its operators, and for the users of its applications.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with_macros::skip_serializing_none;
use shared::{id::RoleId, time::UnixMillis};

use super::{
    body::{self, Purpose, text, texts},
    common::{Common, Stamp},
    limits::{MAX_NAME, integer, shorten},
    members::Members,
    named::named,
    role::{self, Group},
    subject::{Permissions, Subject, Verb},
};

/// Subjects of the vendor that Waymark does not have: permissions for them are kept and allow nothing.
const FOREIGN: [&str; 5] = ["purchaseOrders", "shipmentNotices", "adiOrders", "containers", "reactor"];

shared::words! {
    /// Whom a role is for.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub enum RoleKind {
        /// Operators.
        #[default]
        Operator = "operator",
        /// Users of applications.
        User = "userInApp",
    }
}

impl std::str::FromStr for RoleKind {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        let found = [Self::Operator, Self::User].into_iter().find(|kind| kind.as_str() == text);
        found.ok_or("must be operator or userInApp")
    }
}

/// What users with a role may do with a path: some of the letters `c`, `r`, `u` and `d`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathAccess {
    /// The path.
    pub path: String,
    /// The letters, in this order.
    pub access: String,
}

/// The paths that a role for users can name, with their subjects.
const PATHS: &[(&str, &[Subject])] = &[
    ("/thngs", &[Subject::Thngs, Subject::Properties, Subject::Locations]),
    ("/products", &[Subject::Products]),
    ("/collections", &[Subject::Collections]),
    ("/places", &[Subject::Places]),
    ("/actions", &[Subject::Actions, Subject::ActionTypes]),
    ("/redirections", &[Subject::Redirections]),
    ("/authentication", &[Subject::Assessments]),
];

/// What every user may do: to know itself, to change itself, and to log out.
const ALWAYS: [(&str, &str); 5] = [
    ("/access", "r"),
    ("/applications/me", "r"),
    ("/users", "ru"),
    ("/auth/all/logout", "c"),
    ("/time", "r"),
];

/// The members of a role beside its name; stored as one document.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RoleDetails {
    /// What all resources have.
    #[serde(flatten)]
    pub common: Common,
    /// What it allows operators, as it was written.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub permissions: Vec<String>,
    /// What it allows users, beside what every user may do.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathAccess>,
    /// Names of parts of an application; kept, not used.
    pub ui_permissions: Option<Vec<String>>,
    /// The part that an application begins with; kept, not used.
    pub homepage: Option<String>,
    /// A number that the vendor's client sends with roles of users; kept, not used.
    pub version: Option<u32>,
}

/// A role.
#[derive(Debug, Clone, PartialEq)]
pub struct Role {
    /// Its id.
    pub id: RoleId,
    /// Order and times.
    pub stamp: Stamp,
    /// Its name.
    pub name: String,
    /// Whom it is for.
    pub kind: RoleKind,
    /// Everything else.
    pub details: RoleDetails,
}

/// The members of a create or update of a role; `None` means not given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RoleChange {
    /// Its name, required on create.
    pub name: Option<String>,
    /// Whom it is for; set on create only.
    pub kind: RoleKind,
    /// What it allows operators.
    pub permissions: Option<Vec<String>>,
    /// Everything else.
    pub details: RoleDetails,
}

impl Role {
    /// What it allows.
    #[must_use]
    pub fn permissions(&self) -> Permissions {
        match self.kind {
            RoleKind::Operator => known(&self.details.permissions),
            RoleKind::User => Permissions::of(|verb, subject| {
                self.details.paths.iter().any(|path| {
                    PATHS.iter().any(|(name, of)| *name == path.path && of.contains(&subject))
                        && path.access.contains(letter(verb))
                }) || matches!(subject, Subject::Users | Subject::Access | Subject::Roles)
            }),
        }
    }

    /// The role after a change at `now`.
    #[must_use]
    pub fn apply(self, change: RoleChange, now: UnixMillis) -> Self {
        let (old, new) = (self.details, change.details);
        let details = RoleDetails {
            common: old.common.merge(new.common),
            permissions: change.permissions.unwrap_or(old.permissions),
            paths: old.paths,
            ui_permissions: new.ui_permissions.or(old.ui_permissions),
            homepage: new.homepage.or(old.homepage),
            version: new.version.or(old.version),
        };
        Self { stamp: self.stamp.touch(now), name: change.name.unwrap_or(self.name), details, ..self }
    }

    /// The role with a group of permissions or without it.
    #[must_use]
    pub fn switch(mut self, group: &Group, is_enabled: bool, now: UnixMillis) -> Self {
        let before = known(&self.details.permissions);
        let after =
            if is_enabled { before.with(group.permissions()) } else { before.without(group.permissions()) };
        let foreign = self.details.permissions.into_iter().filter(|text| is_foreign(text));
        self.details.permissions = after.texts().into_iter().chain(foreign).collect();
        self.stamp = self.stamp.touch(now);
        self
    }

    /// What its users may do, path by path.
    #[must_use]
    pub fn paths(&self) -> Vec<PathAccess> {
        let always = ALWAYS
            .iter()
            .map(|(path, access)| PathAccess { path: (*path).to_owned(), access: (*access).to_owned() });
        always.chain(self.details.paths.iter().cloned()).collect()
    }
}

/// The letter of a verb in the access to a path.
const fn letter(verb: Verb) -> char {
    match verb {
        Verb::Create => 'c',
        Verb::Read | Verb::List => 'r',
        Verb::Update => 'u',
        Verb::Delete => 'd',
    }
}

fn is_foreign(text: &str) -> bool {
    text.split_once(':').is_some_and(|(subject, verbs)| {
        FOREIGN.contains(&subject) && verbs.split(',').all(|verb| verb.parse::<Verb>().is_ok())
    })
}

/// The permissions of some texts, which were checked when they came.
fn known(texts: &[String]) -> Permissions {
    let read = |text: &String| Permissions::parse(text).ok();
    texts.iter().filter_map(read).fold(Permissions::default(), Permissions::with)
}

impl RoleChange {
    /// Reads the body of `POST /roles` and `PUT /roles/:id`.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value, purpose: Purpose) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let name = read_name(&mut members, purpose);
        let kind = match purpose {
            Purpose::Create => members.parsed("type").unwrap_or_default(),
            Purpose::Update => RoleKind::default(),
        };
        // A new one for operators reads, until more is given.
        let is_reader = purpose == Purpose::Create && kind == RoleKind::Operator;
        let reads = role::find_group("global_read").filter(|_| is_reader);
        let change = Self {
            name,
            kind,
            permissions: reads.map(|group| group.permissions().texts()),
            details: RoleDetails {
                common: common(&mut members),
                version: members.typed("version", "a whole number from 0", |value| {
                    integer(value).and_then(|number| u32::try_from(number).ok())
                }),
                ..RoleDetails::default()
            },
        };
        members.finish(Some(change))
    }

    /// Reads the body of `POST /accessPolicies` and `PUT /accessPolicies/:id`.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse_policy(body: &Value, purpose: Purpose) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        if purpose == Purpose::Create && members.raw("permissions").is_none() {
            members.fault("permissions is required.");
        }
        let change = Self {
            name: read_name(&mut members, purpose),
            kind: RoleKind::Operator,
            permissions: read_permissions(&mut members),
            details: RoleDetails {
                common: common(&mut members),
                ui_permissions: texts(&mut members, "uiPermissions", MAX_NAME),
                homepage: text(&mut members, "homepage", 0, MAX_NAME),
                ..RoleDetails::default()
            },
        };
        members.finish(Some(change))
    }
}

fn common(members: &mut Members<'_>) -> Common {
    Common { scopes: None, activated_at: None, ..body::common(members) }
}

/// A name; those of the policies of every account are taken.
fn read_name(members: &mut Members<'_>, purpose: Purpose) -> Option<String> {
    let name = body::name(members, purpose)?;
    if name.starts_with("evt:") || role::permissions_of(&name).is_some() {
        members.fault("name: that of a role that every account has.");
    }
    Some(name)
}

fn read_permissions(members: &mut Members<'_>) -> Option<Vec<String>> {
    let listed = texts(members, "permissions", MAX_NAME)?;
    for (index, text) in listed.iter().enumerate() {
        if is_foreign(text) {
            continue;
        }
        match Permissions::parse(text) {
            Ok(read) if text.contains(' ') || !role::of_owner().cover(&read) => {
                members.fault(format!("permissions[{index}]: there is no {:?}.", shorten(text)));
            }
            Ok(read) if read.allow(Verb::Update, Subject::Owners) => {
                members.fault(format!("permissions[{index}]: only the role owner has it."));
            }
            Ok(_) => {}
            Err(_) => members.fault(format!(
                "permissions[{index}]: {:?} is no permission: it is a subject with verbs, such as products:create,read.",
                shorten(text)
            )),
        }
    }
    Some(listed)
}

/// Reads the body of `PUT /roles/:id/permissions`: what users may do with some paths, in place of what they may now.
/// What every user may do is left out; of a path that comes twice, either access is given.
///
/// # Errors
/// Every fault found, each naming its item.
pub fn parse_paths(body: &Value) -> Result<Vec<PathAccess>, Vec<String>> {
    let items = body.as_array().ok_or_else(|| vec!["The body must be a JSON array.".to_owned()])?;
    let (mut found, mut faults): (Vec<PathAccess>, Vec<String>) = (Vec::new(), Vec::new());
    for (index, item) in items.iter().enumerate() {
        match parse_path(item, index) {
            Ok(item) if ALWAYS.iter().any(|(path, _)| *path == item.path) => {}
            Ok(item) => match found.iter_mut().find(|other| other.path == item.path) {
                Some(other) => other.access = letters(&format!("{}{}", other.access, item.access)),
                None => found.push(item),
            },
            Err(these) => faults.extend(these),
        }
    }
    if faults.is_empty() { Ok(found) } else { Err(faults) }
}

/// The letters of an access, each once and in their order.
fn letters(access: &str) -> String {
    "crud".chars().filter(|letter| access.contains(*letter)).collect()
}

fn parse_path(item: &Value, index: usize) -> Result<PathAccess, Vec<String>> {
    let mut members = Members::within(item, &format!("[{index}]"))?;
    for name in ["path", "access"] {
        if members.raw(name).is_none() {
            members.fault(format!("{} is required.", members.path(name)));
        }
    }
    let path = members.text("path");
    let known = || PATHS.iter().map(|(path, _)| *path).chain(ALWAYS.iter().map(|(path, _)| *path));
    if let Some(path) = path.filter(|path| !known().any(|known| known == *path)) {
        let all = known().collect::<Vec<_>>().join(", ");
        members.fault(format!("{}: {:?} is none of {all}.", members.path("path"), shorten(path)));
    }
    let access = members.text("access");
    if access.is_some_and(|access| access.chars().any(|letter| !"crud".contains(letter))) {
        members.fault(format!("{} must be some of the letters c, r, u and d.", members.path("access")));
    }
    let read =
        path.zip(access).map(|(path, access)| PathAccess { path: path.to_owned(), access: letters(access) });
    members.finish(read)
}

/// Reads the body of `PUT /roles/:id/permissions/:name`: whether the group is given.
///
/// # Errors
/// Every fault found, each naming its member.
pub fn parse_enabled(body: &Value) -> Result<bool, Vec<String>> {
    let mut members = Members::of(body)?;
    if members.raw("enabled").is_none() {
        members.fault("enabled is required.");
    }
    let enabled = members.boolean("enabled");
    members.finish(enabled)
}

named! {
    Role: RoleId, RoleDetails, "role", Roles;
}

#[cfg(test)]
mod tests;
