//! `ETag` and `If-Match` of redirections: nobody writes over what they have not seen.

use anyhow::{Context, Result, ensure};
use axum::{
    body::Body,
    http::{Method, Request, header},
};
use serde_json::{Value, json};
use tests::db::Engine;

use super::{Answer, Api};

/// Makes a link of a new product; gives the ids of both.
async fn link(api: &Api) -> Result<(String, String)> {
    let product = api.create("/products", json!({"name": "p"})).await?["id"].clone();
    let link = json!({"platformId": product, "defaultRedirectUrl": "https://example.com/"});
    let request = Request::post("/redirections")
        .header(header::AUTHORIZATION, &api.key)
        .header(header::ACCEPT, "application/json")
        .header(header::CONTENT_TYPE, "application/json");
    let made = api.send(request.body(Body::from(link.to_string()))?).await?.json();
    let id = |value: &Value| value.as_str().map(str::to_owned).context("id");
    Ok((id(&product)?, id(&made["shortId"])?))
}

/// Sends a request on condition of a tag.
pub(super) async fn ask_if(api: &Api, method: Method, uri: &str, tag: &str, body: Value) -> Result<Answer> {
    let request = Request::builder()
        .method(method)
        .uri(uri)
        .header(header::AUTHORIZATION, &api.key)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::IF_MATCH, tag);
    let body = if body.is_null() { Body::empty() } else { Body::from(body.to_string()) };
    api.send(request.body(body)?).await
}

pub(super) fn tag_of(answer: &Answer) -> Result<String> {
    Ok(answer.headers.get(header::ETAG).context("no ETag")?.to_str()?.to_owned())
}

async fn a_change_is_refused_that_has_not_seen_the_last_one(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let (product, short_id) = link(&api).await?;
    let path = format!("/redirections/{short_id}");
    for path in [path.clone(), format!("/products/{product}/redirector")] {
        let to = |target: &str| json!({"defaultRedirectUrl": format!("https://example.com/{target}")});
        let seen = tag_of(&api.get(&path).await?)?;
        let first = ask_if(&api, Method::PUT, &path, &seen, to("first")).await?;
        ensure!(first.status == 200 && tag_of(&first)? != seen, "{first:?}");
        let before = api.fingerprint().await?;
        for (method, body) in [(Method::PUT, to("second")), (Method::DELETE, Value::Null)] {
            let refused = ask_if(&api, method, &path, &seen, body).await?;
            ensure!(refused.status == 412 && refused.json()["code"] == 41201, "{refused:?}");
            ensure!(!refused.headers.contains_key(header::ETAG), "{refused:?}");
        }
        // A weak tag never matches (strong comparison), and neither does one that is no revision.
        for tag in [format!("W/{}", tag_of(&first)?), "\"abc\"".to_owned(), "\"\"".to_owned()] {
            ensure!(ask_if(&api, Method::PUT, &path, &tag, to("second")).await?.status == 412, "{tag}");
        }
        for tag in ["abc", "", "\"1", "1, 2"] {
            let refused = ask_if(&api, Method::PUT, &path, tag, to("second")).await?;
            ensure!(refused.status == 400 && refused.json()["code"] == 40001, "{tag}: {refused:?}");
        }
        ensure!(api.fingerprint().await? == before, "what is refused changes nothing");
        let either = format!("{seen}, {}", tag_of(&first)?);
        ensure!(ask_if(&api, Method::PUT, &path, &either, to("third")).await?.status == 200);
        ensure!(ask_if(&api, Method::PUT, &path, "*", to("fourth")).await?.status == 200);
        ensure!(api.put(&path, to("fifth")).await?.status == 200, "none is needed");
        ensure!(api.get(&path).await?.json()["defaultRedirectUrl"] == "https://example.com/fifth");
    }
    let seen = tag_of(&api.get(&path).await?)?;
    ensure!(ask_if(&api, Method::DELETE, &path, &seen, Value::Null).await?.status == 200);
    ensure!(ask_if(&api, Method::DELETE, &path, &seen, Value::Null).await?.status == 404);
    Ok(())
}

async fn several_redirections_take_no_condition(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let path = format!("/redirections?ids={}", link(&api).await?.1);
    let body = json!({"defaultRedirectUrl": "https://example.com/b"});
    for (method, body) in [(Method::PUT, body), (Method::DELETE, Value::Null)] {
        let refused = ask_if(&api, method, &path, "\"1\"", body).await?;
        ensure!(refused.status == 400 && refused.json()["code"] == 40001, "{refused:?}");
    }
    Ok(())
}

crate::on_both_engines!(
    a_change_is_refused_that_has_not_seen_the_last_one,
    several_redirections_take_no_condition,
);
