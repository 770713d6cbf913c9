//! Refused property requests: invalid bodies and parameters, absent owners, keys without permission.

use anyhow::{Context, Result};
use axum::http::Method;
use kernel::{
    domain::access::ActorKind,
    store::{Ctx, keys},
};
use serde_json::json;
use sha2::{Digest, Sha256};
use tests::db::Engine;

use super::{
    Api,
    properties::{MAX_TIME, bases},
};

const UNKNOWN: &str = "UKXAGyEf8SQ5eTDmVgGpHqAa";

pub(super) async fn wrong_properties_are_named_and_change_nothing(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let (other_product, other_thng) = api.others().await?;
    let bases = bases(&api).await?;
    for base in &bases {
        api.must_put(
            &format!("{base}/temp"),
            json!([{"value": 1, "timestamp": 1}, {"value": 2, "timestamp": 2}]),
        )
        .await?;
    }
    let before = api.fingerprint().await?;
    let long = "k".repeat(129);
    for base in &bases {
        for (method, path, body, code, faults) in [
            (Method::POST, "", json!({}), 40001, vec!["[0].key is required", "[0].value is required"]),
            (Method::POST, "", json!("x"), 40001, vec!["must be an array"]),
            (
                Method::PUT,
                "",
                json!([{"key": "a", "value": 1}, {"key": "b", "value": null}]),
                40001,
                vec!["[1].value must be"],
            ),
            (
                Method::PUT,
                "",
                json!([{"key": "a", "value": 1}, {"key": "", "value": 1}]),
                40001,
                vec!["[1].key must not"],
            ),
            (
                Method::PUT,
                "",
                json!([{"key": "a", "value": 1}, {"key": long, "value": 1}]),
                40001,
                vec!["[1].key must have"],
            ),
            (
                Method::PUT,
                "",
                json!([{"key": "a", "value": 1}, {"key": "~a", "value": 1}]),
                40301,
                vec!["~a is read-only"],
            ),
            (
                Method::PUT,
                "",
                json!([{"key": "a", "value": 1, "timestamp": "now"}]),
                40001,
                vec!["[0].timestamp"],
            ),
            (
                Method::PUT,
                "",
                json!([{"key": "a", "value": "x".repeat(16_384)}]),
                40001,
                vec!["[0].value must have"],
            ),
            (
                Method::PUT,
                "",
                json!([{"key": "a\u{0}", "value": "\u{0}"}]),
                40001,
                vec!["[0].key", "[0].value"],
            ),
            (Method::PUT, "/temp", json!(null), 40001, vec!["value must be"]),
            (Method::PUT, "/temp", json!(["a"]), 40001, vec!["[0].value: the item must be an object"]),
            (Method::PUT, "/temp", json!([{"value": 3}, {"value": null}]), 40001, vec!["[1].value must be"]),
            (Method::PUT, "/temp", json!({"value": 3, "timestamp": 1.5}), 40001, vec!["[0].timestamp"]),
            (
                Method::PUT,
                "/temp",
                json!({"value": 3, "timestamp": MAX_TIME + 1}),
                40001,
                vec!["[0].timestamp"],
            ),
            (
                Method::PUT,
                "/temp",
                json!({"value": 3, "key": "other"}),
                40001,
                vec!["[0].key must be the one"],
            ),
            (Method::PUT, "/~connected", json!(true), 40301, vec!["~connected is read-only"]),
            (Method::PUT, "/%00", json!(true), 40001, vec!["key must not hold"]),
            (Method::PUT, &format!("/{long}"), json!(true), 40001, vec!["key must have at most 128"]),
        ] {
            let answer = api.call(method, &format!("{base}{path}"), Some(body.clone())).await?;
            let errors = answer.problem(code as u16 / 100, code);
            assert_eq!(errors.len(), faults.len(), "{path} {body}: {errors:?}");
            assert!(errors.iter().zip(faults).all(|(error, fault)| error.contains(fault)), "{errors:?}");
        }
        for (path, code) in [
            ("/~connected", 40301),
            ("/~Connected?to=5", 40301),
            ("/temp?to=x", 40003),
            ("/temp?to=", 40003),
            ("/temp?to=1.5", 40003),
            ("/temp?to=%2B1", 40003),
            ("/temp?to=99999999999999999999", 40003),
            ("/%00", 40001),
        ] {
            let answer = api.delete(&format!("{base}{path}")).await?;
            answer.problem(code as u16 / 100, code);
        }
        for (path, code) in [
            ("/temp?from=x&to=y", 40003),
            ("/temp?perPage=0", 40003),
            ("?sortOrder=UP", 40003),
            ("/temp?nextPageToken=x", 40004),
            ("?filter=key%3Dx", 40003),
            ("?perPage=101", 40003),
            ("/%00", 40001),
        ] {
            api.get(&format!("{base}{path}")).await?.problem(code as u16 / 100, code);
        }
        let errors = api.get(&format!("{base}/temp?from=x&to=y")).await?.problem(400, 40003);
        assert!(
            errors.len() == 2 && errors[0].starts_with("from ") && errors[1].starts_with("to "),
            "{errors:?}"
        );
        api.remove(&format!("{base}/none")).await?;
        assert_eq!(
            api.get(&format!("{base}/~connected")).await?.json(),
            json!([]),
            "system properties are read as usual"
        );
    }
    for (kind, body, code, fault) in [
        ("thngs", json!({"name": "x", "properties": {"a": null}}), 40001, "properties.a must be"),
        (
            "products",
            json!({"name": "x", "properties": [{"key": "a"}]}),
            40001,
            "properties[0].value is required",
        ),
        ("thngs", json!({"name": "x", "properties": {"~connected": true}}), 40301, "~connected is read-only"),
        ("products", json!({"name": "x", "properties": "a"}), 40001, "properties must be an object"),
    ] {
        let errors = api.post(&format!("/{kind}"), body).await?.problem(code as u16 / 100, code);
        assert!(errors.len() == 1 && errors[0].contains(fault), "{errors:?}");
    }
    for owner in [
        format!("/thngs/{other_thng}"),
        format!("/products/{other_product}"),
        format!("/thngs/{UNKNOWN}"),
        format!("/products/{UNKNOWN}"),
        "/thngs/x".to_owned(),
        "/products/k:none".to_owned(),
        "/thngs/%00".to_owned(),
    ] {
        for (method, path, body) in [
            (Method::GET, "", None),
            (Method::POST, "", Some(json!([{"key": "a", "value": 1}]))),
            (Method::PUT, "", Some(json!([{"key": "a", "value": 1}]))),
            (Method::DELETE, "", None),
            (Method::GET, "/temp", None),
            (Method::PUT, "/temp", Some(json!(1))),
            (Method::DELETE, "/temp", None),
        ] {
            api.call(method, &format!("{owner}/properties{path}"), body).await?.problem(404, 40401);
        }
    }
    assert_eq!(api.fingerprint().await?, before);
    Ok(())
}

pub(super) async fn a_key_reaches_its_own_properties_only(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let bases = bases(&api).await?;
    let mine = bases[0].split('/').nth(2).context("id")?.to_owned();
    let other = api.create("/thngs", json!({"name": "other"})).await?;
    let other = format!("/thngs/{}/properties", other["id"].as_str().context("id")?);
    let (thng, app) = ("T".repeat(80), "P".repeat(80));
    let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
    for (key, kind, actor) in [(&thng, ActorKind::Thng, mine.as_str()), (&app, ActorKind::App, UNKNOWN)] {
        let hash: [u8; 32] = Sha256::digest(key.as_bytes()).into();
        keys::insert(&mut tx, &hash, api.made.account, kind, actor, 1).await?;
    }
    tx.commit().await?;
    for (key, base, status) in [
        (&thng, &bases[0], 200),
        (&thng, &bases[1], 404),
        (&thng, &other, 404),
        (&app, &bases[0], 403),
        (&app, &bases[1], 403),
    ] {
        for (method, path, body) in [
            (Method::POST, "", Some(json!([{"key": "a", "value": 1}]))),
            (Method::PUT, "/a", Some(json!(1))),
            (Method::GET, "", None),
            (Method::GET, "/a", None),
            (Method::DELETE, "/a", None),
            (Method::DELETE, "", None),
        ] {
            let answer = api.call_as(key, method.clone(), &format!("{base}{path}"), body).await?;
            assert_eq!(answer.status.as_u16(), status, "{method} {base}{path}: {answer:?}");
        }
    }
    Ok(())
}

crate::on_both_engines!(wrong_properties_are_named_and_change_nothing, a_key_reaches_its_own_properties_only,);
