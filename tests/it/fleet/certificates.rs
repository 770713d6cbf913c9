//! A certificate for a short domain, from end to end: controls, edges, a DNS server and an authority.

use std::net::SocketAddr;

use anyhow::{Context, Result, bail, ensure};
use kernel::store::Db;
use reqwest::{Certificate, Client, Method, StatusCode, tls::TlsInfo};
use serde_json::{Value, json};
use tests::{
    clock::Clock,
    dns::DnsServer,
    fleet::Fleet,
    fleet_edge::FleetEdge,
    pebble::{Checks, Prepared},
    product::metrics_of,
    redis::{free_port, signal},
};

use super::until;

const HOST: &str = "go.example.com";

/// A fleet without processes, whose controls ask this DNS server and this authority.
async fn begin(dns: &DnsServer, authority: &Prepared) -> Result<Fleet> {
    dns.point(HOST);
    let mut fleet = Fleet::start(0).await?;
    fleet.redis_settings.extend([
        ("WAYMARK_DNS_SERVER", dns.address.to_string()),
        ("WAYMARK_ACME_DIRECTORY", authority.directory()),
        ("WAYMARK_ACME_TRUST_FILE", authority.trust_file().display().to_string()),
        ("WAYMARK_ACME_CONTACT", "ops@example.com".to_owned()),
    ]);
    Ok(fleet)
}

/// Lets processes that are started from now on see a clock that is so many days ahead, or behind.
fn set_clock(fleet: &mut Fleet, days: i64) -> Result<()> {
    let clock = Clock::new(fleet.dir.join(format!("clock{days}")))?;
    clock.set(days * 24 * 3_600)?;
    let settings = clock.settings();
    fleet.redis_settings.retain(|(name, _)| settings.iter().all(|(own, _)| own != name));
    fleet.redis_settings.extend(settings);
    Ok(())
}

/// The port of an edge without TLS.
fn plain_port(edge: &FleetEdge) -> Result<u16> {
    Ok(edge.url.rsplit(':').next().context("port")?.parse()?)
}

/// The path of the short domains of the fleet's account.
async fn domains_path(fleet: &Fleet) -> Result<String> {
    let account = read(fleet, "/access").await?["account"].as_str().context("account")?.to_owned();
    Ok(format!("/accounts/{account}/shortDomains"))
}

/// Claims the host, and lets DNS have the record.
async fn claim(fleet: &Fleet, dns: &DnsServer, path: &str) -> Result<()> {
    let claim = fleet.call(0, Method::POST, path, Some(json!({"host": HOST}))).await?.1;
    let member = |name: &str| claim["record"][name].as_str().context("record").map(str::to_owned);
    dns.set(&member("name")?, &[&member("value")?]);
    run(fleet, "UPDATE domain_claims SET asked_at = 0").await?;
    Ok(())
}

async fn verify(fleet: &Fleet, path: &str) -> Result<()> {
    let (status, verified) = fleet.call(0, Method::POST, &format!("{path}/{HOST}/verify"), None).await?;
    ensure!(status == StatusCode::OK && verified["state"] == "verified", "{status}: {verified}");
    Ok(())
}

/// Asks for a try now.
async fn try_now(fleet: &Fleet, at: usize, domain: &str) -> Result<()> {
    let (status, body) = fleet.call(at, Method::POST, &format!("{domain}/certificate"), None).await?;
    ensure!(status == StatusCode::ACCEPTED, "{status}: {body}");
    Ok(())
}

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

/// The clock of the database is right, and none other.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_certificate_arrives_at_every_edge_though_controls_die_and_clocks_are_wrong() -> Result<()> {
    let (dns, authority) = (DnsServer::start().await?, Prepared::new()?);
    let mut fleet = begin(&dns, &authority).await?;
    let clocks = [100, -100];
    for days in clocks {
        set_clock(&mut fleet, days)?;
        fleet.add_control()?;
    }
    let ports = [free_port()?, free_port()?];
    let mut edges = Vec::new();
    for ((days, name), tls) in [(-100, "e1"), (100, "e2")].into_iter().zip(ports) {
        set_clock(&mut fleet, days)?;
        edges.push(add_edge(&fleet, name, tls)?);
    }
    for edge in &edges {
        edge.until_live(&fleet.http, 0).await?;
    }
    let checks = Checks::Hosts { dns: dns.address, http: plain_port(&edges[0])?, tls: ports[1] };
    let pebble = authority.start(checks).await?;
    let root = pebble.root().await?;
    let path = domains_path(&fleet).await?;

    // An edge that is silent holds the order up: the authority is not asked to check before all edges can answer.
    claim(&fleet, &dns, &path).await?;
    signal(edges[1].pid(), "STOP")?;
    verify(&fleet, &path).await?;
    let waiting =
        "SELECT COUNT(*) FROM domain_certificates WHERE order_url IS NOT NULL AND token IS NOT NULL";
    until("the order waits for edges", async || Ok(count(&fleet, waiting).await? == 1)).await?;

    // Both controls are killed in the middle of it, and go on with the same order.
    for control in &mut fleet.controls {
        control.kill()?;
    }
    signal(edges[1].pid(), "CONT")?;
    run(&fleet, "UPDATE certificate_authorities SET lease_until = 0").await?;
    for (at, days) in clocks.into_iter().enumerate() {
        set_clock(&mut fleet, days)?;
        fleet.restart_control(at)?;
    }
    let domain = format!("{path}/{HOST}");
    for at in 0..2 {
        until("there is a certificate", async || {
            let (status, body) = fleet.call(at, Method::GET, &domain, None).await?;
            Ok(status == StatusCode::OK && body["certificate"]["state"] == "valid")
        })
        .await?;
    }
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

    // It is renewed under open connections, and once: both controls look again meanwhile.
    try_now(&fleet, 1, &domain).await?;
    for ((old, port), first) in clients.iter().zip(ports).zip(&first) {
        let renewed = async || Ok(shown(&client(&root, port)?, port).await? != *first);
        until("new connections have the new one", renewed).await?;
        ensure!(shown(old, port).await? == *first, "the open connection goes on");
    }
    let is_due = "SELECT COUNT(*) FROM domain_certificates WHERE next_try <= \
        CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT) + 50 * 86400000::BIGINT";
    ensure!(count(&fleet, is_due).await? == 0, "the next one comes in two months");
    ensure!(pebble.orders()? == 2, "{} orders", pebble.orders()?);
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_whose_tls_leads_to_no_edge_is_checked_over_http() -> Result<()> {
    let (dns, authority) = (DnsServer::start().await?, Prepared::new()?);
    let mut fleet = begin(&dns, &authority).await?;
    fleet.add_control()?;
    let tls = free_port()?;
    let edge = add_edge(&fleet, "e1", tls)?;
    edge.until_live(&fleet.http, 0).await?;
    // Nobody listens where the authority looks for TLS.
    let checks = Checks::Hosts { dns: dns.address, http: plain_port(&edge)?, tls: free_port()? };
    let pebble = authority.start(checks).await?;
    let path = domains_path(&fleet).await?;
    let domain = format!("{path}/{HOST}");
    claim(&fleet, &dns, &path).await?;
    verify(&fleet, &path).await?;
    until("the check over TLS has failed", async || {
        Ok(read(&fleet, &domain).await?["certificate"]["state"] == "failed")
    })
    .await?;
    let error = read(&fleet, &domain).await?["certificate"]["error"].to_string();
    ensure!(error.contains("The certificate authority: "), "{error}");

    try_now(&fleet, 0, &domain).await?;
    until("there is a certificate", async || {
        Ok(read(&fleet, &domain).await?["certificate"]["state"] == "valid")
    })
    .await?;
    ensure!(pebble.orders()? == 2, "{} orders", pebble.orders()?);
    let metrics = metrics_of(&fleet.http, &edge.admin).await?;
    let answers = |over: &str| metrics.get(&format!("waymark_edge_acme_{over}_answers_total")).copied();
    ensure!(answers("http") >= Some(1.0) && answers("tls") == Some(0.0), "{metrics:?}");
    let client = client(&pebble.root().await?, tls)?;
    until("the edge has it", async || Ok(shown(&client, tls).await.is_ok())).await
}
