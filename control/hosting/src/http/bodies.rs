//! Request bodies of suspensions and take-downs.

use serde_json::Value;
use web::bodies::{Body, millis, text};

use crate::domain::hosted_account::MAX_REASON;

/// The body of an operation, if it is one of these.
#[must_use]
pub fn of(operation: &str) -> Option<Value> {
    Some(match operation {
        "suspendAccount" => Body::new("Why")
            .must("reason", text(1, MAX_REASON))
            .like("reason", "Its links lead to counterfeit shops")
            .done(),
        "takeLinkDown" | "takeHostDown" => Body::new("Why, and until when")
            .must("reason", text(1, MAX_REASON))
            .may("until", millis())
            .like("reason", "Reported as phishing")
            .done(),
        _ => return None,
    })
}
