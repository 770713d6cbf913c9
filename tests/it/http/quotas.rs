//! Quotas of accounts, on both engines: what is held, what is written in a day, what is open, and how it is counted.

mod counts;
mod daily;
mod killed;
mod neighbours;
mod open;

use anyhow::{Context, Result};
use axum::{
    body::Body,
    http::{Method, Request, header},
};
use futures_util::future::join_all;
use serde_json::{Value, json};
use tests::db::Engine;

use super::{
    Answer, Api,
    batches::{finished, populate},
};

impl Api {
    /// Sets quotas of the first account.
    async fn set_quotas(&self, quotas: Value) -> Result<Value> {
        let uri = format!("/platform/accounts/{}/quotas", self.made.account);
        Ok(self.call_as(&self.platform_key, Method::PUT, &uri, Some(quotas)).await?.must_be(200)?.json())
    }

    /// The quotas as the first account sees them.
    async fn quotas(&self) -> Result<Value> {
        Ok(self.get(&format!("/accounts/{}/quotas", self.made.account)).await?.must_be(200)?.json())
    }

    async fn product(&self) -> Result<Value> {
        Ok(self.create("/products", json!({"name": "p"})).await?["id"].clone())
    }

    /// The content of a new file.
    async fn upload(&self, file: &Value, bytes: usize) -> Result<Answer> {
        let uri = format!("/files/{}/content", file.as_str().context("id")?);
        let request = Request::builder()
            .method(Method::PUT)
            .uri(uri)
            .header(header::HOST, "api.example:8080")
            .header(header::AUTHORIZATION, &self.key);
        self.send(request.body(Body::from(vec![b'x'; bytes]))?).await
    }

    async fn must_delete(&self, uri: &str) -> Result<()> {
        self.delete(uri).await?.must_be(200)?;
        Ok(())
    }
}

/// Checks that an answer is the refusal by a quota, and says so.
fn refused(answer: &Answer, (status, code): (u16, u32), quota: &str, used_of_limit: &str) {
    let faults = answer.problem(status, code);
    let text = &faults[0];
    let is_named = text.contains(&format!("quota {quota} ")) && text.contains(used_of_limit);
    assert!(faults.len() == 1 && is_named, "{faults:?}");
}

const HELD: (u16, u32) = (403, 40304);

async fn things_beyond_the_quota_are_refused(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let first = api.create("/thngs", json!({"name": "before the quota"})).await?["id"].clone();
    let set = api.set_quotas(json!({"things": 2, "x": 1})).await?;
    assert_eq!(set["things"], json!({"limit": 2, "own": true, "used": 1}), "what was there counts");
    api.create("/thngs", json!({"name": "a"})).await?;
    let post = || api.post("/thngs", json!({"name": "b"}));
    refused(&post().await?, HELD, "things", "2 of 2");
    // Nothing of it is left, in the audit trail either.
    assert_eq!(api.get("/thngs").await?.json().as_array().context("list")?.len(), 2);
    assert_eq!(api.get("/audit?filter=resource=thng").await?.json().as_array().context("list")?.len(), 2);
    let answer = api.call_as(&api.other_key, Method::POST, "/thngs", Some(json!({"name": "o"}))).await?;
    assert_eq!(answer.status, 201, "another account");

    // Below the use, what is there stays and is changed as before.
    api.set_quotas(json!({"things": 1})).await?;
    let uri = format!("/thngs/{}", first.as_str().context("id")?);
    assert_eq!(api.put(&uri, json!({"name": "c"})).await?.status, 200);
    refused(&post().await?, HELD, "things", "2 of 1");
    api.must_delete(&uri).await?;
    refused(&post().await?, HELD, "things", "1 of 1");
    api.set_quotas(json!({"things": 3})).await?;
    assert_eq!(post().await?.status, 201, "at once");

    // Of an array, those that fit.
    let array = json!([{"name": "d"}, {"name": ""}, {"name": "e"}, {"name": "f"}]);
    let results = api.post("/thngs", array).await?.json();
    let statuses: Vec<_> = results.as_array().context("array")?.iter().map(|r| r["status"].clone()).collect();
    assert_eq!(statuses, [json!(201), json!(400), json!(403), json!(403)], "{results}");
    assert_eq!(results[2]["code"], 40304, "{results}");
    assert_eq!(api.quotas().await?["things"], json!({"limit": 3, "own": true, "used": 3}));
    let ids = api.get("/thngs").await?.json();
    let ids: Vec<&str> = ids.as_array().context("list")?.iter().filter_map(|t| t["id"].as_str()).collect();
    api.must_delete(&format!("/thngs?ids={}", ids.join(","))).await?;
    assert_eq!(api.quotas().await?["things"]["used"], 0);
    let trail = api.get("/audit?filter=resource=quotas").await?.json();
    assert_eq!(
        (&trail[0]["before"], &trail[0]["after"], &trail[0]["actorType"]),
        (&json!({"things": 1}), &json!({"things": 3}), &json!("platform"))
    );
    Ok(())
}

async fn links_beyond_the_quota_are_refused(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let product = api.product().await?;
    let link = |id: &str| json!({"platformId": product, "defaultRedirectUrl": "https://example.com/", "shortId": id});
    api.post("/redirections", link("A")).await?;
    assert_eq!(api.set_quotas(json!({"links": 2})).await?["links"]["used"], 1);
    assert!(api.post("/redirections", link("B")).await?.status.is_success());
    refused(&api.post("/redirections", link("C")).await?, HELD, "links", "2 of 2");
    // A link is changed as before, and a deleted one makes room. Its short id is taken for ever.
    let change = json!({"defaultRedirectUrl": "https://example.com/other"});
    assert_eq!(api.put("/redirections/A", change).await?.status, 200);
    api.must_delete("/redirections/A").await?;
    assert!(api.post("/redirections", link("C")).await?.status.is_success());
    // Of an import, those that fit; one that is refused for another reason takes no place.
    api.set_quotas(json!({"links": 4})).await?;
    let import = json!([link("D"), link("B"), link("E"), link("F"), link("G")]);
    let results = api.post("/redirections", import).await?.json();
    let statuses: Vec<_> = results.as_array().context("array")?.iter().map(|r| r["status"].clone()).collect();
    assert_eq!(statuses, [201, 409, 201, 403, 403].map(|status| json!(status)), "{results}");
    assert!(results[3]["errors"][0].as_str().is_some_and(|text| text.contains("4 of 4")), "{results}");
    assert_eq!(api.quotas().await?["links"]["used"], 4);
    api.must_delete("/redirections?ids=B,C").await?;
    assert_eq!(api.quotas().await?["links"]["used"], 2);
    Ok(())
}

async fn a_population_stops_at_the_quota(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let batch = api.create("/batches", json!({"name": "b"})).await?["id"].clone();
    let tasks = format!("/batches/{}/tasks", batch.as_str().context("id")?);
    api.set_quotas(json!({"things": 5})).await?;
    let first = finished(&api, &tasks, populate(3, &json!({}))).await?;
    assert_eq!(first["status"], "COMPLETED", "{first}");
    let second = finished(&api, &tasks, populate(3, &json!({}))).await?;
    assert_eq!(second["status"], "FAILED", "{second}");
    let message = second["message"].as_str().context("message")?;
    assert!(message.contains("quota things ") && message.contains("5 of 5"), "{message}");
    assert_eq!(api.quotas().await?["things"]["used"], 3, "a step is done whole or not at all");
    Ok(())
}

async fn bytes_beyond_the_quota_are_refused(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let mut files = Vec::new();
    for _ in 0..3 {
        files.push(api.create("/files", json!({"name": "f"})).await?["id"].clone());
    }
    assert_eq!(api.upload(&files[0], 600).await?.status, 200);
    assert_eq!(api.set_quotas(json!({"storageBytes": 1_000})).await?["storageBytes"]["used"], 600);
    refused(&api.upload(&files[1], 401).await?, HELD, "storageBytes", "600 of 1000");
    assert_eq!(api.upload(&files[1], 400).await?.status, 200);
    refused(&api.upload(&files[2], 1).await?, HELD, "storageBytes", "1000 of 1000");
    // What replaces a content counts as what it adds.
    assert_eq!(api.upload(&files[0], 600).await?.status, 200);
    refused(&api.upload(&files[0], 601).await?, HELD, "storageBytes", "1000 of 1000");
    assert_eq!(api.upload(&files[0], 100).await?.status, 200);
    assert_eq!(api.quotas().await?["storageBytes"]["used"], 500);
    api.must_delete(&format!("/files/{}", files[1].as_str().context("id")?)).await?;
    assert_eq!(api.quotas().await?["storageBytes"]["used"], 100);
    Ok(())
}

async fn users_beyond_the_quota_are_refused(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let project = api.create("/projects", json!({"name": "p"})).await?["id"].clone();
    let applications = format!("/projects/{}/applications", project.as_str().context("id")?);
    let made = api.create(&applications, json!({"name": "a"})).await?;
    let app = made["appApiKey"].as_str().context("key")?.to_owned();
    let anonymous =
        || api.call_as(&app, Method::POST, "/auth/evrythng/users?anonymous=true", Some(json!({})));
    let register = |email: &str| {
        let body =
            json!({"firstName": "A", "lastName": "B", "email": email, "password": "correct horse battery"});
        api.call_as(&app, Method::POST, "/auth/evrythng/users", Some(body))
    };
    assert_eq!(register("known@example.com").await?.status, 201);
    api.set_quotas(json!({"users": 2})).await?;
    assert_eq!(anonymous().await?.status, 201);
    refused(&anonymous().await?, HELD, "users", "2 of 2");
    // Whether an address is known does not follow from the refusal.
    for email in ["known@example.com", "new@example.com"] {
        refused(&register(email).await?, HELD, "users", "2 of 2");
    }
    // The users of an application go with it.
    api.must_delete(&format!("{applications}/{}", made["id"].as_str().context("id")?)).await?;
    assert_eq!(api.quotas().await?["users"]["used"], 0);
    Ok(())
}

async fn of_many_at_once_one_gets_the_last_place(engine: Engine) -> Result<()> {
    const MANY: usize = 12;
    let api = Api::new(engine).await?;
    let product = api.product().await?;
    api.create("/thngs", json!({"name": "t"})).await?;
    api.post(
        "/redirections",
        json!({"platformId": product,
        "defaultRedirectUrl": "https://example.com/"}),
    )
    .await?;
    api.set_quotas(json!({"things": 2, "links": 2})).await?;
    let thng = json!({"name": "t"});
    let link = json!({"platformId": product, "defaultRedirectUrl": "https://example.com/"});
    for (uri, body, quota) in [("/thngs", thng, "things"), ("/redirections", link, "links")] {
        let all = (0..MANY).map(|_| api.post(uri, body.clone()));
        let answers = join_all(all).await.into_iter().collect::<Result<Vec<_>>>()?;
        let made = answers.iter().filter(|answer| answer.status.is_success()).count();
        assert_eq!(made, 1, "{uri}: {answers:?}");
        for answer in answers.iter().filter(|answer| !answer.status.is_success()) {
            refused(answer, HELD, quota, "2 of 2");
        }
    }
    Ok(())
}

async fn wrong_limits_are_refused_and_change_nothing(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    api.set_quotas(json!({"things": 5})).await?;
    let uri = format!("/platform/accounts/{}/quotas", api.made.account);
    let put =
        async |uri: &str, body: Value| api.call_as(&api.platform_key, Method::PUT, uri, Some(body)).await;
    let before = api.fingerprint().await?;
    let wrong = json!({"things": -1, "links": "many", "users": 1.5, "streams": 9_007_199_254_740_992_u64});
    assert_eq!(put(&uri, wrong).await?.problem(400, 40001).len(), 4);
    put("/platform/accounts/UKXAGyEf8SQ5eTDmVgGpHqAa/quotas", json!({"things": 1}))
        .await?
        .problem(404, 40401);
    put("/platform/quotas", json!({"things": "default"})).await?.problem(400, 40001);
    let faults = put("/platform/quotas", json!({"things": 1, "links": "default"})).await?.problem(400, 40001);
    assert!(faults[0].starts_with("links "), "{faults:?}");
    for (method, uri) in [(Method::GET, uri.as_str()), (Method::PUT, "/platform/quotas")] {
        api.call(method, uri, Some(json!({"things": 1}))).await?.problem(403, 40301);
    }
    let ignored = put(&uri, json!({"thngs": 1})).await?;
    assert_eq!(ignored.header("x-ignored"), Some("thngs"));
    let mut after = api.fingerprint().await?;
    // The change of nothing was noted.
    for table in ["audit_entries", "sqlite_sequence"] {
        if let Some(rows) = before.get(table) {
            after.insert(table.to_owned(), rows.clone());
        }
    }
    assert_eq!(before, after);
    api.get(&format!("/accounts/{}/quotas", api.other_account)).await?.problem(404, 40401);
    Ok(())
}

crate::on_both_engines!(
    things_beyond_the_quota_are_refused,
    links_beyond_the_quota_are_refused,
    a_population_stops_at_the_quota,
    bytes_beyond_the_quota_are_refused,
    users_beyond_the_quota_are_refused,
    of_many_at_once_one_gets_the_last_place,
    wrong_limits_are_refused_and_change_nothing
);
