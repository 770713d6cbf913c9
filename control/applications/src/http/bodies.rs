//! Request bodies of projects, applications and users.

use serde_json::{Value, json};
use tenants::http::bodies::{new_password, password};
use web::bodies::{Body, CHANGES, body, boolean, email, id_of, millis, names, open_object, text};

use crate::domain::{
    action_names::TriggerType,
    application::MAX_HOST,
    limits::{MAX_LIST, MAX_NAME, MAX_URL},
};

pub(super) fn changed_user() -> Value {
    user(Body::new(CHANGES)).done()
}

pub(super) fn registration() -> Value {
    user(credentials("The user; nothing is read of it with `anonymous=true`", new_password())).done()
}

pub(super) fn login() -> Value {
    credentials("Who logs in", password()).done()
}

pub(super) fn address() -> Value {
    Body::new("Whose password shall be reset").must("email", email()).like("email", "ada@example.com").done()
}

pub(super) fn reset() -> Value {
    Body::new("The code from the mail, and the new password")
        .must("code", text(1, 128))
        .must("password", new_password())
        .like("code", "3fa0c9e2")
        .like("password", "a long sentence is best")
        .done()
}

pub(super) fn activation() -> Value {
    Body::new("The code from the registration")
        .must("activationCode", text(1, 128))
        .may("password", new_password())
        .like("activationCode", "3fa0c9e2")
        .like("password", "a long sentence is best")
        .done()
}

/// Hosts of redirections, with their ports.
const HOST: &str = r"^[a-z](-?[a-z0-9]){0,30}(\.[a-z](-?[a-z0-9]){0,30}){0,3}(:[1-9][0-9]{0,3})?$";

/// Types of actions that users may create.
const USER_ACTION_TYPE: &str = r"^(scans|checkins|shares|invalidScans|_[A-Za-z0-9_.-]{1,127})$";

pub(super) fn project(is_create: bool) -> Value {
    body("A project", is_create)
        .named(is_create, "Summer campaign")
        .common()
        .may("startsAt", millis())
        .may("endsAt", millis())
        .done()
}

pub(super) fn application(is_create: bool) -> Value {
    let list = |items: Value| json!({"type": "array", "maxItems": MAX_LIST, "items": items});
    let triggers: Vec<&str> = TriggerType::ALL.iter().map(|kind| kind.as_str()).collect();
    body("An application", is_create)
        .named(is_create, "Shop")
        .common()
        .may("socialNetworks", open_object("Settings of social networks, kept as they are."))
        .may("defaultUrl", text(0, MAX_URL))
        .may("redirectionTemplate", text(0, MAX_URL))
        .may("usersMayCreate", boolean())
        .may("redirectHosts", list(json!({"type": "string", "maxLength": MAX_HOST, "pattern": HOST})))
        .may("userActionTypes", list(json!({"type": "string", "pattern": USER_ACTION_TYPE})))
        .may("triggerTypes", list(json!({"type": "string", "enum": triggers})))
        .may("reportsContext", boolean())
        .may("userPage", json!({"type": "string", "format": "user-page", "maxLength": MAX_URL,
            "description": "An https URL without user and fragment; empty is none."}))
        .may("userRole", json!({"anyOf": [{"type": "string", "maxLength": 0}, id_of("user-role-id", "Id of a role of the type `userInApp`.")]}))
        .like("socialNetworks", json!({}))
        .done()
}

fn user(body: Body) -> Body {
    names(body.described())
        .may("gender", text(0, MAX_NAME))
        .may("locale", text(0, MAX_NAME))
        .may("timezone", text(0, MAX_NAME))
        .may("photo", text(0, MAX_URL))
        .may("birthday", open_object("`day`, `month` and `year`, as far as they are known."))
        .like("firstName", "Ada")
}

fn credentials(text: &'static str, password: Value) -> Body {
    Body::new(text)
        .must("email", email())
        .must("password", password)
        .like("email", "ada@example.com")
        .like("password", "a long sentence is best")
}
