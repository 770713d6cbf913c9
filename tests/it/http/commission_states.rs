//! Commissioning states: lists, product and serial as a pair, races, and the enterprise flag.

use anyhow::{Context, Result};
use axum::http::Method;
use kernel::{
    domain::access::{ActorKind, hash_key},
    store::{Ctx, keys},
};
use serde_json::{Value, json};
use shared::id::{AccountId, OperatorId};
use tenants::store::accounts;
use tests::{
    db::{Engine, random16},
    product::PHONE,
};

use super::{
    Api,
    commissioning::{Factory, WHEN, id, pair},
};

const UNKNOWN: &str = "UKXAGyEf8SQ5eTDmVgGpHqAa";

/// "A bare reference that matches more than one Thng: 409 that says how many. Where the request also names the
/// product, the pair decides."
pub(super) async fn product_and_serial_select_among_several_thngs(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let factory = Factory::new(&api).await?;
    let mut thngs = Vec::new();
    for product in [&factory.product, &factory.other_product] {
        let body = json!({"name": "twin", "product": product, "identifiers": {"gs1:21": "TWIN"},
            "customFields": {"factory": "F1"}});
        let thng = id(&api.create("/thngs", body).await?);
        factory.encode(&thng).await?;
        thngs.push(thng);
    }
    let errors = api.get("/thngs/gs1:21:TWIN/commissionState").await?.problem(409, 40901);
    assert!(errors[0].contains("belongs to 2 thngs"), "{errors:?}");
    let answer = factory
        .step("gs1:21:TWIN", "commissions", factory.body_with("product", json!("gs1:01:00000000000024")))
        .await?;
    assert_eq!(answer.status, 201, "{answer:?}");
    assert_eq!(answer.json()["thng"], json!(thngs[1]));
    factory.step("gs1:21:TWIN", "decommissions", factory.body()).await?.problem(409, 40901);
    let states = factory.states(json!([pair("TWIN", "1"), pair("TWIN", "2")])).await?;
    assert_eq!(
        (&states[0]["state"], &states[1]["state"]),
        (&json!("not_commissioned"), &json!("commissioned"))
    );
    // A third one of the second product there cannot be.
    let body = json!({"name": "x", "product": factory.other_product, "identifiers": {"gs1:21": "TWIN"}});
    let errors = api.post("/thngs", body).await?.problem(409, 40901);
    assert!(errors[0].contains(&format!("belongs to the thng {}", thngs[1])), "{errors:?}");
    Ok(())
}

/// "Array of state entries in request order; only `gs1:21` Thng keys and `gs1:01` product keys accepted"; "an
/// unknown Thng or product gives state `not_commissioned`"; `occurredAt` "only when the state is `commissioned`
/// or `decommissioned`".
pub(super) async fn a_list_of_states_is_in_the_order_of_the_request(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let factory = Factory::new(&api).await?;
    for serial in ["A", "B", "C"] {
        factory.thng(serial).await?;
    }
    assert_eq!(factory.commission("gs1:21:A").await?.status, 201);
    assert_eq!(factory.commission("gs1:21:B").await?.status, 201);
    assert_eq!(factory.step("gs1:21:B", "decommissions", factory.body()).await?.status, 200);
    let asked = [
        pair("C", "1"),
        pair("B", "1"),
        pair("none", "1"),
        pair("A", "1"),
        pair("A", "none"),
        pair("A", "2"),
        pair("B", "1"),
    ];
    let states = factory.states(json!(asked)).await?;
    let expected = [
        "not_commissioned",
        "decommissioned",
        "not_commissioned",
        "commissioned",
        "not_commissioned",
        "not_commissioned",
        "decommissioned",
    ];
    for ((entry, asked), state) in states.as_array().context("array")?.iter().zip(&asked).zip(expected) {
        let mut whole = asked.clone();
        whole["state"] = json!(state);
        if state != "not_commissioned" {
            whole["occurredAt"] = json!(WHEN);
        }
        assert_eq!(*entry, whole);
    }
    assert_eq!(states.as_array().map(Vec::len), Some(asked.len()));
    assert_eq!(factory.states(json!([])).await?, json!([]));
    let many: Vec<Value> =
        (0..1_000).map(|n| if n % 2 == 0 { pair("A", "1") } else { pair("none", "1") }).collect();
    let states = factory.states(json!(many)).await?;
    let count =
        states.as_array().context("array")?.iter().filter(|entry| entry["state"] == "commissioned").count();
    assert_eq!(count, 500);
    // Each Thng of a product has a serial of its own.
    let twins = [factory.thng("D").await?, factory.thng("E").await?];
    for (thng, day) in twins.iter().zip([3, 2]) {
        let body = factory.body_with("occurredAt", json!(format!("2026-11-0{day}T08:15:30Z")));
        assert_eq!(factory.step(thng, "commissions", body).await?.status, 201);
    }
    let renamed = json!({"identifiers": {"gs1:21": "D"}});
    api.put(&format!("/thngs/{}", twins[1]), renamed).await?.problem(409, 40901);
    let states = factory.states(json!([pair("D", "1"), pair("E", "1"), pair("D", "1")])).await?;
    assert_eq!(states[0]["occurredAt"], "2026-11-03T08:15:30Z");
    assert_eq!(states[1]["occurredAt"], "2026-11-02T08:15:30Z");
    assert_eq!(states[2], states[0]);
    // A GTIN of fewer digits names the same product.
    let states = factory.states(json!([pair("D", "00000017"), pair("D", "0000000000017")])).await?;
    assert_eq!([&states[0]["state"], &states[1]["state"]], ["commissioned"; 2]);
    assert_eq!(states[0]["productIdentifier"], "gs1:01:00000017");
    // Another account's pairs are not there.
    let theirs = api.call_as(
        &api.other_key,
        Method::POST,
        "/thngs/commissionStateList",
        Some(json!([pair("A", "1")])),
    );
    assert_eq!(theirs.await?.json()[0]["state"], "not_commissioned");
    for (body, fault) in [
        (json!({}), "The body must be an array"),
        (json!([{}]), "[0].thngIdentifier is required"),
        (
            json!([{"thngIdentifier": "own:A", "productIdentifier": "gs1:01:00000000000017"}]),
            "must have the key gs1:21, not own",
        ),
        (
            json!([{"thngIdentifier": "gs1:21:A", "productIdentifier": "sku:1"}]),
            "must have the key gs1:01, not sku",
        ),
        (
            json!([pair("A", "1"), {"thngIdentifier": UNKNOWN, "productIdentifier": "gs1:01:00000000000017"}]),
            "[1].thngIdentifier",
        ),
        (json!(vec![pair("A", "1"); 1_001]), "at most 1000 pairs"),
    ] {
        let answer = api.post("/thngs/commissionStateList", body.clone()).await?;
        let errors = answer.problem(400, 40001);
        assert!(errors.iter().any(|error| error.contains(fault)), "{body}: {errors:?}");
    }
    Ok(())
}

/// "Two commissions of one Thng at the same moment: exactly one wins, the other gets 409."
pub(super) async fn of_200_commissions_at_once_one_wins(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let factory = Factory::new(&api).await?;
    let thng = factory.thng("A").await?;
    let all = (0..200).map(|_| factory.commission(&thng));
    let answers = futures_util::future::join_all(all).await;
    let mut counts = std::collections::BTreeMap::new();
    for answer in answers {
        let answer = answer?;
        *counts.entry(answer.status.as_u16()).or_insert(0) += 1;
        if answer.status == 409 {
            assert_eq!(answer.problem(409, 40901), ["The Thng is commissioned already."]);
        }
    }
    assert_eq!(counts, [(201, 1), (409, 199)].into());
    let listed = api.get(&format!("/thngs/{thng}/actions/commissions")).await?.json();
    assert_eq!(listed.as_array().map(Vec::len), Some(1));
    Ok(())
}

/// An operator's key of an account without the enterprise flag.
pub(super) async fn small_account(api: &Api) -> Result<String> {
    let key = "D".repeat(80);
    let (account, operator) = (AccountId::new(1, random16()?), OperatorId::new(1, random16()?));
    let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
    accounts::insert(&mut tx, account, "Small", false, 1).await?;
    accounts::insert_operator(&mut tx, operator, account, "s@example.com", ("S", "M"), 1).await?;
    keys::insert(&mut tx, &hash_key(&key), account, ActorKind::Operator, operator.as_str(), 1).await?;
    tx.commit().await?;
    Ok(key)
}

/// "Enterprise subscription only": 403 where the account's flag is off.
pub(super) async fn commissioning_is_for_enterprise_accounts(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let key = small_account(&api).await?;
    let made = api.call_as(&key, Method::POST, "/thngs", Some(json!({"name": "t"}))).await?;
    let thng = id(&made.json());
    let step = json!({"product": "gs1:01:00000000000017", "occurredAt": WHEN,
        "location": {"position": {"type": "Point", "coordinates": [1, 2]}}});
    let before = api.fingerprint().await?;
    for (method, uri, body) in [
        (Method::POST, format!("/thngs/{thng}/actions/commissions"), Some(step.clone())),
        (Method::POST, format!("/thngs/{thng}/actions/decommissions"), Some(step)),
        (Method::GET, format!("/thngs/{thng}/commissionState"), None),
        (Method::POST, "/thngs/commissionStateList".to_owned(), Some(json!([]))),
    ] {
        let errors = api.call_as(&key, method.clone(), &uri, body).await?.problem(403, 40301);
        assert!(errors[0].contains("enterprise"), "{method} {uri}: {errors:?}");
    }
    assert_eq!(api.fingerprint().await?, before);
    Ok(())
}

/// "`context` (`ipAddress`, `city`, `region`, `countryCode`, `userAgent`, `timeZone`)" of both steps.
pub(super) async fn a_step_records_the_client_of_the_request(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let factory = Factory::new(&api).await?;
    let thng = factory.thng("A").await?;
    for (kind, status) in [("commissions", 201), ("decommissions", 200)] {
        let uri = format!("/thngs/{thng}/actions/{kind}");
        let request = (&*api.key, Method::POST, &*uri);
        let headers = [("user-agent", PHONE)];
        let answer = api.call_from("203.0.113.9", &headers, request, Some(factory.body())).await?;
        let made = answer.must_be(status)?.json();
        for (name, expected) in [
            ("ipAddress", "203.0.113.9"),
            ("city", "Bern"),
            ("region", "Bern"),
            ("countryCode", "CH"),
            ("userAgent", PHONE),
            ("timeZone", "Europe/Zurich"),
        ] {
            assert_eq!(made["context"][name], expected, "{kind}: {name}");
        }
    }
    Ok(())
}

/// The state is the Thng's: it goes with it.
pub(super) async fn deleting_a_thng_deletes_its_state(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let factory = Factory::new(&api).await?;
    let thng = factory.thng("A").await?;
    assert_eq!(factory.commission(&thng).await?.status, 201);
    api.delete(&format!("/thngs/{thng}")).await?;
    assert_eq!(factory.states(json!([pair("A", "1")])).await?[0]["state"], "not_commissioned");
    let again = factory.thng("A").await?;
    assert_eq!(factory.state(&again).await?, json!({"state": "not_commissioned"}));
    Ok(())
}

crate::on_both_engines!(
    product_and_serial_select_among_several_thngs,
    a_list_of_states_is_in_the_order_of_the_request,
    of_200_commissions_at_once_one_wins,
    commissioning_is_for_enterprise_accounts,
    a_step_records_the_client_of_the_request,
    deleting_a_thng_deletes_its_state,
);
