use serde_json::json;
use shared::id::AccountId;

use super::*;

/// An entry of a change from one state to another; `null` for none.
fn entry(seq: i64, before: &Value, after: &Value) -> Entry {
    let text = |state: &Value| (!state.is_null()).then(|| state.to_string());
    Entry {
        seq,
        account: AccountId::new(1, [1; 16]),
        at: UnixMillis(seq),
        actor_kind: "operator".to_owned(),
        actor_id: Some("UKXAGyEf8SQ5eTDmVgGpHqAa".to_owned()),
        key_id: None,
        network: None,
        request_id: None,
        operation: "PUT /redirections/{shortId}".to_owned(),
        resource: "redirection".to_owned(),
        resource_id: "tn.gg/A".to_owned(),
        before: text(before),
        after: text(after),
        place: None,
    }
}

/// The entries of a link that was made, changed twice, deleted, made again and changed, oldest first.
fn entries() -> Vec<Entry> {
    [
        (json!(null), json!({"to": "a", "tags": ["x"]})),
        (json!({"to": "a"}), json!({"to": "b", "title": "B"})),
        (json!({"tags": ["x"], "title": "B"}), json!({"title": "C"})),
        (json!({"to": "b", "title": "C"}), json!(null)),
        (json!(null), json!({"to": "b", "title": "C"})),
        (json!({"to": "b"}), json!({"to": "d"})),
    ]
    .iter()
    .zip(1..)
    .map(|((before, after), seq)| entry(seq, before, after))
    .collect()
}

/// The state after the change of a version, without what is null.
fn state_after(now: Option<Value>, entries: &[Entry], version: i64) -> Result<Value, NoState> {
    let newer = entries.iter().rev().take_while(|entry| entry.seq > version);
    let rewind = newer.fold(Rewind::new(now), Rewind::undo);
    let of_version = entries.iter().find(|entry| entry.seq == version).unwrap();
    let mut body = rewind.after(of_version)?;
    body.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    Ok(body)
}

#[test]
fn each_version_has_the_state_after_it() {
    let entries = entries();
    let now = || Some(json!({"to": "d", "title": "C"}));
    for (version, expected) in [
        (1, Ok(json!({"to": "a", "tags": ["x"]}))),
        (2, Ok(json!({"to": "b", "title": "B", "tags": ["x"]}))),
        (3, Ok(json!({"to": "b", "title": "C"}))),
        (4, Err(NoState::Deleted)),
        (5, Ok(json!({"to": "b", "title": "C"}))),
        (6, Ok(json!({"to": "d", "title": "C"}))),
    ] {
        assert_eq!(state_after(now(), &entries, version), expected, "{version}");
    }
    let deleted = &entries[..4];
    assert_eq!(state_after(None, deleted, 3), Ok(json!({"to": "b", "title": "C"})));
    assert_eq!(state_after(None, deleted, 1), Ok(json!({"to": "a", "tags": ["x"]})));
    // The oldest ones may be gone.
    assert_eq!(state_after(now(), &entries[4..], 5), Ok(json!({"to": "b", "title": "C"})));
}

#[test]
fn what_left_no_entry_does_not_change_what_an_entry_says() {
    let first = entry(1, &json!({"to": "a"}), &json!({"to": "b"}));
    // An application's user led it to `c`, and wrote notes.
    let second = entry(2, &json!({"to": "c"}), &json!({"to": "d"}));
    let now = || Some(json!({"to": "d", "notes": "n"}));
    let entries = [first, second];
    assert_eq!(state_after(now(), &entries, 1), Ok(json!({"to": "b", "notes": "n"})));
    assert_eq!(state_after(now(), &entries[..1], 1), Ok(json!({"to": "b", "notes": "n"})));
}

#[test]
fn a_state_that_was_too_large_is_not_guessed() {
    let large = json!({"bytes": 20_000});
    let entries = [
        entry(1, &json!(null), &json!({"to": "a"})),
        entry(2, &json!({"to": "a"}), &large),
        entry(3, &json!({"to": "b"}), &json!({"to": "c"})),
    ];
    let now = || Some(json!({"to": "c", "notes": "long"}));
    assert_eq!(state_after(now(), &entries, 3), Ok(json!({"to": "c", "notes": "long"})));
    assert_eq!(state_after(now(), &entries, 2), Ok(json!({"to": "b", "notes": "long"})));
    assert_eq!(state_after(now(), &entries, 1), Ok(json!({"to": "a"})), "a creation has every member");
    let large_one = entry(2, &large, &json!({"to": "b"}));
    let before = entry(1, &json!({"to": "x"}), &json!({"to": "a"}));
    assert_eq!(state_after(now(), &[before, large_one.clone()], 1), Err(NoState::TooLarge));
    assert_eq!(LinkChange::of(large_one, true).members, None);
}

#[test]
fn a_change_names_its_members() {
    let change =
        LinkChange::of(entry(7, &json!({"to": "a", "notes": "n"}), &json!({"to": "b", "title": "T"})), false);
    assert_eq!((change.version, change.kind, change.actor), (7, ChangeKind::Updated, None));
    let members: Vec<_> =
        change.members.unwrap().into_iter().map(|one| (one.member, one.before, one.after)).collect();
    assert_eq!(
        members,
        [
            ("notes".to_owned(), Some(json!("n")), None),
            ("title".to_owned(), None, Some(json!("T"))),
            ("to".to_owned(), Some(json!("a")), Some(json!("b"))),
        ]
    );
    for (entry, kind) in
        entries().into_iter().zip(["created", "updated", "updated", "deleted", "created", "updated"])
    {
        let change = LinkChange::of(entry, true);
        assert_eq!(change.kind.as_str(), kind);
        assert!(change.actor.is_some());
    }
}

#[test]
fn what_a_body_leaves_out_is_removed() {
    let made =
        entry(1, &json!(null), &json!({"defaultRedirectUrl": "https://example.com/", "status": "paused"}));
    let body = Rewind::new(None).after(&made).unwrap();
    assert_eq!(
        body,
        json!({"defaultRedirectUrl": "https://example.com/", "status": "paused", "statusCode": null,
            "validFrom": null, "validUntil": null, "maxScans": null, "endedUrl": null})
    );
}

#[test]
fn a_version_is_a_text_of_digits() {
    for (body, expected) in [
        (json!({"version": "4711"}), Ok(4_711)),
        (json!({}), Err("version is required.")),
        (json!({"version": null}), Err("version is required.")),
        (json!({"version": 4_711}), Err("version must be a string.")),
        (json!({"version": ""}), Err("version must be a version from the history of the link.")),
        (json!({"version": "-1"}), Err("version must be a version from the history of the link.")),
        (json!({"version": "+1"}), Err("version must be a version from the history of the link.")),
        (
            json!({"version": "99999999999999999999"}),
            Err("version must be a version from the history of the link."),
        ),
        (json!([]), Err("The body must be a JSON object.")),
    ] {
        assert_eq!(parse_version(&body), expected.map_err(|fault| vec![fault.to_owned()]), "{body}");
    }
}
