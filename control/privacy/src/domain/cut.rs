//! Takes what tells of a person out of documents.

use std::net::IpAddr;

use actions::domain::personal::redact_location;
use kernel::domain::device;
use serde_json::{Map, Value};
use shared::{personal_data::PersonalData, time::UnixMillis};

use super::erasure::Target;

/// Members of a context that go. What a database or a list of browsers says of them stays: country, city, name of the browser.
const OF_PERSON: [&str; 5] = ["ipAddress", "userAgent", device::MEMBER, "referer", "language"];

/// Of these, what an account that keeps nothing of people does not keep. The others stay under every setting.
const OF_AGED: [&str; 3] = ["ipAddress", "userAgent", device::MEMBER];

/// What a result of an assessment says where nothing is known.
const UNKNOWN: &str = "unknown";

/// What stands in the place of the hash of a device: how many there were stays.
const ERASED: &str = "erased";

/// The number of the list of devices among the members of a packed result.
const PACKED_DEVICES: usize = 2;

/// Whether an erasure is about an action; `members` are those of its document.
#[must_use]
pub fn concerns(
    target: &Target,
    thng: Option<&str>,
    at: Option<UnixMillis>,
    members: &Map<String, Value>,
) -> bool {
    match target {
        Target::Users(users) => members
            .get("user")
            .and_then(Value::as_str)
            .is_some_and(|user| users.iter().any(|one| one.as_str() == user)),
        Target::Thng(wanted) => thng == Some(wanted.as_str()),
        Target::Network { network, from, to } => {
            let ip = members.get("context").and_then(|context| context.get("ipAddress")?.as_str());
            let is_there = ip.and_then(|ip| ip.parse::<IpAddr>().ok()).is_some_and(|ip| network.contains(ip));
            is_there && at.is_some_and(|at| (*from..*to).contains(&at))
        }
        // What is too new is not looked at.
        Target::Age { .. } => true,
    }
}

/// Takes what tells of a person out of the document of an action that an erasure is about; `true` where something was.
pub fn cut(target: &Target, members: &mut Map<String, Value>) -> bool {
    let before = members.clone();
    if let Some(Value::Object(context)) = members.get_mut("context") {
        match target {
            Target::Age { .. } => OF_AGED.iter().for_each(|name| drop(context.remove(*name))),
            Target::Users(_) | Target::Thng(_) | Target::Network { .. } => {
                OF_PERSON.iter().for_each(|name| drop(context.remove(*name)));
                cut_query(context);
            }
        }
    }
    redact_location(members, PersonalData::None);
    if is_result(members) && !members.contains_key("locationSource") {
        // Where whoever asked for the assessment was; a result does not say how that was known.
        members.remove("location");
    }
    match target {
        Target::Users(users) => {
            let is_one =
                |id: &Value| id.as_str().is_some_and(|id| users.iter().any(|one| one.as_str() == id));
            if members.get("user").is_some_and(is_one) {
                members.remove("user");
            }
            let scoped = members.get_mut("scopes").and_then(|scopes| scopes.get_mut("users"));
            if let Some(scoped) = scoped.and_then(Value::as_array_mut) {
                scoped.retain(|id| !is_one(id));
            }
        }
        Target::Thng(_) | Target::Age { .. } => cut_devices(members),
        Target::Network { .. } => {}
    }
    if let Some(Value::Object(fields)) = members.get_mut("customFields") {
        cut_result(target, fields);
    }
    *members != before
}

/// Whether a document is the result of an assessment, in one of the forms in which it is stored.
fn is_result(members: &Map<String, Value>) -> bool {
    members.contains_key("packed")
        || members.get("customFields").is_some_and(|fields| fields.get("triggerContext").is_some())
}

/// The same for all actions in a value, such as the body of a message; `true` where something was.
pub fn cut_within(target: &Target, value: &mut Value) -> bool {
    match value {
        Value::Object(members) => {
            let mut changed = false;
            if is_concerned(target, members) {
                changed = cut(target, members);
            }
            for member in members.values_mut() {
                changed |= cut_within(target, member);
            }
            changed
        }
        Value::Array(items) => {
            let mut changed = false;
            for item in items {
                changed |= cut_within(target, item);
            }
            changed
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn is_concerned(target: &Target, members: &Map<String, Value>) -> bool {
    let thng = members.get("thng").and_then(Value::as_str);
    let at = members.get("timestamp").and_then(Value::as_i64).map(UnixMillis);
    concerns(target, thng, at, members)
}

/// A query, and what follows it, may hold anything.
fn cut_query(context: &mut Map<String, Value>) {
    if let Some(Value::String(url)) = context.get_mut("entryUrl")
        && let Some(end) = url.find(['?', '#'])
    {
        url.truncate(end);
    }
}

/// What a result of an assessment repeats of the scan and of whoever asked.
fn cut_result(target: &Target, fields: &mut Map<String, Value>) {
    if let Some(Value::Object(context)) = fields.get_mut("triggerContext") {
        if context.contains_key("userAgent") {
            context.insert("userAgent".to_owned(), UNKNOWN.into());
        }
        if !matches!(target, Target::Age { .. }) {
            cut_query(context);
        }
    }
    match target {
        Target::Users(_) => {
            if fields.contains_key("triggerContext") || fields.contains_key("triggerAction") {
                fields.remove("requestUser");
                fields.remove("requestUserName");
            }
        }
        Target::Thng(_) | Target::Network { .. } | Target::Age { .. } => {}
    }
}

/// The hashes of devices that a result lists, in both forms in which it is stored.
fn cut_devices(members: &mut Map<String, Value>) {
    let whole = |members: &mut Map<String, Value>| {
        let profile = members.get_mut("customFields")?.get_mut("duplicateProfile")?;
        erase_all(profile.get_mut("uaHashes")?);
        Some(())
    };
    let packed = |members: &mut Map<String, Value>| {
        erase_all(members.get_mut("packed")?.get_mut("profile")?.get_mut(PACKED_DEVICES)?);
        Some(())
    };
    whole(members);
    packed(members);
}

fn erase_all(hashes: &mut Value) {
    for hash in hashes.as_array_mut().into_iter().flatten() {
        *hash = ERASED.into();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const USER: &str = "UKXAGyEf8SQ5eTDmVgGpHqAa";
    const OTHER: &str = "UKXAGyEf8SQ5eTDmVgGpHqAb";

    fn members(value: Value) -> Map<String, Value> {
        let Value::Object(members) = value else { panic!("no object") };
        members
    }

    fn scan() -> Value {
        json!({
            "user": USER, "scopes": {"users": [USER, OTHER], "projects": []}, "timestamp": 1_500,
            "context": {"ipAddress": "203.0.113.77", "userAgent": "Phone/1", "userAgentName": "Phone", "device": "00ff",
                "referer": "https://e.com/?me", "language": "de", "entryUrl": "https://tn.gg/A?name=me#x", "city": "Bern"},
            "locationSource": "sensor", "location": {"latitude": 46.948_127, "longitude": 7.447_456},
        })
    }

    fn network(text: &str) -> Target {
        Target::Network { network: text.parse().unwrap(), from: UnixMillis(1_000), to: UnixMillis(2_000) }
    }

    #[test]
    fn a_scan_loses_its_person_and_keeps_what_counts_rest_on() {
        let mut cut_down = members(scan());
        assert!(cut(&Target::Users(vec![USER.parse().unwrap()]), &mut cut_down));
        let expected = json!({
            "scopes": {"users": [OTHER], "projects": []}, "timestamp": 1_500,
            "context": {"userAgentName": "Phone", "entryUrl": "https://tn.gg/A", "city": "Bern"},
            "locationSource": "unknown",
        });
        assert_eq!(Value::Object(cut_down.clone()), expected);
        assert!(
            !cut(&Target::Users(vec![USER.parse().unwrap()]), &mut cut_down),
            "a second time changes nothing"
        );
        let mut of_network = members(scan());
        assert!(cut(&network("203.0.113.0/24"), &mut of_network));
        assert_eq!(of_network["user"], USER, "an erasure by network says nothing of the user");
    }

    #[test]
    fn an_erasure_concerns_its_target_alone() {
        let at = |ms| Some(UnixMillis(ms));
        let user = Target::Users(vec![USER.parse().unwrap()]);
        let other = Target::Users(vec![OTHER.parse().unwrap()]);
        let thng = Target::Thng(USER.parse().unwrap());
        for (target, of_thng, time, expected) in [
            (&user, None, at(0), true),
            // The other user may see the action; it is not its own.
            (&other, None, at(0), false),
            (&thng, Some(USER), at(0), true),
            (&thng, Some(OTHER), at(0), false),
            (&thng, None, at(0), false),
            (&network("203.0.113.0/24"), None, at(1_000), true),
            (&network("203.0.113.77"), None, at(1_999), true),
            (&network("203.0.113.0/24"), None, at(999), false),
            (&network("203.0.113.0/24"), None, at(2_000), false),
            (&network("203.0.112.0/24"), None, at(1_500), false),
            (&network("203.0.113.0/24"), None, None, false),
        ] {
            assert_eq!(concerns(target, of_thng, time, &members(scan())), expected, "{target:?} {time:?}");
        }
    }

    #[test]
    fn what_is_old_keeps_what_stays_under_every_setting() {
        let age = Target::Age { from: UnixMillis(0), to: UnixMillis(2_000) };
        let mut old = members(scan());
        assert!(concerns(&age, None, None, &old) && cut(&age, &mut old));
        let expected = json!({
            "user": USER, "scopes": {"users": [USER, OTHER], "projects": []}, "timestamp": 1_500,
            "context": {"userAgentName": "Phone", "referer": "https://e.com/?me", "language": "de",
                "entryUrl": "https://tn.gg/A?name=me#x", "city": "Bern"},
            "locationSource": "unknown",
        });
        assert_eq!(Value::Object(old.clone()), expected);
        assert!(!cut(&age, &mut old));
    }

    #[test]
    fn actions_within_a_message_are_found() {
        let mut other = scan();
        other["user"] = OTHER.into();
        let mut message = json!({"type": "action.created", "data": {"actions": [scan(), other.clone()]}});
        let user = Target::Users(vec![USER.parse().unwrap()]);
        assert!(cut_within(&user, &mut message));
        assert_eq!(message["data"]["actions"][1], other);
        assert_eq!(message["data"]["actions"][0]["context"].get("ipAddress"), None);
        assert!(!cut_within(&user, &mut message));
    }

    #[test]
    fn results_of_a_thng_lose_the_hashes_of_devices_and_keep_their_number() {
        let thng = Target::Thng(USER.parse().unwrap());
        let mut result = members(json!({
            "customFields": {"triggerContext": {"userAgent": "Phone/1", "city": "Bern"},
                "duplicateProfile": {"uaHashes": ["a1", "b2"]}},
            "packed": {"profile": [["CH"], ["BE"], ["a1"], 1.0, 2.0]},
            "location": {"latitude": 46.948_127, "longitude": 7.447_456},
        }));
        assert!(cut(&thng, &mut result));
        let expected = json!({
            "customFields": {"triggerContext": {"userAgent": "unknown", "city": "Bern"},
                "duplicateProfile": {"uaHashes": ["erased", "erased"]}},
            "packed": {"profile": [["CH"], ["BE"], ["erased"], 1.0, 2.0]},
        });
        assert_eq!(Value::Object(result), expected);
    }
}
