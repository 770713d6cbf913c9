//! Request bodies of accounts, projects, applications, users and keys.

use serde_json::{Value, json};
use web::bodies::{AN_ID, Body, CHANGES, body, boolean, id_of, millis, open_object, text, texts};

use crate::{
    domain::{
        action_names::TriggerType,
        limits::{MAX_KEY, MAX_LIST, MAX_NAME, MAX_URL},
        operator_key::MAX_NETWORK,
        project::MAX_HOST,
    },
    service::access::MAX_OVERLAP_MS,
};

/// The body of an operation, if it is one of these.
#[must_use]
pub fn of(operation: &str) -> Option<Value> {
    Some(match operation {
        "createProject" => project(true),
        "updateProject" | "update-projects" => project(false),
        "createApplication" => application(true),
        "updateApplication" | "update-applications" => application(false),
        "updateAccount" => account(),
        "updateOperator" => operator(),
        "updateUser" => user(Body::new(CHANGES)).done(),
        "createUser" => user(credentials("The user; nothing is read of it with `anonymous=true`")).done(),
        "loginUser" | "loginUserByOldName" => credentials("Who logs in").done(),
        "validateUser" => Body::new("The code from the registration")
            .must("activationCode", text(1, 128))
            .like("activationCode", "3fa0c9e2")
            .done(),
        "updateAccesses" | "updateOperatorAccesses" => {
            Body::new(CHANGES).may("role", text(1, MAX_NAME)).like("role", "operator").done()
        }
        "createKey" => key(true),
        "updateKey" => key(false),
        "rotateKey" | "rotateSecretKey" | "rotateAppApiKey" | "rotateThngKey" => overlap(),
        _ => return None,
    })
}

/// Hosts of redirections, with their ports.
const HOST: &str = r"^[a-z](-?[a-z0-9]){0,30}(\.[a-z](-?[a-z0-9]){0,30}){0,3}(:[1-9][0-9]{0,3})?$";

/// Types of actions that users may create.
const USER_ACTION_TYPE: &str = r"^(scans|checkins|shares|invalidScans|_[A-Za-z0-9_.-]{1,127})$";

fn project(is_create: bool) -> Value {
    body("A project", is_create)
        .named(is_create, "Summer campaign")
        .common()
        .may("startsAt", millis())
        .may("endsAt", millis())
        .done()
}

fn application(is_create: bool) -> Value {
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
        .like("socialNetworks", json!({}))
        .done()
}

fn account() -> Value {
    Body::new(CHANGES)
        .named(false, "Acme")
        .may("userRights", json!({"type": "string", "enum": ["own", "open"]}))
        .may("thngWritableCustomFields", texts(MAX_KEY))
        .may("customFields", open_object("The caller's own members."))
        .like("customFields", json!({"env": "test"}))
        .done()
}

fn operator() -> Value {
    Body::new(CHANGES)
        .may("firstName", text(0, MAX_NAME))
        .may("lastName", text(0, MAX_NAME))
        .may("customFields", open_object("The caller's own members."))
        .like("firstName", "Ada")
        .done()
}

fn user(body: Body) -> Body {
    body.described()
        .may("firstName", text(0, MAX_NAME))
        .may("lastName", text(0, MAX_NAME))
        .may("gender", text(0, MAX_NAME))
        .may("locale", text(0, MAX_NAME))
        .may("timezone", text(0, MAX_NAME))
        .may("photo", text(0, MAX_URL))
        .may("birthday", open_object("`day`, `month` and `year`, as far as they are known."))
        .like("firstName", "Ada")
}

fn credentials(text: &'static str) -> Body {
    Body::new(text)
        .must("email", json!({"type": "string", "format": "email", "maxLength": 254}))
        .must("password", json!({"type": "string", "minLength": 8, "maxLength": 256}))
        .like("email", "ada@example.com")
        .like("password", "a long sentence is best")
}

fn key(is_create: bool) -> Value {
    let network = json!({"type": "string", "format": "network", "maxLength": MAX_NETWORK,
        "description": "An address, or a network such as `192.0.2.0/24`."});
    let expires = json!({"type": "integer", "format": "int64", "minimum": 0, "maximum": i64::MAX,
        "description": "In milliseconds since 1970, in the future; 0 means never."});
    let key = body("A key of an operator", is_create);
    let key = if is_create {
        key.must("label", text(1, MAX_NAME))
            .may("project", id_of("project-id", "Id of the project that the key is confined to."))
            .like("project", AN_ID)
    } else {
        key.may("label", text(1, MAX_NAME))
    };
    key.may("expiresAt", expires)
        .may("networks", json!({"type": "array", "maxItems": MAX_LIST, "items": network}))
        .like("label", "Printing line 3")
        .like("expiresAt", 4_102_444_800_000_i64)
        .like("networks", json!(["192.0.2.0/24"]))
        .done()
}

/// Without the member the old key ends at once.
fn overlap() -> Value {
    let ms = json!({"type": "integer", "minimum": 0, "maximum": MAX_OVERLAP_MS,
        "description": "Milliseconds that the old key works on; 0 if left out."});
    Body::new("How long the old key works on").may("overlap", ms).like("overlap", 86_400_000).done()
}
