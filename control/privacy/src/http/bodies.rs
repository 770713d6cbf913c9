//! Request bodies of erasures.

use serde_json::{Value, json};
use web::bodies::{AN_ID, Body, ID, millis, request};

pub(super) fn erasure() -> Value {
    let id = |what: &str| json!({"type": "string", "pattern": ID, "description": what});
    let network = json!({"type": "string", "format": "network", "maxLength": 49,
        "description": "An address or a network, of at least 8 bits of IPv4 or 16 of IPv6."});
    let schema = json!({"anyOf": [
        Body::new("").must("user", id("A user of an application.")).schema(),
        Body::new("").must("thng", id("A Thng.")).schema(),
        Body::new("").must("network", network).must("from", millis()).must("to", millis()).schema(),
    ]});
    let text = "Whose data: exactly one of `user`, `thng` and `network`; the last one with `from`, and `to`, which is exclusive";
    request(text, schema, json!({"user": AN_ID}))
}
