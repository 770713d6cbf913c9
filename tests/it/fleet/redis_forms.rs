//! The forms of a region's Redis, from control to edge: TLS, a cluster, and sentinels that promote another server.

use std::{
    process::{Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use reqwest::StatusCode;
use tests::{
    fleet::Fleet,
    fleet_edge::FleetEdge,
    killed::Killed,
    redis::{RedisCluster, RedisServer, free_port},
};

use super::until;

/// The user of edges: it may read the view in one step, and nothing else. Behind sentinels the client library
/// also asks a server whether it is the primary.
const USER: [&str; 9] = ["ACL", "SETUSER", "edge", "on", ">secret", "~{waymark:*", "-@all", "+mget", "+role"];

/// Whether an edge finds its Redis.
async fn sees_view(fleet: &Fleet, edge: &FleetEdge) -> Result<bool> {
    let metrics = tests::product::metrics_of(&fleet.http, &edge.admin).await?;
    Ok(metrics.get("waymark_edge_view_up") == Some(&1.0))
}

/// Creates links, then takes control away: what an edge answers now, it has read from Redis.
async fn reads_the_view(fleet: &mut Fleet, edge: &FleetEdge, short_ids: &[&str]) -> Result<()> {
    let product = fleet.create_product(0).await?;
    for short_id in short_ids {
        let wait = "?wait=edges&timeout=20s";
        let (status, body) = fleet.create_redirection(0, &product, Some(short_id), wait).await?;
        ensure!(status == StatusCode::CREATED, "{status} {body}");
    }
    let head = fleet.call(0, reqwest::Method::GET, "/status", None).await?.1["revision"].as_f64();
    until("the view is written and seen", async || {
        let metrics = fleet.controls[0].metrics(&fleet.http).await?;
        let is_written = metrics.get("waymark_control_publisher_watermark").copied() == head;
        Ok(is_written && sees_view(fleet, edge).await?)
    })
    .await?;
    fleet.controls[0].kill()?;
    for short_id in short_ids {
        let (status, _) = edge.scan(&fleet.http, short_id).await?;
        ensure!(status == StatusCode::TEMPORARY_REDIRECT, "{short_id}: {status}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_view_over_tls() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let write = |name: &str, text: String| {
        let path = folder.path().join(name).display().to_string();
        std::fs::write(&path, text).map(|()| path)
    };
    let mut params = CertificateParams::new(Vec::<String>::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca_key = KeyPair::generate()?;
    let ca = write("ca.pem", params.self_signed(&ca_key)?.pem())?;
    let key = KeyPair::generate()?;
    let issuer = Issuer::new(params, ca_key);
    let certificate = CertificateParams::new(vec!["127.0.0.1".to_owned()])?.signed_by(&key, &issuer)?;
    let (certificate, key) =
        (write("redis.pem", certificate.pem())?, write("redis.key", key.serialize_pem())?);
    let port = free_port()?;
    let tls_port = port.to_string();
    let redis = RedisServer::start_with(&[
        "--tls-port",
        &tls_port,
        "--tls-cert-file",
        &certificate,
        "--tls-key-file",
        &key,
        "--tls-ca-cert-file",
        &ca,
        "--tls-auth-clients",
        "no",
    ])
    .await?;
    // Without `ROLE`.
    redis.command::<()>(&USER[..8]).await?;

    let mut fleet = Fleet::start(0).await?;
    let settings = |user: &str, ca: &str| {
        vec![("REDIS_URL", format!("rediss://{user}127.0.0.1:{port}")), ("WAYMARK_REDIS_CA", ca.to_owned())]
    };
    fleet.redis_settings = settings("", &ca);
    fleet.add_control()?;
    let edge = fleet.add_edge_with("e1", settings("edge:secret@", &ca))?;
    // One that trusts another authority is not talked into reading it.
    let other = write("other.pem", rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()])?.cert.pem())?;
    let wary = fleet.add_edge_with("e2", settings("edge:secret@", &other))?;
    for edge in [&edge, &wary] {
        edge.until_live(&fleet.http, 0).await?;
    }
    reads_the_view(&mut fleet, &edge, &["ONE", "TWO"]).await?;
    ensure!(!sees_view(&fleet, &wary).await?, "a certificate of nobody it trusts");
    Ok(())
}

/// Nobody scans while Redis is away: the edge still knows, and does not read a dead connection once control is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_absent_redis_is_noticed_without_scans() -> Result<()> {
    let mut redis = RedisServer::start().await?;
    let mut fleet = Fleet::start(0).await?;
    fleet.redis_settings = vec![("REDIS_URL", redis.url())];
    fleet.add_control()?;
    let edge = fleet.add_edge("e1")?;
    edge.until_live(&fleet.http, 0).await?;
    let until_view_is = async |is_seen: bool| {
        let what = if is_seen { "the edge sees the view" } else { "the edge sees that Redis is away" };
        until(what, async || Ok(sees_view(&fleet, &edge).await? == is_seen)).await
    };
    until_view_is(true).await?;
    redis.pause()?;
    until_view_is(false).await?;
    redis.go_on()?;
    until_view_is(true).await?;
    redis.kill();
    until_view_is(false).await?;
    redis.start_again().await?;
    until_view_is(true).await?;
    reads_the_view(&mut fleet, &edge, &["ONE"]).await
}

/// Every server has a share of the links, and the user of the edge may ask where they are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_view_in_a_cluster() -> Result<()> {
    let cluster = RedisCluster::start(3).await?;
    let user = [&USER[..8], &["+cluster|slots"]].concat();
    for server in &cluster.nodes {
        server.command::<()>(&user).await?;
    }
    let mut fleet = Fleet::start(0).await?;
    let shards = ("WAYMARK_REDIS_SHARDS", "16".to_owned());
    fleet.redis_settings = vec![("REDIS_URL", cluster.url()), shards.clone()];
    fleet.add_control()?;
    let own = cluster.url().replace("://", "://edge:secret@");
    let edge = fleet.add_edge_with("e1", vec![("REDIS_URL", own), shards])?;
    edge.until_live(&fleet.http, 0).await?;
    until("the edge sees the view", async || sees_view(&fleet, &edge).await).await?;
    let short_ids: Vec<String> = (0..24).map(|n| format!("LINK{n}")).collect();
    reads_the_view(&mut fleet, &edge, &short_ids.iter().map(String::as_str).collect::<Vec<_>>()).await?;
    for server in &cluster.nodes {
        let calls: String = server.command(&["INFO", "commandstats"]).await?;
        ensure!(calls.contains("cmdstat_mget"), "nobody read here: {calls}");
    }
    Ok(())
}

/// A sentinel; killed when dropped.
struct Sentinel {
    port: u16,
    _child: Killed,
    _folder: tempfile::TempDir,
}

impl Sentinel {
    /// Watches a primary alone: one voice is enough to promote its replica.
    fn start(primary: u16) -> Result<Self> {
        let (port, folder) = (free_port()?, tempfile::tempdir()?);
        let config = folder.path().join("sentinel.conf");
        let text = format!(
            "port {port}\nbind 127.0.0.1\ndir {}\nsentinel monitor view 127.0.0.1 {primary} 1\n\
             sentinel down-after-milliseconds view 1500\nsentinel failover-timeout view 10000\n",
            folder.path().display()
        );
        std::fs::write(&config, text)?;
        let child = Command::new("redis-server")
            .arg(&config)
            .arg("--sentinel")
            .stdout(Stdio::null())
            .spawn()
            .context("redis-server")?;
        Ok(Self { port, _child: Killed(child), _folder: folder })
    }

    /// The primary's port, and how many replicas the sentinel knows.
    async fn view(&self) -> Result<(u16, usize)> {
        let client = redis::Client::open(format!("redis://127.0.0.1:{}", self.port))?;
        let mut connection = client.get_multiplexed_async_connection().await?;
        let ask = |what: &str| redis::cmd("SENTINEL").arg(what).arg("view").to_owned();
        let (_, port): (String, u16) = ask("get-master-addr-by-name").query_async(&mut connection).await?;
        let replicas: Vec<redis::Value> = ask("replicas").query_async(&mut connection).await?;
        Ok((port, replicas.len()))
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_promote_another_server() -> Result<()> {
    let mut primary = RedisServer::start().await?;
    let replica = RedisServer::start().await?;
    for server in [&primary, &replica] {
        server.command::<()>(&USER).await?;
    }
    let primary_port = primary.port.to_string();
    replica.command::<()>(&["REPLICAOF", "127.0.0.1", &primary_port]).await?;
    let sentinel = Sentinel::start(primary.port)?;
    until("the sentinel knows both", async || {
        Ok(sentinel.view().await.is_ok_and(|(port, replicas)| port == primary.port && replicas == 1))
    })
    .await?;

    let mut fleet = Fleet::start(0).await?;
    let settings =
        |user: &str| vec![("REDIS_URL", format!("redis+sentinel://{user}127.0.0.1:{}/view", sentinel.port))];
    fleet.redis_settings = settings("");
    fleet.add_control()?;
    let edge = fleet.add_edge_with("e1", settings("edge:secret@"))?;
    edge.until_live(&fleet.http, 0).await?;
    until("the edge sees the view", async || sees_view(&fleet, &edge).await).await?;

    primary.kill();
    // Nobody scans: the edge finds out by itself.
    until("the edge sees that it is gone", async || Ok(!sees_view(&fleet, &edge).await?)).await?;
    until("the replica is the primary", async || {
        Ok(sentinel.view().await.is_ok_and(|(port, _)| port == replica.port))
    })
    .await?;
    // Publisher and edge both ask who it is now.
    until("the edge sees the view again", async || {
        tokio::time::sleep(Duration::from_millis(100)).await;
        sees_view(&fleet, &edge).await
    })
    .await?;
    reads_the_view(&mut fleet, &edge, &["ONE", "TWO", "THREE"]).await
}
