//! Custom action types of an account. Their names start with `_`.

use serde_json::Value;
use shared::time::UnixMillis;

use super::action_names::is_custom;
use super::{
    action_names::MAX_TYPE_NAME,
    body::common,
    common::{Common, Stamp},
    limits::shorten,
    members::Members,
    scopes::Scopes,
};

/// A type of action of one account.
#[derive(Debug, Clone, PartialEq)]
pub struct CustomType {
    /// Its name, unique in the account.
    pub name: String,
    /// Order and times.
    pub stamp: Stamp,
    /// Everything else.
    pub details: Common,
}

impl CustomType {
    /// Who may see it besides operators.
    #[must_use]
    pub const fn scopes(&self) -> Option<&Scopes> {
        self.details.scopes.as_ref()
    }

    /// The type after a change at `now`.
    #[must_use]
    pub fn apply(self, change: Common, now: UnixMillis) -> Self {
        Self { name: self.name, stamp: self.stamp.touch(now), details: self.details.merge(change) }
    }
}

/// A new type.
#[derive(Debug, Clone, PartialEq)]
pub struct NewType {
    /// Its name.
    pub name: String,
    /// Everything else.
    pub details: Common,
}

impl NewType {
    /// Reads the body of `POST /actions`.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let name = members.text("name");
        match name {
            Some(name) if is_custom(name) => {}
            Some(name) => members.fault(format!(
                "name must be _ and 1 to {} letters, digits, '_', '.' or '-', not {:?}.",
                MAX_TYPE_NAME - 1,
                shorten(name)
            )),
            None if members.raw("name").is_none() => members.fault("name is required."),
            None => {}
        }
        let details = common(&mut members);
        members.finish(name.map(|name| Self { name: name.to_owned(), details }))
    }
}

/// Reads the body of `PUT /actions/:type`; a name in it is not changed.
///
/// # Errors
/// Every fault found, each naming its member.
pub fn parse_change(body: &Value) -> Result<Common, Vec<String>> {
    let mut members = Members::of(body)?;
    let details = common(&mut members);
    members.finish(Some(details))
}

#[cfg(test)]
mod tests {
    use kernel::domain::body::assert_faults;
    use serde_json::json;

    use super::*;

    #[test]
    fn each_fault_is_named() {
        for (body, faults) in [
            (json!({"name": "_own", "tags": ["x"], "id": 7}), vec![]),
            (json!({}), vec!["name is required"]),
            (json!({"name": 1}), vec!["name must be a string"]),
            (json!({"name": "own"}), vec!["name must be _ and"]),
            (json!({"name": "_own", "tags": 1, "scopes": 2}), vec!["tags", "scopes"]),
            (json!([]), vec!["must be a JSON object"]),
        ] {
            assert_faults(&body, NewType::parse, &faults);
        }
        assert!(parse_change(&json!({"name": "other"})).is_ok());
        assert!(parse_change(&json!({"customFields": 1})).is_err());
    }
}
