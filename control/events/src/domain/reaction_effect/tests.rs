use super::*;

const ID: &str = "UKXAGyEf8SQ5eTDmVgGpHqAa";

fn effect(value: Value) -> Effect {
    Effect::parse(&value).unwrap()
}

#[test]
fn effects_round_trip() {
    for given in [
        json!({"type": "webhook", "webhook": ID}),
        json!({"type": "property", "key": "a", "value": {"b": [1]}, "of": "product"}),
        json!({"type": "property", "key": "a", "from": "context.city", "of": "either"}),
        json!({"type": "property", "key": "a", "value": false, "thng": "gs1:21:x"}),
        json!({"type": "action", "action": {"type": "_a", "customFields": {"b": 1}}}),
    ] {
        let stored = serde_json::to_string(&effect(given.clone())).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&stored).unwrap(), given);
        assert_eq!(serde_json::from_str::<Effect>(&stored).unwrap(), effect(given));
    }
}

#[test]
fn the_deed_is_resolved_from_the_event() {
    let facts = json!({"type": "scans", "timestamp": 5, "thng": "T", "product": "P",
        "context": {"city": "Bonn"}, "customFields": {"a.b": [{"c": 7}], "none": null}});
    let bare = json!({"type": "scans", "timestamp": 5});
    let deed = |given: Value, facts: &Value| {
        let event = json!({"type": "action.scans", "timestamp": 5, "data": {}});
        let deed = effect(given).about(ReactionId::new(1, [1; 16]), "r", facts, &event);
        let deed = serde_json::to_value(deed).unwrap();
        assert!(serde_json::from_value::<ResolvedEffect>(deed.clone()).is_ok());
        deed
    };
    let sets = |more: Value| {
        let mut given = json!({"type": "property", "key": "Key"});
        given.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        given
    };
    for (given, expected) in [
        (sets(json!({"value": 1})), json!({"type": "thngProperty", "thng": "T", "key": "key", "value": 1})),
        (
            sets(json!({"from": "context.city", "of": "product"})),
            json!({"type": "productProperty", "product": "P", "key": "key", "value": "Bonn"}),
        ),
        (
            sets(json!({"from": "customFields.a.b.c", "product": ID})),
            json!({"type": "productProperty", "product": ID, "key": "key", "value": 7}),
        ),
        (
            sets(json!({"from": "customFields.none"})),
            json!({"type": "impossible", "fault": "The event has no customFields.none."}),
        ),
        (
            json!({"type": "action", "action": {"type": "_a"}}),
            json!({"type": "action", "action": {"type": "_a", "thng": "T"}}),
        ),
        (
            json!({"type": "action", "action": {"type": "_a", "product": ID}}),
            json!({"type": "action", "action": {"type": "_a", "product": ID}}),
        ),
    ] {
        assert_eq!(deed(given, &facts), expected);
    }
    let nothing = "The event is about nothing that has properties.";
    assert_eq!(deed(sets(json!({"value": 1})), &bare), json!({"type": "impossible", "fault": nothing}));
    let called = deed(json!({"type": "webhook", "webhook": ID}), &facts);
    let body: Value = serde_json::from_str(called["body"].as_str().unwrap()).unwrap();
    assert_eq!((&body["type"], &body["timestamp"]), (&json!("reaction"), &json!(5)));
    assert_eq!(body["data"]["event"]["type"], "action.scans");
}
