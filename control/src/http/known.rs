//! Every operation with its parameters and its body, as the OpenAPI document declares them.

use std::sync::LazyLock;

use axum::http::Method;
use events::domain::topic::{ActionScope, Topic};
use serde_json::Value;
use web::known::Operations;
use web::known_members::Unknown;

pub(super) static OPERATIONS: LazyLock<Operations> =
    LazyLock::new(|| Operations::of(&super::router::document()));

/// Removes members of a message that the corresponding request does not know.
pub(crate) fn remove_unknown(topic: &Topic, message: &mut Value) -> Unknown {
    let (method, path) = match topic {
        Topic::Properties(owner, _) => (Method::PUT, format!("/{}s/{{id}}/properties", owner.as_str())),
        Topic::Property(owner, ..) => {
            (Method::PUT, format!("/{}s/{{id}}/properties/{{key}}", owner.as_str()))
        }
        Topic::Actions(ActionScope::Account, _) => (Method::POST, "/actions/{type}".to_owned()),
        Topic::Actions(ActionScope::Thng(_), _) => (Method::POST, "/thngs/{id}/actions/{type}".to_owned()),
        Topic::Actions(ActionScope::Product(_), _) => {
            (Method::POST, "/products/{id}/actions/{type}".to_owned())
        }
        Topic::Actions(ActionScope::Collection(_), _) => {
            (Method::POST, "/collections/{id}/actions/{type}".to_owned())
        }
        Topic::Redirections(_) | Topic::Jobs(_) => return Unknown::default(),
    };
    OPERATIONS.find(&method, &path).map(|found| found.remove_unknown(message)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use web::access::TOKEN_PARAMETER;

    use super::*;

    #[test]
    fn every_route_has_its_parameters_and_its_schema() {
        let find = |method: Method, path: &str| OPERATIONS.find(&method, path).unwrap();
        assert!(find(Method::HEAD, "/thngs").has_parameter("perPage"));
        assert!(!find(Method::POST, "/thngs").has_parameter("perPage"));
        let document = super::super::router::document();
        let mut count = 0;
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                count += 1;
                let name = Method::from_bytes(method.to_ascii_uppercase().as_bytes()).unwrap();
                assert!(find(name, path).has_parameter(TOKEN_PARAMETER), "{method} {path}");
                let takes_body = operation.get("requestBody").is_some();
                assert!(!takes_body || method == "post" || method == "put", "{method} {path}");
            }
        }
        assert!(count > 100);
    }
}
