//! What a suspension stops, and what it leaves as it is, on both engines.

use std::time::Duration;

use anyhow::{Context, Result};
use axum::{
    body::{Body, Bytes},
    http::{Method, Request, header},
};
use control::worker::upkeep;
use futures_util::stream;
use jobs::{
    service::jobs::{
        execute::{Execution, StepSize},
        load::{self, Stepped},
    },
    store::job_leases::{self, Claimed, Phase},
};
use kernel::store::Ctx;
use redirects::{domain::task::Population, service::tasks};
use serde_json::{Value, json};
use tests::{db::Engine, wait::read_until};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    Answer, Api,
    batches::populate,
    jobs::{check, list, submit, thng, work},
    platform::{platform_key, resume, suspend},
    webhooks::receiver::{Receiver, Reply, count, deliver, execute, until, webhook},
};

const ACTIONS: &str = "SELECT COUNT(*) FROM actions";
const THNGS: &str = "SELECT COUNT(*) FROM thngs";

async fn claim(api: &Api, phase: Phase) -> Result<Claimed> {
    let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
    let claimed = job_leases::claim(&mut tx, phase, &[]).await?.context("no job is ready")?;
    tx.commit().await?;
    Ok(claimed)
}

async fn release(api: &Api, claimed: &Claimed) -> Result<bool> {
    let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
    let is_held = job_leases::release(&mut tx, claimed, Duration::ZERO, u64::MAX).await?;
    tx.commit().await?;
    Ok(is_held)
}

async fn a_job_that_is_being_worked_on_stops_after_its_step(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let (platform, state) = (platform_key(&api).await?, &*api.made.app.jobs);
    let id = thng(&api, json!({"name": "t"})).await?;
    // More than the first step carries out.
    let job = submit(&api, list("PLATFORM_IDS", &[&*id; 2_000])).await?;
    let stop = CancellationToken::new();
    let mut claimed = claim(&api, Phase::Load).await?;
    assert_eq!(load::load(state, &mut claimed, &stop).await?, Stepped::Moved);
    assert!(release(&api, &claimed).await?);
    let (mut execution, mut size) = (Execution::default(), StepSize::new(&state.db));
    let mut claimed = claim(&api, Phase::Execute).await?;
    let stepped = execution.step(state, &mut claimed, &mut size).await?;
    assert_eq!(stepped, Stepped::Moved, "there is more to do");
    let other = submit(&api, list("PLATFORM_IDS", &[&id])).await?;
    let mut loading = claim(&api, Phase::Load).await?;
    let done = count(&api, ACTIONS).await?;
    assert!((1..2_000).contains(&done), "{done}");

    // No other job waits, so nothing but the step itself can notice.
    suspend(&api, &platform).await?;
    assert_eq!(execution.step(state, &mut claimed, &mut size).await?, Stepped::Lost);
    assert_eq!(load::load(state, &mut loading, &stop).await?, Stepped::Lost);
    assert_eq!(count(&api, ACTIONS).await?, done);
    assert!(release(&api, &claimed).await? && release(&api, &loading).await?);
    let mut conn = api.made.app.core.db.read().await?;
    for phase in [Phase::Load, Phase::Execute] {
        assert!(!job_leases::is_ready(&mut conn, phase, &[]).await?, "{phase:?}");
    }
    drop(conn);

    resume(&api, &platform).await?;
    let _work = work(&api);
    check(&api, &job, "COMPLETED", 2_000, 0).await?;
    check(&api, &other, "COMPLETED", 1, 0).await?;
    assert_eq!(count(&api, ACTIONS).await?, 2_001);
    Ok(())
}

async fn a_task_of_a_batch_waits(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let (platform, redirects) = (platform_key(&api).await?, &api.made.app.redirects);
    let batch = api.create("/batches", json!({"name": "b"})).await?["id"].as_str().context("id")?.to_owned();
    let more = json!({"generateRedirections": true, "defaultRedirectUrl": "https://example.com/",
        "shortDomain": "tn.gg"});
    let input = populate(60, &more)["inputParameters"].clone();
    let population = Population::parse(&input).map_err(|faults| anyhow::anyhow!("{faults:?}"))?;
    let input = input.as_object().context("object")?.clone();
    let task = tasks::create(redirects, &api.made.caller(), &batch, &population, input).await?;
    suspend(&api, &platform).await?;
    tasks::run(redirects.clone(), api.made.account, task.id).await;
    assert_eq!((count(&api, THNGS).await?, count(&api, "SELECT COUNT(*) FROM redirections").await?), (0, 0));
    execute(&api, "UPDATE tasks SET updated_at = 0").await?;
    assert_eq!(tasks::resume(redirects).await?, 0, "it hides none of other accounts");
    resume(&api, &platform).await?;
    assert_eq!(tasks::resume(redirects).await?, 1);
    let path = format!("/batches/{batch}/tasks/{}", task.id);
    read_until(async || Ok(api.get(&path).await?.json()), |task| task["status"] == "COMPLETED").await?;
    assert_eq!(
        (count(&api, THNGS).await?, count(&api, "SELECT COUNT(*) FROM redirections").await?),
        (60, 60)
    );
    Ok(())
}

/// Of four days, after a day of failures.
async fn messages_of_webhooks_do_not_age_meanwhile(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let platform = platform_key(&api).await?;
    let receiver = Receiver::new(|nth| if nth.of_id == 0 { Reply::Refuse(500) } else { Reply::Take }).await?;
    let hook = webhook(&api, &receiver, json!({"types": ["action.scans"]})).await?;
    let id = thng(&api, json!({"name": "t"})).await?;
    api.create("/actions/scans", json!({"thng": id})).await?;
    suspend(&api, &platform).await?;
    let pending = "SELECT COUNT(*) FROM webhook_messages WHERE status = 'pending'";
    let queued = deliver(&api);
    read_until(async || count(&api, pending).await, |count| *count > 0).await?;
    drop(queued);
    for sql in [
        "UPDATE webhooks SET failures = 9, failing_since = (SELECT MAX(next_at) - 345600000 FROM webhook_messages)",
        "UPDATE webhook_messages SET first_at = next_at - 345600000",
        "UPDATE webhook_messages SET created_at = created_at - 345600000, next_at = 0",
        // The other account is in service, and another message was given up.
        "INSERT INTO webhook_messages (webhook, account_id, message_id, type, body, created_at, status) \
         SELECT webhook, 'other', 'of another', type, body, created_at, 'pending' FROM webhook_messages",
        "INSERT INTO webhook_messages (webhook, account_id, message_id, type, body, created_at, status) \
         SELECT webhook, account_id, 'dead', type, body, created_at, 'dead' FROM webhook_messages \
         WHERE message_id <> 'of another'",
    ] {
        execute(&api, sql).await?;
    }
    upkeep::clean(&api.made.app).await?;
    let left = "SELECT COUNT(*) FROM webhook_messages";
    assert_eq!((count(&api, left).await?, count(&api, pending).await?), (1, 1), "it waits, the others go");

    resume(&api, &platform).await?;
    upkeep::clean(&api.made.app).await?;
    assert_eq!(count(&api, pending).await?, 1, "it has its time before it");
    let _deliver = deliver(&api);
    receiver.wait(1).await?;
    until(&api, &hook, "delivered", 1).await?;
    let read = api.get(&format!("/webhooks/{hook}")).await?.json();
    assert_eq!(read["status"], "active", "its failures of before count no more: {read}");
    Ok(())
}

/// A request for the content of a file.
async fn content(api: &Api, method: Method, uri: &str, key: Option<&str>, body: Body) -> Result<Answer> {
    let uri = uri.strip_prefix("http://api.example:8080").unwrap_or(uri);
    let mut request = Request::builder().method(method).uri(uri).header(header::HOST, "api.example:8080");
    if let Some(key) = key {
        request = request.header(header::AUTHORIZATION, key);
    }
    api.send(request.body(body)?).await
}

async fn files_are_neither_written_nor_read(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let platform = platform_key(&api).await?;
    let url =
        |file: &Value, name: &str| Ok::<_, anyhow::Error>(file[name].as_str().context("url")?.to_owned());
    let put = async |url: &str, text: &'static str| content(&api, Method::PUT, url, None, text.into()).await;
    let get = async |url: &str, key| content(&api, Method::GET, url, key, Body::empty()).await;
    let mut files = Vec::new();
    for is_private in [false, true] {
        let made = api.create("/files", json!({"name": "f", "privateAccess": is_private})).await?;
        assert_eq!(put(&url(&made, "uploadUrl")?, "before").await?.status, 200);
        files.push(made);
    }
    let (public, private) = (&files[0], &files[1]);
    let (public_url, signed_url) = (url(public, "contentUrl")?, url(private, "contentUrl")?);
    let plain_url = format!("/files/{}/content", private["id"].as_str().context("id")?);
    let other = Some(api.other_key.as_str());
    for (url, key) in [(&public_url, None), (&public_url, other), (&signed_url, None)] {
        assert_eq!(get(url, key).await?.bytes, b"before", "{url}");
    }
    // An upload that drips in over the suspension.
    let (sender, receiver) = mpsc::channel::<Bytes>(1);
    let body = stream::unfold(receiver, |mut receiver| async {
        let part = receiver.recv().await?;
        Some((Ok::<_, std::convert::Infallible>(part), receiver))
    });
    let upload_url = url(public, "uploadUrl")?;
    let dripping = content(&api, Method::PUT, &upload_url, None, Body::from_stream(body));
    let suspension = async {
        sender.send("aft".into()).await?;
        // It has begun once the first part was taken.
        sender.send("er".into()).await?;
        let account = suspend(&api, &platform).await;
        drop(sender);
        account
    };
    let (answer, account) = tokio::join!(dripping, suspension);
    account?;
    answer?.problem(403, 40303);

    for file in &files {
        let faults = put(&url(file, "uploadUrl")?, "after").await?.problem(403, 40303);
        assert_eq!(faults, ["The account is suspended. Contact: abuse@example.com"]);
    }
    for (url, key) in [(&public_url, None), (&public_url, other), (&signed_url, None)] {
        get(url, key).await?.problem(403, 40303);
    }
    // As before: not even that there is such a file.
    get(&plain_url, None).await?.problem(401, 40101);
    get(&plain_url, other).await?.problem(404, 40401);
    resume(&api, &platform).await?;
    for (url, key) in [(&public_url, None), (&public_url, other), (&signed_url, None)] {
        assert_eq!(get(url, key).await?.bytes, b"before", "{url}");
    }
    Ok(())
}

crate::on_both_engines!(
    a_job_that_is_being_worked_on_stops_after_its_step,
    a_task_of_a_batch_waits,
    messages_of_webhooks_do_not_age_meanwhile,
    files_are_neither_written_nor_read,
);
