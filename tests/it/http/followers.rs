//! Behaviour that webhooks and reactions share.

use anyhow::{Result, ensure};
use axum::http::StatusCode;
use serde_json::json;
use tests::db::Engine;

use super::Api;

/// However many are made at once, an account has no more of a kind than it may.
async fn the_limit_holds_for_concurrent_creates(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let effect = json!({"type": "property", "key": "a", "value": 1});
    for (path, most, body) in [
        ("/webhooks", 100, json!({"name": "w", "url": "https://example.com/", "status": "disabled"})),
        ("/reactions", 100, json!({"name": "r", "effect": effect, "status": "disabled"})),
    ] {
        for _ in 0..most - 3 {
            api.create(path, body.clone()).await?;
        }
        let all = (0..16).map(|_| api.post(path, body.clone()));
        let answers = futures_util::future::try_join_all(all).await?;
        let made = answers.iter().filter(|answer| answer.status == StatusCode::CREATED).count();
        let refused = answers.iter().filter(|answer| answer.status == StatusCode::CONFLICT).count();
        ensure!((made, refused) == (3, 13), "{path}: {made} were made, {refused} refused");
        let listed = api.get(&format!("{path}?perPage=100&filter=status%3Ddisabled")).await?.json();
        ensure!(listed.as_array().map(Vec::len) == Some(most), "{path}");
    }
    Ok(())
}

crate::on_both_engines!(the_limit_holds_for_concurrent_creates);
