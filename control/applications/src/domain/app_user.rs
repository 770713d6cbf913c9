//! Users of applications.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with_macros::skip_serializing_none;
use shared::{
    entity_tag::EntityTag,
    id::{ApplicationId, ProjectId, UserId},
    time::UnixMillis,
};

use super::{
    body::{common, text},
    common::{Common, Stamp},
    email::Email,
    limits::{self, MAX_NAME, MAX_URL},
    members::Members,
    password::Password,
    scopes::Scopes,
    user_registration::UserRegistration,
};

shared::words! {
    /// How far a user has come.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum UserStatus {
        /// Named, and not yet activated by the code.
        Inactive = "inactive",
        /// May log in.
        Active = "active",
        /// Has a key and no name.
        Anonymous = "anonymous",
    } else ()
}

/// The members of a user that are not queried; stored as one document.
///
/// In an update, a member that is `None` is kept.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UserDetails {
    /// What all resources have.
    #[serde(flatten)]
    pub common: Common,
    /// First name.
    pub first_name: Option<String>,
    /// Last name.
    pub last_name: Option<String>,
    /// E-mail address; not changed by updates.
    pub email: Option<String>,
    /// Gender, as the client calls it.
    pub gender: Option<String>,
    /// Locale, such as `en_GB`.
    pub locale: Option<String>,
    /// Name of the time zone.
    pub timezone: Option<String>,
    /// URL of a photo.
    pub photo: Option<String>,
    /// Date of birth, in the client's own form.
    pub birthday: Option<Map<String, Value>>,
}

impl UserDetails {
    fn read(members: &mut Members<'_>) -> Self {
        Self {
            // The visibility of a user follows from its project.
            common: Common { scopes: None, activated_at: None, ..common(members) },
            first_name: text(members, "firstName", 0, MAX_NAME),
            last_name: text(members, "lastName", 0, MAX_NAME),
            email: None,
            gender: text(members, "gender", 0, MAX_NAME),
            locale: text(members, "locale", 0, MAX_NAME),
            timezone: text(members, "timezone", 0, MAX_NAME),
            photo: text(members, "photo", 0, MAX_URL),
            birthday: birthday(members),
        }
    }

    /// Reads the body of `PUT /users/:id`.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse_change(body: &Value) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let details = Self::read(&mut members);
        members.finish(Some(details))
    }
}

fn birthday(members: &mut Members<'_>) -> Option<Map<String, Value>> {
    let given = members.typed("birthday", "an object", Value::as_object)?;
    match limits::check_custom_fields(given) {
        Ok(()) => Some(given.clone()),
        Err(fault) => {
            members.fault(format!("birthday {fault}."));
            None
        }
    }
}

/// E-mail and password of a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The address.
    pub email: Email,
    /// The password.
    pub password: Password,
}

impl Credentials {
    fn read(members: &mut Members<'_>, form: Form) -> Option<Self> {
        for member in ["email", "password"] {
            if members.raw(member).is_none() {
                members.fault(format!("{member} is required."));
            }
        }
        let email = members.text("email");
        let email = email.and_then(|text| {
            Email::parse(text).map_err(|fault| members.fault(format!("email {fault}."))).ok()
        });
        let password = password(members, "password", form);
        Some(Self { email: email?, password: password? })
    }

    /// Reads the body of a login.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let credentials = Self::read(&mut members, Password::parse);
        members.finish(credentials)
    }
}

/// Reads a password.
type Form = fn(&str) -> Result<Password, String>;

fn password(members: &mut Members<'_>, member: &str, form: Form) -> Option<Password> {
    let text = members.text(member)?;
    form(text).map_err(|fault| members.fault(format!("{member} {fault}."))).ok()
}

/// A user who registers.
#[derive(Debug, Clone, PartialEq)]
pub struct NewUser {
    /// The credentials that the user will log in with.
    pub credentials: Credentials,
    /// Everything else.
    pub details: UserDetails,
}

impl NewUser {
    /// Reads the body of a registration.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value, registration: UserRegistration) -> Result<Self, Vec<String>> {
        let form = match registration {
            UserRegistration::Mail => Password::parse_new,
            UserRegistration::Caller => Password::parse,
        };
        let mut members = Members::of(body)?;
        let details = UserDetails::read(&mut members);
        let credentials = Credentials::read(&mut members, form);
        members.finish(credentials.map(|credentials| Self { credentials, details }))
    }
}

/// A user of an application.
#[derive(Debug, Clone, PartialEq)]
pub struct AppUser {
    /// Its id.
    pub id: UserId,
    /// The project it belongs to.
    pub project: ProjectId,
    /// The application that created it.
    pub app: ApplicationId,
    /// How far it has come.
    pub status: UserStatus,
    /// Order and times.
    pub stamp: Stamp,
    /// Everything else.
    pub details: UserDetails,
}

impl AppUser {
    /// Who may see the user beside operators: keys of its project, and itself.
    #[must_use]
    pub fn scopes(&self) -> Scopes {
        Scopes { users: vec![self.id.to_string()], projects: vec![self.project.to_string()] }
    }

    /// Names the state that it is in. Nothing of the person is in it, whom not everybody sees who gets the tag.
    #[must_use]
    pub fn tag(&self) -> EntityTag {
        EntityTag::of_members(&(self.status, self.stamp.updated_at))
    }

    /// The user after a change at `now`.
    #[must_use]
    pub fn apply(self, change: UserDetails, now: UnixMillis) -> Self {
        let old = self.details;
        let details = UserDetails {
            common: old.common.merge(change.common),
            first_name: change.first_name.or(old.first_name),
            last_name: change.last_name.or(old.last_name),
            email: old.email,
            gender: change.gender.or(old.gender),
            locale: change.locale.or(old.locale),
            timezone: change.timezone.or(old.timezone),
            photo: change.photo.or(old.photo),
            birthday: change.birthday.or(old.birthday),
        };
        let mut stamp = self.stamp.touch(now);
        // The tag knows no more than the time: two changes in one millisecond must have two.
        stamp.updated_at = stamp.updated_at.max(UnixMillis(self.stamp.updated_at.0.saturating_add(1)));
        Self { stamp, details, ..self }
    }
}

#[cfg(test)]
mod tests {
    use kernel::domain::body::assert_faults;
    use serde_json::json;

    use super::*;

    #[test]
    fn each_fault_of_a_registration_is_named() {
        for (body, faults) in [
            (json!({"email": "a@b", "password": "password"}), vec![]),
            (
                json!({"email": "a@b", "password": "password", "firstName": "A", "birthday": {"day": 1}}),
                vec![],
            ),
            (json!({}), vec!["email is required", "password is required"]),
            (
                json!({"email": "x", "password": "short"}),
                vec!["email must be", "password must have 8 to 256"],
            ),
            (json!({"email": 1, "password": 2}), vec!["email must be a string", "password must be a string"]),
            (
                json!({"email": "a@b", "password": "p".repeat(257), "firstName": 1}),
                vec!["firstName", "password must have 8 to 256 characters, not 257"],
            ),
        ] {
            assert_faults(&body, |body| NewUser::parse(body, UserRegistration::Caller), &faults);
        }
    }

    #[test]
    fn an_update_changes_neither_address_nor_scopes() {
        let change = UserDetails::parse_change(&json!({
            "email": "other@b", "firstName": "B", "scopes": {"users": ["all"], "projects": []}
        }))
        .unwrap();
        let user = AppUser {
            id: UserId::new(1, [1; 16]),
            project: ProjectId::new(1, [2; 16]),
            app: ApplicationId::new(1, [3; 16]),
            status: UserStatus::Active,
            stamp: Stamp { seq: 1, created_at: UnixMillis(5), updated_at: UnixMillis(5) },
            details: UserDetails { email: Some("a@b".to_owned()), ..UserDetails::default() },
        };
        let changed = user.apply(change, UnixMillis(9));
        assert_eq!(changed.details.email.as_deref(), Some("a@b"));
        assert_eq!(changed.details.first_name.as_deref(), Some("B"));
        assert_eq!(changed.details.common.scopes, None);
        // Another change in the same millisecond is another state.
        let again = changed.clone().apply(UserDetails::default(), UnixMillis(9));
        assert_ne!(again.tag(), changed.tag());
    }
}
