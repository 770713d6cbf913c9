//! Commissioning over HTTP: bodies, steps, states and refusals.

mod forms;

use anyhow::Result;
use axum::http::Method;
use serde_json::{Value, json};
use tests::db::Engine;

use super::{Answer, Api};

const UNKNOWN: &str = "UKXAGyEf8SQ5eTDmVgGpHqAa";
pub(super) const WHEN: &str = "2026-11-22T08:15:30+01:00";
const WHEN_MS: i64 = 1_795_331_730_000;

/// A factory that is ready to commission.
pub(super) struct Factory<'a> {
    pub(super) api: &'a Api,
    pub(super) product: String,
    pub(super) other_product: String,
    pub(super) place: String,
}

pub(super) fn id(body: &Value) -> String {
    body["id"].as_str().unwrap_or_default().to_owned()
}

impl<'a> Factory<'a> {
    pub(super) async fn new(api: &'a Api) -> Result<Self> {
        let product = |value: &str| json!({"name": "Bag", "identifiers": {"gs1:01": value}});
        let place =
            json!({"name": "Plant", "identifiers": {"factory": "F1"}, "latitude": 47.5, "longitude": 8.5});
        Ok(Self {
            api,
            product: id(&api.create("/products", product(gtin("1"))).await?),
            other_product: id(&api.create("/products", product(gtin("2"))).await?),
            place: id(&api.create("/places", place).await?),
        })
    }

    /// A Thng of the factory with a serial, which is encoded.
    pub(super) async fn thng(&self, serial: &str) -> Result<String> {
        let body = json!({"name": serial, "identifiers": {"gs1:21": serial, "own:key:2": serial},
            "customFields": {"factory": "F1"}});
        let thng = id(&self.api.create("/thngs", body).await?);
        self.encode(&thng).await?;
        Ok(thng)
    }

    pub(super) async fn encode(&self, thng: &str) -> Result<()> {
        self.api.create("/actions/encodings", json!({"thng": thng})).await.map(|_| ())
    }

    pub(super) fn body(&self) -> Value {
        json!({"product": "gs1:01:00000000000017", "location": {"place": self.place}, "occurredAt": WHEN,
            "factoryMetadata": {"factory": "F1"}})
    }

    pub(super) fn body_with(&self, name: &str, value: Value) -> Value {
        let mut body = self.body();
        body[name] = value;
        body
    }

    pub(super) async fn step(&self, thng: &str, kind: &str, body: Value) -> Result<Answer> {
        self.api.post(&format!("/thngs/{thng}/actions/{kind}"), body).await
    }

    pub(super) async fn commission(&self, thng: &str) -> Result<Answer> {
        self.step(thng, "commissions", self.body()).await
    }

    pub(super) async fn state(&self, thng: &str) -> Result<Value> {
        Ok(self.api.get(&format!("/thngs/{thng}/commissionState")).await?.must_be(200)?.json())
    }

    pub(super) async fn states(&self, pairs: Value) -> Result<Value> {
        Ok(self.api.post("/thngs/commissionStateList", pairs).await?.must_be(200)?.json())
    }
}

/// The GTIN of the first or second product of a factory; any other text stays as it is.
pub(super) fn gtin(product: &str) -> &str {
    match product {
        "1" => "00000000000017",
        "2" => "00000000000024",
        other => other,
    }
}

pub(super) fn pair(serial: &str, product: &str) -> Value {
    let product = format!("gs1:01:{}", gtin(product));
    json!({"thngIdentifier": format!("gs1:21:{serial}"), "productIdentifier": product})
}

/// "Thng's product is set from the `product` identifier; a `commissions` action is created."
pub(super) async fn a_commission_links_the_thng_to_its_product_and_is_an_action(
    engine: Engine,
) -> Result<()> {
    let api = Api::new(engine).await?;
    let factory = Factory::new(&api).await?;
    let thng = factory.thng("A").await?;
    assert_eq!(factory.state(&thng).await?, json!({"state": "not_commissioned"}));
    let mut body = factory.body_with("purchaseOrder", json!("PO 7"));
    body["factoryMetadata"] = json!({"factory": "F1", "supplier": "S1", "zone": "Z1"});
    let answer = factory.step("gs1:21:A", "commissions", body).await?;
    assert_eq!(answer.status, 201, "{answer:?}");
    let made = answer.json();
    let location = format!("http://api.example:8080/thngs/gs1:21:A/actions/commissions/{}", id(&made));
    assert_eq!(answer.header("location"), Some(location.as_str()));
    let custom = json!({"factory": "F1", "purchaseOrder": "PO 7", "supplier": "S1", "zone": "Z1",
        "occurredAt": WHEN});
    assert_eq!(made["customFields"], custom);
    assert_eq!((&made["type"], &made["thng"]), (&json!("commissions"), &json!(thng)));
    assert_eq!((&made["product"], &made["timestamp"]), (&json!(factory.product), &json!(WHEN_MS)));
    assert_eq!(made["locationSource"], "place");
    assert!(made["context"].is_object() && made["createdAt"].is_i64(), "{made}");
    // "With `place` alone the position is copied from the place", and the platform fills the time in.
    let expected = json!({"latitude": 47.5, "longitude": 8.5, "place": factory.place, "timestamp": WHEN_MS,
        "position": {"type": "Point", "coordinates": [8.5, 47.5]}});
    assert_eq!(made["location"], expected);
    let read = api.get(&format!("/thngs/{thng}")).await?.json();
    assert_eq!(read["product"], json!(factory.product));
    assert!(read["updatedAt"].as_i64() > read["createdAt"].as_i64());
    assert_eq!(factory.state(&thng).await?, json!({"state": "commissioned", "occurredAt": WHEN}));
    for uri in [
        "/actions/commissions",
        "/thngs/gs1:21:A/actions/commissions",
        "/actions/all?filter=type%3Dcommissions",
    ] {
        let sign = if uri.contains('?') { '&' } else { '?' };
        let listed = api.get(&format!("{uri}{sign}context=true")).await?.json();
        assert_eq!(listed, json!([made]), "{uri}");
    }
    let read = api.get(&format!("/thngs/{thng}/actions/commissions/{}?context=true", id(&made))).await?;
    assert_eq!(read.json(), made);
    // Notifications and reactions hear of it.
    let left = api.fingerprint().await?.remove("events").unwrap_or_default();
    assert_eq!(left.iter().filter(|row| row.contains(&id(&made))).count(), 1, "{left:?}");
    Ok(())
}

/// "A `decommissions` action is created"; the product comes off, and stays on record.
pub(super) async fn a_decommission_withdraws_the_thng(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let factory = Factory::new(&api).await?;
    let thng = factory.thng("A").await?;
    assert_eq!(factory.commission(&thng).await?.status, 201);
    let point = json!({"type": "Point", "coordinates": [-71.5, 42.25]});
    let body = json!({"location": {"position": point, "place": factory.place, "timestamp": 5},
        "occurredAt": "2026-12-01T00:00:00.250-05:00", "factoryMetadata": {"factory": "F1"}});
    let answer = factory.step("gs1%3A21%3AA", "decommissions", body.clone()).await?;
    assert_eq!(answer.status, 200, "{answer:?}");
    let made = answer.json();
    assert_eq!(made["type"], "decommissions");
    assert_eq!((made.get("product"), &made["locationSource"]), (None, &json!("sensor")));
    // A location's own timestamp is kept.
    let expected = json!({"latitude": 42.25, "longitude": -71.5, "position": point, "place": factory.place,
        "timestamp": 5});
    assert_eq!(made["location"], expected);
    assert_eq!(made["customFields"], json!({"factory": "F1", "occurredAt": body["occurredAt"]}));
    assert_eq!(api.get(&format!("/thngs/{thng}")).await?.json().get("product"), None);
    let stands = json!({"state": "decommissioned", "occurredAt": body["occurredAt"]});
    assert_eq!(factory.state("gs1:21:A").await?, stands);
    let states = factory.states(json!([pair("A", "1"), pair("A", "2")])).await?;
    assert_eq!(
        (&states[0]["state"], &states[1]["state"]),
        (&json!("decommissioned"), &json!("not_commissioned"))
    );
    // "A decommissioned Thng may be commissioned again", as something else too.
    let again = factory
        .step(&thng, "commissions", factory.body_with("product", json!("gs1:01:00000000000024")))
        .await?;
    assert_eq!(again.status, 201, "{again:?}");
    assert_eq!(again.json()["product"], json!(factory.other_product));
    let states = factory.states(json!([pair("A", "1"), pair("A", "2")])).await?;
    assert_eq!(
        (&states[0]["state"], &states[1]["state"]),
        (&json!("not_commissioned"), &json!("commissioned"))
    );
    Ok(())
}

/// "409 with every reason that applies."
pub(super) async fn refusals_list_every_reason(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let factory = Factory::new(&api).await?;
    let commissioned = factory.thng("DONE").await?;
    assert_eq!(factory.commission(&commissioned).await?.status, 201);
    let bare = id(&api.create("/thngs", json!({"name": "bare"})).await?);
    let withdrawn = factory.thng("GONE").await?;
    assert_eq!(factory.commission(&withdrawn).await?.status, 201);
    assert_eq!(factory.step(&withdrawn, "decommissions", factory.body()).await?.status, 200);
    let other = json!({"name": "x", "customFields": {"factory": "F2"}});
    let other = id(&api.create("/thngs", other).await?);
    factory.encode(&other).await?;
    let nowhere = id(&api.create("/places", json!({"name": "nowhere"})).await?);
    let ready = factory.thng("READY").await?;
    let without = |body: Value, name: &str| {
        let mut body = body;
        body.as_object_mut().map(|members| members.remove(name));
        body
    };
    let position = json!({"position": {"type": "Point", "coordinates": [1, 2]}});
    let before = api.fingerprint().await?;
    for (thng, kind, body, faults) in [
        (&bare, "commissions", without(factory.body(), "factoryMetadata"), vec!["is not encoded"]),
        (
            &bare,
            "commissions",
            factory.body(),
            vec!["is not encoded", "customFields.factory of the Thng is not set"],
        ),
        (&commissioned, "commissions", factory.body(), vec!["is commissioned already"]),
        (&ready, "decommissions", factory.body(), vec!["was never commissioned"]),
        (&withdrawn, "decommissions", factory.body(), vec!["is decommissioned already"]),
        (
            &ready,
            "commissions",
            without(factory.body(), "factoryMetadata"),
            vec!["factoryMetadata.factory is not given"],
        ),
        (
            &commissioned,
            "decommissions",
            without(factory.body(), "factoryMetadata"),
            vec!["factoryMetadata.factory is not given"],
        ),
        (
            &ready,
            "commissions",
            factory.body_with("factoryMetadata", json!({"factory": "F2"})),
            vec!["customFields.factory of the Thng is F1", "is F1, another factory"],
        ),
        (
            &other,
            "commissions",
            factory.body_with("factoryMetadata", json!({"factory": "F1"})),
            vec!["customFields.factory of the Thng is F2"],
        ),
        (
            &ready,
            "commissions",
            factory.body_with("location", json!({"place": nowhere})),
            vec!["identifiers.factory of the place"],
        ),
        (
            &ready,
            "commissions",
            factory.body_with("location", position.clone()),
            vec!["location.place is not given"],
        ),
        (
            &commissioned,
            "commissions",
            json!({"product": "gs1:01:00000000000017", "location": position, "occurredAt": WHEN,
                "factoryMetadata": {"factory": "F9"}}),
            vec![
                "is commissioned already",
                "customFields.factory of the Thng is F1",
                "location.place is not given",
            ],
        ),
    ] {
        let errors = factory.step(thng, kind, body.clone()).await?.problem(409, 40901);
        let fits = errors.len() == faults.len()
            && errors.iter().zip(&faults).all(|(error, fault)| error.contains(fault));
        assert!(fits, "{kind} {body}: {errors:?} instead of {faults:?}");
    }
    assert_eq!(api.fingerprint().await?, before, "a refusal changed something");
    Ok(())
}

/// "Neither Thng nor request names one: allowed"; a position alone will do then.
pub(super) async fn without_a_factory_a_position_is_enough(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let factory = Factory::new(&api).await?;
    let thng = id(&api.create("/thngs", json!({"name": "bare"})).await?);
    factory.encode(&thng).await?;
    let body = json!({"product": factory.product, "occurredAt": WHEN,
        "location": {"position": {"type": "Point", "coordinates": [180, -90]}}});
    let answer = factory.step(&thng, "commissions", body).await?;
    assert_eq!(answer.status, 201, "{answer:?}");
    let made = answer.json();
    assert_eq!(made["locationSource"], "sensor");
    assert_eq!(
        (&made["location"]["latitude"], &made["location"]["longitude"]),
        (&json!(-90.0), &json!(180.0))
    );
    assert_eq!(made["customFields"], json!({"occurredAt": WHEN}));
    Ok(())
}

/// "400 product or place does not exist, or a member is malformed; 404 Thng", and nothing changes.
pub(super) async fn invalid_requests_are_reported_and_change_nothing(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let factory = Factory::new(&api).await?;
    let thng = factory.thng("A").await?;
    let (foreign_product, foreign_thng) = api.others().await?;
    let foreign_place =
        api.call_as(&api.other_key, Method::POST, "/places", Some(json!({"name": "x"}))).await?.json();
    let before = api.fingerprint().await?;
    for (body, faults) in [
        (json!({}), vec!["product is", "location is", "occurredAt is"]),
        (
            factory.body_with("product", json!("gs1:01:none")),
            vec!["product: the product gs1:01:none does not"],
        ),
        (factory.body_with("product", json!(UNKNOWN)), vec!["product: the product"]),
        (factory.body_with("product", json!(foreign_product)), vec!["product: the product"]),
        (factory.body_with("product", json!("none")), vec!["product: neither"]),
        (factory.body_with("location", json!({"place": UNKNOWN})), vec!["location.place: the place"]),
        (
            factory.body_with("location", json!({"place": foreign_place["id"]})),
            vec!["location.place: the place"],
        ),
        (
            json!({"product": UNKNOWN, "location": {"place": UNKNOWN}, "occurredAt": WHEN}),
            vec!["product: the product", "location.place: the place"],
        ),
        (
            factory.body_with("location", json!({"latitude": 1, "longitude": 2})),
            vec!["location must have position"],
        ),
        (
            factory.body_with("location", json!({"position": {"type": "Point", "coordinates": [180.1, 0]}})),
            vec!["location.position"],
        ),
        (factory.body_with("location", json!({"place": factory.place, "more": 1})), vec!["location.more"]),
        (factory.body_with("occurredAt", json!("2026-11-22T08:15:30")), vec!["occurredAt"]),
        (factory.body_with("occurredAt", json!(WHEN_MS)), vec!["occurredAt"]),
        (factory.body_with("factoryMetadata", json!({})), vec!["factoryMetadata.factory is required"]),
        (factory.body_with("factoryMetadata", json!({"factory": 1})), vec!["factoryMetadata.factory must"]),
        (factory.body_with("purchaseOrder", json!(1)), vec!["purchaseOrder"]),
    ] {
        let errors = factory.step(&thng, "commissions", body.clone()).await?.problem(400, 40001);
        let fits = errors.len() == faults.len()
            && errors.iter().zip(&faults).all(|(error, fault)| error.starts_with(fault));
        assert!(fits, "{body}: {errors:?} instead of {faults:?}");
    }
    for body in [json!({}), json!([]), json!({"location": {"place": UNKNOWN}, "occurredAt": WHEN})] {
        factory.step(&thng, "decommissions", body).await?.problem(400, 40001);
    }
    for absent in [UNKNOWN, &foreign_thng, "gs1:21:none", "x", "%00", "gs1:21:"] {
        for kind in ["commissions", "decommissions"] {
            factory.step(absent, kind, factory.body()).await?.problem(404, 40401);
        }
        api.get(&format!("/thngs/{absent}/commissionState")).await?.problem(404, 40401);
    }
    assert_eq!(api.fingerprint().await?, before);
    Ok(())
}

crate::on_both_engines!(
    a_commission_links_the_thng_to_its_product_and_is_an_action,
    a_decommission_withdraws_the_thng,
    refusals_list_every_reason,
    without_a_factory_a_position_is_enough,
    invalid_requests_are_reported_and_change_nothing,
);
