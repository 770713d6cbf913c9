//! Requests and answers in JSON.

use anyhow::{Context, Result};
use reqwest::{RequestBuilder, StatusCode};
use serde_json::Value;

/// Sends JSON (or nothing); gives status and JSON (`null` for an empty body).
pub async fn send(request: RequestBuilder, body: Option<Value>) -> Result<(StatusCode, Value)> {
    let request = if let Some(body) = body { request.json(&body) } else { request };
    let response = request.send().await?;
    let status = response.status();
    let bytes = response.bytes().await?;
    Ok((status, if bytes.is_empty() { Value::Null } else { serde_json::from_slice(&bytes)? }))
}

/// A member of a body that is a text.
///
/// # Errors
/// It is not there, or no text.
pub fn text(body: &Value, member: &str) -> Result<String> {
    Ok(body[member].as_str().with_context(|| format!("{member} in {body}"))?.to_owned())
}

/// The `id` of what was made.
///
/// # Errors
/// As of [`text`].
pub fn id(made: &Value) -> Result<String> {
    text(made, "id")
}

/// A body with the members of another one added, which take precedence.
#[must_use]
pub fn merged(mut body: Value, more: &Value) -> Value {
    for (name, value) in more.as_object().into_iter().flatten() {
        body[name] = value.clone();
    }
    body
}
