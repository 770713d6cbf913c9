//! `GET /events`: which events are sent, to whom, from which position, and when the stream ends.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use axum::{
    body::{Body, BodyDataStream},
    http::{Method, Request, header},
};
use events::service::connections;
use futures_util::StreamExt;
use kernel::{
    domain::event::Position,
    store::{
        Ctx,
        event_log::{self, Keep},
    },
};
use serde_json::{Value, json};
use shared::time::UnixMillis;
use tests::{db::Engine, product::DEADLINE};
use tower::ServiceExt;

use super::{
    Api, Application,
    jobs::{list, submit, thng, work},
    operators::{machine, project},
};

/// One event as a client reads it.
#[derive(Debug, Clone)]
pub(super) struct Told {
    id: String,
    pub(super) body: Value,
}

/// An open stream.
pub(super) struct Stream {
    body: BodyDataStream,
    text: String,
    /// The last id that came, with an event or without.
    last: String,
}

impl Stream {
    pub(super) async fn open(api: &Api, key: &str, uri: &str, after: Option<&str>) -> Result<Self> {
        let mut request = Request::builder()
            .uri(uri)
            .header(header::AUTHORIZATION, key)
            .header(header::ACCEPT, "text/event-stream");
        if let Some(after) = after {
            request = request.header("last-event-id", after);
        }
        let response = api.router.clone().oneshot(request.body(Body::empty())?).await?;
        ensure!(response.status() == 200, "{response:?}");
        let kind = response.headers().get(header::CONTENT_TYPE);
        ensure!(kind.is_some_and(|kind| kind == "text/event-stream"), "{response:?}");
        let mut stream =
            Self { body: response.into_body().into_data_stream(), text: String::new(), last: String::new() };
        // It says at once from where it goes on.
        while stream.last.is_empty() {
            ensure!(stream.block().await?.is_some(), "it ended");
        }
        Ok(stream)
    }

    /// The next block; `None` at the end, and inside where it holds no event.
    pub(super) async fn block(&mut self) -> Result<Option<Option<Told>>> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                let of = |name: &str| {
                    block.lines().find_map(|line| line.strip_prefix(name).map(|rest| rest.trim().to_owned()))
                };
                if let Some(id) = of("id:") {
                    self.last = id;
                }
                let body = of("data:").map(|data| serde_json::from_str(&data)).transpose()?;
                return Ok(Some(body.map(|body| Told { id: self.last.clone(), body })));
            }
            match tokio::time::timeout(DEADLINE, self.body.next()).await.context("nothing came")? {
                Some(piece) => self.text.push_str(std::str::from_utf8(&piece?)?),
                None => return Ok(None),
            }
        }
    }

    pub(super) async fn next(&mut self) -> Result<Told> {
        loop {
            match self.block().await? {
                Some(Some(told)) => return Ok(told),
                Some(None) => {}
                None => bail!("it ended"),
            }
        }
    }
}

/// Actions, those of jobs, properties, redirections and ends of jobs, in their order, each by itself.
pub(super) async fn events_are_streamed(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let _work = work(&api);
    let id = thng(&api, json!({"name": "t"})).await?;
    let mut all = Stream::open(&api, &api.key, "/v2/events", None).await?;
    let uri = "/events?types=action.scans,job&match=timestamp%3E5%7Cstatus~COMP";
    let mut some = Stream::open(&api, &api.key, uri, None).await?;
    let mut foreign = Stream::open(&api, &api.other_key, "/events", None).await?;

    let body = json!({"thng": id, "timestamp": 7, "scopes": {"users": ["all"]}});
    let made = api.create("/actions/scans", body).await?;
    let told = all.next().await?;
    ensure!(told.body["type"] == "action.scans" && told.body["timestamp"].is_i64(), "{told:?}");
    ensure!(told.body["data"]["id"] == made["id"] && told.body["data"]["thng"] == json!(id), "{told:?}");
    // What lists hide is hidden here.
    ensure!(told.body["data"].get("scopes").is_none() && told.body["data"].get("context").is_none());
    ensure!(some.next().await?.body == told.body);

    let points = json!([{"key": "temp", "value": 21.5}]);
    ensure!(api.call(Method::PUT, &format!("/thngs/{id}/properties"), Some(points)).await?.status == 200);
    let told = all.next().await?;
    ensure!(told.body["type"] == "properties.updated" && told.body["data"]["thng"] == json!(id), "{told:?}");
    ensure!(told.body["data"]["properties"][0]["value"] == 21.5, "{told:?}");

    let body =
        json!({"platformId": id, "shortId": "OF-EVENT", "defaultRedirectUrl": "https://example.com/1"});
    // The answer is an image unless JSON is asked for.
    ensure!(api.call(Method::POST, "/redirections", Some(body)).await?.status == 200);
    let told = all.next().await?;
    ensure!(told.body["type"] == "redirection.created", "{told:?}");
    ensure!(told.body["data"]["shortId"] == "OF-EVENT", "{told:?}");
    ensure!(told.body["data"]["platformId"] == json!(id), "{told:?}");

    api.create("/actions/scans", json!({"thng": id, "timestamp": 5})).await?;
    ensure!(all.next().await?.body["data"]["timestamp"] == 5);
    let mut quiet = list("PLATFORM_IDS", &[&id, &id]);
    quiet["options"] = json!([{"type": "SINGLE_RESOURCE_NOTIFICATION", "enabled": true}]);
    submit(&api, quiet).await?;
    ensure!(all.next().await?.body["type"] == "job.completed", "its actions are kept out");
    ensure!(some.next().await?.body["data"]["status"] == "COMPLETED");
    submit(&api, list("PLATFORM_IDS", &[id.as_str(); 1_200])).await?;
    let mut ids = std::collections::BTreeSet::new();
    for _ in 0..1_200 {
        let told = all.next().await?;
        ensure!(told.body["type"] == "action.scans", "{told:?}");
        ids.insert(told.body["data"]["id"].as_str().context("id")?.to_owned());
    }
    ensure!(ids.len() == 1_200);
    ensure!(all.next().await?.body["type"] == "job.completed");

    // Nothing of it is another account's: the first it hears is its own.
    let theirs = api.call_as(&api.other_key, Method::POST, "/actions/shares", Some(json!({}))).await?;
    ensure!(foreign.next().await?.body["data"]["id"] == theirs.json()["id"]);
    Ok(())
}

/// "Resume by `Last-Event-ID` from the log": also in the middle of what a job made in one step.
pub(super) async fn a_stream_resumes_where_it_was_cut(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let _work = work(&api);
    let id = thng(&api, json!({"name": "t"})).await?;
    let mut stream = Stream::open(&api, &api.key, "/events", None).await?;
    submit(&api, list("PLATFORM_IDS", &[id.as_str(); 700])).await?;
    let (mut ids, mut cuts) = (Vec::new(), 0);
    while ids.len() < 700 {
        let told = stream.next().await?;
        ids.push(told.body["data"]["id"].as_str().context("id")?.to_owned());
        if ids.len() % 97 == 0 {
            // Either way of saying it.
            stream = if cuts % 2 == 0 {
                Stream::open(&api, &api.key, "/events", Some(&told.id)).await?
            } else {
                Stream::open(&api, &api.key, &format!("/events?lastEventId={}", told.id), None).await?
            };
            cuts += 1;
        }
    }
    ensure!(stream.next().await?.body["type"] == "job.completed");
    let made = ids.len();
    ids.sort();
    ids.dedup();
    ensure!(cuts == 7 && made == 700 && ids.len() == 700, "{cuts} {made} {}", ids.len());
    // An answer that ends: all that is kept, or what is behind a place.
    let answer = api.get("/events?types=action").await?;
    ensure!(String::from_utf8(answer.bytes)?.matches("\ndata: ").count() == 700);
    let answer = api.get(&format!("/events?lastEventId={}", stream.last)).await?;
    ensure!(!String::from_utf8(answer.bytes)?.contains("data:"));
    Ok(())
}

/// What is no place, or one that is not kept; wrong parameters; all of them named.
pub(super) async fn resuming_from_an_expired_position_is_refused(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let mut stream = Stream::open(&api, &api.key, "/events", None).await?;
    let mut places = Vec::new();
    for _ in 0..3 {
        api.create("/actions/scans", json!({})).await?;
        places.push(stream.next().await?.id);
    }
    let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
    let keep = Keep { since: UnixMillis(0), rows: 1, at_most_since: UnixMillis(0) };
    ensure!(event_log::trim(&mut tx, keep, 100).await? == 2);
    tx.commit().await?;
    let last: Position = places[2].parse()?;
    let beyond = Position { seq: last.seq + 1, ..last }.to_string();
    for (place, is_kept) in [(&places[0], false), (&places[1], true), (&places[2], true), (&beyond, false)] {
        let answer = api.get(&format!("/events?lastEventId={place}")).await?;
        if is_kept {
            ensure!(answer.status == 200, "{place}: {answer:?}");
        } else {
            let faults = answer.problem(409, 40901);
            ensure!(faults[0].contains("not kept any more"), "{faults:?}");
        }
    }
    let uri = "/events?types=scans&match=color%3Dred&lastEventId=x";
    let faults = api.get(uri).await?.problem(400, 40003);
    ensure!(
        faults[0].starts_with("types: \"scans\" is no type of event")
            && faults[1].starts_with("match: \"color\" is not one of the fields")
            && faults[2] == "Last-Event-ID is not the id of an event.",
        "{faults:?}"
    );
    Ok(())
}

/// A stream lives no longer than its key, and an account has only so many.
pub(super) async fn streams_end_with_their_key_and_are_bounded(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let Application { project, path: app, secret, .. } = api.application(json!({"name": "a"})).await?;
    let mut confined = Stream::open(&api, &secret, "/events", None).await?;
    // What is of no project is not told to a key of one.
    let id = thng(&api, json!({"name": "t"})).await?;
    let points = json!([{"key": "temp", "value": 1}]);
    api.call(Method::PUT, &format!("/thngs/{id}/properties"), Some(points)).await?;
    api.create("/actions/scans", json!({})).await?;
    let made = api.create(&format!("/actions/scans?project={project}"), json!({})).await?;
    ensure!(confined.next().await?.body["data"]["id"] == made["id"]);
    ensure!(api.call(Method::DELETE, &app, None).await?.status == 200);
    connections::check_keys(&api.made.app.events).await?;
    while confined.block().await?.is_some() {}

    let mut open = Vec::new();
    for _ in 0..20 {
        open.push(Stream::open(&api, &api.key, "/events", None).await?);
    }
    let answer = api.get("/events").await?;
    answer.problem(429, 42901);
    ensure!(answer.header("retry-after").is_some(), "{answer:?}");
    ensure!(api.call_as(&api.other_key, Method::GET, "/events", None).await?.status == 200);
    open.pop();
    let begun = std::time::Instant::now();
    while api.get("/events").await?.status != 200 {
        ensure!(begun.elapsed() < DEADLINE, "the place does not come back");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // A stop sends all away.
    api.made.app.events.connections.stopping.cancel();
    for mut stream in open {
        while stream.block().await?.is_some() {}
    }
    Ok(())
}

/// An operator whose role is confined to a project is told of its project alone, now, later, and in an export.
async fn a_role_of_a_project_is_told_of_its_project(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let project = project(&api).await?;
    let query = format!("?project={project}");
    let (_, key) = machine(&api, "editor", json!({"conditions": [format!("project={project}")]})).await?;
    let outside = thng(&api, json!({"name": "outside"})).await?;
    let made = api.create(&format!("/thngs{query}"), json!({"name": "inside"})).await?;
    let inside = made["id"].as_str().context("id")?;
    let mut stream = Stream::open(&api, &key, "/events", None).await?;
    let begun = stream.last.clone();
    for (thng, query) in [(outside.as_str(), ""), (inside, query.as_str())] {
        let points = json!([{"key": "temp", "value": 1}]);
        let uri = format!("/thngs/{thng}/properties");
        ensure!(api.call(Method::PUT, &uri, Some(points)).await?.status == 200);
        api.create(&format!("/actions/scans{query}"), json!({"thng": thng})).await?;
        let link = json!([{"platformId": thng, "defaultRedirectUrl": "https://example.com/"}]);
        let answer = api.call(Method::POST, &format!("/redirections{query}"), Some(link)).await?;
        ensure!(answer.status.is_success(), "{answer:?}");
    }
    let mut resumed = Stream::open(&api, &key, "/events", Some(&begun)).await?;
    for stream in [&mut stream, &mut resumed] {
        let mut types = Vec::new();
        for _ in 0..3 {
            let body = stream.next().await?.body;
            ensure!(!body.to_string().contains(&outside), "{body}");
            types.push(body["type"].as_str().context("type")?.to_owned());
        }
        ensure!(types == ["properties.updated", "action.scans", "redirection.created"], "{types:?}");
    }
    let export = api.call_as(&key, Method::GET, "/actions/all/export", None).await?;
    let text = String::from_utf8(export.bytes)?;
    ensure!(text.lines().count() == 1 && text.contains(inside), "{text}");
    Ok(())
}

crate::on_both_engines!(
    a_role_of_a_project_is_told_of_its_project,
    events_are_streamed,
    a_stream_resumes_where_it_was_cut,
    resuming_from_an_expired_position_is_refused,
    streams_end_with_their_key_and_are_bounded,
);
