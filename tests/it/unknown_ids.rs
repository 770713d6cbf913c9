//! Requests for ids that do not exist, from a real edge to the list of an account.

use anyhow::{Result, ensure};
use reqwest::StatusCode;
use serde_json::Value;
use tests::{
    db::Engine,
    kills::until,
    product::{Options, Product},
};

/// Asks until the edge has reported so many requests.
async fn reported(product: &Product, requests: i64) -> Result<Value> {
    let body = until(product, "/scans/unknown", |body| body["requests"].as_i64() >= Some(requests)).await?;
    ensure!(body["requests"] == requests, "{body}");
    Ok(body)
}

async fn unknown_ids_are_counted_from_the_edge_to_the_list(engine: Engine) -> Result<()> {
    let product = Product::start(Options { engine, ..Options::default() }).await?;
    let of = product.create_product().await?;
    product.create_redirection(&of, "https://example.com/", Some("KNOWN")).await?;
    ensure!(product.scan("KNOWN").await?.0 == StatusCode::TEMPORARY_REDIRECT);
    for short_id in ["NONE", "NONE", "OTHER"] {
        ensure!(product.scan(short_id).await?.0 == StatusCode::NOT_FOUND, "{short_id}");
    }
    let body = reported(&product, 3).await?;
    let rows = body["rows"].as_array().cloned().unwrap_or_default();
    ensure!(rows.len() == 1 && rows[0]["network"] == "127.0.0.0/24" && rows[0]["requests"] == 3, "{body}");
    ensure!(product.edge.contains(rows[0]["domain"].as_str().unwrap_or("?")), "{body}");
    // The next report adds to it, and none comes twice.
    product.scan("MORE").await?;
    reported(&product, 4).await?;
    Ok(())
}

crate::on_both_engines!(unknown_ids_are_counted_from_the_edge_to_the_list);
