//! Many anonymous clients on the API, MQTT and the listener of edges: operators and edges are still answered, and one
//! key, address or tenant takes no more than its share. Limits are scaled down, because descriptors are scarce.

use std::{
    net::{SocketAddr, TcpListener},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use control::http::{ApiListeners, internal, run};
use events::live::BrokerListeners;
use kernel::service::capacity::{Capacity, CapacityLimits};
use platform::{Bounds, Permits, TimeLimits};
use push::edge_keys;
use reqwest::{Client, Method, Response};
use serde_json::{Value, json};
use tests::{
    db::{Engine, TestApp},
    mqtt,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tokio_util::sync::CancellationToken;

/// Permits of each listener.
const PERMITS: usize = 64;

/// Connections of strangers: three times as many.
const STRANGERS: usize = 3 * PERMITS;

/// Longest wait for something that must come.
const DEADLINE: Duration = Duration::from_secs(20);

struct Crowd {
    made: TestApp,
    api: SocketAddr,
    mqtt: SocketAddr,
    edges: SocketAddr,
    key: String,
    edge_key: String,
    stop: CancellationToken,
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn limits() -> CapacityLimits {
    CapacityLimits {
        api_connections: Some(PERMITS),
        mqtt_connections: Some(PERMITS),
        ..CapacityLimits::default()
    }
}

impl Crowd {
    async fn new(engine: Engine, limits: CapacityLimits) -> Result<Self> {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut capacity = Capacity::new(limits);
        capacity.internal =
            Permits::new(Bounds { newcomers: Some(PERMITS / 2), ..Bounds::plain(PERMITS, PERMITS) });
        let made = TestApp::with(engine, |parts| parts.capacity = capacity).await?;
        let key = "K".repeat(80);
        made.add_key(&key).await?;
        let app = &made.app;
        let (_, edge_key) =
            edge_keys::create(&app.core.db, &*app.core.clock, &*app.core.random, "edge-2").await?;
        let [api, mqtt, edges] = [0; 3].map(|port| TcpListener::bind(("127.0.0.1", port)));
        let (api, mqtt, edges) = (api?, mqtt?, edges?);
        let (api_at, mqtt_at, edges_at) = (api.local_addr()?, mqtt.local_addr()?, edges.local_addr()?);
        let stop = CancellationToken::new();
        let plain = |listener| ApiListeners { plain: vec![listener], tls: None };
        tokio::spawn(run(plain(api), made.app.clone(), stop.clone()));
        tokio::spawn(internal::run(plain(edges), made.app.clone(), stop.clone()));
        let listeners = BrokerListeners { plain: Some(mqtt), tls: None };
        tokio::spawn(events::live::run(listeners, made.app.broker.clone(), stop.clone()));
        Ok(Self { made, api: api_at, mqtt: mqtt_at, edges: edges_at, key, edge_key, stop })
    }

    /// A request over a connection of its own, within the deadline.
    async fn call(&self, key: &str, method: Method, path: &str, body: Option<Value>) -> Result<Response> {
        let mut request = Client::new().request(method, format!("http://{}{path}", self.api));
        request = request.header("authorization", key).timeout(DEADLINE);
        if let Some(body) = body {
            request = request.json(&body);
        }
        request.send().await.context("no answer")
    }

    async fn operator_is_answered(&self) -> Result<()> {
        let answer = self.call(&self.key, Method::GET, "/access", None).await?;
        ensure!(answer.status() == 200, "{answer:?}");
        Ok(())
    }

    async fn edge_is_answered(&self) -> Result<()> {
        let url = format!("http://{}/internal/v1/edges", self.edges);
        let answer =
            Client::new().get(url).header("authorization", &self.edge_key).timeout(DEADLINE).send().await?;
        ensure!(answer.status() == 200, "{answer:?}");
        Ok(())
    }

    /// The public key of a new application.
    async fn application_key(&self) -> Result<String> {
        let made = self.call(&self.key, Method::POST, "/projects", Some(json!({"name": "p"}))).await?;
        let project: Value = made.json().await?;
        let path = format!("/projects/{}/applications", project["id"].as_str().context("id")?);
        let body = json!({"name": "a", "socialNetworks": {}});
        let made: Value = self.call(&self.key, Method::POST, &path, Some(body)).await?.json().await?;
        Ok(made["appApiKey"].as_str().context("appApiKey")?.to_owned())
    }

    fn metric(&self, line: &str) -> bool {
        let text = control::http::Admin::new(self.made.app.clone(), None, None).metrics_text();
        text.lines().any(|shown| shown.starts_with(line) && !shown.ends_with(" 0"))
    }
}

/// Connections that have sent the beginning of a request, and wait.
async fn half_written(to: SocketAddr, count: usize) -> Result<Vec<TcpStream>> {
    let mut open = Vec::new();
    for _ in 0..count {
        let mut stream = TcpStream::connect(to).await?;
        // It may have made room for another already.
        let _ = stream.write_all(b"GET /access HTTP/1.1\r\nHost: a\r\nX-Slow: ").await;
        open.push(stream);
    }
    Ok(open)
}

async fn incomplete_requests_do_not_block_others(engine: Engine) -> Result<()> {
    let crowd = Crowd::new(engine, limits()).await?;
    let _api = half_written(crowd.api, STRANGERS).await?;
    let _edges = half_written(crowd.edges, STRANGERS).await?;
    crowd.operator_is_answered().await?;
    crowd.edge_is_answered().await?;
    for listener in ["api", "internal"] {
        let line = format!(
            "waymark_control_connections_refused_total{{listener=\"{listener}\",reason=\"displaced\"}}"
        );
        ensure!(crowd.metric(&line), "{line}");
    }
    Ok(())
}

async fn slow_headers_time_out(engine: Engine) -> Result<()> {
    let times = TimeLimits { headers: Duration::from_millis(300), ..TimeLimits::default() };
    let crowd = Crowd::new(engine, CapacityLimits { times, ..limits() }).await?;
    for mut stream in half_written(crowd.api, 1).await?.into_iter().chain(half_written(crowd.edges, 1).await?)
    {
        let drip = async {
            while stream.write_all(b"a").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(DEADLINE, drip).await.context("dripped bytes keep a connection")?;
    }
    // One that was answered may stay for the next request.
    let mut stream = TcpStream::connect(crowd.api).await?;
    for _ in 0..2 {
        let ask = format!("GET /access HTTP/1.1\r\nHost: a\r\nAuthorization: {}\r\n\r\n", crowd.key);
        stream.write_all(ask.as_bytes()).await?;
        let mut first = [0; 12];
        timeout(DEADLINE, stream.read_exact(&mut first)).await??;
        ensure!(&first == b"HTTP/1.1 200", "{first:?}");
        tokio::time::sleep(Duration::from_millis(600)).await;
        let mut rest = vec![0; 16 << 10];
        timeout(DEADLINE, stream.read(&mut rest)).await??;
    }
    Ok(())
}

/// Asks for a WebSocket; gives the status.
async fn web_socket(to: SocketAddr, path: &str, key: &str) -> Result<(TcpStream, String)> {
    let mut stream = TcpStream::connect(to).await?;
    let ask = format!(
        "GET {path} HTTP/1.1\r\nHost: a\r\nAuthorization: {key}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(ask.as_bytes()).await?;
    let mut first = [0; 12];
    timeout(DEADLINE, stream.read_exact(&mut first)).await??;
    Ok((stream, String::from_utf8_lossy(&first[9..]).into_owned()))
}

async fn websockets_with_public_keys_are_bounded(engine: Engine) -> Result<()> {
    let crowd = Crowd::new(engine, limits()).await?;
    let key = crowd.application_key().await?;
    let (mut open, mut refused) = (Vec::new(), 0);
    for _ in 0..STRANGERS {
        let (stream, status) = web_socket(crowd.api, "/actions/scans", &key).await?;
        match status.as_str() {
            "101" => open.push(stream),
            "429" => refused += 1,
            other => anyhow::bail!("{other}"),
        }
    }
    ensure!(open.len() == PERMITS / 4 && refused == STRANGERS - PERMITS / 4, "{} {refused}", open.len());
    // Those of MQTT wait for its first packet; they hold permits of newcomers alone.
    let mut waiting = Vec::new();
    for _ in 0..STRANGERS {
        waiting.push(web_socket(crowd.api, "/mqtt", "").await?);
    }
    crowd.operator_is_answered().await?;
    let (_stream, status) = web_socket(crowd.api, "/actions/scans", &crowd.key).await?;
    ensure!(status == "101", "{status}");
    Ok(())
}

async fn mqtt_connections_with_public_keys_are_bounded(engine: Engine) -> Result<()> {
    let crowd = Crowd::new(engine, limits()).await?;
    let app = crowd.application_key().await?;
    let made = crowd
        .call(&app, Method::POST, "/auth/evrythng/users?anonymous=true", Some(json!({"anonymous": true})))
        .await?;
    let user: Value = made.json().await?;
    let key = user["evrythngApiKey"].as_str().with_context(|| user.to_string())?;
    let address = crowd.mqtt.to_string();
    let mut open = Vec::new();
    for n in 0..PERMITS {
        let id = format!("c{n}");
        open.extend(mqtt::Client::enter(&address, &mqtt::Hello::new(&id, key)).await.ok());
    }
    ensure!(open.len() == PERMITS / 4, "{}", open.len());
    // Nor do those that send nothing at all.
    let mut silent = Vec::new();
    for _ in 0..STRANGERS {
        silent.push(TcpStream::connect(crowd.mqtt).await?);
    }
    let hello = mqtt::Hello::new("operator", &crowd.key);
    let enter = mqtt::Client::enter(&address, &hello);
    timeout(DEADLINE, enter).await.context("an operator is shut out")??;
    ensure!(
        crowd.metric("waymark_control_connections_refused_total{listener=\"mqtt\",reason=\"key\"}"),
        "no metric"
    );
    Ok(())
}

impl Crowd {
    async fn upload_url(&self) -> Result<String> {
        let made = self.call(&self.key, Method::POST, "/files", Some(json!({"name": "f"}))).await?;
        let made: Value = made.json().await?;
        Ok(made["uploadUrl"].as_str().context("uploadUrl")?.to_owned())
    }

    /// Begins an upload that never ends, and waits until it holds its place: the server asks for the body then.
    async fn begin_upload(&self, url: &str) -> Result<TcpStream> {
        let path = url.split_once("//").and_then(|(_, rest)| rest.find('/').map(|at| &rest[at..]));
        let head = format!(
            "PUT {} HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\nExpect: 100-continue\r\n\r\n",
            path.context("path")?
        );
        let mut stream = TcpStream::connect(self.api).await?;
        stream.write_all(head.as_bytes()).await?;
        let mut answer = [0; CONTINUE.len()];
        timeout(DEADLINE, stream.read_exact(&mut answer)).await??;
        ensure!(&answer == CONTINUE, "{}", String::from_utf8_lossy(&answer));
        stream.write_all(b"first").await?;
        Ok(stream)
    }
}

/// The interim answer of a server that wants the body.
const CONTINUE: &[u8; 25] = b"HTTP/1.1 100 Continue\r\n\r\n";

async fn slow_uploads_are_bounded_and_end(engine: Engine) -> Result<()> {
    // Long enough for a request that comes while they last, on a busy machine.
    let window = Duration::from_secs(6);
    let crowd = Crowd::new(engine, CapacityLimits { uploads: 8, upload_window: window, ..limits() }).await?;
    let (url, other) = (crowd.upload_url().await?, crowd.upload_url().await?);
    let mut slow = [crowd.begin_upload(&url).await?, crowd.begin_upload(&url).await?];
    let put = |url: String| async move {
        anyhow::Ok(Client::new().put(url).body("small").timeout(DEADLINE).send().await?)
    };
    let refused = put(url.clone()).await?;
    ensure!(refused.status() == 429, "{refused:?}");
    ensure!(refused.headers().contains_key("retry-after"), "{refused:?}");
    let body: Value = refused.json().await?;
    let text = body["errors"][0].as_str().unwrap_or_default();
    ensure!(
        body["code"] == 42_901 && (text.contains("of this file") || text.contains("this address")),
        "{body}"
    );
    // By a key, from elsewhere: the address has a share as well.
    let answer = Client::new()
        .put(&other)
        .header("x-waymark-edge", "edge-token")
        .header("x-forwarded-for", "198.51.100.7")
        .body("small")
        .send()
        .await?;
    ensure!(answer.status() == 200, "{answer:?}");
    // A byte now and then does not keep them.
    for stream in &mut slow {
        let mut answer = [0; 12];
        let (mut read, mut write) = stream.split();
        let drip = async {
            while write.write_all(b"a").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
            std::future::pending::<()>().await;
        };
        tokio::select! {
            done = timeout(DEADLINE, read.read_exact(&mut answer)) => { done??; }
            () = drip => {}
        }
        ensure!(&answer == b"HTTP/1.1 400", "{}", String::from_utf8_lossy(&answer));
    }
    ensure!(put(url).await?.status() == 200);
    Ok(())
}

/// A CONNECT that comes byte by byte has five seconds.
async fn the_first_mqtt_packet_times_out(engine: Engine) -> Result<()> {
    let crowd = Crowd::new(engine, limits()).await?;
    let mut stream = TcpStream::connect(crowd.mqtt).await?;
    let begun = tokio::time::Instant::now();
    // A packet of 80 bytes, of which few come.
    stream.write_all(&[0x10, 80]).await?;
    let (mut read, mut write) = stream.split();
    let drip = async {
        while write.write_all(&[0]).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        std::future::pending::<()>().await;
    };
    let mut answer = [0; 1];
    tokio::select! {
        done = timeout(Duration::from_secs(9), read.read(&mut answer)) => {
            ensure!(matches!(done.context("it is still open")?, Ok(0) | Err(_)), "{answer:?}");
        }
        () = drip => {}
    }
    ensure!(begun.elapsed() > Duration::from_secs(4), "it ended after {:?}", begun.elapsed());
    Ok(())
}

crate::on_both_engines!(
    the_first_mqtt_packet_times_out,
    incomplete_requests_do_not_block_others,
    slow_headers_time_out,
    websockets_with_public_keys_are_bounded,
    mqtt_connections_with_public_keys_are_bounded,
    slow_uploads_are_bounded_and_end,
);
