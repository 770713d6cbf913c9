//! Cases: assessments open them, people decide on them, and the item's status follows at once.

use anyhow::{Context, Result};
use axum::http::Method;
use serde_json::{Value, json};
use shared::id::ActionId;
use tests::db::Engine;

use super::{
    Answer, Api, Application,
    authentication::{BERN, Brand, CITIES, HOUR, check, id, scanned, statuses, trigger, with},
};

/// A commissioned Thng whose code four devices scan in four cities.
pub(super) async fn copied(brand: &Brand<'_>, serial: &str) -> Result<String> {
    let thng = brand.thng(serial).await?;
    for (n, place) in CITIES.iter().cycle().take(16).enumerate() {
        let agent = format!("Phone{}/1", ["A", "B", "C", "D"][n % 4]);
        scanned(brand.api, &thng, 10 + 2 * n as i64, &agent, Some(*place)).await?;
    }
    Ok(thng)
}

/// A scan at home that a server reports.
pub(super) async fn judged(brand: &Brand<'_>, thng: &str, hour: i64) -> Result<Value> {
    brand.judge(with(trigger(Some(thng), BERN), "timestamp", json!(hour * HOUR))).await
}

async fn cases(api: &Api, query: &str) -> Result<Vec<Value>> {
    let answer = api.get(&format!("/authentication/cases?{query}")).await?.must_be(200)?;
    Ok(answer.json().as_array().context("list")?.clone())
}

/// The only case of a Thng.
async fn case_of(api: &Api, thng: &str) -> Result<Value> {
    let found = cases(api, &format!("filter=thng={thng}")).await?;
    assert_eq!(found.len(), 1, "{found:?}");
    Ok(found[0].clone())
}

async fn put(api: &Api, case: &Value, body: Value) -> Result<Answer> {
    api.put(&format!("/authentication/cases/{}", id(case)), body).await
}

async fn decide(api: &Api, case: &Value, status: &str) -> Result<Value> {
    let answer = put(api, case, json!({"status": status, "reason": "We looked."})).await?;
    assert_eq!(answer.status, 200, "{answer:?}");
    Ok(answer.json())
}

/// The verdict that edges go by.
pub(super) async fn standing(api: &Api, thng: &str) -> Result<[String; 3]> {
    let answer = api.post("/authentication/replay", json!({"thng": thng})).await?.must_be(200)?;
    let stored = &answer.json()["stored"];
    let of = |name: &str| stored[name].as_str().unwrap_or_default().to_owned();
    Ok([of("authenticationStatus"), of("counterfeitStatus"), of("grayMarketStatus")])
}

pub(super) async fn a_copy_and_a_diversion_open_cases(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let brand = Brand::new(&api).await?;
    let thng = copied(&brand, "A").await?;
    assert_eq!(cases(&api, "").await?, [] as [Value; 0], "scans alone are not assessed");
    let result = judged(&brand, &thng, 99).await?;
    let points = result["customFields"]["duplicatePoints"].clone();
    let copy = case_of(&api, &thng).await?;
    for (name, expected) in [
        ("kind", json!("counterfeit")),
        ("status", json!("open")),
        ("version", json!(1)),
        ("product", json!(brand.product)),
        ("history", json!([])),
    ] {
        assert_eq!(copy[name], expected, "{name}: {copy}");
    }
    assert_eq!((copy.get("decision"), copy.get("scopes")), (None, None));
    let evidence = &copy["evidence"];
    assert_eq!((&evidence["points"], &evidence["level"]), (&points, &json!("duplicate")), "{copy}");
    assert_eq!(evidence["countries"], json!(["AU", "JP", "PE"]), "{copy}");
    assert!(evidence["reason"].as_str().is_some_and(|text| text.contains("DUPLICATE")), "{copy}");
    assert!(evidence["signs"].as_array().is_some_and(|signs| signs.contains(&json!("places"))), "{copy}");
    // The same again adds nothing.
    judged(&brand, &thng, 99).await?;
    assert_eq!(case_of(&api, &thng).await?, copy);
    // Abroad it is diverted, too.
    let abroad = scanned(&api, &thng, 100, "PhoneB/1", Some(CITIES[1])).await?;
    let result = brand.judge(json!({"id": abroad})).await?;
    assert_eq!(statuses(&result)[2], "suspected", "{result}");
    let of_kind = cases(&api, &format!("filter=thng={thng}%26kind=grayMarket")).await?;
    assert_eq!((of_kind.len(), &of_kind[0]["evidence"]["scan"]), (1, &json!(abroad)), "{of_kind:?}");
    let gray = of_kind[0].clone();
    for (query, expected) in [
        ("perPage=100", 2),
        ("filter=status=open", 2),
        ("filter=status=dismissed", 0),
        ("filter=kind=counterfeit", 1),
        (&format!("filter=product={}", brand.product), 2),
        (&format!("filter=thng={}", brand.product), 0),
        (&format!("ids={}", id(&gray)), 1),
    ] {
        assert_eq!(cases(&api, query).await?.len(), expected, "{query}");
    }
    let first = api.get("/authentication/cases?perPage=1").await?;
    assert_eq!(first.json()[0]["id"], gray["id"], "newest first");
    let next = super::paging::next(&first).context("a link")?;
    let (_, next) = next.split_once("/authentication").context("path")?;
    let next = api.get(&format!("/authentication{next}")).await?.json();
    assert_eq!(next, json!(cases(&api, "filter=kind=counterfeit").await?));
    let one = api.get(&format!("/authentication/cases/{}?withScopes=true", id(&gray))).await?.json();
    assert_eq!(one["scopes"], json!({"users": [], "projects": []}), "{one}");
    api.get("/authentication/cases?filter=name=x").await?.problem(400, 40003);
    api.get("/authentication/cases/UKXAGyEf8SQ5eTDmVgGpHqAa").await?.problem(404, 40401);
    // Another tenant has none of it.
    let uri = format!("/authentication/cases/{}", id(&gray));
    api.call_as(&api.other_key, Method::GET, &uri, None).await?.problem(404, 40401);
    let body = json!({"status": "dismissed", "reason": "r"});
    api.call_as(&api.other_key, Method::PUT, &uri, Some(body)).await?.problem(404, 40401);
    let theirs = api.call_as(&api.other_key, Method::GET, "/authentication/cases", None).await?;
    assert_eq!(theirs.json(), json!([]));
    // A deleted Thng takes its cases along.
    let gone = api.delete(&format!("/thngs/{thng}")).await?;
    assert!(gone.status.is_success(), "{gone:?}");
    assert_eq!(cases(&api, "").await?, [] as [Value; 0]);
    Ok(())
}

pub(super) async fn a_dismissed_copy_stays_dismissed_until_new_evidence(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let brand = Brand::new(&api).await?;
    let thng = copied(&brand, "A").await?;
    judged(&brand, &thng, 99).await?;
    assert_eq!(standing(&api, &thng).await?, ["suspicious", "suspected", "none"]);
    let case = case_of(&api, &thng).await?;
    let dismissed = decide(&api, &case, "dismissed").await?;
    assert_eq!((&dismissed["status"], &dismissed["version"]), (&json!("dismissed"), &json!(2)));
    let decision = &dismissed["decision"];
    assert_eq!(decision["by"], json!({"type": "operator", "id": api.made.operator}));
    assert_eq!((&decision["reason"], &decision["evidence"]), (&json!("We looked."), &case["evidence"]));
    assert_eq!(dismissed["history"], json!([decision]));
    assert_eq!(standing(&api, &thng).await?, ["positive", "none", "none"], "at once");
    // The same evidence: the reason names the case and not what the person wrote.
    let again = judged(&brand, &thng, 99).await?;
    assert_eq!(statuses(&again), ["positive", "none", "none"], "{again}");
    let (matched, reason) = check(&again, "duplicateChecks");
    assert!(matched == "false" && reason.contains("DISMISSED") && reason.contains(&id(&case)), "{reason}");
    assert!(!reason.contains("We looked"), "{reason}");
    assert_eq!(case_of(&api, &thng).await?["status"], "dismissed");
    // A fifth device is a sign that is new.
    scanned(&api, &thng, 60, "PhoneE/1", Some(("New York", "US", (40.71, -74.0)))).await?;
    let new = judged(&brand, &thng, 101).await?;
    assert_eq!(statuses(&new)[1], "suspected", "{new}");
    let open = case_of(&api, &thng).await?;
    assert_eq!((&open["status"], &open["version"], open.get("decision")), (&json!("open"), &json!(3), None));
    let told: Vec<&Value> =
        open["history"].as_array().context("history")?.iter().map(|one| &one["status"]).collect();
    assert_eq!(told, [&json!("dismissed"), &json!("open")]);
    assert_eq!(open["history"][1]["by"]["type"], "scan");
    assert_eq!(standing(&api, &thng).await?[1], "suspected");
    Ok(())
}

pub(super) async fn a_confirmed_case_stays_confirmed_after_more_scans(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let brand = Brand::new(&api).await?;
    let thng = copied(&brand, "A").await?;
    judged(&brand, &thng, 99).await?;
    let case = case_of(&api, &thng).await?;
    decide(&api, &case, "confirmed").await?;
    assert_eq!(standing(&api, &thng).await?, ["negative", "confirmed", "none"]);
    // So many sessions at home that no other one is left in the profile.
    for hour in 100..170 {
        scanned(&api, &thng, hour, "PhoneA/1", Some(CITIES[0])).await?;
    }
    let result = judged(&brand, &thng, 171).await?;
    assert_eq!(statuses(&result), ["negative", "confirmed", "none"], "{result}");
    assert!(check(&result, "duplicateChecks").1.contains("CONFIRMED"), "{result}");
    assert_eq!(standing(&api, &thng).await?, ["negative", "confirmed", "none"]);
    assert_eq!(case_of(&api, &thng).await?["status"], "confirmed");
    // A person opens it again: the greatest points are remembered.
    let answer = put(&api, &case, json!({"status": "open"})).await?;
    assert_eq!((answer.status.as_u16(), &answer.json()["history"][1]["status"]), (200, &json!("open")));
    assert_eq!(standing(&api, &thng).await?[..2], ["suspicious", "suspected"]);
    let case = case_of(&api, &thng).await?;
    decide(&api, &case, "dismissed").await?;
    assert_eq!(standing(&api, &thng).await?, ["positive", "none", "none"]);
    Ok(())
}

pub(super) async fn countries_of_a_dismissed_diversion_are_permitted(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let brand = Brand::new(&api).await?;
    let thng = brand.thng("A").await?;
    let judge = async |scan: ActionId| brand.judge(json!({"id": scan})).await;
    let first = judge(scanned(&api, &thng, 10, "PhoneA/1", Some(CITIES[1])).await?).await?;
    assert_eq!(statuses(&first), ["suspicious", "none", "suspected"], "{first}");
    // The country of the last scan is not known: that of the one before holds.
    judge(scanned(&api, &thng, 15, "PhoneA/1", None).await?).await?;
    assert_eq!(standing(&api, &thng).await?[2], "suspected");
    let case = case_of(&api, &thng).await?;
    assert_eq!((&case["kind"], &case["evidence"]["countries"]), (&json!("grayMarket"), &json!(["JP"])));
    decide(&api, &case, "dismissed").await?;
    assert_eq!(standing(&api, &thng).await?, ["positive", "none", "none"]);
    let again = judge(scanned(&api, &thng, 20, "PhoneB/1", Some(CITIES[1])).await?).await?;
    assert_eq!(statuses(&again), ["positive", "none", "none"], "{again}");
    assert!(check(&again, "diversionChecks").1.contains("DISMISSED"), "{again}");
    judge(scanned(&api, &thng, 25, "PhoneB/1", None).await?).await?;
    assert_eq!(standing(&api, &thng).await?, ["positive", "none", "none"], "without a country it stays");
    assert_eq!(case_of(&api, &thng).await?["status"], "dismissed");
    let other = judge(scanned(&api, &thng, 30, "PhoneC/1", Some(CITIES[2])).await?).await?;
    assert_eq!(statuses(&other)[2], "suspected", "{other}");
    let open = case_of(&api, &thng).await?;
    assert_eq!((&open["status"], &open["evidence"]["countries"]), (&json!("open"), &json!(["AU", "JP"])));
    assert_eq!(open["history"].as_array().map(Vec::len), Some(2));
    decide(&api, &open, "confirmed").await?;
    assert_eq!(standing(&api, &thng).await?, ["negative", "none", "confirmed"]);
    let home = judge(scanned(&api, &thng, 40, "PhoneC/1", Some(CITIES[0])).await?).await?;
    assert_eq!(statuses(&home)[2], "confirmed", "{home}");
    Ok(())
}

pub(super) async fn tags_change_the_item_status_at_once(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let brand = Brand::new(&api).await?;
    let thng = copied(&brand, "A").await?;
    let tag = async |tags: Value| -> Result<[String; 3]> {
        let body = Some(json!({"tags": tags}));
        api.call(Method::PUT, &format!("/thngs/{thng}"), body).await?.must_be(200)?;
        standing(&api, &thng).await
    };
    // What was never assessed has no verdict, whatever its tags.
    assert_eq!(tag(json!(["display"])).await?, ["", "", ""]);
    tag(json!([])).await?;
    judged(&brand, &thng, 99).await?;
    assert_eq!(tag(json!(["x", "display"])).await?, ["positive", "none", "none"]);
    assert_eq!(tag(json!(["x"])).await?, ["suspicious", "suspected", "none"]);
    assert_eq!(tag(json!(["stolen"])).await?, ["negative", "suspected", "none"]);
    assert_eq!(tag(json!([])).await?, ["suspicious", "suspected", "none"]);
    // One click: the case is dismissed and the tag is set.
    let case = case_of(&api, &thng).await?;
    let body = json!({"status": "dismissed", "reason": "shop", "display": true, "version": case["version"]});
    let answer = put(&api, &case, body.clone()).await?;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(standing(&api, &thng).await?, ["positive", "none", "none"]);
    let tags =
        || async { Ok::<_, anyhow::Error>(api.get(&format!("/thngs/{thng}")).await?.json()["tags"].clone()) };
    assert_eq!(tags().await?, json!(["display"]));
    // What is refused changes nothing.
    let before = api.fingerprint().await?;
    put(&api, &case, body).await?.problem(409, 40901);
    for body in [
        json!({}),
        json!({"status": "confirmed"}),
        json!({"status": "confirmed", "reason": "r", "display": true}),
        json!({"status": "closed", "reason": "r"}),
    ] {
        put(&api, &case, body).await?.problem(400, 40001);
    }
    assert_eq!(api.fingerprint().await?, before);
    let full: Vec<String> = (0..100).map(|n| format!("t{n}")).collect();
    tag(json!(full)).await?;
    let body = json!({"status": "dismissed", "reason": "shop", "display": true});
    let faults = put(&api, &case, body).await?.problem(400, 40001);
    assert!(faults[0].starts_with("display: the Thng has 100 tags"), "{faults:?}");
    Ok(())
}

/// A key that anybody can get opens no case, and reads none.
pub(super) async fn public_scans_open_no_case(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let Application { project, public, .. } = api.application(json!({"name": "a"})).await?;
    let uri = "/auth/evrythng/users?anonymous=true";
    let user = api.call_as(&public, Method::POST, uri, Some(json!({}))).await?.json();
    let user = user["evrythngApiKey"].as_str().context("key")?.to_owned();
    let thng = id(&api.create(&format!("/thngs?project={project}"), json!({"name": "t"})).await?);
    let asked = api
        .call_as(&user, Method::POST, "/authentication", Some(trigger(Some(&thng), BERN)))
        .await?
        .must_be(200)?;
    assert_eq!(statuses(&asked.json())[1], "suspected", "it was never commissioned");
    assert_eq!(cases(&api, "").await?, [] as [Value; 0]);
    // The same question of a server does.
    api.post("/authentication", trigger(Some(&thng), BERN)).await?.must_be(200)?;
    let case = case_of(&api, &thng).await?;
    assert_eq!(case["evidence"]["signs"], json!(["NOT_ACTIVATED"]), "{case}");
    assert_eq!(cases(&api, &format!("project={project}")).await?.len(), 1);
    let key = api.create("/auth/evrythng/thngs", json!({"thngId": thng})).await?;
    let key = key["thngApiKey"].as_str().context("key")?.to_owned();
    for key in [&public, &user, &key] {
        let uri = format!("/authentication/cases/{}", id(&case));
        api.call_as(key, Method::GET, "/authentication/cases", None).await?.problem(403, 40301);
        api.call_as(key, Method::GET, &uri, None).await?.problem(403, 40301);
        let body = json!({"status": "dismissed", "reason": "r"});
        api.call_as(key, Method::PUT, &uri, Some(body)).await?.problem(403, 40301);
    }
    // What a person knows better is no longer negative.
    decide(&api, &case, "dismissed").await?;
    assert_eq!(standing(&api, &thng).await?, ["unknown", "unknown", "unknown"]);
    Ok(())
}

/// What a replay shows beside the results: the stored verdict, of one Thng, of several and of a product.
pub(super) async fn a_replay_shows_what_would_change(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let brand = Brand::new(&api).await?;
    let (thng, other) = (copied(&brand, "A").await?, brand.thng("B").await?);
    let result = judged(&brand, &thng, 99).await?;
    let replay = async |body: Value| api.post("/authentication/replay", body).await;
    let one =
        replay(json!({"thng": thng, "settings": {"duplicatePoints": 100, "suspectedPoints": 100}})).await?;
    let one = one.json();
    let stored = json!({"authenticationStatus": "suspicious", "counterfeitStatus": "suspected",
        "grayMarketStatus": "none", "points": result["customFields"]["duplicatePoints"], "rulesVersion": 9,
        "timestamp": 99 * HOUR});
    assert_eq!(one["stored"], stored, "{one}");
    let newest = &one["results"][0];
    assert!(newest["current"]["points"].is_u64() && newest["proposed"]["points"].is_u64(), "{newest}");
    assert_eq!(newest["proposed"]["counterfeitStatus"], "none", "{newest}");
    for body in [json!({"thngs": [other, thng]}), json!({"product": brand.product})] {
        let many = replay(body.clone()).await?;
        assert_eq!(many.status, 200, "{many:?}");
        let many = many.json();
        assert_eq!(many["more"], false);
        let told: Vec<(&Value, Option<&Value>)> = many["thngs"]
            .as_array()
            .context("thngs")?
            .iter()
            .map(|one| (&one["thng"], one.get("stored")))
            .collect();
        assert_eq!(told, [(&json!(other), None), (&json!(thng), Some(&stored))], "{body}");
        assert_eq!(many["thngs"][1]["results"].as_array().map(Vec::len), Some(5));
    }
    let many: Vec<&str> = vec![&thng; 101];
    for (body, status) in [
        (json!({"thng": thng, "product": brand.product}), 400),
        (json!({"thngs": []}), 400),
        (json!({"thngs": many}), 400),
        (json!({"thngs": ["x"]}), 400),
        (json!({"thngs": ["UKXAGyEf8SQ5eTDmVgGpHqAa"]}), 404),
        (json!({"product": "UKXAGyEf8SQ5eTDmVgGpHqAa"}), 404),
    ] {
        assert_eq!(replay(body.clone()).await?.status.as_u16(), status, "{body}");
    }
    Ok(())
}

crate::on_both_engines!(
    a_copy_and_a_diversion_open_cases,
    a_dismissed_copy_stays_dismissed_until_new_evidence,
    a_confirmed_case_stays_confirmed_after_more_scans,
    countries_of_a_dismissed_diversion_are_permitted,
    tags_change_the_item_status_at_once,
    public_scans_open_no_case,
    a_replay_shows_what_would_change,
);
