//! One test suite over both backings of an edge, with the real control behind each.

use std::{num::NonZeroU32, sync::Arc};

use anyhow::{Context, Result, ensure};
use edge::{
    EdgeKey,
    backing::{Backing, Changes, Network, NetworkConfig},
};
use kernel::store::Db;
use shared::{
    networks::network_of,
    redirect::RedirectKey,
    time::UnixMillis,
    wire::{
        limits::{LimitReport, LimitedScans},
        spooled::{NewRecord, SpooledScans},
        stream::{Events, Rev, Start, ToControl, ToEdge},
        unknown::{UnknownCounts, UnknownReport},
    },
};
use standalone::backing::InProcess;
use tests::{db::Engine, fleet::Fleet, product::DEADLINE, raw_edge::hello};

use super::until;
use crate::store::redirections::{app_with_product, create};

/// The next run of events, which begins after `prev`.
async fn events(stream: &mut impl Changes, prev: Rev) -> Result<Arc<Events>> {
    let next = async {
        loop {
            match stream.next().await? {
                ToEdge::Events(events) => return Ok(events),
                ToEdge::Heartbeat { .. } => {}
                other => anyhow::bail!("{other:?}"),
            }
        }
    };
    let events: Arc<Events> = tokio::time::timeout(DEADLINE, next).await.context("no events")??;
    ensure!(events.prev == prev, "{events:?}");
    Ok(events)
}

/// What every backing does. `create` makes a link of a short id and gives its revision.
async fn conforms(backing: &impl Backing, mut create: impl AsyncFnMut(&str) -> Result<Rev>) -> Result<()> {
    let key = |short_id: &str| RedirectKey::new("tn.gg", short_id);
    let one = create("ONE").await?;
    let two = one + 1;
    let mut stream = backing.changes(hello("e1", None, 0)).await?;
    let ToEdge::Welcome(welcome) = stream.next().await? else { anyhow::bail!("no welcome") };
    ensure!((welcome.start, welcome.head) == (Start::Snapshot { at_rev: one }, one));
    ensure!(welcome.domains.len() == 1, "{:?}", welcome.domains);
    stream.send(ToControl::Ack { applied: one, rejected: Vec::new() }).await?;

    ensure!(create("TWO").await? == two);
    let run = events(&mut stream, one).await?;
    ensure!((run.last, run.items.len()) == (two, 1), "{run:?}");
    stream.send(ToControl::Resync { applied: one, reason: "test".to_owned() }).await?;
    ensure!(events(&mut stream, one).await?.last == two, "once more");

    let found = backing.lookup(&key("TWO")).await?;
    ensure!((found.complete, found.watermark) == (true, two) && found.epoch == welcome.epoch, "{found:?}");
    ensure!(found.value.is_some_and(|(rev, _)| rev == two));
    ensure!(backing.lookup(&key("NONE")).await?.value.is_none());
    // The view may be behind; what it says of itself is true.
    until("the view is there", async || {
        let found = backing.get(&key("ONE")).await;
        Ok(found.is_ok_and(|found| found.complete && found.watermark == two))
    })
    .await?;
    ensure!(backing.get(&key("ONE")).await?.value.is_some_and(|(rev, _)| rev == one));
    ensure!(backing.get(&key("NONE")).await?.value.is_none());

    let page = backing.page("tn.gg", "").await?;
    ensure!((&page.epoch, page.at_rev, page.more) == (&welcome.epoch, two, false), "{page:?}");
    let ids: Vec<_> = page.links.iter().map(|(folded, rev, _)| (&**folded, *rev)).collect();
    ensure!(ids == [("ONE", one), ("TWO", two)], "{ids:?}");
    ensure!(backing.page("tn.gg", "ONE").await?.links.len() == 1, "what follows");
    ensure!(backing.page("other.example", "").await?.links.is_empty(), "of one domain alone");

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
    let mut frames = Vec::new();
    record.write(&mut frames);
    record.write(&mut frames);
    let scans = SpooledScans { edge: "e1".into(), boot: 1, first_seq: 0, count: 2, frames: frames.into() };
    for _ in 0..2 {
        ensure!(backing.record_scans(&scans).await?.next_seq == 2, "and a repeat is taken once");
    }
    let scans = SpooledScans { first_seq: 2, ..scans };
    ensure!(backing.record_scans(&scans).await?.next_seq == 4, "and what follows");

    let mut counts = UnknownCounts::default();
    counts.add(1_760_000_000_000, "tn.gg", network_of([192, 0, 2, 7].into()));
    let report = UnknownReport { edge: "e1".into(), boot: 1, number: 1, counts: counts.take() };
    for _ in 0..2 {
        backing.record_unknown(&report).await?;
    }
    let created_at = UnixMillis(1);
    let said = LimitedScans { domain: "tn.gg".into(), folded: "ONE".into(), created_at, scans: 1 };
    backing.record_limits(&LimitReport { edge: "e1".into(), counts: vec![said] }).await?;

    drop(stream);
    let mut stream = backing.changes(hello("e1", Some(welcome.epoch.clone()), one)).await?;
    let ToEdge::Welcome(again) = stream.next().await? else { anyhow::bail!("no welcome") };
    ensure!((again.start, again.epoch) == (Start::Resume, welcome.epoch) && again.rules.is_empty());
    ensure!(events(&mut stream, one).await?.last == two, "what was missed");
    let mut stream = backing.changes(hello("e1", Some("another".into()), one)).await?;
    let ToEdge::Welcome(other) = stream.next().await? else { anyhow::bail!("no welcome") };
    ensure!(other.start == Start::Snapshot { at_rev: two }, "{:?}", other.start);
    Ok(())
}

async fn in_process_conforms(engine: Engine) -> Result<()> {
    let (made, product) = app_with_product(engine).await?;
    let backing = InProcess::new(made.app.clone());
    conforms(&backing, async |short_id| {
        Ok(create(&made, product, "https://example.com/", Some(short_id)).await?.rev)
    })
    .await?;
    counts_once(&made.app.core.db).await
}

/// Requests for unknown ids of a report that came twice are counted once.
async fn counts_once(db: &Db) -> Result<()> {
    let total: Option<i64> = match db {
        Db::Pg(pool) => {
            sqlx::query_scalar("SELECT SUM(requests)::bigint FROM unknown_scans").fetch_one(pool).await?
        }
        Db::Sqlite { read, .. } => {
            sqlx::query_scalar("SELECT SUM(requests) FROM unknown_scans").fetch_one(read).await?
        }
    };
    ensure!(total == Some(1), "{total:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_network_conforms() -> Result<()> {
    let fleet = Fleet::start(1).await?;
    let product = fleet.create_product(0).await?;
    let key_file = fleet.dir.join("edge.key");
    tests::product::write_key(&key_file, &fleet.edge_key("e1")?)?;
    let backing = Network::new(&NetworkConfig {
        control_urls: vec![fleet.controls[0].internal.clone()],
        control_ca: None,
        key: Arc::new(EdgeKey::open(&key_file)?),
        redis: fleet.redis.url().parse()?,
        redis_ca: None,
        shards: 1,
        lookups_per_second: NonZeroU32::new(1_000).context("zero")?,
    })?;
    conforms(&backing, async |short_id| {
        let (_, body) = fleet.create_redirection(0, &product, Some(short_id), "").await?;
        ensure!(body["shortId"] == short_id, "{body}");
        Ok(redirects::store::log::load_head(&mut fleet.db().read().await?).await?.head)
    })
    .await?;
    counts_once(fleet.db()).await
}

crate::on_both_engines!(in_process_conforms);
