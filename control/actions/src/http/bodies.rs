//! Request bodies of actions and their types.

use serde_json::{Value, json};
use web::bodies::{self, Body, body, formatted, location, millis, open_object, request, scopes, texts};

use crate::domain::{action_draft::MAX_ACTIONS, limits::MAX_TAG};

pub(super) fn action_type(is_create: bool) -> Value {
    let name = json!({"type": "string", "pattern": "^_[A-Za-z0-9_.-]{1,127}$"});
    let body = body("A type of actions", is_create).common();
    if is_create { body.must("name", name).like("name", "_repaired").done() } else { body.done() }
}

/// One action or many; `of_path` means that the path names the target.
pub(super) fn actions(of_path: bool) -> Value {
    let mut body = Body::new("");
    if of_path {
        body = body.may("identifiers", bodies::identifiers());
    } else {
        body = body
            .may("thng", formatted("thng-id", "Id or `<key>:<value>` of a Thng of the account."))
            .may("product", formatted("product-id", "Id or `<key>:<value>` of a product of the account."))
            .may("collection", formatted("collection-id", "Id of a collection of the account."))
            .may("identifiers", bodies::known_identifiers());
    }
    let one = body
        .may("type", formatted("action-type", "The path wins over it, but for `all`."))
        .may("timestamp", millis())
        .may("location", location())
        .may("context", json!({"description": "`ipAddress` and `userAgent`, one of them or both, and beside them \
            `language`, of the customer whose scan a server reports: by the secret key of an application with `reportsContext`, else ignored."}))
        .may("tags", texts(MAX_TAG))
        .may("customFields", open_object("The caller's own members: at most 64 KiB, 16 levels deep."))
        .may("scopes", scopes())
        .schema();
    let schema =
        json!({"anyOf": [one, {"type": "array", "minItems": 1, "maxItems": MAX_ACTIONS, "items": one}]});
    let text = if of_path {
        "One action, or an array of 1 to 1,000"
    } else {
        "One action, or an array of 1 to 1,000; instead of `thng` or `product`, `identifiers` may name it"
    };
    let example = json!({"type": "scans", "tags": ["summer"], "customFields": {"color": "red"},
        "location": {"position": {"type": "Point", "coordinates": [8.54, 47.37]}}});
    request(text, schema, example)
}
