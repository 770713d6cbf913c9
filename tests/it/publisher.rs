//! The view in a real Redis: it follows the log, and every disturbance is noticed and repaired.

mod cluster;
mod faults;
mod follow;

use std::{
    collections::BTreeMap,
    ops::Range,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use push::{
    hub::Hub,
    publisher::{Publisher, PublisherConfig},
    publisher_stats::PublisherStats,
    store::snapshot::Snapshot,
};
use redirects::service::redirections::{self, DomainChoice};
use redis::aio::ConnectionLike;
use serde_json::{Value, json};
use shared::{
    id::ResourceId,
    redirect::Redirect,
    wire::{
        stream::Rev,
        view::{Meta, Record, Setup, meta_key, record_key, setup_key, shard_of},
    },
};
use tests::{
    db::{Engine, TestApp},
    product::DEADLINE,
    wait::until,
};
use tokio_util::sync::CancellationToken;

use crate::store::{
    links::create_many,
    redirections::{create, product},
};

/// A publisher at work; stopped when dropped.
struct Working {
    stats: PublisherStats,
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

impl Working {
    async fn stop(self) -> Result<()> {
        self.stop.cancel();
        self.task.await?;
        Ok(())
    }
}

/// Starts a publisher named `owner` over the hub of `made`.
fn publish(made: &TestApp, owner: &str, url: &str, shards: u16) -> Result<Working> {
    let config = PublisherConfig {
        region: "here".to_owned(),
        owner: owner.to_owned(),
        redis: url.parse()?,
        ca: None,
        shards,
    };
    let (stats, stop) = (PublisherStats::default(), CancellationToken::new());
    let publisher = Publisher::new(made.app.core.db.clone(), made.app.hub.clone(), config, stats.clone());
    Ok(Working { stats, stop: stop.clone(), task: tokio::spawn(publisher.run(stop)) })
}

/// A service over a fresh Postgres with some redirections.
async fn service(redirections: usize) -> Result<(TestApp, ResourceId)> {
    let made = TestApp::new(Engine::Postgres).await?;
    let product = product(&made).await?;
    create_many(&made, links(product, 0..redirections)).await?;
    Ok((made, product))
}

/// Redirections of a product to numbered targets.
fn links(product: ResourceId, numbers: Range<usize>) -> impl Iterator<Item = Value> {
    numbers.map(
        move |n| json!({"platformId": product, "defaultRedirectUrl": format!("https://example.com/{n}")}),
    )
}

async fn delete(made: &TestApp, short_id: &str) -> Result<Rev> {
    let choice = DomainChoice::default();
    let done =
        redirections::delete(&made.app.redirects, &made.caller(), choice, vec![short_id.to_owned()]).await;
    Ok(done.map_err(|error| anyhow::anyhow!("{error}"))?.rev)
}

/// What a view holds, as an edge would read it key by key.
#[derive(Debug, PartialEq)]
struct Held {
    metas: Vec<Option<Meta>>,
    setup: Option<Setup>,
    records: BTreeMap<String, (Rev, Arc<Redirect>)>,
}

/// Reads what the view should hold out of the database.
async fn expected(
    made: &TestApp,
    shards: u16,
) -> Result<(Rev, Setup, BTreeMap<String, (Rev, Arc<Redirect>)>)> {
    let mut snapshot = Snapshot::begin(&made.app.core.db).await?;
    let setup = snapshot.setup().await?;
    let mut records = BTreeMap::new();
    loop {
        let page = snapshot.next_page(7).await?;
        if page.is_empty() {
            return Ok((snapshot.at_rev, setup, records));
        }
        for (key, rev, redirect) in page {
            records.insert(record_key(shard_of(&key, shards), &key), (rev, redirect));
        }
    }
}

async fn held(redis: &mut (impl ConnectionLike + Send), keys: &[String], shards: u16) -> Result<Held> {
    let mut metas = Vec::new();
    for shard in 0..shards {
        let text: Option<String> = redis::cmd("GET").arg(meta_key(shard)).query_async(redis).await?;
        metas.push(text.map(|text| text.parse()).transpose()?);
    }
    let setup: Option<Vec<u8>> = redis::cmd("GET").arg(setup_key()).query_async(redis).await?;
    let mut records = BTreeMap::new();
    for key in keys {
        let value: Option<Vec<u8>> = redis::cmd("GET").arg(key).query_async(redis).await?;
        if let Some(value) = value {
            let record: Record = serde_json::from_slice(&value)?;
            records.insert(key.clone(), (record.rev, record.value));
        }
    }
    Ok(Held { metas, setup: setup.map(|json| serde_json::from_slice(&json)).transpose()?, records })
}

/// Every record key of the servers.
async fn record_keys(connections: &mut [redis::aio::MultiplexedConnection]) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for connection in connections {
        let keys: Vec<String> = redis::cmd("KEYS").arg("*:r:*").query_async(connection).await?;
        all.extend(keys);
    }
    Ok(all)
}

/// Waits until every shard is whole at the head of the log, and holds the database's rows and nothing else.
async fn settled(made: &TestApp, servers: &[&tests::redis::RedisServer], shards: u16) -> Result<Vec<Meta>> {
    let begun = Instant::now();
    loop {
        let looked = look(made, servers, shards).await;
        match looked {
            Ok(metas) => return Ok(metas),
            Err(error) => ensure!(begun.elapsed() < DEADLINE, "the view is not right: {error:#}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn look(made: &TestApp, servers: &[&tests::redis::RedisServer], shards: u16) -> Result<Vec<Meta>> {
    let (head, setup, records) = expected(made, shards).await?;
    let mut connections = Vec::new();
    for server in servers {
        connections.push(server.connection().await?);
    }
    let mut keys = record_keys(&mut connections).await?;
    keys.sort();
    let wanted: Vec<String> = records.keys().cloned().collect();
    ensure!(keys == wanted, "{} records instead of {}", keys.len(), wanted.len());
    let seen = match connections.as_mut_slice() {
        [one] => held(one, &keys, shards).await?,
        _ => {
            let urls = servers.iter().map(|server| server.url());
            let client = redis::cluster::ClusterClient::new(urls)?;
            held(&mut client.get_async_connection().await?, &keys, shards).await?
        }
    };
    let metas: Vec<Meta> =
        seen.metas.iter().cloned().collect::<Option<_>>().context("a shard without a meta")?;
    for meta in &metas {
        let is_right = meta.complete && meta.watermark == head && meta.shards == shards;
        ensure!(is_right && meta.epoch == current_epoch(made).await?, "{meta} at head {head}");
    }
    ensure!(seen.records == records, "records differ");
    ensure!(seen.setup.as_ref() == Some(&setup), "the setup differs: {:?}", seen.setup);
    Ok(metas)
}

async fn current_epoch(made: &TestApp) -> Result<shared::wire::stream::Epoch> {
    Ok(redirects::store::log::load_head(&mut made.app.core.db.read().await?).await?.epoch)
}

/// A second hub over the same log, as another replica has one.
async fn other_hub(made: &TestApp) -> Result<Hub> {
    let hub = Hub::open(made.app.core.db.clone()).await?;
    tokio::spawn(hub.clone().run(CancellationToken::new()));
    Ok(hub)
}
