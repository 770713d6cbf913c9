//! Packed results read in every way, their certainty, and many concurrent assessments.

use std::collections::HashMap;

use ::actions::store::actions::{self, NewAction};
use anyhow::{Context, Result, ensure};
use assessment::store::item_standings::{self, Kept};
use axum::http::Method;
use futures_util::future::join_all;
use kernel::store::Ctx;
use serde_json::{Value, json};
use shared::{id::ActionId, time::UnixMillis};
use tests::{
    db::{Engine, random16},
    product::PHONE,
};

use super::{
    Api,
    authentication::{BERN, Brand, HOUR, TOKYO, id, scanned, trigger, with},
    events::Stream,
    jobs::work,
    scan_sources::keys,
    webhooks::receiver::{Receiver, Reply, deliver, webhook},
};

/// Bytes that a result may have in the database, without what it is found by.
const MOST_BYTES: usize = 1_000;

/// The answer, and what is read later: by id, in lists, by filters, in the export, as an event and by a webhook.
pub(super) async fn a_result_reads_the_same_everywhere(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let brand = Brand::new(&api).await?;
    let (_work, _deliver) = (work(&api), deliver(&api));
    let receiver = Receiver::new(|_| Reply::Take).await?;
    webhook(&api, &receiver, json!({"types": ["action.authenticationResults"]})).await?;
    let mut stream = Stream::open(&api, &api.key, "/events?types=action.authenticationResults", None).await?;
    let (thng, copied) = (brand.thng("A").await?, brand.thng("B").await?);
    let scan = scanned(&api, &thng, 40, PHONE, Some(("Tokyo", "JP", TOKYO))).await?;
    let nowhere = scanned(&api, &thng, 41, PHONE, None).await?;
    let cities = [("Bern", "CH", BERN), ("Tokyo", "JP", TOKYO), ("Lima", "PE", (-12.05, -77.04))];
    for n in 0..16_usize {
        scanned(&api, &copied, 10 + n as i64, &format!("Phone{}/1", n % 5), Some(cities[n % 3])).await?;
    }
    let asked = json!({"requestSource": "app", "requestUser": "u", "scanValue": "gs1:21:A"});
    let mut answers = Vec::new();
    for body in [
        // As it was recorded; with a place of its own; of a scan without a place; of one that is not stored.
        json!({"id": scan}),
        with(trigger(Some(&thng), BERN), "id", json!(scan)),
        json!({"id": nowhere, "thng": thng}),
        with(with(trigger(Some(&thng), TOKYO), "customFields", asked), "type", json!("inspectorScans")),
        with(trigger(Some(&copied), BERN), "timestamp", json!(99 * HOUR)),
        trigger(Some("UKXAGyEf8SQ5eTDmVgGpHqAa"), BERN),
        with(trigger(None, BERN), "customFields", json!({"scanValue": "gs1:21:none"})),
    ] {
        answers.push(brand.judge(body).await?);
    }

    let path = "/actions/authenticationResults";
    let mut listed = api.get(path).await?.json();
    listed.as_array_mut().context("a list")?.reverse();
    ensure!(listed == json!(answers), "the list: {listed}\nthe answers: {}", json!(answers));
    let export = api.get(&format!("{path}/export")).await?;
    let lines = String::from_utf8(export.bytes)?;
    let mut told = HashMap::new();
    for came in receiver.wait(answers.len()).await? {
        told.insert(came.json()["data"]["id"].clone().to_string(), came.json()["data"].clone());
    }
    for (answer, line) in answers.iter().zip(lines.lines()) {
        ensure!(api.get(&format!("{path}/{}", id(answer))).await?.json() == *answer, "by id: {answer}");
        let line: Value = serde_json::from_str(line)?;
        ensure!(line == *answer, "the export: {line}\nthe answer: {answer}");
        let event = stream.next().await?.body;
        ensure!(event["data"] == *answer, "the event: {event}\nthe answer: {answer}");
        ensure!(told.get(&answer["id"].to_string()) == Some(answer), "the webhook: {told:?}");
    }
    let of_thng = api.get(&format!("/thngs/{copied}{path}")).await?.json();
    ensure!(of_thng == json!([answers[4]]), "{of_thng}");
    for (filter, expected) in [
        ("customFields.counterfeitStatus=suspected", vec![4]),
        ("customFields.childActions.duplicateChecks.match=true", vec![4]),
        ("tags=match:invalidChecks", vec![6, 5]),
        ("customFields.requestUser=u", vec![3]),
        ("customFields.scanValue=gs1:21:A", vec![3]),
        (&format!("customFields.triggerAction={nowhere}"), vec![2]),
    ] {
        let found = api.get(&format!("{path}?filter={}", filter.replace(':', "%3A"))).await?.json();
        let expected: Vec<&Value> = expected.into_iter().map(|n: usize| &answers[n]).collect();
        ensure!(found == json!(expected), "{filter}: {found}");
    }

    stored_short(&api, &answers).await?;

    // One that an older release stored whole reads as it is.
    let whole = answers[4].as_object().context("object")?.clone();
    let action = NewAction {
        id: ActionId::new(UnixMillis(1).0, random16()?),
        account: api.made.account,
        kind: "authenticationResults".to_owned(),
        thng: Some(copied.parse()?),
        product: None,
        timestamp: UnixMillis(1),
        doc: Value::Object(whole),
    };
    let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
    actions::insert(&mut tx, UnixMillis(1), std::slice::from_ref(&action)).await?;
    tx.commit().await?;
    let old = api.get(&format!("{path}/{}", action.id)).await?.json();
    ensure!(old["customFields"] == answers[4]["customFields"] && old["tags"] == answers[4]["tags"], "{old}");

    // What was read of a scan is unknown once that is gone.
    let gone = api.delete(&format!("/actions/implicitScans/{scan}")).await?;
    ensure!(gone.status.is_success(), "{gone:?}");
    let result = api.get(&format!("{path}/{}", id(&answers[0]))).await?.json();
    ensure!(result["customFields"]["triggerContext"]["city"] == "unknown", "{result}");
    ensure!(result.get("location").is_none(), "{result}");
    ensure!(result["customFields"]["childActions"] == answers[0]["customFields"]["childActions"]);
    // A place of the request stays.
    let result = api.get(&format!("{path}/{}", id(&answers[1]))).await?.json();
    ensure!(result["location"] == answers[1]["location"], "{result}");
    Ok(())
}

/// Each result is short in the database, and what they share is there once.
async fn stored_short(api: &Api, answers: &[Value]) -> Result<()> {
    let all = api.fingerprint().await?;
    let contexts = all.get("assessment_contexts").context("contexts")?;
    // One with the markets of the product, one without.
    ensure!(contexts.len() == 2, "{contexts:?}");
    let rows = all.get("actions").context("actions")?;
    for answer in answers {
        let own: Vec<&String> = rows
            .iter()
            .filter(|row| row.contains(&id(answer)) && row.contains("authenticationResults"))
            .collect();
        ensure!(own.len() == 1, "{own:?}");
        ensure!(!own[0].contains("geoIpSpreadThreshold"), "{}", own[0]);
    }
    // Of a genuine item, the document with all columns and facets.
    let plain = rows.iter().find(|row| row.contains(&id(&answers[2]))).context("row")?;
    ensure!(plain.len() < 2 * MOST_BYTES, "{} bytes: {plain}", plain.len());
    Ok(())
}

/// Figures beside the bars that decided, and what settles them; a stranger sees none of another's.
pub(super) async fn a_result_has_its_certainty(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let brand = Brand::new(&api).await?;
    let thng = brand.thng("A").await?;
    let cities = [("Bern", "CH", BERN), ("Tokyo", "JP", TOKYO), ("Lima", "PE", (-12.05, -77.04))];
    for n in 0..12_usize {
        scanned(&api, &thng, 10 + n as i64, &format!("Phone{}/1", n % 6), Some(cities[n % 3])).await?;
    }
    let scan = scanned(&api, &thng, 60, "PhoneX/1", Some(cities[1])).await?;
    let result = brand.judge(json!({"id": scan})).await?;
    let check = |result: &Value, name: &str| result["customFields"]["childActions"][name].clone();
    let duplicate = check(&result, "duplicateChecks");
    let certainty = &duplicate["certainty"];
    assert_eq!(duplicate["match"], "true", "{result}");
    assert_eq!(certainty["points"], result["customFields"]["duplicatePoints"], "{duplicate}");
    assert_eq!((&certainty["bar"], &certainty["nextBar"]), (&json!(10), &Value::Null), "{duplicate}");
    assert_eq!(
        certainty["gate"],
        json!({"isOpen": true, "regions": 3, "regionsThreshold": 2,
        "geoIpKm": certainty["gate"]["geoIpKm"], "geoIpThresholdKm": 1000.0, "sensorKm": 0.0,
        "sensorThresholdKm": 300.0})
    );
    let signs = certainty["signs"].as_array().context("signs")?;
    let points: u64 = signs.iter().filter_map(|sign| sign["points"].as_u64()).sum();
    assert_eq!(json!(points), certainty["points"]);
    assert!(signs.iter().all(|sign| sign["figure"].as_f64() > sign["threshold"].as_f64()), "{signs:?}");
    let codes = |certainty: &Value| -> Vec<String> {
        let all = certainty["settles"].as_array().into_iter().flatten();
        all.filter_map(|one| one["code"].as_str().map(str::to_owned)).collect()
    };
    assert_eq!(codes(certainty), ["INSPECT", "DECIDE_CASE"], "{certainty}");
    let diversion = check(&result, "diversionChecks")["certainty"].clone();
    assert_eq!(
        (&diversion["inside"], &diversion["outside"], &diversion["firstWasInside"]),
        (&json!(4), &json!(8), &json!(true))
    );
    assert_eq!(codes(&diversion), ["ASK_FOR_PLACE", "DECIDE_CASE"]);
    assert_eq!(check(&result, "unauthorizedChecks")["certainty"], json!({"settles": []}));

    let [public, _] = keys(&api, &thng).await?;
    let user = api.call_as(&public, Method::POST, "/auth/evrythng/users?anonymous=true", None).await?.json();
    let user = user["evrythngApiKey"].as_str().context("key")?;
    let seen = api.call_as(user, Method::POST, "/authentication", Some(json!({"id": scan}))).await?.json();
    for name in ["duplicateChecks", "diversionChecks"] {
        let certainty = check(&seen, name)["certainty"].clone();
        assert_eq!(certainty.as_object().map(serde_json::Map::len), Some(1), "{certainty}");
        assert!(certainty["settles"].is_array(), "{certainty}");
    }
    Ok(())
}

/// Items of the race, and assessments of each.
const ITEMS: usize = 10;
const OF_EACH: usize = 10;

/// A hundred assessments at once give the results and the standings that they give one after another.
pub(super) async fn concurrent_assessments_equal_sequential_ones(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let brand = Brand::new(&api).await?;
    let cities = [
        ("Bern", "CH", BERN),
        ("Tokyo", "JP", TOKYO),
        ("Lima", "PE", (-12.05, -77.04)),
        ("Lyon", "FR", (45.76, 4.84)),
    ];
    let (mut items, mut twins) = (Vec::new(), Vec::new());
    for n in 0..ITEMS {
        for (of, all) in [("a", &mut items), ("b", &mut twins)] {
            let thng = brand.thng(&format!("{of}{n}")).await?;
            // From a few sessions of one device to many of several.
            for m in 0..3 + 2 * n {
                let place = cities[m % (1 + n % cities.len())];
                scanned(&api, &thng, 10 + m as i64, &format!("Phone{}/1", m % (1 + n)), Some(place)).await?;
            }
            all.push(thng);
        }
    }
    // Later ones first for every second item, so that some must not change the standing.
    let body = |thng: &str, item: usize, nth: usize| {
        let hour = if item.is_multiple_of(2) { 60 + nth } else { 80 - nth };
        let (_, _, place) = cities[(item + nth) % cities.len()];
        let id = ActionId::new(1, [(item * OF_EACH + nth) as u8; 16]);
        with(with(trigger(Some(thng), place), "timestamp", json!(hour as i64 * HOUR)), "id", json!(id))
    };
    let all = (0..ITEMS).flat_map(|item| (0..OF_EACH).map(move |nth| (item, nth)));
    let answers = join_all(all.map(|(item, nth)| brand.judge(body(&items[item], item, nth)))).await;
    let answers = answers.into_iter().collect::<Result<Vec<Value>>>()?;
    ensure!(answers.len() == ITEMS * OF_EACH);

    let mut conn = api.made.app.core.db.read().await?;
    for (item, (thng, twin)) in items.iter().zip(&twins).enumerate() {
        let uri = format!("/thngs/{thng}/actions/authenticationResults?perPage=100");
        let mut results = api.get(&uri).await?.json().as_array().cloned().context("a list")?;
        ensure!(results.len() == OF_EACH, "{}", results.len());
        // In the order in which they were written.
        results.reverse();
        for result in results {
            let asked = &result["customFields"]["triggerAction"];
            let nth = (0..OF_EACH).find(|nth| body(thng, item, *nth)["id"] == *asked).context("asked")?;
            let again = brand.judge(body(twin, item, nth)).await?;
            ensure!(again["customFields"] == result["customFields"], "{item}: {again}\n{result}");
            ensure!(answers.contains(&result), "it was answered so: {result}");
        }
        let [one, mut other]: [Kept; 2] = [
            item_standings::load(&mut conn, api.made.account, thng.parse()?).await?,
            item_standings::load(&mut conn, api.made.account, twin.parse()?).await?,
        ];
        // The cases have ids of their own, and are the same else.
        for (own, others) in
            [(&one.counterfeit, &mut other.counterfeit), (&one.gray_market, &mut other.gray_market)]
        {
            ensure!(own.is_some() == others.is_some(), "{item}: {own:?} and {others:?}");
            if let (Some(own), Some(others)) = (own, others) {
                others.id = own.id;
            }
        }
        ensure!(one == other && one.stood.is_some() && one.peak.is_some(), "{item}: {one:?} and {other:?}");
    }
    Ok(())
}

crate::on_both_engines!(
    a_result_reads_the_same_everywhere,
    a_result_has_its_certainty,
    concurrent_assessments_equal_sequential_ones,
);
