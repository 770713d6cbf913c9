//! The docs page, made from the OpenAPI document; self-contained, without scripts.

use std::collections::BTreeMap;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use shared::problem::Code;
use utoipa::openapi::{
    OpenApi, RefOr,
    path::{Operation, ParameterIn},
};

use super::openapi::{operations, parameters};

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;\
    color:#222;background:#fff}h1,h2{line-height:1.2}h2{margin-top:2.5rem;border-bottom:1px solid #ddd}\
    h3{font-size:1rem;margin:1.5rem 0 .25rem}code{font:14px/1.4 ui-monospace,monospace}\
    table{border-collapse:collapse;width:100%;margin:.5rem 0}td,th{text-align:left;vertical-align:top;\
    padding:.25rem .75rem .25rem 0;border-bottom:1px solid #eee}.method{display:inline-block;min-width:4rem;\
    font-weight:700}.maturity{font-weight:400;font-size:.8rem;color:#555;border:1px solid #bbb;border-radius:.5rem;\
    padding:0 .5rem;margin-left:.5rem}@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}\
    td,th{border-color:#333}h2{border-color:#444}.maturity{color:#aaa;border-color:#555}a{color:#8cf}}";

/// The whole page as HTML.
pub(super) fn page(document: &OpenApi) -> String {
    let mut groups: BTreeMap<&str, Vec<(&str, &str, &Operation)>> = BTreeMap::new();
    for (path, item) in &document.paths.paths {
        for (method, operation) in operations(item) {
            let group = operation.tags.as_ref().and_then(|tags| tags.first()).map_or("Other", String::as_str);
            groups.entry(group).or_default().push((path, method, operation));
        }
    }
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (document.info.title) " API" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (document.info.title) " API" }
                (introduction(document))
                @for (group, operations) in &groups {
                    h2 id=(group.to_lowercase()) { (group) }
                    @for (path, method, operation) in operations { (describe(path, method, operation)) }
                }
                (errors())
            }
        }
    }
    .into_string()
}

fn introduction(document: &OpenApi) -> Markup {
    html! {
        @if let Some(text) = &document.info.description { p { (prose(text)) } }
        p {
            "Send the API key in the header " code { "Authorization" } ", or as " code { "?access_token=" }
            ". Bodies are JSON of at most 1 MiB. Lists hold up to " code { "perPage" }
            " rows (1 to 100, default 30); the header " code { "Link" }
            " with " code { "rel=\"next\"" } " holds the percent-encoded URL of the next page, if there is one."
        }
        p {
            "Machine-readable: " a href="/openapi.json" { "openapi.json" } " (OpenAPI 3.1). Errors: "
            a href="#errors" { "table of codes" } "."
        }
    }
}

fn describe(path: &str, method: &str, operation: &Operation) -> Markup {
    let maturity =
        operation.extensions.as_ref().and_then(|all| all.get("x-maturity")).and_then(|m| m.as_str());
    let parameters = parameters(operation);
    html! {
        h3 id=[operation.operation_id.as_ref()] {
            span.method { (method) } code { (path) }
            @if let Some(maturity) = maturity { span.maturity { (maturity) } }
        }
        @if let Some(summary) = &operation.summary { p { (prose(summary)) } }
        @if !parameters.is_empty() {
            table {
                @for parameter in &parameters {
                    tr {
                        td { code { (parameter.name) } }
                        td { (place(&parameter.parameter_in)) }
                        td { @if let Some(text) = &parameter.description { (prose(text)) } }
                    }
                }
            }
        }
        table {
            @for (status, response) in &operation.responses.responses {
                @if let RefOr::T(response) = response {
                    tr { td { code { (status) } } td { (prose(&response.description)) } }
                }
            }
        }
    }
}

/// Text in which backticks stand around code.
fn prose(text: &str) -> Markup {
    html! {
        @for (index, part) in text.split('`').enumerate() {
            @if index % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

fn place(parameter_in: &ParameterIn) -> &'static str {
    match parameter_in {
        ParameterIn::Query | ParameterIn::QueryString => "query",
        ParameterIn::Path => "path",
        ParameterIn::Header => "header",
        ParameterIn::Cookie => "cookie",
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
    use crate::http::router::operations as document;

    #[test]
    fn the_page_has_every_operation_and_every_code_and_nothing_from_outside() {
        let document = document();
        let page = page(&document);
        for (path, item) in &document.paths.paths {
            for (method, operation) in operations(item) {
                let id = operation.operation_id.as_deref().unwrap();
                assert!(page.contains(&format!("<h3 id=\"{id}\">")), "{method} {path}");
            }
        }
        for code in Code::ALL {
            assert!(page.contains(&format!("id=\"error-{}\"", *code as u32)), "{code:?}");
        }
        for outside in ["http://", "https://", "<script", "src="] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn every_query_parameter_is_known_to_the_check_of_the_query() {
        for (path, item) in &document().paths.paths {
            for (method, operation) in operations(item) {
                for parameter in parameters(operation) {
                    let in_query = matches!(parameter.parameter_in, ParameterIn::Query);
                    let is_known = crate::http::extract::KNOWN.contains(&parameter.name.as_str());
                    assert!(!in_query || is_known, "{method} {path}: {}", parameter.name);
                }
            }
        }
    }

    #[test]
    fn every_operation_is_described() {
        let document = document();
        assert_eq!(serde_json::to_value(&document).unwrap()["openapi"], "3.1.0");
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
