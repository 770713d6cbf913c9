//! Concurrent writers: in one process, in several replicas, and beside scan intake.
//!
//! SQLite has one writer at a time, so each of these is a queue there; on Postgres the tests wait until the others
//! really wait for the lock.

use std::{sync::Arc, time::Duration};

use anyhow::{Result, anyhow, ensure};
use applications::{domain::project::ProjectChange, service::projects};
use catalog::{
    domain::resource::{ProductChange, ThngChange},
    service::{products, thngs},
};
use control::{
    composition::{Parts, compose},
    service::{base_urls::UrlSettings, prepare},
    state::ApiState,
    worker::ingest_scans::ingest,
};
use digital_links::service::{follow_domain, step};
use kernel::{
    domain::body::Purpose,
    error::ServiceError,
    service::{capacity::Capacity, idempotency::IdempotencyKey},
    store::{Conn, Ctx, Tx},
};
use push::edge_keys::EdgeKeys;
use redirects::{
    domain::redirection::Redirection,
    service::redirections::{self, DomainChoice, Listing},
    store::{log, redirections as table},
};
use serde_json::json;
use shared::{
    client_address::TrustedProxies,
    redirect::RedirectKey,
    short_id::ShortId,
    short_url::{Scheme, ShortDomain},
};
use sqlx::PgPool;
use standalone::seed::seed;
use tenants::{
    domain::operator_key::KeyChange,
    service::keys,
    store::{accounts, operator_keys},
};
use tests::db::{Engine, Location, StepClock, SystemRandom, TestApp, TestDb, secret_keys};
use tokio_util::sync::CancellationToken;
use web::limiter::{Limits, Ticks};

use super::{
    redirections::{app_with_product, create, draft, product},
    scans::{batch, record},
};

super::super::on_both_engines!(
    a_product_change_keeps_a_concurrently_written_target,
    a_repeat_at_another_replica_gets_the_first_response,
    two_starts_mint_one_epoch,
    two_first_starts_create_one_account,
    requests_of_disconnected_callers_are_not_executed,
    scan_intake_yields_to_changes,
    no_key_outlives_its_project,
);

/// The lock that orders all changes, held by a transaction of the test.
async fn hold(made: &TestApp) -> Result<(Tx, i32)> {
    let mut tx = made.app.core.db.begin(&Ctx::default()).await?;
    log::take_revs(&mut tx, 0).await?;
    let pid = pid(&mut tx).await?;
    Ok((tx, pid))
}

pub(super) async fn pid(tx: &mut Tx) -> Result<i32> {
    match &mut **tx {
        Conn::PgTx(c) => Ok(sqlx::query_scalar("SELECT pg_backend_pid()").fetch_one(&mut **c).await?),
        Conn::Pg(_) | Conn::Sqlite(_) | Conn::SqliteTx(_) => Ok(0),
    }
}

/// Waits until so many sessions of Postgres stand behind that of `pid`, directly or one after the other.
pub(super) async fn until_behind(location: &Location, pid: i32, sessions: i64) -> Result<()> {
    const BEHIND: &str = "WITH RECURSIVE behind (pid) AS (SELECT $1 UNION SELECT a.pid FROM pg_stat_activity a \
        JOIN behind ON behind.pid = ANY(pg_blocking_pids(a.pid))) SELECT COUNT(*) - 1 FROM behind";
    let Location::Postgres(url) = location else { return Ok(()) };
    let pool = PgPool::connect(url).await?;
    let waited = async {
        while sqlx::query_scalar::<_, i64>(BEHIND).bind(pid).fetch_one(&pool).await? < sessions {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        anyhow::Ok(())
    };
    tokio::time::timeout(Duration::from_secs(4), waited).await??;
    pool.close().await;
    Ok(())
}

/// A second process over the same database.
async fn replica(made: &TestApp) -> Result<Arc<ApiState>> {
    let (app, task) = compose(Parts {
        db: made.app.core.db.clone(),
        secrets: made.app.core.secrets.clone(),
        clock: made.app.core.clock.clone(),
        ticks: Ticks::new(Duration::default),
        random: Arc::new(SystemRandom),
        blobs: made.app.catalog.blobs.clone(),
        geo_ip: None,
        trusted_proxies: TrustedProxies::default(),
        egress: tests::db::egress()?,
        dns_server: None,
        acme: None,
        limits: Limits::default(),
        capacity: Capacity::default(),
        jobs_kept: None,
        printing: printing::service::PrintLimits::default(),
        mail: None,
        oidc: None,
        scans: None,
        edge_keys: EdgeKeys::default(),
        contact: None,
        docs_url: made.app.docs_url.clone(),
        urls: UrlSettings::default(),
    })
    .await?;
    tokio::spawn(task.run(app.core.db.clone(), app.core.readers.clone(), CancellationToken::new()));
    Ok(app)
}

async fn a_product_change_keeps_a_concurrently_written_target(engine: Engine) -> Result<()> {
    let made = TestApp::new(engine).await?;
    let (first, second) = (product(&made).await?, product(&made).await?);
    let change =
        |body, purpose| ThngChange::parse(&body, purpose).map_err(|faults| anyhow::anyhow!("{faults:?}"));
    let new = change(json!({"name": "Bag", "product": first}), Purpose::Create)?;
    let thng = thngs::create(&made.app.core, &made.caller(), new, None).await?;
    let one = create(&made, thng.id.into(), "https://example.com/old", Some("ONE")).await?;

    let (mut tx, pid) = hold(&made).await?;
    let mut changed = one.clone();
    changed.redirect.target = "https://example.com/new".into();
    changed.rev = log::take_revs(&mut tx, 1).await?;
    assert_eq!(table::update(&mut tx, &[(RedirectKey::new("tn.gg", "ONE"), changed)]).await?, 1);
    let update = tokio::spawn({
        let (app, actor) = (made.app.clone(), made.caller());
        let change = change(json!({"product": second}), Purpose::Update)?;
        async move { thngs::update(&app.core, &actor, thng.id.as_str(), change).await }
    });
    until_behind(&made.db.location, pid, 1).await?;
    tx.commit().await?;
    update.await??;

    let found =
        redirections::find(&made.app.redirects, &made.caller(), DomainChoice::default(), "ONE").await?;
    assert_eq!(&*found.redirect.target, "https://example.com/new");
    assert_eq!(found.redirect.product_id.map(Into::into), Some(second));
    Ok(())
}

/// An item that is written while its product gives it no link, and is committed after that has changed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_of_digital_links_waits_for_writes_of_before() -> Result<()> {
    let made = TestApp::new(Engine::Postgres).await?;
    let (core, caller) = (&made.app.core, made.caller());
    let mut tx = core.db.begin(&Ctx::default()).await?;
    for mut domain in accounts::list_domains(&mut tx, made.account).await? {
        domain.digital_links = true;
        ensure!(accounts::set_settings(&mut tx, made.account, &domain).await?);
    }
    tx.commit().await?;
    let change = |body, purpose| ProductChange::parse(&body, purpose).map_err(|faults| anyhow!("{faults:?}"));
    let links =
        json!([{"linkType": "gs1:pip", "href": "https://example.com/", "title": "p", "default": true}]);
    let body = json!({"name": "Shoe", "identifiers": {"gs1:01": "09521234543213"}, "links": links});
    let product = products::create(core, &caller, change(body, Purpose::Create)?, None).await?.id;
    let body = json!({"name": "1", "product": product, "identifiers": {"gs1:21": "1"}});
    let new = ThngChange::parse(&body, Purpose::Create).map_err(|faults| anyhow!("{faults:?}"))?;
    let mut tx = core.db.begin(&caller.ctx).await?;
    thngs::create_in(core, &mut tx, &caller, new, None).await?;
    let known = change(json!({"serialMode": "known"}), Purpose::Update)?;
    products::update(core, &caller, product.as_str(), known).await?;
    let steps = async || {
        while step(core).await? {}
        anyhow::Ok(())
    };
    let early = tokio::time::timeout(Duration::from_millis(500), steps()).await;
    ensure!(early.is_err(), "the item is not there yet, and nobody looks for it later");
    tx.commit().await?;
    steps().await?;
    let key = RedirectKey::new("tn.gg", "01/09521234543213/21/1");
    let found = table::load_fill(&mut core.db.read().await?, &key).await?;
    ensure!(found.value.is_some(), "{key:?}");
    Ok(())
}

/// A write that has nothing to do with it, and is not committed, keeps no Digital Link waiting where a domain begins.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_domain_begins_beside_a_long_transaction() -> Result<()> {
    let made = TestApp::new(Engine::Postgres).await?;
    let (core, caller) = (&made.app.core, made.caller());
    let change = |body| ThngChange::parse(&body, Purpose::Create).map_err(|faults| anyhow!("{faults:?}"));
    let links =
        json!([{"linkType": "gs1:pip", "href": "https://example.com/", "title": "p", "default": true}]);
    let body = json!({"name": "Shoe", "identifiers": {"gs1:01": "09521234543213"}, "links": links,
        "serialMode": "known"});
    let new = ProductChange::parse(&body, Purpose::Create).map_err(|faults| anyhow!("{faults:?}"))?;
    let product = products::create(core, &caller, new, None).await?.id;
    let item = json!({"name": "1", "product": product, "identifiers": {"gs1:21": "1"}});
    thngs::create(core, &caller, change(item)?, None).await?;
    while step(core).await? {}

    let mut open = core.db.begin(&caller.ctx).await?;
    thngs::create_in(core, &mut open, &caller, change(json!({"name": "other"}))?, None).await?;
    let mut tx = core.db.begin(&Ctx::default()).await?;
    log::lock(&mut tx).await?;
    for mut domain in accounts::list_domains(&mut tx, made.account).await? {
        domain.digital_links = true;
        ensure!(accounts::set_settings(&mut tx, made.account, &domain).await?);
    }
    follow_domain(&mut tx, made.account, core.clock.now()).await?;
    tx.commit().await?;
    let steps = async {
        while step(core).await? {}
        anyhow::Ok(())
    };
    // A step that waited would give up later than this.
    tokio::time::timeout(Duration::from_secs(4), steps).await??;
    let key = RedirectKey::new("tn.gg", "01/09521234543213/21/1");
    let found = table::load_fill(&mut core.db.read().await?, &key).await?;
    ensure!(found.value.is_some(), "{key:?}");
    open.commit().await?;
    Ok(())
}

/// One that is rotated at the moment its project is deleted. Whichever comes first, none is left.
async fn no_key_outlives_its_project(engine: Engine) -> Result<()> {
    for deletes_first in [false, true] {
        let made = TestApp::new(engine).await?;
        let caller = made.caller();
        let change = ProjectChange::parse(&json!({"name": "p"}), Purpose::Create);
        let change = change.map_err(|faults| anyhow::anyhow!("{faults:?}"))?;
        let project = projects::create(&made.app.core, &caller, change).await?.id.to_string();
        let change =
            KeyChange { label: Some("x".to_owned()), project: Some(project.clone()), ..KeyChange::default() };
        let id = keys::create(&made.app.core, &caller, change).await?.key.id().to_string();

        let mut tx = made.app.core.db.begin(&Ctx::default()).await?;
        accounts::lock(&mut tx, made.account).await?;
        let pid = pid(&mut tx).await?;
        let rotate = {
            let (app, caller) = (made.app.clone(), caller.clone());
            async move { keys::rotate(&app.core, &caller, &id, 0).await.map(drop) }
        };
        let delete = {
            let (app, caller) = (made.app.clone(), caller.clone());
            async move { projects::delete(&app.core, &caller, &project).await }
        };
        let (rotated, deleted) = if deletes_first {
            let deleted = tokio::spawn(delete);
            until_behind(&made.db.location, pid, 1).await?;
            (tokio::spawn(rotate), deleted)
        } else {
            let rotated = tokio::spawn(rotate);
            until_behind(&made.db.location, pid, 1).await?;
            (rotated, tokio::spawn(delete))
        };
        until_behind(&made.db.location, pid, 2).await?;
        tx.commit().await?;
        deleted.await??;
        // It may find its key revoked.
        drop(rotated.await?);
        let now = made.app.core.clock.now();
        let left = operator_keys::list_valid(&mut made.app.core.db.read().await?, made.account, now).await?;
        ensure!(left.iter().all(|key| key.project.is_none()), "{left:?}");
    }
    Ok(())
}

async fn a_repeat_at_another_replica_gets_the_first_response(engine: Engine) -> Result<()> {
    let (made, product) = app_with_product(engine).await?;
    let (tx, pid) = hold(&made).await?;
    let mut answers = tokio::task::JoinSet::new();
    for app in [made.app.clone(), replica(&made).await?] {
        let (actor, draft) = (made.caller(), draft(product, "https://example.com/", None));
        let key = IdempotencyKey { key: "order-1".to_owned(), request: [1; 32] };
        answers.spawn(async move {
            redirections::create(&app.redirects, &actor, draft, DomainChoice::default(), None, Some(key))
                .await
        });
    }
    until_behind(&made.db.location, pid, 2).await?;
    tx.commit().await?;
    let mut ids = Vec::new();
    while let Some(answer) = answers.join_next().await {
        ids.push(answer??.value.redirect.short_id);
    }
    assert_eq!(ids[0], ids[1]);
    let listed = redirections::list(&made.app.redirects, &made.caller(), &Listing::default()).await?;
    assert_eq!(listed.items.len(), 1);
    Ok(())
}

async fn two_starts_mint_one_epoch(engine: Engine) -> Result<()> {
    let made = TestApp::without_tasks(engine).await?;
    let mut tx = made.app.core.db.begin(&Ctx::default()).await?;
    let pid = pid(&mut tx).await?;
    let first = log::bind(&mut tx, "epoch-1", "restored").await?;
    let second = tokio::spawn({
        let db = made.app.core.db.clone();
        async move {
            let mut tx = db.begin(&Ctx::default()).await?;
            let head = log::bind(&mut tx, "epoch-2", "restored").await?;
            tx.commit().await?;
            anyhow::Ok(head)
        }
    });
    until_behind(&made.db.location, pid, 1).await?;
    tx.commit().await?;
    assert_eq!((&*first.epoch, &*second.await??.epoch), ("epoch-1", "epoch-1"));
    Ok(())
}

async fn two_first_starts_create_one_account(engine: Engine) -> Result<()> {
    let database = TestDb::new(engine).await?;
    let clock = StepClock::default();
    prepare(&database.db, &clock, &SystemRandom, "history", &secret_keys()?).await?;
    let mut tx = database.db.begin(&Ctx::default()).await?;
    log::take_revs(&mut tx, 0).await?;
    let pid = pid(&mut tx).await?;
    let mut starts = tokio::task::JoinSet::new();
    for host in ["a.example", "b.example"] {
        let (db, domain) = (database.db.clone(), ShortDomain::new(Scheme::Https, host)?);
        starts.spawn(async move {
            let clock = StepClock::default();
            seed(&db, &clock, &SystemRandom, None, &[domain], false).await
        });
    }
    until_behind(&database.location, pid, 2).await?;
    tx.commit().await?;
    let (mut accounts, mut keys) = (Vec::new(), 0);
    while let Some(seeded) = starts.join_next().await {
        let seeded = seeded??;
        accounts.push(seeded.account);
        keys += usize::from(seeded.new_key.is_some());
    }
    assert_eq!(accounts[0], accounts[1]);
    assert_eq!(keys, 1);
    Ok(())
}

async fn requests_of_disconnected_callers_are_not_executed(engine: Engine) -> Result<()> {
    let mut made = TestApp::without_tasks(engine).await?;
    let product = product(&made).await?;
    let left = create(&made, product, "https://example.com/", Some("LEFT"));
    ensure!(tokio::time::timeout(Duration::ZERO, left).await.is_err(), "nobody writes yet");
    let task = made.writer.take().unwrap();
    tokio::spawn(task.run(made.app.core.db.clone(), made.app.core.readers.clone(), CancellationToken::new()));
    create(&made, product, "https://example.com/", Some("STAYED")).await?;
    let listed = redirections::list(&made.app.redirects, &made.caller(), &Listing::default()).await?;
    let ids: Vec<&ShortId> = listed.items.iter().map(|item| &item.redirect.short_id).collect();
    assert_eq!(ids, [&"STAYED".parse::<ShortId>()?]);
    Ok(())
}

/// A change that holds a row may want the next one that the intake holds: the intake lets go first.
async fn scan_intake_yields_to_changes(engine: Engine) -> Result<()> {
    if engine == Engine::Sqlite {
        // One writer: the intake holds nothing while it waits.
        return Ok(());
    }
    let (made, product) = app_with_product(engine).await?;
    let one = create(&made, product, "https://example.com/", Some("ONE")).await?;
    let person = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:128.0) Gecko/20100101 Firefox/128.0";
    let batch = batch(1, 0, &[record("ONE", person, 1)]);
    let (mut tx, _) = hold(&made).await?;
    let rev = log::take_revs(&mut tx, 1).await?;
    let changed = Redirection { rev, ..one };
    assert_eq!(table::update(&mut tx, &[(RedirectKey::new("tn.gg", "ONE"), changed)]).await?, 1);
    let refused = ingest(&made.app, &batch).await.unwrap_err();
    assert_eq!(refused.code(), shared::problem::Code::Unavailable, "{refused}");
    assert!(matches!(refused, ServiceError::Store(_)), "{refused}");
    tx.commit().await?;
    assert_eq!(ingest(&made.app, &batch).await?.next_seq, 1, "the edge sends it again");
    Ok(())
}
