//! Links that end after a number of scans: what control does with the counts of edges.

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use kernel::store::Ctx;
use push::store::edge_keys;
use redirects::store::{log, redirections};
use serde_json::{Value, json};
use shared::{
    redirect::RedirectKey,
    time::UnixMillis,
    wire::{
        limits::{LimitReport, LimitedScans, MAX_COUNTS},
        stream::Change,
    },
};
use statistics::{
    service::{scan_limits::record, unknown_scans},
    store::unknown_scans::begin_report,
};
use tests::{db::Engine, json::merged};

use super::Api;

crate::on_both_engines!(
    counts_of_edges_end_a_link_and_change_nothing_else,
    counts_of_edges_that_are_gone_are_added_up,
);

const PATH: &str = "/redirections/ABC";

/// Has an edge report what it counted; gives what control says is counted.
async fn report(api: &Api, edge: &str, scans: u32, created_at: i64) -> Result<Value> {
    let reported = LimitedScans {
        domain: "tn.gg".into(),
        folded: "ABC".into(),
        created_at: UnixMillis(created_at),
        scans,
    };
    record(&api.made.app.core, &LimitReport { edge: edge.into(), counts: vec![reported] }).await?;
    Ok(api.get(PATH).await?.json()["countedScans"].take())
}

async fn counts_of_edges_end_a_link_and_change_nothing_else(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let core = &api.made.app.core;
    let product =
        api.create("/products", json!({"name": "p"})).await?["id"].as_str().context("id")?.to_owned();
    let body = json!({"platformId": product, "shortId": "ABC", "defaultRedirectUrl": "https://example.com/",
        "maxScans": 5, "title": "Poster"});
    let made = api.post("/redirections", json!([body])).await?.json();
    let at = made[0]["createdAt"].as_i64().or(api.get(PATH).await?.json()["createdAt"].as_i64());
    let at = at.context("createdAt")?;
    let before = api.get(PATH).await?;
    ensure!(before.json()["countedScans"] == 0, "{before:?}");
    let head = async || anyhow::Ok(log::load_head(&mut core.db.read().await?).await?.head);
    let first = head().await?;

    ensure!(report(&api, "e1", 2, at).await? == 2);
    ensure!(report(&api, "e2", 2, at).await? == 4);
    // Once more, late, and of an earlier link of this short id.
    for (edge, scans, at) in [("e1", 2, at), ("e2", 1, at), ("e1", 9, at - 1)] {
        ensure!(report(&api, edge, scans, at).await? == 4, "{edge} {scans} {at}");
    }
    ensure!(head().await? == first + 2, "what is known already is not published");
    let after = api.get(PATH).await?;
    ensure!(after.header("etag") == before.header("etag"), "{after:?}");
    let mut same = after.json();
    same["countedScans"] = json!(0);
    ensure!(same == before.json(), "{same}");

    // What edges get: by the log, and by a look-up.
    let scans = json!({"e1": 2, "e2": 2});
    let mut conn = core.db.read().await?;
    let epoch = log::load_head(&mut conn).await?.epoch;
    let events = log::list_after(&mut conn, &epoch, first + 1, 9).await?;
    ensure!(events.len() == 1, "{events:?}");
    for event in events {
        let Change::Redirect(_, Some(link)) = event.change else { anyhow::bail!("{event:?}") };
        ensure!(serde_json::to_value(&*link)?["availability"]["scans"] == scans, "{link:?}");
    }
    let fill = redirections::load_fill(&mut conn, &RedirectKey::new("tn.gg", "ABC")).await?;
    ensure!(serde_json::to_value(&*fill.value.context("a value")?.1)?["availability"]["scans"] == scans);
    drop(conn);

    // At the limit it has ended, and a PUT that leaves it out changes nothing of that.
    ensure!(report(&api, "e1", 3, at).await? == 5);
    let closed = async || {
        let answer = api.post(&format!("{PATH}/preview"), json!({})).await?;
        anyhow::Ok(answer.json()["closed"].take())
    };
    ensure!(closed().await? == "ended");
    let put = async |more: Value| {
        let body = merged(json!({"defaultRedirectUrl": "https://example.com/2"}), &more);
        let answer = api.put(PATH, body).await?.must_be(200)?;
        anyhow::Ok(answer.json())
    };
    for (more, counted, expected) in [
        (json!({}), json!(5), json!("ended")),
        (json!({"maxScans": 5}), json!(5), json!("ended")),
        (json!({"maxScans": 6}), json!(5), Value::Null),
        (json!({"maxScans": null}), Value::Null, Value::Null),
        (json!({"maxScans": 4}), json!(5), json!("ended")),
    ] {
        let found = put(more.clone()).await?;
        ensure!(found["countedScans"] == counted && found["title"] == "Poster", "{more}: {found}");
        ensure!(closed().await? == expected, "{more}");
    }
    // However much an edge says, its part is at most the limit: a higher limit opens the link again.
    ensure!(report(&api, "e1", u32::MAX, at).await? == 6);
    put(json!({"maxScans": 7})).await?;
    ensure!(closed().await? == Value::Null);
    // Without a limit nothing counts.
    put(json!({"maxScans": null})).await?;
    report(&api, "e3", 1, at).await?;
    ensure!(put(json!({"maxScans": 7})).await?["countedScans"] == 6);
    let reported =
        LimitedScans { domain: "no.gg".into(), folded: "A".into(), created_at: UnixMillis(1), scans: 1 };
    let unknown = LimitReport { edge: "e1".into(), counts: vec![reported.clone()] };
    record(core, &unknown).await?;
    let large = LimitReport { edge: "e1".into(), counts: vec![reported; MAX_COUNTS + 1] };
    ensure!(record(core, &large).await.is_err());
    Ok(())
}

async fn counts_of_edges_that_are_gone_are_added_up(engine: Engine) -> Result<()> {
    const DAY_MS: i64 = 24 * 60 * 60 * 1_000;
    let api = Api::new(engine).await?;
    let core = &api.made.app.core;
    let product = api.create("/products", json!({"name": "p"})).await?["id"].clone();
    let body = json!({"platformId": product, "shortId": "ABC", "defaultRedirectUrl": "https://example.com/",
        "maxScans": 100});
    api.call(Method::POST, "/redirections", Some(body)).await?.must_be(200)?;
    let at = api.get(PATH).await?.json()["createdAt"].as_i64().context("createdAt")?;
    let now = core.clock.now().0;
    let mut tx = core.db.begin(&Ctx::default()).await?;
    // `old` and `older` are gone; `late` was a moment ago, and `back` has another key. `local` needs none.
    for (edge, revoked) in [
        ("old", Some(now - 31 * DAY_MS)),
        ("older", Some(now - 90 * DAY_MS)),
        ("late", Some(now - 29 * DAY_MS)),
        ("back", Some(now - 31 * DAY_MS)),
        ("back", None),
        ("e1", None),
    ] {
        let key = random_hash()?;
        let seq = edge_keys::insert(&mut tx, edge, &key, now - 99 * DAY_MS).await?;
        if let Some(at_ms) = revoked {
            ensure!(edge_keys::revoke(&mut tx, seq, at_ms).await?);
        }
    }
    tx.commit().await?;
    let edges = ["old", "older", "late", "back", "local"];
    for (edge, scans) in edges.into_iter().zip(1..) {
        report(&api, edge, scans, at).await?;
    }
    let stored = async || {
        let fill =
            redirections::load_fill(&mut core.db.read().await?, &RedirectKey::new("tn.gg", "ABC")).await?;
        let link = serde_json::to_value(&*fill.value.context("a value")?.1)?;
        anyhow::Ok(link["availability"]["scans"].clone())
    };
    ensure!(report(&api, "e1", 10, at).await? == 25, "no scan is lost");
    let expected = json!({"": 3, "late": 3, "back": 4, "local": 5, "e1": 10});
    ensure!(stored().await? == expected, "{}", stored().await?);
    ensure!(report(&api, "e1", 11, at).await? == 26);
    ensure!(stored().await?[""] == 3, "once");

    // Of reports about unknown ids the last one of each edge is known, as long as it can come again.
    let is_first = async |edge: &str| {
        let mut tx = core.db.begin(&Ctx::default()).await?;
        let is_first = begin_report(&mut tx, edge, 1, 1).await?;
        tx.commit().await?;
        anyhow::Ok(is_first)
    };
    for edge in edges {
        ensure!(is_first(edge).await?, "{edge}");
    }
    unknown_scans::purge(core).await?;
    for (edge, expected) in edges.into_iter().zip([true, true, false, false, false]) {
        ensure!(is_first(edge).await? == expected, "{edge}");
    }
    Ok(())
}

fn random_hash() -> Result<[u8; 32]> {
    let mut hash = [0; 32];
    getrandom::fill(&mut hash).map_err(|error| anyhow::anyhow!("{error}"))?;
    Ok(hash)
}
