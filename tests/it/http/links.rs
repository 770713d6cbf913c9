//! Descriptive fields of links, through the API: members, who sees who wrote them, and lists by conditions and words.

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use serde_json::{Value, json};
use tests::{db::Engine, json::merged};

use super::Api;

crate::on_both_engines!(
    members_come_back_as_they_were_sent,
    an_array_and_the_first_generation_take_them,
    a_change_that_says_nothing_of_them_keeps_them,
    who_wrote_a_link_is_shown_to_who_reads_the_account,
    lists_take_words_and_conditions,
    wrong_parameters_are_refused,
    the_audit_trail_and_events_have_them,
);

/// Makes a product; gives its id.
pub(super) async fn product(api: &Api) -> Result<String> {
    let made = api.create("/products", json!({"name": "p"})).await?;
    Ok(made["id"].as_str().context("id")?.to_owned())
}

/// An API, and the id of a product in it.
pub(super) async fn with_product(engine: Engine) -> Result<(Api, String)> {
    let api = Api::new(engine).await?;
    let product = product(&api).await?;
    Ok((api, product))
}

/// Makes links by an array; gives their short ids.
async fn make(api: &Api, key: &str, links: Value) -> Result<Vec<String>> {
    let answer = api.call_as(key, Method::POST, "/redirections", Some(links)).await?;
    let answer = answer.json();
    let ids = answer.as_array().context("an array")?.iter().map(|one| {
        let id = one["shortId"].as_str().with_context(|| one.to_string())?;
        Ok(id.to_owned())
    });
    ids.collect()
}

fn said() -> Value {
    json!({"title": "Summer, posters", "tags": ["b", "a"], "notes": "Line 1\nLine 2",
        "customFields": {"shop": 7, "deep": {"list": [1, null]}}})
}

/// A link's members with those of `more`.
fn link(product: &str, more: &Value) -> Value {
    merged(json!({"platformId": product, "defaultRedirectUrl": "https://example.com/"}), more)
}

fn has(document: &Value, said: &Value) -> bool {
    said.as_object().into_iter().flatten().all(|(name, value)| document[name] == *value)
}

async fn members_come_back_as_they_were_sent(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    let id = make(&api, &api.key, json!([link(&product, &said())])).await?.remove(0);
    let found = api.get(&format!("/redirections/{id}")).await?.json();
    ensure!(has(&found, &said()), "{found}");
    let listed = api.get("/redirections").await?.json();
    ensure!(has(&listed[0], &said()), "{listed}");
    // What nobody said is not there, and what is empty is.
    let bare =
        make(&api, &api.key, json!([link(&product, &json!({"title": "", "tags": []}))])).await?.remove(0);
    let bare = api.get(&format!("/redirections/{bare}")).await?.json();
    ensure!(bare["title"] == "" && bare["tags"] == json!([]) && bare.get("notes").is_none(), "{bare}");
    // A change of a title alone has a revision, which is the ETag.
    let path = format!("/redirections/{id}");
    let tag = api.get(&path).await?.header("etag").map(str::to_owned);
    let body = json!({"defaultRedirectUrl": "https://example.com/", "title": "Other"});
    let changed = api.put(&path, body).await?;
    ensure!(
        changed.json()["title"] == "Other" && changed.header("etag").map(str::to_owned) != tag,
        "{changed:?}"
    );
    // It is read, and not written. Whoever sends back what it has read gets no note about it.
    let body = json!({"defaultRedirectUrl": "https://example.com/", "createdBy": {"actor": "x"}});
    let answer = api.put(&path, body).await?;
    ensure!(answer.status == 200 && answer.header("x-ignored").is_none(), "{answer:?}");
    ensure!(answer.json()["createdBy"] == found["createdBy"]);
    let long = link(&product, &json!({"title": "x".repeat(201), "tags": [1]}));
    let refused = api.post("/redirections", json!([long])).await?.json();
    let expected =
        json!(["title must have at most 200 characters, not 201.", "tags must be an array of strings."]);
    ensure!(refused[0]["status"] == 400 && refused[0]["errors"] == expected, "{refused}");
    // Each value would be found by itself: a few bytes of JSON may not become megabytes of an index.
    let many: Vec<u32> = (0..251).collect();
    let body = json!({"defaultRedirectUrl": "https://example.com/", "customFields": {"a": many}});
    let refused = api.put(&path, body).await?;
    let expected = json!(["customFields must have at most 250 values, not 251."]);
    ensure!(refused.status == 400 && refused.json()["errors"] == expected, "{refused:?}");
    Ok(())
}

async fn an_array_and_the_first_generation_take_them(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    let path = format!("/products/{product}/redirector");
    let made = api.create(&path, link(&product, &said())).await?;
    ensure!(has(&made, &said()), "{made}");
    ensure!(has(&api.get(&path).await?.json(), &said()));
    let ids =
        make(&api, &api.key, json!([link(&product, &said()), link(&product, &json!({"title": "two"}))]))
            .await?;
    // All of several are changed alike in what is said, and keep what is not.
    let body = json!({"defaultRedirectUrl": "https://example.com/recall", "tags": ["recall"]});
    let path = format!("/redirections?ids={}", ids.join(","));
    ensure!(api.put(&path, body).await?.status == 204);
    for (id, title) in ids.iter().zip(["Summer, posters", "two"]) {
        let found = api.get(&format!("/redirections/{id}")).await?.json();
        ensure!(found["title"] == title && found["tags"] == json!(["recall"]), "{found}");
    }
    Ok(())
}

async fn a_change_that_says_nothing_of_them_keeps_them(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    let id = make(&api, &api.key, json!([link(&product, &said())])).await?.remove(0);
    let path = format!("/redirections/{id}");
    for body in [
        json!({"defaultRedirectUrl": "https://example.com/2"}),
        json!({"defaultRedirectUrl": "https://example.com/3", "title": null, "tags": null, "customFields": null}),
    ] {
        let changed = api.put(&path, body).await?.json();
        ensure!(has(&changed, &said()), "{changed}");
    }
    let empty = json!({"title": "", "tags": [], "notes": "", "customFields": {}});
    let mut body = empty.clone();
    body["defaultRedirectUrl"] = json!("https://example.com/4");
    api.put(&path, body).await?;
    ensure!(has(&api.get(&path).await?.json(), &empty));
    Ok(())
}

async fn who_wrote_a_link_is_shown_to_who_reads_the_account(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let app = api.application(json!({"name": "a"})).await?;
    let (project, trusted) = (&*app.project, &*app.secret);
    let scopes = json!({"users": [], "projects": [project]});
    let product = api.create("/products", json!({"name": "p", "scopes": scopes})).await?["id"].clone();
    let product = product.as_str().context("id")?;
    let link = link(product, &json!({"scopes": scopes, "title": "t"}));
    let short_id = make(&api, trusted, json!([link.clone()])).await?.remove(0);
    let path = format!("/redirections/{short_id}");
    let seen = api.get(&path).await?.json();
    let by_app = json!({"actorType": "trustedApp", "actor": app.id});
    ensure!(seen["createdBy"] == by_app && seen["updatedBy"] == by_app, "{seen}");
    let change = json!({"defaultRedirectUrl": "https://example.com/2", "scopes": scopes});
    let changed = api.put(&path, change.clone()).await?.json();
    ensure!(changed["createdBy"] == by_app && changed["updatedBy"]["actorType"] == "operator", "{changed}");
    // The secret key of an application reads the link, and not who wrote it; its public key reads no links.
    let answer = api.call_as(trusted, Method::GET, &path, None).await?;
    let hidden = answer.json();
    ensure!(answer.status == 200 && hidden["title"] == "t", "{hidden}");
    ensure!(hidden.get("createdBy").is_none() && hidden.get("updatedBy").is_none(), "{hidden}");
    ensure!(api.call_as(&app.public, Method::GET, &path, None).await?.status == 403);
    let changed = api.call_as(trusted, Method::PUT, &path, Some(change)).await?.json();
    ensure!(changed["title"] == "t" && changed.get("updatedBy").is_none(), "{changed}");
    let listed = api.call_as(trusted, Method::GET, "/redirections", None).await?.json();
    ensure!(listed[0]["title"] == "t" && listed[0].get("createdBy").is_none(), "{listed}");
    Ok(())
}

async fn lists_take_words_and_conditions(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let (p, q) = (product(&api).await?, product(&api).await?);
    let project = api.create("/projects", json!({"name": "p"})).await?["id"].clone();
    let scopes = json!({"users": [], "projects": [project]});
    make(
        &api,
        &api.key,
        json!([
            link(&p, &json!({"shortId": "one", "title": "Summer Sale", "tags": ["a"]})),
            link(&p, &json!({"shortId": "two", "title": "Summer", "scopes": scopes})),
            link(&q, &json!({"shortId": "three", "tags": ["a"], "customFields": {"n": 3}})),
        ]),
    )
    .await?;
    let project = project.as_str().context("id")?;
    for (query, expected) in [
        ("q=summer".to_owned(), "two one"),
        ("q=sale%20SUMMER".to_owned(), "one"),
        ("q=summer&filter=tags%3Da".to_owned(), "one"),
        ("filter=tags%3Da".to_owned(), "three one"),
        ("filter=tags%3Da&sortOrder=ASCENDING".to_owned(), "one three"),
        ("filter=customFields.n%3E2".to_owned(), "three"),
        (format!("product={p}"), "two one"),
        (format!("product={p}&q=sale"), "one"),
        (format!("platformId={q}"), "three"),
        (format!("platformId={q}&q=summer"), ""),
        (format!("project={project}"), "two"),
        (format!("project={project}&q=sale"), ""),
        (format!("project={p}"), ""),
    ] {
        let answer = api.get(&format!("/redirections?{query}")).await?;
        ensure!(answer.status == 200, "{query}: {answer:?}");
        let found: Vec<Value> = answer.json().as_array().context("an array")?.clone();
        let found: Vec<&str> = found.iter().filter_map(|one| one["shortId"].as_str()).collect();
        ensure!(found.join(" ") == expected, "{query}: {found:?}");
    }
    // The next page is of the same query.
    let first = api.get("/redirections?q=summer&perPage=1").await?;
    let next = first.header("link").context("a next page")?;
    ensure!(next.contains("q%3Dsummer"), "{next}");
    Ok(())
}

async fn wrong_parameters_are_refused(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    for (query, fault) in [
        ("q=", "q must hold a letter or a digit."),
        ("q=%21%2C", "q must hold a letter or a digit."),
        ("product=x", "product:"),
        ("project=x", "project must be the id of a project."),
        ("filter=color%3Dred", "is not one of the fields createdAt, updatedAt, title"),
        ("filter=words%3Da", "is not one of the fields"),
        ("filter=scopes.projects%3Da", "is not one of the fields"),
        ("filter=product%3Dx", "product is compared with an id"),
    ] {
        let answer = api.get(&format!("/redirections?{query}")).await?;
        let body = answer.json();
        let said = body["errors"][0].as_str().unwrap_or_default();
        ensure!(answer.status == 400 && said.contains(fault), "{query}: {body}");
    }
    Ok(())
}

async fn the_audit_trail_and_events_have_them(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    let id = make(&api, &api.key, json!([link(&product, &said())])).await?.remove(0);
    let body = json!({"defaultRedirectUrl": "https://example.com/", "title": "Other"});
    api.put(&format!("/redirections/{id}"), body).await?;
    let trail = api.get("/audit?filter=resource%3Dredirection").await?.json();
    ensure!(trail[0]["before"] == json!({"title": "Summer, posters"}), "{trail}");
    ensure!(trail[0]["after"] == json!({"title": "Other"}), "{trail}");
    ensure!(has(&trail[1]["after"], &said()), "{trail}");
    let bodies: Vec<String> = api
        .fingerprint()
        .await?
        .into_iter()
        .filter(|(table, _)| table.starts_with("event"))
        .flat_map(|(_, rows)| rows)
        .collect();
    let of_links = bodies.iter().filter(|row| row.contains("shortId") || row.contains("short_id"));
    let text = of_links.cloned().collect::<String>();
    ensure!(text.contains("Summer, posters") && text.contains("Other"), "{bodies:?}");
    Ok(())
}
