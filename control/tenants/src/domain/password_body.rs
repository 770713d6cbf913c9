//! Bodies with codes and passwords, of operators and of users of applications.

use serde_json::Value;

use super::{body::text, members::Members, password::Password};

/// Longest code that is compared.
pub const MAX_CODE: usize = 128;

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
        let password = required_new_password(&mut members, "password");
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
        let old = password(&mut members, "password");
        let new = required_new_password(&mut members, "newPassword");
        members.finish(old.zip(new).map(|(old, new)| Self { old, new }))
    }
}

/// Notes a fault where a member is missing; `None` then.
pub fn required(members: &mut Members<'_>, member: &str) -> Option<()> {
    if members.raw(member).is_none() {
        members.fault(format!("{member} is required."));
        return None;
    }
    Some(())
}

/// A code, which must be there.
pub fn code(members: &mut Members<'_>, member: &'static str) -> Option<String> {
    required(members, member)?;
    text(members, member, 1, MAX_CODE)
}

/// A password that is compared, which must be there.
pub fn password(members: &mut Members<'_>, member: &str) -> Option<Password> {
    required(members, member)?;
    let text = members.text(member)?;
    Password::parse(text).map_err(|fault| members.fault(format!("{member} {fault}."))).ok()
}

/// A new password, which may be missing.
pub fn new_password(members: &mut Members<'_>, member: &str) -> Option<Password> {
    let text = members.text(member)?;
    Password::parse_new(text).map_err(|fault| members.fault(format!("{member} {fault}."))).ok()
}

fn required_new_password(members: &mut Members<'_>, member: &str) -> Option<Password> {
    required(members, member)?;
    new_password(members, member)
}

#[cfg(test)]
mod tests {
    use kernel::domain::body::assert_faults;
    use serde_json::json;

    use super::*;

    #[test]
    fn each_fault_of_a_body_is_named() {
        assert_faults(&json!({"code": "x", "password": "p".repeat(12)}), Reset::parse, &[]);
        assert_faults(&json!({}), Reset::parse, &["code is required", "password is required"]);
        assert_faults(
            &json!({"code": 1, "password": "short"}),
            Reset::parse,
            &["code must", "password must have 12"],
        );
        assert_faults(
            &json!({"password": "p".repeat(8), "newPassword": "p".repeat(12)}),
            PasswordChange::parse,
            &[],
        );
        assert_faults(
            &json!({}),
            PasswordChange::parse,
            &["password is required", "newPassword is required"],
        );
        assert_faults(
            &json!({"password": 1, "newPassword": "short"}),
            PasswordChange::parse,
            &["password must be", "newPassword must have 12"],
        );
    }
}
