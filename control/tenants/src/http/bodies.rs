//! Request bodies of accounts, operators, roles and keys.

use serde_json::{Value, json};
use web::bodies::{AN_ID, Body, CHANGES, body, boolean, email, id_of, names, open_object, text, texts};

use crate::{
    domain::{
        limits::{MAX_KEY, MAX_LIST, MAX_NAME},
        operator_key::MAX_NETWORK,
        password::{MAX_PASSWORD, MIN_NEW_PASSWORD, MIN_PASSWORD},
        role::BUILT_IN,
    },
    service::access::MAX_OVERLAP_MS,
};

/// The password until now, and the new one, of an operator or a user of applications.
#[must_use]
pub fn new_passwords() -> Value {
    Body::new("The password until now, and the new one")
        .must("password", password())
        .must("newPassword", new_password())
        .like("password", "a long sentence is best")
        .like("newPassword", "a longer sentence is better")
        .done()
}

/// A password that is compared.
#[must_use]
pub fn password() -> Value {
    json!({"type": "string", "minLength": MIN_PASSWORD, "maxLength": MAX_PASSWORD})
}

/// A password that is set.
#[must_use]
pub fn new_password() -> Value {
    json!({"type": "string", "minLength": MIN_NEW_PASSWORD, "maxLength": MAX_PASSWORD})
}

pub(super) fn changed_access() -> Value {
    let body = access(names(Body::new(CHANGES))).named(false, "printing line 3");
    with_roles(body.like("role", "editor"), false)
}

pub(super) fn invitation() -> Value {
    let body = access(names(Body::new("Who is invited, and what it may do"))).must("email", email());
    with_roles(body.like("email", "ada@example.com").like("role", "editor"), true)
}

pub(super) fn token() -> Value {
    let body = access(Body::new("A program, and what it may do")).named(true, "printing line 3");
    with_roles(body.like("role", "printer"), true)
}

pub(super) fn permission() -> Value {
    Body::new("Whether the role gives the group").must("enabled", boolean()).like("enabled", true).done()
}

pub(super) fn account() -> Value {
    Body::new(CHANGES)
        .named(false, "Acme")
        .may("userRights", json!({"type": "string", "enum": ["own", "open"]}))
        .may("userRegistration", json!({"type": "string", "enum": ["mail", "caller"]}))
        .may("providerSignIn", boolean())
        .may("secondFactorRequired", boolean())
        .may("approveBulkChanges", boolean())
        .may("thngWritableCustomFields", texts(MAX_KEY))
        .may("scanRetentionDays", days())
        .may("personalData", json!({"type": "string", "enum": ["full", "truncated", "none"]}))
        .may("personalDataDays", days())
        .may("customFields", open_object("The caller's own members."))
        .like("customFields", json!({"env": "test"}))
        .done()
}

fn days() -> Value {
    json!({"type": "integer", "minimum": 1, "maximum": 3650})
}

pub(super) fn operator() -> Value {
    names(Body::new(CHANGES))
        .may("customFields", open_object("The caller's own members."))
        .like("firstName", "Ada")
        .done()
}

/// `role` or `policies`; an update may have neither. Both are taken where `role` is the first of `policies`, as in an
/// access that was read: a schema cannot say that.
fn with_roles(body: Body, is_create: bool) -> Value {
    let policies = json!({"type": "array", "minItems": 1, "maxItems": 20, "items": role_id()});
    let mut body = body.may("role", role_id()).may("policies", policies).done();
    let none = json!({"type": "null"});
    let only =
        |one: &str, other: &str| json!({"required": [one], "properties": {one: {"not": none}, other: none}});
    let mut choices = vec![only("role", "policies"), only("policies", "role")];
    if !is_create {
        choices.push(json!({"properties": {"role": none, "policies": none}}));
    }
    body["content"]["application/json"]["schema"]["oneOf"] = choices.into();
    body
}

/// Own members and conditions of an operator.
fn access(body: Body) -> Body {
    let condition = json!({"type": "string", "format": "project-condition", "maxLength": MAX_NAME,
        "description": "A project that it is confined to, as `project=<id>`."});
    body.described().may("conditions", json!({"type": "array", "maxItems": 20, "items": condition}))
}

fn role_id() -> Value {
    let names: Vec<&str> = BUILT_IN.iter().map(|role| role.name).collect();
    json!({"anyOf": [{"type": "string", "enum": names}, id_of("role-id", "Id of a role that the account made.")]})
}

/// A name that no role of every account has.
fn role_name() -> Value {
    json!({"type": "string", "minLength": 1, "maxLength": MAX_NAME, "format": "role-name"})
}

pub(super) fn role(is_create: bool) -> Value {
    let body = body("A role", is_create).described();
    let body = if is_create {
        body.must("name", role_name())
            .may("type", json!({"type": "string", "enum": ["operator", "userInApp"]}))
    } else {
        body.may("name", role_name())
    };
    body.may("version", json!({"type": "integer", "minimum": 0, "maximum": u32::MAX}))
        .like("name", "Press operators")
        .done()
}

pub(super) fn policy(is_create: bool) -> Value {
    let permission = json!({"type": "string", "format": "permission", "maxLength": MAX_NAME,
        "description": "A subject with verbs, such as `products:create,read`."});
    let permissions = json!({"type": "array", "maxItems": MAX_LIST, "items": permission});
    let body = body("An access policy", is_create).described();
    let body = if is_create {
        body.must("name", role_name()).must("permissions", permissions)
    } else {
        body.may("name", role_name()).may("permissions", permissions)
    };
    body.may("uiPermissions", texts(MAX_NAME))
        .may("homepage", text(0, MAX_NAME))
        .like("name", "Press operators")
        .like("permissions", json!(["redirections:read,list", "encodings:create"]))
        .done()
}

/// What users may do, path by path.
pub(super) fn paths() -> Value {
    let item = Body::new("")
        .must("path", json!({"type": "string", "format": "role-path"}))
        .must("access", json!({"type": "string", "pattern": "^[crud]*$", "maxLength": MAX_NAME}))
        .schema();
    let schema = json!({"type": "array", "maxItems": MAX_LIST, "items": item});
    web::bodies::request("What users may do", schema, json!([{"path": "/thngs", "access": "cr"}]))
}

pub(super) fn key(is_create: bool) -> Value {
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
/// That of rotations, also of the keys of later subjects.
#[must_use]
pub fn overlap() -> Value {
    let ms = json!({"type": "integer", "minimum": 0, "maximum": MAX_OVERLAP_MS,
        "description": "Milliseconds that the old key works on; 0 if left out."});
    Body::new("How long the old key works on").may("overlap", ms).like("overlap", 86_400_000).done()
}
