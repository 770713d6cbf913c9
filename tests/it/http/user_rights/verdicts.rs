//! Who writes what verdicts depend on.

use anyhow::Result;
use axum::http::Method;
use serde_json::{Value, json};
use tests::db::Engine;

use super::{super::Api, Brand, RESERVED, text};
use crate::on_both_engines;

/// A verdict is not written by the item that it is about.
pub(super) async fn a_thng_key_cannot_write_members_that_verdicts_depend_on(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let brand = Brand::new(&api).await?;
    let key = api.create("/auth/evrythng/thngs", json!({"thngId": brand.thng})).await?;
    let (key, uri) = (text(&key, "thngApiKey")?, format!("/thngs/{}", brand.thng));
    let put = async |body: Value| api.call_as(&key, Method::PUT, &uri, Some(body)).await;
    let other = text(&api.create("/products", json!({"name": "other"})).await?, "id")?;
    let before = api.fingerprint().await?;
    for body in [
        json!({"customFields": {"permittedCountries": ["US"]}}),
        json!({"customFields": {"note": 1}}),
        json!({"customFields": {"factory": "F"}, "name": "x"}),
        json!({"identifiers": {"gs1:21": "OTHER"}}),
        json!({"identifiers": {}}),
        json!({"product": other}),
        json!({"tags": ["display"]}),
    ] {
        let errors = put(body.clone()).await?.problem(403, 40301);
        assert_eq!(errors.len(), 1, "{body}: {errors:?}");
    }
    for kind in RESERVED {
        let body = Some(json!({}));
        api.call_as(&key, Method::POST, &format!("/actions/{kind}"), body).await?.problem(403, 40301);
    }
    let filter = "/actions/all?filter=context.city%3DBern";
    api.call_as(&key, Method::GET, filter, None).await?.problem(403, 40301);
    assert_eq!(api.fingerprint().await?, before, "a refusal changed something");
    let scans = api.call_as(&key, Method::GET, "/actions/all?context=true", None).await?.json();
    assert!(scans[0]["id"] == json!(brand.scan) && scans[0].get("context").is_none(), "{scans}");
    // What it read comes back; what it may say changes.
    let mut read = api.call_as(&key, Method::GET, &uri, None).await?.json();
    read["description"] = json!("new");
    read["tags"] = json!(["seen"]);
    assert_eq!(put(read).await?.status, 200);
    let account = format!("/accounts/{}", api.made.account);
    let bad = json!({"thngWritableCustomFields": ["permittedCountries"]});
    api.put(&account, bad).await?.problem(400, 40001);
    let writable = json!({"thngWritableCustomFields": ["note"]});
    assert_eq!(api.put(&account, writable).await?.status, 200);
    assert_eq!(api.get(&account).await?.json()["thngWritableCustomFields"], json!(["note"]));
    assert_eq!(put(json!({"customFields": {"note": 1}})).await?.status, 200);
    let stored = api.get(&uri).await?.json();
    assert_eq!(stored["customFields"], json!({"permittedCountries": ["CH"], "note": 1}));
    assert_eq!((&stored["product"], &stored["description"]), (&json!(brand.product), &json!("new")));
    assert_eq!(stored["identifiers"], json!({"gs1:21": "A1"}));
    Ok(())
}

/// An application submits the triggers that it lists, and its users the same.
pub(super) async fn an_application_submits_the_triggers_that_it_lists(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let brand = Brand::new(&api).await?;
    let (key, _) = brand.stranger(&api).await?;
    let trigger = |kind: &str| {
        json!({"id": "UKXAGyEf8SQ5eTDmVgGpHqAa", "type": kind, "thng": brand.thng, "locationSource": "unknown",
            "location": {"latitude": 2, "longitude": 1, "position": {"type": "Point", "coordinates": [1, 2]}}})
    };
    let submit = async |kind: &str| -> Result<u16> {
        let answer = api.call_as(&key, Method::POST, "/authentication", Some(trigger(kind))).await?;
        Ok(answer.status.as_u16())
    };
    for (kind, status) in [("scans", 200), ("implicitScans", 200), ("inspectorScans", 403)] {
        assert_eq!(submit(kind).await?, status, "{kind}");
    }
    brand.set(&api, json!({"triggerTypes": ["inspectorScans"]})).await?;
    for (kind, status) in [("scans", 403), ("inspectorScans", 200), ("supplyChainScans", 403)] {
        assert_eq!(submit(kind).await?, status, "{kind}");
    }
    Ok(())
}

on_both_engines!(
    a_thng_key_cannot_write_members_that_verdicts_depend_on,
    an_application_submits_the_triggers_that_it_lists
);
