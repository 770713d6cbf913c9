//! The settled part of the event log: a stable order, and its retention.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use kernel::{
    domain::{
        event::{Event, Position},
        property::Owner,
    },
    store::{
        Conn, Ctx, Db, Tx,
        event_log::{self, Keep, TRIMMED},
        events,
    },
};
use shared::{id::AccountId, time::UnixMillis};
use tests::{
    campaign::postgres::Postgres,
    db::{Engine, TestApp, TestDb},
    product::DEADLINE,
    wait::read_until,
};

super::super::on_both_engines!(
    rows_settle_only_after_older_transactions,
    old_or_excess_rows_are_trimmed_once_they_were_read,
    a_copied_log_can_be_resumed,
);

fn event(name: &str) -> Event {
    Event::Properties { owner: Owner::Thng, resource: name.to_owned(), points: Vec::new() }
}

async fn record(tx: &mut Tx, account: AccountId, at: i64, name: &str) -> Result<()> {
    Ok(events::record(tx, UnixMillis(at), &[(account, event(name))]).await?)
}

/// The names behind a place, and the place behind them.
async fn names(db: &Db, after: Position) -> Result<(Vec<String>, Position)> {
    let mut conn = db.read().await?;
    let rows = event_log::list_after(&mut conn, after, None, 1_000).await?;
    let last = rows.last().map_or(after, |(position, _)| *position);
    let name = |recorded: kernel::domain::event::Recorded| match recorded.event {
        Event::Properties { resource, .. } => Some(resource),
        Event::Action(_)
        | Event::Actions { .. }
        | Event::Redirections { .. }
        | Event::Job { .. }
        | Event::PrintOrder { .. }
        | Event::ShortDomain(..)
        | Event::Certificate(..)
        | Event::LinkChange { .. }
        | Event::Report(..) => None,
    };
    Ok((rows.into_iter().filter_map(|(_, recorded)| recorded).filter_map(name).collect(), last))
}

/// The names behind a place, once there are so many. A transaction of another database that ends at the moment of a look counts
/// as one of this database then.
async fn wait(db: &Db, after: Position, count: usize) -> Result<(Vec<String>, Position)> {
    read_until(async || names(db, after).await, |(found, _)| found.len() >= count).await
}

/// Transactions that commit in another order than they began: whoever reads to the end and goes on from there
/// gets every row once.
async fn rows_settle_only_after_older_transactions(engine: Engine) -> Result<()> {
    let made = TestApp::without_tasks(engine).await?;
    let (db, account) = (&made.app.core.db, made.account);
    if engine == Engine::Sqlite {
        // One writer at a time: the order of numbers is that of commits.
        for name in ["a", "b"] {
            let mut tx = db.begin(&Ctx::default()).await?;
            record(&mut tx, account, 1, name).await?;
            tx.commit().await?;
        }
        let (found, last) = names(db, Position::START).await?;
        ensure!(found == ["a", "b"], "{found:?}");
        ensure!(names(db, last).await?.0.is_empty());
        return Ok(());
    }
    // One that is older than all, in another database of the server, delays nothing.
    let other = TestDb::new(engine).await?;
    let mut elsewhere = other.db.begin(&Ctx::default()).await?;
    let oldest_of_all = begin_write(&mut elsewhere).await?;
    let (mut first, mut second) = (db.begin(&Ctx::default()).await?, db.begin(&Ctx::default()).await?);
    // The older transaction takes the greater number.
    for tx in [&mut first, &mut second] {
        begin_write(tx).await?;
    }
    record(&mut second, account, 1, "second").await?;
    record(&mut first, account, 1, "first").await?;
    second.commit().await?;
    // What is committed is seen by who watches for gaps, and is not settled.
    let seen = events::list_after(&mut db.read().await?, 0, &[], 10).await?;
    ensure!(seen.len() == 1, "{seen:?}");
    let (found, after) = names(db, Position::START).await?;
    ensure!(found.is_empty() && after == Position::START, "{found:?}");
    let mut third = db.begin(&Ctx::default()).await?;
    record(&mut third, account, 1, "third").await?;
    first.commit().await?;
    let (found, after) = wait(db, after, 2).await?;
    ensure!(found == ["first", "second"], "{found:?}");
    ensure!(event_log::find_head(&mut db.read().await?).await? == after);
    third.commit().await?;
    let (found, after) = wait(db, after, 1).await?;
    ensure!(found == ["third"], "{found:?}");
    // Within a row, the row comes again; behind it, it does not.
    let within = Position { item: 0, ..after };
    ensure!(names(db, within).await?.0 == ["third"] && names(db, after).await?.0.is_empty());
    // Nor does it hold up who watches for gaps.
    let begun = Instant::now();
    while events::find_snapshot(&mut db.read().await?).await?.context("SQLite")?.oldest <= oldest_of_all {
        ensure!(begun.elapsed() < DEADLINE, "{oldest_of_all} holds up the gaps");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(elsewhere.commit().await?)
}

/// Gives a transaction its number.
async fn begin_write(tx: &mut Tx) -> Result<i64> {
    let Conn::PgTx(c) = &mut **tx else { bail!("no transaction of Postgres") };
    let number = sqlx::query_scalar("SELECT pg_current_xact_id()::text::bigint");
    Ok(number.fetch_one(&mut **c).await?)
}

/// Leaves a transaction prepared: it belongs to no session, and lasts through a restart.
async fn prepare(mut tx: Tx, sql: &'static str) -> Result<()> {
    let Conn::PgTx(c) = &mut *tx else { bail!("no transaction of Postgres") };
    sqlx::query(sql).execute(&mut **c).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prepared_transactions_of_the_own_database_hold_rows_up() -> Result<()> {
    let server = Postgres::start()?;
    let [own, other] = [TestDb::in_server(server.url()).await?, TestDb::in_server(server.url()).await?];
    let account = AccountId::new(1, [1; 16]);
    for (db, name, sql) in [
        (&other.db, "elsewhere", "PREPARE TRANSACTION 'elsewhere'"),
        (&own.db, "prepared", "PREPARE TRANSACTION 'own'"),
    ] {
        let mut tx = db.begin(&Ctx::default()).await?;
        record(&mut tx, account, 1, name).await?;
        prepare(tx, sql).await?;
    }
    let mut later = own.db.begin(&Ctx::default()).await?;
    record(&mut later, account, 1, "later").await?;
    later.commit().await?;
    ensure!(names(&own.db, Position::START).await?.0.is_empty(), "an older one is prepared");
    server.restart_immediately()?;
    // Connections of before are gone.
    let reopened = own.location.open().await?;
    ensure!(names(&reopened, Position::START).await?.0.is_empty(), "it is still prepared");
    let Db::Pg(pool) = &reopened else { bail!("no Postgres") };
    sqlx::query("COMMIT PREPARED 'own'").execute(pool).await?;
    let (found, _) = wait(&reopened, Position::START, 2).await?;
    ensure!(found == ["prepared", "later"], "beside one of another database: {found:?}");
    reopened.close().await;
    Ok(())
}

async fn trim(db: &Db, keep: Keep, step: u32) -> Result<u64> {
    let mut tx = db.begin(&Ctx::default()).await?;
    let gone = event_log::trim(&mut tx, keep, step).await?;
    tx.commit().await?;
    Ok(gone)
}

async fn old_or_excess_rows_are_trimmed_once_they_were_read(engine: Engine) -> Result<()> {
    let made = TestApp::without_tasks(engine).await?;
    let (db, account) = (&made.app.core.db, made.account);
    let mut places = Vec::new();
    for n in 1..=6 {
        let mut tx = db.begin(&Ctx::default()).await?;
        record(&mut tx, account, n * 10, &n.to_string()).await?;
        tx.commit().await?;
        places = wait(db, Position::START, usize::try_from(n)?)
            .await
            .map(|(_, last)| [places, vec![last]].concat())?;
    }
    let keep = |since: i64, rows: i64, at_most: i64| Keep {
        since: UnixMillis(since),
        rows,
        at_most_since: UnixMillis(at_most),
    };
    let find = async |name: &str| event_log::find_place(&mut db.read().await?, name).await;
    ensure!(trim(db, keep(10, 100, 0), 10).await? == 0, "nothing is older");
    ensure!(find(TRIMMED).await?.is_none());
    ensure!(trim(db, keep(20, 100, 0), 10).await? == 1, "one is older");
    ensure!(find(TRIMMED).await? == Some(places[0]));
    // A reader that is behind keeps what it has not passed; one that never comes does not, for ever.
    let mut tx = db.begin(&Ctx::default()).await?;
    event_log::move_place(&mut tx, "reader", places[2]).await?;
    event_log::move_place(&mut tx, "reader", places[1]).await?;
    tx.commit().await?;
    ensure!(find("reader").await? == Some(places[2]), "a place does not go back");
    ensure!(trim(db, keep(60, 100, 0), 1).await? == 1, "a step is one row");
    ensure!(trim(db, keep(60, 100, 0), 10).await? == 1);
    ensure!(trim(db, keep(60, 100, 0), 10).await? == 0, "the reader is there");
    ensure!(trim(db, keep(60, 100, 50), 10).await? == 1, "it was away for too long");
    ensure!(names(db, Position::START).await?.0 == ["5", "6"]);
    // And no more rows than said.
    let mut tx = db.begin(&Ctx::default()).await?;
    event_log::move_place(&mut tx, "reader", places[5]).await?;
    tx.commit().await?;
    ensure!(trim(db, keep(0, 1, 0), 10).await? == 1);
    ensure!(names(db, Position::START).await?.0 == ["6"]);
    ensure!(find(TRIMMED).await? == Some(places[4]));
    Ok(())
}

/// A copy in another server, whose transactions have other numbers: readers miss nothing.
async fn a_copied_log_can_be_resumed(engine: Engine) -> Result<()> {
    let made = TestApp::without_tasks(engine).await?;
    let (db, account) = (&made.app.core.db, made.account);
    let mut places = Vec::new();
    for n in 1..=3 {
        let mut tx = db.begin(&Ctx::default()).await?;
        record(&mut tx, account, 1, &n.to_string()).await?;
        tx.commit().await?;
        places.push(wait(db, Position::START, n).await?.1);
    }
    let mut tx = db.begin(&Ctx::default()).await?;
    event_log::move_place(&mut tx, "reader", places[0]).await?;
    event_log::adopt(&mut tx).await?;
    tx.commit().await?;
    let place = event_log::find_place(&mut db.read().await?, "reader").await?.unwrap_or(Position::START);
    ensure!(place.xid == 0, "{place}");
    ensure!(names(db, place).await?.0 == ["2", "3"]);
    let mut tx = db.begin(&Ctx::default()).await?;
    record(&mut tx, account, 1, "4").await?;
    tx.commit().await?;
    ensure!(wait(db, place, 3).await?.0 == ["2", "3", "4"]);
    Ok(())
}
