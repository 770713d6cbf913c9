//! Request bodies of webhooks and reactions.

use serde_json::{Value, json};
use web::bodies::{self, Body, boolean, formatted, millis, open_object, scopes, value};

use crate::domain::{
    limits::MAX_TAG,
    webhook::{self, MAX_OVERLAP_MS},
};

pub(super) fn overlap() -> Value {
    Body::new("How long the others sign on")
        .may("overlap", json!({"type": "integer", "minimum": 0, "maximum": MAX_OVERLAP_MS}))
        .like("overlap", 86_400_000)
        .done()
}

pub(super) fn redelivery() -> Value {
    Body::new("The range")
        .may("from", millis())
        .may("to", millis())
        .may("status", json!({"type": "string", "enum": ["dead", "delivered"]}))
        .like("from", 1_767_225_600_000_i64)
        .like("status", "dead")
        .done()
}

/// A reaction; what its effect names must be there.
pub(super) fn reaction(is_create: bool) -> Value {
    let kind = formatted("event-type", "A type or family of events.");
    let named = |name: &str| json!({"type": "string", "const": name});
    let id = formatted("webhook-id", "Id of a webhook of the account.");
    let calls = Body::new("").must("type", named("webhook")).must("webhook", id).schema();
    let key = json!({"type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[^~\\u0000][^\\u0000]*$",
        "description": "At most 128 characters in lower case; none that begins with `~`."});
    let of = || {
        json!({"type": "string", "enum": ["either", "thng", "product"],
        "description": "Of what the event is about; instead of it, `thng` or `product` names one."})
    };
    let path = formatted("event-path", "Where the event has the value, such as `context.city`.");
    let sets = |name: &'static str, schema: Value| {
        let body = Body::new("").must("type", named("property")).must("key", key.clone());
        let mut schema = body.must(name, schema).may("of", of()).schema();
        let others = if name == "value" { "from" } else { "value" };
        for other in [others, "thng", "product"] {
            schema["properties"][other] = json!({"type": "null"});
        }
        schema
    };
    let action = Body::new("")
        .must("type", formatted("action-type", "A type that a request may create."))
        .may("thng", formatted("thng-id", "Instead of what the event is about."))
        .may("tags", bodies::texts(MAX_TAG))
        .may("customFields", open_object("The caller's own members."))
        .may("identifiers", bodies::identifiers())
        .may("scopes", scopes())
        .may("timestamp", millis())
        .schema();
    let mut action = action;
    for other in ["product", "collection", "location"] {
        action["properties"][other] = json!({"type": "null"});
    }
    let makes = Body::new("").must("type", named("action")).must("action", action).schema();
    let effect = json!({"anyOf": [calls, sets("value", value()), sets("from", path), makes],
        "description": "To send the event to a webhook, to set a property to a value or to what the event has, or to \
            create an action."});
    let body = Body::new("A reaction").named(is_create, "Note the city").described();
    let body = if is_create { body.must("effect", effect) } else { body.may("effect", effect) };
    body.may("types", json!({"type": "array", "maxItems": webhook::LIMITS.0, "items": kind}))
        .may("match", formatted("event-match", "A filter of events."))
        .may("status", json!({"type": "string", "enum": ["active", "disabled"]}))
        .like("types", json!(["action.implicitScans"]))
        .like("match", "context.countryCode=DE")
        .like("effect", json!({"type": "property", "key": "last_city", "from": "context.city"}))
        .done()
}

/// A webhook; its URL must lead to a public host.
pub(super) fn webhook(is_create: bool) -> Value {
    let (most, longest) = webhook::LIMITS;
    let url = json!({"type": "string", "format": "webhook-url", "maxLength": longest,
        "description": "An `https` URL of a public host without a user name."});
    let body = Body::new("A webhook").named(is_create, "Warehouse").described();
    let body = if is_create { body.must("url", url) } else { body.may("url", url) };
    let kind = formatted("event-type", "A type or family of events.");
    body.may("types", json!({"type": "array", "maxItems": most, "items": kind}))
        .may("match", formatted("event-match", "A filter of events."))
        .may("ordered", boolean())
        .may("status", json!({"type": "string", "enum": ["active", "paused", "disabled"]}))
        .like("url", "https://example.com/hooks/waymark")
        .like("types", json!(["action.implicitScans", "job"]))
        .like("match", "context.countryCode=DE")
        .done()
}
