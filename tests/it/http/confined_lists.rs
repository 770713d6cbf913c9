//! Lists by ids, conditions, words and references: none reaches beyond the project of an operator.

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use serde_json::{Value, json};
use tests::{db::Engine, json::text};

use super::{
    Api,
    operators::{machine, project},
};

/// One of everything in a project; gives lists that name each of it.
async fn fill(api: &Api, project: &str) -> Result<Vec<String>> {
    let create = async |kind: &str, more: Value| -> Result<String> {
        let mut body = json!({"name": "hidden", "tags": ["hidden"], "identifiers": {"k": "hidden"}});
        body.as_object_mut().context("object")?.extend(more.as_object().context("object")?.clone());
        text(&api.create(&format!("/{kind}?project={project}"), body).await?, "id")
    };
    let product = create("products", json!({})).await?;
    let collection = create("collections", json!({})).await?;
    let thng = create("thngs", json!({"product": product})).await?;
    let place = create("places", json!({"latitude": 1, "longitude": 2})).await?;
    let action = json!({"thng": thng, "tags": ["hidden"]});
    api.create(&format!("/actions/scans?project={project}"), action).await?;
    let link = json!([{"platformId": thng, "defaultRedirectUrl": "https://example.com/", "shortId": "HIDDEN",
        "title": "hidden", "tags": ["hidden"]}]);
    let made = api.post(&format!("/redirections?project={project}"), link).await?;
    ensure!(made.json()[0]["status"] == 201, "{made:?}");
    let mut lists: Vec<String> =
        [("products", &product), ("collections", &collection), ("thngs", &thng), ("places", &place)]
            .into_iter()
            .map(|(kind, id)| format!("/{kind}?ids={id}"))
            .collect();
    lists.extend(
        [
            "/products?filter=name%3Dhidden",
            "/products?filter=tags%3Dhidden",
            "/products?filter=identifiers.k%3Dhidden",
            "/thngs?filter=name~hid",
            "/thngs?filter=createdAt%3E0",
            "/places?lat=1&lon=2&maxDist=10",
            "/places?filter=tags%3Dhidden",
            "/actions/all?filter=tags%3Dhidden",
            "/actions/scans?filter=timestamp%3E0",
            "/redirections?q=hidden",
            "/redirections?filter=shortId%3DHIDDEN",
            "/redirections?filter=tags%3Dhidden",
        ]
        .map(str::to_owned),
    );
    lists.extend([
        format!("/thngs?filter=product%3D{product}"),
        format!("/actions/all?filter=thng%3D{thng}"),
        format!("/redirections?platformId={thng}"),
        format!("/redirections?product={product}"),
        format!("/redirections?filter=product%3D{product}"),
        format!("/redirections?project={project}"),
        format!("/thngs?project={project}"),
    ]);
    Ok(lists)
}

/// How many items a list has; `None` where it is refused.
async fn count(api: &Api, key: &str, uri: &str) -> Result<Option<usize>> {
    let answer = api.call_as(key, Method::GET, uri, None).await?;
    if answer.status != 200 {
        ensure!(answer.status.is_client_error(), "{uri}: {answer:?}");
        return Ok(None);
    }
    Ok(Some(answer.json().as_array().with_context(|| format!("{uri}: no list"))?.len()))
}

async fn no_list_reaches_beyond_the_project_of_an_operator(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let (own, other) = (project(&api).await?, project(&api).await?);
    let lists = fill(&api, &other).await?;
    let conditions = |project: &str| json!({"conditions": [format!("project={project}")]});
    let (_, stranger) = machine(&api, "editor", conditions(&own)).await?;
    let (_, insider) = machine(&api, "editor", conditions(&other)).await?;
    let mut wrong = Vec::new();
    for uri in &lists {
        let inside = count(&api, &insider, uri).await?;
        let outside = count(&api, &stranger, uri).await?;
        if inside != Some(1) || outside.is_some_and(|count| count > 0) {
            wrong.push(format!("{uri}: {inside:?} inside, {outside:?} outside"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // Nor do names lead there.
    for path in [
        "/products/k:hidden",
        "/products/k:hidden/properties",
        "/products/k:hidden/redirector",
        "/products/k:hidden/actions/all",
        "/thngs/k:hidden",
        "/thngs/k:hidden/location",
        "/thngs/k:hidden/properties/temp",
        "/thngs/k:hidden/redirector/qr",
        "/collections/k:hidden/thngs",
        "/places/k:hidden",
        "/redirections/HIDDEN",
    ] {
        let answer = api.call_as(&stranger, Method::GET, path, None).await?;
        ensure!(answer.status == 404, "{path}: {answer:?}");
    }
    Ok(())
}

crate::on_both_engines!(no_list_reaches_beyond_the_project_of_an_operator);
