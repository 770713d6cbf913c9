//! The jobs of the demo: goods that a warehouse received. One of them has lines that name nothing, so that there are
//! failed operations to look at.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    fill::{Filling, Ids},
    mark::{Demo, FIELD, TAG, list, text},
};
use crate::tools::client::{Client, RequestError};

/// Time between two looks at jobs under way.
const LOOK: Duration = Duration::from_millis(500);

/// Items that the first job is about, at most: half of what a list may hold.
const RECEIVED: usize = 2_500;

/// Items that the second one is about.
const COUNTED: usize = 20;

/// Submits the jobs that are not there, and waits until all have ended; gives how many there are.
pub(super) async fn run(filling: &Filling<'_>, things: &Ids) -> Result<usize, RequestError> {
    let Filling { client, demo, .. } = *filling;
    let there = jobs(client, demo).await?.len();
    let url = demo.url(client, &["jobs", "actions"]);
    let bodies = bodies(filling, things);
    for body in bodies.iter().skip(there) {
        let body = body.to_string();
        client.submit(&url, &demo.key(&url, &body), body.into()).await?;
    }
    wait(client, demo).await?;
    Ok(bodies.len())
}

/// The jobs of the demo: whatever is in its project.
pub(super) async fn jobs(client: &Client, demo: &Demo) -> Result<Vec<Value>, RequestError> {
    list(client, &["jobs", "actions"], &[("project", demo.project.as_str())]).await
}

/// Looks until every job has ended.
pub(super) async fn wait(client: &Client, demo: &Demo) -> Result<(), RequestError> {
    while jobs(client, demo).await?.iter().any(is_open) {
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

/// Whether a job has not ended.
pub(super) fn is_open(job: &Value) -> bool {
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

/// Ends the jobs that are under way, and removes all of them.
pub(super) async fn remove(client: &Client, demo: &Demo) -> Result<(), RequestError> {
    for job in jobs(client, demo).await?.iter().filter(|job| is_open(job)) {
        match client.act(&client.url(&["jobs", "actions", text(job, "id"), "cancel"], [])).await {
            // It has ended meanwhile.
            Err(RequestError::Refused { status: reqwest::StatusCode::CONFLICT, .. }) | Ok(()) => {}
            Err(error) => return Err(error),
        }
    }
    wait(client, demo).await?;
    for job in jobs(client, demo).await? {
        client.remove(&client.url(&["jobs", "actions", text(&job, "id")], [])).await?;
    }
    Ok(())
}
