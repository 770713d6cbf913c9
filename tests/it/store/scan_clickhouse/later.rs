//! Scans in ClickHouse after an outage, when their month is over, and when two write them.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use kernel::{
    domain::{
        filter::Filter,
        grant::Limit,
        listing::{ACTIONS, ListRequest},
        page::SortOrder,
    },
    store::{StoreError, listing::Selection},
};
use shared::{id::ActionId, time::UnixMillis};
use tests::db::Engine;

use super::{STORE, app, append, cut, ensure_once, list, scans_from};

crate::on_both_engines!(
    a_batch_shows_when_it_was_stored_after_an_outage,
    a_batch_that_was_stored_keeps_its_time,
    a_month_that_is_over_leaves_the_disk,
);

const HOUR: i64 = 3_600_000;

/// What looks at each day once would miss scans with the time of an outage's begin.
async fn a_batch_shows_when_it_was_stored_after_an_outage(engine: Engine) -> Result<()> {
    let (made, server) = app(engine).await?;
    let batch = scans_from(made.account, 0..6)?;
    // Noted anew after the second outage, too.
    for _ in 0..2 {
        server.tell(STORE, "passing")?;
        let failed = append(&made, &batch).await;
        ensure!(matches!(failed, Err(StoreError::Unavailable(_))), "{failed:?}");
        made.clock.advance(HOUR);
    }
    let after = made.app.core.clock.now();
    for (from, to) in [(0, 3), (2, 6)] {
        append(&made, &batch[from..to]).await?;
    }
    ensure_once(&made, &batch).await?;
    let found = list(&made, SortOrder::Ascending).await?;
    ensure!(found.iter().all(|scan| scan.created_at >= after), "{after:?}: {found:?}");
    Ok(())
}

/// The answer of the insert was lost: its scans are there, however late the batch comes again.
async fn a_batch_that_was_stored_keeps_its_time(engine: Engine) -> Result<()> {
    let (made, server) = app(engine).await?;
    let batch = scans_from(made.account, 0..6)?;
    server.tell(STORE, "lose")?;
    let failed = append(&made, &batch).await;
    ensure!(matches!(failed, Err(StoreError::Unavailable(_))), "{failed:?}");
    let before = list(&made, SortOrder::Ascending).await?;
    ensure!(before.len() == 6, "{before:?}");
    made.clock.advance(HOUR);
    append(&made, &batch).await?;
    ensure!(list(&made, SortOrder::Ascending).await? == before);
    ensure_once(&made, &batch).await
}

/// What retention deletes of an account leaves the disk, too, once its month is over.
async fn a_month_that_is_over_leaves_the_disk(engine: Engine) -> Result<()> {
    let (made, server) = app(engine).await?;
    let (store, now) = (&made.app.actions.scans.pool, made.app.core.clock.now());
    // Twice, as a statement is sent again once.
    for _ in 0..2 {
        server.tell("ALTER TABLE scans APPLY DELETED MASK", "passing")?;
    }
    let first = append(&made, &scans_from(made.account, 0..3)?).await?;
    let before = |before: i64| BTreeMap::from([(made.account, UnixMillis(before))]);
    ensure!(store.delete_before(&before(first.created_at.0 + 1), now).await? == 3, "the month is not over");
    append(&made, &scans_from(made.account, 3..6)?).await?;
    let over = store.delete_before(&before(first.created_at.0 + 40 * 86_400_000), now).await;
    ensure!(matches!(over, Err(StoreError::Unavailable(_))), "{over:?}");
    ensure!(list(&made, SortOrder::Ascending).await?.is_empty());
    Ok(())
}

/// Two erasures read a scan and the first one writes it: the second one must read it again, or what the first one has taken out
/// would come back. Pages show the last version of each scan, and no holes where scans are gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_scan_is_not_written_from_an_older_version() -> Result<()> {
    let (made, _server) = app(Engine::Sqlite).await?;
    let batch = scans_from(made.account, 0..60)?;
    append(&made, &batch).await?;
    let (store, now) = (&made.app.actions.scans.pool, made.app.core.clock.now());
    let (late, first) = (cut(&made, 2).await?, cut(&made, 1).await?);
    store.rewrite(now, &first).await?;
    let failed = store.rewrite(now, &late).await;
    ensure!(matches!(failed, Err(StoreError::Unavailable(_))), "{failed:?}");
    let again = cut(&made, 3).await?;
    let versions: Vec<u32> = again.iter().map(|(seen, _)| seen.version).collect();
    ensure!(
        versions == [1, 1, 0],
        "the first is as it was written, the second was not changed before: {versions:?}"
    );
    store.rewrite(now, &again).await?;
    ensure_once(&made, &batch).await?;

    // Each sixth has the country, and the first one lost it.
    let filter = Filter::parse("context.countryCode=CH", ACTIONS.fields).map_err(anyhow::Error::msg)?;
    let request = ListRequest { filter: Some(filter), ..ListRequest::default() };
    let selection =
        Selection { account: made.account, limit: &Limit::Account, request: &request, within: &[] };
    ensure!(store.page(&selection).await?.len() == 9);
    let ids: Vec<ActionId> = batch.iter().filter_map(|(_, scan)| scan.id()).collect();
    ensure!(store.delete(made.account, &ids[..50]).await? == 50);
    ensure_once(&made, &batch[50..]).await
}
