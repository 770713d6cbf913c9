//! Reads the bodies of updates of accounts.

use serde_json::Value;

use super::{
    authority::AUTHORITY_FIELDS,
    body::{Purpose, custom_fields, name, texts},
    limits,
    members::Members,
    personal_data_days, scan_retention, target_hosts,
    tenant::AccountChange,
};

impl AccountChange {
    /// Reads the body of `PUT /accounts/:id`.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let change = Self {
            name: name(&mut members, Purpose::Update),
            user_rights: members.parsed("userRights"),
            user_registration: members.parsed("userRegistration"),
            provider_sign_in: members.boolean("providerSignIn"),
            second_factor_required: members.boolean("secondFactorRequired"),
            approve_bulk_changes: members.boolean("approveBulkChanges"),
            thng_writable_custom_fields: thng_writable(&mut members),
            private_targets: members.boolean("privateTargets"),
            target_hosts: target_hosts::read(&mut members),
            scan_retention_days: scan_retention::read(&mut members),
            personal_data: members.parsed("personalData"),
            personal_data_days: personal_data_days::read(&mut members),
            custom_fields: custom_fields(&mut members),
        };
        members.finish(Some(change))
    }
}

/// Names of custom fields; those that verdicts go by are not a Thing's to write.
fn thng_writable(members: &mut Members<'_>) -> Option<Vec<String>> {
    const MEMBER: &str = "thngWritableCustomFields";
    let names = texts(members, MEMBER, limits::MAX_KEY)?;
    for (index, name) in names.iter().enumerate() {
        if AUTHORITY_FIELDS.contains(&name.as_str()) {
            members
                .fault(format!("{MEMBER}[{index}]: {name} is never written by a Thing: verdicts go by it."));
        }
    }
    Some(names)
}

#[cfg(test)]
mod tests {
    use kernel::domain::body::assert_faults;
    use serde_json::json;

    use super::*;

    #[test]
    fn each_fault_of_an_account_is_named() {
        for (body, faults) in [
            (json!({"customFields": {"a": 1}}), vec![]),
            (json!({"customFields": 1, "name": 2}), vec!["name", "customFields"]),
            (json!({"userRights": "open", "thngWritableCustomFields": ["a", "b"]}), vec![]),
            (json!({"providerSignIn": false, "secondFactorRequired": true}), vec![]),
            (
                json!({"providerSignIn": "no", "secondFactorRequired": 1}),
                vec!["providerSignIn must be", "secondFactorRequired must be"],
            ),
            (json!({"userRights": "all"}), vec!["userRights: must be own or open"]),
            (json!({"userRights": true}), vec!["userRights must be a string"]),
            (json!({"approveBulkChanges": true}), vec![]),
            (json!({"approveBulkChanges": "yes"}), vec!["approveBulkChanges must be true or false"]),
            (json!({"userRegistration": "caller"}), vec![]),
            (json!({"userRegistration": "open"}), vec!["userRegistration: must be mail or caller"]),
            (
                json!({"thngWritableCustomFields": ["a", "factory"]}),
                vec!["thngWritableCustomFields[1]: factory is never"],
            ),
            (json!({"scanRetentionDays": 1}), vec![]),
            (json!({"scanRetentionDays": 3650}), vec![]),
            (
                json!({"scanRetentionDays": 0}),
                vec!["scanRetentionDays must be a whole number of days from 1 to 3650"],
            ),
            (json!({"scanRetentionDays": 3651}), vec!["scanRetentionDays"]),
            (json!({"scanRetentionDays": 1.5}), vec!["scanRetentionDays"]),
            (json!({"scanRetentionDays": "30"}), vec!["scanRetentionDays"]),
            (json!({"personalDataDays": 1}), vec![]),
            (json!({"personalDataDays": 3650}), vec![]),
            (json!({"personalDataDays": null}), vec![]),
            (
                json!({"personalDataDays": 0}),
                vec!["personalDataDays must be a whole number of days from 1 to 3650"],
            ),
            (json!({"personalDataDays": 3651}), vec!["personalDataDays must be"]),
            (json!({"personalDataDays": "30"}), vec!["personalDataDays must be"]),
            (json!({"personalDataDays": 1.5}), vec!["personalDataDays must be"]),
            (json!({"personalData": "full"}), vec![]),
            (json!({"personalData": "none"}), vec![]),
            (json!({"personalData": "all"}), vec!["personalData: must be full, truncated or none"]),
            (json!({"personalData": "None"}), vec!["personalData: must be"]),
            (json!({"personalData": null}), vec![]),
            (json!({"personalData": true}), vec!["personalData must be a string"]),
            (json!({"thngWritableCustomFields": "a"}), vec!["thngWritableCustomFields must be an array"]),
        ] {
            assert_faults(&body, AccountChange::parse, &faults);
        }
    }

    #[test]
    fn days_of_personal_data_are_set_kept_and_taken_away() {
        let days = |body: Value| AccountChange::parse(&body).map(|change| change.personal_data_days);
        assert_eq!(days(json!({"personalDataDays": 30})), Ok(Some(Some(30))));
        assert_eq!(days(json!({"personalDataDays": null})), Ok(Some(None)));
        assert_eq!(days(json!({"name": "x"})), Ok(None));
    }
}
