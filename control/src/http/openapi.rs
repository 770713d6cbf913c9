//! The OpenAPI document: what the macros cannot know, and what all operations share.

mod parameters;

use std::collections::BTreeSet;

use axum::http::Method;
use serde::Serialize;
use serde_json::{Map, Value, json};
use shared::problem::{Code, Problem};
use signin::domain::token::COOKIE;
use utoipa::{
    OpenApi, ToSchema,
    openapi::{
        OpenApi as Document, RefOr, ResponseBuilder,
        path::{Operation, PathItem},
        security::{ApiKey, ApiKeyValue, SecurityRequirement, SecurityScheme},
    },
};

use web::routes::{Idempotency, Policies, Policy};

/// Where the docs are, in examples.
const EXAMPLE_DOCS: &str = "https://api.example.com/docs";

/// The body of every error.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Problem)]
struct ProblemSchema {
    /// The HTTP status.
    #[schema(example = 404)]
    status: u16,
    /// Every fault found, each naming its member or parameter.
    #[schema(example = json!(["The thng UKXAGyEf8SQ5eTDmVgGpHqAa was not found."]))]
    errors: Vec<String>,
    /// A stable number; the docs list them.
    #[schema(example = 40401)]
    code: u32,
    /// Where the code is explained.
    #[schema(example = "https://api.example.com/docs#error-40401")]
    more_info: String,
}

#[derive(OpenApi)]
#[openapi(
    info(title = "Waymark", description = "Products, Thngs, short URLs and what happens to them. \
        Every path answers with and without the prefix `/v2`. Parameters and members that an operation does not know \
        have no effect, and the header `X-Ignored` names them; with `Prefer: handling=strict` they are refused (400)."),
    servers((url = "/"), (url = "/v2")),
    components(schemas(ProblemSchema))
)]
struct Base;

/// The document that the routes are added to.
pub(super) fn base() -> Document {
    Base::openapi()
}

/// Adds to every operation what all have in common: keys, errors, and `Beta` where none states another maturity.
pub(super) fn completed(mut document: Document, policies: &Policies) -> Document {
    let components = document.components.get_or_insert_default();
    let header =
        ApiKeyValue::with_description("Authorization", "The API key; `Token KEY` and `Bearer KEY` too.");
    components.add_security_scheme("key", SecurityScheme::ApiKey(ApiKey::Header(header)));
    let query = ApiKeyValue::with_description("access_token", "The API key, where no header can be sent.");
    components.add_security_scheme("accessToken", SecurityScheme::ApiKey(ApiKey::Query(query)));
    let cookie = ApiKeyValue::with_description(
        COOKIE,
        "The session of an operator, for the console. It counts below `/console/api/` only, where each operation of the \
         API is reached too; `Sec-Fetch-Site` must be `same-origin` there, and no key is taken.",
    );
    components.add_security_scheme("session", SecurityScheme::ApiKey(ApiKey::Cookie(cookie)));
    document.security = Some(vec![
        SecurityRequirement::new("key", Vec::<String>::new()),
        SecurityRequirement::new("accessToken", Vec::<String>::new()),
    ]);
    for (path, item) in &mut document.paths.paths {
        for (method, operation) in operations_mut(item) {
            add_errors(&method, operation, policies.find(&method, path));
            let extensions = operation.extensions.get_or_insert_default();
            extensions.entry("x-maturity".to_owned()).or_insert_with(|| json!("Beta"));
        }
    }
    document
}

/// The operations of a path, in a fixed order.
#[cfg(test)]
pub(super) fn operations(item: &PathItem) -> Vec<(&'static str, &Operation)> {
    let all = [("GET", &item.get), ("POST", &item.post), ("PUT", &item.put), ("DELETE", &item.delete)];
    all.into_iter().filter_map(|(name, operation)| operation.as_ref().map(|o| (name, o))).collect()
}

fn operations_mut(item: &mut PathItem) -> Vec<(Method, &mut Operation)> {
    let all = [
        (Method::GET, &mut item.get),
        (Method::POST, &mut item.post),
        (Method::PUT, &mut item.put),
        (Method::DELETE, &mut item.delete),
    ];
    all.into_iter().filter_map(|(method, operation)| operation.as_mut().map(|o| (method, o))).collect()
}

/// What operations answer when they fail: one code for each status, with its example.
const ERRORS: &[Code] = &[
    Code::InvalidParameter,
    Code::KeyUnknown,
    Code::Forbidden,
    Code::NotFound,
    Code::Conflict,
    Code::ChangedMeanwhile,
    Code::TooLarge,
    Code::UnsupportedMediaType,
    Code::RangeUnsatisfiable,
    Code::CannotRender,
    Code::TooManyRequests,
    Code::Internal,
    Code::Unavailable,
];

fn add_errors(method: &Method, operation: &mut Operation, policy: Policy) {
    let takes_body = *method == Method::POST || *method == Method::PUT;
    let draws = operation.operation_id.as_ref().is_some_and(|id| id.to_lowercase().contains("redirect"));
    for code in ERRORS {
        let is_wanted = match code {
            Code::CannotRender => draws,
            Code::ChangedMeanwhile => policy.takes_tag,
            Code::RangeUnsatisfiable => policy.takes_range,
            Code::TooLarge | Code::UnsupportedMediaType => takes_body,
            _ => true,
        };
        if is_wanted {
            // An operation's own description of an error takes precedence.
            let response = ResponseBuilder::new().description(code.text()).build();
            let responses = &mut operation.responses.responses;
            responses.entry(code.status().to_string()).or_insert(RefOr::T(response));
        }
    }
}

/// The errors as components, by the names of their codes.
fn errors() -> Value {
    let all = ERRORS.iter().map(|code| {
        let example = Problem::new(*code, Vec::new(), EXAMPLE_DOCS);
        let content = json!({"schema": {"$ref": "#/components/schemas/Problem"}, "example": example});
        let mut response = json!({"description": code.text(), "content": {"application/json": content}});
        add_headers(&mut response, "", Policy::default(), &code.status().to_string());
        (format!("{code:?}"), response)
    });
    Value::Object(all.collect())
}

/// The document as it is served: adds what the macros cannot express.
pub(super) fn render(document: &Document, policies: &Policies) -> Value {
    let mut whole = serde_json::to_value(document).unwrap_or_default();
    whole["components"]["schemas"]["JsonValue"] = web::bodies::json_value();
    whole["components"]["schemas"]["SomeJsonValue"] = web::bodies::some_json_value();
    whole["components"]["headers"] = headers();
    whole["components"]["responses"] = errors();
    for (_, schema) in whole["components"]["schemas"].as_object_mut().into_iter().flatten() {
        loosen(schema);
    }
    let items = whole["paths"].as_object_mut().into_iter().flatten();
    for (path, item) in items {
        for (method, operation) in item.as_object_mut().into_iter().flatten() {
            let name = method.to_ascii_uppercase();
            if let (Some(operation), Ok(method)) = (operation.as_object_mut(), name.parse()) {
                describe(&method, operation, policies.find(&method, path));
            }
        }
    }
    let tags = |item: &Value| -> Vec<Value> {
        item.as_object().into_iter().flatten().map(|(_, operation)| operation["tags"][0].clone()).collect()
    };
    let named = whole["paths"].as_object().into_iter().flatten().flat_map(|(_, item)| tags(item));
    let named: BTreeSet<String> = named.filter_map(|tag| tag.as_str().map(str::to_owned)).collect();
    whole["tags"] = named.iter().map(|name| json!({"name": name})).collect();
    whole
}

fn describe(method: &Method, operation: &mut Map<String, Value>, policy: Policy) {
    let id = operation.get("operationId").and_then(Value::as_str).unwrap_or_default().to_owned();
    if operation.contains_key("requestBody")
        && let Some(body) = policy.body
    {
        operation.insert("requestBody".to_owned(), body.described());
    }
    let answers = |status: &str| operation["responses"].get(status).is_some();
    let creates = *method == Method::POST && answers("201");
    let is_idempotent = policy.idempotency != Idempotency::Ignored;
    let listed = operation.entry("parameters").or_insert_with(|| json!([]));
    if let Some(all) = listed.as_array_mut() {
        if is_idempotent && !all.iter().any(|one| one["name"] == "Idempotency-Key") {
            all.push(json!({"name": "Idempotency-Key", "in": "header", "required": false,
                "description": "A repeat within a day gets the first answer", "schema": {}}));
        }
        for parameter in parameters::more(policy, all) {
            all.push(parameter);
        }
        for parameter in all {
            describe_parameter(&id, parameter);
        }
    }
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    if parameters.into_iter().any(|parameter| parameter["name"] == "wait") {
        describe_waits(&mut operation["responses"]);
    }
    if id.ends_with("Action") && creates {
        // The answer has the form of the request.
        let schema = &mut operation["responses"]["201"]["content"]["application/json"]["schema"];
        let one = schema.take();
        *schema = json!({"anyOf": [one, {"type": "array", "items": one}]});
    }
    if id.ends_with("loadFile") {
        // The signed URL, or a public file, needs no key.
        operation.insert("security".to_owned(), json!([{}, {"key": []}, {"accessToken": []}]));
    }
    for status in ["200", "202"].into_iter().filter(|_| policy.draws || id == "downloadFile") {
        if let Some(response) = operation["responses"].get_mut(status) {
            let types: &[&str] = match id.as_str() {
                "downloadFile" => &["*/*"],
                _ => &["image/png", "image/svg+xml", "application/pdf", "application/postscript"],
            };
            for media_type in types {
                response["content"][*media_type] = json!({});
            }
            if !response["content"]["application/json"].is_object() && id != "downloadFile" {
                response["content"]["application/json"] = json!({});
            }
        }
    }
    for (status, response) in operation["responses"].as_object_mut().into_iter().flatten() {
        match ERRORS.iter().find(|code| code.status().to_string() == *status) {
            Some(code) => refer(response, *code),
            None => add_headers(response, &id, policy, status),
        }
    }
}

/// Adds the responses of a write that waits for the edges.
fn describe_waits(responses: &mut Value) {
    let state = |description: &str| json!({"description": description, "content": {"application/json": {}}});
    if responses.get("202").is_none() {
        let mut lagging = state("Done; an edge had not confirmed it at the deadline");
        // Clients give the body of both the same type.
        let bodies = ["201", "200"].map(|status| &responses[status]["content"]["application/json"]);
        if let Some(body) = bodies.into_iter().find(|body| body.is_object()) {
            lagging["content"]["application/json"] = body.clone();
        }
        responses["202"] = lagging;
    }
    if responses.get("200").is_none() && responses.get("201").is_none() {
        responses["200"] = state("Done, with `wait`: how far the edges are");
    }
}

/// Puts a reference in the place of an error; it keeps a description of its own.
fn refer(response: &mut Value, code: Code) {
    let mut reference = json!({"$ref": format!("#/components/responses/{code:?}")});
    let own = response["description"].take();
    if own != code.text() {
        reference["description"] = own;
    }
    *response = reference;
}

fn add_headers(response: &mut Value, operation: &str, policy: Policy, status: &str) {
    // Successful responses also list what was ignored.
    if status.starts_with('2') {
        for name in ["X-Ignored", "Preference-Applied"] {
            response["headers"][name] = json!({"$ref": format!("#/components/headers/{name}")});
        }
    }
    let names: &[&str] = match status {
        "202" if ["createActionJob", "createTask"].contains(&operation) => &["X-Request-Id", "Location"],
        "201" => &["X-Request-Id", "Location"],
        "200" | "202" if policy.answers_tag => &["X-Request-Id", "ETag"],
        "200" if operation.starts_with("list") => &["X-Request-Id", "Link"],
        "429" | "503" => &["X-Request-Id", "Retry-After"],
        _ => &["X-Request-Id"],
    };
    for name in names {
        response["headers"][*name] = json!({"$ref": format!("#/components/headers/{name}")});
    }
}

/// Members that come from a part which may be absent as a whole: the macros say that the object may be null.
fn loosen(schema: &mut Value) {
    for part in schema.get_mut("allOf").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(choices) = part.get("oneOf").and_then(Value::as_array)
            && choices.iter().any(|choice| choice["type"] == "null")
        {
            let mut parts: Vec<Value> =
                choices.iter().filter(|choice| choice["type"] != "null").cloned().collect();
            parts.push(json!({"type": "object"}));
            *part = json!({"anyOf": parts});
        }
    }
}

/// Parameters that are the same everywhere, or that the macros describe too loosely.
fn describe_parameter(operation: &str, parameter: &mut Value) {
    let of_redirections = operation.ends_with("Redirections");
    let name = parameter["name"].as_str().unwrap_or_default().to_owned();
    let schema = match name.as_str() {
        "sortOrder" => {
            json!({"type": "string", "enum": ["ASCENDING", "DESCENDING"], "default": "DESCENDING"})
        }
        "nextPageToken" => {
            web::bodies::formatted("page-token", "Opaque; from the `Link` of the page before.")
        }
        "filter" => web::bodies::formatted(&format!("filter-{operation}"), "A filter of this list."),
        "ids" if of_redirections => {
            json!({"type": "string", "pattern": "^[A-Za-z0-9_/-]{1,64}(,[A-Za-z0-9_/-]{1,64}){0,999}$"})
        }
        "ids" => web::bodies::ids(),
        "wait" => json!({"type": "string", "enum": ["edges"]}),
        "timeout" => json!({"type": "string", "pattern": "^([0-9]{1,4}ms|[01]?[0-9]s|20s)$"}),
        "domain" => web::bodies::formatted("short-domain", "A short domain of the account."),
        "project" if parameter["in"] == "query" => {
            web::bodies::formatted("project-id", "Id of a project of the account.")
        }
        "product" if parameter["in"] == "query" => {
            web::bodies::formatted("product-id", "Id of a product of the account.")
        }
        "type" => web::bodies::formatted("action-type", "Name of a type of actions, or `all`."),
        "types" => web::bodies::formatted("event-types", "Types of events, with commas."),
        "match" => web::bodies::formatted("event-match", "A filter of events."),
        // Clients that have received nothing yet send an empty one.
        "lastEventId" => {
            json!({"type": "string", "pattern": "^((0|[1-9][0-9]{0,17})-(0|[1-9][0-9]{0,17}))?$"})
        }
        // Milliseconds, a date, or a date and time: one of the forms is enough for whoever generates values.
        "from" | "to" if operation.ends_with("Statistics") || operation == "readUnknownScans" => {
            json!({"type": "string", "format": if name == "from" { "range-begin" } else { "range-end" }})
        }
        "interval" => json!({"type": "string", "enum": ["hour", "day", "week", "month"]}),
        "state" if operation == "listDomains" => {
            json!({"type": "string", "enum": ["pending", "verified", "unproven", "refused", "all"]})
        }
        "timeZone" => json!({"type": "string", "format": "time-zone"}),
        "groupBy" => json!({"type": "string", "format": "dimensions"}),
        // Each bound may need the time beside it.
        "from" | "to" => web::bodies::time(),
        // A wrong signature is as good as none: the key decides then.
        "expires" | "signature" => json!({"type": "string"}),
        "after" | "platformId" | "evrythngId" => json!({"type": "string", "pattern": web::bodies::ID}),
        "If-Match" => json!({"type": "string", "pattern": "^(\\*|\"[0-9]{1,18}\")$"}),
        "Idempotency-Key" => {
            json!({"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]([ -~]*[!-~])?$"})
        }
        _ => return,
    };
    parameter["schema"] = schema;
    if name == "filter" {
        let is_timed = operation.ends_with("Actions")
            || operation.ends_with("ommissions")
            || operation.ends_with("Locations")
            || operation.ends_with("-property");
        let example = match operation {
            "listActionJobs" | "listTasks" | "listErasures" => Some("status=COMPLETED"),
            "listActionJobLogs" => Some("type=ERROR"),
            "listWebhookDeliveries" => Some("status=dead"),
            "listAuditEntries" => Some("resource=redirection"),
            "listPlatformAuditEntries" => Some("resource=takeDown"),
            "listCases" => Some("status=open"),
            "listPrintOrders" | "listLinkChanges" => Some("status=complete"),
            "readScanStatistics" => Some("country=DE"),
            "listRedirections" => Some("tags=summer"),
            _ => None,
        };
        if let Some(example) = example {
            parameter["example"] = json!(example);
            return;
        }
        parameter["example"] = json!(if is_timed { "timestamp>1767225600000" } else { "name=Red shoe" });
    }
}

/// Headers of answers.
fn headers() -> Value {
    let text = |required: bool, description: &str| json!({"description": description, "required": required, "schema": {"type": "string"}});
    json!({
        "X-Request-Id": text(true, "Names the request in the log; the caller's own if it sent a harmless one."),
        "Location": text(false, "Where what was made can be read."),
        "ETag": text(false, "The state of the resource, for `If-Match`; of a redirection a counted scan does not change it, nor of a key its use."),
        "Link": text(false, "The next page, percent-encoded, if there is one; `rel` is `next`."),
        "X-Ignored": text(false, "Query parameters and members of the body that the operation does not know, with \
            commas, percent-encoded, at most 20; then `...+` and how many more. They had no effect."),
        "Preference-Applied": text(false, "The preference `handling` of the request, if it had one."),
        "Retry-After": {"description": "Seconds until the same may work.", "required": true,
            "schema": {"type": "integer", "minimum": 0}},
    })
}
