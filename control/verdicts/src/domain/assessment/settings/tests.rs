use serde_json::json;

use super::*;

#[test]
fn each_fault_is_named() {
    let cases: Vec<(Value, &[&str])> = vec![
        (json!({}), &[]),
        (json!({"unknown": 1, "requireCommissioning": null}), &[]),
        (json!({"regionsThreshold": 0.0, "maxObservedScans": 64, "geoIpSpreadThreshold": 0.5}), &[]),
        (json!({"allowedNetworks": ["192.0.2.0/24", "2001:db8::/32"], "diversionMode": "trigger"}), &[]),
        (json!({"purchaseOrders": {"PO 1": ["de", "AT"], "PO 2": []}}), &[]),
        (json!({"evidenceTypes": ["scans", "inspectorScans"]}), &[]),
        (json!([]), &["must be a JSON object"]),
        (json!({"requireCommissioning": "yes"}), &["requireCommissioning must be true or false"]),
        (json!({"diversionMode": "never"}), &["diversionMode must be profile or trigger"]),
        (json!({"regionsThreshold": -1}), &["regionsThreshold must be a whole number from 0"]),
        (json!({"regionShareThreshold": 0}), &[]),
        (json!({"regionShareThreshold": 1}), &[]),
        (json!({"regionShareThreshold": 1.01}), &["regionShareThreshold must be a number from 0 to 1"]),
        (json!({"regionShareThreshold": -0.01}), &["regionShareThreshold must be"]),
        (json!({"regionShareThreshold": "half"}), &["regionShareThreshold must be"]),
        (json!({"regionsThreshold": 1.5, "scanThreshold": 65}), &["regionsThreshold", "scanThreshold"]),
        (json!({"maxObservedScans": 0}), &["maxObservedScans must be a whole number from 1 to 64"]),
        (
            json!({"sensorSpreadThreshold": -1, "spreadOutlierThreshold": 20_017}),
            &["sensor", "spreadOutlier"],
        ),
        (json!({"geoIpSpreadThreshold": "1"}), &["geoIpSpreadThreshold must be a number of kilometres"]),
        (json!({"duplicatePoints": 5}), &["suspectedPoints must not be more than duplicatePoints"]),
        (json!({"duplicatePoints": 5, "suspectedPoints": 5}), &[]),
        (json!({"evidenceTypes": ["own"]}), &["evidenceTypes must be an array of at most 5"]),
        (json!({"allowedNetworks": ["192.0.2.0"]}), &["allowedNetworks must be an array"]),
        (json!({"allowedNetworks": vec!["192.0.2.0/24"; 101]}), &["allowedNetworks must be an array"]),
        (
            json!({"allowedPlaces": [{"latitude": 91, "longitude": 0, "radiusKm": 1}]}),
            &["allowedPlaces must"],
        ),
        (json!({"allowedPlaces": [{"latitude": 9, "longitude": 0, "radiusKm": 1}]}), &[]),
        (json!({"purchaseOrders": {"": [], "P": ["x"]}}), &["has a key that", "purchaseOrders.P must be"]),
        (json!({"purchaseOrders": []}), &["purchaseOrders must be an object"]),
    ];
    for (body, expected) in cases {
        let found = Overrides::parse(&body).err().unwrap_or_default();
        assert_eq!(found.len(), expected.len(), "{body}: {found:?}");
        for (fault, part) in found.iter().zip(expected) {
            assert!(fault.contains(part), "{body}: {fault}");
        }
    }
}

#[test]
fn the_most_specific_settings_win_and_round_trip() {
    let parse = |body| Overrides::parse(&body).unwrap();
    let account = parse(json!({"scanThreshold": 5, "regionsThreshold": 7}));
    let product = parse(json!({"scanThreshold": 9, "purchaseOrders": {"P": ["ch"]}}));
    let settings = Settings::default().with(&account).with(&product);
    assert_eq!(
        (settings.scan_threshold, settings.regions_threshold, settings.user_agents_threshold),
        (9, 7, 4)
    );
    assert_eq!(settings.purchase_orders["P"], ["CH".parse().unwrap()]);
    let text = serde_json::to_string(&product).unwrap();
    assert_eq!(serde_json::from_str::<Overrides>(&text).unwrap(), product);
    assert_eq!(Settings::default().with(&Overrides::default()), Settings::default());
}

#[test]
fn allow_lists_hold_networks_and_circles() {
    let over = Overrides::parse(&json!({"allowedNetworks": ["192.0.2.0/24"],
        "allowedPlaces": [{"latitude": 47.0, "longitude": 8.0, "radiusKm": 10.0}]}));
    let settings = Settings::default().with(&over.unwrap());
    for (ip, at, expected) in [
        (Some("192.0.2.9"), None, true),
        (Some("::ffff:192.0.2.9"), None, true),
        (Some("198.51.100.1"), None, false),
        (None, Some((47.05, 8.0)), true),
        (None, Some((47.2, 8.0)), false),
        (None, None, false),
    ] {
        let at = at.and_then(|(latitude, longitude)| Coordinates::new(latitude, longitude));
        assert_eq!(settings.allows(ip.map(|ip| ip.parse().unwrap()), at), expected, "{ip:?} {at:?}");
    }
}
