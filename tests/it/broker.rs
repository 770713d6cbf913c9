//! The broker: publishing and subscribing, on both engines, and real MQTT clients.

mod clients;
mod connected;
mod flaps;
mod isolation;
mod limits;
mod projects;
mod quotas;
mod sockets;
mod topics;

use std::{net::TcpListener, time::Duration};

use anyhow::{Context, Result, ensure};
use control::{composition::Parts, http::ApiListeners, worker};
use events::live::BrokerListeners;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tests::{
    accounts,
    db::{Engine, TestApp},
    mqtt::{Client, Hello},
    product::client,
    wait::read_until,
};
use tokio_util::sync::CancellationToken;

/// Longest wait for something that must come.
const DEADLINE: Duration = Duration::from_secs(30);

/// A broker and an API over one database, with two accounts.
struct Broker {
    made: TestApp,
    api: String,
    mqtt: String,
    key: String,
    other_key: String,
    http: reqwest::Client,
    shutdown: CancellationToken,
}

impl Broker {
    async fn new(engine: Engine) -> Result<Self> {
        Self::with(engine, |_| {}).await
    }

    async fn with(engine: Engine, adapt: impl FnOnce(&mut Parts)) -> Result<Self> {
        let made = TestApp::with(engine, adapt).await?;
        let now = made.app.core.clock.now().0;
        let (key, other_key) = ("A".repeat(80), "B".repeat(80));
        made.add_key(&key).await?;
        let db = &made.app.core.db;
        let other = accounts::add(db, now, "x@example.com", Some("other.gg")).await?;
        accounts::add_key(db, now, &other_key, other).await?;
        let shutdown = CancellationToken::new();
        let (api, mqtt) = (TcpListener::bind("127.0.0.1:0")?, TcpListener::bind("127.0.0.1:0")?);
        let (api_at, mqtt_at) = (api.local_addr()?, mqtt.local_addr()?);
        events::service::connections::beat(&made.app.events).await?;
        tokio::spawn(worker::connections::run(made.app.events.clone(), shutdown.clone()));
        let listeners = BrokerListeners { plain: Some(mqtt), tls: None };
        tokio::spawn(events::live::run(listeners, made.app.broker.clone(), shutdown.clone()));
        let listeners = ApiListeners { plain: vec![api], tls: None };
        tokio::spawn(control::http::run(listeners, made.app.clone(), shutdown.clone()));
        let (api, mqtt) = (format!("http://{api_at}"), mqtt_at.to_string());
        Ok(Self { made, api, mqtt, key, other_key, http: client()?, shutdown })
    }

    async fn call_as(
        &self,
        key: &str,
        method: Method,
        path: &str,
        body: Option<Value>,
    ) -> Result<(u16, Value)> {
        let request = self.http.request(method, format!("{}{path}", self.api)).header("authorization", key);
        let (status, body) = tests::json::send(request, body).await?;
        Ok((status.as_u16(), body))
    }

    async fn ok(&self, method: Method, path: &str, body: Option<Value>) -> Result<Value> {
        let (status, body) = self.call_as(&self.key, method, path, body).await?;
        ensure!(StatusCode::from_u16(status)?.is_success(), "{path}: {status} {body}");
        Ok(body)
    }

    async fn put(&self, path: &str, body: Value) -> Result<Value> {
        self.ok(Method::PUT, path, Some(body)).await
    }

    /// Makes a Thng for a key; gives its id.
    async fn thng_of(&self, key: &str) -> Result<String> {
        let body = json!({"name": "t", "identifiers": {"gs1:21": format!("S{}", &key[..1])}});
        let (_, made) = self.call_as(key, Method::POST, "/thngs", Some(body)).await?;
        Ok(made["id"].as_str().context("no id")?.to_owned())
    }

    async fn thng(&self) -> Result<String> {
        self.thng_of(&self.key).await
    }

    /// The key of a Thng.
    async fn key_of(&self, thng: &str) -> Result<String> {
        let made = self.ok(Method::POST, "/auth/evrythng/thngs", Some(json!({"thngId": thng}))).await?;
        Ok(made["thngApiKey"].as_str().context("no key")?.to_owned())
    }

    async fn operator(&self, id: &str) -> Result<Client> {
        Client::enter(&self.mqtt, &Hello::new(id, &self.key)).await
    }

    /// The values of `~connected`, oldest first.
    async fn connected(&self, thng: &str) -> Result<Vec<Value>> {
        let path = format!("/thngs/{thng}/properties/~connected?sortOrder=ASCENDING&perPage=100");
        let all = self.ok(Method::GET, &path, None).await?;
        Ok(all.as_array().context("no list")?.iter().map(|point| point["value"].clone()).collect())
    }

    /// Waits until `~connected` has had these values.
    async fn until_connected(&self, thng: &str, expected: &[bool]) -> Result<()> {
        let expected: Vec<Value> = expected.iter().map(|value| json!(value)).collect();
        read_until(async || self.connected(thng).await, |values| *values == expected).await?;
        Ok(())
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}
