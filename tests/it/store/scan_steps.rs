//! A batch of scans whose intake is killed between its two transactions, and sent again.

use std::{sync::atomic::Ordering, time::Duration};

use actions::store::scans::lock_cursor;
use anyhow::{Context, Result, ensure};
use control::worker::ingest_scans::ingest;
use kernel::{
    domain::{action::Action, listing::ListRequest, page::PageRequest},
    store::Ctx,
};
use redirects::service::redirections::{self, DomainChoice};
use scan_store::Boot;
use shared::{id::ThngId, wire::scan::ScanBatch};
use tests::{
    db::{Engine, TestApp, random16},
    sql,
};

use super::{
    redirections::{app_with_product, create, execute},
    scans::{PHONE, batch, record},
};

super::super::on_all_scan_stores!(
    a_batch_that_was_half_taken_is_taken_once,
    a_batch_comes_again_in_other_pieces,
    two_tries_at_once_store_a_batch_once,
    a_scan_stays_what_it_was_when_it_was_stored,
    a_scan_of_a_strange_clock_is_an_action,
    a_profile_that_is_rebuilt_meanwhile_counts_each_scan_once,
);

/// Takes a batch until it has come so far; there the process is killed.
pub(crate) async fn take_until(
    made: &TestApp,
    batch: &ScanBatch,
    is_so_far: impl AsyncFn() -> Result<bool>,
) -> Result<()> {
    let taking = ingest(&made.app, batch);
    tokio::pin!(taking);
    let mut looks = tokio::time::interval(Duration::from_millis(5));
    loop {
        tokio::select! {
            taken = &mut taking => anyhow::bail!("it was not held up: {taken:?}"),
            _ = looks.tick() => {
                if is_so_far().await? {
                    return Ok(());
                }
            }
        }
    }
}

/// Takes a batch as far as its scans are stored, and not what follows from them.
pub(crate) async fn take_half(made: &TestApp, batch: &ScanBatch) -> Result<()> {
    let mut held = made.app.core.db.begin(&Ctx::default()).await?;
    lock_cursor(&mut held, &batch.edge, batch.boot).await?;
    let end = batch.first_seq + batch.records.len() as u64;
    let boot = Boot { edge: &batch.edge, boot: batch.boot };
    let scans = &made.app.actions.scans.pool;
    take_until(made, batch, async || Ok(scans.find_next_seq(boot).await? == Some(end))).await
}

async fn actions(made: &TestApp) -> Result<Vec<Action>> {
    let request = ListRequest {
        page: PageRequest { per_page: 100, ..PageRequest::default() },
        ..ListRequest::default()
    };
    let scope = actions::service::actions::Scope::Account;
    Ok(actions::service::actions::list(&made.app.actions, &made.caller(), scope, "implicitScans", &request)
        .await?
        .items)
}

async fn hits(made: &TestApp, id: &str) -> Result<i64> {
    Ok(redirections::find(&made.app.redirects, &made.caller(), DomainChoice::default(), id).await?.hits)
}

async fn events(made: &TestApp) -> Result<i64> {
    const SQL: &str = "SELECT COUNT(*) FROM events WHERE kind = 'action'";
    sql::count(&made.app.core.db, SQL).await
}

async fn a_batch_that_was_half_taken_is_taken_once(engine: Engine) -> Result<()> {
    let (made, product) = app_with_product(engine).await?;
    create(&made, product, "https://example.com/", Some("A")).await?;
    let records: Vec<_> = (0..3).map(|n| record("A", PHONE, 1_000 + n)).collect();
    let first = batch(1, 0, &records);
    take_half(&made, &first).await?;
    ensure!(actions(&made).await?.len() == 3, "they are stored");
    ensure!((hits(&made, "A").await?, events(&made).await?) == (0, 0), "nothing follows yet");
    for _ in 0..2 {
        ensure!(ingest(&made.app, &first).await?.next_seq == 3);
        ensure!(actions(&made).await?.len() == 3);
        ensure!((hits(&made, "A").await?, events(&made).await?) == (3, 3));
    }
    ensure!(made.app.intake.stored.load(Ordering::Relaxed) == 3);
    ensure!(made.app.intake.missing.load(Ordering::Relaxed) == 0);
    Ok(())
}

async fn a_batch_comes_again_in_other_pieces(engine: Engine) -> Result<()> {
    let (made, product) = app_with_product(engine).await?;
    create(&made, product, "https://example.com/", Some("A")).await?;
    let records: Vec<_> = (0..9).map(|n| record("A", PHONE, 1_000 + n)).collect();
    take_half(&made, &batch(1, 0, &records[..6])).await?;
    for (begin, end) in [(0, 2), (1, 4), (0, 9), (3, 6)] {
        let receipt = ingest(&made.app, &batch(1, begin as u64, &records[begin..end])).await?;
        ensure!(receipt.next_seq >= end as u64, "{begin}..{end}: {receipt:?}");
        ensure!(hits(&made, "A").await? == receipt.next_seq as i64, "{begin}..{end}");
        ensure!(events(&made).await? == receipt.next_seq as i64, "{begin}..{end}");
    }
    let found = actions(&made).await?;
    let mut times: Vec<i64> = found.iter().map(|action| action.timestamp.0).collect();
    times.sort_unstable();
    ensure!(times == (1_000..1_009).collect::<Vec<i64>>(), "{times:?}");
    Ok(())
}

async fn two_tries_at_once_store_a_batch_once(engine: Engine) -> Result<()> {
    let (made, product) = app_with_product(engine).await?;
    create(&made, product, "https://example.com/", Some("A")).await?;
    let records: Vec<_> = (0..50).map(|n| record("A", PHONE, 1_000 + n)).collect();
    for boot in 1..4 {
        let same = batch(boot, 0, &records);
        let tries = (0..4).map(|_| ingest(&made.app, &same));
        for taken in futures_util::future::join_all(tries).await {
            ensure!(taken?.next_seq == 50);
        }
    }
    ensure!(hits(&made, "A").await? == 150);
    ensure!(events(&made).await? == 150);
    ensure!(actions(&made).await?.len() == 100, "a page");
    Ok(())
}

async fn a_scan_stays_what_it_was_when_it_was_stored(engine: Engine) -> Result<()> {
    let (made, product) = app_with_product(engine).await?;
    create(&made, product, "https://example.com/", Some("A")).await?;
    let records = [record("A", PHONE, 1_000), record("B", PHONE, 1_001)];
    let first = batch(1, 0, &records);
    take_half(&made, &first).await?;
    let before = actions(&made).await?;
    ensure!(before.len() == 1, "the second short id is unknown");
    create(&made, product, "https://example.com/", Some("B")).await?;
    ensure!(ingest(&made.app, &first).await?.next_seq == 2);
    ensure!(actions(&made).await? == before);
    ensure!((hits(&made, "A").await?, hits(&made, "B").await?, events(&made).await?) == (1, 0, 1));
    Ok(())
}

async fn a_scan_of_a_strange_clock_is_an_action(engine: Engine) -> Result<()> {
    let (made, product) = app_with_product(engine).await?;
    create(&made, product, "https://example.com/", Some("A")).await?;
    // Ids hold no time before 1970.
    let mixed = batch(1, 0, &[record("A", PHONE, -5), record("A", PHONE, 7)]);
    for _ in 0..2 {
        ingest(&made.app, &mixed).await?;
        let found = actions(&made).await?;
        ensure!(found.len() == 2, "{found:?}");
        for action in found {
            let scope = actions::service::actions::Scope::Account;
            let (state, caller) = (&made.app.actions, made.caller());
            let read =
                actions::service::actions::read(state, &caller, scope, "all", action.id.as_str()).await?;
            ensure!(read == action, "{read:?}");
        }
    }
    ensure!((hits(&made, "A").await?, events(&made).await?) == (2, 2));
    Ok(())
}

/// A scan is deleted while others of its Thng are stored, and not yet in the profile.
async fn a_profile_that_is_rebuilt_meanwhile_counts_each_scan_once(engine: Engine) -> Result<()> {
    let made = TestApp::new(engine).await?;
    let thng = ThngId::new(made.app.core.clock.now().0, random16()?);
    let sql = format!(
        "INSERT INTO thngs (id, account_id, name, doc, created_at, updated_at) \
         VALUES ('{thng}', '{}', 'Bag', '{{}}', 1, 1)",
        made.account
    );
    execute(&made, &sql).await?;
    create(&made, thng.into(), "https://example.com/", Some("A")).await?;
    let records: Vec<_> = (0..5).map(|n| record("A", PHONE, 1_000 + n)).collect();
    ingest(&made.app, &batch(1, 0, &records[..2])).await?;
    let first = actions(&made).await?.pop().context("a scan")?;
    take_half(&made, &batch(1, 2, &records[2..])).await?;
    let scope = actions::service::actions::Scope::Account;
    let (state, caller) = (&made.app.actions, made.caller());
    actions::service::actions::delete(state, &caller, scope, "all", first.id.as_str()).await?;
    for expected in [4, 4] {
        ingest(&made.app, &batch(1, 2, &records[2..])).await?;
        let mut conn = made.app.core.db.read().await?;
        let stored = assessment::store::scan_profiles::load(&mut conn, made.account, thng).await?;
        let count: u32 = stored.profile.sessions().map(|(_, session)| session.implicit).sum();
        ensure!(count == expected, "{count}");
    }
    // The next one is added as always.
    ingest(&made.app, &batch(1, 5, &[record("A", PHONE, 1_005)])).await?;
    let mut conn = made.app.core.db.read().await?;
    let stored = assessment::store::scan_profiles::load(&mut conn, made.account, thng).await?;
    ensure!(stored.profile.sessions().map(|(_, session)| session.implicit).sum::<u32>() == 5);
    Ok(())
}
