//! Request bodies of sign-in.

use serde_json::{Value, json};
use web::bodies::{AN_ID, Body, ID, text};

use crate::domain::{
    limits::MAX_NAME,
    password::{MAX_PASSWORD, MIN_NEW_PASSWORD, MIN_PASSWORD},
    sign_in_body::MAX_CODE,
};

/// The body of an operation, if it is one of these.
#[must_use]
pub fn of(operation: &str) -> Option<Value> {
    Some(match operation {
        "acceptInvitation" => Body::new("The code of an invitation")
            .may("firstName", text(0, MAX_NAME))
            .may("lastName", text(0, MAX_NAME))
            .may("password", new_password())
            .must("code", text(1, MAX_NAME))
            .like("code", "3fa0c9e2")
            .like("firstName", "Ada")
            .done(),
        "setMyPassword" => Body::new("The password until now, and the new one")
            .must("password", password())
            .must("newPassword", new_password())
            .like("password", "a long sentence is best")
            .like("newPassword", "a longer sentence is better")
            .done(),
        "signIn" => {
            Body::new("Who signs in, and with what; `code` or `recoveryCode` if a second factor is on")
                .must("email", email())
                .must("password", password())
                .may("account", account())
                .may("code", code())
                .may("recoveryCode", code())
                .like("email", "ada@example.com")
                .like("password", "a long sentence is best")
                .done()
        }
        "signInByLink" => {
            Body::new("The code of the link").must("code", code()).like("code", "3fa0c9e2").done()
        }
        "requestOperatorPasswordReset" => Body::new("Whose password shall be reset")
            .must("email", email())
            .may("account", account())
            .like("email", "ada@example.com")
            .like("account", AN_ID)
            .done(),
        "resetOperatorPassword" => Body::new("The code from the mail, and the new password")
            .must("code", code())
            .must("password", new_password())
            .like("code", "3fa0c9e2")
            .like("password", "a long sentence is best")
            .done(),
        "beginSecondFactor" => Body::new("The password")
            .must("password", password())
            .like("password", "a long sentence is best")
            .done(),
        "confirmSecondFactor" => {
            Body::new("A code of the authenticator").must("code", code()).like("code", "123456").done()
        }
        "disableSecondFactor" | "renewRecoveryCodes" => {
            Body::new("The password, and `code` or `recoveryCode`")
                .must("password", password())
                .may("code", code())
                .may("recoveryCode", code())
                .like("password", "a long sentence is best")
                .like("code", "123456")
                .done()
        }
        _ => return None,
    })
}

fn email() -> Value {
    json!({"type": "string", "format": "email", "maxLength": 254})
}

fn password() -> Value {
    json!({"type": "string", "minLength": MIN_PASSWORD, "maxLength": MAX_PASSWORD})
}

fn new_password() -> Value {
    json!({"type": "string", "minLength": MIN_NEW_PASSWORD, "maxLength": MAX_PASSWORD})
}

fn account() -> Value {
    json!({"type": "string", "pattern": ID})
}

fn code() -> Value {
    text(1, MAX_CODE)
}
