//! The live view: what is sent, to whom, how much of it, and when it ends.

use anyhow::{Context, Result, bail};
use axum::{
    body::{Body, BodyDataStream},
    http::{Request, header},
};
use futures_util::StreamExt;
use serde_json::json;
use tests::{
    db::Engine,
    product::{DEADLINE, PHONE},
};
use tower::ServiceExt;

use super::{
    super::operators::{machine, project},
    *,
};

/// An open stream.
struct Stream {
    body: BodyDataStream,
    text: String,
}

impl Stream {
    async fn open(api: &Api, key: &str) -> Result<Self> {
        let request = Request::get("/scans/live")
            .header(header::AUTHORIZATION, key)
            .header(header::ACCEPT, "text/event-stream")
            .body(Body::empty())?;
        let response = api.router.clone().oneshot(request).await?;
        ensure!(response.status() == 200, "{response:?}");
        assert_eq!(response.headers().get(header::CONTENT_TYPE).context("type")?, "text/event-stream");
        let mut stream = Self { body: response.into_body().into_data_stream(), text: String::new() };
        // It says at once that it began.
        ensure!(stream.block().await?.context("it ended")?.starts_with(':'));
        Ok(stream)
    }

    /// The next block; `None` at the end.
    async fn block(&mut self) -> Result<Option<String>> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.text = rest;
                return Ok(Some(block));
            }
            match tokio::time::timeout(DEADLINE, self.body.next()).await.context("nothing came")? {
                Some(piece) => self.text.push_str(std::str::from_utf8(&piece?)?),
                None => return Ok(None),
            }
        }
    }

    /// The next event: its name, if it has one, and its data.
    async fn next(&mut self) -> Result<(String, Value)> {
        loop {
            let Some(block) = self.block().await? else { bail!("it ended") };
            let of = |name: &str| {
                block.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim()
            };
            if !of("data:").is_empty() {
                return Ok((of("event:").to_owned(), serde_json::from_str(of("data:"))?));
            }
        }
    }
}

async fn scans_are_streamed_to_those_who_see_them(engine: Engine) -> Result<()> {
    let api = api(engine).await?;
    let own = project(&api).await?;
    let product = linked(&api, "ONE", &[&own]).await?;
    linked(&api, "TWO", &[]).await?;
    let (_, viewer) = machine(&api, "viewer", json!({})).await?;
    let (_, bound) = machine(&api, "viewer", json!({"conditions": [format!("project={own}")]})).await?;
    let mut whole = Stream::open(&api, &api.key).await?;
    let mut coarse = Stream::open(&api, &viewer).await?;
    let mut confined = Stream::open(&api, &bound).await?;
    let mut foreign = Stream::open(&api, &api.other_key).await?;
    take(&api, 0, &[scan("TWO", NOW, "192.0.2.1", ROBOT), scan("ONE", NOW + 5, "203.0.113.1", PHONE)])
        .await?;
    let robot = json!({"at": NOW, "shortDomain": "tn.gg", "shortId": "TWO", "bot": true});
    let (name, first) = whole.next().await?;
    assert_eq!(
        (name.as_str(), first["shortId"].clone(), first["bot"].clone()),
        ("", robot["shortId"].clone(), json!(true))
    );
    let (_, second) = whole.next().await?;
    let place = json!({"at": NOW + 5, "shortDomain": "tn.gg", "shortId": "ONE", "product": product, "country": "CH",
        "region": "Bern"});
    let mut exact = place.clone();
    let more = json!({"city": "Bern", "latitude": 46.5, "longitude": 7.5});
    exact.as_object_mut().context("object")?.extend(more.as_object().context("object")?.clone());
    assert_eq!(second, exact);
    coarse.next().await?;
    assert_eq!(coarse.next().await?.1, place, "no city for a viewer");
    assert_eq!(confined.next().await?.1, place, "what its project sees, and nothing before");
    // The first that the other account gets is its own, which came last.
    linked_as(&api, &api.other_key, "other.gg", "THEIRS", &[]).await?;
    let theirs = ScanRecord { domain: "other.gg".into(), ..scan("THEIRS", NOW, "203.0.113.1", PHONE) };
    take(&api, 2, &[theirs]).await?;
    assert_eq!(foreign.next().await?.1["shortId"], "THEIRS");
    Ok(())
}

async fn of_many_scans_some_are_shown_and_the_number_is_said(engine: Engine) -> Result<()> {
    let api = api(engine).await?;
    linked(&api, "ONE", &[]).await?;
    let mut stream = Stream::open(&api, &api.key).await?;
    let records: Vec<ScanRecord> = (0..400).map(|n| scan("ONE", NOW + n, "203.0.113.1", PHONE)).collect();
    take(&api, 0, &records).await?;
    // As the log is read in one go, or in some: each second has an event, and no more scans than it may show.
    let mut left = 400;
    while left > 0 {
        let mut shown = 0;
        loop {
            let (name, data) = stream.next().await?;
            if name == "sampled" {
                let number = |name: &str| data[name].as_u64().context("number");
                assert_eq!(number("shown")?, shown, "as many as came: {data}");
                assert!(shown >= 1 && number("scans")? > shown, "{data}");
                left -= number("scans")?;
                break;
            }
            shown += 1;
            assert!(shown <= 50, "of a second");
        }
    }
    Ok(())
}

async fn a_stream_ends_with_its_key_and_without_a_follower(engine: Engine) -> Result<()> {
    let api = api(engine).await?;
    let (id, key) = machine(&api, "viewer", json!({})).await?;
    let mut stream = Stream::open(&api, &key).await?;
    tokio::spawn(events::worker::connections::run(
        api.made.app.events.clone(),
        tokio_util::sync::CancellationToken::new(),
    ));
    let access = format!("/accounts/{}/operatorAccess/{id}", api.made.account);
    assert!(api.call(Method::DELETE, &access, None).await?.status.is_success());
    while stream.block().await?.is_some() {}
    let (_, printer) = machine(&api, "printer", json!({})).await?;
    api.call_as(&printer, Method::GET, "/scans/live", None).await?.problem(403, 40301);
    let mut open = Vec::new();
    for _ in 0..20 {
        open.push(Stream::open(&api, &api.key).await?);
    }
    api.get("/scans/live").await?.problem(429, 42901);
    // Without `Accept: text/event-stream` the stream ends at once.
    let (_, editor) = machine(&api, "editor", json!({})).await?;
    let answer = api.call_as(&editor, Method::GET, "/scans/live", None).await?;
    assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, Some("text/event-stream")));
    Ok(())
}

crate::on_both_engines!(
    scans_are_streamed_to_those_who_see_them,
    of_many_scans_some_are_shown_and_the_number_is_said,
    a_stream_ends_with_its_key_and_without_a_follower,
);
