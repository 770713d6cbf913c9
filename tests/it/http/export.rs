//! `GET /actions/all/export`: every action once, in order, from any position, and none of other accounts.

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use serde_json::{Value, json};
use tests::db::Engine;

use super::{
    Api, Application,
    jobs::{all, check, list, submit, thng, work},
};

/// The lines of an export.
async fn export(api: &Api, key: &str, uri: &str) -> Result<Vec<Value>> {
    let answer = api.call_as(key, Method::GET, uri, None).await?;
    ensure!(answer.status == 200, "{uri}: {answer:?}");
    ensure!(answer.header("content-type") == Some("application/x-ndjson"), "{answer:?}");
    let text = String::from_utf8(answer.bytes)?;
    ensure!(text.is_empty() || text.ends_with('\n'), "whole lines");
    Ok(text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
}

fn id_of(action: &Value) -> &str {
    action["id"].as_str().unwrap_or_default()
}

/// All that lists show, oldest first; a part of it by times, by type, and from each line on.
pub(super) async fn an_export_equals_the_lists(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let _work = work(&api);
    ensure!(export(&api, &api.key, "/actions/all/export").await?.is_empty());
    let id = thng(&api, json!({"name": "t"})).await?;
    api.create("/actions/shares", json!({"thng": id, "tags": ["ä"], "context": {"city": "Bern"}})).await?;
    let job = submit(&api, list("PLATFORM_IDS", &[id.as_str(); 1_203])).await?;
    check(&api, &job, "COMPLETED", 1_203, 0).await?;
    api.create("/actions/checkins", json!({})).await?;
    let theirs =
        api.call_as(&api.other_key, Method::POST, "/actions/scans", Some(json!({}))).await?.must_be(201)?;

    let mut listed = all(&api, "/actions/all").await?;
    listed.reverse();
    let lines = export(&api, &api.key, "/v2/actions/all/export").await?;
    ensure!(lines.len() == 1_205 && listed.len() == 1_205, "{} and {}", lines.len(), listed.len());
    for (line, listed) in lines.iter().zip(&listed) {
        let mut line = line.clone();
        line.as_object_mut().context("object")?.remove("context");
        ensure!(line == *listed, "{line} and {listed}");
    }
    ensure!(lines.iter().any(|line| line["context"].is_object()), "with what places and devices tell");

    // From any line on, the rest and nothing twice.
    for cut in [0, 1, 499, 500, 501, 1_000, 1_203, 1_204] {
        let rest =
            export(&api, &api.key, &format!("/actions/all/export?after={}", id_of(&lines[cut]))).await?;
        ensure!(rest == lines[cut + 1..], "behind {cut}: {}", rest.len());
    }
    // Times are half-open, so that parts meet.
    let created = |n: usize| lines[n]["createdAt"].as_i64().context("createdAt");
    for (from, to) in [(0, 1), (0, 1_204), (1, 700), (600, 1_204)] {
        let (from, to) = (created(from)?, created(to)?);
        let part = export(&api, &api.key, &format!("/actions/all/export?from={from}&to={to}")).await?;
        let is_in = |line: &&Value| (from..to).contains(&line["createdAt"].as_i64().unwrap_or_default());
        ensure!(part.iter().eq(lines.iter().filter(is_in)), "{from} to {to}: {}", part.len());
    }
    let last = created(1_204)?;
    ensure!(export(&api, &api.key, &format!("/actions/all/export?from={last}")).await?.len() == 1);
    let shares = export(&api, &api.key, "/actions/shares/export").await?;
    ensure!(shares.len() == 1 && shares[0] == lines[0], "{shares:?}");
    let foreign = export(&api, &api.other_key, "/actions/all/export").await?;
    ensure!(foreign.len() == 1 && foreign[0]["id"] == theirs.json()["id"], "{foreign:?}");
    // Neither does another account's action tell where to go on.
    let uri = format!("/actions/all/export?after={}", id_of(&lines[3]));
    api.call_as(&api.other_key, Method::GET, &uri, None).await?.problem(409, 40901);
    Ok(())
}

/// A project's key, and `project=`, give what is scoped to the project.
pub(super) async fn an_export_is_confined_to_its_project(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let Application { project, public, secret, .. } = api.application(json!({"name": "a"})).await?;
    api.create("/actions/scans", json!({})).await?;
    let inside = api.create(&format!("/actions/scans?project={project}"), json!({})).await?;
    for (key, uri) in [
        (&secret, "/actions/all/export".to_owned()),
        (&secret, "/actions/scans/export".to_owned()),
        (&api.key, format!("/actions/all/export?project={project}")),
    ] {
        let lines = export(&api, key, &uri).await?;
        ensure!(lines.len() == 1 && lines[0]["id"] == inside["id"], "{uri}: {lines:?}");
    }
    ensure!(export(&api, &api.key, "/actions/all/export").await?.len() == 2);
    api.call_as(&public, Method::GET, "/actions/all/export", None).await?.problem(403, 40301);
    for wrong in ["from=x", "to=1.5", "from=99999999999999999", "after=x", "project=x", "to="] {
        let uri = format!("/actions/all/export?{wrong}");
        let errors = api.get(&uri).await?.problem(400, 40003);
        let name = wrong.split('=').next().context("name")?;
        ensure!(errors.iter().all(|error| error.starts_with(name)), "{wrong}: {errors:?}");
    }
    api.get("/actions/_unknown/export").await?.problem(404, 40401);
    Ok(())
}

crate::on_both_engines!(an_export_equals_the_lists, an_export_is_confined_to_its_project);
