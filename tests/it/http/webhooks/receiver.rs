//! Receivers of every kind, and helpers for tests of webhooks.

use std::{
    collections::{BTreeSet, HashMap},
    net::SocketAddr,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
    routing::post,
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use control::worker::webhooks;
use serde_json::{Value, json};
use tests::{json::merged, product::DEADLINE, sql};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::super::Api;

/// What a receiver does with a request.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) enum Reply {
    Take,
    Refuse(u16),
    /// Takes it, after a while.
    Slowly,
    /// Never answers.
    Hang,
}

/// Which request it is: of all, and of those with this id; both from 0.
#[derive(Debug, Clone, Copy)]
pub(in crate::http) struct Nth {
    pub(in crate::http) all: usize,
    pub(in crate::http) of_id: usize,
}

type Manner = Arc<dyn Fn(Nth) -> Reply + Send + Sync>;

/// A request as it came.
#[derive(Debug, Clone)]
pub(in crate::http) struct Came {
    pub(in crate::http) id: String,
    pub(in crate::http) timestamp: i64,
    pub(in crate::http) signature: String,
    pub(in crate::http) body: Vec<u8>,
}

impl Came {
    pub(in crate::http) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }
}

#[derive(Debug, Default)]
struct Seen {
    asked: usize,
    by_id: HashMap<String, usize>,
    taken: Vec<Came>,
}

/// A server that takes events, in its manner.
#[derive(Clone)]
pub(in crate::http) struct Receiver {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
    manner: Manner,
}

impl Receiver {
    /// One that listens.
    pub(in crate::http) async fn new(manner: impl Fn(Nth) -> Reply + Send + Sync + 'static) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let receiver = Self::at(listener.local_addr()?, manner);
        receiver.serve(listener);
        Ok(receiver)
    }

    /// One whose port is its own, but nobody listens there until the socket does.
    pub(in crate::http) fn down(
        manner: impl Fn(Nth) -> Reply + Send + Sync + 'static,
    ) -> Result<(Self, TcpSocket)> {
        let socket = TcpSocket::new_v4()?;
        socket.bind("127.0.0.1:0".parse()?)?;
        Ok((Self::at(socket.local_addr()?, manner), socket))
    }

    /// One that closes every second connection as soon as it is asked something.
    pub(in crate::http) async fn abrupt() -> Result<Self> {
        let behind = Self::new(|_| Reply::Take).await?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let receiver = Self { address: listener.local_addr()?, ..behind.clone() };
        tokio::spawn(async move {
            let mut count = 0;
            while let Ok((mut from, _)) = listener.accept().await {
                count += 1;
                if count % 2 == 1 {
                    // Whoever closes with something unread resets the connection.
                    let _ = from.readable().await;
                    continue;
                }
                tokio::spawn(async move {
                    let mut to = TcpStream::connect(behind.address).await?;
                    tokio::io::copy_bidirectional(&mut from, &mut to).await
                });
            }
        });
        Ok(receiver)
    }

    fn at(address: SocketAddr, manner: impl Fn(Nth) -> Reply + Send + Sync + 'static) -> Self {
        Self { address, seen: Arc::default(), manner: Arc::new(manner) }
    }

    /// Answers from now on.
    pub(in crate::http) fn serve(&self, listener: TcpListener) {
        let router = Router::new().route("/hook", post(Self::take)).with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
    }

    async fn take(State(this): State<Self>, headers: HeaderMap, body: Bytes) -> (StatusCode, &'static str) {
        let of = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let came = Came {
            id: of("webhook-id").to_owned(),
            timestamp: of("webhook-timestamp").parse().unwrap_or_default(),
            signature: of("webhook-signature").to_owned(),
            body: body.to_vec(),
        };
        let reply = {
            let Ok(mut seen) = this.seen.lock() else { return (StatusCode::IM_A_TEAPOT, "") };
            let tries = seen.by_id.entry(came.id.clone()).or_default();
            let of_id = *tries;
            *tries += 1;
            let all = seen.asked;
            seen.asked += 1;
            (this.manner)(Nth { all, of_id })
        };
        match reply {
            Reply::Take => {}
            Reply::Refuse(status) => {
                return (StatusCode::from_u16(status).unwrap_or_default(), "not now");
            }
            Reply::Slowly => tokio::time::sleep(Duration::from_millis(30)).await,
            Reply::Hang => std::future::pending().await,
        }
        if let Ok(mut seen) = this.seen.lock() {
            seen.taken.push(came);
        }
        (StatusCode::OK, "thanks")
    }

    pub(in crate::http) fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    pub(in crate::http) fn taken(&self) -> Vec<Came> {
        self.seen.lock().map(|seen| seen.taken.clone()).unwrap_or_default()
    }

    pub(in crate::http) fn asked(&self) -> usize {
        self.seen.lock().map(|seen| seen.asked).unwrap_or_default()
    }

    /// Waits until so many different messages were taken.
    pub(in crate::http) async fn wait(&self, count: usize) -> Result<Vec<Came>> {
        let begun = Instant::now();
        loop {
            let taken = self.taken();
            let ids: BTreeSet<&str> = taken.iter().map(|came| came.id.as_str()).collect();
            if ids.len() >= count {
                return Ok(taken);
            }
            ensure!(begun.elapsed() < DEADLINE, "{} of {count} came", ids.len());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// Runs the workers of one process.
pub(in crate::http) fn deliver(api: &Api) -> DropGuard {
    let stop = CancellationToken::new();
    tokio::spawn(webhooks::run(api.made.app.events.clone(), stop.clone()));
    stop.drop_guard()
}

/// Makes a webhook to a receiver; gives its id.
pub(in crate::http) async fn webhook(api: &Api, receiver: &Receiver, more: Value) -> Result<String> {
    let body = merged(json!({"name": "w", "url": receiver.url()}), &more);
    let made = api.create("/webhooks", body).await?;
    Ok(made["id"].as_str().context("id")?.to_owned())
}

/// Changes the database behind the service: time goes by.
pub(in crate::http) async fn execute(api: &Api, sql: &str) -> Result<()> {
    sql::execute(&api.made.app.core.db, sql).await?;
    Ok(())
}

/// Counts behind the service.
pub(in crate::http) async fn count(api: &Api, sql: &str) -> Result<i64> {
    sql::count(&api.made.app.core.db, sql).await
}

/// The deliveries of a webhook in a state.
pub(in crate::http) async fn deliveries(api: &Api, id: &str, status: &str) -> Result<Vec<Value>> {
    let uri = format!("/webhooks/{id}/deliveries?perPage=100&filter=status%3D{status}");
    Ok(serde_json::from_value(api.get(&uri).await?.json())?)
}

/// Waits until so many deliveries are in a state.
pub(in crate::http) async fn until(api: &Api, id: &str, status: &str, count: usize) -> Result<Vec<Value>> {
    let begun = Instant::now();
    loop {
        let found = deliveries(api, id, status).await?;
        if found.len() == count {
            return Ok(found);
        }
        ensure!(begun.elapsed() < DEADLINE, "{found:?}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until a webhook is in a state; gives it.
pub(in crate::http) async fn until_is(api: &Api, id: &str, status: &str) -> Result<Value> {
    let begun = Instant::now();
    loop {
        let read = api.get(&format!("/webhooks/{id}")).await?.json();
        if read["status"] == status {
            return Ok(read);
        }
        ensure!(begun.elapsed() < DEADLINE, "{read}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The bytes of a secret as the API shows it.
pub(in crate::http) fn secret_of(shown: &Value) -> Result<[u8; 32]> {
    let text = shown["secret"].as_str().and_then(|text| text.strip_prefix("whsec_")).context("secret")?;
    BASE64_STANDARD.decode(text)?.try_into().map_err(|_| anyhow::anyhow!("32 bytes"))
}
