//! A plain WebSocket at a path of the API: the client receives what is written to the path, and what it sends is
//! written.

use crate::service::access::Caller;
use std::{net::IpAddr, sync::Arc, time::Duration};

use axum::extract::ws::{CloseFrame, Message, WebSocket, close_code};
use shared::id::AccountId;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::Broker;
use super::publishing::{ignored, problem, write};
use crate::{
    channels::{Channel, Delivery, Subscriber, Subscription},
    domain::{context::Origin, grant::Limit, topic::Topic},
    error::ServiceError,
    service::{
        connections::{self, Ended},
        live::Sender,
    },
};

/// Messages that may wait for one client.
const WAITING: usize = 1_000;

/// Time between two pings.
const PING: Duration = Duration::from_secs(25);

/// Longest silence: two pings that were not answered.
const SILENCE: Duration = Duration::from_secs(60);

/// Longest time that one message may take to go out.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// What a client receives; a client that may only write receives nothing.
///
/// It begins before the client is told that the socket is open: what happens from then on is not missed.
#[derive(Debug)]
pub struct Reception {
    waiting: mpsc::Receiver<Delivery>,
    overflow: CancellationToken,
    _subscription: Option<Subscription>,
}

impl Reception {
    /// Subscribes to what [`channel`](crate::service::live::channel) allowed.
    #[must_use]
    pub fn new(broker: &Broker, account: AccountId, allowed: Option<(Channel, Limit)>) -> Self {
        let (ear, waiting) = Subscriber::new(WAITING);
        let overflow = ear.overflow.clone();
        let channels = broker.feed.channels();
        let subscription =
            allowed.map(|(channel, limit)| channels.subscribe(account, channel, limit, 0, ear));
        Self { waiting, overflow, _subscription: subscription }
    }
}

/// Serves a WebSocket of a caller until it ends.
pub async fn serve(
    broker: Arc<Broker>,
    mut socket: WebSocket,
    who: (Caller, [u8; 32], Option<IpAddr>),
    (topic, name): (Topic, String),
    mut reception: Reception,
) {
    let (caller, key, ip) = who;
    let connection = match connections::open(&broker, &caller, key, ip, None).await {
        Ok(connection) => connection,
        Err(error) => {
            tracing::warn!(%error, "a WebSocket could not be opened");
            return close(&mut socket, close_code::AGAIN, "try again").await;
        }
    };
    broker.connections.metrics.connected.inc();
    let mut heard_at = Instant::now();
    // The first tick of `interval` would be immediate: some clients treat an early ping as an error.
    let mut ping = tokio::time::interval_at(heard_at + PING, PING);
    let (code, reason) = loop {
        tokio::select! {
            message = socket.recv() => {
                heard_at = Instant::now();
                let payload = match message {
                    Some(Ok(Message::Text(text))) => text.as_bytes().to_vec(),
                    Some(Ok(Message::Binary(bytes))) => bytes.to_vec(),
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                    Some(Ok(Message::Close(_)) | Err(_)) | None => break (close_code::NORMAL, ""),
                };
                if !broker.admit(&caller, &key, &connection).await {
                    // The reason is found below.
                    continue;
                }
                let origin = Origin { ip, user_agent: None, referer: None, language: None };
                let sender = Sender { caller: &caller, key: &key, origin };
                let is_there = match write(&broker, &sender, &topic, &payload).await {
                    Ok(unknown) if unknown.is_empty() => true,
                    Ok(unknown) => {
                        let report = ignored(&unknown, &name).to_string();
                        send(&mut socket, Message::Text(report.into())).await
                    }
                    Err(error) => refuse(&broker, &mut socket, &error, &name).await,
                };
                if !is_there {
                    break (close_code::NORMAL, "");
                }
            }
            Some(delivery) = reception.waiting.recv() => {
                // What goes out is JSON, and so text.
                let text = String::from_utf8_lossy(&delivery.content.payload).into_owned();
                if !send(&mut socket, Message::Text(text.into())).await {
                    break (close_code::NORMAL, "");
                }
            }
            _ = ping.tick() => if !send(&mut socket, Message::Ping(bytes::Bytes::new())).await {
                break (close_code::NORMAL, "");
            },
            () = sleep_until(heard_at + SILENCE) => break (close_code::AWAY, "no answer to a ping"),
            () = reception.overflow.cancelled() => break (close_code::POLICY, "messages were not taken in time"),
            () = broker.connections.stopping.cancelled() => break (close_code::RESTART, "the service stops here"),
            () = connection.ends.cancelled() => break match broker.connections.why(&connection.id) {
                Some(Ended::KeyRevoked) => (close_code::POLICY, "the key is not valid any more"),
                Some(Ended::TakenOver | Ended::Lost) | None => (close_code::AGAIN, "connect again"),
            },
        }
    };
    close(&mut socket, code, reason).await;
    connections::close(&broker, &caller, &connection.id).await;
}

/// Reports the error of a message that HTTP would refuse; returns whether the client is still connected.
async fn refuse(broker: &Broker, socket: &mut WebSocket, error: &ServiceError, name: &str) -> bool {
    broker.connections.metrics.failed.inc();
    if error.code().status() >= 500 {
        tracing::error!(%error, "a message was not written");
    }
    send(socket, Message::Text(problem(error, name, &broker.docs_url).to_string().into())).await
}

async fn send(socket: &mut WebSocket, message: Message) -> bool {
    matches!(timeout(WRITE_TIMEOUT, socket.send(message)).await, Ok(Ok(())))
}

async fn close(socket: &mut WebSocket, code: u16, reason: &str) {
    let frame = CloseFrame { code, reason: reason.to_owned().into() };
    let _ = timeout(WRITE_TIMEOUT, socket.send(Message::Close(Some(frame)))).await;
}
