//! Pages where a code leads nowhere over the real product, on both engines.

use anyhow::{Context, Result, ensure};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tests::{
    db::Engine,
    product::{Options, PHONE, Product},
};

crate::on_both_engines!(a_change_of_pages_shows_with_its_acknowledgement);

async fn get(product: &Product, path: &str, accept: &str) -> Result<reqwest::Response> {
    let request = product.http.get(format!("{}{path}", product.edge)).header("accept", accept);
    Ok(request
        .header("accept-language", "de-CH,de;q=0.9,en;q=0.5")
        .header("user-agent", PHONE)
        .send()
        .await?)
}

async fn a_change_of_pages_shows_with_its_acknowledgement(engine: Engine) -> Result<()> {
    let mut product = Product::start(Options { engine, ..Options::default() }).await?;
    let (_, access) = product.call(Method::GET, "/access", None).await?;
    let account = access["account"].as_str().with_context(|| access.to_string())?.to_owned();
    let path = format!("/accounts/{account}/pages?wait=edges&timeout=20s");
    for name in ["Acme", "Other"] {
        let body = json!({"name": name, "texts": {"de": {"root": {"title": name, "text": "Hallo"}}}});
        let (status, answer) = product.call(Method::PUT, &path, Some(body)).await?;
        ensure!(status == StatusCode::OK && answer["acked"] == answer["members"], "{status}: {answer}");
        for (path, title) in [("/NONE", "Dieser Code führt nirgendwohin"), ("/", name)] {
            let page = get(&product, path, "text/html").await?;
            ensure!(page.status() == StatusCode::NOT_FOUND, "{}", page.status());
            let text = page.text().await?;
            ensure!(text.contains("<html lang=\"de\">"), "{text}");
            ensure!(text.contains(&format!("<h1>{title}</h1>")), "{text}");
            ensure!(text.contains(&format!("<p class=\"n\">{name}</p>")), "{text}");
        }
    }
    let json: Value = get(&product, "/NONE", "application/json").await?.json().await?;
    ensure!(json["code"] == 40403 && json.as_object().is_some_and(|of| of.len() == 4), "{json}");
    // An edge that begins is told them at once.
    product.stop()?;
    product.start_again()?;
    let text = get(&product, "/", "text/html").await?.text().await?;
    ensure!(text.contains("<h1>Other</h1>"), "{text}");
    product.must_answer(200, Method::PUT, &path, Some(json!({}))).await?;
    let text = get(&product, "/", "text/html").await?.text().await?;
    ensure!(text.contains("<h1>Hier ist nichts</h1>"), "{text}");
    Ok(())
}
