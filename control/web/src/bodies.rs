//! Schemas of request bodies, from the same limits as the checks.
//!
//! They are exact: what they allow is accepted, what they refuse is refused (400). JSON `null` stands for an absent
//! member, so every optional one may be null. Members that no schema names are unknown: the operation does not see
//! them, and `X-Ignored` lists them ([`crate::known`]).

use kernel::{
    domain::{
        limits::{MAX_DESCRIPTION, MAX_IDENTIFIER, MAX_IDENTIFIERS, MAX_KEY, MAX_LIST, MAX_NAME, MAX_TAG},
        property::MAX_TIME_MS,
    },
    service::bulk::MAX_CREATED,
};
use serde_json::{Map, Value, json};
use shared::availability::MAX_SCANS;

/// What a change is described by.
pub const CHANGES: &str = "The members to change; the others stay";

/// No database column takes U+0000.
pub const NO_NUL: &str = "^[^\\u0000]*$";

/// An id of the example.
pub const AN_ID: &str = "UKXAGyEf8SQ5eTDmVgGpHqAa";

/// Form of every id: 24 characters of the alphabet.
pub const ID: &str = "^[abcdefghkmnpqrstwxyABCDEFGHKMNPQRSTUVWXY0-9]{24}$";

/// The members of a body, and those that must be there.
pub struct Body {
    members: Map<String, Value>,
    required: Vec<&'static str>,
    example: Map<String, Value>,
    text: &'static str,
}

impl Body {
    /// A body without members; `text` describes it.
    pub fn new(text: &'static str) -> Self {
        Self { members: Map::new(), required: Vec::new(), example: Map::new(), text }
    }

    /// A member that may be left out.
    pub fn may(mut self, name: &'static str, schema: Value) -> Self {
        self.members.insert(name.to_owned(), optional(schema));
        self
    }

    /// A member that must be there.
    pub fn must(mut self, name: &'static str, schema: Value) -> Self {
        self.members.insert(name.to_owned(), schema);
        self.required.push(name);
        self
    }

    /// A member of the example.
    pub fn like(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.example.insert(name.to_owned(), value.into());
        self
    }

    /// The members that all resources share.
    pub fn common(self) -> Self {
        self.described()
            .may("activatedAt", millis())
            .may("scopes", scopes())
            .like("tags", json!(["summer"]))
            .like("customFields", json!({"color": "red"}))
    }

    /// Those of them that users have, too.
    pub fn described(self) -> Self {
        self.may("description", text(0, MAX_DESCRIPTION))
            .may("tags", texts(MAX_TAG))
            .may("customFields", open_object("The caller's own members: at most 64 KiB, 16 levels deep."))
            .may("identifiers", identifiers())
    }

    /// `name`, which a create must give.
    pub fn named(self, is_create: bool, example: &str) -> Self {
        let schema = text(1, MAX_NAME);
        let body = if is_create { self.must("name", schema) } else { self.may("name", schema) };
        body.like("name", example)
    }

    /// The schema of the object.
    pub fn schema(&self) -> Value {
        let mut schema = json!({"type": "object", "properties": self.members});
        if !self.required.is_empty() {
            schema["required"] = json!(self.required);
        }
        schema
    }

    /// The `requestBody` of an operation.
    pub fn done(self) -> Value {
        let (schema, example) = (self.schema(), Value::Object(self.example));
        request(self.text, schema, example)
    }
}

/// A `requestBody` that must be there.
pub fn request(text: &str, schema: Value, example: Value) -> Value {
    let content = json!({"application/json": {"schema": schema, "example": example}});
    json!({"description": text, "required": true, "content": content})
}

/// The same schema for a member that may be null.
pub fn optional(mut schema: Value) -> Value {
    // A text with a format is one thing, null another: together they would be neither.
    let is_formatted = schema["type"] == "string" && schema.get("format").is_some();
    match schema.get("type").cloned() {
        Some(Value::String(kind)) if !is_formatted => {
            schema["type"] = json!([kind, "null"]);
            schema
        }
        _ => json!({"anyOf": [schema, {"type": "null"}]}),
    }
}

/// A text of `min` to `max` characters.
pub fn text(min: usize, max: usize) -> Value {
    json!({"type": "string", "minLength": min, "maxLength": max, "pattern": NO_NUL})
}

/// A list of texts of at most `max` characters.
pub fn texts(max: usize) -> Value {
    json!({"type": "array", "maxItems": MAX_LIST, "items": text(1, max)})
}

/// An e-mail address.
pub fn email() -> Value {
    json!({"type": "string", "format": "email", "maxLength": 254})
}

/// `firstName` and `lastName` beside other members.
pub fn names(body: Body) -> Body {
    body.may("firstName", text(0, MAX_NAME)).may("lastName", text(0, MAX_NAME))
}

/// `true` or `false`.
pub fn boolean() -> Value {
    json!({"type": "boolean"})
}

/// A text whose validity a schema cannot express; `meaning` describes it.
pub fn formatted(format: &str, meaning: &str) -> Value {
    json!({"type": "string", "format": format, "description": meaning})
}

/// Milliseconds since 1970.
pub fn millis() -> Value {
    json!({"type": "integer", "format": "int64", "minimum": 0, "maximum": i64::MAX})
}

/// After how many scans a link ends.
pub fn max_scans() -> Value {
    json!({"type": "integer", "minimum": 1, "maximum": MAX_SCANS, "description": "Redirects of people, as in `hits`, after which \
        the link has ended. They count from when it has this limit; each edge is exact, and several together may pass it by \
        what the others gave within some tens of milliseconds."})
}

/// Any object within the limits of `customFields`.
pub fn open_object(meaning: &str) -> Value {
    json!({"type": "object", "description": meaning, "propertyNames": key(1, MAX_KEY),
        "additionalProperties": {"$ref": "#/components/schemas/JsonValue"}})
}

fn key(min: usize, max: usize) -> Value {
    json!({"minLength": min, "maxLength": max, "pattern": NO_NUL})
}

/// Names outside of the platform.
pub fn identifiers() -> Value {
    json!({"type": "object", "maxProperties": MAX_IDENTIFIERS, "propertyNames": key(1, MAX_KEY),
        "additionalProperties": optional(text(1, MAX_IDENTIFIER)),
        "description": "Names outside of the platform; replaced as a whole."})
}

/// Identifiers that something of the account has.
pub fn known_identifiers() -> Value {
    json!({"type": "object", "propertyNames": {"type": "string", "format": "identifier-key"},
        "additionalProperties": {"type": "string", "format": "identifier-value"},
        "description": "Identifiers of a Thng or product of the account, in place of `thng` or `product`."})
}

/// Who may see a resource beside operators.
pub fn scopes() -> Value {
    let ids = json!({"type": "array", "maxItems": MAX_LIST,
        "items": {"type": "string", "pattern": format!("^(all|{})$", ID.trim_matches(['^', '$']))}});
    json!({"type": "object", "properties": {"users": ids, "projects": ids}})
}

/// Names or texts without U+0000.
pub fn no_nul() -> Value {
    json!({"pattern": NO_NUL})
}

/// A GeoJSON point.
pub fn position() -> Value {
    json!({"type": "object", "required": ["type", "coordinates"], "properties": {
        "type": {"type": "string", "const": "Point"},
        "coordinates": {"type": "array", "minItems": 2, "maxItems": 2,
            // Exactly two; client generators need a schema of further items all the same.
            "prefixItems": [degrees(180), degrees(90)], "items": {"type": "number"},
            "description": "Longitude, then latitude."}}})
}

/// Any JSON value that can be stored.
///
/// Client generators do not support recursive values, so only the text describes nested ones. Tests that generate
/// requests substitute the whole schema (`tests/clients/schemathesis/hooks.py`).
pub fn json_value() -> Value {
    json!({"description": "Any JSON value without U+0000 in texts and names."})
}

/// The same without `null`.
pub fn some_json_value() -> Value {
    json!({"description": "Any JSON value but `null`, without U+0000 in texts and names.",
        "not": {"type": "null"}})
}

/// Degrees of a coordinate.
pub fn degrees(limit: i32) -> Value {
    json!({"type": "number", "minimum": -limit, "maximum": limit})
}

/// A body of which an array creates many.
pub fn or_many(mut one: Value) -> Value {
    let content = &mut one["content"]["application/json"]["schema"];
    let schema = content.take();
    *content = json!({"anyOf": [schema, {"type": "array", "minItems": 1, "maxItems": MAX_CREATED, "items": schema}]});
    one
}

/// The id of a resource that must be there; no `<key>:<value>`.
pub fn id_of(format: &str, meaning: &str) -> Value {
    let mut id = formatted(format, meaning);
    id["pattern"] = json!(ID);
    id
}

/// A body to create with, or to change by.
pub fn body(text: &'static str, is_create: bool) -> Body {
    Body::new(if is_create { text } else { CHANGES })
}

/// A location of a Thng or an action.
pub fn location() -> Value {
    let mut schema = Body::new("")
        .may("position", position())
        .may("latitude", degrees(90))
        .may("longitude", degrees(180))
        .may("place", formatted("place-id", "Id of a place of the account."))
        .may("timestamp", millis())
        .may("customFields", open_object("The caller's own members."))
        .schema();
    let has = |name: &str, kind: &str| json!({"required": [name], "properties": {name: {"type": kind}}});
    schema["anyOf"] = json!([has("position", "object"), has("place", "string")]);
    schema["description"] = json!("Instead of `position`, `latitude` and `longitude` may be given.");
    schema
}

/// A value of a property.
pub fn value() -> Value {
    json!({"$ref": "#/components/schemas/SomeJsonValue"})
}

/// Any time that clients can hold, in milliseconds since 1970.
pub fn time() -> Value {
    json!({"type": "integer", "format": "int64", "minimum": -MAX_TIME_MS, "maximum": MAX_TIME_MS})
}

/// The schema of a comma-separated list of ids.
pub fn ids() -> Value {
    let id = ID.trim_matches(['^', '$']);
    json!({"type": "string", "pattern": format!("^{id}(,{id}){{0,99}}$")})
}
