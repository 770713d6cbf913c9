//! The data of messages: what they hold of an event.

use serde_json::{Map, Value, json};
use shared::id::JobId;

use crate::domain::{action::Action, action_names::RESULTS, event::RedirectionEvent, property::Point};

/// A value as a message holds it: the form of the HTTP API.
#[must_use]
pub fn point_message(point: &Point) -> Value {
    json!({
        "key": point.key.as_str(),
        "value": point.value,
        "timestamp": point.timestamp.0,
        "createdAt": point.created_at.0,
    })
}

/// A redirection in a message; `change` is a member beside it.
#[must_use]
pub fn redirection_message(item: &RedirectionEvent) -> Map<String, Value> {
    let members = [
        ("shortDomain", json!(item.domain)),
        ("shortId", json!(item.short_id)),
        ("platformId", json!(item.platform_id)),
        ("evrythngId", json!(item.platform_id)),
        ("defaultRedirectUrl", json!(item.target)),
    ];
    let title = item.title.as_ref().map(|title| ("title", json!(title)));
    let tags = item.tags.as_ref().map(|tags| ("tags", json!(tags)));
    let availability = item.availability.iter().flat_map(|availability| availability.members());
    let status_code = item.status_code.member().map(|(name, code)| (name, json!(code)));
    let members = members.into_iter().chain(title).chain(tags).chain(status_code).chain(availability);
    members.map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The end of a job as a message holds it.
#[must_use]
pub fn job_message(id: JobId, status: &str) -> Value {
    json!({"id": id, "type": "ACTION_CREATION", "status": status})
}

/// The end of a print order, or of a change of many links, as a message holds it.
#[must_use]
pub fn print_order_message(id: JobId, status: &str) -> Value {
    json!({"id": id, "status": status})
}

/// An action as a message holds it: the form of the HTTP API, without `context` and `scopes`.
#[must_use]
pub fn action_message(action: &Action) -> Value {
    let mut members = action.members.clone();
    members.retain(|name, _| !["scopes", "context"].contains(&name.as_str()));
    // The columns override members of the document with the same name.
    for (name, value) in [
        ("id", json!(action.id)),
        ("createdAt", json!(action.created_at.0)),
        ("timestamp", json!(action.timestamp.0)),
        ("type", json!(action.kind)),
    ] {
        members.insert(name.to_owned(), value);
    }
    for (name, id) in
        [("thng", action.thng.map(|id| id.to_string())), ("product", action.product.map(|id| id.to_string()))]
    {
        match id {
            Some(id) => members.insert(name.to_owned(), json!(id)),
            // For an unknown item, a result repeats what was requested, as in lists.
            None if name == "thng" && action.kind == RESULTS => continue,
            None => members.remove(name),
        };
    }
    Value::Object(members)
}

#[cfg(test)]
mod tests {
    use shared::{availability::Availability, redirect_status::RedirectStatus, time::UnixMillis};

    use super::*;

    #[test]
    fn messages_of_redirections_have_the_members_that_are_set() {
        // As a release before these members stored it.
        let body =
            r#"{"domain":"tn.gg","short_id":"A","platform_id":"U","target":"https://e.com/","scopes":{}}"#;
        let mut item: RedirectionEvent = serde_json::from_str(body).unwrap();
        let plain = redirection_message(&item);
        assert!(plain.len() == 5 && plain["defaultRedirectUrl"] == "https://e.com/", "{plain:?}");
        item.availability = Some(Box::new(Availability {
            valid_from: Some(UnixMillis(5)),
            is_paused: true,
            ..Availability::default()
        }));
        item.status_code = RedirectStatus::PermanentRedirect;
        let mut expected = plain;
        expected.insert("statusCode".to_owned(), json!(308));
        expected.extend([("validFrom".to_owned(), json!(5)), ("status".to_owned(), json!("paused"))]);
        assert_eq!(redirection_message(&item), expected);
    }
}
