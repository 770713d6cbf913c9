//! Request bodies of commissioning.

use serde_json::{Value, json};
use web::bodies::{AN_ID, Body, formatted, millis, position, request, text};

use crate::domain::commissioning_body::{MAX_PAIRS, MAX_TEXT, PRODUCT_KEY, THNG_KEY};

/// A commission, or a decommission, which names no product.
pub(super) fn step(is_commission: bool) -> Value {
    let metadata = Body::new("")
        .must("factory", text(1, MAX_TEXT))
        .may("supplier", text(0, MAX_TEXT))
        .may("zone", text(0, MAX_TEXT))
        .schema();
    let mut place = Body::new("")
        .may("position", position())
        .may("place", formatted("place-id", "Id of a place of the account."))
        .may("createdAt", millis())
        .may("timestamp", millis())
        .schema();
    let has = |name: &str, kind: &str| json!({"required": [name], "properties": {name: {"type": kind}}});
    place["anyOf"] = json!([has("position", "object"), has("place", "string")]);
    place["propertyNames"] = json!({"enum": ["position", "place", "createdAt", "timestamp"]});
    place["description"] =
        json!("`latitude` and `longitude` may stand beside `position`, `scopes` beside both.");
    let moment = json!({"type": "string", "format": "moment", "maxLength": 46,
        "description": "ISO 8601 date and time with an offset."});
    let what = if is_commission { "What the Thng becomes, where and when" } else { "Where and when" };
    let mut body = Body::new(what);
    if is_commission {
        body = body
            .must("product", formatted("product-id", "`<key>:<value>` or id of a product of the account."))
            .may("purchaseOrder", text(0, MAX_TEXT))
            .like("product", "gs1:01:09521234543213")
            .like("purchaseOrder", "PO-1");
    }
    body.must("location", place)
        .must("occurredAt", moment)
        .may("factoryMetadata", metadata)
        .like("location", json!({"place": AN_ID}))
        .like("occurredAt", "2026-11-22T08:15:30+01:00")
        .like("factoryMetadata", json!({"factory": "F1", "supplier": "S1", "zone": "Line 3"}))
        .done()
}

/// Pairs whose states are asked for.
pub(super) fn pairs() -> Value {
    let value = |key: &str| json!({"type": "string", "pattern": format!("^{key}:[^:\\u0000]{{1,256}}$")});
    let pair = Body::new("")
        .must("thngIdentifier", value(THNG_KEY))
        .must("productIdentifier", value(PRODUCT_KEY))
        .schema();
    let schema = json!({"type": "array", "maxItems": MAX_PAIRS, "items": pair});
    let example = json!([{"thngIdentifier": "gs1:21:A1B2", "productIdentifier": "gs1:01:09521234543213"}]);
    request("At most 1,000 pairs", schema, example)
}
