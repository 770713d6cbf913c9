//! Request bodies of products, Thngs, places, collections, batches, files and properties.

use serde_json::{Value, json};
use web::bodies::{
    self, AN_ID, Body, body, boolean, degrees, id_of, location, open_object, position, request, text, texts,
    time, value,
};

use super::link_documents;
use crate::domain::{
    collection::MAX_MEMBERS,
    limits::{MAX_NAME, MAX_TAG, MAX_URL},
    property::{MAX_KEY as MAX_PROPERTY_KEY, MAX_POINTS},
};

pub(super) fn thng_key() -> Value {
    Body::new("The Thng that the key is for")
        .must("thngId", id_of("thng-id", "Id of a Thng of the account."))
        .like("thngId", AN_ID)
        .done()
}

pub(super) fn content() -> Value {
    json!({"description": "The content, at most 1 GiB", "required": true,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}})
}

pub(super) fn product(is_create: bool) -> Value {
    let body = body("A product", is_create)
        .named(is_create, "Red shoe")
        .common()
        .may("brand", text(0, MAX_NAME))
        .may("categories", texts(MAX_TAG))
        .may("photos", texts(MAX_URL))
        .may("url", text(0, MAX_URL))
        .may("links", link_documents::links())
        .may("levels", link_documents::levels())
        .may("serialMode", link_documents::serial_mode())
        .may("gtinAliases", link_documents::aliases())
        .like("brand", "Acme")
        .like("links", link_documents::example())
        .like("identifiers", json!({"gs1:01": "09521234543213"}));
    with_properties(body, is_create)
}

pub(super) fn thng(is_create: bool) -> Value {
    let body = body("A Thng", is_create)
        .named(is_create, "Red shoe, left, number 17")
        .common()
        .may("product", id_of("product-id", "Id of a product of the account."))
        .may("type", text(0, MAX_NAME))
        .may("links", link_documents::links())
        .like("identifiers", json!({"gs1:21": "A1B2"}));
    with_properties(body, is_create)
}

/// A create may give the first values of properties.
fn with_properties(body: Body, is_create: bool) -> Value {
    if !is_create {
        return body.done();
    }
    let key = || text(1, MAX_PROPERTY_KEY);
    let values = json!({"type": "object", "maxProperties": MAX_POINTS, "propertyNames": key(),
        "additionalProperties": value()});
    let points =
        json!({"type": "array", "maxItems": MAX_POINTS, "items": point().must("key", key()).schema()});
    body.may("properties", json!({"anyOf": [values, points]}))
        .like("properties", json!({"state": "new"}))
        .done()
}

pub(super) fn place(is_create: bool) -> Value {
    body("A place; instead of `position`, `latitude` and `longitude` may be given", is_create)
        .named(is_create, "Warehouse 7")
        .common()
        .may("type", text(0, MAX_NAME))
        .may("icon", text(0, MAX_URL))
        .may("address", open_object("The parts of the address, kept as they are."))
        .may("position", position())
        .may("latitude", degrees(90))
        .may("longitude", degrees(180))
        .like("position", json!({"type": "Point", "coordinates": [8.54, 47.37]}))
        .like("address", json!({"city": "Zurich", "countryCode": "CH"}))
        .done()
}

pub(super) fn collection(is_create: bool) -> Value {
    body("A collection", is_create)
        .named(is_create, "Summer shoes")
        .common()
        .may("type", text(0, MAX_NAME))
        .done()
}

/// Ids of what joins a collection.
pub(super) fn members(format: &str) -> Value {
    let id = id_of(format, "Id of one that the account has.");
    let schema = json!({"type": "array", "maxItems": MAX_MEMBERS, "items": id});
    request("The ids of what joins; what is in already stays", schema, json!([AN_ID]))
}

pub(super) fn file(is_create: bool) -> Value {
    let kind = json!({"type": "string", "maxLength": MAX_NAME, "description": "Its media type.",
        "pattern": "^[A-Za-z0-9!#$&^_.+*-]+/[A-Za-z0-9!#$&^_.+*-]+$"});
    body("A file; its content goes to `uploadUrl`", is_create)
        .named(is_create, "report.csv")
        .common()
        .may("type", kind)
        .may("privateAccess", boolean())
        .like("type", "text/csv")
        .like("privateAccess", false)
        .done()
}

pub(super) fn locations() -> Value {
    let one = location();
    let schema = json!({"anyOf": [one, {"type": "array", "maxItems": 1000, "items": one}]});
    let example = json!([{"position": {"type": "Point", "coordinates": [-17.3, 36]}}]);
    request("At most 1,000 locations, or a single one", schema, example)
}

pub(super) fn properties() -> Value {
    let point = point().must("key", text(1, MAX_PROPERTY_KEY)).schema();
    let schema = json!({"anyOf": [point, {"type": "array", "maxItems": MAX_POINTS, "items": point}]});
    let example = json!([{"key": "temperature", "value": 21.5}, {"key": "state", "value": "open"}]);
    request("Up to 10,000 values", schema, example)
}

pub(super) fn property() -> Value {
    // What `GET` answers may be sent back; the key is that of the path.
    let key = json!({"type": "string", "readOnly": true, "description": "The key in the path."});
    let point = point().may("key", key).schema();
    let schema = json!({"anyOf": [
        {"type": ["boolean", "number"]},
        {"type": "string", "pattern": bodies::NO_NUL},
        {"type": "array", "maxItems": MAX_POINTS, "items": point},
        point,
        {"type": "object", "description": "The value itself.", "properties": {"value": {"not": {}}},
            "additionalProperties": {"$ref": "#/components/schemas/JsonValue"}, "propertyNames": bodies::no_nul()}]});
    let example = json!([{"value": 21.5, "timestamp": 1_767_225_600_000_i64}]);
    request("A value, a value with its time, or an array of such", schema, example)
}

fn point() -> Body {
    Body::new("").must("value", value()).may("timestamp", time())
}

pub(super) fn batch(is_create: bool) -> Value {
    body("A batch", is_create).named(is_create, "Week 47").common().done()
}
