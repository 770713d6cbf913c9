//! Scans whose time is over are removed: by account, and as whole months.

use anyhow::{Context, Result, ensure};
use control::worker::scan_retention::{self, Removed};
use kernel::{
    domain::listing::ListRequest,
    on_db,
    store::{Conn, Ctx, Db},
};
use scan_store::{Batch, Boot, NewScan, ScanStore as _, domain::month::Month, store::SqlScans};
use shared::{
    id::{AccountId, ActionId},
    time::{Clock, UnixMillis},
};
use sqlx::AssertSqlSafe;
use tenants::{domain::tenant::AccountChange, service::tenants as service};
use tests::db::{Engine, Location, TestApp, random16};

use super::scan_lists::{copy, insert, scan};

super::super::on_both_engines!(
    old_scans_are_removed_by_account_and_month,
    texts_of_deleted_scans_are_removed,
    retention_follows_the_clock_by_a_day_at_a_time,
    what_clients_choose_is_limited,
    a_month_is_made_and_dropped_beside_readers,
    a_clock_before_its_time_loses_nothing,
);

super::super::on_clickhouse!(
    old_scans_are_removed_by_account_and_month,
    retention_follows_the_clock_by_a_day_at_a_time,
    a_clock_before_its_time_loses_nothing,
);

pub(super) const DAY_MS: i64 = 86_400_000;

/// The database of the scans.
pub(super) async fn scans_of(made: &TestApp) -> Result<Db> {
    Ok(match &made.db.location {
        Location::Sqlite(path) => Db::open_sqlite_shrinking(&scan_store::store::file_of(path)).await?,
        Location::Postgres(..) => made.app.core.db.clone(),
    })
}

pub(super) async fn execute(db: &Db, sql: &str) -> Result<()> {
    let mut tx = db.begin(&Ctx::default()).await?;
    let sql = AssertSqlSafe(sql.to_owned());
    on_db!(&mut *tx, |c| sqlx::query(sql).execute(c).await.map(|_| ()))?;
    Ok(tx.commit().await?)
}

pub(super) async fn number(db: &Db, sql: &str) -> Result<i64> {
    let mut conn = db.read().await?;
    let sql = AssertSqlSafe(format!("SELECT CAST(n AS BIGINT) FROM ({sql}) AS found (n)"));
    let sql = match &conn {
        Conn::Pg(_) | Conn::PgTx(_) => sql,
        Conn::Sqlite(_) | Conn::SqliteTx(_) => {
            AssertSqlSafe(sql.0.replace("CAST(n AS BIGINT)", "*").replace(" AS found (n)", ""))
        }
    };
    Ok(on_db!(&mut conn, |c| sqlx::query_scalar(sql).fetch_one(c).await)?)
}

/// Moves the clock on, and retention with it as if it had run every day.
async fn advance(made: &TestApp, days: i64) -> Result<()> {
    made.clock.advance(days * DAY_MS);
    let yesterday = made.app.core.clock.now().0 / DAY_MS - 1;
    execute(&scans_of(made).await?, &format!("UPDATE scan_retention SET day = {yesterday}")).await
}

/// Scans of two accounts on 2025-12-31 and 2026-01-01, three at each time; it is 2026-01-02T12:00:00Z.
pub(super) async fn prepared(engine: Engine) -> Result<(TestApp, AccountId, Vec<ActionId>)> {
    let made = TestApp::new(engine).await?;
    let other = AccountId::new(1, random16()?);
    let mut tx = made.app.core.db.begin(&Ctx::default()).await?;
    tenants::store::accounts::insert(&mut tx, other, "Other", true, 1).await?;
    tx.commit().await?;
    for _ in 0..10 {
        insert(&made, made.account).await?;
    }
    let others = insert(&made, other).await?;
    copy(&made).await?;
    delete_actions(&made).await?;
    let now = made.app.core.clock.now().0;
    made.clock.advance(1_767_355_200_000 - now);
    Ok((made, other, others))
}

async fn keep(made: &TestApp, days: u16) -> Result<()> {
    let change = AccountChange { scan_retention_days: Some(days), ..AccountChange::default() };
    let account =
        service::update_account(&made.app.core, &made.caller(), made.account.as_str(), change).await?;
    ensure!(account.scan_retention_days == days);
    Ok(())
}

async fn old_scans_are_removed_by_account_and_month(engine: Engine) -> Result<()> {
    let (made, other, others) = prepared(engine).await?;
    let (scans, db) = (&made.app.actions.scans.pool, scans_of(&made).await?);
    let metric = |name: &str| -> i64 {
        let metrics = control::http::Admin::new(made.app.clone(), None, None).metrics_text();
        let line = metrics.lines().find_map(|line| line.strip_prefix(&format!("waymark_control_{name} ")));
        line.and_then(|value| value.parse().ok()).unwrap_or(-1)
    };
    ensure!(scan_retention::run(&made.app).await? == Removed::default(), "400 days are not over");
    let size = scans.describe().await?;
    ensure!(size.months.len() == 2 && size.oldest == Some(UnixMillis(1_767_139_200_000)), "{size:?}");
    // ClickHouse merges parts meanwhile.
    let is_same = engine == Engine::ClickHouse || metric("scans_size_bytes") == size.bytes;
    ensure!(is_same && metric("scans_size_bytes") > 0);
    ensure!(metric("scans_oldest_timestamp_seconds") == 1_767_139_200);
    ensure!(metric("scans_next_drop_timestamp_seconds") == 1_767_225_600 + 400 * 86_400);

    // The first day is over, with the texts of its scans; the other account keeps its own.
    keep(&made, 2).await?;
    ensure!(scan_retention::run(&made.app).await? == Removed::default(), "once a day");
    advance(&made, 1).await?;
    let removed = scan_retention::run(&made.app).await?;
    ensure!(removed == Removed { scans: 240, months: 0 }, "{removed:?}");
    let limit = kernel::domain::grant::Limit::Account;
    let request = ListRequest::default();
    let oldest = scans.find_first_since(made.account, UnixMillis(0)).await?;
    ensure!(oldest == Some(UnixMillis(1_767_225_600_000)), "{oldest:?}");
    ensure!(scans.find_many(other, &others).await?.len() == others.len());
    // In ClickHouse scans share none.
    let tables: &[&str] = if engine == Engine::ClickHouse { &[] } else { &["scan_texts", "scan_facets"] };
    for table in tables {
        let left = |month: &str, account: AccountId| {
            let sql = format!(
                "SELECT COUNT(*) FROM {table}_{month} x JOIN scan_accounts a ON a.id = x.account \
                 WHERE a.account_id = '{account}'"
            );
            let db = &db;
            async move { number(db, &sql).await }
        };
        ensure!(left("202512", made.account).await? == 0, "{table}");
        ensure!(left("202512", other).await? > 0 && left("202601", made.account).await? > 0, "{table}");
    }

    // The first month is over for every account, and the second one later.
    advance(&made, 400).await?;
    let removed = scan_retention::run(&made.app).await?;
    // In ClickHouse a month that is empty is gone by itself.
    let is_gone = engine == Engine::ClickHouse || removed.months == 1;
    ensure!(is_gone && removed.scans > 0, "{removed:?}");
    advance(&made, 40).await?;
    scan_retention::run(&made.app).await?;
    let left = scans.describe().await?;
    ensure!(left.months.iter().all(|month| month.number() > 202_602) && left.oldest.is_none(), "{left:?}");
    ensure!(left.bytes < size.bytes, "{} of {} bytes", left.bytes, size.bytes);
    for account in [made.account, other] {
        let selection =
            kernel::store::listing::Selection { account, limit: &limit, request: &request, within: &[] };
        ensure!(scans.page(&selection).await?.is_empty());
    }
    // New scans come into months that are made again.
    insert(&made, made.account).await?;
    copy(&made).await?;
    ensure!(scans.describe().await?.oldest == Some(UnixMillis(1_767_139_200_000)));
    if let Location::Sqlite(path) = &made.db.location {
        use std::os::unix::fs::PermissionsExt as _;
        let file = scan_store::store::file_of(path);
        ensure!(std::fs::metadata(&file)?.permissions().mode() & 0o777 == 0o600);
    }
    Ok(())
}

/// Texts of single scans that were deleted go when no other scan has them.
async fn texts_of_deleted_scans_are_removed(engine: Engine) -> Result<()> {
    let (made, other, others) = prepared(engine).await?;
    let (scans, db) = (&made.app.actions.scans.pool, scans_of(&made).await?);
    // In the first month, every fifth one has the referer; of the browsers each is also that of another scan.
    let gone: Vec<ActionId> = others.iter().take(24).step_by(5).copied().collect();
    ensure!(scans.delete(other, &gone).await? == 5);
    let count = async |kind: i16| {
        let sql = format!(
            "SELECT COUNT(*) FROM scan_texts_202512 x JOIN scan_accounts a ON a.id = x.account \
             WHERE a.account_id = '{other}' AND x.kind = {kind}"
        );
        number(&db, &sql).await
    };
    ensure!((count(1).await?, count(3).await?) == (4, 1), "a batch under way may have them");
    scan_retention::run(&made.app).await?;
    advance(&made, 1).await?;
    scan_retention::run(&made.app).await?;
    ensure!((count(1).await?, count(3).await?) == (4, 0));
    ensure!(number(&db, "SELECT COUNT(*) FROM scan_texts_202512 WHERE is_loose").await? == 0);
    ensure!(scans.find_many(other, &others).await?.len() == others.len() - 5);
    Ok(())
}

async fn retention_follows_the_clock_by_a_day_at_a_time(engine: Engine) -> Result<()> {
    let made = TestApp::new(engine).await?;
    let scans = &made.app.actions.scans.pool;
    let day = |day: i64| UnixMillis(day * DAY_MS);
    ensure!(scans.begin_day(UnixMillis(100 * DAY_MS + 5)).await? == (day(100), true));
    ensure!(scans.begin_day(day(100)).await? == (day(100), false));
    // A clock leaps by two years, and back.
    for expected in 101..105 {
        ensure!(scans.begin_day(day(830)).await? == (day(expected), true));
    }
    ensure!(scans.begin_day(day(100)).await? == (day(100), true));
    ensure!(scans.begin_day(day(100)).await? == (day(100), false));
    Ok(())
}

/// Above 50,000 browsers and referers in a month an account's scans keep the names of browser and system.
async fn what_clients_choose_is_limited(engine: Engine) -> Result<()> {
    let (made, _, _) = prepared(engine).await?;
    let db = scans_of(&made).await?;
    let account =
        number(&db, &format!("SELECT id FROM scan_accounts WHERE account_id = '{}'", made.account)).await?;
    let (numbers, hash) = match db {
        Db::Pg(_) => {
            ("SELECT n FROM generate_series(1, 49999) AS s (n)", "decode(lpad(to_hex(n), 32, '0'), 'hex')")
        }
        Db::Sqlite { .. } => (
            "WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 49999) SELECT n FROM s",
            "unhex(printf('%032x', n))",
        ),
    };
    for kind in [1, 3] {
        let sql = format!(
            "INSERT INTO scan_texts_202601 (account, last_day, kind, hash, text) \
             SELECT {account}, 0, {kind}, {hash}, 'x' FROM ({numbers}) AS numbers"
        );
        execute(&db, &sql).await?;
    }
    // Of these the month has four browsers and one referer already.
    let scans = SqlScans::new(db.clone());
    let mut batch = Vec::new();
    for number in 0..3 {
        let mut one = scan(made.account, number)?;
        one.doc["context"]["userAgent"] = format!("new/{number}").into();
        one.doc["context"]["referer"] = format!("https://example.com/{number}").into();
        let about = (one.thng, one.product);
        let new =
            NewScan::of(one.account, one.id, one.timestamp, about, &one.doc).context("it does not fit")?;
        batch.push((number.unsigned_abs(), new));
    }
    let ids: Vec<ActionId> = batch.iter().filter_map(|(_, scan)| scan.id()).collect();
    let boot = Boot { edge: "e1", boot: 1 };
    let batch = Batch { boot, stored_elsewhere: 0, end: 3, clock: &*made.app.core.clock, scans: batch };
    ensure!(scans.append(&batch).await?.positions.len() == 3);
    for scan in scans.find_many(made.account, &ids).await? {
        let context = scan.members["context"].as_object().context("context")?;
        ensure!(!context.contains_key("userAgent") && !context.contains_key("referer"), "{context:?}");
        ensure!(context["userAgentName"] == "Agent", "{context:?}");
    }
    let most = number(
        &db,
        "SELECT MAX(c) FROM (SELECT COUNT(*) AS c FROM scan_texts_202601 GROUP BY account, kind) AS counts",
    )
    .await?;
    ensure!(most <= 50_004, "{most}");
    Ok(())
}

/// A dump reads every table for hours: scans are stored in the next month meanwhile, and old months wait.
async fn a_month_is_made_and_dropped_beside_readers(engine: Engine) -> Result<()> {
    let (made, _, _) = prepared(engine).await?;
    let (scans, db) = (&made.app.actions.scans.pool, scans_of(&made).await?);
    let mut dump = None;
    // On SQLite readers hold up nobody.
    if matches!(db, Db::Pg(_)) {
        let tx = dump.insert(db.begin(&Ctx::default()).await?);
        if let Conn::PgTx(c) = &mut **tx {
            let sql = "LOCK TABLE scans, scan_texts, scan_facets, scans_202512, scan_texts_202512, scan_months \
                IN ACCESS SHARE MODE";
            sqlx::query(sql).execute(&mut **c).await?;
        }
    }
    scans.make_month(UnixMillis(1_780_000_000_000)).await?;
    ensure!(scans.describe().await?.months.len() == 3);
    let dropped = scans.drop_before(UnixMillis(1_767_225_600_000)).await?.map(Month::number);
    ensure!(dropped == matches!(db, Db::Sqlite { .. }).then_some(202_512), "{dropped:?}");
    drop(dump);
    let dropped = scans.drop_before(UnixMillis(1_767_225_600_000)).await?.map(Month::number);
    ensure!(dropped == matches!(db, Db::Pg(_)).then_some(202_512), "{dropped:?}");
    ensure!(scans.describe().await?.months.len() == 2);
    Ok(())
}

/// A machine without a battery begins in 1970: what it stores then is not what retention removes first.
async fn a_clock_before_its_time_loses_nothing(engine: Engine) -> Result<()> {
    struct Begin;
    impl Clock for Begin {
        fn now(&self) -> UnixMillis {
            UnixMillis(5)
        }
    }
    let (made, _, _) = prepared(engine).await?;
    let one = scan(made.account, 1)?;
    let new = NewScan::of(one.account, one.id, one.timestamp, (one.thng, one.product), &one.doc);
    let new = vec![(0, new.context("it does not fit")?)];
    let boot = Boot { edge: "e1", boot: 1 };
    let batch = Batch { boot, stored_elsewhere: 0, end: 1, clock: &Begin, scans: new };
    let appended = made.app.actions.scans.pool.append(&batch).await?;
    ensure!(appended.created_at == UnixMillis(1_767_225_600_000), "{appended:?}");
    Ok(())
}

async fn delete_actions(made: &TestApp) -> Result<()> {
    execute(&made.app.core.db, "DELETE FROM actions").await
}
