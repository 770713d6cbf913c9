use serde_json::json;

use super::*;

const ID: &str = "UKXAGyEf8SQ5eTDmVgGpHqAa";

fn with(name: &str, value: Value) -> Value {
    let mut body = json!({"id": ID, "type": "scans", "locationSource": "sensor",
        "location": {"latitude": 1.0, "longitude": 2.0,
            "position": {"type": "Point", "coordinates": [2.00005, 1.0]}}});
    body[name] = value;
    body
}

#[test]
fn each_fault_is_named() {
    let point = |x: f64, y: f64| json!({"type": "Point", "coordinates": [x, y]});
    let cases: Vec<(Value, &[&str])> = vec![
        (with("unknown", json!(1)), &[]),
        (with("thng", json!("x")), &[]),
        (with("createdAt", json!(1)), &[]),
        (with("customFields", json!({"inspectedProductMatch": "yes", "markings": ["a"], "more": 1})), &[]),
        (json!({}), &["id is", "type is", "locationSource is", "location is"]),
        (json!([]), &["must be a JSON object"]),
        (with("id", json!("x")), &["id: an id has 24"]),
        (with("id", json!(1)), &["id must be a string"]),
        (with("type", json!("own")), &["type must be inspectorScans"]),
        (with("type", json!(1)), &["type must be a string"]),
        (with("locationSource", json!("place")), &["locationSource must be geoIp, sensor or unknown"]),
        (with("locationSource", json!(1)), &["locationSource must be"]),
        (with("location", json!({})), &["location must have latitude, longitude and position"]),
        (with("location", json!({"latitude": 1, "longitude": 2})), &["location must have"]),
        (
            with(
                "location",
                json!({"latitude": 1, "longitude": 2, "position": point(2.0, 1.0), "place": ID}),
            ),
            &["location.place is not a member"],
        ),
        (
            with("location", json!({"latitude": 91, "longitude": 2, "position": point(2.0, 1.0)})),
            &["location.latitude"],
        ),
        (
            with("location", json!({"latitude": 1, "longitude": 181, "position": point(2.0, 1.0)})),
            &["location.longitude"],
        ),
        // The position wins.
        (with("location", json!({"latitude": 1, "longitude": 2, "position": point(2.5, 1.0)})), &[]),
        (with("timestamp", json!("x")), &["timestamp must be an integer"]),
        (with("timestamp", json!(-1)), &["timestamp must be an integer"]),
        (with("createdAt", json!(1.5)), &["createdAt must be an integer"]),
        (with("thng", json!(1)), &["thng must be a string"]),
        (with("customFields", json!([])), &["customFields must be an object"]),
        (with("customFields", json!({"inspectedProductMatch": "maybe"})), &["inspectedProductMatch must be"]),
        (with("customFields", json!({"inspectedProductMatch": true})), &["inspectedProductMatch must be"]),
        (with("customFields", json!({"requestSource": 1, "watermark": 2})), &["requestSource", "watermark"]),
        (with("customFields", json!({"scanValue": "x".repeat(2_049)})), &["scanValue must have at most"]),
        (with("customFields", json!({"markings": "a"})), &["markings must be an array"]),
        (with("customFields", json!({"markings": [1]})), &["markings must be an array"]),
    ];
    for (body, expected) in cases {
        let found = Asked::parse(&body).err().unwrap_or_default();
        assert_eq!(found.len(), expected.len(), "{body}: {found:?}");
        for (fault, part) in found.iter().zip(expected) {
            assert!(fault.contains(part), "{body}: {fault}");
        }
    }
}

#[test]
fn the_thng_takes_precedence_over_the_scanned_value() {
    let value = json!({"scanValue": "https://tn.gg/X"});
    let named = |body: Value| Asked::parse(&body).unwrap().named;
    assert_eq!(named(with("thng", json!(ID))), Named::Id(ID.parse().unwrap()));
    assert_eq!(named(with("thng", json!("x"))), Named::Malformed("x".to_owned()));
    assert_eq!(named(with("customFields", value.clone())), Named::Value("https://tn.gg/X".to_owned()));
    let mut both = with("thng", json!(ID));
    both["customFields"] = value;
    assert_eq!(named(both), Named::Id(ID.parse().unwrap()));
    assert_eq!(named(with("thng", json!(""))), Named::Nothing);
}

#[test]
fn the_position_wins_over_latitude_and_longitude() {
    let location = json!({"latitude": 1, "longitude": 2, "position":
        {"type": "Point", "coordinates": [30.0, 40.0]}});
    let asked = Asked::parse(&with("location", location)).unwrap().complete(None).unwrap();
    assert_eq!(asked.at, Coordinates::new(40.0, 30.0));
}

#[test]
fn a_stored_action_supplies_what_the_request_lacks() {
    let id: ActionId = ID.parse().unwrap();
    let stored = |members: Value| Action {
        id,
        seq: 1,
        created_at: UnixMillis(1),
        timestamp: UnixMillis(1),
        kind: "implicitScans".to_owned(),
        thng: None,
        product: None,
        members: members.as_object().cloned().unwrap(),
    };
    let without = stored(json!({"locationSource": "unknown", "customFields": {"bot": true}}));
    let located = stored(json!({"locationSource": "geoIp", "location": {"latitude": 1.0, "longitude": 2.0}}));
    let complete = |body: Value, stored: Option<&Action>| Asked::parse(&body).unwrap().complete(stored);
    let bare = json!({"id": ID});
    let request = complete(bare.clone(), Some(&without)).unwrap();
    let found = (request.kind, request.source, request.at);
    assert_eq!(found, (TriggerType::ImplicitScans, LocationSource::Unknown, None));
    assert_eq!(request.custom["bot"], true);
    let request = complete(bare.clone(), Some(&located)).unwrap();
    assert_eq!((request.source, request.at), (LocationSource::GeoIp, Coordinates::new(1.0, 2.0)));
    // As it was recorded: no geography, no location.
    let recorded = json!({"id": ID, "type": "scans", "locationSource": "unknown"});
    assert_eq!(complete(recorded, None).unwrap().at, None);
    let faults = complete(bare, None).unwrap_err();
    assert_eq!(faults, ["type is required.", "locationSource is required.", "location is required."]);
    let sensor = json!({"id": ID, "type": "scans", "locationSource": "sensor"});
    assert_eq!(complete(sensor, None).unwrap_err(), ["location is required."]);
}
