//! Assessment of items over HTTP: triggers, results and refusals.

mod stored_scans;

use ::actions::store::actions::{self, NewAction};
use anyhow::{Context, Result};
use kernel::store::Ctx;
use serde_json::{Value, json};
use shared::{id::ActionId, time::UnixMillis};
use tests::db::{Engine, random16};

use super::{Answer, Api};

const UNKNOWN: &str = "UKXAGyEf8SQ5eTDmVgGpHqAa";
pub(super) const HOUR: i64 = 3_600_000;
pub(super) const BERN: (f64, f64) = (46.95, 7.45);
pub(super) const TOKYO: (f64, f64) = (35.68, 139.69);
pub(super) const CITIES: [(&str, &str, (f64, f64)); 4] = [
    ("Bern", "CH", BERN),
    ("Tokyo", "JP", TOKYO),
    ("Sydney", "AU", (-33.87, 151.21)),
    ("Lima", "PE", (-12.05, -77.04)),
];

pub(super) fn id(body: &Value) -> String {
    body["id"].as_str().unwrap_or_default().to_owned()
}

/// An account with a product that may be sold in Switzerland, and a factory.
pub(super) struct Brand<'a> {
    pub(super) api: &'a Api,
    pub(super) product: String,
    pub(super) place: String,
}

impl<'a> Brand<'a> {
    pub(super) async fn new(api: &'a Api) -> Result<Self> {
        let product = json!({"name": "Bag", "identifiers": {"gs1:01": "09521234543213"},
            "customFields": {"permittedCountries": ["CH"], "expectedWatermark": "W", "expectedMarkings": ["m1", "m2"]}});
        let place =
            json!({"name": "Plant", "identifiers": {"factory": "F1"}, "latitude": 47.5, "longitude": 8.5});
        let product = id(&api.create("/products", product).await?);
        Ok(Self { api, product, place: id(&api.create("/places", place).await?) })
    }

    /// A Thng that is commissioned at time 1.
    pub(super) async fn thng(&self, serial: &str) -> Result<String> {
        let body =
            json!({"name": serial, "identifiers": {"gs1:21": serial}, "customFields": {"factory": "F1"}});
        let thng = id(&self.api.create("/thngs", body).await?);
        self.api.create("/actions/encodings", json!({"thng": thng})).await?;
        let body = json!({"product": self.product, "location": {"place": self.place},
            "occurredAt": "1970-01-01T00:00:00.001Z", "factoryMetadata": {"factory": "F1"}});
        self.api.create(&format!("/thngs/{thng}/actions/commissions"), body).await?;
        Ok(thng)
    }

    pub(super) async fn ask(&self, body: Value) -> Result<Answer> {
        self.api.post("/authentication", body).await
    }

    /// The result of a trigger.
    pub(super) async fn judge(&self, body: Value) -> Result<Value> {
        let answer = self.ask(body).await?;
        assert_eq!(answer.status, 200, "{answer:?}");
        Ok(answer.json())
    }
}

pub(super) fn trigger(thng: Option<&str>, (latitude, longitude): (f64, f64)) -> Value {
    let mut body = json!({"id": UNKNOWN, "type": "scans", "locationSource": "sensor", "timestamp": 100 * HOUR,
        "location": {"latitude": latitude, "longitude": longitude,
            "position": {"type": "Point", "coordinates": [longitude, latitude]}}});
    if let Some(thng) = thng {
        body["thng"] = json!(thng);
    }
    body
}

pub(super) fn with(mut body: Value, name: &str, value: Value) -> Value {
    body[name] = value;
    body
}

pub(super) fn statuses(result: &Value) -> [&str; 3] {
    ["authenticationStatus", "counterfeitStatus", "grayMarketStatus"]
        .map(|name| result["customFields"][name].as_str().unwrap_or_default())
}

pub(super) fn check<'a>(result: &'a Value, name: &str) -> (&'a str, &'a str) {
    let check = &result["customFields"]["childActions"][name];
    (check["match"].as_str().unwrap_or_default(), check["reason"].as_str().unwrap_or_default())
}

/// Members and shapes of the result; "an action of type `authenticationResults` with similar content is created".
pub(super) async fn a_result_has_every_member_and_is_an_action(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let brand = Brand::new(&api).await?;
    let thng = brand.thng("A").await?;
    let custom =
        json!({"requestSource": "app", "requestUser": "u", "requestUserName": "n", "scanValue": "gs1:21:A"});
    let result = brand.judge(with(trigger(Some(&thng), BERN), "customFields", custom)).await?;
    assert_eq!(statuses(&result), ["positive", "none", "none"], "{result}");
    assert_eq!((&result["type"], &result["thng"]), (&json!("authenticationResults"), &json!(thng)));
    assert_eq!(result["locationSource"], "sensor");
    assert_eq!(result["location"]["position"]["coordinates"], json!([BERN.1, BERN.0]));
    assert!(result["createdAt"].is_i64() && result["timestamp"].is_i64());
    let fields = &result["customFields"];
    for (name, expected) in [
        ("countriesCount", json!(1)),
        ("regionsCount", json!(0)),
        ("userAgentCount", json!(0)),
        ("previousImplicitScansCount", json!(0)),
        ("geoIpSpreadDistance", json!(0.0)),
        ("sensorSpreadDistance", json!(0.0)),
        ("geoIpSpreadThreshold", json!(1000.0)),
        ("sensorSpreadThreshold", json!(300.0)),
        ("regionsThreshold", json!(2)),
        ("regionShareThreshold", json!(0.5)),
        ("scanThreshold", json!(3)),
        ("userAgentsThreshold", json!(4)),
        ("spreadOutlierThreshold", json!(500.0)),
        ("maxObservedScans", json!(64)),
        ("spreadOutlier", json!("unknown")),
        ("permittedCountries", json!(["CH"])),
        ("requestSource", json!("app")),
        ("requestUser", json!("u")),
        ("requestUserName", json!("n")),
        ("triggerAction", json!(UNKNOWN)),
        ("rulesVersion", json!(9)),
    ] {
        assert_eq!(fields[name], expected, "{name}");
    }
    let profile = json!({"countryCodes": ["CH"], "geoIpBBSize": 0.0, "isDuplicate": false,
        "isTriggerOutlier": false, "regions": [], "sensorBBSize": 0.0, "uaHashes": []});
    assert_eq!(fields["duplicateProfile"], profile);
    let unknown = json!({"city": "unknown", "countryCode": "unknown", "entryUrl": "unknown", "region": "unknown",
        "timeZone": "unknown", "userAgent": "unknown"});
    assert_eq!(fields["triggerContext"], unknown);
    assert_eq!(check(&result, "invalidChecks").0, "false");
    assert_eq!(check(&result, "unauthorizedChecks").0, "false");
    assert_eq!(check(&result, "diversionChecks").0, "false");
    assert_eq!(
        check(&result, "duplicateChecks"),
        ("unknown", "TOO_FEW_SCANS: 0 sessions before, 3 are needed.")
    );
    let tags = json!([
        "brandIntegrity",
        "eventGroup:consumer",
        "scanValue:gs1:21:A",
        "source:app",
        "status:positive"
    ]);
    assert_eq!(result["tags"], tags);
    // Notifications and reactions hear of it.
    let left = api.fingerprint().await?.remove("events").unwrap_or_default();
    assert_eq!(left.iter().filter(|row| row.contains(&id(&result))).count(), 1, "{left:?}");
    let uri = format!("/actions/authenticationResults/{}", id(&result));
    assert_eq!(api.get(&uri).await?.json(), result, "the id is that of the action");
    let listed = api.get(&format!("/thngs/{thng}/actions/authenticationResults")).await?.json();
    assert_eq!(listed, json!([result]), "once");
    Ok(())
}

/// "An unknown item yields `invalidChecks.match` of `true`, other checks `unknown`, with a `reason` string, and
/// status `negative`."
pub(super) async fn an_unknown_item_is_a_result(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let brand = Brand::new(&api).await?;
    let (_, foreign) = api.others().await?;
    let value = |text: &str| with(trigger(None, BERN), "customFields", json!({"scanValue": text}));
    for (body, word) in [
        (trigger(Some(UNKNOWN), BERN), "UNKNOWN_ITEM"),
        (trigger(Some(&foreign), BERN), "UNKNOWN_ITEM"),
        (trigger(Some("x"), BERN), "MALFORMED_ID"),
        (trigger(Some("x\u{0}"), BERN), "MALFORMED_ID"),
        (value("gs1:21:none"), "UNKNOWN_ITEM"),
        (value("https://tn.gg/NONE"), "UNKNOWN_ITEM"),
        (value("https://elsewhere.example/NONE"), "UNKNOWN_ITEM"),
        (value("gs1:01:09521234543214"), "MALFORMED_ID"),
        (value("no id at all"), "MALFORMED_ID"),
    ] {
        let result = brand.judge(body.clone()).await?;
        assert_eq!(statuses(&result), ["negative", "confirmed", "unknown"], "{body}");
        let (matched, reason) = check(&result, "invalidChecks");
        assert!(matched == "true" && reason.contains(word), "{body}: {reason}");
        for name in ["diversionChecks", "duplicateChecks", "unauthorizedChecks"] {
            let (matched, reason) = check(&result, name);
            assert!(matched == "unknown" && !reason.is_empty(), "{body}: {name}");
        }
        assert_eq!(result.get("thng"), body.get("thng").filter(|text| **text != json!("x\u{0}")), "{body}");
        let asked = body["thng"].as_str().or_else(|| body["customFields"]["scanValue"].as_str());
        let tag = json!(format!("scanValue:{}", asked.unwrap_or_default()));
        let is_tagged = result["tags"].as_array().is_some_and(|tags| tags.contains(&tag));
        assert!(is_tagged || body["thng"] == "x\u{0}", "{body}: {}", result["tags"]);
        let children = result["customFields"]["childActions"].as_object().context("children")?;
        assert_eq!(children.len(), 4);
    }
    let result = brand.judge(trigger(None, BERN)).await?;
    assert_eq!((statuses(&result), check(&result, "invalidChecks").0), (["unknown"; 3], "unknown"));
    Ok(())
}

/// "Thng by `thng`, else by the scanned value (a short URL, `<key>:<value>` or an id)."
pub(super) async fn an_item_is_found_by_the_scanned_value(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let brand = Brand::new(&api).await?;
    let thng = brand.thng("A").await?;
    let link = json!({"platformId": thng, "defaultRedirectUrl": "https://example.com", "shortId": "LINK"});
    let made = api.post("/redirections", link).await?;
    assert!(made.status.is_success(), "{made:?}");
    for value in
        [thng.as_str(), "gs1:21:A", "https://tn.gg/LINK", "HTTPS://TN.GG/link?x=1", "http://tn.gg/LINK#f"]
    {
        let body = with(trigger(None, BERN), "customFields", json!({"scanValue": value}));
        let result = brand.judge(body).await?;
        assert_eq!(result["thng"], json!(thng), "{value}");
        let shown = value.split(['?', '#']).next().unwrap_or_default();
        let tag = json!(format!("scanValue:{shown}"));
        assert!(result["tags"].as_array().is_some_and(|tags| tags.contains(&tag)), "{}", result["tags"]);
    }
    Ok(())
}

/// "An item that is not activated or is in the wrong country can get the status `negative`", and each check says why.
pub(super) async fn each_check_can_match(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let brand = Brand::new(&api).await?;
    let thng = brand.thng("A").await?;
    let bare = id(&api.create("/thngs", json!({"name": "bare"})).await?);
    let early = with(trigger(Some(&thng), BERN), "timestamp", json!(0));
    let inspect = |fields: Value| {
        let body = with(trigger(Some(&thng), BERN), "type", json!("inspectorScans"));
        with(body, "customFields", fields)
    };
    let whole = |with: &str, value: Value| {
        let mut fields = json!({"inspectedProductMatch": "yes", "watermark": "W", "markings": ["m2", "m1"]});
        fields[with] = value;
        inspect(fields)
    };
    for (body, name, matched, word, status) in [
        (
            trigger(Some(&bare), BERN),
            "unauthorizedChecks",
            "true",
            "NOT_ACTIVATED",
            ["negative", "suspected", "unknown"],
        ),
        (early, "unauthorizedChecks", "true", "SCANNED_BEFORE_ACTIVATION", ["negative", "suspected", "none"]),
        (
            trigger(Some(&thng), TOKYO),
            "diversionChecks",
            "true",
            "OUTSIDE_MARKET",
            ["negative", "none", "confirmed"],
        ),
        (whole("x", json!(1)), "physicalChecks", "false", "matches", ["positive", "none", "none"]),
        (
            whole("inspectedProductMatch", json!("no")),
            "physicalChecks",
            "true",
            "not match",
            ["negative", "confirmed", "none"],
        ),
        (
            whole("watermark", json!("V")),
            "watermarkChecks",
            "true",
            "MISMATCH",
            ["negative", "confirmed", "none"],
        ),
        (
            whole("watermark", json!(null)),
            "watermarkChecks",
            "true",
            "MISSING",
            ["negative", "confirmed", "none"],
        ),
        (whole("markings", json!(["m1"])), "markingsChecks", "true", "m2", ["negative", "confirmed", "none"]),
    ] {
        let result = brand.judge(body.clone()).await?;
        let (found, reason) = check(&result, name);
        assert!(found == matched && reason.contains(word), "{body}: {result}");
        assert_eq!(statuses(&result), status, "{body}: {result}");
        let tag = json!(format!("match:{name}"));
        let is_tagged = result["tags"].as_array().is_some_and(|tags| tags.contains(&tag));
        assert_eq!(is_tagged, matched == "true", "{body}");
    }
    // A customer's word is no evidence.
    let body = with(trigger(Some(&thng), BERN), "customFields", json!({"inspectedProductMatch": "no"}));
    let result = brand.judge(body).await?;
    assert_eq!(
        (statuses(&result)[0], result["customFields"]["childActions"].get("physicalChecks")),
        ("positive", None)
    );
    // Near the border the country is undecided.
    let basel = brand.judge(trigger(Some(&thng), (47.56, 7.59))).await?;
    let (matched, reason) = check(&basel, "diversionChecks");
    assert!(matched == "unknown" && reason.starts_with("NO_COUNTRY: near the border of"), "{reason}");
    Ok(())
}

/// A request with faults is 400 and stores nothing; each fault is named.
pub(super) async fn invalid_triggers_are_reported_and_store_nothing(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let good = trigger(Some(UNKNOWN), BERN);
    let before = api.fingerprint().await?;
    for (body, faults) in [
        (json!({}), vec!["id is", "type is", "locationSource is", "location is"]),
        (with(good.clone(), "id", json!("x")), vec!["id: "]),
        (with(good.clone(), "type", json!("own")), vec!["type must be"]),
        (with(good.clone(), "locationSource", json!("place")), vec!["locationSource must be"]),
        (
            with(
                good.clone(),
                "location",
                json!({"latitude": 91.0, "longitude": 2.0, "position": {"type": "Point", "coordinates": [2.0, 1.0]}}),
            ),
            vec!["location.latitude must"],
        ),
        (
            with(good.clone(), "location", json!({"place": UNKNOWN})),
            vec!["location.place is", "location must have"],
        ),
        (with(good.clone(), "timestamp", json!("now")), vec!["timestamp must"]),
        (
            with(good.clone(), "customFields", json!({"inspectedProductMatch": "?"})),
            vec!["customFields.inspected"],
        ),
    ] {
        let answer = api.post("/authentication", body.clone()).await?;
        let errors = answer.problem(400, 40001);
        let fits = errors.len() == faults.len()
            && errors.iter().zip(&faults).all(|(error, fault)| error.starts_with(fault));
        assert!(fits, "{body}: {errors:?} instead of {faults:?}");
    }
    assert_eq!(api.fingerprint().await?, before);
    Ok(())
}

/// A scan as an edge has it stored, and in the profile: by a device, at an hour, in a city or nowhere.
pub(super) async fn scanned(
    api: &Api,
    thng: &str,
    hour: i64,
    agent: &str,
    place: Option<(&str, &str, (f64, f64))>,
) -> Result<ActionId> {
    let mut doc =
        json!({"locationSource": "unknown", "context": {"userAgent": agent, "entryUrl": "https://tn.gg/X"}});
    if let Some((city, country, (latitude, longitude))) = place {
        doc["locationSource"] = json!("geoIp");
        doc["location"] = json!({"latitude": latitude, "longitude": longitude});
        for (name, text) in [("city", city), ("region", city), ("countryCode", country)] {
            doc["context"][name] = json!(text);
        }
    }
    recorded(api, thng, hour, doc).await
}

/// The same of any document.
pub(super) async fn recorded(api: &Api, thng: &str, hour: i64, doc: Value) -> Result<ActionId> {
    let action = ActionId::new(hour * HOUR, random16()?);
    let new = NewAction {
        id: action,
        account: api.made.account,
        kind: "implicitScans".to_owned(),
        thng: Some(thng.parse()?),
        product: None,
        timestamp: UnixMillis(hour * HOUR),
        doc,
    };
    let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
    let new = [new];
    actions::insert(&mut tx, UnixMillis(hour * HOUR), &new).await?;
    assessment::service::assessment::observe::record(
        api.made.app.assessment.sources(),
        &mut tx,
        (api.made.account, UnixMillis(hour * HOUR)),
        &new,
        &std::collections::HashMap::new(),
    )
    .await?;
    tx.commit().await?;
    Ok(action)
}

crate::on_both_engines!(
    a_result_has_every_member_and_is_an_action,
    an_unknown_item_is_a_result,
    an_item_is_found_by_the_scanned_value,
    each_check_can_match,
    invalid_triggers_are_reported_and_store_nothing,
);
