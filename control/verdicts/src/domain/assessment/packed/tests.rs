use super::*;
use crate::domain::assessment::settings::Settings;

fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

fn scan() -> Map<String, Value> {
    object(json!({"context": {"city": "Bern", "countryCode": "CH", "userAgent": "Phone/1"},
        "location": {"latitude": 46.9, "longitude": 7.4}}))
}

/// A result of that scan.
fn whole(judged_by: &JudgedBy) -> Map<String, Value> {
    let mut fields = object(json!({
        "authenticationStatus": "suspicious", "counterfeitStatus": "suspected", "grayMarketStatus": "none",
        "childActions": {
            "duplicateChecks": {"match": "true", "reason": "DUPLICATE", "certainty": {"settles": []}},
            "diversionChecks": {"match": "false", "reason": "Seen in CH", "certainty": {"settles": []}},
        },
        "duplicateProfile": {"countryCodes": ["CH", "DE"], "geoIpBBSize": 1.5, "isDuplicate": true,
            "isTriggerOutlier": false, "regions": ["CH-Bern"], "sensorBBSize": 0.0, "uaHashes": []},
        "countriesCount": 2, "regionsCount": 1, "userAgentCount": 0, "previousImplicitScansCount": 7,
        "geoIpSpreadDistance": 1.5, "sensorSpreadDistance": 0.0, "spreadOutlier": "no",
        "requestSource": "app", "triggerAction": "UKXAGyEf8SQ5eTDmVgGpHqAa", "duplicatePoints": 11,
        "unverifiedScansCount": 0, "triggerContext": context_of(&scan()),
    }));
    fields.extend(judged_by.members.clone());
    let tags =
        ["brandIntegrity", "eventGroup:consumer", "match:duplicateChecks", "source:app", "status:suspicious"];
    let mut whole = object(json!({"customFields": fields, "tags": tags, "locationSource": "geoIp"}));
    whole.extend(location_of(&scan()).map(|location| ("location".to_owned(), location)));
    whole
}

fn judged_by() -> JudgedBy {
    JudgedBy::new(document::judged_by(&Settings::default(), &[]))
}

#[test]
fn packed_results_round_trip() {
    let (by, scan) = (judged_by(), scan());
    let whole = whole(&by);
    let short = pack(&whole, &by, Some(&scan)).unwrap();
    let found = references(&short).unwrap();
    assert_eq!(found.judged_by, by.id);
    assert_eq!(found.scan.map(|id| id.to_string()).as_deref(), Some("UKXAGyEf8SQ5eTDmVgGpHqAa"));
    assert!(short.get("location").is_none() && short["tags"] == json!(["eventGroup:consumer"]), "{short:?}");
    let mut again = short.clone();
    unpack(&mut again, &by.members, Some(&scan));
    assert_eq!(again, whole);

    // Of a scan that is gone, all is unknown and the rest stays.
    let mut gone = short.clone();
    unpack(&mut gone, &by.members, None);
    assert_eq!(gone["customFields"]["triggerContext"]["city"], "unknown");
    assert_eq!(gone.get("location"), None);
    assert_eq!(gone["tags"], whole["tags"]);
}

#[test]
fn members_that_differ_from_the_scan_are_stored_in_the_result() {
    let by = judged_by();
    let whole = whole(&by);
    let elsewhere =
        object(json!({"context": {"city": "Bern"}, "location": {"latitude": 1.0, "longitude": 2.0}}));
    for scan in [None, Some(&elsewhere)] {
        let short = pack(&whole, &by, scan).unwrap();
        assert_eq!(references(&short).unwrap().scan, None);
        let mut again = short;
        unpack(&mut again, &by.members, None);
        assert_eq!(again, whole);
    }
}

#[test]
fn results_that_would_not_round_trip_are_stored_whole() {
    let (by, scan) = (judged_by(), scan());
    for (name, value) in [("isDuplicate", json!(false)), ("another", json!(1))] {
        let mut odd = whole(&by);
        odd["customFields"]["duplicateProfile"][name] = value;
        assert_eq!(pack(&odd, &by, Some(&scan)), None, "{name}");
    }
    let mut old = whole(&by);
    assert_eq!(references(&old), None);
    let before = old.clone();
    unpack(&mut old, &by.members, Some(&scan));
    assert_eq!(old, before);
}

#[test]
fn each_setting_and_market_has_a_context_of_its_own() {
    let of = |settings: &Settings, markets: &[&str]| {
        let markets: Vec<_> = markets.iter().map(|code| code.parse().unwrap()).collect();
        JudgedBy::new(document::judged_by(settings, &markets)).id
    };
    let (settings, other) = (Settings::default(), Settings { scan_threshold: 4, ..Settings::default() });
    assert_eq!(of(&settings, &["CH"]), of(&settings, &["CH"]));
    assert_ne!(of(&settings, &["CH"]), of(&settings, &["DE"]));
    assert_ne!(of(&settings, &["CH"]), of(&other, &["CH"]));
}
