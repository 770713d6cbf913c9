//! Frames of the change stream: `length | kind | checksum | body`.
//!
//! The length (u32, little endian) counts the body, at most [`MAX_BODY`]. The checksum is the CRC-32C of kind and body. The body
//! is JSON. Unknown kinds are skipped, as a newer release may send them. A message larger than a frame is split: runs of events are
//! cut, and a welcome is followed by chunks of its lists and an end frame with their count and hash, without which it is incomplete.

mod welcome;

use std::{collections::VecDeque, marker::PhantomData, sync::Arc};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

pub use self::welcome::{Chunks, encode_welcome};
use super::{
    certificates::{Challenge, DomainCertificate},
    stream::{Epoch, Event, Hello, Rejected, Rev, Start, ToControl, ToEdge},
};
use crate::{
    rules::AccountRules,
    short_url::ShortDomain,
    withheld::{Withheld, read_known},
};

/// Most bytes of a body: with its head a frame has at most 256 KiB.
pub const MAX_BODY: usize = (256 << 10) - HEAD;

/// Bytes before the body.
const HEAD: usize = 9;

/// Most items of a welcome's lists: a hundred thousand accounts with rules and domains.
const MAX_ITEMS: u64 = 1_000_000;

/// Most bytes of a welcome's lists.
const MAX_WELCOME_BYTES: usize = 512 << 20;

/// Why bytes are no frames, or a message does not fit one; the connection ends.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The length is beyond [`MAX_BODY`].
    #[error("a frame of {0} bytes is too long")]
    TooLong(usize),
    /// The checksum does not fit.
    #[error("the checksum of a frame does not fit")]
    Corrupt,
    /// The body does not match its kind.
    #[error("a frame of kind {kind} cannot be read: {reason}")]
    Unreadable {
        /// The kind's number.
        kind: u8,
        /// The fault.
        reason: String,
    },
    /// The parts of a welcome do not fit together.
    #[error("the parts of a welcome do not fit together")]
    Unfitting,
}

mod kind {
    pub(super) const HELLO: u8 = 1;
    pub(super) const WELCOME: u8 = 2;
    pub(super) const EVENTS: u8 = 3;
    pub(super) const CHUNK: u8 = 4;
    pub(super) const END: u8 = 5;
    pub(super) const HEARTBEAT: u8 = 6;
    pub(super) const GOAWAY: u8 = 7;
    pub(super) const ACK: u8 = 8;
    pub(super) const RESYNC: u8 = 9;
}

#[derive(Serialize, Deserialize)]
struct WelcomeHead {
    epoch: Epoch,
    head: Rev,
    compacted: Rev,
    start: Start,
    /// Whether what is withheld is among the items.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    withheld: bool,
    /// `kept` of the welcome.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    kept: Vec<u8>,
    /// `kept_certificates` of the welcome.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    kept_certificates: Option<Vec<u8>>,
}

/// One of its members; empty if a newer release sent an unknown one.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Item {
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<ShortDomain>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rules: Option<Arc<AccountRules>>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "read_known")]
    withheld: Option<Withheld>,
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate: Option<Arc<DomainCertificate>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    challenge: Option<Arc<Challenge>>,
}

#[derive(Serialize, Deserialize)]
struct End {
    count: u64,
    hash: String,
}

#[derive(Serialize, Deserialize)]
struct Beat {
    seq: u64,
    head: Rev,
}

#[derive(Serialize, Deserialize)]
struct Away {
    reason: String,
    retry_after_ms: u64,
}

#[derive(Serialize, Deserialize)]
struct Ack {
    applied: Rev,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    rejected: Vec<Rejected>,
}

#[derive(Serialize, Deserialize)]
struct Again {
    applied: Rev,
    reason: String,
}

#[derive(Serialize)]
struct EventsRef<'a> {
    prev: Rev,
    items: &'a [Event],
    last: Rev,
}

/// A message that travels in frames.
pub trait Message: Sized {
    /// Appends the message as frames.
    ///
    /// # Errors
    /// A part that cannot be cut is larger than a frame.
    fn encode(&self, out: &mut BytesMut) -> Result<(), FrameError>;

    /// State between frames of one message.
    #[doc(hidden)]
    type Parts: Default;

    /// Takes one frame; the message, if it is whole now.
    #[doc(hidden)]
    fn take(parts: &mut Self::Parts, kind: u8, body: &[u8]) -> Result<Option<Self>, FrameError>;
}

/// The frames of a message.
///
/// # Errors
/// A part that cannot be cut is larger than a frame.
pub fn encode<M: Message>(message: &M) -> Result<Bytes, FrameError> {
    let mut out = BytesMut::new();
    message.encode(&mut out)?;
    Ok(out.freeze())
}

impl Message for ToControl {
    type Parts = ();

    fn encode(&self, out: &mut BytesMut) -> Result<(), FrameError> {
        match self {
            Self::Hello(hello) => put(out, kind::HELLO, hello),
            Self::Ack { applied, rejected } => {
                put(out, kind::ACK, &Ack { applied: *applied, rejected: rejected.clone() })
            }
            Self::Resync { applied, reason } => {
                put(out, kind::RESYNC, &Again { applied: *applied, reason: reason.clone() })
            }
        }
    }

    fn take((): &mut (), kind: u8, body: &[u8]) -> Result<Option<Self>, FrameError> {
        Ok(Some(match kind {
            kind::HELLO => Self::Hello(read::<Hello>(kind, body)?),
            kind::ACK => {
                let Ack { applied, rejected } = read(kind, body)?;
                Self::Ack { applied, rejected }
            }
            kind::RESYNC => {
                let Again { applied, reason } = read(kind, body)?;
                Self::Resync { applied, reason }
            }
            _ => return Ok(None),
        }))
    }
}

/// A welcome of which parts are still to come.
#[derive(Default)]
pub struct Unfinished {
    head: Option<WelcomeHead>,
    domains: Vec<ShortDomain>,
    rules: Vec<Arc<AccountRules>>,
    withheld: Vec<Withheld>,
    certificates: Vec<Arc<DomainCertificate>>,
    challenges: Vec<Arc<Challenge>>,
    count: u64,
    bytes: usize,
    hash: blake3::Hasher,
}

impl Message for ToEdge {
    type Parts = Unfinished;

    fn encode(&self, out: &mut BytesMut) -> Result<(), FrameError> {
        match self {
            Self::Welcome(welcome) => {
                encode_welcome(welcome, &[])?.iter().for_each(|part| out.extend_from_slice(part));
                Ok(())
            }
            Self::Events(events) => put_events(out, events.prev, &events.items),
            Self::Heartbeat { seq, head } => put(out, kind::HEARTBEAT, &Beat { seq: *seq, head: *head }),
            Self::Goaway { reason, retry_after_ms } => {
                put(out, kind::GOAWAY, &Away { reason: reason.clone(), retry_after_ms: *retry_after_ms })
            }
        }
    }

    fn take(parts: &mut Unfinished, kind: u8, body: &[u8]) -> Result<Option<Self>, FrameError> {
        Ok(Some(match kind {
            kind::WELCOME => {
                *parts = Unfinished { head: Some(read(kind, body)?), ..Unfinished::default() };
                return Ok(None);
            }
            kind::CHUNK => {
                parts.chunk(body)?;
                return Ok(None);
            }
            kind::END => Self::Welcome(std::mem::take(parts).end(read(kind, body)?)?),
            kind::EVENTS => Self::Events(Arc::new(read(kind, body)?)),
            kind::HEARTBEAT => {
                let Beat { seq, head } = read(kind, body)?;
                Self::Heartbeat { seq, head }
            }
            kind::GOAWAY => {
                let Away { reason, retry_after_ms } = read(kind, body)?;
                Self::Goaway { reason, retry_after_ms }
            }
            _ => return Ok(None),
        }))
    }
}

fn put_events(out: &mut BytesMut, prev: Rev, items: &[Event]) -> Result<(), FrameError> {
    let mut prev = prev;
    put_cut(out, items, &mut |out, items: &[Event]| {
        let last = items.last().map_or(prev, |event| event.rev);
        put(out, kind::EVENTS, &EventsRef { prev, items, last })?;
        prev = last;
        Ok(())
    })
}

/// Writes a list in as many frames as it takes: one that is too long is halved, and each half is tried again.
fn put_cut<T>(
    out: &mut BytesMut,
    items: &[T],
    put: &mut impl FnMut(&mut BytesMut, &[T]) -> Result<(), FrameError>,
) -> Result<(), FrameError> {
    let mut todo = VecDeque::from([items]);
    while let Some(items) = todo.pop_front() {
        if items.is_empty() {
            continue;
        }
        let at = out.len();
        match put(out, items) {
            Err(FrameError::TooLong(_)) if items.len() > 1 => {
                out.truncate(at);
                let (left, right) = items.split_at(items.len() / 2);
                todo.push_front(right);
                todo.push_front(left);
            }
            result => result?,
        }
    }
    Ok(())
}

fn put<T: Serialize + ?Sized>(out: &mut BytesMut, kind: u8, body: &T) -> Result<(), FrameError> {
    let at = out.len();
    out.put_bytes(0, HEAD);
    serde_json::to_writer(out.writer(), body)
        .map_err(|error| FrameError::Unreadable { kind, reason: error.to_string() })?;
    let length = out.len() - at - HEAD;
    if length > MAX_BODY {
        out.truncate(at);
        return Err(FrameError::TooLong(length));
    }
    let sum = checksum(kind, &out[at + HEAD..]);
    let mut head = &mut out[at..at + HEAD];
    // At most `MAX_BODY`, which fits.
    head.put_u32_le(length as u32);
    head.put_u8(kind);
    head.put_u32_le(sum);
    Ok(())
}

fn read<T: DeserializeOwned>(kind: u8, body: &[u8]) -> Result<T, FrameError> {
    serde_json::from_slice(body).map_err(|error| FrameError::Unreadable { kind, reason: error.to_string() })
}

fn checksum(kind: u8, body: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&[kind]), body)
}

/// Decodes messages from bytes as they arrive.
pub struct Decoder<M: Message> {
    /// What has come in and is not yet read: the reader of the connection appends here.
    pub buffer: BytesMut,
    parts: M::Parts,
    message: PhantomData<fn() -> M>,
}

impl<M: Message> Default for Decoder<M> {
    fn default() -> Self {
        Self { buffer: BytesMut::new(), parts: M::Parts::default(), message: PhantomData }
    }
}

impl<M: Message> Decoder<M> {
    /// The next message, if it is here whole.
    ///
    /// # Errors
    /// The bytes are no frames; the connection is of no more use.
    pub fn decode(&mut self) -> Result<Option<M>, FrameError> {
        while let Some(&[a, b, c, d]) = self.buffer.first_chunk::<4>() {
            let length = u32::from_le_bytes([a, b, c, d]) as usize;
            if length > MAX_BODY {
                return Err(FrameError::TooLong(length));
            }
            if self.buffer.len() < HEAD + length {
                self.buffer.reserve(HEAD + length - self.buffer.len());
                return Ok(None);
            }
            let mut frame = self.buffer.split_to(HEAD + length);
            frame.advance(4);
            let (kind, sum) = (frame.get_u8(), frame.get_u32_le());
            if checksum(kind, &frame) != sum {
                return Err(FrameError::Corrupt);
            }
            if let Some(message) = M::take(&mut self.parts, kind, &frame)? {
                return Ok(Some(message));
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
