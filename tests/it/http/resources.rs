//! Products, Thngs, accounts and operators: create, read, merge, delete.

use anyhow::{Context, Result};
use axum::http::Method;
use serde_json::{Value, json};
use tests::db::Engine;

use super::Api;

fn id(body: &Value) -> Result<&str> {
    body["id"].as_str().context("id")
}

pub(super) async fn sent_members_are_returned(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let sent = json!({
        "name": "Schuh \u{1F45F}", "description": "", "brand": "B", "categories": ["a", "b"], "photos": ["https://e.com/p"],
        "url": "https://e.com", "tags": ["t", "T"], "activatedAt": 5,
        "customFields": {"Color": "red", "color": null, "n": 1.5, "big": 9_007_199_254_740_993_i64,
            "limits": [f64::MAX, f64::MIN, f64::MIN_POSITIVE, 5e-324, 1.844_674_407_370_955_2e19, 0.1], "deep": {"a": [true]}},
        "identifiers": {"gs1:01": "09521234543213", "Sku": "1"},
    });
    let answer = api.post("/v2/products", sent.clone()).await?.must_be(201)?;
    let product = answer.json();
    let product_id = id(&product)?;
    assert_eq!(
        answer.header("location"),
        Some(format!("http://api.example:8080/v2/products/{product_id}").as_str())
    );
    for (name, value) in sent.as_object().context("object")? {
        assert_eq!(&product[name], value, "{name}");
    }
    assert_eq!(product["fn"], product["name"]);
    assert_eq!(product["createdAt"], product["updatedAt"]);
    assert_eq!(product.get("scopes"), None);
    assert_eq!(api.get(&format!("/products/{product_id}")).await?.json(), product);

    let sent = json!({"name": "t", "product": product_id, "type": "shoe", "identifiers": {"gs1:21": "A/B C"},
        "scopes": {"users": ["all"], "projects": []}});
    let thng = api.create("/thngs", sent.clone()).await?;
    for name in ["name", "product", "type", "identifiers"] {
        assert_eq!(thng[name], sent[name], "{name}");
    }
    let path = format!("/thngs/{}", id(&thng)?);
    assert_eq!(api.get(&path).await?.json(), thng);
    let with_scopes = api.get(&format!("{path}?withScopes=true")).await?.json();
    assert_eq!(with_scopes["scopes"], sent["scopes"]);
    // Percent-encoded or raw, a name leads to the same Thng.
    for reference in ["gs1%3A21%3AA%2FB%20C", "gs1:21:A%2FB%20C"] {
        assert_eq!(api.get(&format!("/thngs/{reference}")).await?.json(), thng, "{reference}");
    }
    let bare = api.create("/thngs", json!({"name": "bare"})).await?;
    let members: Vec<&String> = bare.as_object().context("object")?.keys().collect();
    assert_eq!(members, ["createdAt", "id", "name", "updatedAt"]);
    Ok(())
}

pub(super) async fn an_update_merges(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let product = api.create("/products", json!({"name": "p"})).await?;
    let thng = api
        .create(
            "/thngs",
            json!({"name": "t", "tags": ["a"], "customFields": {"x": 1, "y": 2}, "identifiers": {"k": "1"}}),
        )
        .await?;
    let path = format!("/thngs/{}", id(&thng)?);
    let changed =
        api.put(&path, json!({"customFields": {"x": 3}, "description": "d", "tags": null})).await?.json();
    assert_eq!(changed["customFields"], json!({"x": 3}), "replaced as a whole");
    assert_eq!(changed["tags"], json!(["a"]), "null counts as absent");
    assert_eq!((&changed["name"], &changed["description"]), (&json!("t"), &json!("d")));
    assert!(changed["updatedAt"].as_i64() > changed["createdAt"].as_i64());
    assert_eq!(changed["createdAt"], thng["createdAt"]);

    // A client sends back everything that it was given.
    let mut whole = changed.clone();
    whole["id"] = json!("ignored");
    whole["createdAt"] = json!(1);
    whole["updatedAt"] = json!("x");
    whole["product"] = product["id"].clone();
    whole["unknown"] = json!({"a": 1});
    whole["scopes"] = json!({"users": ["all"], "projects": []});
    let again = api.put(&path, whole).await?.json();
    assert_eq!((&again["id"], &again["createdAt"]), (&thng["id"], &thng["createdAt"]));
    assert_eq!(again["product"], product["id"]);
    assert_eq!(again.get("unknown"), None);
    assert!(again["updatedAt"].as_i64() >= changed["updatedAt"].as_i64());

    // Identifiers lead to the Thng as long as it has them.
    api.put(&path, json!({"identifiers": {"k": "2"}})).await?;
    api.get("/thngs/k:1").await?.problem(404, 40401);
    let by_name = api.put("/thngs/k:2", json!({"name": "renamed"})).await?.json();
    assert_eq!((&by_name["id"], &by_name["name"]), (&thng["id"], &json!("renamed")));
    Ok(())
}

pub(super) async fn two_updates_at_once_both_stay(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let thng = api.create("/thngs", json!({"name": "t"})).await?;
    let path = format!("/thngs/{}", id(&thng)?);
    for round in 0..10 {
        let (a, b) = tokio::join!(
            api.put(&path, json!({"description": round.to_string()})),
            api.put(&path, json!({"tags": [round.to_string()]})),
        );
        assert_eq!((a?.status.as_u16(), b?.status.as_u16()), (200, 200));
        let read = api.get(&path).await?.json();
        assert_eq!(read["description"], round.to_string());
        assert_eq!(read["tags"], json!([round.to_string()]));
    }
    Ok(())
}

pub(super) async fn a_deleted_resource_is_gone_and_references_to_it_stay(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let product = api.create("/products", json!({"name": "p", "identifiers": {"k": "1"}})).await?;
    let thng = api.create("/thngs", json!({"name": "t", "product": product["id"]})).await?;
    let path = format!("/products/{}", id(&product)?);
    let answer = api.delete(&path).await?;
    assert_eq!((answer.status.as_u16(), answer.bytes.as_slice()), (200, &b""[..]));
    for path in [path.as_str(), "/products/k:1"] {
        api.get(path).await?.problem(404, 40401);
        api.delete(path).await?.problem(404, 40401);
    }
    let thng_path = format!("/thngs/{}", id(&thng)?);
    let left = api.get(&thng_path).await?.json();
    assert_eq!(left["product"], product["id"]);
    // Sending the old product back is no fault, naming it anew is.
    api.put(&thng_path, left).await?.must_be(200)?;
    let anew = api.post("/thngs", json!({"name": "t", "product": product["id"]})).await?;
    anew.problem(400, 40001);
    assert_eq!(api.delete(&thng_path).await?.status, 200);
    Ok(())
}

pub(super) async fn an_identifier_of_several_is_a_conflict(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    for name in ["a", "b", "c"] {
        api.create("/thngs", json!({"name": name, "identifiers": {"gs1:21": "S"}})).await?;
    }
    let before = api.fingerprint().await?;
    for (method, body) in
        [(Method::GET, None), (Method::PUT, Some(json!({"name": "x"}))), (Method::DELETE, None)]
    {
        let errors = api.call(method, "/thngs/gs1:21:S", body).await?.problem(409, 40901);
        assert!(errors[0].contains("belongs to 3 thngs"), "{errors:?}");
    }
    assert_eq!(api.fingerprint().await?, before);
    // A product with the same identifier is another matter.
    let product = api.create("/products", json!({"name": "p", "identifiers": {"gs1:21": "S"}})).await?;
    assert_eq!(api.get("/products/gs1:21:S").await?.json(), product);
    Ok(())
}

pub(super) async fn the_bootstrap_of_clients_works(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let (account, operator) = (api.made.account.to_string(), api.made.operator.to_string());
    for prefix in ["", "/v2"] {
        let access = api.get(&format!("{prefix}/access")).await?.json();
        assert_eq!(access, json!({"account": account, "actor": {"type": "operator", "id": operator}}));
    }
    let read = api.get(&format!("/v2/operators/{operator}")).await?.json();
    for (name, value) in
        [("id", operator.as_str()), ("email", "o@example.com"), ("firstName", "O"), ("lastName", "P")]
    {
        assert_eq!(read[name], value);
    }
    // These names would overwrite methods of the vendor's client.
    for name in ["role", "project", "user", "apiKey"] {
        assert_eq!(read.get(name), None);
    }
    let changed = api
        .put(&format!("/operators/{operator}"), json!({"firstName": "Ada", "email": "x@y.z"}))
        .await?
        .json();
    assert_eq!(
        (&changed["firstName"], &changed["lastName"], &changed["email"]),
        (&json!("Ada"), &json!("P"), &read["email"])
    );
    assert!(changed["updatedAt"].as_i64() > changed["createdAt"].as_i64());

    let accounts = api.get("/accounts").await?;
    assert_eq!(accounts.header("x-result-count"), Some("1"));
    assert_eq!(accounts.json()[0]["id"], account);
    assert_eq!(api.get("/accounts?page=2").await?.json(), json!([]));
    for query in ["page=0", "page=x", "perPage=0", "perPage=101"] {
        api.get(&format!("/accounts?{query}")).await?.problem(400, 40003);
    }
    let path = format!("/accounts/{account}");
    let changed = api.put(&path, json!({"customFields": {"Plan": 1}})).await?.json();
    assert_eq!((&changed["customFields"], &changed["name"]), (&json!({"Plan": 1}), &json!("Test")));
    assert_eq!(api.get(&path).await?.json(), changed);
    assert_eq!(api.get(&format!("{path}/shortDomains")).await?.json(), json!(["tn.gg"]));
    assert_eq!(
        api.get(&format!("{path}/domains")).await?.json(),
        json!([{"domain": "tn.gg", "host": "tn.gg", "state": "verified", "source": "platform"}])
    );
    Ok(())
}

crate::on_both_engines!(
    sent_members_are_returned,
    an_update_merges,
    two_updates_at_once_both_stay,
    a_deleted_resource_is_gone_and_references_to_it_stay,
    an_identifier_of_several_is_a_conflict,
    the_bootstrap_of_clients_works,
);
