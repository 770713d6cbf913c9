//! Request bodies of suspensions, take-downs and quotas.

use serde_json::{Value, json};
use web::bodies::{Body, millis, text};

use crate::domain::{
    hosted_account::MAX_REASON,
    quota::{MAX_LIMIT, Quota},
    quota_change::{DEFAULT, UNLIMITED},
};

pub(super) fn suspension() -> Value {
    Body::new("Why")
        .must("reason", text(1, MAX_REASON))
        .like("reason", "Its links lead to counterfeit shops")
        .done()
}

pub(super) fn take_down() -> Value {
    Body::new("Why, and until when")
        .must("reason", text(1, MAX_REASON))
        .may("until", millis())
        .like("reason", "Reported as phishing")
        .done()
}

pub(super) fn account_quotas() -> Value {
    quotas(&[UNLIMITED, DEFAULT])
}

pub(super) fn default_quotas() -> Value {
    quotas(&[UNLIMITED])
}

fn quotas(words: &[&str]) -> Value {
    let limit = json!({"anyOf": [
        {"type": "integer", "format": "int64", "minimum": 0, "maximum": MAX_LIMIT},
        {"type": "string", "enum": words},
    ]});
    let body = Body::new("The quotas to change; the others stay");
    let body = Quota::ALL.into_iter().fold(body, |body, quota| body.may(quota.as_str(), limit.clone()));
    body.like("things", 1_000_000).like("links", UNLIMITED).done()
}
