//! The jobs of the demo: goods that a warehouse received. One of them has lines that name nothing, so that there are
//! failed operations to look at.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{
    fill::{Filling, Ids},
    mark::{Demo, FIELD, TAG, is_marked, list, text},
};
use crate::tools::client::{Client, RequestError};

/// Time between two looks at jobs under way.
const LOOK: Duration = Duration::from_millis(500);

/// The longest that jobs are waited for: they take seconds, unless other jobs are before them.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

/// Items that the first job is about, at most: half of what a list may hold.
const RECEIVED: usize = 2_500;

/// Items that the second one is about.
const COUNTED: usize = 20;

/// Submits the jobs that are not there, and waits until all have ended; gives how many there are.
pub(super) async fn run(filling: &Filling<'_>, things: &Ids) -> Result<usize, RequestError> {
    let Filling { client, demo, .. } = *filling;
    let there = jobs(client, demo).await?;
    let note = |job: &Value| job["payload"]["customFields"][FIELD].clone();
    let url = demo.url(client, &["jobs", "actions"]);
    let bodies = bodies(filling, things);
    for body in bodies.iter().filter(|body| there.iter().all(|job| note(job) != note(body))) {
        let body = body.to_string();
        client.submit(&url, &demo.key(&url, &body), body.into()).await?;
    }
    wait(client, demo, &jobs(client, demo).await?).await?;
    Ok(bodies.len())
}

/// The jobs of the demo, with what they were asked for with: those in its project that are marked.
async fn jobs(client: &Client, demo: &Demo) -> Result<Vec<Value>, RequestError> {
    let mut found = Vec::new();
    // Lists leave out what a job was asked for with.
    for listed in in_project(client, demo).await? {
        let url = client.url(&["jobs", "actions", text(&listed, "id")], []);
        let job: Value = match client.read::<Value>(&url).await {
            // Somebody removed it meanwhile.
            Err(RequestError::Refused { status: reqwest::StatusCode::NOT_FOUND, .. }) => continue,
            other => other?,
        };
        if is_marked(&job["payload"]) {
            found.push(job);
        }
    }
    Ok(found)
}

/// All jobs in the project, also those of others, without what they were asked for with.
async fn in_project(client: &Client, demo: &Demo) -> Result<Vec<Value>, RequestError> {
    list(client, &["jobs", "actions"], &[("project", demo.project.as_str())]).await
}

/// Looks until some jobs have ended.
async fn wait(client: &Client, demo: &Demo, jobs: &[Value]) -> Result<(), RequestError> {
    let begun = Instant::now();
    let is_meant = |job: &Value| jobs.iter().any(|meant| text(meant, "id") == text(job, "id"));
    while in_project(client, demo).await?.iter().any(|job| is_open(job) && is_meant(job)) {
        if begun.elapsed() > PATIENCE {
            let minutes = PATIENCE.as_secs() / 60;
            let text = format!("jobs of the demo have not ended after {minutes} minutes");
            return Err(RequestError::Unreachable(text));
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

/// Whether a job has not ended.
fn is_open(job: &Value) -> bool {
    job["completedAt"].is_null()
}

fn bodies(filling: &Filling<'_>, things: &Ids) -> [Value; 2] {
    let declared = || filling.items.iter().filter(|item| item.commissioned_at.is_some());
    let received: Vec<&String> =
        declared().take(RECEIVED).filter_map(|item| things.get(&item.serial)).collect();
    let mut counted: Vec<String> = declared().take(COUNTED).map(|item| item.serial.clone()).collect();
    // Whoever counted by hand misread two labels.
    counted.extend(counted.iter().take(2).map(|serial| format!("{serial}-X")).collect::<Vec<_>>());
    [
        body("Goods received", json!({"type": "LIST", "contentType": "PLATFORM_IDS", "payload": received})),
        body(
            "Stock counted",
            json!({"type": "LIST", "contentType": "EXTERNAL_IDS", "key": "gs1:21", "payload": counted}),
        ),
    ]
}

fn body(note: &str, input: Value) -> Value {
    // Rules and notifications of the account are for real goods.
    let options = ["SINGLE_RESOURCE_NOTIFICATION", "SINGLE_RESOURCE_REACTIONS"]
        .map(|kind| json!({"type": kind, "enabled": true}));
    json!({"type": "ACTION_CREATION", "target": "THNGS", "input": input, "options": options,
        "payload": {"type": "checkins", "tags": [TAG], "customFields": {FIELD: note}}})
}

/// Ends the demo's jobs that are under way, and removes all of them.
pub(super) async fn remove(client: &Client, demo: &Demo) -> Result<(), RequestError> {
    let jobs = jobs(client, demo).await?;
    for job in jobs.iter().filter(|job| is_open(job)) {
        match client.act(&client.url(&["jobs", "actions", text(job, "id"), "cancel"], [])).await {
            // It has ended meanwhile.
            Err(RequestError::Refused { status: reqwest::StatusCode::CONFLICT, .. }) | Ok(()) => {}
            Err(error) => return Err(error),
        }
    }
    wait(client, demo, &jobs).await?;
    for job in &jobs {
        client.remove(&client.url(&["jobs", "actions", text(job, "id")], [])).await?;
    }
    Ok(())
}
