//! The body that sets quotas.

use serde_json::Value;

use super::{
    limits::integer,
    members::Members,
    quota::{MAX_LIMIT, Quota, Setting},
};

/// No limit.
pub const UNLIMITED: &str = "unlimited";

/// The limit of all accounts.
pub const DEFAULT: &str = "default";

/// Reads what one quota is set to, as a body or a command says it.
///
/// # Errors
/// What it must be.
pub fn parse_setting(value: &Value) -> Result<Setting, String> {
    let number = integer(value).and_then(|number| u64::try_from(number).ok());
    match (number.filter(|number| *number <= MAX_LIMIT), value.as_str()) {
        (Some(most), _) => Ok(Setting::Most(most)),
        (None, Some(UNLIMITED)) => Ok(Setting::Unlimited),
        (None, Some(DEFAULT)) => Ok(Setting::Default),
        (None, _) => Err(format!("must be an integer of 0 to {MAX_LIMIT}, {UNLIMITED} or {DEFAULT}")),
    }
}

/// Reads the quotas that a body names; the others stay.
///
/// # Errors
/// Every fault.
pub fn parse_quotas(value: &Value) -> Result<Vec<(Quota, Setting)>, Vec<String>> {
    let mut members = Members::of(value)?;
    let mut changes = Vec::new();
    for quota in Quota::ALL {
        let Some(given) = members.raw(quota.as_str()) else { continue };
        match parse_setting(given) {
            Ok(setting) => changes.push((quota, setting)),
            Err(fault) => members.fault(format!("{quota} {fault}.")),
        }
    }
    members.finish(Some(changes))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn quotas_are_numbers_or_words() {
        let body = json!({"things": 10, "links": "unlimited", "users": "default", "uploads": null, "x": 1});
        assert_eq!(
            parse_quotas(&body),
            Ok(vec![
                (Quota::Things, Setting::Most(10)),
                (Quota::Links, Setting::Unlimited),
                (Quota::Users, Setting::Default)
            ])
        );
        assert_eq!(parse_quotas(&json!({"streams": 0})), Ok(vec![(Quota::Streams, Setting::Most(0))]));
        let wrong =
            json!({"things": -1, "links": 1.5, "users": "none", "uploads": [], "streams": MAX_LIMIT + 1});
        let faults = parse_quotas(&wrong).unwrap_err();
        assert_eq!(faults.len(), 5, "{faults:?}");
        assert!(faults.iter().all(|fault| fault.contains("must be an integer of 0 to")), "{faults:?}");
        assert_eq!(parse_quotas(&json!([])).unwrap_err().len(), 1);
    }
}
