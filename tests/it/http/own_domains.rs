//! Short domains that accounts claim: proofs over a real DNS server, and what becomes of a domain.

mod certificates;
mod ends;
mod lost;
mod proofs;
mod settings;

use std::{io, net::SocketAddr, sync::Arc};

use ::certificates::settings::AcmeSettings;
use anyhow::{Context, Result, ensure};
use axum::http::Method;
use domains::worker;
use events::egress::{EgressClient, Lookup};
use futures_util::future::BoxFuture;
use kernel::{domain::event::Event, store::events as log};
use serde_json::{Value, json};
use tests::{
    db::{Engine, TestApp},
    dns::DnsServer,
};

use super::{Answer, Api};
use crate::store::schema::run;

/// Past the shortest time between two checks of a host.
const PAUSE_MS: i64 = 10_001;
const HOUR_MS: i64 = 3_600_000;

/// No host leads anywhere: the file of a proof is never found, and nothing leaves this machine.
struct NoHosts;

impl Lookup for NoHosts {
    fn lookup(&self, host: String) -> BoxFuture<'static, io::Result<Vec<SocketAddr>>> {
        Box::pin(async move { Err(io::Error::new(io::ErrorKind::NotFound, host)) })
    }
}

/// An API that asks a DNS server of the test.
struct Setting {
    api: Api,
    dns: DnsServer,
}

impl Setting {
    async fn new(engine: Engine) -> Result<Self> {
        Self::with(engine, None).await
    }

    /// One that orders certificates at an authority.
    async fn with(engine: Engine, acme: Option<AcmeSettings>) -> Result<Self> {
        let dns = DnsServer::start().await?;
        let _ = tests::db::egress()?;
        let egress = EgressClient::new(true, Arc::new(NoHosts)).map_err(anyhow::Error::msg)?;
        let server = Some(dns.address);
        let made = TestApp::with(engine, |parts| {
            parts.egress = egress;
            parts.dns_server = server;
            parts.acme = acme;
        })
        .await?;
        Ok(Self { api: Api::over(made).await?, dns })
    }

    fn path(&self) -> String {
        format!("/accounts/{}/shortDomains", self.api.made.account)
    }

    fn others_path(&self) -> String {
        format!("/accounts/{}/shortDomains", self.api.other_account)
    }

    /// Claims a host; gives the claim.
    async fn claim(&self, host: &str) -> Result<Value> {
        self.api.create(&self.path(), json!({"host": host})).await
    }

    /// Lets DNS have the record of a claim.
    fn publish(&self, claim: &Value) -> Result<()> {
        let member = |name: &str| claim["record"][name].as_str().context("record").map(str::to_owned);
        self.dns.set(&member("name")?, &["v=spf1 -all", &member("value")?]);
        Ok(())
    }

    /// Lets so many milliseconds pass for all claims. The clock of the database cannot be set: their times go back instead.
    async fn pass(&self, ms: i64) -> Result<()> {
        self.api.made.clock.advance(ms);
        let times = [
            "created_at",
            "asked_at",
            "verified_at",
            "checked_at",
            "unproven_since",
            "next_check",
            "ends_at",
        ];
        let earlier = times.map(|time| format!("{time} = {time} - {ms}")).join(", ");
        run(&self.api.made.db.location, &[format!("UPDATE domain_claims SET {earlier}")]).await
    }

    /// Asks for a check, later than the one before.
    async fn verify(&self, host: &str) -> Result<Answer> {
        self.pass(PAUSE_MS).await?;
        self.api.call(Method::POST, &format!("{}/{host}/verify", self.path()), None).await
    }

    /// Claims a host and proves it.
    async fn prove(&self, host: &str) -> Result<Value> {
        self.publish(&self.claim(host).await?)?;
        let answer = self.verify(host).await?;
        ensure!(answer.status == 200 && answer.json()["state"] == "verified", "{answer:?}");
        Ok(answer.json())
    }

    async fn read(&self, host: &str) -> Result<Value> {
        Ok(self.api.get(&format!("{}/{host}", self.path())).await?.must_be(200)?.json())
    }

    /// Lets the worker look, so many milliseconds later.
    async fn work(&self, later_ms: i64) -> Result<usize> {
        self.pass(later_ms).await?;
        Ok(worker::work(&self.api.made.app.domains).await?)
    }

    /// Makes a link on a domain.
    async fn link(&self, host: &str, short_id: &str) -> Result<Answer> {
        let thng = self.api.create("/thngs", json!({"name": "t"})).await?["id"].clone();
        let body = json!({"platformId": thng, "defaultRedirectUrl": "https://example.com/", "shortId": short_id,
            "shortDomain": host});
        self.api.post("/redirections", body).await
    }

    /// The events of short domains: hosts, and whether they were proven.
    async fn events(&self) -> Result<Vec<(String, bool)>> {
        let mut conn = self.api.made.app.core.db.read().await?;
        let rows = log::list_after(&mut conn, 0, &[], u32::MAX).await?;
        let of = |event| match event {
            Event::ShortDomain(host, is_verified) => Some((host, is_verified)),
            _ => None,
        };
        Ok(rows.into_iter().filter_map(|(_, row)| of(row?.event)).collect())
    }
}
