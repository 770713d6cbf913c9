//! `GET /redirections/{shortId}/history` and `POST /redirections/{shortId}/restore`.

use anyhow::{Context, Result, ensure};
use axum::http::{Method, header};
use serde_json::{Value, json};
use tests::db::Engine;

use super::{
    Answer, Api,
    etags::{ask_if, tag_of},
    operators::machine,
    paging::next,
};

crate::on_both_engines!(
    changes_are_listed_newest_first,
    a_state_comes_back_whole,
    a_restore_is_refused_that_has_not_seen_the_last_change,
    a_deleted_link_comes_back_to_its_account,
    what_cannot_come_back_is_named,
    who_reads_links_reads_their_history,
    a_project_sees_no_operators,
);

const LINK: &str = "/redirections/SHOE";
const HISTORY: &str = "/redirections/SHOE/history";
const RESTORE: &str = "/redirections/SHOE/restore";

/// Makes a product and a link to it with more members; gives the id of the product.
async fn make(api: &Api, more: Value) -> Result<String> {
    let product = api.create("/products", json!({"name": "Shoe"})).await?;
    let product = product["id"].as_str().context("id")?.to_owned();
    let mut body =
        json!({"platformId": product, "defaultRedirectUrl": "https://example.com/a", "shortId": "SHOE"});
    body.as_object_mut().context("object")?.extend(more.as_object().cloned().unwrap_or_default());
    let made = api.post("/redirections", json!([body])).await?.json();
    ensure!(made[0]["shortId"] == "SHOE", "{made}");
    Ok(product)
}

async fn put(api: &Api, body: Value) -> Result<()> {
    api.put(LINK, body).await?.must_be(200)?;
    Ok(())
}

/// The whole history, newest first.
async fn history(api: &Api) -> Result<Vec<Value>> {
    let answer = api.get(HISTORY).await?.must_be(200)?;
    Ok(answer.json().as_array().context("changes")?.clone())
}

async fn restore(api: &Api, version: &Value) -> Result<Answer> {
    api.post(RESTORE, json!({"version": version})).await
}

/// What a `PUT` can change of the link, as it is read.
async fn state(api: &Api) -> Result<Value> {
    let mut found = api.get(LINK).await?.json();
    let members = found.as_object_mut().context("link")?;
    for name in ["updatedAt", "createdBy", "updatedBy"] {
        members.remove(name);
    }
    Ok(found)
}

async fn changes_are_listed_newest_first(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    make(&api, json!({"title": "A"})).await?;
    put(&api, json!({"defaultRedirectUrl": "https://example.com/b"})).await?;
    put(&api, json!({"defaultRedirectUrl": "https://example.com/b", "notes": "n", "status": "paused"}))
        .await?;
    let found = history(&api).await?;
    ensure!(found.len() == 3, "{found:?}");
    ensure!(
        found[0]["members"]
            == json!([{"member": "notes", "after": "n"}, {"member": "status", "after": "paused"}])
    );
    ensure!(
        found[1]["members"]
            == json!([{"member": "defaultRedirectUrl", "before": "https://example.com/a", "after": "https://example.com/b"}])
    );
    let made = &found[2];
    ensure!(made["change"] == "created" && found[0]["change"] == "updated", "{found:?}");
    ensure!(made["operation"] == "POST /redirections" && made["actorType"] == "operator", "{made}");
    ensure!(made["actor"] == json!(api.made.operator.to_string()) && made["createdAt"].is_i64(), "{made}");
    let members = made["members"].as_array().context("members")?;
    ensure!(members.iter().any(|one| *one == json!({"member": "title", "after": "A"})), "{made}");
    // Neither the key nor the network nor the request: these are for auditors.
    let mut names: Vec<&String> = made.as_object().context("object")?.keys().collect();
    names.sort_unstable();
    ensure!(
        names == ["actor", "actorType", "change", "createdAt", "members", "operation", "version"],
        "{names:?}"
    );
    // Page by page, in either order.
    for (order, expected) in [("DESCENDING", [0, 1, 2]), ("ASCENDING", [2, 1, 0])] {
        let mut url = format!("{HISTORY}?perPage=1&sortOrder={order}");
        for (at, of) in expected.iter().enumerate() {
            let answer = api.get(&url).await?;
            ensure!(answer.json() == json!([found[*of]]), "{answer:?}");
            match next(&answer) {
                Some(following) => url = following,
                None => ensure!(at == 2, "{at}"),
            }
        }
    }
    api.get(&format!("{HISTORY}?perPage=0")).await?.problem(400, 40003);
    Ok(())
}

async fn a_state_comes_back_whole(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let project = api.create("/projects", json!({"name": "p"})).await?["id"].clone();
    make(&api, json!({"tags": ["x"], "validUntil": 4_000_000_000_000_i64})).await?;
    let first = state(&api).await?;
    put(
        &api,
        json!({"defaultRedirectUrl": "https://example.com/b", "forwardQuery": true, "statusCode": 301, "title": "B",
            "tags": ["y"], "notes": "n", "customFields": {"k": 1}, "status": "paused", "validFrom": 5,
            "validUntil": 7, "endedUrl": "https://example.com/ended", "scopes": {"projects": [project]}}),
    )
    .await?;
    let second = state(&api).await?;
    ensure!(first != second);
    let versions: Vec<Value> = history(&api).await?.iter().map(|one| one["version"].clone()).collect();
    for (version, expected) in [(&versions[1], &first), (&versions[0], &second), (&versions[1], &first)] {
        let answer = restore(&api, version).await?;
        ensure!(
            answer.status == 200 && answer.json()["defaultRedirectUrl"] == expected["defaultRedirectUrl"]
        );
        ensure!(state(&api).await? == *expected, "{}", state(&api).await?);
    }
    // What was restored is a change as others are.
    let found = history(&api).await?;
    ensure!(found.len() == 5 && found[0]["operation"] == "POST /redirections/{shortId}/restore", "{found:?}");
    ensure!(restore(&api, &found[1]["version"]).await?.status == 200);
    ensure!(state(&api).await? == second);
    let searched = api.get("/redirections?q=B&filter=tags%3Dy").await?.json();
    ensure!(searched.as_array().is_some_and(|found| found.len() == 1), "{searched}");
    Ok(())
}

async fn a_restore_is_refused_that_has_not_seen_the_last_change(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    make(&api, json!({})).await?;
    let seen = tag_of(&api.get(LINK).await?)?;
    put(&api, json!({"defaultRedirectUrl": "https://example.com/b"})).await?;
    let version = history(&api).await?[1]["version"].clone();
    let body = || json!({"version": version});
    let before = api.fingerprint().await?;
    let refused = ask_if(&api, Method::POST, RESTORE, &seen, body()).await?;
    refused.problem(412, 41201);
    ask_if(&api, Method::POST, RESTORE, "1", body()).await?.problem(400, 40001);
    ensure!(api.fingerprint().await? == before, "what is refused changes nothing");
    let seen = tag_of(&api.get(LINK).await?)?;
    let done = ask_if(&api, Method::POST, RESTORE, &seen, body()).await?;
    ensure!(done.status == 200 && tag_of(&done)? == tag_of(&api.get(LINK).await?)?, "{done:?}");
    // Two at once over the same state: one of them wins.
    let seen = tag_of(&done)?;
    let (one, two) = tokio::join!(
        ask_if(&api, Method::POST, RESTORE, &seen, body()),
        ask_if(&api, Method::PUT, LINK, &seen, json!({"defaultRedirectUrl": "https://example.com/c"})),
    );
    let mut statuses = [one?.status.as_u16(), two?.status.as_u16()];
    statuses.sort_unstable();
    ensure!(statuses == [200, 412], "{statuses:?}");
    Ok(())
}

async fn a_deleted_link_comes_back_to_its_account(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    make(&api, json!({"title": "Shoe", "endedUrl": "https://example.com/ended"})).await?;
    put(&api, json!({"defaultRedirectUrl": "https://example.com/b"})).await?;
    let last = state(&api).await?;
    ensure!(api.delete(LINK).await?.status == 200);
    api.get(LINK).await?.problem(404, 40401);
    let found = history(&api).await?;
    let kinds: Vec<&Value> = found.iter().map(|one| &one["change"]).collect();
    ensure!(kinds == ["deleted", "updated", "created"], "{kinds:?}");
    // Nobody else sees what is left of it, or gets its id.
    let other = |method, uri, body| api.call_as(&api.other_key, method, uri, body);
    let body = json!({"version": found[1]["version"]});
    other(Method::GET, "/redirections/SHOE/history?domain=other.gg", None).await?.problem(404, 40401);
    other(Method::GET, "/redirections/SHOE/history?domain=tn.gg", None).await?.problem(400, 40001);
    other(Method::POST, "/redirections/SHOE/restore?domain=other.gg", Some(body)).await?.problem(404, 40401);

    let answer = restore(&api, &found[1]["version"]).await?;
    ensure!(answer.status == 200 && answer.headers.contains_key(header::ETAG), "{answer:?}");
    ensure!(state(&api).await? == last, "{}", state(&api).await?);
    let words = api.get("/redirections?q=shoe").await?.json();
    ensure!(words[0]["shortId"] == "SHOE", "{words}");
    ensure!(history(&api).await?[0]["change"] == "created");
    // It can be deleted and come back again, in an older state too.
    ensure!(api.delete(LINK).await?.status == 200);
    ensure!(restore(&api, &found[2]["version"]).await?.status == 200);
    ensure!(api.get(LINK).await?.json()["defaultRedirectUrl"] == "https://example.com/a");
    Ok(())
}

async fn what_cannot_come_back_is_named(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let product = make(&api, json!({})).await?;
    for (body, fault) in [
        (json!({}), "version is required."),
        (json!({"version": 1}), "version must be a string."),
        (json!({"version": "x"}), "version must be a version from the history of the link."),
    ] {
        let faults = api.post(RESTORE, body).await?.problem(400, 40001);
        ensure!(faults == [fault], "{faults:?}");
    }
    restore(&api, &json!("999999999")).await?.problem(404, 40401);
    restore(&api, &json!("0")).await?.problem(404, 40401);
    let none = json!({"version": "1"});
    api.post("/redirections/NONE/restore", none).await?.problem(404, 40401);
    api.get("/redirections/NONE/history").await?.problem(404, 40401);
    // A version of another link is none of this one.
    let other =
        json!({"platformId": product, "defaultRedirectUrl": "https://example.com/", "shortId": "OTHER"});
    api.post("/redirections", json!([other])).await?;
    let foreign = api.get("/redirections/OTHER/history").await?.json()[0]["version"].clone();
    restore(&api, &foreign).await?.problem(404, 40401);

    ensure!(api.delete(LINK).await?.status == 200);
    let found = history(&api).await?;
    let faults = restore(&api, &found[0]["version"]).await?.problem(409, 40901);
    ensure!(faults == ["version: the link was deleted by this change; name an earlier one."], "{faults:?}");
    ensure!(api.delete(&format!("/products/{product}")).await?.status.is_success());
    let before = api.fingerprint().await?;
    let faults = restore(&api, &found[1]["version"]).await?.problem(409, 40901);
    let gone = format!("platformId: the product {product}, to which the link belonged, is gone.");
    ensure!(faults == [gone], "{faults:?}");
    ensure!(api.fingerprint().await? == before, "what is refused changes nothing");
    Ok(())
}

async fn who_reads_links_reads_their_history(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    make(&api, json!({})).await?;
    put(&api, json!({"defaultRedirectUrl": "https://example.com/b"})).await?;
    let (_, viewer) = machine(&api, "viewer", json!({})).await?;
    let found = api.call_as(&viewer, Method::GET, HISTORY, None).await?;
    ensure!(found.status == 200 && found.json() == json!(history(&api).await?), "{found:?}");
    api.call_as(&viewer, Method::GET, "/audit", None).await?.problem(403, 40301);
    let body = Some(json!({"version": found.json()[1]["version"]}));
    let before = api.fingerprint().await?;
    api.call_as(&viewer, Method::POST, RESTORE, body.clone()).await?.problem(403, 40301);
    ensure!(api.fingerprint().await? == before, "what is refused changes nothing");
    let (_, editor) = machine(&api, "editor", json!({})).await?;
    ensure!(api.call_as(&editor, Method::POST, RESTORE, body).await?.status == 200);
    Ok(())
}

async fn a_project_sees_no_operators(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let project = api.create("/projects", json!({"name": "p"})).await?["id"].clone();
    let key = api.create("/keys", json!({"label": "x", "project": project})).await?;
    let key = key["apiKey"].as_str().context("key")?;
    make(&api, json!({})).await?;
    api.call_as(key, Method::GET, HISTORY, None).await?.problem(404, 40401);
    put(&api, json!({"defaultRedirectUrl": "https://example.com/b", "scopes": {"projects": [project]}}))
        .await?;
    let found = api.call_as(key, Method::GET, HISTORY, None).await?.json();
    ensure!(found[0]["actorType"] == "operator" && found[0]["actor"] == Value::Null, "{found}");
    ensure!(api.delete(LINK).await?.status == 200);
    let found = api.call_as(key, Method::GET, HISTORY, None).await?.json();
    ensure!(found[0]["change"] == "deleted", "{found}");
    Ok(())
}
