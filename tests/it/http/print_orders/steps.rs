//! Workers that are killed between and within steps: each serial is made once, and the bytes are the same.

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use kernel::{
    service::{Random, RandomUnavailable},
    store::Ctx,
};
use printing::{
    domain::order::Stage,
    service::steps::{self, Stepped},
    store::{leases, orders},
    worker::{Part, work},
};
use serde_json::{Value, json};
use shared::{id::JobId, short_id::ShortId};
use tests::db::{Engine, SystemRandom, TestApp};
use tokio_util::sync::CancellationToken;

use super::{Api, column, ended, file, finished, manifest, order, product, serials, with_product};
use crate::store::schema::run;

crate::on_both_engines!(
    an_order_survives_workers_that_die_after_each_step,
    a_worker_that_lost_its_lease_changes_nothing,
    two_orders_of_one_product_share_no_number,
    removing_chunks_in_many_turns_is_no_failed_try,
    an_order_that_this_release_cannot_read_is_in_nobodys_way,
    a_short_id_that_was_given_out_is_passed_over,
    a_process_without_edges_draws_and_leaves_the_rest,
);

/// Takes the leases of dead workers away, as time would.
async fn free(api: &Api) -> Result<()> {
    run(&api.made.db.location, &["UPDATE print_orders SET lease_until = 0".to_owned()]).await
}

/// Claims the next order, does one step of it and dies; `None` when there is none.
pub(super) async fn step(api: &Api) -> Result<Option<Stepped>> {
    let db = &api.made.app.core.db;
    let mut tx = db.begin(&Ctx::default()).await?;
    let claimed = leases::claim(&mut tx).await?;
    ensure!(leases::claim(&mut tx).await?.is_none(), "two workers hold one order");
    tx.commit().await?;
    let Some(mut claimed) = claimed else { return Ok(None) };
    let stepped = steps::step(&api.made.app.printing, &mut claimed).await?;
    free(api).await?;
    Ok(Some(stepped))
}

/// Steps until an order is at a stage.
pub(super) async fn step_to(api: &Api, path: &str, stage: Stage) -> Result<()> {
    let id: JobId = path.rsplit('/').next().context("id")?.parse()?;
    loop {
        let mut conn = api.made.app.core.db.read().await?;
        let found = orders::find(&mut conn, api.made.account, id).await?.context("no order")?;
        drop(conn);
        if found.details.stage == stage {
            return Ok(());
        }
        step(api).await?.context("the order does not come to the stage")?;
    }
}

async fn an_order_survives_workers_that_die_after_each_step(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    let body = json!({"source": serials(&product, 60, json!({})), "format": "pdf-pages",
        "hri": {"text": "serial"}});
    let path = order(&api, body).await?;
    let mut count = 0;
    while step(&api).await?.is_some() {
        count += 1;
        ensure!(count < 100, "{}", api.get(&path).await?.json());
    }
    ensure!(count >= 8, "{count} steps");
    let lines = manifest(&api, &path).await?;
    let expected: Vec<String> = (1..=60).map(|n| n.to_string()).collect();
    ensure!(column(&lines, "serial") == expected, "{lines:?}");
    ensure!(api.fingerprint().await?["thngs"].len() == 60);
    // One that nobody disturbs gives the same.
    let again = json!({"source": {"filter": format!("product={product}")}, "format": "pdf-pages",
        "hri": {"text": "serial"}});
    let again = format!("/jobs/qr/{}", finished(&api, again).await?["id"].as_str().context("id")?);
    for name in ["codes.pdf", "manifest.csv"] {
        ensure!(file(&api, &path, name).await? == file(&api, &again, name).await?, "{name} differs");
    }
    Ok(())
}

async fn a_worker_that_lost_its_lease_changes_nothing(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    let body = json!({"source": serials(&product, 30, json!({})), "format": "zpl"});
    let made = overtaken(&api, body).await?;
    ensure!(made["progress"]["made"] == 30, "{made}");
    let filter = format!("product={product}");
    let found = overtaken(&api, json!({"source": {"filter": filter}, "format": "svg"})).await?;
    ensure!(found["progress"]["made"] == 30, "{found}");
    ensure!(api.fingerprint().await?["thngs"].len() == 30);
    Ok(())
}

/// An order of which each step is done by a worker, and then again by one that held the order before.
async fn overtaken(api: &Api, body: Value) -> Result<Value> {
    let state = &api.made.app.printing;
    let path = order(api, body).await?;
    loop {
        let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
        let claimed = leases::claim(&mut tx).await?;
        tx.commit().await?;
        let Some(mut stale) = claimed else { break };
        // Another one takes it over and does the step; the first one comes back and does it, too.
        free(api).await?;
        step(api).await?.context("nobody took it over")?;
        let before = api.fingerprint().await?;
        ensure!(steps::step(state, &mut stale).await? == Stepped::Lost);
        ensure!(api.fingerprint().await? == before, "a worker without a lease wrote something");
    }
    let order = ended(api, &path).await?;
    ensure!(order["status"] == "complete", "{order}");
    ensure!(file(api, &path, "receipt.json").await?.len() > 100, "the files are there");
    Ok(order)
}

async fn two_orders_of_one_product_share_no_number(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    let body = json!({"source": serials(&product, 30, json!({"prefix": "X"})), "format": "zpl"});
    let both = futures_util::future::join_all((0..6).map(|_| order(&api, body.clone()))).await;
    let mut found = BTreeSet::new();
    for path in both {
        let path = path?;
        ensure!(ended(&api, &path).await?["status"] == "complete");
        found.extend(column(&manifest(&api, &path).await?, "serial").into_iter().map(str::to_owned));
    }
    let expected: BTreeSet<String> = (1..=180).map(|n| format!("X{n}")).collect();
    ensure!(found == expected, "{found:?}");
    Ok(())
}

async fn removing_chunks_in_many_turns_is_no_failed_try(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    let body = json!({"source": serials(&product, 5, json!({})), "format": "zpl", "waitForEdges": "none"});
    let path = order(&api, body).await?;
    step_to(&api, &path, Stage::Clear).await?;
    // Chunks, then codes: a large order takes more turns than an order may fail.
    for _ in 0..2 {
        let mut tx = api.made.app.core.db.begin(&Ctx::default()).await?;
        let mut claimed = leases::claim(&mut tx).await?.context("nothing is to be removed")?;
        tx.commit().await?;
        ensure!(claimed.item.details.stage == Stage::Clear && claimed.failures == 1, "{claimed:?}");
        ensure!(steps::step(&api.made.app.printing, &mut claimed).await? == Stepped::Moved);
        free(&api).await?;
    }
    ensure!(ended(&api, &path).await?["status"] == "complete");
    Ok(())
}

async fn an_order_that_this_release_cannot_read_is_in_nobodys_way(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    let body = json!({"source": serials(&product, 1, json!({})), "format": "zpl", "waitForEdges": "none"});
    let (newer, plain) = (order(&api, body.clone()).await?, order(&api, body).await?);
    let doc = match engine {
        Engine::Sqlite => "json_set(doc, '$.stage', 'later')",
        Engine::Postgres | Engine::ClickHouse => "jsonb_set(doc, '{stage}', '\"later\"')",
    };
    let id = newer.rsplit('/').next().context("id")?;
    run(&api.made.db.location, &[format!("UPDATE print_orders SET doc = {doc} WHERE id = '{id}'")]).await?;
    let mut failed = 0;
    for _ in 0..100 {
        match work(&api.made.app.printing, Part::All, &CancellationToken::new()).await {
            Ok(true) => {}
            Ok(false) => break,
            Err(_) => failed += 1,
        }
    }
    ensure!(failed == 1, "{failed} claims failed");
    ensure!(api.get(&plain).await?.json()["status"] == "complete");
    Ok(())
}

/// Random bits of the system, but for one fill of 16 bytes: so many from now, `TAKEN` comes.
#[derive(Debug, Default)]
struct Rigged(AtomicUsize);

const TAKEN: [u8; 16] = [7; 16];

impl Random for Rigged {
    fn fill(&self, out: &mut [u8]) -> Result<(), RandomUnavailable> {
        SystemRandom.fill(out)?;
        let is_one = out.len() == TAKEN.len() && self.0.load(Ordering::SeqCst) > 0;
        if is_one && self.0.fetch_sub(1, Ordering::SeqCst) == 1 {
            out.copy_from_slice(&TAKEN);
        }
        Ok(())
    }
}

async fn a_short_id_that_was_given_out_is_passed_over(engine: Engine) -> Result<()> {
    let random = Arc::new(Rigged::default());
    let rigged = random.clone();
    let api = Api::over(TestApp::with(engine, |parts| parts.random = rigged).await?).await?;
    let product = product(&api).await?;
    let thng = api.create("/thngs", json!({"name": "t"})).await?["id"].clone();
    let short_id = ShortId::generate(TAKEN).to_string();
    let link = json!({"platformId": thng, "defaultRedirectUrl": "https://e.com", "shortId": short_id});
    ensure!(api.post("/redirections", link).await?.status.is_success());
    let body = json!({"source": serials(&product, 1, json!({})), "format": "zpl", "waitForEdges": "none"});
    // Whichever random bits of the step become the short id.
    for nth in 1..=6 {
        let path = order(&api, body.clone()).await?;
        random.0.store(nth, Ordering::SeqCst);
        let order = ended(&api, &path).await?;
        ensure!(order["status"] == "complete", "{nth}: {order}");
    }
    Ok(())
}

async fn a_process_without_edges_draws_and_leaves_the_rest(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    let body = json!({"source": serials(&product, 5, json!({})), "format": "zpl", "waitForEdges": "none"});
    let draw = async || -> Result<()> {
        let (state, stop) = (&api.made.app.printing, CancellationToken::new());
        while work(state, Part::Drawing, &stop).await? {}
        Ok(())
    };
    let path = order(&api, body.clone()).await?;
    draw().await?;
    ensure!(api.get(&path).await?.json()["status"] == "waiting", "it makes Things without the writer");
    step_to(&api, &path, Stage::Render).await?;
    draw().await?;
    let there = api.get(&path).await?.json();
    ensure!(there["status"] == "publishing" && there["progress"]["rendered"] == 5, "{there}");
    step_to(&api, &path, Stage::Assemble).await?;
    draw().await?;
    let done = api.get(&path).await?.json();
    ensure!(done["status"] == "complete" && done["filesUntil"].is_i64(), "{done}");
    // What is left of a cancelled one it removes, wherever it was.
    let other = order(&api, body).await?;
    step(&api).await?;
    ensure!(api.call(Method::POST, &format!("{other}/cancel"), None).await?.status == 202);
    draw().await?;
    let tables = api.fingerprint().await?;
    ensure!(tables["print_codes"].is_empty() && tables["print_chunks"].is_empty(), "{tables:?}");
    Ok(())
}
