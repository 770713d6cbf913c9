//! Scans of an account with a quota, whose intake is killed between its transactions, and which are sent again.

use actions::store::scan_charges;
use anyhow::{Context, Result, ensure};
use control::worker::ingest_scans::ingest;
use kernel::{
    on_db,
    store::{Ctx, Db, Tx},
};
use serde_json::{Value, json};
use shared::{
    time::UnixMillis,
    wire::scan::{ScanBatch, ScanRecord},
};
use tests::db::{Engine, Location, TestApp};

use super::{super::Api, daily::record};
use crate::store::scan_steps::{take_half, take_until};

const EDGE: &str = "e1";

fn batch(first_seq: u64, records: &[ScanRecord]) -> ScanBatch {
    ScanBatch { edge: EDGE.into(), boot: 1, first_seq, records: records.to_vec() }
}

/// Keeps everybody from storing scans of the edge, until it is dropped.
async fn hold_store(made: &TestApp) -> Result<Tx> {
    const HOLD: &str = "INSERT INTO scan_intake (edge_id, boot, next_seq) VALUES ($1, 1, 0)";
    let db = match &made.db.location {
        Location::Sqlite(path) => Db::open_sqlite_shrinking(&scan_store::store::file_of(path)).await?,
        Location::Postgres(..) => made.app.core.db.clone(),
    };
    let mut tx = db.begin(&Ctx::default()).await?;
    on_db!(&mut *tx, |c| sqlx::query(HOLD).bind(EDGE).execute(c).await.map(|_| ()))?;
    Ok(tx)
}

/// Takes a batch as far as its scans are charged, and does not store them: the process is killed there.
async fn charge_only(made: &TestApp, batch: &ScanBatch) -> Result<()> {
    let _held = hold_store(made).await?;
    let end = batch.first_seq + batch.records.len() as u64;
    take_until(made, batch, async || {
        let mut conn = made.app.core.db.read().await?;
        Ok(scan_charges::find(&mut conn, EDGE, 1).await?.next_seq == end)
    })
    .await
}

/// How many scans are listed, the hits of both links, and what statistics have counted.
async fn seen(api: &Api) -> Result<(usize, Value, Value, Value)> {
    let list = api.get("/actions/implicitScans?perPage=100").await?.json();
    let hits =
        async |id: &str| anyhow::Ok(api.get(&format!("/redirections/{id}")).await?.json()["hits"].clone());
    let counted = api.get("/scans/stats?from=0&to=86400000&interval=day").await?.must_be(200)?;
    let listed = list.as_array().context("list")?.len();
    Ok((listed, hits("A").await?, hits("B").await?, counted.json()["totals"]["scans"].clone()))
}

async fn used(api: &Api) -> Result<(Value, Value)> {
    let quota = api.quotas().await?["scansPerDay"].clone();
    Ok((quota["used"].clone(), quota["notStored"].clone()))
}

async fn link(api: &Api, short_id: &str) -> Result<()> {
    let product = api.product().await?;
    let body =
        json!({"platformId": product, "defaultRedirectUrl": "https://example.com/", "shortId": short_id});
    api.post("/redirections", body).await?.must_be(200)?;
    Ok(())
}

async fn scans_are_charged_once_wherever_the_intake_is_killed(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    link(&api, "A").await?;
    api.set_quotas(json!({"scansPerDay": 3})).await?;
    let ids = ["A", "A", "B", "A", "A", "A"];
    let records: Vec<_> = ids.iter().zip(1_000..).map(|(id, at)| record(id, at)).collect();
    charge_only(&api.made, &batch(0, &records)).await?;
    ensure!(used(&api).await? == (json!(3), json!(2)), "{:?}", used(&api).await?);
    // What was decided holds: the new quota is for later scans, and the new link had none of these.
    link(&api, "B").await?;
    ensure!(seen(&api).await? == (0, json!(0), json!(0), json!(0)), "{:?}", seen(&api).await?);
    api.set_quotas(json!({"scansPerDay": 100})).await?;
    take_half(&api.made, &batch(0, &records)).await?;
    ensure!(seen(&api).await? == (3, json!(0), json!(0), json!(0)), "{:?}", seen(&api).await?);
    for (begin, end) in [(0, 2), (1, 6), (0, 6), (3, 5)] {
        ingest(&api.made.app, &batch(begin as u64, &records[begin..end])).await?;
        let used = used(&api).await?;
        ensure!(used == (json!(3), json!(2)), "{begin}..{end}: {used:?}");
    }
    ensure!(seen(&api).await? == (3, json!(5), json!(0), json!(3)), "{:?}", seen(&api).await?);
    let status = api.get("/status").await?.json()["scans"].clone();
    ensure!((&status["overQuota"], &status["unknown"]) == (&json!(2), &json!(1)), "{status}");
    ingest(&api.made.app, &batch(6, &records[..3])).await?;
    ensure!(used(&api).await? == (json!(6), json!(2)), "{:?}", used(&api).await?);
    ensure!(seen(&api).await? == (6, json!(7), json!(1), json!(6)), "{:?}", seen(&api).await?);
    Ok(())
}

/// Scans that were stored when nobody had a quota are not charged when their batch comes again.
async fn a_quota_charges_nothing_that_is_stored(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    link(&api, "A").await?;
    let records: Vec<_> = (0..4).map(|n| record("A", 1_000 + n)).collect();
    take_half(&api.made, &batch(0, &records[..3])).await?;
    // What it has without a limit is read from the store.
    ensure!(used(&api).await?.0 == json!(3), "{:?}", used(&api).await?);
    api.set_quotas(json!({"scansPerDay": 1})).await?;
    ingest(&api.made.app, &batch(0, &records)).await?;
    ensure!(used(&api).await? == (json!(1), json!(0)), "{:?}", used(&api).await?);
    link(&api, "B").await?;
    ensure!(seen(&api).await? == (4, json!(4), json!(0), json!(4)), "{:?}", seen(&api).await?);
    Ok(())
}

/// Several tries of one batch at once, and batches of two edges, share a quota exactly.
async fn a_quota_is_shared_exactly(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    link(&api, "A").await?;
    link(&api, "B").await?;
    api.set_quotas(json!({"scansPerDay": 25})).await?;
    let records: Vec<_> = (0..20).map(|n| record("A", 1_000 + n)).collect();
    let batches: Vec<ScanBatch> =
        (0..6).map(|n| ScanBatch { edge: format!("e{}", n % 2).into(), ..batch(0, &records) }).collect();
    let tries = batches.iter().map(|one| ingest(&api.made.app, one));
    for taken in futures_util::future::join_all(tries).await {
        ensure!(taken?.next_seq == 20);
    }
    ensure!(used(&api).await? == (json!(25), json!(15)), "{:?}", used(&api).await?);
    ensure!(seen(&api).await? == (25, json!(40), json!(0), json!(25)), "{:?}", seen(&api).await?);
    let at = UnixMillis(1_020);
    ingest(&api.made.app, &batch(0, &[ScanRecord { at, ..record("A", 0) }])).await?;
    // `e1` had sent that number before: nothing is new.
    ensure!(used(&api).await? == (json!(25), json!(15)), "{:?}", used(&api).await?);
    Ok(())
}

crate::on_both_engines!(
    scans_are_charged_once_wherever_the_intake_is_killed,
    a_quota_charges_nothing_that_is_stored,
    a_quota_is_shared_exactly,
);
crate::on_clickhouse!(
    scans_are_charged_once_wherever_the_intake_is_killed,
    a_quota_charges_nothing_that_is_stored,
);
