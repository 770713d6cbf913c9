//! How orders end: complete, cancelled, expired, removed; and what edges have to do with it.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use axum::http::Method;
use kernel::{domain::event::Event, store::events};
use printing::{
    domain::order::Stage,
    service::purge,
    worker::{Part, work},
};
use serde_json::{Value, json};
use shared::wire::stream::ToControl;
use tests::{
    db::{Engine, TestApp},
    raw_edge::hello,
};
use tokio_util::sync::CancellationToken;

use super::{
    Api, ended, finished, order, product, serials,
    steps::{step, step_to},
    with_product, work_all,
};
use crate::store::schema::run;

crate::on_both_engines!(
    a_cancelled_order_leaves_what_it_made_and_nothing_else,
    an_order_that_is_cancelled_with_its_files_keeps_none,
    files_expire_and_the_order_stays,
    an_order_that_has_ended_is_removed_with_its_files,
    edges_that_lag_are_named_or_waited_for,
    orders_under_way_are_bounded,
    the_end_of_an_order_is_an_event,
    an_outage_of_the_blob_store_does_not_fail_an_order,
);

/// Blobs of print orders.
pub(super) fn blobs(api: &Api) -> Result<Vec<String>> {
    let folder = api.made.db.files().join(api.made.account.as_str());
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let names = std::fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()));
    let names = names.collect::<Result<Vec<String>>>()?;
    Ok(names.into_iter().filter(|name| name.starts_with("print-")).collect())
}

async fn a_cancelled_order_leaves_what_it_made_and_nothing_else(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    // In the middle of making, and after a chunk was drawn.
    for steps in [1, 3] {
        let before = api.fingerprint().await?["thngs"].len();
        let body = json!({"source": serials(&product, 40, json!({})), "format": "zpl"});
        let path = order(&api, body).await?;
        for _ in 0..steps {
            step(&api).await?;
        }
        let cancel = format!("{path}/cancel");
        let answer = api.call(Method::POST, &cancel, None).await?;
        ensure!(answer.status == 202 && answer.bytes.is_empty(), "{answer:?}");
        let order = ended(&api, &path).await?;
        ensure!(order["status"] == "cancelled", "{order}");
        work_all(&api).await?;
        let tables = api.fingerprint().await?;
        ensure!(tables["print_codes"].is_empty() && tables["print_chunks"].is_empty(), "{tables:?}");
        ensure!(blobs(&api)?.is_empty(), "{:?}", blobs(&api)?);
        let made = order["progress"]["made"].as_u64().context("made")?;
        ensure!(tables["thngs"].len() - before == usize::try_from(made)? && made >= 25, "{order}");
        api.call(Method::POST, &cancel, None).await?.problem(409, 40901);
        api.get(&format!("{path}/files")).await?.problem(409, 40901);
        ensure!(api.delete(&path).await?.status == 200);
        api.get(&path).await?.problem(404, 40401);
    }
    Ok(())
}

async fn an_order_that_is_cancelled_with_its_files_keeps_none(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    let body = json!({"source": serials(&product, 2, json!({})), "format": "zpl", "waitForEdges": "none"});
    let path = order(&api, body).await?;
    step_to(&api, &path, Stage::Clear).await?;
    ensure!(blobs(&api)?.iter().any(|name| name.ends_with("codes.zpl")), "{:?}", blobs(&api)?);
    ensure!(api.call(Method::POST, &format!("{path}/cancel"), None).await?.status == 202);
    ensure!(ended(&api, &path).await?["status"] == "cancelled");
    ensure!(blobs(&api)?.is_empty(), "{:?}", blobs(&api)?);
    ensure!(api.delete(&path).await?.status == 200);
    Ok(())
}

async fn files_expire_and_the_order_stays(engine: Engine) -> Result<()> {
    let api = Api::new(engine).await?;
    let (product, app) = (product(&api).await?, &api.made.app);
    let made = finished(&api, json!({"source": serials(&product, 2, json!({})), "format": "svg"})).await?;
    let path = format!("/jobs/qr/{}", made["id"].as_str().context("id")?);
    ensure!(blobs(&api)?.len() == 3, "{:?}", blobs(&api)?);
    ensure!(purge::expire(&app.printing).await? == 0, "their time is not over");
    let left_ms = made["filesUntil"].as_i64().context("until")? - app.core.clock.now().0;
    api.made.clock.advance(left_ms);
    ensure!(purge::expire(&app.printing).await? == 1 && purge::expire(&app.printing).await? == 0);
    ensure!(blobs(&api)?.is_empty(), "{:?}", blobs(&api)?);
    ensure!(api.get(&format!("{path}/files")).await?.json() == json!([]));
    api.get(&format!("{path}/files/codes.zip")).await?.problem(404, 40401);
    let order = api.get(&path).await?.json();
    ensure!(order["status"] == "complete" && order["filesRemovedAt"].is_i64(), "{order}");
    ensure!(order.get("filesUntil").is_none(), "{order}");
    // Orders are kept for ever here.
    ensure!(purge::purge(&app.printing).await? == 0 && api.get(&path).await?.status == 200);
    Ok(())
}

async fn an_order_that_has_ended_is_removed_with_its_files(engine: Engine) -> Result<()> {
    let kept = Duration::from_secs(60);
    let made = TestApp::with(engine, |parts| parts.printing.orders_kept = Some(kept)).await?;
    let api = Api::over(made).await?;
    let product = product(&api).await?;
    let body = |count| json!({"source": serials(&product, count, json!({})), "format": "svg"});
    let path = order(&api, body(2)).await?;
    api.delete(&path).await?.problem(409, 40901);
    ended(&api, &path).await?;
    let answer = api.delete(&path).await?;
    ensure!(answer.status == 200 && answer.bytes.is_empty(), "{answer:?}");
    ensure!(blobs(&api)?.is_empty(), "{:?}", blobs(&api)?);
    api.delete(&path).await?.problem(404, 40401);

    let old = finished(&api, body(1)).await?;
    ensure!(purge::purge(&api.made.app.printing).await? == 0, "its time is not over");
    api.made.clock.advance(61_000);
    let open = order(&api, body(1)).await?;
    ensure!(purge::purge(&api.made.app.printing).await? == 1);
    api.get(&format!("/jobs/qr/{}", old["id"].as_str().context("id")?)).await?.problem(404, 40401);
    ensure!(blobs(&api)?.is_empty() && api.get(&open).await?.status == 200);
    Ok(())
}

async fn edges_that_lag_are_named_or_waited_for(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    let hello = hello("slow", None, 0);
    let mut session = api.made.app.hub.connect(&hello).await?;
    // It says that it is there, and applies nothing.
    let edge = tokio::spawn(async move {
        loop {
            session.receive(ToControl::Ack { applied: 0, rejected: Vec::new() });
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
    let body = |wait: &str| json!({"source": serials(&product, 1, json!({})), "format": "zpl", "waitForEdges": wait});
    let waiting = async |path: &str| -> Result<Value> {
        work_all(&api).await?;
        let order = api.get(path).await?.json();
        ensure!(order["status"] == "publishing" && order["edges"]["lagging"] == json!(["slow"]), "{order}");
        Ok(order)
    };
    let (reported, required) = (order(&api, body("report")).await?, order(&api, body("require")).await?);
    waiting(&reported).await?;
    waiting(&required).await?;
    // After a minute the one is released and names the edge, the other one goes on waiting.
    api.made.clock.advance(61_000);
    let order = ended(&api, &reported).await?;
    ensure!(order["status"] == "complete" && order["edges"]["lagging"] == json!(["slow"]), "{order}");
    let receipt = super::file(&api, &reported, "receipt.json").await?;
    let receipt: Value = serde_json::from_slice(&receipt)?;
    ensure!(receipt["edges"]["lagging"] == json!(["slow"]), "{receipt}");
    waiting(&required).await?;
    edge.abort();
    ensure!(edge.await.is_err_and(|error| error.is_cancelled()));
    let order = ended(&api, &required).await?;
    ensure!(order["status"] == "complete" && order["edges"]["lagging"] == json!([]), "{order}");
    Ok(())
}

async fn orders_under_way_are_bounded(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    let body = json!({"source": serials(&product, 1, json!({})), "format": "zpl"});
    for _ in 0..printing::service::orders::MAX_OPEN {
        order(&api, body.clone()).await?;
    }
    api.post("/jobs/qr", body.clone()).await?.problem(429, 42901);
    let first = api.get("/jobs/qr?sortOrder=ASCENDING&perPage=1").await?.json();
    let first = format!("/jobs/qr/{}/cancel", first[0]["id"].as_str().context("id")?);
    ensure!(api.call(Method::POST, &first, None).await?.status == 202);
    order(&api, body).await?;
    let cancelled = api.get("/jobs/qr?filter=status=cancelled").await?.json();
    ensure!(cancelled.as_array().map(Vec::len) == Some(1), "{cancelled}");
    Ok(())
}

async fn the_end_of_an_order_is_an_event(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    let ends = async |status: &str| -> Result<usize> {
        let mut conn = api.made.app.core.db.read().await?;
        let rows = events::list_after(&mut conn, 0, &[], u32::MAX).await?;
        let is_end =
            |event: &Event| matches!(event, Event::PrintOrder { status: found, .. } if found == status);
        Ok(rows.into_iter().filter_map(|(_, row)| row).filter(|row| is_end(&row.event)).count())
    };
    let body = json!({"source": serials(&product, 1, json!({})), "format": "zpl"});
    finished(&api, body.clone()).await?;
    ensure!(ends("complete").await? == 1 && ends("cancelled").await? == 0);
    let path = order(&api, body).await?;
    ensure!(api.call(Method::POST, &format!("{path}/cancel"), None).await?.status == 202);
    work_all(&api).await?;
    ensure!(ends("complete").await? == 1 && ends("cancelled").await? == 1);
    Ok(())
}

async fn an_outage_of_the_blob_store_does_not_fail_an_order(engine: Engine) -> Result<()> {
    let (api, product) = with_product(engine).await?;
    let body = json!({"source": serials(&product, 1, json!({})), "format": "zpl", "waitForEdges": "none"});
    let path = order(&api, body).await?;
    let folder = api.made.db.files().join(api.made.account.as_str());
    let away = folder.with_extension("away");
    let set =
        async |what: &str| run(&api.made.db.location, &[format!("UPDATE print_orders SET {what}")]).await;
    for (stage, status) in [(Stage::Render, "rendering"), (Stage::Assemble, "publishing")] {
        step_to(&api, &path, stage).await?;
        // A file where the folder of the account belongs: nothing can be written or read.
        let is_there = folder.exists();
        if is_there {
            std::fs::rename(&folder, &away)?;
        }
        std::fs::write(&folder, "")?;
        // As often as other failures end an order, and more.
        set("failures = 23").await?;
        for _ in 0..5 {
            set("lease_until = 0").await?;
            ensure!(
                work(&api.made.app.printing, Part::All, &CancellationToken::new()).await?,
                "it is not tried"
            );
            let order = api.get(&path).await?.json();
            ensure!(order["status"] == status, "{order}");
        }
        std::fs::remove_file(&folder)?;
        if is_there {
            std::fs::rename(&away, &folder)?;
        }
        set("lease_until = 0").await?;
    }
    ensure!(ended(&api, &path).await?["status"] == "complete");
    Ok(())
}
