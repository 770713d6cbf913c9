//! An edge with a full replica, with the real control, Redis and disk behind it, and without them.

use anyhow::{Result, ensure};
use reqwest::{Method, StatusCode};
use serde_json::json;
use shared::wire::internal::LINKS_PATH;
use tests::{fleet::Fleet, fleet_edge::FleetEdge};

use super::until;

async fn holds(fleet: &Fleet, edge: &FleetEdge, links: u64) -> Result<()> {
    until("every link is held", async || {
        let ready = edge.ready(&fleet.http).await?;
        Ok(ready["replica"]["state"] == "whole" && ready["replica"]["links"].as_u64() == Some(links))
    })
    .await
}

async fn shows(fleet: &Fleet, edge: &FleetEdge, expected: &[(&str, u16, Option<&str>)]) -> Result<()> {
    for (short_id, status, location) in expected {
        let (found, led) = edge.scan(&fleet.http, short_id).await?;
        ensure!((found.as_u16(), led.as_deref()) == (*status, *location), "{short_id}: {found} {led:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_replica_needs_no_network() -> Result<()> {
    let mut fleet = Fleet::start(1).await?;
    let product = fleet.create_product(0).await?;
    // More than a page, and a domain of which there is nothing.
    fleet.create_many(0, &product, 1_200).await?;
    fleet.control_ok(&["accounts", "domains", "add", "two.example"])?;
    let mut settings = fleet.redis_settings.clone();
    settings.push(("WAYMARK_EDGE_REPLICA", "full".to_owned()));
    let mut edge = fleet.add_edge_with("e1", settings)?;
    holds(&fleet, &edge, 1_200).await?;

    // What it acknowledges is what it shows.
    let wait = "?wait=edges&timeout=20s";
    for short_id in ["ONE", "TWO", "GONE"] {
        let (status, body) = fleet.create_redirection(0, &product, Some(short_id), wait).await?;
        ensure!(status == StatusCode::CREATED && body["acked"] == 1, "{status} {body}");
    }
    let target = json!({"defaultRedirectUrl": "https://example.com/two"});
    let (status, body) =
        fleet.call(0, Method::PUT, &format!("/redirections/TWO{wait}"), Some(target)).await?;
    ensure!(status == StatusCode::OK, "{status} {body}");
    let (status, body) = fleet.call(0, Method::DELETE, &format!("/redirections/GONE{wait}"), None).await?;
    ensure!(status.is_success(), "{status} {body}");
    let one = ("ONE", 307, Some("https://example.com/"));
    let two = ("TWO", 307, Some("https://example.com/two"));
    let (gone, none) = (("GONE", 404, None), ("NONE", 404, None));
    shows(&fleet, &edge, &[one, two, gone, none]).await?;

    // Pages are for edges alone.
    let url = format!("{}{LINKS_PATH}", fleet.controls[0].internal);
    let key = fleet.edge_key("e2")?;
    let long = "x".repeat(301);
    for (key, query, expected) in [
        ("", "?domain=tn.gg", 401),
        (&*fleet.key, "?domain=tn.gg", 401),
        (&*key, "", 400),
        (&*key, &*format!("?domain={long}"), 400),
        (&*key, &*format!("?domain=tn.gg&after={long}"), 400),
        (&*key, "?domain=other.example", 200),
        (&*key, "?domain=tn.gg&after=", 200),
    ] {
        let request = fleet.http.get(format!("{url}{query}")).header("authorization", key);
        let response = request.send().await?;
        ensure!(response.status().as_u16() == expected, "{query}: {}", response.status());
        let page: serde_json::Value = response.json().await?;
        let count = page["links"].as_array().map(Vec::len);
        let full = query.ends_with("after=").then_some(1_000);
        ensure!(expected != 200 || count == full.or(Some(0)), "{query}: {count:?}");
    }

    // Neither Redis nor control.
    fleet.redis.kill();
    fleet.controls[0].kill()?;
    until("control is missed", async || Ok(edge.ready(&fleet.http).await?["state"] == "STALE")).await?;
    shows(&fleet, &edge, &[one, two, gone, none]).await?;
    // Nor after a stop and a start.
    ensure!(edge.stop().await?.success());
    edge.start_again()?;
    let ready = edge.ready(&fleet.http).await?;
    ensure!(ready["boot"] == "disk" && ready["replica"]["links"] == 1_202, "{ready}");
    shows(&fleet, &edge, &[one, two, gone, none]).await?;

    // Control is back: the stream goes on from the disk.
    fleet.redis.start_again().await?;
    fleet.restart_control(0)?;
    edge.until_live(&fleet.http, 0).await?;
    let (status, body) = fleet.create_redirection(0, &product, Some("NEW"), wait).await?;
    ensure!(status == StatusCode::CREATED, "{status} {body}");
    shows(&fleet, &edge, &[one, two, gone, ("NEW", 307, Some("https://example.com/")), none]).await?;
    // Killed, it goes on from what it had written.
    edge.kill()?;
    edge.start_again()?;
    edge.until_live(&fleet.http, 0).await?;
    holds(&fleet, &edge, 1_203).await?;
    shows(&fleet, &edge, &[one, two, gone, ("NEW", 307, Some("https://example.com/")), none]).await
}
