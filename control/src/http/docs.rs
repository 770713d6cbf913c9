//! The docs page, generated from the OpenAPI document; self-contained, without scripts.

use std::collections::{BTreeMap, BTreeSet};

use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::{Value, json};
use shared::problem::Code;

/// The look of every page of documentation.
pub(super) const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;\
    color:#222;background:#fff}h1,h2{line-height:1.2}h2{margin-top:2.5rem;border-bottom:1px solid #ddd}\
    h3{font-size:1rem;margin:1.5rem 0 .25rem}code{font:14px/1.4 ui-monospace,monospace}\
    pre{overflow:auto;background:#f4f4f4;padding:.5rem}\
    table{border-collapse:collapse;width:100%;margin:.5rem 0}td,th{text-align:left;vertical-align:top;\
    padding:.25rem .75rem .25rem 0;border-bottom:1px solid #eee}.method{display:inline-block;min-width:4rem;\
    font-weight:700}.maturity{font-weight:400;font-size:.8rem;color:#555;border:1px solid #bbb;border-radius:.5rem;\
    padding:0 .5rem;margin-left:.5rem}@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}\
    pre{background:#222}td,th{border-color:#333}h2{border-color:#444}\
    .maturity{color:#aaa;border-color:#555}a{color:#8cf}}";

/// The whole page as HTML, for the document as it is served.
pub(super) fn page(document: &Value) -> String {
    let mut groups: BTreeMap<&str, Vec<(&str, &str, &Value)>> = BTreeMap::new();
    for (path, item) in document["paths"].as_object().into_iter().flatten() {
        for method in ["get", "post", "put", "delete"] {
            let Some(operation) = item.get(method) else { continue };
            let group = operation["tags"][0].as_str().unwrap_or("Other");
            groups.entry(group).or_default().push((path, method, operation));
        }
    }
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (text(&document["info"]["title"])) " API" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (text(&document["info"]["title"])) " API" }
                (introduction(document))
                @for (group, operations) in &groups {
                    h2 id=(group.to_lowercase()) { (group) }
                    @for (path, method, operation) in operations { (describe(document, path, method, operation)) }
                }
                (errors())
            }
        }
    }
    .into_string()
}

fn introduction(document: &Value) -> Markup {
    html! {
        p { (prose(text(&document["info"]["description"]))) }
        p {
            "Send the API key in the header " code { "Authorization" } ", or as " code { "?access_token=" }
            ". Bodies are JSON of at most 1 MiB. Lists hold up to " code { "perPage" }
            " rows (1 to 100, default 30); the header " code { "Link" }
            " with " code { "rel=\"next\"" } " holds the percent-encoded URL of the next page, if there is one."
        }
        p {
            "How to use it: " a href="/docs/guide/" { "guides" } ". To try it in the browser: " a href="/docs/reference/" { "reference" } ". Machine-readable: " a href="/openapi.json" { "openapi.json" } " (OpenAPI 3.1). Errors: "
            a href="#errors" { "table of codes" } "."
        }
    }
}

fn describe(document: &Value, path: &str, method: &str, operation: &Value) -> Markup {
    let parameters = operation["parameters"].as_array().map(Vec::as_slice).unwrap_or_default();
    html! {
        h3 id=(text(&operation["operationId"])) {
            span.method { (method.to_ascii_uppercase()) } code { (path) }
            @if let Some(maturity) = operation["x-maturity"].as_str() { span.maturity { (maturity) } }
        }
        p { (prose(text(&operation["summary"]))) }
        @if !parameters.is_empty() {
            table {
                @for parameter in parameters {
                    tr {
                        td { code { (text(&parameter["name"])) } }
                        td { (text(&parameter["in"])) }
                        td { (kind(document, &parameter["schema"])) }
                        td { (prose(text(&parameter["description"]))) }
                    }
                }
            }
        }
        @if let Some(body) = operation.get("requestBody") { (request(document, body)) }
        table {
            @for (status, response) in operation["responses"].as_object().into_iter().flatten() {
                @if response.get("$ref").is_none() {
                    tr { td { code { (status) } } td { (prose(text(&response["description"]))) } }
                }
            }
        }
    }
}

/// The body that an operation takes: its members, and an example.
fn request(document: &Value, body: &Value) -> Markup {
    html! {
        @for (media_type, content) in body["content"].as_object().into_iter().flatten() {
            p { "Body, " code { (media_type) } ": " (prose(text(&body["description"]))) }
            @let members = members(document, &content["schema"]);
            @if !members.is_empty() {
                table {
                    @for member in &members {
                        tr {
                            td { code { (member.path) } @if member.is_required { " (required)" } }
                            td { (kind(document, member.schema)) }
                            td { (prose(text(&member.schema["description"]))) }
                        }
                    }
                }
            }
            @if let Some(example) = content.get("example") { pre { code { (format!("{example:#}")) } } }
        }
    }
}

/// A member of a body.
struct Member<'a> {
    path: String,
    schema: &'a Value,
    is_required: bool,
}

/// Deepest member that is listed.
const MAX_LEVELS: usize = 4;

fn members<'a>(document: &'a Value, schema: &'a Value) -> Vec<Member<'a>> {
    let mut found = Vec::new();
    list(document, schema, "", 0, &mut found);
    let mut seen = BTreeSet::new();
    found.retain(|member| seen.insert(member.path.clone()));
    found
}

fn list<'a>(document: &'a Value, schema: &'a Value, path: &str, level: usize, found: &mut Vec<Member<'a>>) {
    if level > MAX_LEVELS {
        return;
    }
    let schema = resolve(document, schema);
    for part in ["anyOf", "oneOf", "allOf"].iter().filter_map(|name| schema[*name].as_array()).flatten() {
        list(document, part, path, level, found);
    }
    if let Some(items) = schema.get("items") {
        list(document, items, &format!("{path}[]"), level + 1, found);
    }
    let is_required =
        |name: &str| schema["required"].as_array().is_some_and(|names| names.iter().any(|one| one == name));
    for (name, member) in schema["properties"].as_object().into_iter().flatten() {
        // What must be absent is no member.
        if member["type"] == "null" || member.get("not").is_some_and(|not| *not == json!({})) {
            continue;
        }
        let own = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let member = resolve(document, member);
        found.push(Member { path: own.clone(), schema: member, is_required: is_required(name) });
        list(document, member, &own, level + 1, found);
    }
}

fn resolve<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let target = schema["$ref"].as_str().and_then(|target| document.pointer(target.strip_prefix('#')?));
    target.unwrap_or(schema)
}

/// The type of a value, with its bounds: `integer, 95 to 800`.
fn kind(document: &Value, schema: &Value) -> String {
    let schema = resolve(document, schema);
    if let Some(words) = schema["enum"].as_array() {
        return words.iter().map(plain).collect::<Vec<_>>().join(" | ");
    }
    let mut kind = match &schema["type"] {
        Value::Array(types) => {
            types.iter().filter(|name| *name != "null").map(plain).collect::<Vec<_>>().join(" | ")
        }
        Value::String(name) => name.clone(),
        _ => {
            let parts = ["anyOf", "oneOf"].iter().filter_map(|name| schema[*name].as_array()).flatten();
            let mut kinds: Vec<_> =
                parts.filter(|part| part["type"] != "null").map(|part| kind(document, part)).collect();
            kinds.dedup();
            kinds.retain(|kind| !kind.is_empty());
            kinds.join(" or ")
        }
    };
    let bound = |names: [&str; 3]| names.iter().find_map(|name| schema.get(*name)).map(plain);
    let bounds =
        match (bound(["minimum", "minLength", "minItems"]), bound(["maximum", "maxLength", "maxItems"])) {
            (Some(low), Some(high)) => format!(", {low} to {high}"),
            (None, Some(high)) => format!(", at most {high}"),
            (Some(low), None) => format!(", at least {low}"),
            (None, None) => String::new(),
        };
    kind.push_str(&bounds);
    kind
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Text in which backticks stand around code.
fn prose(text: &str) -> Markup {
    html! {
        @for (index, part) in text.split('`').enumerate() {
            @if index % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

fn errors() -> Markup {
    html! {
        h2 id="errors" { "Errors" }
        p {
            "Every error has the body " code { "{\"status\", \"errors\", \"code\", \"moreInfo\"}" }
            ". Programs may rely on the code; the sentences may change."
        }
        table {
            tr { th { "Code" } th { "Status" } th { "Meaning" } }
            @for code in Code::ALL {
                @let number = *code as u32;
                tr id=(format!("error-{number}")) {
                    td { code { (number) } }
                    td { (code.status()) }
                    td { (code.text()) }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::{openapi::operations, router::operations as document};

    #[test]
    fn the_page_has_every_operation_and_every_code_and_nothing_from_outside() {
        let document = document();
        let page = page(&crate::http::document());
        for (path, item) in &document.paths.paths {
            for (method, operation) in operations(item) {
                let id = operation.operation_id.as_deref().unwrap();
                assert!(page.contains(&format!("<h3 id=\"{id}\">")), "{method} {path}");
            }
        }
        for code in Code::ALL {
            assert!(page.contains(&format!("id=\"error-{}\"", *code as u32)), "{code:?}");
        }
        // Examples hold URLs; nothing is loaded from them.
        for outside in ["href=\"http", "<script", "src=", "url(", "@import"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn the_page_shows_bodies_with_their_members_and_examples_and_all_parameters() {
        let page = page(&crate::http::document());
        let section = |id: &str| {
            let (_, rest) = page.split_once(&format!("<h3 id=\"{id}\">")).unwrap();
            rest.split("<h3").next().unwrap().to_owned()
        };
        for (id, parts) in [
            (
                "createRedirection",
                &["<code>defaultRedirectUrl</code> (required)", "<code>[].platformId</code>"][..],
            ),
            ("createRedirection", &["<pre>", "https://example.com/?item={shortId}", "<code>qz</code>"]),
            (
                "readRedirection",
                &["<code>ecl</code>", "L | M | Q | H", "<code>dpi</code>", "integer, 72 to 2400"],
            ),
            ("createAction", &["<code>location.position.coordinates</code>", "<code>scopes.users</code>"]),
            ("createActionJob", &["<code>input.format</code>", "CSV | ZIP"]),
            ("commissionThng", &["<code>factoryMetadata.factory</code> (required)"]),
        ] {
            let section = section(id);
            for part in parts {
                assert!(section.contains(part), "{id}: no {part} in {section}");
            }
        }
    }

    #[test]
    fn every_operation_is_described() {
        let document = document();
        assert_eq!(serde_json::to_value(document).unwrap()["openapi"], "3.1.0");
        let mut ids = std::collections::BTreeSet::new();
        for (path, item) in &document.paths.paths {
            for (method, operation) in operations(item) {
                let maturity = operation.extensions.as_ref().and_then(|all| all.get("x-maturity")).cloned();
                let maturity = maturity.unwrap_or_else(|| panic!("{method} {path} has no maturity"));
                assert!(["Beta", "Stable", "General Availability"].contains(&maturity.as_str().unwrap()));
                assert!(operation.summary.is_some(), "{method} {path}");
                assert!(ids.insert(operation.operation_id.clone().unwrap()), "{method} {path}");
                for status in ["401", "404", "500"] {
                    assert!(operation.responses.responses.contains_key(status), "{method} {path} {status}");
                }
            }
        }
    }
}
