//! The change stream over the real log: start, resume, snapshot, lag, heartbeats, waiting.

use std::{sync::Arc, time::Duration};

use anyhow::{Result, bail};
use futures_util::FutureExt as _;
use kernel::store::{Ctx, events};
use push::hub::{EdgeSession, Ended, Hub};
use redirects::{
    service::redirections,
    store::{log, redirections as table},
    writer::Lane,
};
use shared::{
    redirect::RedirectKey,
    wire::stream::{Epoch, Hello, Rev, Start, ToControl, ToEdge, Welcome},
};
use tests::{
    db::{Engine, TestApp},
    raw_edge,
};
use tokio_util::sync::CancellationToken;

use super::redirections::{app_with_product, create, execute};

/// Longest wait for something that must come.
const DEADLINE: Duration = Duration::from_secs(10);

super::super::on_both_engines!(
    a_new_edge_starts_from_a_snapshot_and_follows,
    an_edge_resumes_where_it_was,
    an_edge_from_another_epoch_starts_over,
    a_slow_edge_reads_the_log_itself,
    waiting_reports_which_edges_have_a_change,
    a_compacted_log_sends_edges_to_a_snapshot,
    a_copy_of_the_database_gets_a_new_epoch,
    the_log_of_another_epoch_is_not_streamed,
    a_fill_carries_the_watermark,
    a_cut_log_ends_the_stream,
    a_panicking_write_does_not_affect_others,
    requests_that_share_a_transaction_write_their_own_changes,
);

fn hello(epoch: Option<Epoch>, applied: Rev) -> Hello {
    raw_edge::hello("e1", epoch, applied)
}

async fn welcome(session: &mut EdgeSession) -> Result<Welcome> {
    match session.next().await? {
        ToEdge::Welcome(welcome) => Ok(welcome),
        other => bail!("not a welcome: {other:?}"),
    }
}

/// Takes messages until `applied` is reached; checks that no revision is skipped or doubled.
async fn follow(session: &mut EdgeSession, mut applied: Rev, until: Rev) -> Result<()> {
    tokio::time::timeout(DEADLINE, async {
        while applied < until {
            match session.next().await? {
                ToEdge::Events(events) => {
                    assert_eq!(events.prev, applied);
                    for event in &events.items {
                        applied += 1;
                        assert_eq!(event.rev, applied);
                    }
                    assert_eq!(events.last, applied);
                }
                ToEdge::Heartbeat { head, .. } => {
                    assert_eq!(head, applied, "a heartbeat never overtakes events")
                }
                other => bail!("unexpected: {other:?}"),
            }
        }
        Ok(())
    })
    .await?
}

async fn a_new_edge_starts_from_a_snapshot_and_follows(engine: Engine) -> Result<()> {
    let (made, product) = app_with_product(engine).await?;
    for _ in 0..3 {
        create(&made, product, "https://example.com/", None).await?;
    }
    let mut session = made.app.hub.connect(&hello(None, 0)).await?;
    let welcome = welcome(&mut session).await?;
    assert_eq!((welcome.start, welcome.head), (Start::Snapshot { at_rev: 3 }, 3));
    assert_eq!(welcome.domains.len(), 1);
    for _ in 0..4 {
        create(&made, product, "https://example.com/", None).await?;
    }
    follow(&mut session, 3, 7).await
}

async fn an_edge_resumes_where_it_was(engine: Engine) -> Result<()> {
    let (made, product) = app_with_product(engine).await?;
    for _ in 0..5 {
        create(&made, product, "https://example.com/", None).await?;
    }
    let mut session = made.app.hub.connect(&hello(Some(made.app.hub.epoch().clone()), 2)).await?;
    assert_eq!(welcome(&mut session).await?.start, Start::Resume);
    follow(&mut session, 2, 5).await?;
    session.receive(ToControl::Resync { applied: 1, reason: "test".to_owned() });
    follow(&mut session, 1, 5).await
}

async fn an_edge_from_another_epoch_starts_over(engine: Engine) -> Result<()> {
    let (made, product) = app_with_product(engine).await?;
    create(&made, product, "https://example.com/", None).await?;
    let epoch = made.app.hub.epoch().clone();
    for (epoch, applied) in [(Some("other".into()), 1), (Some(epoch), 2), (None, 0)] {
        let mut session = made.app.hub.connect(&hello(epoch, applied)).await?;
        assert_eq!(welcome(&mut session).await?.start, Start::Snapshot { at_rev: 1 });
    }
    Ok(())
}

async fn a_slow_edge_reads_the_log_itself(engine: Engine) -> Result<()> {
    let (made, product) = app_with_product(engine).await?;
    let mut session = made.app.hub.connect(&hello(None, 0)).await?;
    welcome(&mut session).await?;
    // More messages than the ring holds, while the session does not look.
    let made = Arc::new(made);
    let total: Rev = 2_600;
    for start in (0..total).step_by(100) {
        let items = (start..start + 100)
            .map(|_| Ok(super::redirections::draft(product, "https://example.com/", None)));
        let (caller, items, choice) = (made.caller(), items.collect(), Default::default());
        redirections::create_many(&made.app.redirects, &caller, items, choice, None, None).await?;
    }
    follow(&mut session, 0, total).await
}

async fn waiting_reports_which_edges_have_a_change(engine: Engine) -> Result<()> {
    let (made, product) = app_with_product(engine).await?;
    let hub = made.app.hub.clone();
    let alone = hub.wait_edges(0, Duration::from_millis(1)).await;
    assert_eq!((alone.members, alone.acked), (0, 0));

    let mut session = hub.connect(&hello(None, 0)).await?;
    welcome(&mut session).await?;
    let one = create(&made, product, "https://example.com/", None).await?;
    let late = hub.wait_edges(one.rev, Duration::from_millis(20)).await;
    assert_eq!((late.members, late.acked, late.lagging.len()), (1, 0, 1));

    let waiting = tokio::spawn({
        let hub = hub.clone();
        async move { hub.wait_edges(one.rev, DEADLINE).await }
    });
    follow(&mut session, 0, 1).await?;
    session.receive(ToControl::Ack { applied: 1, rejected: Vec::new() });
    let report = waiting.await?;
    assert_eq!((report.members, report.acked, report.lagging.len()), (1, 1, 0));
    assert_eq!(hub.edges()[0].lag, 0);

    // What an edge refused is not acknowledged, however far it goes on.
    let two = create(&made, product, "https://example.com/", None).await?;
    follow(&mut session, 1, 2).await?;
    let rejected = vec![shared::wire::stream::Rejected { rev: 2, reason: "test".to_owned() }];
    session.receive(ToControl::Ack { applied: 2, rejected });
    let report = hub.wait_edges(two.rev, Duration::from_millis(20)).await;
    assert_eq!((report.acked, report.lagging.len()), (0, 1));
    Ok(())
}

async fn a_compacted_log_sends_edges_to_a_snapshot(engine: Engine) -> Result<()> {
    let (made, product) = app_with_product(engine).await?;
    for _ in 0..6 {
        create(&made, product, "https://example.com/", None).await?;
    }
    let mut tx = made.app.core.db.begin(&Ctx::default()).await?;
    let far = i64::MAX;
    assert_eq!(log::compact(&mut tx, far, 2, 3).await?, 3, "a step is bounded");
    assert_eq!(log::compact(&mut tx, far, 2, 3).await?, 1, "the last two are kept");
    assert_eq!(log::compact(&mut tx, far, 2, 3).await?, 0);
    tx.commit().await?;
    let epoch = made.app.hub.epoch().clone();
    let mut old = made.app.hub.connect(&hello(Some(epoch.clone()), 3)).await?;
    assert_eq!(welcome(&mut old).await?.start, Start::Snapshot { at_rev: 6 });
    // A replica that holds nothing of it in memory.
    let hub = Hub::open(made.app.core.db.clone()).await?;
    let mut fresh = hub.connect(&hello(Some(epoch), 4)).await?;
    assert_eq!(welcome(&mut fresh).await?.start, Start::Resume);
    follow(&mut fresh, 4, 6).await?;
    // An open session whose place was compacted away is told to come anew.
    fresh.receive(ToControl::Resync { applied: 1, reason: "test".to_owned() });
    let told = tokio::time::timeout(DEADLINE, async {
        loop {
            if let ToEdge::Goaway { .. } = fresh.next().await? {
                return anyhow::Ok(());
            }
        }
    });
    told.await?
}

async fn a_copy_of_the_database_gets_a_new_epoch(engine: Engine) -> Result<()> {
    let made = TestApp::new(engine).await?;
    let epoch = made.app.hub.epoch().clone();
    let mut tx = made.app.core.db.begin(&Ctx::default()).await?;
    let bound = log::load_head(&mut tx).await?.bound_to;
    assert_eq!(log::bind(&mut tx, "fresh", &bound).await?.epoch, epoch);
    assert_eq!(&*log::bind(&mut tx, "fresh", "elsewhere").await?.epoch, "fresh");
    Ok(())
}

/// Model: `stream_that_does_not_see_the_epoch`.
async fn the_log_of_another_epoch_is_not_streamed(engine: Engine) -> Result<()> {
    let (made, product) = app_with_product(engine).await?;
    create(&made, product, "https://example.com/1", Some("A")).await?;
    let epoch = made.app.hub.epoch().clone();
    let read = async |epoch: &str| log::list_after(&mut made.app.core.db.read().await?, epoch, 0, 10).await;
    assert_eq!(read(&epoch).await?.len(), 1);
    execute(&made, "UPDATE log_head SET epoch = 'fresh'").await?;
    assert_eq!(read(&epoch).await?, [], "the rows have the next revision, but are of another history");
    assert_eq!(read("fresh").await?.len(), 1);
    let anew = made.app.hub.connect(&hello(Some(epoch), 0)).await;
    assert!(anew.is_err(), "the ring is of the history before");
    Ok(())
}

async fn a_fill_carries_the_watermark(engine: Engine) -> Result<()> {
    let (made, product) = app_with_product(engine).await?;
    create(&made, product, "https://example.com/1", Some("A")).await?;
    create(&made, product, "https://example.com/2", Some("B")).await?;
    let mut conn = made.app.core.db.read().await?;
    let fill = table::load_fill(&mut conn, &RedirectKey::new("tn.gg", "A")).await?;
    assert_eq!((fill.watermark, fill.complete), (2, true));
    let (rev, value) = fill.value.unwrap();
    assert_eq!((rev, &*value.target), (1, "https://example.com/1"));
    let absent = table::load_fill(&mut conn, &RedirectKey::new("tn.gg", "C")).await?;
    assert_eq!((absent.watermark, absent.value), (2, None));
    Ok(())
}

async fn a_cut_log_ends_the_stream(engine: Engine) -> Result<()> {
    let made = TestApp::without_tasks(engine).await?;
    execute(&made, "UPDATE log_head SET head = 5").await?;
    let hub = Hub::open(made.app.core.db.clone()).await?;
    let stream = tokio::spawn(hub.run(CancellationToken::new()));
    execute(&made, "UPDATE log_head SET head = 4").await?;
    assert_eq!(tokio::time::timeout(DEADLINE, stream).await??, Ended::OtherHistory);
    Ok(())
}

async fn a_panicking_write_does_not_affect_others(engine: Engine) -> Result<()> {
    let (made, product) = app_with_product(engine).await?;
    let ctx = Ctx::default();
    let poison = made.app.redirects.writer.submit::<(), _>(&ctx, (made.account, Lane::Urgent), |tx| {
        Box::pin(async move {
            log::take_revs(tx, 3).await?;
            panic!("poison")
        })
    });
    let (poisoned, created) = tokio::join!(poison, create(&made, product, "https://example.com/", None));
    assert_eq!(poisoned.unwrap_err().code(), shared::problem::Code::Internal);
    assert_eq!(created?.rev, 1, "what the panicking request took was given back");
    Ok(())
}

async fn requests_that_share_a_transaction_write_their_own_changes(engine: Engine) -> Result<()> {
    let (made, product) = app_with_product(engine).await?;
    let head = async || events::find_head(&mut made.app.core.db.read().await?).await;
    let before = head().await?;
    let (open, gate) = tokio::sync::oneshot::channel::<()>();
    let ctx = Ctx::default();
    // The others wait behind it, and so have one transaction.
    let first = made.app.redirects.writer.submit::<(), _>(&ctx, (made.account, Lane::Urgent), |_| {
        Box::pin(async move {
            let _ = gate.await;
            Ok(())
        })
    });
    let ask = |id| create(&made, product, "https://example.com/", Some(id));
    let (first, a, again, b, c) =
        tokio::join!(first, ask("A"), ask("A"), ask("B"), async { drop(open) }.then(|()| ask("C")));
    first?;
    assert_eq!(again.unwrap_err().code(), shared::problem::Code::ShortIdTaken);
    let made_of = [a?, b?, c?];
    assert_eq!([made_of[0].rev, made_of[1].rev, made_of[2].rev], [1, 2, 3], "the refused one took none");
    let mut conn = made.app.core.db.read().await?;
    let changes = log::list_after(&mut conn, made.app.hub.epoch(), 0, 10).await?;
    assert_eq!(changes.iter().map(|event| event.rev).collect::<Vec<_>>(), [1, 2, 3]);
    for (id, made_of) in ["A", "B", "C"].into_iter().zip(made_of) {
        let stored = table::find(&mut conn, "tn.gg", id, made.account).await?;
        assert_eq!(stored, Some(made_of), "the answer is what is stored");
    }
    drop(conn);
    assert_eq!(head().await?, before + 3, "an event of each that was kept");
    Ok(())
}
