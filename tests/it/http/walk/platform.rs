//! Every write of the platform's routes leaves an entry: in the trail of the account that it concerns, or in that of the
//! platform.

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use serde_json::json;
use tests::db::Engine;

use super::{super::Api, Fixture, audit::PLATFORM, operations};

pub(in super::super) async fn every_write_of_the_platform_is_noted(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let fixture = Fixture::new(&api).await?;
    let mut writes = operations()?;
    writes.retain(|(method, path)| *method != Method::GET && path.starts_with(PLATFORM));
    ensure!(writes.len() >= 8, "{writes:?}");
    // What is removed was set before; the account is not suspended at the end.
    writes.sort_by_key(|(method, path)| (*method == Method::DELETE, path.clone()));
    let mut asked = Vec::new();
    for (method, path) in &writes {
        let uri = path
            .replace("{id}", api.made.account.as_str())
            .replace("{domain}", "tn.gg")
            .replace("{shortId}", &fixture.ids["redirections"])
            .replace("{host}", "evil.example");
        let body = if path.ends_with("/quotas") { json!({"things": 50}) } else { json!({"reason": "walk"}) };
        let body = (*method != Method::DELETE).then_some(body);
        let answer = api.call_as(&api.platform_key, method.clone(), &uri, body).await?;
        ensure!(answer.status.is_success(), "{method} {uri}: {answer:?}");
        let request = answer.header("x-request-id").context("X-Request-Id")?.to_owned();
        asked.push((format!("{method} {path}"), request));
    }
    let mut wrong = Vec::new();
    for (name, request) in asked {
        let mut entries = Vec::new();
        for trail in ["/audit", "/platform/audit"] {
            let uri = format!("{trail}?filter=requestId={request}");
            let answer = api.call_as(api.key_for(&uri), Method::GET, &uri, None).await?.must_be(200)?;
            entries.extend(answer.json().as_array().context("entries")?.clone());
        }
        let is_noted = entries.iter().any(|entry| {
            entry["operation"] == *name
                && entry["actorType"] == "platform"
                && entry["key"].as_str().is_some_and(|id| id.len() == 24)
                && (entry.get("before").is_some() || entry.get("after").is_some())
        });
        if !is_noted {
            wrong.push(format!("{name}: {entries:?}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    Ok(())
}

crate::on_both_engines!(every_write_of_the_platform_is_noted);
