//! A small MQTT client for tests: it sends one packet at a time, and does nothing implicitly.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bytes::{Buf, Bytes, BytesMut};
use mqtt5::{
    ConnectOptions, FixedHeader, Packet, QoS, WillMessage,
    packet::{
        MqttPacket, connack::ConnAckPacket, connect::ConnectPacket, disconnect::DisconnectPacket,
        puback::PubAckPacket, publish::PublishPacket, pubrel::PubRelPacket, suback::SubAckReasonCode,
        subscribe::SubscribePacket, unsubscribe::UnsubscribePacket,
    },
};
use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// Longest wait for something that must come.
const DEADLINE: Duration = Duration::from_secs(30);

/// How to connect.
#[derive(Debug, Clone)]
pub struct Hello<'a> {
    /// 4 for MQTT 3.1.1, or 5.
    pub version: u8,
    /// The client id.
    pub id: &'a str,
    /// The API key.
    pub key: &'a str,
    /// Keep-alive in seconds.
    pub keep_alive: u64,
    /// Topic and payload of the will.
    pub will: Option<(&'a str, &'a str)>,
}

impl<'a> Hello<'a> {
    /// MQTT 5 with a minute of keep-alive.
    #[must_use]
    pub const fn new(id: &'a str, key: &'a str) -> Self {
        Self { version: 5, id, key, keep_alive: 60, will: None }
    }
}

/// A connected client; its connection is cut when it is dropped.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    buffer: BytesMut,
    version: u8,
    next: u16,
    waiting: Vec<PublishPacket>,
}

/// A message that was heard.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Its topic.
    pub topic: String,
    /// Its payload.
    pub body: Value,
}

impl Client {
    /// Connects, and gives the answer to the CONNECT, be it good or bad.
    pub async fn connect(address: &str, hello: &Hello<'_>) -> Result<(Self, ConnAckPacket)> {
        let mut options = ConnectOptions::new(hello.id)
            .with_keep_alive(Duration::from_secs(hello.keep_alive))
            .with_credentials("authorization", hello.key);
        if let Some((topic, payload)) = hello.will {
            options = options.with_will(WillMessage::new(topic, payload.as_bytes().to_vec()));
        }
        let packet = if hello.version == 5 {
            ConnectPacket::new(options.protocol_options)
        } else {
            ConnectPacket::new_v311(options.protocol_options)
        };
        let stream = TcpStream::connect(address).await.with_context(|| address.to_owned())?;
        let buffer = BytesMut::new();
        let mut client = Self { stream, buffer, version: hello.version, next: 1, waiting: Vec::new() };
        client.send(&packet).await?;
        match client.read().await?.context("closed")? {
            Packet::ConnAck(answer) => Ok((client, answer)),
            other => bail!("{other:?} instead of CONNACK"),
        }
    }

    /// Connects, and must be let in.
    pub async fn enter(address: &str, hello: &Hello<'_>) -> Result<Self> {
        let (client, answer) = Self::connect(address, hello).await?;
        ensure!(u8::from(answer.reason_code) == 0 && !answer.session_present, "{answer:?}");
        Ok(client)
    }

    /// Subscribes; gives the answer.
    pub async fn subscribe(&mut self, filter: &str, qos: QoS) -> Result<SubAckReasonCode> {
        let id = self.id();
        let packet = if self.version == 5 { SubscribePacket::new(id) } else { SubscribePacket::new_v311(id) };
        self.send(&packet.add_filter(filter, qos)).await?;
        match self.answer().await? {
            Packet::SubAck(answer) if answer.packet_id == id => {
                answer.reason_codes.first().copied().context("no code")
            }
            other => bail!("{other:?} instead of SUBACK"),
        }
    }

    /// Ends a subscription.
    pub async fn unsubscribe(&mut self, filter: &str) -> Result<()> {
        let id = self.id();
        let mut packet = UnsubscribePacket::new(id);
        packet.protocol_version = self.version;
        self.send(&packet.add_filter(filter)).await?;
        match self.answer().await? {
            Packet::UnsubAck(answer) if answer.packet_id == id => Ok(()),
            other => bail!("{other:?} instead of UNSUBACK"),
        }
    }

    /// Publishes with QoS 0 or 1; gives the reason code of the answer.
    pub async fn publish(&mut self, topic: &str, payload: &str, qos: QoS) -> Result<u8> {
        let id = self.id();
        let payload = Bytes::from(payload.to_owned());
        let packet = if self.version == 5 {
            PublishPacket::new(topic, payload, qos)
        } else {
            PublishPacket::new_v311(topic, payload, qos)
        };
        self.send(&packet.with_packet_id(id)).await?;
        match qos {
            QoS::AtMostOnce => Ok(0),
            QoS::AtLeastOnce => match self.answer().await? {
                Packet::PubAck(answer) if answer.packet_id == id => Ok(u8::from(answer.reason_code)),
                other => bail!("{other:?} instead of PUBACK"),
            },
            QoS::ExactlyOnce => {
                let reason = match self.answer().await? {
                    Packet::PubRec(answer) if answer.packet_id == id => u8::from(answer.reason_code),
                    other => bail!("{other:?} instead of PUBREC"),
                };
                if reason < 0x80 {
                    self.send(&PubRelPacket::new(id)).await?;
                    match self.answer().await? {
                        Packet::PubComp(answer) if answer.packet_id == id => {}
                        other => bail!("{other:?} instead of PUBCOMP"),
                    }
                }
                Ok(reason)
            }
        }
    }

    /// The next message, acknowledged.
    pub async fn hear(&mut self) -> Result<Message> {
        let packet = if self.waiting.is_empty() {
            match self.read().await?.context("closed")? {
                Packet::Publish(packet) => packet,
                other => bail!("{other:?} instead of a message"),
            }
        } else {
            self.waiting.remove(0)
        };
        if let Some(id) = packet.packet_id {
            self.send(&PubAckPacket::new(id)).await?;
        }
        Ok(Message { topic: packet.topic_name, body: serde_json::from_slice(&packet.payload)? })
    }

    /// Asks for a sign of life; what was heard before it is kept.
    pub async fn ping(&mut self) -> Result<()> {
        self.stream.write_all(&[0xc0, 0]).await?;
        match self.answer().await? {
            Packet::PingResp => Ok(()),
            other => bail!("{other:?} instead of PINGRESP"),
        }
    }

    /// Says good-bye.
    pub async fn leave(mut self) -> Result<()> {
        if self.version == 5 {
            self.send(&DisconnectPacket::normal()).await?;
        } else {
            self.stream.write_all(&[0xe0, 0]).await?;
        }
        self.stream.shutdown().await?;
        Ok(())
    }

    /// Waits until the other side ends the connection; gives the reason if it said one.
    pub async fn ended(mut self) -> Result<Option<u8>> {
        let mut reason = None;
        // A reset is an end too.
        while let Ok(Some(packet)) = self.read().await {
            if let Packet::Disconnect(said) = packet {
                reason = Some(u8::from(said.reason_code));
            }
        }
        Ok(reason)
    }

    async fn answer(&mut self) -> Result<Packet> {
        loop {
            match self.read().await?.context("closed")? {
                Packet::Publish(packet) => self.waiting.push(packet),
                other => return Ok(other),
            }
        }
    }

    fn id(&mut self) -> u16 {
        self.next = self.next.checked_add(1).unwrap_or(1);
        self.next
    }

    async fn send(&mut self, packet: &impl MqttPacket) -> Result<()> {
        let mut bytes = BytesMut::new();
        packet.encode(&mut bytes)?;
        Ok(self.stream.write_all(&bytes).await?)
    }

    /// The next packet; `None` at the end of the connection.
    async fn read(&mut self) -> Result<Option<Packet>> {
        loop {
            if let Some(packet) = self.take()? {
                return Ok(Some(packet));
            }
            let read = timeout(DEADLINE, self.stream.read_buf(&mut self.buffer)).await;
            if read.context("nothing came in time")?? == 0 {
                return Ok(None);
            }
        }
    }

    fn take(&mut self) -> Result<Option<Packet>> {
        let mut rest = &self.buffer[..];
        if rest.len() < 2 {
            return Ok(None);
        }
        let Ok(header) = FixedHeader::decode(&mut rest) else { return Ok(None) };
        let length = usize::try_from(header.remaining_length)?;
        if rest.len() < length {
            return Ok(None);
        }
        let begin = self.buffer.len() - rest.len();
        self.buffer.advance(begin);
        let mut body = self.buffer.split_to(length).freeze();
        // The codec reads the answer to a CONNECT as one of MQTT 5.
        if self.version == 4 && header.packet_type == mqtt5::PacketType::ConnAck {
            let (flags, code) = (body.get_u8(), body.get_u8());
            let reason = if code == 0 { 0 } else { 0x80 | code };
            let mut answer = ConnAckPacket::new_v311(
                flags & 1 == 1,
                mqtt5::protocol::v5::reason_codes::ReasonCode::Success,
            );
            if reason != 0 {
                answer.reason_code = mqtt5::protocol::v5::reason_codes::ReasonCode::UnspecifiedError;
            }
            return Ok(Some(Packet::ConnAck(answer)));
        }
        Ok(Some(Packet::decode_from_body_with_version(header.packet_type, &header, &mut body, self.version)?))
    }
}
