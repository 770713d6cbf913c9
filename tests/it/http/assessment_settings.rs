//! Settings of assessment, and who may request one.

use anyhow::{Context, Result};
use axum::http::Method;
use serde_json::{Value, json};
use tests::db::Engine;

use super::{
    Api, Application,
    authentication::{BERN, Brand, check, id, statuses, trigger, with},
    commission_states::small_account,
};

const UNKNOWN: &str = "UKXAGyEf8SQ5eTDmVgGpHqAa";

/// Settings of account, project and product: validated, versioned, the nearer one wins.
pub(super) async fn settings_exist_per_account_project_and_product(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let brand = Brand::new(&api).await?;
    let thng = brand.thng("A").await?;
    let account = "/authentication/settings".to_owned();
    assert_eq!(api.get(&account).await?.json(), json!({"version": 0}));
    let product = format!("{account}?product={}", brand.product);
    let project = id(&api.create("/projects", json!({"name": "p"})).await?);
    let put = async |uri: &str, body: Value| api.put(uri, body).await;
    let first = put(&account, json!({"scanThreshold": 5, "regionsThreshold": 7})).await?;
    assert_eq!((first.status.as_u16(), first.json()["version"].clone()), (200, json!(1)));
    assert_eq!(put(&product, json!({"scanThreshold": 0})).await?.json()["version"], 1);
    assert_eq!(put(&format!("{account}?project={project}"), json!({})).await?.status, 200);
    let result = brand.judge(trigger(Some(&thng), BERN)).await?;
    let fields = &result["customFields"];
    assert_eq!((&fields["scanThreshold"], &fields["regionsThreshold"]), (&json!(0), &json!(7)));
    assert_eq!(check(&result, "duplicateChecks").0, "false", "{result}");
    let read = api.get(&product).await?.json();
    assert_eq!((&read["scanThreshold"], &read["version"]), (&json!(0), &json!(1)));
    // Replaced as a whole; a version that is not the one that was seen is refused.
    let second = put(&account, json!({"version": 1, "requireCommissioning": false})).await?.json();
    assert_eq!((&second["version"], second.get("scanThreshold")), (&json!(2), None));
    put(&account, json!({"version": 1})).await?.problem(409, 40901);
    let bare = id(&api.create("/thngs", json!({"name": "bare"})).await?);
    let result = brand.judge(trigger(Some(&bare), BERN)).await?;
    assert_eq!((statuses(&result)[0], check(&result, "unauthorizedChecks").0), ("unknown", "unknown"));
    let before = api.fingerprint().await?;
    for (uri, body, code) in [
        (account.clone(), json!({"scanThreshold": -1}), 40001),
        (account.clone(), json!({"version": "x"}), 40001),
        (account.clone(), json!([]), 40001),
        (format!("{account}?product={UNKNOWN}"), json!({}), 40003),
        (format!("{account}?product=x"), json!({}), 40003),
        (format!("{account}?project={UNKNOWN}"), json!({}), 40003),
        (format!("{account}?project={project}&product={}", brand.product), json!({}), 40003),
    ] {
        put(&uri, body).await?.problem(400, code);
    }
    let theirs = api.call_as(&api.other_key, Method::GET, &product, None).await?;
    theirs.problem(400, 40003);
    assert_eq!(api.fingerprint().await?, before);
    Ok(())
}

/// "An application lists the trigger types it may submit; others are 403."
pub(super) async fn an_application_submits_only_listed_triggers(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let Application { project, path: uri, public, secret, .. } =
        api.application(json!({"name": "a"})).await?;
    let body = |kind: &str| with(trigger(Some(UNKNOWN), BERN), "type", json!(kind));
    let all = ["scans", "implicitScans", "inspectorScans", "supplyChainScans", "authenticationConfirmations"];
    for (kind, status) in all.into_iter().zip([200, 200, 403, 403, 403]) {
        let answer = api.call_as(&secret, Method::POST, "/authentication", Some(body(kind))).await?;
        assert_eq!(answer.status.as_u16(), status, "{kind}: {answer:?}");
    }
    // An operator's key of a project is of no application: it may submit what one may that lists nothing.
    let confined = api.create("/keys", json!({"label": "confined", "project": project})).await?;
    let confined = confined["apiKey"].as_str().context("key")?;
    for (kind, status) in all.into_iter().zip([200, 200, 403, 403, 403]) {
        let answer = api.call_as(confined, Method::POST, "/authentication", Some(body(kind))).await?;
        assert_eq!(answer.status.as_u16(), status, "{kind}: {answer:?}");
    }
    let fields = json!({"customFields": {"triggerTypes": ["inspectorScans"]}});
    api.put(&uri, fields).await?;
    for (kind, status) in all.into_iter().zip([403, 403, 200, 403, 403]) {
        let answer = api.call_as(&secret, Method::POST, "/authentication", Some(body(kind))).await?;
        assert_eq!(answer.status.as_u16(), status, "{kind}: {answer:?}");
    }
    let answer = api.call_as(&public, Method::POST, "/authentication", Some(body("scans"))).await?;
    answer.problem(403, 40301);
    Ok(())
}

/// "Enterprise customers only, on request."
pub(super) async fn assessment_is_for_enterprise_accounts(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let key = small_account(&api).await?;
    let before = api.fingerprint().await?;
    for (method, uri, body) in [
        (Method::POST, "/authentication", Some(trigger(None, BERN))),
        (Method::POST, "/authentication/replay", Some(json!({"thng": UNKNOWN}))),
        (Method::GET, "/authentication/settings", None),
        (Method::PUT, "/authentication/settings", Some(json!({}))),
    ] {
        let errors = api.call_as(&key, method.clone(), uri, body).await?.problem(403, 40301);
        assert!(errors[0].contains("enterprise"), "{method} {uri}: {errors:?}");
    }
    assert_eq!(api.fingerprint().await?, before);
    Ok(())
}

crate::on_both_engines!(
    settings_exist_per_account_project_and_product,
    an_application_submits_only_listed_triggers,
    assessment_is_for_enterprise_accounts,
);
