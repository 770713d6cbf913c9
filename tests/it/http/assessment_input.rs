//! Each member of the bodies of commissioning and assessment, with each wrong JSON type: 400 that names it, and nothing
//! changes.

use anyhow::{Context, Result};
use axum::http::Method;
use serde_json::{Value, json};
use tests::db::Engine;

use super::{
    Api,
    authentication::{BERN, trigger},
    commissioning::{Factory, pair},
};

/// The kinds of JSON: a letter for each, and a value of it that no member takes by its content alone.
fn kinds() -> [(char, Value); 6] {
    [
        ('s', json!("\u{1}")),
        ('n', json!(-1.5)),
        ('b', json!(true)),
        ('a', json!([{}])),
        ('o', json!({"x": 1})),
        ('0', Value::Null),
    ]
}

/// A member by its path, and the kinds that it may be, `0` where it may be left out. Of text, a number, an array and an
/// object, what [`kinds`] has is wrong in each member by its content too, but where a letter stands here.
type Members = &'static [(&'static str, &'static str)];

const STEP: Members = &[
    ("location", ""),
    ("location.position", "0"),
    ("location.position.type", ""),
    ("location.position.coordinates", ""),
    ("location.place", "0"),
    ("location.createdAt", "0"),
    ("location.timestamp", "0"),
    ("location.latitude", "0"),
    ("location.longitude", "0"),
    ("location.scopes", "0"),
    ("location.scopes.users", ""),
    ("location.scopes.projects", ""),
    ("occurredAt", ""),
    ("factoryMetadata", "0"),
    ("factoryMetadata.factory", "s"),
    ("factoryMetadata.supplier", "s0"),
    ("factoryMetadata.zone", "s0"),
];

const COMMISSION: Members = &[("product", ""), ("purchaseOrder", "s0")];

const TRIGGER: Members = &[
    ("id", ""),
    ("type", ""),
    ("locationSource", ""),
    ("location", ""),
    // Another point than that of the position is told there.
    ("location.latitude", "n"),
    ("location.longitude", "n"),
    ("location.position", ""),
    ("location.position.type", ""),
    ("location.position.coordinates", ""),
    // What is no id is what is asked about.
    ("thng", "s0"),
    ("createdAt", "0"),
    ("timestamp", "0"),
    ("customFields", "o0"),
    ("customFields.inspectedProductMatch", "0"),
    ("customFields.requestSource", "s0"),
    ("customFields.requestUser", "s0"),
    ("customFields.requestUserName", "s0"),
    ("customFields.scanValue", "s0"),
    ("customFields.watermark", "s0"),
    ("customFields.markings", "0"),
];

const SETTINGS: Members = &[
    ("requireCommissioning", "b0"),
    ("diversionMode", "0"),
    ("regionsThreshold", "0"),
    ("regionShareThreshold", "0"),
    ("geoIpSpreadThreshold", "0"),
    ("sensorSpreadThreshold", "0"),
    ("userAgentsThreshold", "0"),
    ("scanThreshold", "0"),
    ("spreadOutlierThreshold", "0"),
    ("maxObservedScans", "0"),
    ("duplicatePoints", "0"),
    ("suspectedPoints", "0"),
    ("evidenceTypes", "0"),
    ("allowedNetworks", "0"),
    ("allowedPlaces", "0"),
    ("purchaseOrders", "0"),
];

/// The body with a value at a path.
fn with(body: &Value, path: &str, value: &Value) -> Result<Value> {
    let mut body = body.clone();
    let mut at = &mut body;
    for name in path.split('.') {
        at = match name.parse::<usize>() {
            Ok(index) => at.get_mut(index).context("index")?,
            Err(_) => &mut at[name],
        };
    }
    *at = value.clone();
    Ok(body)
}

/// Asks with each kind that each member must not be; gives how many that were.
async fn ask(api: &Api, method: Method, uri: &str, body: &Value, members: &[(&str, &str)]) -> Result<usize> {
    let mut count = 0;
    for (path, may) in members {
        for (kind, value) in kinds().into_iter().filter(|(kind, _)| !may.contains(*kind)) {
            let wrong = with(body, path, &value)?;
            let answer = api.call(method.clone(), uri, Some(wrong)).await?;
            assert_eq!(answer.status, 400, "{method} {uri}: {path} as {kind}: {answer:?}");
            let errors = answer.problem(400, 40001);
            // What is inside of a position or of scopes is named by these.
            let named = path.split('.').take(2).collect::<Vec<_>>().join(".");
            let named = named.strip_prefix("0.").map_or(named.clone(), |name| format!("[0].{name}"));
            // One half of a point is told at the other, and what must be there at what it is of.
            let (of, name) = path.rsplit_once('.').unwrap_or_default();
            let is_half = |error: &str| !of.is_empty() && error.starts_with(of) && error.contains(name);
            let is_named = |error: &String| error.starts_with(&named) || is_half(error);
            assert!(errors.iter().all(is_named), "{path} as {kind}: {errors:?}");
            count += 1;
        }
    }
    Ok(count)
}

pub(super) async fn each_member_of_a_step_has_its_kind(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let factory = Factory::new(&api).await?;
    let thng = factory.thng("A").await?;
    let mut body = factory.body();
    body["purchaseOrder"] = json!("PO");
    body["location"]["position"] = json!({"type": "Point", "coordinates": [8.5, 47.5]});
    body["location"]["scopes"] = json!({"users": [], "projects": []});
    let before = api.fingerprint().await?;
    let commissions = format!("/thngs/{thng}/actions/commissions");
    let all: Vec<_> = STEP.iter().chain(COMMISSION).copied().collect();
    let mut count = ask(&api, Method::POST, &commissions, &body, &all).await?;
    let decommissions = format!("/thngs/{thng}/actions/decommissions");
    count += ask(&api, Method::POST, &decommissions, &body, STEP).await?;
    let pairs = json!([pair("A", "1")]);
    let members = [("0.thngIdentifier", ""), ("0.productIdentifier", "")];
    count += ask(&api, Method::POST, "/thngs/commissionStateList", &pairs, &members).await?;
    assert!(count > 180, "{count}");
    assert_eq!(api.fingerprint().await?, before);
    // The body itself is right: what was wrong above is what was put in.
    assert_eq!(factory.step(&thng, "commissions", body).await?.status, 201);
    Ok(())
}

pub(super) async fn each_member_of_an_assessment_has_its_kind(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let mut body = trigger(None, BERN);
    body["customFields"] = json!({"requestSource": "app"});
    assert_eq!(api.post("/authentication", body.clone()).await?.status, 200);
    let before = api.fingerprint().await?;
    let mut count = ask(&api, Method::POST, "/authentication", &body, TRIGGER).await?;
    let mut settings = SETTINGS.to_vec();
    settings.push(("version", "0"));
    count += ask(&api, Method::PUT, "/authentication/settings", &json!({}), &settings).await?;
    let replay = json!({"thng": "UKXAGyEf8SQ5eTDmVgGpHqAa", "settings": {}});
    let inside: Vec<String> = SETTINGS.iter().map(|(name, _)| format!("settings.{name}")).collect();
    let mut members: Vec<(&str, &str)> =
        inside.iter().map(String::as_str).zip(SETTINGS.iter().map(|(_, may)| *may)).collect();
    members.extend([("thng", ""), ("settings", "o0")]);
    count += ask(&api, Method::POST, "/authentication/replay", &replay, &members).await?;
    assert!(count > 190, "{count}");
    assert_eq!(api.fingerprint().await?, before);
    Ok(())
}

crate::on_both_engines!(each_member_of_a_step_has_its_kind, each_member_of_an_assessment_has_its_kind,);
