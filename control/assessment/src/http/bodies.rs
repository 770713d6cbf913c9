//! Request bodies of assessment.

use serde_json::{Value, json};
use web::bodies::{self, AN_ID, Body, ID, boolean, formatted, millis, open_object, optional, position, text};

use crate::{
    domain::{
        action_names::TriggerType,
        assessment::settings::{MAX_ALLOWED, MAX_COUNTRIES, MAX_ORDERS},
        case::{CaseStatus, MAX_REASON},
        commissioning_body::MAX_TEXT,
        limits::{MAX_NAME, MAX_URL},
        report::{MAX_REPORT, MAX_TOKEN},
    },
    service::assessment::replay::{MAX_APPLIED, MAX_THNGS},
};

/// The action that asks for an assessment.
pub(super) fn trigger() -> Value {
    let degrees = |limit: i32| json!({"type": "number", "minimum": -limit, "maximum": limit});
    let mut point = Body::new("")
        .must("latitude", degrees(90))
        .must("longitude", degrees(180))
        .must("position", position())
        .schema();
    point["propertyNames"] = json!({"enum": ["latitude", "longitude", "position"]});
    point["description"] = json!(
        "The three name one point, to 0.0001 degrees. May be left out unless \
        `locationSource` is `sensor` and the stored action has none."
    );
    let mut custom = open_object("The caller's own members, of which some are evidence.");
    custom["properties"] = json!({
        "inspectedProductMatch": {"enum": ["yes", "no", null]},
        "requestSource": optional(text(0, 121)),
        "requestUser": optional(text(0, MAX_NAME)),
        "requestUserName": optional(text(0, MAX_NAME)),
        "scanValue": optional(text(0, MAX_URL)),
        "watermark": optional(text(0, 1_024)),
        "markings": optional(json!({"type": "array", "maxItems": 100, "items": text(0, MAX_NAME)})),
    });
    let types = TriggerType::ALL.map(TriggerType::as_str);
    Body::new("The action as it was recorded for the scan")
        .must("id", json!({"type": "string", "pattern": ID}))
        .may(
            "type",
            json!({"type": "string", "enum": types,
            "description": "May be left out where `id` is that of a stored action, which has it."}),
        )
        .may(
            "locationSource",
            json!({"type": "string", "enum": ["geoIp", "sensor", "unknown"],
            "description": "May be left out where `id` is that of a stored action."}),
        )
        .may("location", point)
        .may("thng", json!({"type": "string", "description": "What is no id gives a result, too."}))
        .may("createdAt", millis())
        .may("timestamp", millis())
        .may("customFields", custom)
        .like("id", AN_ID)
        .like("type", "scans")
        .like("locationSource", "sensor")
        .like("thng", AN_ID)
        .like(
            "location",
            json!({"latitude": 47.37, "longitude": 8.54,
            "position": {"type": "Point", "coordinates": [8.54, 47.37]}}),
        )
        .done()
}

/// Which Things are judged again, and what to set over their settings.
pub(super) fn replay() -> Value {
    let thng = || formatted("thng-id", "Id or `<key>:<value>` of a Thng of the account.");
    let product = || {
        formatted("product-id", "Its newest 100 Thngs; id or `<key>:<value>` of a product of the account.")
    };
    let many = |most: usize| json!({"type": "array", "minItems": 1, "maxItems": most, "items": thng()});
    let body = Body::new("One of `thng`, `thngs` and `product`, and what to set over the settings")
        .may("thng", thng())
        .may("thngs", many(MAX_THNGS))
        .may("product", product())
        .may("settings", overrides(Body::new("")).schema())
        .may("apply", boolean())
        .like("thng", AN_ID)
        .like("settings", json!({"duplicatePoints": 10}));
    let none = json!({"type": "null"});
    // What is applied are the settings that are stored.
    let alone =
        [("apply", json!({"enum": [false, null]}), MAX_THNGS), ("settings", none.clone(), MAX_APPLIED)];
    let forms = alone.into_iter().flat_map(|(other, value, most)| {
        let named = [("thng", thng()), ("thngs", many(most)), ("product", product())];
        let none = none.clone();
        named.map(|(name, schema)| {
            let mut members = json!({"thng": none, "thngs": none, "product": none});
            members[name] = schema;
            members[other] = value.clone();
            json!({"required": [name], "properties": members})
        })
    });
    one_of(body, forms.collect())
}

/// A decision on a case.
pub(super) fn decision() -> Value {
    let body = Body::new("The decision")
        .must("status", json!({"type": "string", "enum": CaseStatus::ALL.map(CaseStatus::as_str)}))
        .may("reason", text(1, MAX_REASON))
        .may("display", boolean())
        .may("version", json!({"type": "integer", "minimum": 1, "maximum": i64::MAX}))
        .like("status", "dismissed")
        .like("reason", "It hangs in our shop window.")
        .like("display", true);
    let of = |status: &str, rest: Value| {
        let mut members = json!({"status": {"type": "string", "const": status}});
        members["display"] = rest;
        json!({"properties": members})
    };
    let no_display = || json!({"enum": [false, null]});
    let reasoned = |mut schema: Value| {
        schema["required"] = json!(["reason"]);
        schema["properties"]["reason"] = json!({"type": "string"});
        schema
    };
    let any_display = json!({"type": ["boolean", "null"]});
    one_of(
        body,
        vec![
            of("open", no_display()),
            reasoned(of("confirmed", no_display())),
            reasoned(of("dismissed", any_display)),
        ],
    )
}

/// What a finder writes, or nothing to get the token of a form.
pub(super) fn finder_report() -> Value {
    let shown = json!({"type": "string", "minLength": 1, "maxLength": MAX_REPORT,
        "pattern": "^[^\\u0000]*[^\\s\\u0000][^\\u0000]*$"});
    let body = Body::new("The report; an empty object asks for the token of a form")
        .may("token", text(0, MAX_TOKEN))
        .may("text", shown)
        .may("mail", bodies::email());
    let all = ["token", "text", "mail"];
    let none = all.into_iter().map(|name| (name.to_owned(), json!({"type": "null"})));
    let none = Value::Object(none.collect());
    let whole = json!({"required": ["token", "text"],
        "properties": {"token": {"type": "string"}, "text": {"type": "string"}}});
    let mut request = one_of(body, vec![json!({"properties": none}), whole]);
    // A form with a photo.
    let mut fields = request["content"]["application/json"]["schema"]["properties"].clone();
    fields["photo"] = json!({"type": "string", "contentMediaType": "image/*",
        "description": "A JPEG, a PNG or a WebP of at most 64,000,000 pixels; the form has at most 5 MiB."});
    let schema = json!({"type": "object", "properties": fields, "required": ["token", "text"]});
    request["content"]["multipart/form-data"] = json!({"schema": schema});
    request
}

/// A body that meets one of several schemas, too.
fn one_of(body: Body, schemas: Vec<Value>) -> Value {
    let mut request = body.done();
    request["content"]["application/json"]["schema"]["anyOf"] = Value::Array(schemas);
    request
}

pub(super) fn assessment_settings() -> Value {
    overrides(Body::new("The whole settings; what is left out is left to the owner above"))
        .like("requireCommissioning", true)
        .like("allowedNetworks", json!(["192.0.2.0/24"]))
        .done()
}

/// The members of settings of assessment.
fn overrides(body: Body) -> Body {
    let whole = |min: u32, max: u32| json!({"type": "integer", "minimum": min, "maximum": max});
    let km = || json!({"type": "number", "minimum": 0, "maximum": 20_016});
    let types = TriggerType::ALL.map(TriggerType::as_str);
    let list = |items: Value, most: usize| json!({"type": "array", "maxItems": most, "items": items});
    let place = json!({"type": "object", "required": ["latitude", "longitude", "radiusKm"], "properties": {
        "latitude": {"type": "number", "minimum": -90, "maximum": 90},
        "longitude": {"type": "number", "minimum": -180, "maximum": 180},
        "radiusKm": {"type": "number", "minimum": 0, "maximum": 1_000}}});
    let network = formatted("network", "An address and a length, such as `192.0.2.0/24`.");
    let markets = list(json!({"type": "string", "pattern": "^[A-Za-z]{2}$"}), MAX_COUNTRIES);
    body.may("requireCommissioning", boolean())
        .may("diversionMode", json!({"type": "string", "enum": ["profile", "trigger"]}))
        .may("regionsThreshold", whole(0, 1_000))
        .may("regionShareThreshold", json!({"type": "number", "minimum": 0, "maximum": 1}))
        .may("geoIpSpreadThreshold", km())
        .may("sensorSpreadThreshold", km())
        .may("userAgentsThreshold", whole(0, 1_000))
        .may("scanThreshold", whole(0, 64))
        .may("spreadOutlierThreshold", km())
        .may("maxObservedScans", whole(1, 64))
        .may("duplicatePoints", whole(1, 100))
        .may("suspectedPoints", whole(1, 100))
        .may("evidenceTypes", list(json!({"type": "string", "enum": types}), 5))
        .may("allowedNetworks", list(network, MAX_ALLOWED))
        .may("allowedPlaces", list(place, MAX_ALLOWED))
        .may(
            "purchaseOrders",
            json!({"type": "object", "maxProperties": MAX_ORDERS,
            "propertyNames": {"minLength": 1, "maxLength": MAX_TEXT, "pattern": bodies::NO_NUL},
            "additionalProperties": markets, "description": "Permitted countries by purchase order."}),
        )
}
