//! An account as the platform operator sees it, and the body of a suspension.

use serde_json::Value;
use shared::{id::AccountId, time::UnixMillis};

use super::{body, members::Members};

/// Longest reason, in characters.
pub const MAX_REASON: usize = 1_000;

/// An account of the platform.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostedAccount {
    /// Its id.
    pub id: AccountId,
    /// Its name.
    pub name: String,
    /// When it was made.
    pub created_at: UnixMillis,
    /// Order of insertion, for paging.
    pub seq: i64,
    /// Why it is out of service, if it is.
    pub suspension: Option<Suspension>,
}

/// Why an account is out of service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Suspension {
    /// The reason.
    pub reason: String,
    /// Who suspended it.
    pub author: String,
    /// Since when.
    pub since: UnixMillis,
}

/// Reads the body of a suspension: its reason.
///
/// # Errors
/// Every fault.
pub fn parse_suspension(value: &Value) -> Result<String, Vec<String>> {
    let mut members = Members::of(value)?;
    let reason = read_reason(&mut members);
    members.finish(reason)
}

/// Reads `reason`, which is required.
pub(super) fn read_reason(members: &mut Members<'_>) -> Option<String> {
    if members.raw("reason").is_none() {
        members.fault("reason is required.");
    }
    body::text(members, "reason", 1, MAX_REASON)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_suspension_needs_a_reason() {
        assert_eq!(parse_suspension(&json!({"reason": "unpaid", "x": 1})).as_deref(), Ok("unpaid"));
        let long = "x".repeat(MAX_REASON + 1);
        for body in
            [json!([]), json!({}), json!({"reason": ""}), json!({"reason": 1}), json!({"reason": long})]
        {
            assert_eq!(parse_suspension(&body).unwrap_err().len(), 1, "{body}");
        }
    }
}
