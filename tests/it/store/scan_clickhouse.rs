//! Scans in ClickHouse, whatever the server does in the middle of a batch: each is stored once.

mod grants;
mod later;

use std::{
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use kernel::{
    domain::{
        action::Action,
        grant::Limit,
        listing::ListRequest,
        page::{PageRequest, SortOrder},
    },
    store::{StoreError, listing::Selection},
};
use scan_store::{
    Appended, Batch, Boot, Count, NewScan, ScanStore, Seen, Sought,
    store::{move_scans, open_in},
};
use serde_json::json;
use shared::{
    id::{AccountId, ActionId},
    time::UnixMillis,
};
use tests::{
    clickhouse::ClickHouse,
    db::{Engine, TestApp},
    product::{Options, Product},
};

use super::{
    scan_lists::{T, copy, insert, scan},
    scan_retention::{execute, scans_of},
};

/// A beginning of each statement by which a batch is stored.
const NOTE: &str = "INSERT INTO scan_batches";
const STORE: &str = "INSERT INTO scans";

const BOOT: Boot<'static> = Boot { edge: "e1", boot: 7 };

/// The database is `engine`; scans are in ClickHouse in any case.
async fn app(engine: Engine) -> Result<(TestApp, ClickHouse)> {
    let server = ClickHouse::start()?;
    let url = server.server()?;
    Ok((TestApp::with(engine, |parts| parts.scans = Some(url)).await?, server))
}

/// Scans with their numbers in a boot; the same at each call but for their ids.
fn scans_from(account: AccountId, numbers: Range<i64>) -> Result<Vec<(u64, NewScan)>> {
    let one = |number: i64| {
        let new = scan(account, number)?;
        let about = (new.thng, new.product);
        let fits = NewScan::of(account, new.id, new.timestamp, about, &new.doc).context("it does not fit")?;
        Ok((number.unsigned_abs(), fits))
    };
    numbers.map(one).collect()
}

fn batch_of<'a>(made: &'a TestApp, scans: &[(u64, NewScan)]) -> Batch<'a> {
    let end = scans.last().map_or(0, |(seq, _)| seq + 1);
    Batch { boot: BOOT, stored_elsewhere: 0, end, clock: &*made.app.core.clock, scans: scans.to_vec() }
}

async fn append(made: &TestApp, scans: &[(u64, NewScan)]) -> Result<Appended, StoreError> {
    made.app.actions.scans.pool.append(&batch_of(made, scans)).await
}

/// Every scan of the account, page by page.
async fn list(made: &TestApp, sort: SortOrder) -> Result<Vec<Action>> {
    pages(&*made.app.actions.scans.pool, made.account, sort).await
}

async fn pages(store: &dyn ScanStore, account: AccountId, sort: SortOrder) -> Result<Vec<Action>> {
    let mut page = PageRequest { per_page: 25, sort, ..PageRequest::default() };
    let mut found: Vec<Action> = Vec::new();
    loop {
        let request = ListRequest { page, ..ListRequest::default() };
        let selection = Selection { account, limit: &Limit::Account, request: &request, within: &[] };
        let mut scans = store.page(&selection).await?;
        let is_more = scans.len() > 25;
        scans.truncate(25);
        page.after = scans.last().map(Action::position);
        found.extend(scans);
        if !is_more {
            return Ok(found);
        }
    }
}

/// Each scan is there once, in order, in every list and count.
async fn ensure_once(made: &TestApp, scans: &[(u64, NewScan)]) -> Result<()> {
    let expected: Vec<ActionId> = scans.iter().filter_map(|(_, scan)| scan.id()).collect();
    let mut found = list(made, SortOrder::Ascending).await?;
    let ids: Vec<ActionId> = found.iter().map(|scan| scan.id).collect();
    ensure!(ids == expected, "{} of {}", ids.len(), expected.len());
    found.reverse();
    ensure!(list(made, SortOrder::Descending).await? == found);
    let store = &made.app.actions.scans.pool;
    ensure!(store.count_since(made.account, UnixMillis(0), 1_000).await? == expected.len() as u64);
    let count = Count {
        account: made.account,
        from: UnixMillis(0),
        to: UnixMillis(4_000_000_000_000),
        piece_ms: 4_000_000_000_000,
    };
    ensure!(store.count(&count).await? == [(UnixMillis(0), expected.len() as u64)]);
    ensure!(store.find_many(made.account, &expected).await?.len() == expected.len());
    Ok(())
}

/// How a batch of nine comes again.
type Pieces = &'static [(usize, usize)];

const WHOLE: Pieces = &[(0, 9)];
const PARTS: Pieces = &[(0, 3), (1, 5), (0, 9)];

/// At which statement the server fails, how, and how the batch comes again each time.
const FAULTS: [(&str, &str, &[Pieces]); 5] = [
    (NOTE, "lose", &[PARTS]),
    (STORE, "lose", &[WHOLE, PARTS]),
    (NOTE, "die", &[WHOLE]),
    (STORE, "die", &[WHOLE, PARTS]),
    (STORE, "passing", &[WHOLE]),
];

/// The server fails before and after it has noted or stored a batch, which comes again whole and in other pieces.
async fn a_batch_that_was_half_stored_is_stored_once(engine: Engine) -> Result<()> {
    let (made, server) = app(engine).await?;
    let mut all = Vec::new();
    let mut begin = 0;
    for (statement, what, again) in FAULTS {
        for pieces in again {
            let batch = scans_from(made.account, begin..begin + 9)?;
            server.tell(statement, what)?;
            let failed = append(&made, &batch).await;
            server.await_done(what)?;
            ensure!(matches!(failed, Err(StoreError::Unavailable(_))), "{statement} {what}: {failed:?}");
            if what == "die" {
                server.start_again()?;
            }
            for (from, to) in *pieces {
                append(&made, &batch[*from..*to]).await?;
            }
            begin += 9;
            all.extend(batch);
            ensure_once(&made, &all).await.with_context(|| format!("{statement} {what} {pieces:?}"))?;
        }
    }
    Ok(())
}

/// All is stored, and the cursor has not moved: a repeat gets the same positions and adds nothing.
async fn a_batch_whose_cursor_was_lost_is_stored_once(engine: Engine) -> Result<()> {
    let (made, server) = app(engine).await?;
    let batch = scans_from(made.account, 0..12)?;
    let first = append(&made, &batch).await?;
    ensure!(first.positions.len() == 12 && first.expected == 0, "{first:?}");
    for pieces in [&[(0, 12)][..], &[(0, 5), (3, 12)], &[(4, 8), (8, 12)]] {
        execute(&scans_of(&made).await?, "DELETE FROM scan_intake").await?;
        server.start_again()?;
        for (from, to) in pieces {
            let again = append(&made, &batch[*from..*to]).await?;
            let known = again.positions.iter().all(|position| first.positions.contains(position));
            ensure!(known, "{:?} of {:?}", again.positions, first.positions);
        }
        ensure_once(&made, &batch).await?;
    }
    // What is below the cursor is not stored again.
    let repeat = append(&made, &batch).await?;
    ensure!((repeat.expected, repeat.positions.len()) == (12, 0), "{repeat:?}");
    Ok(())
}

/// Two processes take the same batches at the same time.
async fn two_processes_store_a_batch_once(engine: Engine) -> Result<()> {
    let (made, server) = app(engine).await?;
    let other = open_in(&made.app.core.db, Some(server.server()?)).await?;
    let batch = scans_from(made.account, 0..20)?;
    for begin in [0_usize, 10] {
        let some = &batch[begin..begin + 10];
        let clock = &*made.app.core.clock;
        let end = begin as u64 + 10;
        let same = Batch { boot: BOOT, stored_elsewhere: 0, end, clock, scans: some.to_vec() };
        let (one, two) = tokio::join!(made.app.actions.scans.pool.append(&same), other.pool.append(&same));
        let stored = one?.positions.len() + two?.positions.len();
        ensure!(stored == 10, "{stored}");
    }
    other.close().await;
    ensure_once(&made, &batch).await
}

/// A scan is found for an erasure, written again with less in it, and deleted.
async fn scans_are_sought_rewritten_and_deleted(engine: Engine) -> Result<()> {
    let (made, server) = app(engine).await?;
    let ids = insert(&made, made.account).await?;
    copy(&made).await?;
    let store = &made.app.actions.scans.pool;
    let network = Sought::Network {
        first: "192.0.2.0".parse()?,
        last: "192.0.2.255".parse()?,
        from: UnixMillis(0),
        to: UnixMillis(i64::MAX),
    };
    let all = Sought::Created { from: UnixMillis(0), to: UnixMillis(i64::MAX) };
    for (sought, count) in [(network, 32), (Sought::Thng(T.parse()?), 16), (all, 48)] {
        let (mut after, mut found) = (None, Vec::new());
        loop {
            let step = store.seek(made.account, &sought, after).await?;
            found.extend(step.found);
            let Some(end) = step.end else { break };
            after = Some(end);
        }
        ensure!(found.len() == count && found.is_sorted_by_key(|(seen, _)| *seen), "{sought:?}");
        ensure!(store.seek(AccountId::new(1, [1; 16]), &sought, None).await?.found.is_empty());
    }
    // The first two have addresses; a third one is gone by the time that it is written.
    let again = cut(&made, 3).await?;
    ensure!(store.delete(made.account, &ids[2..3]).await? == 1);
    store.rewrite(made.app.core.clock.now(), &again).await?;
    ensure!(store.erase_texts(made.account, None).await?.is_none());
    ensure!(store.find_many(made.account, &ids[2..3]).await?.is_empty());
    ensure!(store.count_since(made.account, UnixMillis(0), 1_000).await? == 47);
    // What was rewritten stays so, also where scans of older releases are copied once more.
    for _ in 0..2 {
        let found = store.find_many(made.account, &ids[..2]).await?;
        ensure!(found.len() == 2, "{found:?}");
        ensure!(
            found.iter().all(|scan| scan.members["context"] == json!({"userAgentName": "Agent"})),
            "{found:?}"
        );
        server.start_again()?;
        copy(&made).await?;
    }
    Ok(())
}

/// The first scans with less in them, as an erasure writes them.
async fn cut(made: &TestApp, count: usize) -> Result<Vec<(Seen, NewScan)>> {
    let all = Sought::Created { from: UnixMillis(0), to: UnixMillis(i64::MAX) };
    let step = made.app.actions.scans.pool.seek(made.account, &all, None).await?;
    let mut found = Vec::new();
    for (seen, scan) in step.found.into_iter().take(count) {
        let mut doc = serde_json::Value::Object(scan.members);
        doc["context"] = json!({"userAgentName": "Agent"});
        let about = (scan.thng, scan.product);
        let new = NewScan::of(made.account, scan.id, scan.timestamp, about, &doc);
        found.push((seen, new.context("it does not fit")?));
    }
    Ok(found)
}

/// A scan is deleted while an erasure writes it again, and its batch comes once more: it stays deleted, and what was cut
/// stays cut.
async fn what_was_erased_does_not_come_back(engine: Engine) -> Result<()> {
    let (made, server) = app(engine).await?;
    let server = Arc::new(server);
    let batch = scans_from(made.account, 0..6)?;
    let ids: Vec<ActionId> = batch.iter().filter_map(|(_, scan)| scan.id()).collect();
    let first = append(&made, &batch).await?;
    let (store, again) = (&made.app.actions.scans.pool, cut(&made, 2).await?);
    server.tell(STORE, "wait")?;
    let waiting = server.clone();
    let waits = tokio::task::spawn_blocking(move || waiting.await_done("wait"));
    let (rewritten, deleted) = tokio::join!(store.rewrite(made.app.core.clock.now(), &again), async {
        waits.await??;
        let deleted = store.delete(made.account, &ids[..1]).await?;
        server.tell("", "go")?;
        anyhow::Ok(deleted)
    });
    rewritten?;
    ensure!(deleted? == 1);
    ensure!(store.delete(made.account, &ids[..1]).await? == 0, "it is deleted already");
    for pieces in [&[(0, 6)][..], &[(0, 2), (1, 6)]] {
        ensure_once(&made, &batch[1..]).await?;
        let found = store.find_many(made.account, &ids[..2]).await?;
        ensure!(found.len() == 1 && found[0].id == ids[1], "{found:?}");
        ensure!(found[0].members["context"] == json!({"userAgentName": "Agent"}), "{found:?}");
        execute(&scans_of(&made).await?, "DELETE FROM scan_intake").await?;
        server.start_again()?;
        for (from, to) in pieces {
            let again = append(&made, &batch[*from..*to]).await?;
            let known = again.positions.iter().all(|position| first.positions.contains(position));
            ensure!(known, "{:?} of {:?}", again.positions, first.positions);
        }
    }
    ensure_once(&made, &batch[1..]).await?;
    // What is left of deleted scans counts nowhere.
    ensure!(store.delete(made.account, &ids).await? == 5);
    ensure!(store.find_first_since(made.account, UnixMillis(0)).await?.is_none());
    ensure!(list(&made, SortOrder::Ascending).await?.is_empty());
    Ok(())
}

/// A server that accepts and answers nothing is given up, and what it was asked is done later.
async fn a_silent_server_is_given_up(engine: Engine) -> Result<()> {
    let (made, server) = app(engine).await?;
    let batch = scans_from(made.account, 0..3)?;
    server.tell(STORE, "hang")?;
    ensure!(matches!(append(&made, &batch).await, Err(StoreError::Timeout)));
    append(&made, &batch).await?;
    ensure_once(&made, &batch).await
}

/// What would hide scans, or cannot sign in, does not start.
async fn what_cannot_be_used_is_refused(engine: Engine) -> Result<()> {
    let made = TestApp::new(engine).await?;
    let server = ClickHouse::start()?;
    let refusal = async |url: String| -> Result<String> {
        let opened = open_in(&made.app.core.db, Some(url.parse()?)).await;
        Ok(opened.err().context("it was opened")?.to_string())
    };
    let said = refusal(server.url().replace("p%40ss", "wrong")).await?;
    ensure!(said.contains("AUTHENTICATION_FAILED") && !said.contains("wrong"), "{said}");
    let said = refusal(format!("{}other", server.url().trim_end_matches("waymark"))).await?;
    ensure!(said.contains("UNKNOWN_DATABASE"), "{said}");
    insert(&made, made.account).await?;
    copy(&made).await?;
    let said = refusal(server.url()).await?;
    ensure!(said.contains("WAYMARK_SCANS_URL"), "{said}");
    Ok(())
}

/// Scans of a database are moved, and all lists stay as they were; a move that was broken off goes on.
async fn scans_of_a_database_are_moved(engine: Engine) -> Result<()> {
    let made = TestApp::new(engine).await?;
    let server = ClickHouse::start()?;
    for _ in 0..12 {
        insert(&made, made.account).await?;
    }
    copy(&made).await?;
    let before = list(&made, SortOrder::Descending).await?;
    ensure!(before.len() == 576);
    let db = &made.app.core.db;
    ensure!(open_in(db, Some(server.server()?)).await.is_err(), "nobody would see them");
    server.tell("INSERT INTO scans", "lose")?;
    ensure!(move_scans(db, server.server()?, |_, _| ()).await.is_err());
    ensure!(list(&made, SortOrder::Descending).await? == before, "none was removed");
    let mut moved = Vec::new();
    move_scans(db, server.server()?, |account, scans| moved.push((account, scans))).await?;
    ensure!(moved == [(made.account, 576)], "{moved:?}");
    ensure!(list(&made, SortOrder::Descending).await?.is_empty(), "they are gone here");
    let scans = open_in(db, Some(server.server()?)).await?;
    ensure!(pages(&*scans.pool, made.account, SortOrder::Descending).await? == before);
    // A new scan comes behind them.
    let batch = batch_of(&made, &scans_from(made.account, 0..1)?);
    let appended = scans.pool.append(&batch).await?;
    let last = before.iter().map(|scan| scan.seq).max();
    ensure!(appended.positions.first().map(|(_, position)| *position) > last, "{appended:?}");
    scans.close().await;
    Ok(())
}

/// The whole product: a redirect is a scan in the API, also when product and server were killed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redirect_is_a_scan_in_clickhouse() {
    let options = Options { engine: Engine::ClickHouse, ..Options::default() };
    let mut product = Product::start(options).await.unwrap();
    let id = product.create_product().await.unwrap();
    let link = product.create_redirection(&id, "https://example.com/", Some("A")).await.unwrap();
    assert_eq!(link["shortId"], "A");
    for expected in 1..4 {
        assert_eq!(product.scan("A").await.unwrap().0, 307);
        let deadline = Instant::now() + Duration::from_secs(60);
        while product.count_scans(&id).await.unwrap() < expected {
            assert!(Instant::now() < deadline, "scan {expected} did not come");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        product.kill().unwrap();
        product.clickhouse.as_ref().unwrap().start_again().unwrap();
        product.start_again().unwrap();
        assert_eq!(product.count_scans(&id).await.unwrap(), expected);
    }
}

super::super::on_both_engines!(
    a_batch_that_was_half_stored_is_stored_once,
    a_batch_whose_cursor_was_lost_is_stored_once,
    two_processes_store_a_batch_once,
    scans_are_sought_rewritten_and_deleted,
    what_was_erased_does_not_come_back,
    a_silent_server_is_given_up,
    what_cannot_be_used_is_refused,
    scans_of_a_database_are_moved,
);
