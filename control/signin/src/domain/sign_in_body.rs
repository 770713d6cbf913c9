//! Bodies of sign-in: addresses, passwords and codes.

use serde_json::Value;
use shared::id::AccountId;

use super::{
    body::text,
    email::Email,
    members::Members,
    operator::{OperatorChange, parse_acceptance},
    password::Password,
    password_body::{MAX_CODE, code, new_password, password, required},
};

/// Proof beside the password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecondFactor {
    /// A code of the authenticator.
    Code(String),
    /// A recovery code, which works once.
    RecoveryCode(String),
}

/// Who signs in, and with what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignIn {
    /// The address.
    pub email: Email,
    /// The password.
    pub password: Password,
    /// The account; needed only if operators of several accounts have the address.
    pub account: Option<AccountId>,
    /// The second factor, if there is one.
    pub second: Option<SecondFactor>,
}

impl SignIn {
    /// Reads the body of a sign-in.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let email = email(&mut members);
        let password = password(&mut members, "password");
        let account = account(&mut members);
        let second = second(&mut members);
        members.finish(email.zip(password).map(|(email, password)| Self { email, password, account, second }))
    }
}

/// Whose password shall be reset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResetRequest {
    /// The address.
    pub email: Email,
    /// The account; without it, every account in which the address signs in.
    pub account: Option<AccountId>,
}

impl ResetRequest {
    /// Reads the body of a request for a reset.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let email = email(&mut members);
        let account = account(&mut members);
        members.finish(email.map(|email| Self { email, account }))
    }
}

/// The password again, before something that weakens or changes the protection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirmation {
    /// The password.
    pub password: Password,
    /// The second factor, if there is one.
    pub second: Option<SecondFactor>,
}

impl Confirmation {
    /// Reads a body with the password alone.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn of_password(body: &Value) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let password = password(&mut members, "password");
        members.finish(password.map(|password| Self { password, second: None }))
    }

    /// Reads a body with the password and a code.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn of_both(body: &Value) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let password = password(&mut members, "password");
        let second = second(&mut members);
        if members.raw("code").is_none() && members.raw("recoveryCode").is_none() {
            members.fault("code or recoveryCode is required.");
        }
        members.finish(password.map(|password| Self { password, second }))
    }
}

/// Reads a body with a code of the authenticator.
///
/// # Errors
/// The code is missing or no text.
pub fn parse_code(body: &Value) -> Result<String, Vec<String>> {
    let mut members = Members::of(body)?;
    let code = code(&mut members, "code");
    members.finish(code)
}

/// An invitation that is accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct Acceptance {
    /// The code of the invitation.
    pub code: String,
    /// The names of the operator.
    pub change: OperatorChange,
    /// The password, if the operator wants to sign in.
    pub password: Option<Password>,
}

impl Acceptance {
    /// Reads the body of `POST /invitations`.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let password = new_password(&mut members, "password");
        let read = parse_acceptance(body).map_err(|faults| {
            faults.into_iter().for_each(|fault| members.fault(fault));
        });
        members.finish(read.ok().map(|(code, change)| Self { code, change, password }))
    }
}

fn email(members: &mut Members<'_>) -> Option<Email> {
    required(members, "email")?;
    let text = members.text("email")?;
    Email::parse(text).map_err(|fault| members.fault(format!("email {fault}."))).ok()
}

fn account(members: &mut Members<'_>) -> Option<AccountId> {
    members.typed("account", "the id of an account", |value| value.as_str()?.parse().ok())
}

fn second(members: &mut Members<'_>) -> Option<SecondFactor> {
    let code = text(members, "code", 1, MAX_CODE);
    let recovery = text(members, "recoveryCode", 1, MAX_CODE);
    match (code, recovery) {
        (Some(_), Some(_)) => {
            members.fault("code and recoveryCode: give one of them.");
            None
        }
        (Some(code), None) => Some(SecondFactor::Code(code)),
        (None, recovery) => recovery.map(SecondFactor::RecoveryCode),
    }
}

#[cfg(test)]
mod tests {
    use kernel::domain::body::assert_faults;
    use serde_json::json;

    use super::*;

    #[test]
    fn each_fault_of_a_body_is_named() {
        let long = "p".repeat(12);
        let full = json!({"email": "a@b", "password": long, "account": "UKXAGyEf8SQ5eTDmVgGpHqAa", "code": "123456"});
        let read = SignIn::parse(&full).unwrap();
        assert_eq!(read.second, Some(SecondFactor::Code("123456".to_owned())));
        assert_faults(&json!({}), SignIn::parse, &["email is required", "password is required"]);
        assert_faults(
            &json!({"email": "x", "password": "short", "account": "x", "code": 1}),
            SignIn::parse,
            &["email must", "password must have 8", "account must be the id", "code must"],
        );
        let both = json!({"email": "a@b", "password": long, "code": "1", "recoveryCode": "1"});
        assert_faults(&both, SignIn::parse, &["give one of them"]);
        assert_faults(&json!({"account": 1}), ResetRequest::parse, &["email is required", "account must"]);
        assert_faults(&json!({}), Confirmation::of_both, &["password is required", "code or recoveryCode"]);
        assert_faults(&json!({}), Confirmation::of_password, &["password is required"]);
        assert_faults(&json!({}), parse_code, &["code is required"]);
        assert_faults(
            &json!({"password": "short", "firstName": 1}),
            Acceptance::parse,
            &["password must have 12", "code is required", "firstName must"],
        );
        assert_eq!(Acceptance::parse(&json!({"code": "x"})).unwrap().password, None);
    }
}
