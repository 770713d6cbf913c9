//! The members of a body that an operation knows: those of its schema in the OpenAPI document (`control/README.md`,
//! "Unknown members").

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};

/// Names of an answer: more are counted, so that the header stays under 4 KiB.
pub const MAX_NAMES: usize = 20;

/// Characters of a name: the longest known name is far shorter.
const MAX_NAME: usize = 40;

/// Deepest schema that is followed; ours are less than ten deep.
const MAX_DEPTH: usize = 32;

/// Characters that are not encoded in a name: a header may contain them, and they do not separate paths or lists.
const NAME: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'~').remove(b':').remove(b'@').remove(b'$');

/// Members and parameters that an operation does not know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unknown {
    names: Vec<String>,
    more: usize,
}

impl Unknown {
    /// Adds a member by its path, or a parameter by its name; see [`encode`].
    pub fn push(&mut self, path: String) {
        if self.names.len() < MAX_NAMES { self.names.push(path) } else { self.more += 1 }
    }

    /// Adds all of another.
    pub fn extend(&mut self, other: Self) {
        self.more += other.more;
        other.names.into_iter().for_each(|name| self.push(name));
    }

    /// Whether everything is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The names, at most [`MAX_NAMES`], and how many more there are.
    #[must_use]
    pub fn names(&self) -> (&[String], usize) {
        (&self.names, self.more)
    }

    /// The value of `X-Ignored`: the names with commas, and at the end `...+7` where seven more are left out.
    #[must_use]
    pub fn header(&self) -> String {
        let mut text = self.names.join(", ");
        if self.more > 0 {
            text.push_str(&format!(", ...+{}", self.more));
        }
        text
    }

    /// One sentence for each name; `what` is `member` or `parameter`.
    #[must_use]
    pub fn faults(&self, what: &str) -> Vec<String> {
        let sentence = |name: &String| format!("{name} is not a {what} of this operation.");
        let mut faults: Vec<String> = self.names.iter().map(sentence).collect();
        if self.more > 0 {
            faults.push(format!("{} more are not known.", self.more));
        }
        faults
    }
}

/// A name in a form that fits into a header and a path: bounded, and percent-encoded where it is unusual.
#[must_use]
pub fn encode(name: &str) -> String {
    let short: String = name.chars().take(MAX_NAME).collect();
    let mark = if short.len() < name.len() { "..." } else { "" };
    format!("{}{mark}", utf8_percent_encode(&short, NAME))
}

/// The schema of a body, and that of the answer, whose other members are read-only.
#[derive(Debug, Clone, Copy)]
pub struct BodySchema<'a> {
    /// Schema of the request.
    pub request: &'a Value,
    /// Schema of the response: members that are only there are read-only, so they are ignored and not unknown.
    pub answer: Option<&'a Value>,
    /// The document, for its references.
    pub document: &'a Value,
}

impl<'a> BodySchema<'a> {
    /// Removes members that no schema knows, so that nothing reads them; returns their paths, such as `location.foo`
    /// and `[3].bar`.
    ///
    /// A schema that allows no extra properties removes nothing: the operation refuses those itself.
    #[must_use]
    pub fn remove_unknown(&self, body: &mut Value) -> Unknown {
        let mut unknown = Unknown::default();
        let request = self.leaves(&[self.request]);
        let answer = self.leaves(self.answer.as_slice());
        self.visit(body, &request, &answer, "", &mut unknown);
        unknown
    }

    /// The alternatives of schemas, without the references and combinations between them.
    fn leaves(&self, schemas: &[&'a Value]) -> Vec<&'a Value> {
        let mut found = Vec::new();
        for schema in schemas {
            self.collect(schema, &mut found, 0);
        }
        found
    }

    fn collect(&self, schema: &'a Value, found: &mut Vec<&'a Value>, depth: usize) {
        let Some(members) = schema.as_object() else {
            // `true` allows everything, `false` nothing.
            if schema.as_bool() == Some(true) {
                found.push(schema);
            }
            return;
        };
        if depth > MAX_DEPTH || is_nothing(schema) {
            return;
        }
        if let Some(target) = members.get("$ref").and_then(Value::as_str) {
            let target = target.strip_prefix('#').and_then(|pointer| self.document.pointer(pointer));
            return target.into_iter().for_each(|target| self.collect(target, found, depth + 1));
        }
        let combined = ["anyOf", "oneOf", "allOf"].iter().filter_map(|name| members.get(*name)?.as_array());
        let parts: Vec<&Value> = combined.flatten().collect();
        if parts.is_empty()
            || ["properties", "items", "additionalProperties"].iter().any(|name| members.contains_key(*name))
        {
            found.push(schema);
        }
        parts.into_iter().for_each(|part| self.collect(part, found, depth + 1));
    }

    fn visit(
        &self,
        value: &mut Value,
        request: &[&'a Value],
        answer: &[&'a Value],
        path: &str,
        unknown: &mut Unknown,
    ) {
        match value {
            Value::Array(items) => {
                let inside = |leaves: &[&'a Value]| {
                    let items: Vec<_> = leaves.iter().filter_map(|leaf| leaf.get("items")).collect();
                    self.leaves(&items)
                };
                // The response to an array of bodies has one result, or one such object, for each.
                let shown = [answer.to_vec(), inside(answer)].concat();
                let (request, answer) = (inside(request), shown);
                if !request.is_empty() {
                    for (index, item) in items.iter_mut().enumerate() {
                        self.visit(item, &request, &answer, &format!("{path}[{index}]"), unknown);
                    }
                }
            }
            Value::Object(members) => self.visit_object(members, request, answer, path, unknown),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn visit_object(
        &self,
        members: &mut Map<String, Value>,
        request: &[&'a Value],
        answer: &[&'a Value],
        path: &str,
        unknown: &mut Unknown,
    ) {
        let request: Vec<_> = request.iter().copied().filter(|leaf| fits(leaf, members)).collect();
        let has_members = request.iter().any(|leaf| leaf.get("properties").is_some());
        if !has_members || request.iter().any(|leaf| is_open(leaf) || is_closed(leaf)) {
            return;
        }
        members.retain(|name, value| {
            let of = |leaves: &[&'a Value]| -> Vec<&'a Value> {
                leaves.iter().filter_map(|leaf| leaf.get("properties")?.get(name)).collect()
            };
            let (wanted, shown) = (of(&request), of(answer));
            let own = if path.is_empty() { encode(name) } else { format!("{path}.{}", encode(name)) };
            if !wanted.is_empty() {
                self.visit(value, &self.leaves(&wanted), &self.leaves(&shown), &own, unknown);
                return true;
            }
            if !shown.is_empty() {
                return true;
            }
            unknown.push(own);
            false
        });
    }
}

/// Whether a schema is one of this object.
fn fits(leaf: &Value, members: &Map<String, Value>) -> bool {
    let is_object = match leaf.get("type") {
        None => true,
        Some(Value::Array(types)) => types.iter().any(|name| name == "object"),
        Some(name) => name == "object",
    };
    let mut properties = leaf.get("properties").and_then(Value::as_object).into_iter().flatten();
    is_object && !properties.any(|(name, schema)| is_nothing(schema) && members.contains_key(name))
}

/// Whether a schema is met by nothing.
fn is_nothing(schema: &Value) -> bool {
    schema.as_bool() == Some(false)
        || schema.get("not").is_some_and(|not| not.as_object().is_some_and(Map::is_empty))
}

/// Whether an object may have any member, because it is the caller's own.
fn is_open(leaf: &Value) -> bool {
    match leaf.get("additionalProperties") {
        Some(schema) => !is_nothing(schema),
        None => leaf.get("type").is_none() && leaf.get("properties").is_none(),
    }
}

/// Whether the operation refuses unknown members.
fn is_closed(leaf: &Value) -> bool {
    leaf.get("additionalProperties").is_some_and(is_nothing)
        || leaf.get("propertyNames").is_some_and(|names| names.get("enum").is_some())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(body: Value, kept: &Value, names: &str) {
        let point =
            json!({"type": ["object", "null"], "properties": {"type": {}, "coordinates": {"type": "array"}}});
        let document = json!({"components": {"schemas": {
            "One": {"type": "object", "required": ["name"], "properties": {
                "name": {"type": "string"},
                "position": {"anyOf": [point, {"type": "null"}]},
                "closed": {"type": "object", "properties": {"a": {}}, "propertyNames": {"enum": ["a"]}},
                "own": {"type": "object", "additionalProperties": {}},
                "list": {"type": "array", "items": {"type": "object", "properties": {"a": {}}}},
                "value": {"anyOf": [
                    {"type": "object", "properties": {"value": {}}},
                    {"type": "object", "properties": {"value": {"not": {}}}, "additionalProperties": {}}]}}},
            "Shown": {"allOf": [{"type": "object", "properties": {"id": {}}}, {"$ref": "#/components/schemas/One"}]}}}});
        let request = json!({"anyOf": [
            {"$ref": "#/components/schemas/One"},
            {"type": "array", "items": {"$ref": "#/components/schemas/One"}}]});
        let answer = json!({"$ref": "#/components/schemas/Shown"});
        let schema = BodySchema { request: &request, answer: Some(&answer), document: &document };
        let mut body = body;
        let unknown = schema.remove_unknown(&mut body);
        assert_eq!(unknown.header(), names, "{body}");
        assert_eq!(body, *kept);
    }

    #[test]
    fn unknown_members_are_removed_and_named_by_their_path() {
        for (body, kept, names) in [
            (json!({"name": "x", "id": 1}), json!({"name": "x", "id": 1}), ""),
            (json!({"name": "x", "foo": 1}), json!({"name": "x"}), "foo"),
            (json!({"name": "x", "foo": null}), json!({"name": "x"}), "foo"),
            (
                json!({"position": {"type": "Point", "crs": {}}}),
                json!({"position": {"type": "Point"}}),
                "position.crs",
            ),
            (json!({"closed": {"b": 1}}), json!({"closed": {"b": 1}}), ""),
            (json!({"own": {"b": {"c": 1}}}), json!({"own": {"b": {"c": 1}}}), ""),
            (json!({"list": [{"a": 1}, {"b": 1}]}), json!({"list": [{"a": 1}, {}]}), "list[1].b"),
            (json!([{"name": "x"}, {"foo": 1}]), json!([{"name": "x"}, {}]), "[1].foo"),
            (json!({"value": {"value": 1, "b": 1}}), json!({"value": {"value": 1}}), "value.b"),
            (json!({"value": {"b": 1}}), json!({"value": {"b": 1}}), ""),
            (json!({"a,b\r\n": 1, "ü.x": 1}), json!({}), "a%2Cb%0D%0A, %C3%BC%2Ex"),
            (json!("text"), json!("text"), ""),
        ] {
            check(body, &kept, names);
        }
    }

    #[test]
    fn names_are_bounded_in_number_and_length() {
        let mut unknown = Unknown::default();
        for _ in 0..27 {
            unknown.push(encode(&"é".repeat(1_000)));
        }
        let header = unknown.header();
        assert!(header.ends_with("..., ...+7") && header.is_ascii() && header.len() < 10_000, "{header}");
        assert_eq!(unknown.faults("member").len(), MAX_NAMES + 1);
    }
}
