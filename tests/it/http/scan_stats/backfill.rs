//! Scans that were stored before there were statistics are counted once, beside those that come in meanwhile.

use std::collections::BTreeMap;

use ::actions::store::actions::{self, NewAction};
use anyhow::Result;
use control::worker::move_scans;
use kernel::{
    domain::{grant::Limit, listing::ListRequest},
    store::{Ctx, listing::Selection},
};
use shared::{id::ActionId, time::UnixMillis};
use statistics::{
    service::backfill::{Step, follow, head, step},
    store::backfill::{Progress, read},
};
use tests::{db::Engine, product::PHONE};

use super::*;
use crate::http::webhooks::receiver::execute;

/// Works until the backfill is at its end; gives how many scans it counted.
pub(super) async fn finish(api: &Api) -> Result<u64> {
    let mut counted = 0;
    while let Step::Passed { counted: scans } = step(&api.made.app.statistics).await? {
        counted += scans;
    }
    Ok(counted)
}

/// How many rows a table has.
pub(super) async fn count(api: &Api, table: &str) -> Result<usize> {
    Ok(api.fingerprint().await?.get(table).map_or(0, Vec::len))
}

/// Puts scans back among actions, as a release without a store of scans leaves them.
async fn store_as_before(api: &Api) -> Result<()> {
    let scans = &api.made.app.actions.scans.pool;
    let request = ListRequest::default();
    let account = api.made.account;
    let selection = Selection { account, limit: &Limit::Account, request: &request, within: &[] };
    loop {
        let page = scans.page(&selection).await?;
        let ids: Vec<ActionId> = page.iter().map(|scan| scan.id).collect();
        let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
        for scan in page {
            let new = NewAction {
                id: scan.id,
                account,
                kind: scan.kind,
                thng: scan.thng,
                product: scan.product,
                timestamp: scan.timestamp,
                doc: Value::Object(scan.members),
            };
            actions::insert_counted(&mut tx, scan.created_at, &[new]).await?;
        }
        tx.commit().await?;
        if scans.delete(account, &ids).await? == 0 {
            return Ok(());
        }
    }
}

/// Hands over scans to an older release, which stores them among actions.
async fn take_as_before(api: &Api, first_seq: u64, records: &[ScanRecord]) -> Result<()> {
    take(api, first_seq, records).await?;
    store_as_before(api).await
}

/// Moves scans into their store until none may be moved now; gives how many, and whether none are left.
async fn move_some(api: &Api) -> Result<(usize, bool)> {
    let mut moved = 0;
    loop {
        let step = move_scans::step(&api.made.app).await?;
        moved += step.moved;
        if step.waits || step.is_done {
            return Ok((moved, step.is_done));
        }
    }
}

/// What is counted; the state of the backfill is no part of it.
async fn counts(api: &Api) -> Result<BTreeMap<String, Vec<String>>> {
    let mut all = api.fingerprint().await?;
    all.retain(|table, _| {
        ["scan_statistics", "scan_statistics_days", "scan_devices"].contains(&table.as_str())
    });
    Ok(all)
}

fn some(first: i64, count: i64) -> Vec<ScanRecord> {
    (first..first + count)
        .map(|n| {
            let ip = format!("203.0.113.{}", n % 9 * 25);
            let agent = [PHONE, ANDROID, ROBOT, DESKTOP][n as usize % 4];
            let language = ["de-CH", "en", "xx"][n as usize % 3];
            let record = scan(["ONE", "TWO"][n as usize % 2], NOW - n % 50 * HOUR / 2, &ip, agent);
            ScanRecord { language: Some(language.into()), ..record }
        })
        .collect()
}

async fn old_scans_are_counted_once_beside_new_ones(engine: Engine) -> Result<()> {
    let api = api(engine).await?;
    let project = super::super::operators::project(&api).await?;
    linked(&api, "ONE", &[&project]).await?;
    linked(&api, "TWO", &[]).await?;
    // Reported by a server: no scan of an edge, and in no statistics.
    let thng = text(&api.create("/thngs", json!({"name": "t"})).await?, "id")?;
    api.create("/actions/implicitScans", json!({"thng": thng})).await?;
    let all = some(0, 700);
    take(&api, 0, &all).await?;
    let expected = counts(&api).await?;
    assert!(expected["scan_statistics"].len() > 100);
    // As an older release leaves them: among actions, not counted, and not marked.
    store_as_before(&api).await?;
    execute(&api, "DELETE FROM scan_statistics").await?;
    execute(&api, "DELETE FROM scan_statistics_days").await?;
    execute(&api, "DELETE FROM scan_devices").await?;
    execute(&api, "UPDATE actions SET counted = NULL WHERE type = 'implicitScans'").await?;
    api.made.clock.advance(5 * 60 * 1_000);
    assert_eq!(finish(&api).await?, 0, "they may not be complete yet");
    assert_eq!(move_some(&api).await?, (0, false), "nothing is moved that is not counted");
    api.made.clock.advance(6 * 60 * 1_000);
    let first = step(&api.made.app.statistics).await?;
    assert!(matches!(first, Step::Passed { counted } if counted > 0), "{first:?}");
    let Step::Passed { counted: first } = first else { unreachable!() };
    // Postgres counts all of them in one step.
    assert_eq!(move_some(&api).await?, (first as usize, first == 700), "just what is counted is moved");
    // The rest, by two replicas at once, and new scans meanwhile; what is counted is moved.
    let more = some(700, 300);
    let (counted, also, taken, moved) =
        tokio::join!(finish(&api), finish(&api), take(&api, 700, &more), move_some(&api));
    taken?;
    assert_eq!(first + counted? + also?, 700);
    let (last, is_done) = move_some(&api).await?;
    assert_eq!((first as usize + moved?.0 + last, is_done), (700, true));
    assert_eq!(
        api.made.app.actions.scans.pool.count_since(api.made.account, UnixMillis(0), 2_000).await?,
        1_000
    );
    api.made.clock.advance(11 * 60 * 1_000);
    assert_eq!(finish(&api).await?, 0, "new scans were counted when they came");
    let found = counts(&api).await?;
    // The same as counting all of them when they come.
    let fresh = super::api(engine).await?;
    let again = super::super::operators::project(&fresh).await?;
    linked(&fresh, "ONE", &[&again]).await?;
    linked(&fresh, "TWO", &[]).await?;
    take(&fresh, 0, &all).await?;
    take(&fresh, 700, &more).await?;
    for (query, members) in [
        ("groupBy=city", &["country", "city"][..]),
        ("groupBy=link", &["link"][..]),
        ("groupBy=country&interval=day&timeZone=Europe/Berlin", &["from", "country"][..]),
        ("groupBy=system", &["system"][..]),
        ("groupBy=language", &["language"][..]),
        ("groupBy=device&interval=hour", &["from", "device"][..]),
    ] {
        let members: Vec<&str> = members.iter().copied().chain(["scans", "robots"]).collect();
        let range = format!("from={}&to={}&{query}", NOW - 48 * HOUR, NOW + HOUR);
        let (one, other) = (ask(&api, &range).await?, ask(&fresh, &range).await?);
        assert_eq!(rows(&one, &members), rows(&other, &members), "{query}");
        assert_eq!(one["totals"], other["totals"], "{query}");
    }
    assert_eq!(found["scan_devices"].len(), counts(&fresh).await?["scan_devices"].len());
    Ok(())
}

/// A start begins near the end, and not where the backfill was once done: it would read all that was stored since.
async fn the_backfill_follows_what_is_counted_already(engine: Engine) -> Result<()> {
    let api = api(engine).await?;
    linked(&api, "ONE", &[]).await?;
    linked(&api, "TWO", &[]).await?;
    let statistics = &api.made.app.statistics;
    let after = async || Ok::<_, anyhow::Error>(read(&mut api.made.app.core.db.read().await?).await?);
    take_as_before(&api, 0, &some(0, 10)).await?;
    let early = head(statistics).await?;
    follow(statistics, early).await?;
    assert_eq!(after().await?.after, 0, "what an older release stored is not counted yet");
    api.made.clock.advance(11 * 60 * 1_000);
    finish(&api).await?;
    assert_eq!(after().await?, Progress { after: early, is_done: true });
    take_as_before(&api, 10, &some(10, 20)).await?;
    let last = head(statistics).await?;
    assert_eq!(last, early + 20);
    follow(statistics, last).await?;
    assert_eq!(after().await?.after, last);
    follow(statistics, early).await?;
    assert_eq!(after().await?.after, last, "it never goes back");
    // What an older release stores when it comes back is counted.
    take_as_before(&api, 30, &some(30, 7)).await?;
    let before = ask(&api, "").await?["totals"].clone();
    for table in ["scan_statistics", "scan_statistics_days", "scan_devices"] {
        execute(&api, &format!("DELETE FROM {table}")).await?;
    }
    execute(&api, "UPDATE actions SET counted = NULL WHERE type = 'implicitScans'").await?;
    api.made.clock.advance(11 * 60 * 1_000);
    assert_eq!(finish(&api).await?, 7, "and nothing that the place is behind; {before}");
    Ok(())
}

/// Hits and counts are written together or not at all, of scans that are stored.
async fn a_batch_whose_counts_fail_is_stored_later_and_once(engine: Engine) -> Result<()> {
    let api = api(engine).await?;
    linked(&api, "ONE", &[]).await?;
    let records = [scan("ONE", NOW, "203.0.113.1", PHONE), scan("ONE", NOW, "203.0.113.2", PHONE)];
    execute(&api, "ALTER TABLE scan_statistics_days RENAME TO elsewhere").await?;
    assert!(take(&api, 0, &records).await.is_err());
    execute(&api, "ALTER TABLE elsewhere RENAME TO scan_statistics_days").await?;
    assert_eq!(count(&api, "scan_statistics").await? + count(&api, "scan_devices").await?, 0);
    let stored = api.get("/actions/implicitScans").await?.json();
    assert_eq!(stored.as_array().map(Vec::len), Some(2));
    assert_eq!(api.get("/redirections/ONE").await?.json()["hits"], 0);
    take(&api, 0, &records).await?;
    take(&api, 0, &records).await?;
    let totals = ask(&api, "").await?["totals"].clone();
    assert_eq!(totals, json!({"scans": 2, "newDevices": 2, "robots": 0}));
    assert_eq!(api.get("/redirections/ONE").await?.json()["hits"], 2);
    assert_eq!(api.get("/actions/implicitScans").await?.json(), stored);
    Ok(())
}

/// Several edges hand over scans of the same links at once: all add to the same rows.
async fn batches_at_once_lose_nothing(engine: Engine) -> Result<()> {
    let api = std::sync::Arc::new(api(engine).await?);
    let project = super::super::operators::project(&api).await?;
    linked(&api, "ONE", &[&project]).await?;
    linked(&api, "TWO", &[&project]).await?;
    let mut tasks = tokio::task::JoinSet::new();
    for edge in 0..4 {
        let api = api.clone();
        tasks.spawn(async move {
            let mut records = some(0, 60);
            if edge % 2 == 1 {
                records.reverse();
            }
            for (seq, records) in (0..).step_by(20).zip(records.chunks(20)) {
                let batch = ScanBatch {
                    edge: format!("e{edge}").into(),
                    boot: 1,
                    first_seq: seq,
                    records: records.to_vec(),
                };
                // An edge sends what was refused again.
                while let Err(error) = ingest(&api.made.app, &batch).await {
                    ensure!(error.to_string().contains("unavailable"), "{error}");
                }
            }
            Ok(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    let robots = some(0, 60).iter().filter(|one| one.user_agent.as_deref() == Some(ROBOT)).count() as i64;
    for query in
        ["", "interval=day&timeZone=Europe/Berlin", &format!("filter=project={project}"), "groupBy=link"]
    {
        let totals = ask(&api, query).await?["totals"].clone();
        assert_eq!(
            (&totals["scans"], &totals["robots"]),
            (&json!(240 - 4 * robots), &json!(4 * robots)),
            "{query}"
        );
    }
    Ok(())
}

crate::on_both_engines!(
    old_scans_are_counted_once_beside_new_ones,
    the_backfill_follows_what_is_counted_already,
    a_batch_whose_counts_fail_is_stored_later_and_once,
    batches_at_once_lose_nothing,
);
