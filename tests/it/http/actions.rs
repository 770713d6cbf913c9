//! Reading actions, and the built-in types.

use ::actions::store::actions::{self, NewAction};
use anyhow::{Context, Result};
use kernel::store::Ctx;
use serde_json::{Value, json};
use shared::{
    id::{ActionId, ProductId, ThngId},
    time::UnixMillis,
};
use tests::db::{Engine, random16};

use super::Api;

fn ids(page: &Value) -> Vec<&str> {
    page.as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap()).collect()
}

pub(super) async fn actions_are_listed_and_read(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let product = api.create("/products", json!({"name": "p"})).await?;
    let thng = api.create("/thngs", json!({"name": "t", "identifiers": {"k": "1"}})).await?;
    let product: ProductId = product["id"].as_str().context("id")?.parse()?;
    let thng: ThngId = thng["id"].as_str().context("id")?.parse()?;
    let new = |at: i64, account, kind: &str, thng, product| -> Result<NewAction> {
        Ok(NewAction {
            id: ActionId::new(at, random16()?),
            account,
            kind: kind.to_owned(),
            thng,
            product,
            timestamp: UnixMillis(at),
            doc: json!({"customFields": {"n": at}, "tags": [], "context": {"city": "Bern"}, "type": "not this"}),
        })
    };
    let account = api.made.account;
    let stored = [
        new(1, account, "implicitScans", Some(thng), Some(product))?,
        new(2, account, "scans", Some(thng), None)?,
        new(3, account, "implicitScans", None, Some(product))?,
        new(4, api.other_account, "scans", Some(thng), Some(product))?,
    ];
    let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
    actions::insert(&mut tx, UnixMillis(50), &stored).await?;
    tx.commit().await?;
    let id = |index: usize| stored[index].id.as_str();

    for (uri, expected) in [
        ("/actions/all".to_owned(), vec![2, 1, 0]),
        ("/v2/actions/all?sortOrder=ASCENDING".to_owned(), vec![0, 1, 2]),
        ("/actions/implicitScans".to_owned(), vec![2, 0]),
        ("/actions/shares".to_owned(), vec![]),
        (format!("/thngs/{thng}/actions/all"), vec![1, 0]),
        ("/thngs/k:1/actions/scans".to_owned(), vec![1]),
        (format!("/products/{product}/actions/all"), vec![2, 0]),
        (format!("/products/{product}/actions/implicitScans"), vec![2, 0]),
    ] {
        let page = api.get(&uri).await?.json();
        let expected: Vec<&str> = expected.into_iter().map(id).collect();
        assert_eq!(ids(&page), expected, "{uri}");
        assert!(page.as_array().context("page")?.iter().all(|row| row.get("context").is_none()), "{uri}");
    }
    let with = api.get("/actions/all?context=true").await?.json();
    assert_eq!(with[0]["context"], json!({"city": "Bern"}));

    let one = api.get(&format!("/actions/implicitScans/{}", id(0))).await?.json();
    assert_eq!(
        one,
        json!({"id": id(0), "createdAt": 50, "timestamp": 1, "type": "implicitScans", "thng": thng, "product": product,
            "customFields": {"n": 1}, "tags": []})
    );
    for uri in [
        format!("/actions/all/{}", id(0)),
        format!("/thngs/{thng}/actions/implicitScans/{}", id(0)),
        format!("/products/{product}/actions/all/{}", id(0)),
    ] {
        assert_eq!(api.get(&uri).await?.json(), one, "{uri}");
    }
    let context = api.get(&format!("/actions/all/{}?context=true", id(0))).await?.json();
    assert_eq!(context["context"]["city"], "Bern");
    for wrong in [
        format!("/actions/scans/{}", id(0)),
        format!("/thngs/{thng}/actions/all/{}", id(2)),
        format!("/products/{product}/actions/all/{}", id(1)),
        format!("/actions/all/{}", id(3)),
    ] {
        api.get(&wrong).await?.problem(404, 40401);
    }
    Ok(())
}

pub(super) async fn built_in_types_are_listed(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let all = api.get("/actions?sortOrder=ASCENDING").await?.json();
    assert_eq!(all.as_array().map(Vec::len), Some(12));
    assert_eq!(all[0], json!({"name": "scans"}));
    let answer = api.get("/actions?perPage=5").await?;
    assert!(answer.headers.contains_key("link"));
    assert_eq!(answer.json().as_array().map(Vec::len), Some(5));
    // Some clients encode a filter twice.
    for filter in ["name%3Dshares", "name%253Dshares"] {
        assert_eq!(api.get(&format!("/actions?filter={filter}")).await?.json(), json!([{"name": "shares"}]));
    }
    assert_eq!(api.get("/actions?filter=name%3D_own").await?.json(), json!([]));
    Ok(())
}

crate::on_both_engines!(actions_are_listed_and_read, built_in_types_are_listed);
