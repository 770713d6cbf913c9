//! A minimal edge that speaks the stream's protocol and does nothing else.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use bytes::BytesMut;
use shared::wire::{
    PROTOCOL,
    frame::{self, Decoder},
    internal::{STREAM_PATH, STREAM_UPGRADE},
    stream::{Epoch, Hello, Rejected, Rev, ToControl, ToEdge, Welcome},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::product::DEADLINE;

/// One stream of an edge.
pub struct RawEdge {
    /// The connection after its upgrade.
    pub io: TcpStream,
    decoder: Decoder<ToEdge>,
    /// The newest revision that came.
    pub applied: Rev,
}

/// The hello of an edge of this release.
#[must_use]
pub fn hello(edge: &str, epoch: Option<Epoch>, applied: Rev) -> Hello {
    Hello {
        proto: PROTOCOL,
        edge_id: edge.into(),
        region: "main".into(),
        build: "raw".into(),
        epoch,
        applied,
        contents: Vec::new(),
        certificates: None,
    }
}

impl RawEdge {
    /// Asks for the stream with a key; gives the status and, after an upgrade, the stream.
    pub async fn open(internal: &str, key: &str) -> Result<(u16, Option<Self>)> {
        let address = internal.rsplit('/').next().unwrap_or_default();
        let mut io = TcpStream::connect(address).await?;
        let request = format!(
            "GET {STREAM_PATH} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {key}\r\n\
             Connection: upgrade\r\nUpgrade: {STREAM_UPGRADE}\r\n\r\n"
        );
        io.write_all(request.as_bytes()).await?;
        let mut buffer = BytesMut::new();
        let end = loop {
            if let Some(at) = buffer.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            if tokio::time::timeout(DEADLINE, io.read_buf(&mut buffer)).await?? == 0 {
                bail!("no answer: {buffer:?}");
            }
        };
        let head = buffer.split_to(end);
        let status = std::str::from_utf8(&head)?.split(' ').nth(1).context("no status")?.parse()?;
        let mut decoder = Decoder::default();
        decoder.buffer.extend_from_slice(&buffer);
        Ok((status, (status == 101).then_some(Self { io, decoder, applied: 0 })))
    }

    /// Opens a stream and says hello; gives the welcome.
    pub async fn connect(internal: &str, key: &str, hello: Hello) -> Result<(Self, Welcome)> {
        let (status, edge) = Self::open(internal, key).await?;
        let mut edge = edge.with_context(|| format!("status {status}"))?;
        edge.applied = hello.applied;
        edge.say(&ToControl::Hello(hello)).await?;
        match edge.next().await? {
            ToEdge::Welcome(welcome) => {
                if let shared::wire::stream::Start::Snapshot { at_rev } = welcome.start {
                    edge.applied = at_rev;
                }
                Ok((edge, welcome))
            }
            other => bail!("no welcome: {other:?}"),
        }
    }

    /// The next message.
    ///
    /// # Errors
    /// The stream ended, or nothing came in time.
    pub async fn next(&mut self) -> Result<ToEdge> {
        tokio::time::timeout(DEADLINE, async {
            loop {
                if let Some(message) = self.decoder.decode()? {
                    return Ok(message);
                }
                if self.io.read_buf(&mut self.decoder.buffer).await? == 0 {
                    bail!("the stream ended");
                }
            }
        })
        .await
        .context("no message came")?
    }

    /// Sends a message.
    pub async fn say(&mut self, message: &ToControl) -> Result<()> {
        Ok(self.io.write_all(&frame::encode(message)?).await?)
    }

    /// Acknowledges what came.
    pub async fn ack(&mut self, rejected: Vec<Rejected>) -> Result<()> {
        self.say(&ToControl::Ack { applied: self.applied, rejected }).await
    }

    /// Takes events until `rev` is here; fails on a gap, a double, or a heartbeat that overtakes.
    ///
    /// # Errors
    /// The stream ended or broke its rules.
    pub async fn follow(&mut self, rev: Rev) -> Result<()> {
        while self.applied < rev {
            match self.next().await? {
                ToEdge::Events(events) => {
                    if events.prev != self.applied {
                        bail!("events after {} came at {}", events.prev, self.applied);
                    }
                    for event in &events.items {
                        self.applied += 1;
                        if event.rev != self.applied {
                            bail!("revision {} came for {}", event.rev, self.applied);
                        }
                    }
                    self.ack(Vec::new()).await?;
                }
                ToEdge::Heartbeat { head, .. } if head <= self.applied => self.ack(Vec::new()).await?,
                other => bail!("unexpected at {}: {other:?}", self.applied),
            }
        }
        Ok(())
    }

    /// Answers heartbeats and events until the edge is sent away; gives the reason and the pause.
    ///
    /// # Errors
    /// The stream ended without a word.
    pub async fn until_goaway(&mut self) -> Result<(String, Duration)> {
        loop {
            match self.next().await? {
                ToEdge::Goaway { reason, retry_after_ms } => {
                    return Ok((reason, Duration::from_millis(retry_after_ms)));
                }
                ToEdge::Events(events) => self.applied = events.last,
                ToEdge::Heartbeat { .. } => self.ack(Vec::new()).await?,
                ToEdge::Welcome(_) => bail!("a second welcome"),
            }
        }
    }
}
