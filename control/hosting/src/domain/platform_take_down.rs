//! Take-downs of links and hosts across accounts, and the body of one.

use serde_json::Value;
use shared::{id::AccountId, time::UnixMillis, withheld::Withheld};

use super::{body, hosted_account::read_reason, members::Members};

/// A link, or every link that leads to a host, which nobody is redirected by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlatformTakeDown {
    /// The link or the host.
    pub what: Withheld,
    /// The account of the link.
    pub account: Option<AccountId>,
    /// Why; the owner of the link sees it.
    pub reason: String,
    /// Who did it.
    pub author: String,
    /// Since when.
    pub created_at: UnixMillis,
    /// When it ends by itself.
    pub until: Option<UnixMillis>,
    /// Order of insertion, for paging.
    pub seq: i64,
}

/// What a take-down is made with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTakeDown {
    /// Why.
    pub reason: String,
    /// When it ends by itself.
    pub until: Option<UnixMillis>,
}

/// Reads the body of a take-down.
///
/// # Errors
/// Every fault; also an end that is over.
pub fn parse_take_down(value: &Value, now: UnixMillis) -> Result<NewTakeDown, Vec<String>> {
    let mut members = Members::of(value)?;
    let reason = read_reason(&mut members);
    let until = body::millis(&mut members, "until");
    if until.is_some_and(|until| until <= now) {
        members.fault("until must be later than now.");
    }
    members.finish(reason.map(|reason| NewTakeDown { reason, until }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_take_down_has_a_reason_and_may_end() {
        let parse = |body| parse_take_down(&body, UnixMillis(1_000));
        let new = |until| NewTakeDown { reason: "phishing".to_owned(), until };
        assert_eq!(parse(json!({"reason": "phishing"})), Ok(new(None)));
        assert_eq!(parse(json!({"reason": "phishing", "until": 1_001})), Ok(new(Some(UnixMillis(1_001)))));
        for (body, faults) in [
            (json!({}), vec!["reason is required."]),
            (json!({"reason": "", "until": 1_000}), vec!["reason ", "until must be later"]),
            (json!({"reason": "x", "until": "soon"}), vec!["until must be"]),
        ] {
            let found = parse(body.clone()).unwrap_err();
            assert_eq!(found.len(), faults.len(), "{body}: {found:?}");
            assert!(found.iter().zip(&faults).all(|(found, start)| found.starts_with(start)), "{found:?}");
        }
    }
}
