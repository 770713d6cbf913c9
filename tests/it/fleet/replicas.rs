//! Several control replicas form one fleet of edges, whichever replica is asked.

use std::{collections::HashSet, time::Duration};

use anyhow::{Context, Result, ensure};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use shared::wire::{
    internal::EDGES_PATH,
    stream::{Rejected, ToControl, ToEdge},
};
use tests::{
    fleet::Fleet,
    fleet_edge::FleetEdge,
    raw_edge::{RawEdge, hello},
    wait::until,
};
use tokio::task::JoinHandle;

/// The edges as a replica shows them.
pub(super) async fn edges(fleet: &Fleet, at: usize) -> Result<Vec<Value>> {
    let url = format!("{}{EDGES_PATH}", fleet.controls[at].internal);
    let shown: Value = fleet.http.get(url).bearer_auth(&fleet.key).send().await?.json().await?;
    Ok(shown["edges"].as_array().context("no edges")?.clone())
}

/// Takes and acknowledges whatever comes until the edge is sent away or the connection ends; gives the reason.
fn attend(mut edge: RawEdge) -> JoinHandle<Option<String>> {
    tokio::spawn(async move {
        loop {
            match edge.next().await {
                Ok(ToEdge::Goaway { reason, .. }) => return Some(reason),
                Ok(ToEdge::Events(events)) => edge.applied = events.last,
                Ok(ToEdge::Heartbeat { .. }) => {}
                Ok(ToEdge::Welcome(_)) | Err(_) => return None,
            }
            if edge.ack(Vec::new()).await.is_err() {
                return None;
            }
        }
    })
}

fn counts(body: &Value) -> (u64, u64) {
    (body["acked"].as_u64().unwrap_or(99), body["members"].as_u64().unwrap_or(99))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_counts_the_edges_of_every_replica() -> Result<()> {
    let fleet = Fleet::start(2).await?;
    let product = fleet.create_product(0).await?;
    let mut attended = Vec::new();
    for (edge, at) in [("e1", 0), ("e2", 1)] {
        let key = fleet.edge_key(edge)?;
        let internal = &fleet.controls[at].internal;
        attended.push(attend(RawEdge::connect(internal, &key, hello(edge, None, 0)).await?.0));
    }
    // The third is at the second replica, and is slow: it says that it lives, and nothing of what it got.
    let key = fleet.edge_key("e3")?;
    let (mut slow, welcome) =
        RawEdge::connect(&fleet.controls[1].internal, &key, hello("e3", None, 0)).await?;
    let begin = welcome.head;
    for at in [0, 1] {
        slow.ack(Vec::new()).await?;
        let (status, body) = fleet.create_redirection(at, &product, None, "?wait=edges&timeout=2s").await?;
        ensure!(status == StatusCode::ACCEPTED && counts(&body) == (2, 3), "at {at}: {status} {body}");
        ensure!(body["lagging"] == json!(["e3"]) && body["unreachable"] == json!([]), "{body}");
        ensure!(body.get("incomplete").is_none(), "{body}");
    }
    // It catches up while somebody waits at the replica that it is not at.
    let waiting = fleet.create_redirection(0, &product, None, "?wait=edges&timeout=20s");
    let (answer, followed) = tokio::join!(waiting, slow.follow(begin + 3));
    followed?;
    let (status, body) = answer?;
    ensure!(status == StatusCode::CREATED && counts(&body) == (3, 3), "{status} {body}");
    println!("acknowledged by three edges at two replicas in {} ms", body["ms"]);

    // A rejection that was told to the other replica is no acknowledgement.
    let waiting = fleet.create_redirection(0, &product, Some("BAD"), "?wait=edges&timeout=2s");
    let reject = async {
        while slow.applied < begin + 4 {
            if let ToEdge::Events(events) = slow.next().await? {
                slow.applied = events.last;
            }
        }
        slow.ack(vec![Rejected { rev: begin + 4, reason: "test".to_owned() }]).await
    };
    let (answer, rejected) = tokio::join!(waiting, reject);
    rejected?;
    let (status, body) = answer?;
    ensure!(status == StatusCode::ACCEPTED && body["lagging"] == json!(["e3"]), "{status} {body}");
    let refused = async || {
        let shown = edges(&fleet, 0).await?;
        Ok(shown.iter().any(|edge| edge["edgeId"] == "e3" && edge["rejected"] == json!([begin + 4])))
    };
    until("the rejection is shown at the other replica", refused).await?;

    // Both show the whole fleet: in the list for operators, at the API, and in the metrics.
    let attended: JoinHandle<_> = {
        attended.push(attend(slow));
        tokio::spawn(futures(attended))
    };
    for at in [0, 1] {
        until("every edge is shown", async || {
            let shown = edges(&fleet, at).await?;
            let names: Vec<_> = shown.iter().filter_map(|edge| edge["edgeId"].as_str()).collect();
            let replicas: HashSet<_> = shown.iter().filter_map(|edge| edge["replica"].as_str()).collect();
            let is_even = shown.iter().all(|edge| edge["lag"] == 0 && edge["reachable"] == true);
            Ok(names == ["e1", "e2", "e3"] && replicas.len() == 2 && is_even)
        })
        .await?;
        let (_, status) = fleet.call(at, Method::GET, "/status", None).await?;
        ensure!(status["edges"].as_array().is_some_and(|edges| edges.len() == 3), "{status}");
        let metrics = fleet.controls[at].metrics(&fleet.http).await?;
        for (name, expected) in [
            ("waymark_control_edges{state=\"reachable\"}", 3.0),
            ("waymark_control_replicas", 2.0),
            ("waymark_control_streams", [1.0, 2.0][at]),
            ("waymark_control_edge_lag_revs{edge=\"e3\"}", 0.0),
        ] {
            ensure!(metrics.get(name) == Some(&expected), "{name} at {at}: {:?}", metrics.get(name));
        }
    }
    attended.abort();
    Ok(())
}

async fn futures(all: Vec<JoinHandle<Option<String>>>) {
    for one in all {
        let _ = one.await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_edge_that_moves_ends_its_old_session() -> Result<()> {
    let fleet = Fleet::start(2).await?;
    let product = fleet.create_product(0).await?;
    let key = fleet.edge_key("e1")?;
    let (mut old, _) = RawEdge::connect(&fleet.controls[0].internal, &key, hello("e1", None, 0)).await?;
    old.ack(Vec::new()).await?;
    let (new, _) = RawEdge::connect(&fleet.controls[1].internal, &key, hello("e1", None, 0)).await?;
    let new = attend(new);
    ensure!(old.until_goaway().await?.0.contains("newer connection"));
    // What the old one may still say counts no more.
    let _ = old.say(&ToControl::Ack { applied: 99, rejected: Vec::new() }).await;
    for at in [0, 1] {
        let (status, body) = fleet.create_redirection(at, &product, None, "?wait=edges&timeout=20s").await?;
        ensure!(status == StatusCode::CREATED && counts(&body) == (1, 1), "{status} {body}");
        let shown = edges(&fleet, at).await?;
        ensure!(shown.len() == 1 && shown[0]["applied"].as_u64() < Some(99), "{shown:?}");
    }
    new.abort();

    // Without a key it is no longer of the fleet, once its lease has run out.
    fleet.control_ok(&["edge-keys", "revoke", "--edge", "e1"])?;
    until("the edge is forgotten", async || {
        Ok(edges(&fleet, 0).await?.is_empty() && edges(&fleet, 1).await?.is_empty())
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edges_spread_over_the_replicas() -> Result<()> {
    let mut fleet = Fleet::start(1).await?;
    let names: Vec<String> = (1..=6).map(|n| format!("e{n}")).collect();
    let mut attended = Vec::new();
    for name in &names {
        let key = fleet.edge_key(name)?;
        let internal = fleet.controls[0].internal.clone();
        let edge = attend(RawEdge::connect(&internal, &key, hello(name, None, 0)).await?.0);
        attended.push((name.clone(), key, edge));
    }
    // A second replica comes up: edges go there, one after the other, until each has half of them.
    fleet.add_control()?;
    let (first, second) = (fleet.controls[0].internal.clone(), fleet.controls[1].internal.clone());
    let mut moves = tokio::task::JoinSet::new();
    for (name, key, edge) in attended {
        let (first, second) = (first.clone(), second.clone());
        moves.spawn(async move {
            let reason = edge.await?.context("it was not sent away")?;
            ensure!(reason.contains("fewer"), "{reason}");
            // It has one other replica to go to, and stays there.
            let (edge, _) = RawEdge::connect(&second, &key, hello(&name, None, 0)).await?;
            let reason = attend(edge).await?;
            anyhow::bail!("{name} was sent away from the second one too: {reason:?}, {first}")
        });
    }
    let spread = until("each has half of them", async || {
        let shown = edges(&fleet, 0).await?;
        let here: Vec<_> = shown.iter().map(|edge| edge["replica"].to_string()).collect();
        let replicas: HashSet<_> = here.iter().collect();
        let even = replicas.iter().all(|id| here.iter().filter(|other| other == id).count() == 3);
        Ok(shown.len() == 6 && replicas.len() == 2 && even)
    });
    tokio::select! {
        spread = spread => spread?,
        Some(ended) = moves.join_next() => ended??,
    }
    // Then nobody moves any more: some rounds later it is as it was.
    let settled = tokio::time::timeout(Duration::from_secs(3), moves.join_next()).await;
    ensure!(settled.is_err(), "an edge moved on: {settled:?}");
    Ok(())
}

/// Waits until each edge leads a short id to a target.
async fn all_lead(fleet: &Fleet, edges: &[FleetEdge], short_id: &str, target: &str) -> Result<()> {
    for edge in edges {
        let (status, location) = edge.scan(&fleet.http, short_id).await?;
        ensure!(
            status == StatusCode::TEMPORARY_REDIRECT && location.as_deref() == Some(target),
            "{}: {short_id} leads to {location:?} ({status})",
            edge.name
        );
    }
    Ok(())
}

/// Kill -9 of a replica: edges move, `wait=edges` stays truthful, the publisher's lease moves.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_is_killed() -> Result<()> {
    let mut fleet = Fleet::start(2).await?;
    let product = fleet.create_product(0).await?;
    let three = [fleet.add_edge("e1")?, fleet.add_edge("e2")?, fleet.add_edge("e3")?];
    for edge in &three {
        edge.until_live(&fleet.http, 0).await?;
    }
    let (status, body) =
        fleet.create_redirection(1, &product, Some("ONE"), "?wait=edges&timeout=20s").await?;
    ensure!(status == StatusCode::CREATED && counts(&body) == (3, 3), "{status} {body}");
    all_lead(&fleet, &three, "ONE", "https://example.com/").await?;
    let publishes = async |fleet: &Fleet, at: usize| {
        let metrics = fleet.controls[at].metrics(&fleet.http).await?;
        anyhow::Ok(metrics.get("waymark_control_publisher_leading") == Some(&1.0))
    };
    until("one of them publishes", async || Ok(publishes(&fleet, 0).await? || publishes(&fleet, 1).await?))
        .await?;
    let victim = usize::from(!publishes(&fleet, 0).await?);
    let other = 1 - victim;
    fleet.controls[victim].kill()?;
    // Right after it: an answer of 201 means that all three have it, each of 202 names who may not.
    let mut done = 0;
    let mut partial = 0;
    for n in 0.. {
        let target = format!("https://example.com/{n}");
        let path = "/redirections/ONE?wait=edges&timeout=2s";
        let body = json!({"defaultRedirectUrl": target});
        let (status, body) = fleet.call(other, Method::PUT, path, Some(body)).await?;
        let (acked, members) = counts(&body);
        let lagging = body["lagging"].as_array().map_or(0, Vec::len) as u64;
        let unreachable = body["unreachable"].as_array().map_or(0, Vec::len) as u64;
        ensure!(acked + lagging == members && members + unreachable == 3, "{status} {body}");
        if status == StatusCode::OK && members == 3 {
            all_lead(&fleet, &three, "ONE", &target).await?;
            done += 1;
            if done == 20 {
                break;
            }
        } else {
            partial += 1;
            ensure!(partial < 20, "{status} {body}");
        }
    }
    println!("{partial} changes were not acknowledged by all three, then {done} were");
    until("the other publishes", async || publishes(&fleet, other).await).await?;
    for edge in &three {
        edge.until_live(&fleet.http, 0).await?;
    }
    let shown = edges(&fleet, other).await?;
    let replicas: HashSet<_> = shown.iter().map(|edge| edge["replica"].to_string()).collect();
    ensure!(shown.len() == 3 && replicas.len() == 1, "{shown:?}");

    // The view is carried on: an edge that has nothing reads it.
    fleet.create_redirection(other, &product, Some("TWO"), "?wait=edges&timeout=20s").await?;
    fleet.restart_control(victim)?;
    until("both run", async || {
        let metrics = fleet.controls[other].metrics(&fleet.http).await?;
        Ok(metrics.get("waymark_control_replicas") == Some(&2.0))
    })
    .await?;
    all_lead(&fleet, &three, "TWO", "https://example.com/").await
}
