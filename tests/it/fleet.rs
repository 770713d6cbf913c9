//! Control replicas as separate processes over Postgres, seen by an edge that only speaks the protocol.

use std::time::{Duration, Instant};

use anyhow::Result;
use reqwest::{Method, StatusCode, header};
use serde_json::json;
use shared::{
    time::UnixMillis,
    wire::{
        OLDEST_PROTOCOL, PROTOCOL,
        internal::{EDGES_PATH, LOOKUP_PATH, SCANS_PATH},
        spooled::{NewRecord, SPOOLED},
        stream::{Change, ToControl, ToEdge},
    },
};
use tests::{
    fleet::Fleet,
    raw_edge::{RawEdge, hello},
};

mod availability;
mod certificates;
mod conformance;
mod full_disk;
mod keys;
mod metrics;
mod names;
mod other_release;
mod redis_forms;
mod replica;
mod replicas;
mod restore;
mod rolling;
mod sessions;
mod settings;
mod silent;
mod stream;
mod systemd;

pub(crate) use tests::wait::until;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edge_follows_from_end_to_end() -> Result<()> {
    let fleet = Fleet::start(1).await?;
    let internal = fleet.controls[0].internal.clone();
    let key = fleet.edge_key("e1")?;
    let (mut edge, welcome) = RawEdge::connect(&internal, &key, hello("e1", None, 0)).await?;
    assert_eq!(welcome.domains.iter().map(|domain| domain.host.as_str()).collect::<Vec<_>>(), ["tn.gg"]);
    let product = fleet.create_product(0).await?;
    let create = fleet.create_redirection(0, &product, Some("ONE"), "?wait=edges&timeout=20s");
    let (created, followed) = tokio::join!(create, edge.follow(welcome.head + 1));
    followed?;
    let (status, body) = created?;
    assert_eq!(
        (status, &body["acked"], &body["members"]),
        (StatusCode::CREATED, &json!(1), &json!(1)),
        "{body}"
    );

    // A short domain that is added while the edge is connected.
    fleet.control_ok(&["accounts", "domains", "add", "two.example"])?;
    let added = loop {
        match edge.next().await? {
            ToEdge::Events(events) => break events,
            ToEdge::Heartbeat { .. } => edge.ack(Vec::new()).await?,
            other => panic!("{other:?}"),
        }
    };
    assert!(
        matches!(&added.items[0].change, Change::Domain(domain) if domain.host.as_str() == "two.example")
    );

    // One read where it is written, for edges alone.
    let url = format!("{internal}{LOOKUP_PATH}?domain=tn.gg&shortId=ONE");
    let fill: serde_json::Value = fleet.http.get(&url).bearer_auth(&key).send().await?.json().await?;
    assert_eq!(fill["value"][1]["target"], "https://example.com/", "{fill}");
    for (key, expected) in [("", 401), (&*fleet.key, 401), (&*key, 400)] {
        let mut request = fleet.http.get(format!("{internal}{LOOKUP_PATH}?domain=tn.gg"));
        if !key.is_empty() {
            request = request.header(header::AUTHORIZATION, key);
        }
        let response = request.send().await?;
        assert_eq!(response.status().as_u16(), expected);
        let problem: serde_json::Value = response.json().await?;
        assert!(problem["errors"][0].is_string(), "{problem}");
    }

    // The state of the edges, for operators too.
    for key in [&fleet.key, &key] {
        let edges: serde_json::Value =
            fleet.http.get(format!("{internal}{EDGES_PATH}")).bearer_auth(key).send().await?.json().await?;
        assert_eq!(edges["edges"][0]["edgeId"], "e1", "{edges}");
    }
    let refused = fleet.http.get(format!("{internal}{EDGES_PATH}")).send().await?;
    assert_eq!(refused.status(), StatusCode::UNAUTHORIZED);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn incompatible_edges_are_refused() -> Result<()> {
    let fleet = Fleet::start(1).await?;
    let internal = fleet.controls[0].internal.clone();
    let key = fleet.edge_key("e1")?;
    for wrong in ["", "short", &fleet.key, &"x".repeat(80)] {
        assert_eq!(RawEdge::open(&internal, wrong).await?.0, 401, "{wrong:?}");
    }
    let plain = fleet.http.get(format!("{internal}/internal/v1/stream")).bearer_auth(&key).send().await?;
    assert_eq!(plain.status(), StatusCode::BAD_REQUEST, "without an upgrade");
    let with = |proto, edge: &str| shared::wire::stream::Hello { proto, ..hello(edge, None, 0) };
    for (hello, says) in [
        (with(PROTOCOL + 2, "e1"), "protocol"),
        (with(OLDEST_PROTOCOL - 1, "e1"), "protocol"),
        (with(PROTOCOL, "e2"), "whose key"),
    ] {
        let mut edge = RawEdge::open(&internal, &key).await?.1.unwrap();
        edge.say(&ToControl::Hello(hello)).await?;
        let (reason, pause) = edge.until_goaway().await?;
        assert!(reason.contains(says) && pause > Duration::ZERO, "{reason}");
        assert!(edge.next().await.is_err(), "and the connection ends");
    }
    let mut edge = RawEdge::open(&internal, &key).await?.1.unwrap();
    edge.ack(Vec::new()).await?;
    assert!(edge.until_goaway().await?.0.contains("hello"));
    RawEdge::connect(&internal, &key, with(PROTOCOL + 1, "e1")).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_rotate_and_a_revoked_one_ends_its_stream() -> Result<()> {
    let fleet = Fleet::start(1).await?;
    let internal = fleet.controls[0].internal.clone();
    let (old, new) = (fleet.edge_key("e1")?, fleet.edge_key("e1")?);
    let list = fleet.control_ok(&["edge-keys", "list"])?;
    let numbers: Vec<&str> = list.lines().filter_map(|line| line.split('\t').next()).collect();
    let (mut first, _) = RawEdge::connect(&internal, &old, hello("e1", None, 0)).await?;
    let begun = Instant::now();
    fleet.control_ok(&["edge-keys", "revoke", numbers[0]])?;
    assert!(first.until_goaway().await?.0.contains("revoked"));
    // A second by the rules; the rest is for a machine that is busy.
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert_eq!(RawEdge::open(&internal, &old).await?.0, 401);
    RawEdge::connect(&internal, &new, hello("e1", None, 0)).await?;
    assert_eq!(fleet.control(&["edge-keys", "revoke", numbers[0]])?.status.code(), Some(1), "it was revoked");
    assert_eq!(fleet.control(&["edge-keys", "create", "no name"])?.status.code(), Some(64));
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repeated_scans_count_once() -> Result<()> {
    let fleet = Fleet::start(1).await?;
    let url = format!("{}{SCANS_PATH}", fleet.controls[0].internal);
    let key = fleet.edge_key("e1")?;
    let product = fleet.create_product(0).await?;
    let (status, _) = fleet.create_redirection(0, &product, Some("ONE"), "").await?;
    assert_eq!(status, StatusCode::CREATED);
    let record = json!({"at": 1_760_000_000_000_i64, "domain": "tn.gg", "folded": "ONE", "ip": "192.0.2.1",
        "userAgent": tests::product::PHONE, "entryUrl": "https://tn.gg/ONE"});
    let batch = |edge: &str, first: u64, count: usize| {
        json!({"edge": edge, "boot": 1, "firstSeq": first,
        "records": vec![&record; count]})
    };
    for (body, expected, next) in [
        (batch("e1", 0, 1_000), 200, json!(1_000)),
        (batch("e1", 0, 1_000), 200, json!(1_000)),
        (batch("e1", 999, 2), 200, json!(1_001)),
        (batch("e2", 0, 1), 403, json!(null)),
        (batch("e1", 0, 1_001), 400, json!(null)),
        (json!({"edge": "e1"}), 400, json!(null)),
    ] {
        let response = fleet.http.post(&url).bearer_auth(&key).json(&body).send().await?;
        assert_eq!(response.status().as_u16(), expected);
        assert_eq!(response.json::<serde_json::Value>().await?["nextSeq"], next);
    }
    // The same, as the records lie on the disk of an edge.
    let texts = ["tn.gg", "ONE", "https://tn.gg/ONE", tests::product::PHONE, ""];
    let record = NewRecord {
        at: UnixMillis(1_760_000_000_000),
        ip: [192, 0, 2, 1].into(),
        texts,
        language: "",
        rule: None,
        link: None,
        in_memory: false,
    };
    let frames = |count: usize| {
        let mut frames = Vec::new();
        (0..count).for_each(|_| record.write(&mut frames));
        frames
    };
    let torn = frames(2).split_last().map(|(_, rest)| rest.to_vec()).unwrap_or_default();
    for (query, body, expected, next) in [
        ("edge=e1&boot=1&firstSeq=1000", frames(2), 200, json!(1_002)),
        ("edge=e1&boot=1&firstSeq=1000", frames(2), 200, json!(1_002)),
        ("edge=e2&boot=1&firstSeq=1002", frames(1), 403, json!(null)),
        ("edge=e1&boot=1&firstSeq=1002", frames(1_001), 400, json!(null)),
        ("edge=e1&boot=1&firstSeq=1002", torn, 400, json!(null)),
        ("edge=e1&boot=1&firstSeq=1002", b"{}".to_vec(), 400, json!(null)),
        ("edge=e1&boot=-1&firstSeq=1002", frames(1), 400, json!(null)),
        ("edge=e1&boot=1", frames(1), 400, json!(null)),
        ("boot=1&firstSeq=1002", frames(1), 400, json!(null)),
        ("edge=e1&boot=1&firstSeq=18446744073709551615", frames(1), 400, json!(null)),
    ] {
        let request = fleet.http.post(format!("{url}?{query}")).bearer_auth(&key);
        let response = request.header("content-type", SPOOLED).body(body).send().await?;
        assert_eq!(response.status().as_u16(), expected, "{query}");
        assert_eq!(response.json::<serde_json::Value>().await?["nextSeq"], next, "{query}");
    }
    let (_, read) = fleet.call(0, Method::GET, "/redirections/ONE", None).await?;
    assert_eq!(read["hits"], 1_002, "{read}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_sends_edges_away_and_finishes() -> Result<()> {
    let mut fleet = Fleet::start(1).await?;
    let key = fleet.edge_key("e1")?;
    let (mut edge, _) = RawEdge::connect(&fleet.controls[0].internal, &key, hello("e1", None, 0)).await?;
    fleet.controls[0].terminate()?;
    let (reason, pause) = edge.until_goaway().await?;
    assert!(reason.contains("stops") && pause < Duration::from_secs(2), "{reason}, {pause:?}");
    drop(edge);
    assert!(fleet.controls[0].ended().await?.success());
    Ok(())
}
