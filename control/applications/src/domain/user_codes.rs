//! Bodies with codes and passwords of users.

use serde_json::Value;

use super::{body::text, email::Email, members::Members, password::Password};

/// Longest code that is compared.
const MAX_CODE: usize = 128;

/// How long a code activates a user: 7 days.
pub const ACTIVATION_MS: i64 = 7 * 24 * 3_600_000;
/// How long a code resets a password: an hour.
pub const RESET_MS: i64 = 3_600_000;

/// An activation by the code of a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activation {
    /// The code.
    pub code: String,
    /// A password in place of that of the registration, which somebody else may have chosen.
    pub password: Option<Password>,
}

impl Activation {
    /// Reads the body of a validation.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let code = code(&mut members, "activationCode");
        let password = password(&mut members, "password");
        members.finish(code.map(|code| Self { code, password }))
    }
}

/// Reads the body of a request for a password reset: the address.
///
/// # Errors
/// The address is missing or none.
pub fn parse_reset_request(body: &Value) -> Result<Email, Vec<String>> {
    let mut members = Members::of(body)?;
    require(&mut members, "email");
    let email = members.text("email");
    let email = email
        .and_then(|text| Email::parse(text).map_err(|fault| members.fault(format!("email {fault}."))).ok());
    members.finish(email)
}

/// A password by the code of a mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reset {
    /// The code.
    pub code: String,
    /// The new password.
    pub password: Password,
}

impl Reset {
    /// Reads the body of a reset.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let code = code(&mut members, "code");
        let password = new_password(&mut members, "password");
        members.finish(code.zip(password).map(|(code, password)| Self { code, password }))
    }
}

/// A change of the own password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PasswordChange {
    /// The password until now.
    pub old: Password,
    /// The new one.
    pub new: Password,
}

impl PasswordChange {
    /// Reads the body of a change.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        require(&mut members, "password");
        let old = members.text("password");
        let old = old.and_then(|text| {
            Password::parse(text).map_err(|fault| members.fault(format!("password {fault}."))).ok()
        });
        let new = new_password(&mut members, "newPassword");
        members.finish(old.zip(new).map(|(old, new)| Self { old, new }))
    }
}

fn require(members: &mut Members<'_>, member: &str) {
    if members.raw(member).is_none() {
        members.fault(format!("{member} is required."));
    }
}

fn code(members: &mut Members<'_>, member: &'static str) -> Option<String> {
    require(members, member);
    text(members, member, 1, MAX_CODE)
}

fn new_password(members: &mut Members<'_>, member: &str) -> Option<Password> {
    require(members, member);
    password(members, member)
}

fn password(members: &mut Members<'_>, member: &str) -> Option<Password> {
    let text = members.text(member)?;
    Password::parse_new(text).map_err(|fault| members.fault(format!("{member} {fault}."))).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_fault_of_a_body_is_named() {
        let check = |found: Option<Vec<String>>, faults: &[&str]| {
            let found = found.unwrap_or_default();
            assert_eq!(found.len(), faults.len(), "{found:?}");
            assert!(found.iter().zip(faults).all(|(fault, part)| fault.contains(part)), "{found:?}");
        };
        let activation = Activation::parse(&json!({"activationCode": "x", "password": null}));
        assert_eq!(activation, Ok(Activation { code: "x".to_owned(), password: None }));
        check(Activation::parse(&json!({})).err(), &["activationCode is required"]);
        check(
            Activation::parse(&json!({"activationCode": 1, "password": "short"})).err(),
            &["activationCode must be", "password must have 12"],
        );
        check(parse_reset_request(&json!({"email": "a@b"})).err(), &[]);
        check(parse_reset_request(&json!({})).err(), &["email is required"]);
        check(parse_reset_request(&json!({"email": "x"})).err(), &["email must be"]);
        check(Reset::parse(&json!({"code": "x", "password": "p".repeat(12)})).err(), &[]);
        check(Reset::parse(&json!({})).err(), &["code is required", "password is required"]);
        check(
            Reset::parse(&json!({"code": 1, "password": "short"})).err(),
            &["code must", "password must have 12"],
        );
        check(
            PasswordChange::parse(&json!({"password": "p".repeat(8), "newPassword": "p".repeat(12)})).err(),
            &[],
        );
        check(PasswordChange::parse(&json!({})).err(), &["password is required", "newPassword is required"]);
        check(
            PasswordChange::parse(&json!({"password": 1, "newPassword": "short"})).err(),
            &["password must be", "newPassword must have 12"],
        );
    }
}
