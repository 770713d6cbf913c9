use serde_json::json;

use super::*;

const ID: &str = "UKXAGyEf8SQ5eTDmVgGpHqAa";

#[test]
fn exactly_one_target_is_named() {
    for (body, faults) in [
        (json!({"user": ID}), vec![]),
        (json!({"thng": ID}), vec![]),
        (json!({"network": "203.0.113.77", "from": 1, "to": 2}), vec![]),
        (json!({"network": "2001:db8::/32", "from": 1, "to": 2}), vec![]),
        (json!({}), vec!["Name exactly one"]),
        (json!({"user": null}), vec!["Name exactly one"]),
        (json!({"user": ID, "thng": ID}), vec!["Name exactly one"]),
        (json!({"user": "x"}), vec!["user: an id has"]),
        (json!({"user": 7}), vec!["user must be a string"]),
        (json!({"thng": "gs1:21:7"}), vec!["thng: an id has"]),
        (json!({"thng": ID, "from": 1}), vec!["from goes with network"]),
        (json!({"network": "203.0.113.0/24"}), vec!["from is required", "to is required"]),
        (json!({"network": "203.0.113.0/24", "from": 2, "to": 2}), vec!["to must be later"]),
        (json!({"network": "203.0.113.0/24", "from": "x", "to": -1}), vec!["from must be", "to must be"]),
        (json!({"network": "0.0.0.0/0", "from": 1, "to": 2}), vec!["network: must be an address"]),
        (json!({"network": "2000::/3", "from": 1, "to": 2}), vec!["network: must be an address"]),
        (json!({"network": "::ffff:0:0/96", "from": 1, "to": 2}), vec!["network: must be an address"]),
        (json!({"network": "here", "from": 1, "to": 2}), vec!["network: must be an address"]),
        (json!([]), vec!["The body must be"]),
    ] {
        let found = Target::parse(&body).err().unwrap_or_default();
        assert_eq!(found.len(), faults.len(), "{body}: {found:?}");
        for (found, fault) in found.iter().zip(faults) {
            assert!(found.starts_with(fault), "{body}: {found}");
        }
    }
}

#[test]
fn targets_come_back_from_their_stored_form() {
    for body in
        [json!({"user": ID}), json!({"thng": ID}), json!({"network": "203.0.113.77", "from": 1, "to": 2})]
    {
        let details = Details::new(Target::parse(&body).unwrap(), None);
        let stored = serde_json::to_value(&details).unwrap();
        assert_eq!(serde_json::from_value::<Details>(stored).unwrap(), details);
    }
}

#[test]
fn a_network_has_its_host_bits_cut_and_knows_mapped_addresses() {
    let network: Network = "203.0.113.77/24".parse().unwrap();
    assert_eq!(network.to_string(), "203.0.113.0/24");
    assert_eq!("::ffff:203.0.113.77/120".parse::<Network>(), Ok(network));
    assert_eq!(network.ends(), ("203.0.113.0".parse().unwrap(), "203.0.113.255".parse().unwrap()));
    for (ip, expected) in
        [("203.0.113.1", true), ("::ffff:203.0.113.1", true), ("203.0.114.1", false), ("2001:db8::1", false)]
    {
        assert_eq!(network.contains(ip.parse().unwrap()), expected, "{ip}");
    }
    for (other, expected) in [("203.0.113.0/24", true), ("203.0.112.0/20", true), ("203.0.114.0/24", false)] {
        assert_eq!(network.overlaps(&other.parse().unwrap()), expected, "{other}");
    }
}

#[test]
fn an_erasure_goes_through_every_stage_and_ends_once() {
    let stamp = Stamp::new(UnixMillis(1));
    let target = Target::Thng(ID.parse().unwrap());
    let (id, account) = (ErasureId::new(1, [1; 16]), AccountId::new(1, [1; 16]));
    let new = Erasure { id, account, stamp, status: Status::Enqueued, details: Details::new(target, None) };
    let at = ScanPosition { month: 0, at: 1, seq: 1 };
    let mut erasure = new.moved(Some(at), UnixMillis(5));
    assert_eq!((erasure.details.place.stage, erasure.status), (Stage::Actions, Status::Executing));
    for step in 6..13 {
        assert_eq!(erasure.details.completed_at, None);
        erasure = erasure.moved(None, UnixMillis(step));
    }
    assert_eq!((erasure.details.place.stage, erasure.status), (Stage::Done, Status::Completed));
    assert_eq!(
        erasure.details.begun_at.zip(erasure.details.completed_at),
        Some((UnixMillis(5), UnixMillis(12)))
    );
}

#[test]
fn an_erasure_does_not_end_before_every_profile_is_made() {
    // As an older release wrote it.
    let details = json!({"target": {"users": [ID]}, "requestedBy": null, "begunAt": 3, "completedAt": null, "counts": {},
        "place": {"stage": "profiles", "after": null, "pending": null}});
    let details: Details = serde_json::from_value(details).unwrap();
    let (id, account) = (ErasureId::new(1, [1; 16]), AccountId::new(1, [1; 16]));
    let stamp = Stamp::new(UnixMillis(1));
    let thng: ThngId = ID.parse().unwrap();
    let begun = Erasure { id, account, stamp, status: Status::Executing, details };
    let failing = begun.after_profiles(thng, 1, UnixMillis(5));
    assert_eq!((failing.details.profiles_failed, failing.details.place.thng), (1, Some(thng)));
    let again = failing.after_all_profiles(UnixMillis(6));
    let place = &again.details.place;
    assert_eq!((again.details.profiles_failed, place.thng, place.stage), (1, None, Stage::Profiles));
    assert_eq!(again.status, Status::Executing);
    let ended = again.after_profiles(thng, 0, UnixMillis(7)).after_all_profiles(UnixMillis(8));
    assert_eq!((ended.details.profiles_failed, ended.status), (0, Status::Completed));
}
