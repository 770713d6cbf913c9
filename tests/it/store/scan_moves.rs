//! Scans that older releases stored as actions, while they are moved.

use std::{collections::BTreeSet, time::Duration};

use anyhow::{Context, Result, ensure};
use control::worker::move_scans::{self, Moved};
use kernel::domain::{
    listing::ListRequest,
    page::{PageRequest, SortOrder},
};
use shared::id::ActionId;
use tests::db::{Engine, TestApp};
use tokio_util::sync::CancellationToken;

use super::{
    links::count,
    scan_lists::{SCANS, copy, insert},
};

super::super::on_all_scan_stores!(
    lists_are_whole_while_scans_are_moved,
    a_move_that_was_killed_is_done_again,
    a_scan_is_deleted_while_it_is_moved,
    what_requests_recorded_stays,
);

/// The ids of a list page by page, with what runs between two pages.
async fn ids(
    made: &TestApp,
    sort: SortOrder,
    mut between: impl AsyncFnMut() -> Result<()>,
) -> Result<Vec<ActionId>> {
    let (mut page, mut ids) = (PageRequest { per_page: 12, sort, ..PageRequest::default() }, Vec::new());
    loop {
        let request = ListRequest { page, ..ListRequest::default() };
        let scope = actions::service::actions::Scope::Account;
        let found =
            actions::service::actions::list(&made.app.actions, &made.caller(), scope, "all", &request)
                .await?;
        ids.extend(found.items.iter().map(|action| action.id));
        page.after = found.next;
        if page.after.is_none() {
            return Ok(ids);
        }
        between().await?;
    }
}

async fn lists_are_whole_while_scans_are_moved(engine: Engine) -> Result<()> {
    let made = TestApp::new(engine).await?;
    // Several steps; ClickHouse takes twenty times as long for a page.
    let (mut expected, times) = (Vec::new(), if engine == Engine::ClickHouse { 3 } else { 6 });
    for _ in 0..times {
        expected.extend(insert(&made, made.account).await?);
    }
    expected.sort_unstable();
    let stop = CancellationToken::new();
    let moving = tokio::spawn(move_scans::run(made.app.clone(), stop.clone()));
    let mut reads = 0;
    let done = "SELECT COUNT(*) FROM scan_move WHERE done";
    let begun = std::time::Instant::now();
    loop {
        let is_done = count(&made, done).await? == 1;
        for sort in [SortOrder::Ascending, SortOrder::Descending] {
            let mut found = ids(&made, sort, async || Ok(())).await?;
            found.sort_unstable();
            ensure!(found == expected, "{} of {}", found.len(), expected.len());
            reads += 1;
        }
        if is_done {
            break;
        }
        ensure!(begun.elapsed() < Duration::from_secs(60), "the move does not end");
    }
    stop.cancel();
    moving.await?;
    ensure!(reads >= 2);
    ensure!(count(&made, "SELECT COUNT(*) FROM actions").await? == 0);
    Ok(())
}

async fn a_move_that_was_killed_is_done_again(engine: Engine) -> Result<()> {
    let made = TestApp::new(engine).await?;
    let expected = insert(&made, made.account).await?;
    let before = ids(&made, SortOrder::Descending, async || Ok(())).await?;
    ensure!(before.len() == expected.len());
    // Killed between both stores: the scans are in both.
    copy(&made).await?;
    ensure!(ids(&made, SortOrder::Descending, async || Ok(())).await? == before);
    let step = move_scans::step(&made.app).await?;
    ensure!(step == Moved { moved: expected.len(), is_done: true, waits: false }, "{step:?}");
    ensure!(ids(&made, SortOrder::Descending, async || Ok(())).await? == before);
    let step = move_scans::step(&made.app).await?;
    ensure!(step == Moved { moved: 0, is_done: true, waits: false }, "{step:?}");
    let all: BTreeSet<ActionId> = expected.into_iter().collect();
    let all: Vec<ActionId> = all.into_iter().collect();
    ensure!(made.app.actions.scans.pool.find_many(made.account, &all).await?.len() == all.len());
    Ok(())
}

async fn a_scan_is_deleted_while_it_is_moved(engine: Engine) -> Result<()> {
    let made = TestApp::new(engine).await?;
    let scans = insert(&made, made.account).await?;
    copy(&made).await?;
    let scope = actions::service::actions::Scope::Account;
    let caller = made.caller();
    let delete = |id: ActionId| {
        let (state, caller) = (&made.app.actions, &caller);
        async move { actions::service::actions::delete(state, caller, scope, "all", id.as_str()).await }
    };
    delete(scans[0]).await?;
    ensure!(delete(scans[0]).await.is_err(), "it is gone");
    move_scans::step(&made.app).await?;
    delete(scans[1]).await?;
    ensure!(delete(scans[1]).await.is_err(), "it is gone");
    let left = ids(&made, SortOrder::Ascending, async || Ok(())).await?;
    ensure!(left.len() as i64 == SCANS - 2 && !left.contains(&scans[0]) && !left.contains(&scans[1]));
    Ok(())
}

async fn what_requests_recorded_stays(engine: Engine) -> Result<()> {
    let made = TestApp::new(engine).await?;
    let draft = serde_json::json!({"customFields": {"a": 1}});
    let members = kernel::domain::members::Members::of(&draft).ok().context("members")?;
    let draft = actions::domain::action_draft::ActionDraft::read(members).ok().context("a draft")?;
    let scope = actions::service::actions::Scope::Account;
    let created = actions::service::action_creation::create(
        &made.app.actions,
        &made.caller(),
        scope,
        "implicitScans",
        &[draft],
        actions::service::action_creation::Circumstances::default(),
    )
    .await?;
    ensure!(move_scans::step(&made.app).await? == Moved { moved: 0, is_done: true, waits: false });
    ensure!(count(&made, "SELECT COUNT(*) FROM actions").await? == 1);
    ensure!(ids(&made, SortOrder::Ascending, async || Ok(())).await? == [created[0].id]);
    Ok(())
}
