//! Unique identifiers: serials within a product, GTINs within an account.

use anyhow::{Context, Result};
use axum::http::Method;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection};
use tests::db::{Engine, Location};

use super::{
    Api,
    commissioning::{Factory, id},
};

const GTIN: &str = "09521234543213";

fn thng(product: &str, serial: &str) -> Value {
    json!({"name": "t", "product": product, "identifiers": {"gs1:21": serial}})
}

pub(super) async fn a_serial_is_unique_within_its_product(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let first = id(&api.create("/products", json!({"name": "p"})).await?);
    let second = id(&api.create("/products", json!({"name": "q"})).await?);
    let holder = id(&api.create("/thngs", thng(&first, "A")).await?);
    let other = id(&api.create("/thngs", thng(&second, "A")).await?);
    let loose = json!({"name": "t", "identifiers": {"gs1:21": "A"}});
    let loose = id(&api.create("/thngs", loose).await?);
    let before = api.fingerprint().await?;
    for (method, uri, body) in [
        (Method::POST, "/thngs".to_owned(), thng(&first, "A")),
        (Method::PUT, format!("/thngs/{other}"), json!({"product": first})),
        (Method::PUT, format!("/thngs/{loose}"), json!({"product": first})),
    ] {
        let errors = api.call(method.clone(), &uri, Some(body)).await?.problem(409, 40901);
        assert!(errors[0].contains(&format!("belongs to the thng {holder}")), "{method} {uri}: {errors:?}");
    }
    assert_eq!(api.fingerprint().await?, before, "a refusal changed something");
    let bare = api.get("/thngs/gs1:21:A").await?.problem(409, 40901);
    assert!(bare[0].contains("belongs to 3 thngs"), "{bare:?}");
    // The product that is named beside the serial decides.
    for (product, expected) in [(&first, &holder), (&second, &other)] {
        let scan = api.create("/actions/scans", json!({"thng": "gs1:21:A", "product": product})).await?;
        assert_eq!(&scan["thng"], expected);
    }
    // What is renamed, moved or removed leaves its serial to others.
    let change = json!({"identifiers": {"gs1:21": "B"}, "name": "renamed"});
    assert_eq!(api.put(&format!("/thngs/{holder}"), change).await?.status, 200);
    let move_here = json!({"product": first});
    assert_eq!(api.put(&format!("/thngs/{other}"), move_here).await?.status, 200);
    let again = id(&api.create("/thngs", thng(&second, "A")).await?);
    assert_eq!(api.delete(&format!("/thngs/{again}")).await?.status, 200);
    api.create("/thngs", thng(&second, "A")).await?;
    // Another account's are its own.
    let theirs = json!({"name": "p"});
    let theirs = api.call_as(&api.other_key, Method::POST, "/products", Some(theirs)).await?.json();
    let body = thng(&id(&theirs), "A");
    assert_eq!(api.call_as(&api.other_key, Method::POST, "/thngs", Some(body)).await?.status, 201);
    Ok(())
}

/// A Thng that is commissioned gets a product, and with it a serial that may be another's.
pub(super) async fn a_commission_cannot_take_a_used_serial(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let factory = Factory::new(&api).await?;
    let holder = id(&api.create("/thngs", thng(&factory.product, "A")).await?);
    let late = factory.thng("A").await?;
    let before = api.fingerprint().await?;
    let errors = factory.commission(&late).await?.problem(409, 40901);
    assert!(errors[0].contains(&format!("belongs to the thng {holder}")), "{errors:?}");
    assert_eq!(api.fingerprint().await?, before);
    assert_eq!(factory.state(&late).await?["state"], "not_commissioned");
    assert_eq!(api.delete(&format!("/thngs/{holder}")).await?.status, 200);
    assert_eq!(factory.commission(&late).await?.status, 201);
    Ok(())
}

pub(super) async fn a_gtin_is_checked_kept_with_14_digits_and_unique(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let product = |gtin: &str| json!({"name": "p", "identifiers": {"gs1:01": gtin, "sku": "1"}});
    for gtin in ["", "1", "G1", "09521234543214", "952123454321X", "952123454321", "009521234543213"] {
        let errors = api.post("/products", product(gtin)).await?.problem(400, 40001);
        assert!(errors[0].contains("identifiers"), "{gtin}: {errors:?}");
    }
    let made = api.create("/products", product(&GTIN[1..])).await?;
    assert_eq!(made["identifiers"], json!({"gs1:01": GTIN, "sku": "1"}));
    let made = id(&made);
    for gtin in [GTIN, &GTIN[1..]] {
        let errors = api.post("/products", product(gtin)).await?.problem(409, 40901);
        assert!(errors[0].contains(&format!("belongs to the product {made}")), "{errors:?}");
        let found = api.get(&format!("/products/gs1:01:{gtin}")).await?.json();
        assert_eq!(found["id"], json!(made), "{gtin}");
        let listed = api.get(&format!("/products?filter=identifiers.gs1:01%3D{gtin}")).await?.json();
        assert_eq!(listed[0]["id"], json!(made), "{gtin}");
        let scan = api.create("/actions/scans", json!({"product": format!("gs1:01:{gtin}")})).await?;
        assert_eq!(scan["product"], json!(made), "{gtin}");
    }
    let uri = format!("/products/{made}");
    let other = id(&api.create("/products", json!({"name": "q"})).await?);
    let take = json!({"identifiers": {"gs1:01": GTIN}});
    let uri_of_other = format!("/products/{other}");
    api.put(&uri_of_other, take.clone()).await?.problem(409, 40901);
    assert_eq!(api.put(&uri, take.clone()).await?.status, 200);
    let bad = json!({"identifiers": {"gs1:01": "1"}});
    api.put(&uri, bad).await?.problem(400, 40001);
    assert_eq!(api.put(&uri, json!({"identifiers": {}})).await?.status, 200);
    assert_eq!(api.put(&uri_of_other, take).await?.status, 200);
    api.call_as(&api.other_key, Method::POST, "/products", Some(product(GTIN))).await?.must_be(201)?;
    Ok(())
}

/// Two at once: exactly one wins, and the others are told whose it is.
pub(super) async fn of_concurrent_writers_of_one_identifier_one_wins(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let product = id(&api.create("/products", json!({"name": "p"})).await?);
    let gtin = json!({"name": "p", "identifiers": {"gs1:01": GTIN}});
    for (uri, body) in [("/thngs", thng(&product, "A")), ("/products", gtin)] {
        let all = (0..20).map(|_| api.post(uri, body.clone()));
        let (mut made, mut refused) = (Vec::new(), Vec::new());
        for answer in futures_util::future::join_all(all).await {
            let answer = answer?;
            if answer.status == 201 {
                made.push(id(&answer.json()));
            } else {
                refused.push(answer.problem(409, 40901).remove(0));
            }
        }
        assert_eq!((made.len(), refused.len()), (1, 19), "{uri}: {refused:?}");
        assert!(refused.iter().all(|fault| fault.contains(&made[0])), "{refused:?}");
    }
    // By moves into one product, too.
    let mut loose = Vec::new();
    for _ in 0..5 {
        let body = json!({"name": "t", "identifiers": {"gs1:21": "M"}});
        loose.push(format!("/thngs/{}", id(&api.create("/thngs", body).await?)));
    }
    let moves = loose.iter().map(|uri| api.put(uri, json!({"product": product})));
    let moved = futures_util::future::join_all(moves).await;
    let moved: Vec<u16> =
        moved.into_iter().map(|answer| Ok(answer?.status.as_u16())).collect::<Result<_>>()?;
    let count = |status| moved.iter().filter(|found| **found == status).count();
    assert_eq!((count(200), count(409)), (1, 4), "{moved:?}");
    Ok(())
}

/// An older database may hold two Things of one product with one serial: both go on, and no third joins them.
pub(super) async fn duplicates_from_older_releases_keep_working(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let product = id(&api.create("/products", json!({"name": "p"})).await?);
    let one = id(&api.create("/thngs", thng(&product, "OLD-1")).await?);
    let two = id(&api.create("/thngs", thng(&product, "OLD-2")).await?);
    let rename = |doc: &str| {
        [
            "DELETE FROM unique_identifiers".to_owned(),
            "UPDATE identifiers SET value = 'OLD-1' WHERE value = 'OLD-2'".to_owned(),
            format!("UPDATE thngs SET doc = {doc} WHERE name = 't'"),
        ]
    };
    match &api.made.db.location {
        Location::Sqlite(path) => {
            let mut conn = sqlx::SqliteConnection::connect(&format!("sqlite://{}", path.display())).await?;
            for sql in rename("REPLACE(doc, 'OLD-2', 'OLD-1')") {
                sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut conn).await?;
            }
        }
        Location::Postgres(url) => {
            let mut conn = sqlx::PgConnection::connect(url).await?;
            for sql in rename("CAST(REPLACE(CAST(doc AS TEXT), 'OLD-2', 'OLD-1') AS JSONB)") {
                sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut conn).await?;
            }
        }
    }
    for thng in [&one, &two] {
        let uri = format!("/thngs/{thng}");
        let mut read = api.get(&uri).await?.json();
        assert_eq!(read["identifiers"]["gs1:21"], "OLD-1");
        read["description"] = json!("changed");
        api.put(&uri, read).await?.must_be(200)?;
        let place = json!([{"latitude": 1, "longitude": 2}]);
        assert_eq!(api.put(&format!("{uri}/location"), place).await?.status, 200);
    }
    let errors = api.post("/thngs", thng(&product, "OLD-1")).await?.problem(409, 40901);
    assert!(errors[0].contains("already"), "{errors:?}");
    let scan = json!({"thng": "gs1:21:OLD-1", "product": product});
    let errors = api.post("/actions/scans", scan).await?.problem(409, 40901);
    assert!(errors[0].contains("belongs to 2 thngs"), "{errors:?}");
    // One of them gets another serial: the other one is found by the old one.
    let change = json!({"identifiers": {"gs1:21": "NEW"}});
    assert_eq!(api.put(&format!("/thngs/{two}"), change).await?.status, 200);
    let found = api.get("/thngs/gs1:21:OLD-1").await?.json();
    assert_eq!(found["id"].as_str().context("id")?, one);
    Ok(())
}

crate::on_both_engines!(
    a_serial_is_unique_within_its_product,
    a_commission_cannot_take_a_used_serial,
    a_gtin_is_checked_kept_with_14_digits_and_unique,
    of_concurrent_writers_of_one_identifier_one_wins,
    duplicates_from_older_releases_keep_working,
);
