//! Retention of finished jobs: they are kept for a time, then deleted with their logs.

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use serde_json::{Value, json};
use shared::time::UnixMillis;
use tests::db::Engine;

use super::{
    Api,
    jobs::{UNKNOWN, all, check, list, submit, thng, work},
};

fn ended_at(job: &Value) -> Result<UnixMillis> {
    Ok(UnixMillis(job["completedAt"].as_i64().context("completedAt")?))
}

async fn finished_jobs_and_logs_are_purged_and_actions_kept(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let id = thng(&api, json!({"name": "t"})).await?;
    let working = work(&api);
    // More entries in the log than one transaction removes.
    let mut entries = vec![UNKNOWN; 2_300];
    entries.push(&id);
    let first = submit(&api, list("PLATFORM_IDS", &entries)).await?;
    let one = check(&api, &first, "COMPLETED_WITH_FAILURES", 2_301, 2_300).await?;
    let second = submit(&api, list("PLATFORM_IDS", &[&id, UNKNOWN])).await?;
    let two = check(&api, &second, "COMPLETED_WITH_FAILURES", 2, 1).await?;
    drop(working);
    let open = submit(&api, list("PLATFORM_IDS", &[&id])).await?;
    let app = &api.made.app;
    let purge = async |before| jobs::service::jobs::purge_before(&app.jobs, before).await;

    ensure!(purge(ended_at(&one)?).await? == 0, "one that ended at that time stays");
    ensure!(api.fingerprint().await?["job_logs"].len() == 2_301);
    ensure!(purge(ended_at(&two)?).await? == 1);
    for path in [first.clone(), format!("{first}/logs")] {
        api.get(&path).await?.problem(404, 40401);
    }
    api.call(Method::POST, &format!("{first}/cancel"), None).await?.problem(404, 40401);
    ensure!(all(&api, &format!("{second}/logs")).await?.len() == 1);
    ensure!(all(&api, "/jobs/actions").await?.len() == 2);
    ensure!(purge(ended_at(&two)?).await? == 0, "it is gone");

    // However long ago: what has not ended stays.
    ensure!(purge(UnixMillis(i64::MAX)).await? == 1);
    let left = all(&api, "/jobs/actions").await?;
    ensure!(left.len() == 1 && open.ends_with(left[0]["id"].as_str().context("id")?), "{left:?}");
    let tables = api.fingerprint().await?;
    ensure!(tables["job_logs"].is_empty() && tables["actions"].len() == 2, "{tables:?}");
    ensure!(tables["job_chunks"].is_empty());
    let _working = work(&api);
    check(&api, &open, "COMPLETED", 1, 0).await?;
    Ok(())
}

/// `DELETE /jobs/actions/:id`: only what has ended, with its log; the actions stay.
async fn a_job_that_has_ended_is_removed_by_request(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let id = thng(&api, json!({"name": "t"})).await?;
    let path = submit(&api, list("PLATFORM_IDS", &[&id, UNKNOWN])).await?;
    let before = api.fingerprint().await?;
    api.delete(&path).await?.problem(409, 40901);
    ensure!(api.fingerprint().await? == before, "a job under way stays as it is");
    let working = work(&api);
    check(&api, &path, "COMPLETED_WITH_FAILURES", 2, 1).await?;
    let kept = submit(&api, list("PLATFORM_IDS", &[&id, UNKNOWN])).await?;
    check(&api, &kept, "COMPLETED_WITH_FAILURES", 2, 1).await?;
    drop(working);

    let answer = api.delete(&path).await?;
    ensure!(answer.status == 200 && answer.bytes.is_empty(), "{answer:?}");
    for gone in [path.clone(), format!("{path}/logs")] {
        api.get(&gone).await?.problem(404, 40401);
    }
    api.delete(&path).await?.problem(404, 40401);
    api.delete(&format!("/jobs/actions/{UNKNOWN}")).await?.problem(404, 40401);
    let left = all(&api, "/jobs/actions").await?;
    ensure!(left.len() == 1 && kept.ends_with(left[0]["id"].as_str().context("id")?), "{left:?}");
    let tables = api.fingerprint().await?;
    ensure!(tables["job_logs"].len() == 1 && tables["actions"].len() == 2, "{tables:?}");
    Ok(())
}

/// The input of a job that was cancelled before anybody read it goes with the job, and its file's content too.
async fn the_input_of_a_cancelled_job_is_deleted(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let id = thng(&api, json!({"name": "t"})).await?;
    let location = super::jobs::file(&api, format!("{id}\n").as_bytes()).await?;
    let path = submit(&api, super::jobs::of_file("PLATFORM_IDS", "CSV", &location)).await?;
    api.call(Method::POST, &format!("{path}/cancel"), None).await?.must_be(202)?;
    let record = location.split_once("8080").context("path")?.1.trim_end_matches("/content").to_owned();
    ensure!(api.delete(&record).await?.status == 200);
    let purged = async || catalog::service::files::purge(&api.made.app.catalog).await;
    ensure!(purged().await? == 0, "a job may still want it");
    let working = work(&api);
    let job = super::jobs::ended(&api, &path).await?;
    ensure!(job["status"] == "CANCELLED", "{job}");
    drop(working);
    ensure!(purged().await? == 1, "nobody wants it");
    Ok(())
}

crate::on_both_engines!(
    a_job_that_has_ended_is_removed_by_request,
    finished_jobs_and_logs_are_purged_and_actions_kept,
    the_input_of_a_cancelled_job_is_deleted
);
