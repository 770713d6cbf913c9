//! Rate limits over real sockets: responses, which clients are limited, and recovery.

mod logins;

use std::{net::TcpListener, sync::Arc, time::Duration};

use anyhow::{Context, Result, ensure};
use control::{
    composition::Parts,
    http::{ApiListeners, internal, run},
    system::SystemRandom,
};
use kernel::service::capacity::{Capacity, CapacityLimits};
use push::edge_keys;
use reqwest::{Client, Method, Response};
use serde_json::{Value, json};
use shared::{
    time::{Clock, ManualClock, UnixMillis},
    wire::internal::{EDGES_PATH, LINKS_PATH, LOOKUP_PATH, STREAM_PATH},
};
use tests::db::{Engine, TestApp};
use tokio_util::sync::CancellationToken;
use web::limiter::{Limits, Ticks};

/// An API on a socket whose limits are small and whose time stands still.
struct Limited {
    base: String,
    /// Where edges connect.
    internal: String,
    http: Client,
    keys: [String; 2],
    clock: Arc<ManualClock>,
    made: TestApp,
    shutdown: CancellationToken,
}

impl Drop for Limited {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

impl Limited {
    async fn new(engine: Engine) -> Result<Self> {
        Self::with(engine, |_| {}).await
    }

    async fn with(engine: Engine, adapt: impl FnOnce(&mut Parts)) -> Result<Self> {
        // A second installation in one process is refused, and is no harm.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let clock = Arc::new(ManualClock::new(UnixMillis(0)));
        let ticks = clock.clone();
        let made = TestApp::with(engine, |parts| {
            parts.ticks = Ticks::new(move || Duration::from_millis(ticks.now().0.unsigned_abs()));
            parts.limits = Limits { requests_per_key: 3, refusals_per_address: 1, logins_per_address: 2 };
            adapt(parts);
        })
        .await?;
        let keys = ["K".repeat(80), "L".repeat(80)];
        for key in &keys {
            made.add_key(key).await?;
        }
        let bind = || {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            let base = format!("http://{}", listener.local_addr()?);
            anyhow::Ok((base, ApiListeners { plain: vec![listener], tls: None }))
        };
        let (base, api) = bind()?;
        let (internal, edges) = bind()?;
        let shutdown = CancellationToken::new();
        tokio::spawn(run(api, made.app.clone(), shutdown.clone()));
        tokio::spawn(internal::run(edges, made.app.clone(), shutdown.clone()));
        Ok(Self { base, internal, http: Client::new(), keys, clock, made, shutdown })
    }

    /// A request of a client behind the edge, which shows who it is.
    async fn send(&self, method: Method, path: &str, key: Option<&str>, client: &str) -> Result<Response> {
        self.send_to(&self.base, method, path, key, client).await
    }

    async fn send_to(
        &self,
        base: &str,
        method: Method,
        path: &str,
        key: Option<&str>,
        client: &str,
    ) -> Result<Response> {
        let mut request = self.http.request(method, format!("{base}{path}"));
        request = request.header("x-waymark-edge", "edge-token").header("x-forwarded-for", client);
        if let Some(key) = key {
            request = request.header("authorization", key);
        }
        Ok(request.json(&json!({})).send().await?)
    }
}

/// Status, and `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset` where they are.
fn told(response: &Response) -> (u16, Vec<u64>) {
    let names = ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"];
    let header = |name: &str| response.headers().get(name)?.to_str().ok()?.parse().ok();
    (response.status().as_u16(), names.into_iter().filter_map(header).collect())
}

/// Checks the refusal whole.
async fn check_limited(response: Response, seconds: u64) -> Result<()> {
    ensure!(response.status() == 429, "{response:?}");
    ensure!(response.headers()["retry-after"] == seconds.to_string().as_str(), "{response:?}");
    ensure!(response.headers()["ratelimit-reset"] == seconds.to_string().as_str(), "{response:?}");
    ensure!(response.headers()["ratelimit-remaining"] == "0", "{response:?}");
    let body: Value = response.json().await?;
    let errors = body["errors"].as_array().context("errors")?;
    ensure!(body["status"] == 429 && body["code"] == 42_901 && errors.len() == 1, "{body}");
    ensure!(
        errors[0].as_str().is_some_and(|text| text.ends_with(&format!("try again in {seconds} s."))),
        "{body}"
    );
    Ok(())
}

async fn a_key_is_limited_and_another_is_not(engine: Engine) -> Result<()> {
    let api = Limited::new(engine).await?;
    let [one, other] = &api.keys;
    for remaining in (0..6_u64).rev() {
        let response = api.send(Method::GET, "/access", Some(one), "198.51.100.1").await?;
        let reset = (6 - remaining).div_ceil(3);
        ensure!(told(&response) == (200, vec![6, remaining, reset]), "{response:?}");
        ensure!(!response.headers().contains_key("retry-after"));
    }
    // Wherever it comes from, and whatever it asks for.
    for (client, path) in
        [("198.51.100.1", "/access"), ("198.51.100.2", "/v2/thngs"), ("127.0.0.1", "/thngs/x")]
    {
        check_limited(api.send(Method::GET, path, Some(one), client).await?, 2).await?;
    }
    let response = api.send(Method::GET, "/access", Some(other), "198.51.100.1").await?;
    ensure!(told(&response) == (200, vec![6, 5, 1]), "{response:?}");
    // The docs and unknown paths need no key and have no limit.
    for path in ["/docs", "/nothing"] {
        let response = api.send(Method::GET, path, Some(one), "198.51.100.1").await?;
        ensure!(told(&response).1.is_empty() && response.status() != 429, "{response:?}");
    }
    api.clock.set(UnixMillis(333));
    check_limited(api.send(Method::GET, "/access", Some(one), "198.51.100.1").await?, 2).await?;
    api.clock.set(UnixMillis(334));
    let response = api.send(Method::GET, "/access", Some(one), "198.51.100.1").await?;
    ensure!(told(&response) == (200, vec![6, 0, 2]), "{response:?}");
    api.clock.set(UnixMillis(3_000));
    let response = api.send(Method::GET, "/access", Some(one), "198.51.100.1").await?;
    ensure!(told(&response) == (200, vec![6, 5, 1]), "{response:?}");
    Ok(())
}

async fn guesses_are_limited_by_address(engine: Engine) -> Result<()> {
    let api = Limited::new(engine).await?;
    let unknown = "U".repeat(80);
    for n in 0..10_u64 {
        let key = [Some(unknown.as_str()), Some("short"), None][(n % 3) as usize];
        let response = api.send(Method::GET, "/access", key, "198.51.100.1").await?;
        ensure!(told(&response) == (401, vec![10, 9 - n, n + 1]), "{response:?}");
    }
    for key in [Some(unknown.as_str()), None] {
        check_limited(api.send(Method::GET, "/thngs", key, "198.51.100.1").await?, 10).await?;
    }
    // A known key goes on from the same address, and other addresses are free; a /64 is one address.
    let response = api.send(Method::GET, "/access", Some(&api.keys[0]), "198.51.100.1").await?;
    ensure!(told(&response).0 == 200, "{response:?}");
    for (client, status) in [("198.51.100.2", 401), ("2001:db8::1", 401), ("127.0.0.1", 401)] {
        let response = api.send(Method::GET, "/access", None, client).await?;
        ensure!(response.status() == status, "{client}: {response:?}");
    }
    for n in 2..11 {
        api.send(Method::GET, "/access", None, &format!("2001:db8::{n:x}")).await?;
    }
    check_limited(api.send(Method::GET, "/access", None, "2001:db8::ffff").await?, 10).await?;
    api.clock.set(UnixMillis(1_000));
    let response = api.send(Method::GET, "/access", None, "198.51.100.1").await?;
    ensure!(told(&response) == (401, vec![10, 0, 10]), "{response:?}");
    Ok(())
}

async fn guesses_of_an_edges_key_are_limited_by_address(engine: Engine) -> Result<()> {
    let api = Limited::new(engine).await?;
    let ask = |path: &'static str, key: Option<String>, client: &'static str| {
        let api = &api;
        async move { api.send_to(&api.internal, Method::GET, path, key.as_deref(), client).await }
    };
    let paths = [LOOKUP_PATH, LINKS_PATH, EDGES_PATH, STREAM_PATH];
    for n in 0..10 {
        let key = (n % 2 == 0).then(|| format!("{n}").repeat(80));
        let response = ask(paths[n % paths.len()], key, "198.51.100.1").await?;
        ensure!(response.status() == 401, "{n}: {response:?}");
    }
    for path in paths {
        check_limited(ask(path, Some("U".repeat(80)), "198.51.100.1").await?, 10).await?;
    }
    // The same address guesses no key of an account instead; an edge at it is served, and so are other addresses.
    check_limited(api.send(Method::GET, "/access", None, "198.51.100.1").await?, 10).await?;
    let (_, known) = edge_keys::create(&api.made.app.core.db, &*api.clock, &SystemRandom, "e1").await?;
    ensure!(ask(EDGES_PATH, Some(known), "198.51.100.1").await?.status() == 200);
    ensure!(ask(EDGES_PATH, None, "198.51.100.2").await?.status() == 401);
    Ok(())
}

/// A request over loopback that a proxy passed on is limited, whether or not the settings name the proxy; where a TLS
/// proxy stands in front, every one is.
async fn requests_through_a_local_proxy_are_limited(engine: Engine) -> Result<()> {
    let refused = async |api: &Limited, header: Option<&str>| {
        let request = api.http.get(format!("{}/access", api.base));
        let request = match header {
            Some(name) => request.header(name, "198.51.100.1"),
            None => request,
        };
        anyhow::Ok(request.send().await?.status().as_u16())
    };
    let api = Limited::new(engine).await?;
    for n in 0..30 {
        ensure!(refused(&api, None).await? == 401, "{n}: a program of this machine");
    }
    for name in ["x-forwarded-for", "forwarded", "x-real-ip", "via"] {
        // A bucket of ten comes back within ten seconds.
        let now = api.clock.now().0;
        api.clock.set(UnixMillis(now + 10_000));
        for n in 0..10 {
            ensure!(refused(&api, Some(name)).await? == 401, "{name} {n}");
        }
        ensure!(refused(&api, Some(name)).await? == 429, "{name}");
    }
    let api = Limited::with(engine, |parts| {
        parts.trusted_proxies = parts.trusted_proxies.clone().behind_tls_proxy(true);
    })
    .await?;
    for n in 0..10 {
        ensure!(refused(&api, None).await? == 401, "{n}");
    }
    ensure!(refused(&api, None).await? == 429, "behind a TLS proxy");
    Ok(())
}

/// Each write of a request takes a share until it is committed; reads take none.
async fn waiting_writes_are_bounded(engine: Engine) -> Result<()> {
    let limits = CapacityLimits { writes: 1, ..CapacityLimits::default() };
    let api = Limited::with(engine, |parts| parts.capacity = Capacity::new(limits)).await?;
    let thng = format!("/thngs/{}", "U".repeat(24));
    for (method, path) in [
        (Method::POST, "/thngs".to_owned()),
        (Method::POST, "/products".to_owned()),
        (Method::POST, "/actions/scans".to_owned()),
        (Method::PUT, thng.clone()),
        (Method::DELETE, thng.clone()),
        (Method::DELETE, format!("/thngs?ids={}", "U".repeat(24))),
    ] {
        // Each request with its own key: three a second are one key's.
        api.clock.set(UnixMillis(api.clock.now().0 + 10_000));
        let body = json!({"name": "x", "thng": "U".repeat(24)});
        let request = api.http.request(method.clone(), format!("{}{path}", api.base));
        let request = request.header("authorization", &api.keys[0]);
        let request = if method == Method::DELETE { request } else { request.json(&body) };
        let response = request.send().await?;
        let status = response.status().as_u16();
        let body: Value = response.json().await?;
        let text = body["errors"][0].as_str().unwrap_or_default();
        ensure!(status == 429 && text.contains("Too many writes of this account"), "{method} {path}: {body}");
    }
    api.clock.set(UnixMillis(api.clock.now().0 + 10_000));
    let read = api.http.get(format!("{}/thngs", api.base)).header("authorization", &api.keys[0]);
    ensure!(read.send().await?.status() == 200);
    Ok(())
}

crate::on_both_engines!(
    a_key_is_limited_and_another_is_not,
    guesses_are_limited_by_address,
    guesses_of_an_edges_key_are_limited_by_address,
    requests_through_a_local_proxy_are_limited,
    waiting_writes_are_bounded,
);
