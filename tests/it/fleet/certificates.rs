//! A certificate for a short domain, from end to end: two controls, two edges, a DNS server and an authority.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail, ensure};
use kernel::store::Db;
use reqwest::{Certificate, Client, Method, StatusCode, tls::TlsInfo};
use serde_json::{Value, json};
use tests::{
    dns::DnsServer,
    fleet::Fleet,
    fleet_edge::FleetEdge,
    pebble::{Checks, Prepared},
    redis::{free_port, signal},
};

use super::until;

const HOST: &str = "go.example.com";

/// The database behind the fleet's API.
async fn run(fleet: &Fleet, sql: &'static str) -> Result<u64> {
    let Db::Pg(pool) = fleet.db() else { bail!("a fleet is on Postgres") };
    Ok(sqlx::query(sql).execute(pool).await?.rows_affected())
}

async fn count(fleet: &Fleet, sql: &'static str) -> Result<i64> {
    let Db::Pg(pool) = fleet.db() else { bail!("a fleet is on Postgres") };
    Ok(sqlx::query_scalar(sql).fetch_one(pool).await?)
}

/// An edge with a TLS listener and no folder of certificates.
fn add_edge(fleet: &Fleet, name: &str, tls: u16) -> Result<FleetEdge> {
    let mut settings = fleet.redis_settings.clone();
    settings.push(("WAYMARK_EDGE_ACME", "on".to_owned()));
    settings.push(("WAYMARK_EDGE_TLS_LISTEN", format!("127.0.0.1:{tls}")));
    fleet.add_edge_with(name, settings)
}

/// A client that trusts the root of the authority alone, and finds the host at a TLS listener.
fn client(root: &[u8], tls: u16) -> Result<Client> {
    let client = Client::builder().tls_certs_only([Certificate::from_pem(root)?]).tls_info(true).no_proxy();
    Ok(client.resolve(HOST, SocketAddr::from(([127, 0, 0, 1], tls))).build()?)
}

/// The certificate that a connection of a client shows.
async fn shown(client: &Client, tls: u16) -> Result<Vec<u8>> {
    let answer = client.get(format!("https://{HOST}:{tls}/robots.txt")).send().await?;
    let info = answer.extensions().get::<TlsInfo>().context("TLS")?;
    Ok(info.peer_certificate().context("certificate")?.to_vec())
}

async fn read(fleet: &Fleet, path: &str) -> Result<Value> {
    let (status, body) = fleet.call(0, Method::GET, path, None).await?;
    ensure!(status == StatusCode::OK, "{status}: {body}");
    Ok(body)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_arrives_at_every_edge_though_controls_die() -> Result<()> {
    let (dns, authority) = (DnsServer::start().await?, Prepared::new()?);
    dns.point(HOST);
    let mut fleet = Fleet::start(0).await?;
    fleet.redis_settings.extend([
        ("WAYMARK_DNS_SERVER", dns.address.to_string()),
        ("WAYMARK_ACME_DIRECTORY", authority.directory()),
        ("WAYMARK_ACME_TRUST_FILE", authority.trust_file().display().to_string()),
        ("WAYMARK_ACME_CONTACT", "ops@example.com".to_owned()),
    ]);
    fleet.add_control()?;
    fleet.add_control()?;
    let ports = [free_port()?, free_port()?];
    let edges = [add_edge(&fleet, "e1", ports[0])?, add_edge(&fleet, "e2", ports[1])?];
    for edge in &edges {
        edge.until_live(&fleet.http, 0).await?;
    }
    let http = edges[0].url.rsplit(':').next().context("port")?.parse()?;
    let checks = Checks::Hosts { dns: dns.address, http, tls: ports[1] };
    let pebble = authority.start(checks).await?;
    let root = pebble.root().await?;
    let account = read(&fleet, "/access").await?["account"].as_str().context("account")?.to_owned();
    let path = format!("/accounts/{account}/shortDomains");

    // An edge that is silent holds the order up: the authority is not asked to check before all edges can answer.
    let claim = fleet.call(0, Method::POST, &path, Some(json!({"host": HOST}))).await?.1;
    let member = |name: &str| claim["record"][name].as_str().context("record").map(str::to_owned);
    dns.set(&member("name")?, &[&member("value")?]);
    run(&fleet, "UPDATE domain_claims SET asked_at = 0").await?;
    signal(edges[1].pid(), "STOP")?;
    let (status, verified) = fleet.call(0, Method::POST, &format!("{path}/{HOST}/verify"), None).await?;
    ensure!(status == StatusCode::OK && verified["state"] == "verified", "{status}: {verified}");
    let waiting =
        "SELECT COUNT(*) FROM domain_certificates WHERE order_url IS NOT NULL AND token IS NOT NULL";
    until("the order waits for edges", async || Ok(count(&fleet, waiting).await? == 1)).await?;

    // Both controls are killed in the middle of it, and go on with the same order.
    for control in &mut fleet.controls {
        control.kill()?;
    }
    signal(edges[1].pid(), "CONT")?;
    run(&fleet, "UPDATE certificate_authorities SET lease_until = 0").await?;
    for at in 0..2 {
        fleet.restart_control(at)?;
    }
    let domain = format!("{path}/{HOST}");
    until("there is a certificate", async || {
        Ok(read(&fleet, &domain).await?["certificate"]["state"] == "valid")
    })
    .await?;
    ensure!(pebble.orders()? == 1, "{} orders", pebble.orders()?);
    let clients = [client(&root, ports[0])?, client(&root, ports[1])?];
    let mut first = Vec::new();
    for (client, port) in clients.iter().zip(ports) {
        until("an edge has it", async || Ok(shown(client, port).await.is_ok())).await?;
        first.push(shown(client, port).await?);
    }
    ensure!(first[0] == first[1], "every edge has the same");

    let name = format!("waymark_control_domain_certificate_expiry_timestamp_seconds{{host=\"{HOST}\"}}");
    until("its end is shown", async || {
        let mut is_shown = false;
        for control in &fleet.controls {
            is_shown |= control.metrics(&fleet.http).await?.contains_key(&name);
        }
        Ok(is_shown)
    })
    .await?;

    // It is renewed under open connections.
    let (status, body) = fleet.call(1, Method::POST, &format!("{domain}/certificate"), None).await?;
    ensure!(status == StatusCode::ACCEPTED, "{status}: {body}");
    for ((old, port), first) in clients.iter().zip(ports).zip(&first) {
        let renewed = async || Ok(shown(&client(&root, port)?, port).await? != *first);
        until("new connections have the new one", renewed).await?;
        ensure!(shown(old, port).await? == *first, "the open connection goes on");
    }
    Ok(())
}
