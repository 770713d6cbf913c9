//! Bodies with codes and passwords of users.

use serde_json::Value;

use super::{
    email::Email,
    members::Members,
    password::Password,
    password_body::{code, new_password, required},
};

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
        let password = new_password(&mut members, "password");
        members.finish(code.map(|code| Self { code, password }))
    }
}

/// Reads the body of a request for a password reset: the address.
///
/// # Errors
/// The address is missing or none.
pub fn parse_reset_request(body: &Value) -> Result<Email, Vec<String>> {
    let mut members = Members::of(body)?;
    let email = required(&mut members, "email").and_then(|()| members.text("email"));
    let email = email
        .and_then(|text| Email::parse(text).map_err(|fault| members.fault(format!("email {fault}."))).ok());
    members.finish(email)
}

#[cfg(test)]
mod tests {
    use kernel::domain::body::assert_faults;
    use serde_json::json;

    use super::*;

    #[test]
    fn each_fault_of_a_body_is_named() {
        let activation = Activation::parse(&json!({"activationCode": "x", "password": null}));
        assert_eq!(activation, Ok(Activation { code: "x".to_owned(), password: None }));
        assert_faults(&json!({}), Activation::parse, &["activationCode is required"]);
        assert_faults(
            &json!({"activationCode": 1, "password": "short"}),
            Activation::parse,
            &["activationCode must be", "password must have 12"],
        );
        assert_faults(&json!({"email": "a@b"}), parse_reset_request, &[]);
        assert_faults(&json!({}), parse_reset_request, &["email is required"]);
        assert_faults(&json!({"email": "x"}), parse_reset_request, &["email must be"]);
    }
}
