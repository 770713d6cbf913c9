//! Members of answers.

use anyhow::{Context, Result};
use serde_json::Value;

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
