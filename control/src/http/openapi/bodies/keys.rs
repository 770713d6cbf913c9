//! Request bodies of keys.

use serde_json::{Value, json};
use web::bodies::{AN_ID, Body, text};

use crate::{
    domain::{
        limits::{MAX_LIST, MAX_NAME},
        operator_key::MAX_NETWORK,
    },
    service::access::MAX_OVERLAP_MS,
};
use web::bodies::{body, id_of};

/// The body of an operation, if it is one of these.
pub(super) fn of(operation: &str) -> Option<Value> {
    Some(match operation {
        "createKey" => key(true),
        "updateKey" => key(false),
        "rotateKey" | "rotateSecretKey" | "rotateAppApiKey" | "rotateThngKey" => overlap(),
        _ => return None,
    })
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
