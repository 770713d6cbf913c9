//! A link that was changed, deleted and restored, over the real product on both engines.

use anyhow::{Context, Result, ensure};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tests::{
    db::Engine,
    product::{Options, Product},
};

crate::on_both_engines!(edges_follow_what_is_restored);

async fn write(product: &Product, method: Method, path: &str, body: Option<Value>) -> Result<()> {
    let path = format!("{path}?wait=edges&timeout=20s");
    let (status, done) = product.call(method, &path, body).await?;
    ensure!(status == StatusCode::OK && done["acked"] == done["members"], "{status}: {done}");
    Ok(())
}

async fn leads_to(product: &Product, target: Option<&str>) -> Result<()> {
    let (status, location) = product.scan("SHOE").await?;
    let expected = if target.is_some() { StatusCode::TEMPORARY_REDIRECT } else { StatusCode::NOT_FOUND };
    ensure!(status == expected && location.as_deref() == target, "{status}: {location:?}");
    Ok(())
}

async fn edges_follow_what_is_restored(engine: Engine) -> Result<()> {
    let product = Product::start(Options { engine, ..Options::default() }).await?;
    let (old, new) = ("https://example.com/old", "https://example.com/new");
    product.create_redirection(&product.create_product().await?, old, Some("SHOE")).await?;
    leads_to(&product, Some(old)).await?;
    let link = "/redirections/SHOE";
    write(&product, Method::PUT, link, Some(json!({"defaultRedirectUrl": new}))).await?;
    leads_to(&product, Some(new)).await?;
    let changes = product.must_answer(200, Method::GET, &format!("{link}/history"), None).await?;
    let changes = changes.as_array().context("changes")?;
    let [last, first] = changes.as_slice() else { anyhow::bail!("{changes:?}") };
    let body = |change: &Value| Some(json!({"version": change["version"]}));
    let restore = format!("{link}/restore");
    write(&product, Method::POST, &restore, body(first)).await?;
    leads_to(&product, Some(old)).await?;
    // The edges know it as deleted, and learn otherwise.
    write(&product, Method::DELETE, link, None).await?;
    leads_to(&product, None).await?;
    write(&product, Method::POST, &restore, body(last)).await?;
    leads_to(&product, Some(new)).await
}
