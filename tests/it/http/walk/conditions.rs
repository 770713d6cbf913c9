//! `If-Match` over the route table: every resource that can be read and changed under one path has an `ETag`, and a change
//! on condition of another one changes nothing.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use axum::http::{Method, header};
use serde_json::json;
use tests::db::Engine;

use super::{
    super::{
        Api,
        etags::{ask_if, tag_of},
    },
    Fixture,
    audit::{fresh, prepared},
    operations, text,
};

/// Paths of which no `ETag` is given, by why.
const WITHOUT: &[(&str, &[&str])] = &[
    (
        "it is for several at once",
        &[
            "/batches",
            "/collections",
            "/files",
            "/places",
            "/products",
            "/projects",
            "/projects/{project}/applications",
            "/reactions",
            "/redirections",
            "/thngs",
            "/webhooks",
        ],
    ),
    (
        "it is a history, to which a change adds",
        &[
            "/products/{id}/properties",
            "/products/{id}/properties/{key}",
            "/thngs/{id}/properties",
            "/thngs/{id}/properties/{key}",
            "/thngs/{id}/location",
        ],
    ),
    (
        "what is read is something else: members, actions or the content of a file",
        &[
            "/collections/{id}/collections",
            "/collections/{id}/thngs",
            "/actions/{type}",
            "/files/{id}/content",
        ],
    ),
    (
        "it is only removed",
        &[
            "/actions/{type}/{action}",
            "/collections/{id}/actions/{type}/{action}",
            "/products/{id}/actions/{type}/{action}",
            "/thngs/{id}/actions/{type}/{action}",
            "/auth/evrythng/thngs/{id}",
            "/jobs/actions/{id}",
            "/jobs/qr/{id}",
        ],
    ),
    ("the body names the version", &["/authentication/cases/{id}", "/authentication/settings"]),
    (
        "whoever runs the service has a trail of its own",
        &[
            "/platform/accounts/{id}/quotas",
            "/platform/quotas",
            "/platform/takedowns/hosts/{host}",
            "/platform/takedowns/links/{domain}/{shortId}",
        ],
    ),
];

/// The changes of what can be read under the same path.
fn changes() -> Result<Vec<(Method, String)>> {
    let all = operations()?;
    let read: BTreeSet<String> =
        all.iter().filter(|(method, _)| *method == Method::GET).map(|(_, path)| path.clone()).collect();
    let is_change = |method: &Method| [Method::PUT, Method::PATCH, Method::DELETE].contains(method);
    Ok(all.into_iter().filter(|(method, path)| is_change(method) && read.contains(path)).collect())
}

fn is_without(path: &str) -> bool {
    WITHOUT.iter().any(|(_, paths)| paths.contains(&path))
}

async fn a_wrong_tag_changes_nothing_and_the_right_one_works(engine: Engine) -> Result<()> {
    let (mut api, mut fixture) = fresh(engine).await?;
    let mut all = changes()?;
    all.retain(|(_, path)| !is_without(path));
    anyhow::ensure!(all.len() > 30, "{all:?}");
    // What is removed last is there for most of the others.
    all.sort_by_key(|(method, path)| (*method == Method::DELETE, std::cmp::Reverse(path.split('/').count())));
    let mut wrong = Vec::new();
    for (method, path) in &all {
        let name = format!("{method} {path}");
        let checked = match check(&api, &fixture, method, path).await {
            // An earlier one may have removed what this one needs.
            Ok(None) => None,
            Ok(Some(_)) | Err(_) => {
                (api, fixture) = fresh(engine).await?;
                check(&api, &fixture, method, path).await.with_context(|| name.clone())?
            }
        };
        wrong.extend(checked.map(|fault| format!("{name}: {fault}")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}

/// What is wrong with a change, if something is.
async fn check(api: &Api, fixture: &Fixture, method: &Method, path: &str) -> Result<Option<String>> {
    let (uri, body) = prepared(api, fixture, method, path).await?;
    let body = body.unwrap_or_default();
    let read = api.get(&uri).await?;
    let Ok(tag) = tag_of(&read) else { return Ok(Some(format!("GET {} without an ETag", read.status))) };
    let before = api.fingerprint().await?;
    // No revision and no hash of anything here; a small number is the revision of the first link.
    let refused = ask_if(api, method.clone(), &uri, "\"999999999\"", body.clone()).await?;
    if refused.status != 412 || refused.json()["code"] != 41201 {
        return Ok(Some(format!("{} for a wrong tag", refused.status)));
    }
    if api.fingerprint().await? != before {
        return Ok(Some("something changed".to_owned()));
    }
    if tag_of(&api.get(&uri).await?)? != tag {
        return Ok(Some("another tag of the same state".to_owned()));
    }
    let done = ask_if(api, method.clone(), &uri, &tag, body.clone()).await?;
    if !done.status.is_success() {
        return Ok(Some(format!("{} for the right tag", done.status)));
    }
    if *method == Method::PUT && ask_if(api, method.clone(), &uri, &tag, body).await?.status != 412 {
        return Ok(Some("the tag from before the change works again".to_owned()));
    }
    Ok(None)
}

async fn a_condition_that_nobody_looks_at_is_refused(engine: Engine) -> Result<()> {
    let (api, fixture) = fresh(engine).await?;
    let known: BTreeSet<String> = changes()?.into_iter().map(|(_, path)| path).collect();
    for path in WITHOUT.iter().flat_map(|(_, paths)| *paths) {
        anyhow::ensure!(known.contains(*path), "{path} is no such path");
    }
    let before = api.fingerprint().await?;
    for (method, path) in changes()?.iter().filter(|(_, path)| is_without(path)) {
        let uri = fixture.uri(path, true)?;
        let answer = ask_if(&api, method.clone(), &uri, "\"1\"", json!({"name": "x"})).await?;
        anyhow::ensure!(answer.status == 400, "{method} {path}: {answer:?}");
        anyhow::ensure!(
            answer.json()["errors"] == json!(["This operation does not look at If-Match: leave it out."]),
            "{method} {path}: {answer:?}"
        );
    }
    let make = |tag: &'static str| ask_if(&api, Method::POST, "/products", tag, json!({"name": "x"}));
    make("\"1\"").await?.problem(400, 40001);
    make("1").await?.problem(400, 40001);
    anyhow::ensure!(api.fingerprint().await? == before, "what is refused changes nothing");
    // Any state will do: there is nothing to look at.
    let made = make("*").await?;
    anyhow::ensure!(made.status == 201, "{made:?}");
    Ok(())
}

async fn of_two_at_once_one_wins(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    for (kind, body) in [
        ("places", json!({"name": "x", "latitude": 1, "longitude": 2})),
        ("products", json!({"name": "x"})),
        ("thngs", json!({"name": "x"})),
        ("roles", json!({"name": "x"})),
        ("projects", json!({"name": "x"})),
    ] {
        let uri = format!("/{kind}/{}", text(&api.create(&format!("/{kind}"), body).await?, "id")?);
        let tag = tag_of(&api.get(&uri).await?)?;
        let put = |name: &'static str| ask_if(&api, Method::PUT, &uri, &tag, json!({"name": name}));
        let (one, two) = tokio::join!(put("one"), put("two"));
        let mut statuses = [one?.status.as_u16(), two?.status.as_u16()];
        statuses.sort_unstable();
        anyhow::ensure!(statuses == [200, 412], "{kind}: {statuses:?}");
    }
    // Rules go through another writer.
    let tag = tag_of(&api.get("/redirector").await?)?;
    let put = |rule: &'static str| {
        ask_if(&api, Method::PUT, "/redirector", &tag, json!({"rules": [{"match": rule}]}))
    };
    let (one, two) = tokio::join!(put("country=DE"), put("country=FR"));
    let mut statuses = [one?.status.as_u16(), two?.status.as_u16()];
    statuses.sort_unstable();
    anyhow::ensure!(statuses == [200, 412], "rules: {statuses:?}");
    let read = api.get("/redirector").await?;
    anyhow::ensure!(read.headers.contains_key(header::ETAG) && tag_of(&read)? != tag, "{read:?}");
    Ok(())
}

crate::on_both_engines!(
    a_wrong_tag_changes_nothing_and_the_right_one_works,
    a_condition_that_nobody_looks_at_is_refused,
    of_two_at_once_one_wins,
);
