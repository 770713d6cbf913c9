//! Request bodies of sign-in.

use serde_json::{Value, json};
use tenants::http::bodies::{new_password, password};
use web::bodies::{AN_ID, Body, ID, email, text};

use crate::domain::{limits::MAX_NAME, password_body::MAX_CODE};

pub(super) fn acceptance() -> Value {
    Body::new("The code of an invitation")
        .may("firstName", text(0, MAX_NAME))
        .may("lastName", text(0, MAX_NAME))
        .may("password", new_password())
        .must("code", text(1, MAX_NAME))
        .like("code", "3fa0c9e2")
        .like("firstName", "Ada")
        .done()
}

pub(super) fn sign_in() -> Value {
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

pub(super) fn link() -> Value {
    Body::new("The code of the link").must("code", code()).like("code", "3fa0c9e2").done()
}

pub(super) fn address() -> Value {
    Body::new("Whose password shall be reset")
        .must("email", email())
        .may("account", account())
        .like("email", "ada@example.com")
        .like("account", AN_ID)
        .done()
}

pub(super) fn reset() -> Value {
    Body::new("The code from the mail, and the new password")
        .must("code", code())
        .must("password", new_password())
        .like("code", "3fa0c9e2")
        .like("password", "a long sentence is best")
        .done()
}

pub(super) fn only_password() -> Value {
    Body::new("The password").must("password", password()).like("password", "a long sentence is best").done()
}

pub(super) fn confirmation() -> Value {
    Body::new("A code of the authenticator").must("code", code()).like("code", "123456").done()
}

pub(super) fn both_factors() -> Value {
    Body::new("The password, and `code` or `recoveryCode`")
        .must("password", password())
        .may("code", code())
        .may("recoveryCode", code())
        .like("password", "a long sentence is best")
        .like("code", "123456")
        .done()
}

fn account() -> Value {
    json!({"type": "string", "pattern": ID})
}

fn code() -> Value {
    text(1, MAX_CODE)
}
