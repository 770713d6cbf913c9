//! The session of one MQTT connection, from CONNECT to its end.

mod admission;

use crate::service::access::Caller;
use std::{
    collections::{HashMap, HashSet},
    future::Future,
    net::IpAddr,
    panic::AssertUnwindSafe,
    sync::Arc,
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use mqtt5::{
    Packet, WillMessage,
    packet::{
        MqttPacket, connack::ConnAckPacket, connect::ConnectPacket, disconnect::DisconnectPacket,
        pubcomp::PubCompPacket,
    },
    protocol::v5::reason_codes::ReasonCode,
};
use platform::Handle;
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};

use self::admission::{Admitted, admit};
use super::{
    Broker,
    link::Link,
    outbox::InFlight,
    packets::{self, Broken, MAX_CONNECT, MAX_PACKET},
    subscribing::Subscribed,
};
use crate::{
    channels::{Delivery, Subscriber},
    domain::context::Origin,
    service::{
        connections::{self, Connection, Ended},
        live::Sender,
    },
    store::Ctx,
};

/// Longest wait for the CONNECT.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Longest time that one write may take: a client that does not read is gone.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);

/// Longest keep-alive: also of clients that ask for none, so that a dead one is noticed.
const MAX_KEEP_ALIVE_SECS: u16 = 1_200;

/// Messages that may wait for one client; one that falls behind further is disconnected.
const WAITING: usize = 1_000;

/// Messages of QoS 2 whose release a client may leave open.
pub(super) const MAX_UNRELEASED: u16 = 100;

/// Time between two signs of life below MQTT, where silence would end the connection.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);

/// Messages that go out in one write.
const BURST: usize = 64;

/// Facts about a connection before its first packet.
#[derive(Debug, Clone)]
pub struct Limits {
    /// The client's address.
    pub ip: Option<IpAddr>,
    /// The address by which refusals are limited; `None` for a program of this machine.
    pub limited_as: Option<IpAddr>,
    /// The key in the URL of a WebSocket; that of the CONNECT comes first.
    pub token: Option<String>,
    /// The permit of the connection.
    pub permit: Option<Handle>,
}

/// Why a connection ended.
#[derive(Debug)]
pub(super) enum End {
    /// The client disconnected normally.
    Normal,
    /// The client disconnected and wants its will published.
    WithWill,
    /// The network, or silence beyond the keep-alive.
    Gone,
    /// The server ends it, with a reason for clients that can receive one.
    Ours(ReasonCode),
}

impl End {
    /// The process stops: the client connects to another.
    pub(super) const STOPPING: Self = Self::Ours(ReasonCode::ServerShuttingDown);
}

impl From<Broken> for End {
    fn from(error: Broken) -> Self {
        tracing::debug!(%error, "a connection broke the protocol");
        Self::Ours(match error {
            Broken::TooLarge => ReasonCode::PacketTooLarge,
            Broken::Malformed(_) => ReasonCode::MalformedPacket,
        })
    }
}

/// A connection whose CONNECT was accepted.
pub(super) struct Session<L> {
    pub(super) broker: Arc<Broker>,
    pub(super) link: L,
    pub(super) buffer: BytesMut,
    pub(super) version: u8,
    pub(super) caller: Caller,
    pub(super) key: [u8; 32],
    pub(super) ip: Option<IpAddr>,
    pub(super) connection: Connection,
    pub(super) ear: Subscriber,
    pub(super) subscriptions: HashMap<String, Subscribed>,
    pub(super) filters: HashMap<u64, String>,
    pub(super) next_subscription: u64,
    pub(super) in_flight: InFlight,
    pub(super) unreleased: HashSet<u16>,
    /// Whether reasons may be spelled out.
    pub(super) explains: bool,
    pub(super) max_message: usize,
    keep_alive: Duration,
    /// Whether the client sends PINGREQ by itself.
    pings: bool,
    will: Option<WillMessage>,
}

/// Serves one connection until it ends.
pub async fn serve<L: Link>(broker: Arc<Broker>, mut link: L, limits: Limits) {
    let mut buffer = BytesMut::new();
    let first = async {
        loop {
            if let Some(packet) = packets::take(&mut buffer, MAX_CONNECT, 5)? {
                return Ok(Some(packet));
            }
            if link.read(&mut buffer).await.unwrap_or(0) == 0 {
                return Ok::<_, Broken>(None);
            }
        }
    };
    let connect = match timeout(CONNECT_TIMEOUT, first).await {
        Ok(Ok(Some(Packet::Connect(connect)))) => *connect,
        Ok(Ok(_) | Err(_)) | Err(_) => return link.close().await,
    };
    let version = connect.protocol_version;
    match admit(&broker, &connect, &limits).await {
        Ok(admitted) => run(broker, link, buffer, connect, admitted, limits).await,
        Err((reason, text)) => {
            broker.connections.metrics.refused.inc();
            let mut answer = connack(version, reason);
            if version == 5 && connect.properties.get_request_problem_information() != Some(false) {
                answer.properties.set_reason_string(text);
            }
            if let Ok(bytes) = packets::encode(&answer) {
                let _ = timeout(WRITE_TIMEOUT, link.write(bytes)).await;
            }
            link.close().await;
        }
    }
}

fn connack(version: u8, reason: ReasonCode) -> ConnAckPacket {
    if version == 5 { ConnAckPacket::new(false, reason) } else { ConnAckPacket::new_v311(false, reason) }
}

async fn run<L: Link>(
    broker: Arc<Broker>,
    link: L,
    buffer: BytesMut,
    connect: ConnectPacket,
    admitted: Admitted,
    limits: Limits,
) {
    let Admitted { actor, key, connection, assigned } = admitted;
    let (ear, waiting) = Subscriber::new(WAITING);
    let wanted = connect.keep_alive;
    let keep_alive = if (1..=MAX_KEEP_ALIVE_SECS).contains(&wanted) { wanted } else { MAX_KEEP_ALIVE_SECS };
    let max_message = connect.properties.get_maximum_packet_size();
    let id = connection.id.clone();
    // "No local" came with MQTT 5.
    let ctx = if connect.protocol_version == 5 { Ctx::default().with_origin(&id) } else { Ctx::default() };
    let mut session = Session {
        broker: broker.clone(),
        link,
        buffer,
        version: connect.protocol_version,
        caller: Caller { ctx, ..Caller::plain(actor.clone()) },
        key,
        ip: limits.ip,
        connection,
        ear,
        subscriptions: HashMap::new(),
        filters: HashMap::new(),
        next_subscription: 0,
        in_flight: InFlight::new(connect.properties.get_receive_maximum()),
        unreleased: HashSet::new(),
        explains: connect.properties.get_request_problem_information() != Some(false),
        max_message: max_message.map_or(usize::MAX, |size| usize::try_from(size).unwrap_or(usize::MAX)),
        keep_alive: Duration::from_secs(u64::from(keep_alive)),
        pings: wanted > 0,
        will: connect.will.clone(),
    };
    broker.connections.metrics.connected.inc();
    // A panic must not leave the connection behind.
    let announced = (wanted != keep_alive).then_some(keep_alive);
    let life = AssertUnwindSafe(session.live(&connect, assigned, announced, waiting));
    let end = life.catch_unwind().await.unwrap_or(End::Ours(ReasonCode::UnspecifiedError));
    tracing::debug!(?end, "a connection ended");
    session.subscriptions.clear();
    if let (Some(will), false) = (session.will.take(), matches!(end, End::Normal)) {
        session.publish_will(&will).await;
    }
    session.send_disconnect(&end).await;
    connections::close(&broker, &actor, &id).await;
}

impl<L: Link> Session<L> {
    /// Everything between the CONNECT and the end.
    async fn live(
        &mut self,
        connect: &ConnectPacket,
        assigned: Option<String>,
        keep_alive: Option<u16>,
        mut waiting: mpsc::Receiver<Delivery>,
    ) -> End {
        let broker = self.broker.clone();
        let welcome = self.welcome(connect, assigned, keep_alive);
        match self.send(&welcome).await {
            Ok(()) => {}
            Err(end) => return end,
        }
        let mut heard_at = Instant::now();
        let mut keep_alive =
            tokio::time::interval_at(Instant::now() + KEEP_ALIVE_INTERVAL, KEEP_ALIVE_INTERVAL);
        loop {
            loop {
                match packets::take(&mut self.buffer, MAX_PACKET, self.version) {
                    Ok(Some(packet)) => {
                        // Whole packets count, not bytes: one that drips in keeps no connection.
                        heard_at = Instant::now();
                        if let Err(end) = self.handle(packet).await {
                            return end;
                        }
                    }
                    Ok(None) => break,
                    Err(error) => return error.into(),
                }
            }
            let silent = heard_at + self.keep_alive + self.keep_alive / 2;
            tokio::select! {
                read = self.link.read(&mut self.buffer) => match read {
                    Ok(1..) => {}
                    Ok(0) | Err(_) => return End::Gone,
                },
                Some(delivery) = waiting.recv(), if self.in_flight.has_room() => {
                    if let Err(end) = self.deliver(delivery, &mut waiting).await {
                        return end;
                    }
                }
                () = self.connection.ends.cancelled() => return self.ended(),
                () = self.ear.overflow.cancelled() => return End::Ours(ReasonCode::QuotaExceeded),
                () = broker.connections.stopping.cancelled() => return End::STOPPING,
                () = sleep_until(silent) => return End::Ours(ReasonCode::KeepAliveTimeout),
                // Where MQTT has a keep-alive it keeps the WebSocket open, too; some clients do not support WebSocket
                // pings.
                _ = keep_alive.tick(), if !self.pings => if self.write_with(|link| link.keep_alive()).await.is_err() {
                    return End::Gone;
                },
            }
        }
    }

    fn welcome(
        &self,
        connect: &ConnectPacket,
        assigned: Option<String>,
        keep_alive: Option<u16>,
    ) -> ConnAckPacket {
        let mut answer = connack(self.version, ReasonCode::Success);
        if self.version != 5 {
            return answer;
        }
        let properties = &mut answer.properties;
        properties.set_receive_maximum(MAX_UNRELEASED);
        properties.set_retain_available(false);
        properties.set_shared_subscription_available(false);
        properties.set_maximum_packet_size(u32::try_from(MAX_PACKET).unwrap_or(u32::MAX));
        if connect.properties.get_session_expiry_interval().is_some_and(|interval| interval > 0) {
            properties.set_session_expiry_interval(0);
        }
        if let Some(id) = assigned {
            properties.set_assigned_client_identifier(id);
        }
        if let Some(seconds) = keep_alive {
            properties.set_server_keep_alive(seconds);
        }
        answer
    }

    pub(super) fn ended(&self) -> End {
        End::Ours(match self.broker.connections.why(&self.connection.id) {
            Some(Ended::TakenOver) => ReasonCode::SessionTakenOver,
            Some(Ended::KeyRevoked) => ReasonCode::NotAuthorized,
            Some(Ended::Lost) | None => ReasonCode::ServerBusy,
        })
    }

    async fn handle(&mut self, packet: Packet) -> Result<(), End> {
        match packet {
            Packet::Publish(message) => self.published(message).await,
            Packet::PubRel(release) => {
                let mut answer = PubCompPacket::new(release.packet_id);
                if !self.unreleased.remove(&release.packet_id) && self.version == 5 {
                    answer.reason_code = ReasonCode::PacketIdentifierNotFound;
                }
                self.send(&answer).await
            }
            Packet::PubAck(ack) => {
                self.in_flight.acknowledge(ack.packet_id);
                Ok(())
            }
            Packet::Subscribe(request) => self.subscribe(request).await,
            Packet::Unsubscribe(request) => self.unsubscribe(&request).await,
            Packet::PingReq => self.write(packets::pong()).await,
            Packet::Disconnect(good_bye) => Err(match good_bye.reason_code {
                ReasonCode::DisconnectWithWillMessage => End::WithWill,
                _ => End::Normal,
            }),
            Packet::Connect(_)
            | Packet::ConnAck(_)
            | Packet::PubRec(_)
            | Packet::PubComp(_)
            | Packet::SubAck(_)
            | Packet::UnsubAck(_)
            | Packet::PingResp
            | Packet::Auth(_) => Err(End::Ours(ReasonCode::ProtocolError)),
        }
    }

    /// Sends a message and those that wait behind it, in one write.
    async fn deliver(&mut self, first: Delivery, waiting: &mut mpsc::Receiver<Delivery>) -> Result<(), End> {
        let mut bytes = BytesMut::new();
        let (mut next, mut count) = (Some(first), 0);
        while let Some(delivery) = next.take() {
            if let Some(message) = self.message(&delivery)? {
                bytes.extend_from_slice(&message);
            }
            count += 1;
            if count < BURST && self.in_flight.has_room() {
                next = waiting.try_recv().ok();
            }
        }
        if bytes.is_empty() { Ok(()) } else { self.write(bytes.freeze()).await }
    }

    pub(super) fn sender(&self) -> Sender<'_> {
        let origin = Origin { ip: self.ip, user_agent: None, referer: None, language: None };
        Sender { caller: &self.caller, key: &self.key, origin }
    }

    pub(super) async fn send(&mut self, packet: &impl MqttPacket) -> Result<(), End> {
        let bytes = packets::encode(packet)?;
        self.write(bytes).await
    }

    pub(super) async fn write(&mut self, bytes: Bytes) -> Result<(), End> {
        match timeout(WRITE_TIMEOUT, self.link.write(bytes)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(End::Gone),
        }
    }

    async fn write_with<'a, F: Future<Output = std::io::Result<()>> + 'a>(
        &'a mut self,
        run: impl FnOnce(&'a mut L) -> F,
    ) -> Result<(), End> {
        match timeout(WRITE_TIMEOUT, run(&mut self.link)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(End::Gone),
        }
    }

    /// Sends the reason for the end to clients that can receive one, and closes.
    async fn send_disconnect(&mut self, end: &End) {
        if let (End::Ours(reason), 5) = (end, self.version) {
            // The client may be gone.
            let _ = self.send(&DisconnectPacket::new(*reason)).await;
        }
        let _ = timeout(WRITE_TIMEOUT, self.link.close()).await;
    }
}
