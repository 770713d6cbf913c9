//! What a request claims.

use kernel::domain::members::Members;
use serde_json::Value;
use shared::short_url::Host;

use super::own_host;

/// Reads the body of `POST /accounts/:id/shortDomains`.
///
/// # Errors
/// Every fault found, each naming its member.
pub fn parse(body: &Value) -> Result<Host, Vec<String>> {
    let mut members = Members::of(body)?;
    let host = match members.text("host") {
        Some(text) => own_host::parse(text).map_err(|fault| members.fault(format!("host {fault}."))).ok(),
        None => {
            if members.raw("host").is_none() {
                members.fault("host is required.");
            }
            None
        }
    };
    members.finish(host)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_claim_names_a_host() {
        assert_eq!(parse(&json!({"host": "Go.Example"})).unwrap().as_str(), "go.example");
        for (body, fault) in [
            (json!({}), "host is required."),
            (json!({"host": null}), "host is required."),
            (json!({"host": 7}), "host must be a string."),
            (json!({"host": "a.example:8080"}), "host must have no port, and be no address."),
            (json!([]), "The body must be a JSON object."),
        ] {
            assert_eq!(parse(&body).unwrap_err(), [fault], "{body}");
        }
    }
}
