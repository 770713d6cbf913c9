//! Assessment by stored scans: their places, and a code that is on many items.

use anyhow::{Context, Result};
use serde_json::json;
use tests::{db::Engine, product::PHONE};

use super::{super::Api, BERN, Brand, CITIES, HOUR, TOKYO, UNKNOWN, check, scanned, statuses, trigger, with};
use crate::on_both_engines;

/// A trigger that is a stored scan: its place and context are what was stored with it.
pub(super) async fn the_location_comes_from_the_stored_scan(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let brand = Brand::new(&api).await?;
    let thng = brand.thng("A").await?;
    for hour in [10, 20, 30] {
        scanned(&api, &thng, hour, PHONE, Some(("Bern", "CH", BERN))).await?;
    }
    let action = scanned(&api, &thng, 40, PHONE, Some(("Tokyo", "JP", TOKYO))).await?;
    let mut body = trigger(Some(&thng), BERN);
    body["id"] = json!(action);
    body["type"] = json!("implicitScans");
    body["locationSource"] = json!("geoIp");
    body.as_object_mut().map(|members| members.remove("timestamp"));
    let result = brand.judge(body.clone()).await?;
    let fields = &result["customFields"];
    assert_eq!(fields["triggerContext"]["city"], "Tokyo", "{result}");
    assert_eq!(fields["triggerContext"]["entryUrl"], "https://tn.gg/X");
    assert_eq!(fields["previousImplicitScansCount"], 3, "without the trigger itself");
    assert_eq!((&fields["spreadOutlier"], &fields["countriesCount"]), (&json!("yes"), &json!(2)));
    assert_eq!(fields["duplicateProfile"]["countryCodes"], json!(["CH", "JP"]));
    assert_eq!(fields["duplicateProfile"]["regions"], json!(["CH-Bern", "JP-Tokyo"]));
    assert_eq!((&fields["userAgentCount"], &fields["regionsCount"]), (&json!(1), &json!(2)));
    let km = fields["geoIpSpreadDistance"].as_f64().unwrap_or_default();
    assert!((9_500.0..9_700.0).contains(&km), "{km}");
    // At home in its market: suspected, not confirmed.
    assert_eq!(statuses(&result), ["suspicious", "none", "suspected"], "{result}");
    // With a sensor's word the client's own coordinates count.
    body["locationSource"] = json!("sensor");
    let result = brand.judge(body).await?;
    assert_eq!(statuses(&result), ["positive", "none", "none"], "{result}");
    Ok(())
}

/// A code that is on many items: the points and the gate speak, the figures are told, the edge's column follows.
pub(super) async fn a_copied_code_is_detected(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let brand = Brand::new(&api).await?;
    let thng = brand.thng("A").await?;
    for (n, place) in CITIES.iter().cycle().take(16).enumerate() {
        // In an order that is not that of time.
        let hour = 10 + (n as i64 * 7) % 64;
        scanned(&api, &thng, hour, &format!("Phone{}/1", ["A", "B", "C", "D"][n % 4]), Some(*place)).await?;
    }
    let result = brand.judge(with(trigger(Some(&thng), BERN), "timestamp", json!(99 * HOUR))).await?;
    assert_eq!(check(&result, "duplicateChecks").0, "true", "{result}");
    assert_eq!(statuses(&result)[..2], ["suspicious", "suspected"], "{result}");
    assert_eq!(result["customFields"]["duplicateProfile"]["isDuplicate"], true);
    let replay = json!({"thng": thng, "settings": {"duplicatePoints": 100, "suspectedPoints": 100}});
    let replayed = api.post("/authentication/replay", replay).await?.must_be(200)?.json();
    assert_eq!((&replayed["scans"], &replayed["profileMatches"]), (&json!(16), &json!(true)), "{replayed}");
    let results = replayed["results"].as_array().context("results")?;
    assert!(
        results
            .iter()
            .any(|one| one["changed"] == true && one["current"]["counterfeitStatus"] == "suspected")
    );
    assert!(results.iter().all(|one| one["proposed"]["counterfeitStatus"] != "suspected"), "{replayed}");
    for (body, code) in [
        (json!({}), 400),
        (json!({"thng": thng, "settings": {"scanThreshold": -1}}), 400),
        (json!({"thng": UNKNOWN}), 404),
    ] {
        assert_eq!(api.post("/authentication/replay", body).await?.status.as_u16(), code);
    }
    Ok(())
}

on_both_engines!(the_location_comes_from_the_stored_scan, a_copied_code_is_detected);
