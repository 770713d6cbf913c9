//! Valid and invalid bodies of `POST /jobs/actions`.

use serde_json::{Value, json};

use super::{super::job_file::file_of, *};

const ID: &str = "UKXAGyEf8SQ5eTDmVgGpHqAa";

fn list() -> Value {
    json!({"type": "LIST", "contentType": "PLATFORM_IDS", "payload": [ID]})
}

fn file() -> Value {
    json!({"type": "FILE", "contentType": "PLATFORM_IDS", "format": "CSV",
        "location": format!("https://api.example/files/{ID}/content")})
}

/// A body with one member of it set, or taken away by null.
fn with(path: &str, value: Value) -> Value {
    let mut body = json!({"payload": {"type": "scans"}, "target": "THNGS", "input": list()});
    if path.starts_with("file.") {
        body["input"] = file();
    }
    let path = path.replace("file.", "input.");
    let pointer = format!("/{}", path.replace('.', "/"));
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    body.pointer_mut(parent).unwrap()[name] = value;
    body
}

#[test]
fn each_fault_is_named() {
    let option = |kind: &str, enabled: Value| json!({"type": kind, "enabled": enabled});
    for (body, faults) in [
        (with("unknown", json!(1)), vec![]),
        (with("input", file()), vec![]),
        (with("input.contentType", json!("EVRYTHNG_IDS")), vec![]),
        (with("payload.thng", Value::Null), vec![]),
        (with("payload.tags", json!(["a"])), vec![]),
        (with("payload.customFields", json!({"batch": 1})), vec![]),
        (with("options", json!([])), vec![]),
        (with("options", json!([option("SINGLE_RESOURCE_REACTIONS", json!(true))])), vec![]),
        (json!({}), vec!["payload is required", "target is required", "input is required"]),
        (with("target", json!("PRODUCTS")), vec!["target must be THNGS"]),
        (with("target", json!(1)), vec!["target must be a string"]),
        (with("type", json!("ACTION_CREATION")), vec![]),
        (with("type", Value::Null), vec![]),
        (with("type", json!("ACTION_DELETION")), vec!["type must be ACTION_CREATION"]),
        (with("type", json!("")), vec!["type must be ACTION_CREATION"]),
        (with("type", json!(7)), vec!["type must be a string"]),
        (with("payload.identifiers", json!({"gs1:21": "A"})), vec!["payload.identifiers must be left out"]),
        (with("payload.identifiers", Value::Null), vec![]),
        (with("payload", json!([])), vec!["payload must be an object"]),
        (with("payload", json!({})), vec!["payload.type is required"]),
        (with("payload.thng", json!(ID)), vec!["payload.thng must be left out"]),
        (
            with("payload", json!({"thng": ID, "type": 1, "tags": 2, "customFields": 3})),
            vec!["payload.thng", "payload.type", "payload.tags", "payload.customFields"],
        ),
        (with("payload.location", json!({})), vec!["payload.location must have"]),
        (with("payload.other", json!("nul \0")), vec!["payload must not hold the character U+0000"]),
        (with("input", json!(7)), vec!["input must be an object"]),
        (with("input", json!({})), vec!["input.type is required", "input.contentType is required"]),
        (with("input.type", json!("STREAM")), vec!["input.type must be LIST or FILE"]),
        (with("input.contentType", json!("NAMES")), vec!["input.contentType must be PLATFORM_IDS or"]),
        (with("input.payload", Value::Null), vec!["input.payload is required"]),
        (with("input.payload", json!([])), vec!["input.payload must hold at least one"]),
        (with("input.payload", json!("x")), vec!["input.payload must be an array of strings"]),
        (with("input.payload", json!([1])), vec!["input.payload must be an array of strings"]),
        (with("input.payload", json!(["", ID, "a\0"])), vec!["input.payload[0]", "input.payload[2]"]),
        (with("input.payload", json!(vec![ID; 5_000])), vec![]),
        (with("input.payload", json!(vec![ID; 5_001])), vec!["use the type FILE"]),
        (with("input.payload", json!(["x".repeat(386)])), vec!["input.payload[0] must have at most"]),
        // Whether it names a Thng is found out later.
        (with("input.payload", json!(["no id"])), vec![]),
        (with("input.key", json!("gs1:21")), vec!["input.key is for the contentType EXTERNAL_IDS only"]),
        (
            with("input.shortDomain", json!("tn.gg")),
            vec!["input.shortDomain is for the contentType SHORT_IDS"],
        ),
        (with("file.location", Value::Null), vec!["input.location is required"]),
        (with("file.location", json!(1)), vec!["input.location must be a string"]),
        (with("file.format", json!("XLSX")), vec!["input.format must be CSV or ZIP"]),
        (with("file.format", Value::Null), vec!["input.format is required"]),
        (with("options", json!({})), vec!["options must be an array"]),
        (with("options", json!([1])), vec!["options[0] must be an object"]),
        (
            with(
                "options",
                json!([{}, option("X", json!(true)), option("SINGLE_RESOURCE_REACTIONS", json!(1))]),
            ),
            vec![
                "options[0].type is required",
                "options[0].enabled is required",
                "options[1].type must be",
                "options[2].enabled must be true or false",
            ],
        ),
        (
            with("options", json!(vec![option("SINGLE_RESOURCE_NOTIFICATION", json!(true)); 2])),
            vec!["options[1].type is named twice"],
        ),
        (with("options", json!(vec![1; 11])), vec!["options must have at most 10"]),
    ] {
        let found = JobDraft::parse(&body).unwrap();
        assert_eq!(found.faults.len(), faults.len(), "{body}: {:?}", found.faults);
        for (fault, part) in found.faults.iter().zip(&faults) {
            assert!(fault.contains(part) && fault.ends_with('.'), "{body}: {fault}");
        }
        assert_eq!(found.request.is_some(), faults.is_empty(), "{body}");
    }
    assert!(JobDraft::parse(&json!([])).is_err());
}

#[test]
fn requests_are_echoed_as_sent() {
    let body = json!({"payload": {"type": "scans", "mine": [1]}, "target": "THNGS",
        "input": {"type": "FILE", "contentType": "EXTERNAL_IDS", "key": "gs1:21", "format": "ZIP", "location": "x"},
        "options": [{"type": "SINGLE_RESOURCE_NOTIFICATION", "enabled": true},
            {"type": "SINGLE_RESOURCE_REACTIONS", "enabled": false}]});
    let request = JobDraft::parse(&body).unwrap().request.unwrap();
    assert_eq!(json!(request.payload), body["payload"]);
    assert_eq!(json!(request.input), body["input"]);
    assert_eq!(json!(request.options), body["options"]);
    assert!(request.excludes(OptionType::SingleResourceNotification));
    assert!(!request.excludes(OptionType::SingleResourceReactions), "false is as good as none");
    let kept: JobRequest = serde_json::from_value(json!(request)).unwrap();
    assert_eq!(kept, request);
}

fn input(content_type: &str, more: Value) -> Input {
    let mut input = json!({"type": "LIST", "contentType": content_type, "payload": []});
    for (name, value) in more.as_object().unwrap() {
        input[name] = value.clone();
    }
    serde_json::from_value(input).unwrap()
}

#[test]
fn entries_name_and_are_logged_by_their_kind() {
    let identifier = |key: &str, value: &str| {
        Some(Name::Identifier(Identifier { key: key.to_owned(), value: value.to_owned() }))
    };
    let long = "x".repeat(386);
    for (kind, more, entry, name, payload) in [
        ("PLATFORM_IDS", json!({}), ID, Some(Name::Thng(ID.parse().unwrap())), json!({"id": ID})),
        ("EVRYTHNG_IDS", json!({}), "x", None, json!({"id": "x"})),
        ("PLATFORM_IDS", json!({}), "a\0", None, json!({"id": "a\u{fffd}"})),
        (
            "EXTERNAL_IDS",
            json!({}),
            "gs1:21:A",
            identifier("gs1:21", "A"),
            json!({"key": "gs1:21", "value": "A"}),
        ),
        ("EXTERNAL_IDS", json!({}), "A", None, json!({"value": "A"})),
        (
            "EXTERNAL_IDS",
            json!({"key": "sn"}),
            "a:b",
            identifier("sn", "a:b"),
            json!({"key": "sn", "value": "a:b"}),
        ),
        ("EXTERNAL_IDS", json!({"key": "sn"}), "", None, json!({"key": "sn", "value": ""})),
        ("EXTERNAL_IDS", json!({"key": "sn"}), &long, None, json!({"key": "sn", "value": "x".repeat(385)})),
        (
            "SHORT_IDS",
            json!({}),
            "AB-1",
            Some(Name::Short("AB-1".parse().unwrap())),
            json!({"shortId": "AB-1"}),
        ),
        (
            "SHORT_IDS",
            json!({"shortDomain": "tn.gg"}),
            "a b",
            None,
            json!({"shortDomain": "tn.gg", "shortId": "a b"}),
        ),
    ] {
        let input = input(kind, more);
        let found = input.name(entry);
        assert_eq!(found.clone().ok(), name, "{entry}");
        if let Err(fault) = found {
            assert!(fault.ends_with('.') && fault.chars().next().is_some_and(char::is_uppercase), "{fault}");
        }
        let mut expected = payload;
        expected["type"] = json!(kind);
        assert_eq!(input.payload(entry, None), expected);
    }
}

#[test]
fn a_short_id_is_logged_with_its_domain() {
    let logged = |more: Value| input("SHORT_IDS", more).payload("AB", Some("tn.gg"))["shortDomain"].clone();
    assert_eq!(logged(json!({})), "tn.gg");
    assert_eq!(logged(json!({"shortDomain": "own.example"})), "own.example");
    assert!(input("PLATFORM_IDS", json!({})).payload(ID, Some("tn.gg")).get("shortDomain").is_none());
}

#[test]
fn a_location_is_a_content_url_of_ours() {
    let base = "https://api.example:8443";
    for (location, expected) in [
        (format!("https://api.example:8443/files/{ID}/content"), true),
        (format!("http://API.example/v2/files/{ID}/content?expires=1&signature=x"), true),
        (format!("https://evil.example/files/{ID}/content"), false),
        (format!("https://api.example@evil.example/files/{ID}/content"), false),
        (format!("https://evil.example:pass@api.example/files/{ID}/content"), false),
        (format!("https://api.example.evil.example/files/{ID}/content"), false),
        (format!("https://api.example/x/files/{ID}/content"), false),
        (format!("https://api.example/files/../files/{ID}/content"), false),
        (format!("https://api.example/files/{ID}/content/"), false),
        (format!("https://api.example/files/{ID}"), false),
        (format!("ftp://api.example/files/{ID}/content"), false),
        (format!("/files/{ID}/content"), false),
        ("https://api.example/files/x/content".to_owned(), false),
        ("https://api.example".to_owned(), false),
        (String::new(), false),
    ] {
        assert_eq!(file_of(&location, base).is_ok(), expected, "{location}");
    }
    assert!(file_of(&format!("http://[::1]:80/files/{ID}/content"), "http://[::1]:8080").is_ok());
}
