//! Detects query parameters and body members that an operation does not know, from the OpenAPI document
//! (`control/README.md`, "Unknown members").
//!
//! The document is the only declaration: handlers receive only what it names. The rest is listed in `X-Ignored`, or
//! refused if the client asks for that by `Prefer: handling=strict` (RFC 7240). A body on an operation without one is
//! treated alike, except on DELETE: there it is always refused, because it may be meant to select.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
};

use crate::known_members::{BodySchema, Unknown, encode};
use axum::{
    body::{Body, HttpBody as _},
    extract::{MatchedPath, Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, Method},
    middleware::Next,
    response::{IntoResponse, Response},
};
use serde_json::Value;
use shared::problem::Code;

use crate::{
    access::TOKEN_PARAMETER,
    api_error::ApiError,
    extract::{pairs, read_body},
    request_error::RequestError,
};

/// Names what of a request was ignored.
pub const IGNORED: HeaderName = HeaderName::from_static("x-ignored");

/// Names the preference of the request that was applied.
pub const APPLIED: HeaderName = HeaderName::from_static("preference-applied");

const PREFER: HeaderName = HeaderName::from_static("prefer");

/// One operation.
#[derive(Debug)]
pub struct Operation {
    parameters: BTreeSet<String>,
    /// Whether it declares a body of any kind.
    takes_body: bool,
    body: Option<Value>,
    answer: Option<Value>,
    /// Holds the schemas that others refer to.
    document: Arc<Value>,
}

/// Every operation, by method and path as the route table writes it.
#[derive(Debug)]
pub struct Operations(BTreeMap<(String, String), Operation>);

impl Operations {
    /// Those of an OpenAPI document.
    #[must_use]
    pub fn of(document: &Arc<Value>) -> Self {
        let mut by_route = BTreeMap::new();
        for (path, item) in document["paths"].as_object().into_iter().flatten() {
            for (method, operation) in item.as_object().into_iter().flatten() {
                // An answer without a body: what may be read at the same path is read-only all the same.
                let answer = answer(operation).or_else(|| answer(item.get("get")?));
                let operation = Operation::of(document, operation, answer);
                by_route.insert((method.to_ascii_uppercase(), path.clone()), operation);
            }
        }
        Self(by_route)
    }

    /// The operation of a route, by its method and its path as the route table writes it: `/thngs/{id}`.
    #[must_use]
    pub fn find(&self, method: &Method, path: &str) -> Option<&Operation> {
        let method = if *method == Method::HEAD { Method::GET } else { method.clone() };
        self.0.get(&(method.to_string(), path.to_owned()))
    }
}

impl Operation {
    fn of(document: &Arc<Value>, operation: &Value, answer: Option<&Value>) -> Self {
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let in_query = parameters.filter(|parameter| parameter["in"] == "query");
        Self {
            parameters: in_query
                .filter_map(|parameter| Some(parameter["name"].as_str()?.to_owned()))
                .collect(),
            takes_body: operation.get("requestBody").is_some(),
            body: operation.get("requestBody").and_then(schema).cloned(),
            answer: answer.cloned(),
            document: document.clone(),
        }
    }

    /// Whether the operation has this query parameter; a key is allowed in every query.
    pub fn has_parameter(&self, name: &str) -> bool {
        name == TOKEN_PARAMETER || self.parameters.contains(name)
    }

    /// Classifies a body of an operation that takes none.
    fn read_undeclared(bytes: &[u8]) -> Undeclared {
        if bytes.trim_ascii().is_empty() {
            return Undeclared::Nothing;
        }
        match serde_json::from_slice(bytes) {
            Ok(Value::Null) => Undeclared::Nothing,
            Ok(Value::Array(items)) if items.is_empty() => Undeclared::Nothing,
            Ok(Value::String(text)) if text.is_empty() => Undeclared::Nothing,
            Ok(Value::Object(members)) if members.is_empty() => Undeclared::Nothing,
            Ok(Value::Object(members)) => {
                let mut unknown = Unknown::default();
                members.keys().for_each(|name| unknown.push(encode(name)));
                Undeclared::Members(unknown)
            }
            Ok(Value::Array(_) | Value::String(_) | Value::Bool(_) | Value::Number(_)) | Err(_) => {
                Undeclared::Nameless
            }
        }
    }

    /// Removes the members of a body that the operation does not know.
    pub fn remove_unknown(&self, body: &mut Value) -> Unknown {
        let Some(request) = &self.body else { return Unknown::default() };
        BodySchema { request, answer: self.answer.as_ref(), document: &self.document }.remove_unknown(body)
    }
}

/// What a body says to an operation that takes none.
#[derive(Debug, PartialEq, Eq)]
enum Undeclared {
    /// Nothing: some clients always send `{}` or `null`.
    Nothing,
    /// Members, each by its name.
    Members(Unknown),
    /// Something without names: a list, a number, text that is not JSON.
    Nameless,
}

fn answer(operation: &Value) -> Option<&Value> {
    ["201", "200"].iter().find_map(|status| schema(operation["responses"].get(*status)?))
}

fn schema(content: &Value) -> Option<&Value> {
    content.pointer("/content/application~1json/schema")
}

/// What one request says that its operation does not know; the extractors fill it, the layer writes it.
#[derive(Debug, Clone)]
pub struct Ignored {
    operation: &'static Operation,
    is_strict: bool,
    names: Arc<Mutex<Unknown>>,
}

impl Ignored {
    /// Whether a query parameter is one of the operation.
    pub fn has_parameter(&self, name: &str) -> bool {
        self.operation.has_parameter(name)
    }

    /// Removes unknown members from a body; refuses it if the client wants that.
    pub fn check(&self, body: &mut Value) -> Result<(), ApiError> {
        let unknown = self.operation.remove_unknown(body);
        if self.is_strict && !unknown.is_empty() {
            let faults = unknown.faults("member");
            self.names.lock().unwrap_or_else(PoisonError::into_inner).extend(unknown);
            return Err(ApiError::faults(Code::Invalid, faults));
        }
        self.names.lock().unwrap_or_else(PoisonError::into_inner).extend(unknown);
        Ok(())
    }

    /// Removes the body of a request whose operation takes none, and records its members as ignored.
    ///
    /// Old clients send a body with a GET. With `is_refused`, a body with content is an error.
    async fn check_undeclared(&self, request: Request, is_refused: bool) -> Result<Request, ApiError> {
        if self.operation.takes_body || request.body().is_end_stream() {
            return Ok(request);
        }
        let (parts, body) = request.into_parts();
        let bytes = read_body(Request::from_parts(parts.clone(), body)).await?;
        let unknown = match Operation::read_undeclared(&bytes) {
            Undeclared::Members(unknown) => unknown,
            Undeclared::Nameless if is_refused => {
                return Err(RequestError::TakesNoBody.into());
            }
            Undeclared::Nothing | Undeclared::Nameless => Unknown::default(),
        };
        let faults = if is_refused { unknown.faults("member") } else { Vec::new() };
        self.names.lock().unwrap_or_else(PoisonError::into_inner).extend(unknown);
        if faults.is_empty() {
            Ok(Request::from_parts(parts, Body::empty()))
        } else {
            Err(ApiError::faults(Code::Invalid, faults))
        }
    }
}

/// The layer: finds unknown parameters before the operation runs, and lists in the response what was ignored.
pub async fn name_unknown(
    State(operations): State<&'static Operations>,
    mut request: Request,
    next: Next,
) -> Response {
    let path = request.extensions().get::<MatchedPath>();
    let Some(operation) = path.and_then(|path| operations.find(request.method(), path.as_str())) else {
        return next.run(request).await;
    };
    let handling = handling(request.headers());
    let mut unknown = Unknown::default();
    let mut seen = BTreeSet::new();
    for (name, _) in pairs(request.uri().query().unwrap_or_default()) {
        if !operation.has_parameter(&name) && seen.insert(name.clone()) {
            unknown.push(encode(&name));
        }
    }
    let is_strict = handling == Some(Handling::Strict);
    // A DELETE that ignored `?from=` would delete what was to be kept, and a list that ignored `filter` would return
    // more than was asked for.
    let is_delete = *request.method() == Method::DELETE;
    let is_selection = is_delete || seen.contains("filter");
    let is_refused = (is_strict || is_selection) && !unknown.is_empty();
    let faults = if is_refused { unknown.faults("parameter") } else { Vec::new() };
    let ignored = Ignored { operation, is_strict, names: Arc::new(Mutex::new(unknown)) };
    request.extensions_mut().insert(ignored.clone());
    let mut response = if is_refused {
        ApiError::faults(Code::InvalidParameter, faults).into_response()
    } else {
        match ignored.check_undeclared(request, is_strict || is_delete).await {
            Ok(request) => next.run(request).await,
            Err(error) => error.into_response(),
        }
    };
    let headers = response.headers_mut();
    let names = ignored.names.lock().unwrap_or_else(PoisonError::into_inner);
    if !names.is_empty()
        && let Ok(value) = HeaderValue::from_str(&names.header())
    {
        headers.insert(IGNORED, value);
    }
    if let Some(handling) = handling {
        headers.insert(APPLIED, HeaderValue::from_static(handling.as_str()));
    }
    response
}

/// What a client wants of what is not known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Handling {
    Strict,
    Lenient,
}

impl Handling {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Strict => "handling=strict",
            Self::Lenient => "handling=lenient",
        }
    }
}

/// The first `handling` among the preferences of a request.
fn handling(headers: &HeaderMap) -> Option<Handling> {
    let lines = headers.get_all(PREFER).iter().filter_map(|value| value.to_str().ok());
    lines.flat_map(|line| line.split(',')).find_map(|preference| {
        let (name, value) = preference.split(';').next()?.split_once('=')?;
        let value = value.trim().trim_matches('"');
        match name.trim().eq_ignore_ascii_case("handling") {
            true if value.eq_ignore_ascii_case("strict") => Some(Handling::Strict),
            true if value.eq_ignore_ascii_case("lenient") => Some(Handling::Lenient),
            true | false => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preferences_are_read_as_rfc_7240_writes_them() {
        for (lines, expected) in [
            (&["handling=strict"][..], Some(Handling::Strict)),
            (&["respond-async, Handling = \"strict\"; x=1"], Some(Handling::Strict)),
            (&["return=minimal", "handling=lenient, handling=strict"], Some(Handling::Lenient)),
            (&["handling"], None),
            (&["handling=other"], None),
            (&[], None),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(PREFER, HeaderValue::from_static(line));
            }
            assert_eq!(handling(&headers), expected, "{lines:?}");
        }
    }

    #[test]
    fn undeclared_bodies_are_empty_named_or_unnamed() {
        for (body, expected) in [
            ("", None),
            (" \r\n", None),
            ("{}", None),
            (" null ", None),
            ("[]", None),
            ("\"\"", None),
            ("{\"x\":null}", Some("x")),
            ("[{}]", Some("")),
            ("0", Some("")),
            ("false", Some("")),
            ("\"x\"", Some("")),
            ("{\"x\":", Some("")),
            ("x=1", Some("")),
            ("\0", Some("")),
        ] {
            let found = match Operation::read_undeclared(body.as_bytes()) {
                Undeclared::Nothing => None,
                Undeclared::Members(unknown) => Some(unknown.header()),
                Undeclared::Nameless => Some(String::new()),
            };
            assert_eq!(found.as_deref(), expected, "{body:?}");
        }
    }
}
