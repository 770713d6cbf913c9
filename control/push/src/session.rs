//! The stream of one edge: a cursor over the shared events.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use shared::wire::{
    frame::{self, FrameError},
    stream::{HEARTBEAT_MS, Hello, Rev, ToControl, ToEdge},
};
use tokio::{
    sync::watch,
    time::{Interval, MissedTickBehavior},
};

use super::{
    certificates,
    hub::Hub,
    members::Standing,
    ring::{Batch, Next},
    welcomes::Greeting,
};
use crate::store::StoreError;

/// If the log could not be read for this long, heartbeats no longer claim that an edge has everything.
const STALE_AFTER: Duration = Duration::from_secs(2);

/// An edge that is sent to another replica connects there within this time, and receives no change meanwhile.
const SPREAD_PAUSE_MS: u64 = 100;

/// A message on its way to an edge.
#[derive(Debug, Clone)]
pub enum Outgoing {
    /// A welcome, most of which edges that connect together share.
    Welcome(Box<Greeting>),
    /// Events that all edges share.
    Shared(Arc<Batch>),
    /// A message to this edge alone.
    Own(Box<ToEdge>),
}

impl Outgoing {
    /// The encoded frames of the message, in parts; what edges share is encoded once for all of them.
    ///
    /// # Errors
    /// A part of it is larger than a frame.
    pub fn frames(&self) -> Result<Vec<Bytes>, FrameError> {
        match self {
            Self::Welcome(greeting) => greeting.frames(),
            Self::Shared(batch) => Ok(vec![batch.frames()?]),
            Self::Own(message) => Ok(vec![frame::encode(&**message)?]),
        }
    }

    /// Whether it is the last one.
    #[must_use]
    pub const fn is_goaway(&self) -> bool {
        matches!(self, Self::Own(message) if matches!(**message, ToEdge::Goaway { .. }))
    }

    /// The message itself.
    #[must_use]
    pub fn into_message(self) -> ToEdge {
        match self {
            Self::Welcome(greeting) => ToEdge::Welcome(greeting.into_welcome()),
            Self::Shared(batch) => ToEdge::Events(batch.events.clone()),
            Self::Own(message) => *message,
        }
    }
}

/// The stream of one edge; it holds a cursor, and no events.
pub struct EdgeSession {
    hub: Hub,
    edge_id: Arc<str>,
    takes_certificates: bool,
    session: u64,
    welcome: Option<Box<Greeting>>,
    head: watch::Receiver<Rev>,
    cursor: Rev,
    heartbeat: Interval,
    beats: u64,
}

impl EdgeSession {
    pub(super) fn new(hub: Hub, hello: &Hello, session: u64, welcome: Greeting, cursor: Rev) -> Self {
        let mut heartbeat = tokio::time::interval(Duration::from_millis(HEARTBEAT_MS));
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let head = hub.0.head.subscribe();
        Self {
            hub,
            edge_id: hello.edge_id.clone(),
            takes_certificates: hello.certificates.is_some(),
            session,
            welcome: Some(Box::new(welcome)),
            head,
            cursor,
            heartbeat,
            beats: 0,
        }
    }

    /// The next message: the welcome, then events without a gap, with heartbeats between. Cancel-safe.
    ///
    /// # Errors
    /// Control stops.
    pub async fn next(&mut self) -> Result<ToEdge, StoreError> {
        self.next_outgoing().await.map(Outgoing::into_message)
    }

    /// The next message, as [`Self::next`] gives it, in the form that is shared with the other edges.
    ///
    /// # Errors
    /// Control stops.
    pub async fn next_outgoing(&mut self) -> Result<Outgoing, StoreError> {
        if let Some(welcome) = self.welcome.take() {
            return Ok(Outgoing::Welcome(welcome));
        }
        loop {
            // Read before the ring: everything up to this head is then in the ring.
            let head = *self.head.borrow_and_update();
            match self.hub.0.ring.after(self.cursor) {
                Next::Batch(batch) => {
                    self.cursor = batch.events.last;
                    return Ok(self.outgoing(batch));
                }
                Next::End if head <= self.cursor => {}
                Next::End | Next::Gone => {
                    if let Some(message) = self.read_log().await? {
                        return Ok(message);
                    }
                }
            }
            // A heartbeat never overtakes events: here the edge has been sent all of them.
            tokio::select! {
                biased;
                _ = self.heartbeat.tick() => {
                    if let Some(beat) = self.beat() {
                        return Ok(Outgoing::Own(beat.into()));
                    }
                }
                changed = self.head.changed() => changed.map_err(|_| StoreError::Stopped)?,
            }
        }
    }

    /// The heartbeat, if it is due.
    fn beat(&mut self) -> Option<ToEdge> {
        let goaway =
            |reason: &str, retry_after_ms| Some(ToEdge::Goaway { reason: reason.to_owned(), retry_after_ms });
        match self.hub.0.members.standing(&self.edge_id, self.session) {
            Standing::Current => {}
            Standing::Replaced => {
                tracing::warn!(edge = %self.edge_id, "an edge connected twice, or moved on; this connection ends");
                return goaway("the edge has a newer connection", 1_000);
            }
            // Few go at a time, and the edge adds a jitter of its own.
            Standing::SentAway => return goaway("another replica holds fewer edges", SPREAD_PAUSE_MS),
        }
        // Another replica may have committed what this one cannot see.
        if self.hub.silence() > STALE_AFTER || *self.head.borrow() > self.cursor {
            return None;
        }
        self.beats += 1;
        Some(ToEdge::Heartbeat { seq: self.beats, head: self.cursor })
    }

    async fn read_log(&mut self) -> Result<Option<Outgoing>, StoreError> {
        let Some(events) = self.hub.read_behind(self.cursor).await? else { return Ok(None) };
        // A gap means that the log was compacted past the cursor; the edge must start over.
        if events.items.first().is_some_and(|event| event.rev != self.cursor + 1) {
            return Ok(Some(Outgoing::Own(Box::new(ToEdge::Goaway {
                reason: format!("revisions after {} are no longer in the log", self.cursor),
                retry_after_ms: 0,
            }))));
        }
        self.cursor = events.last;
        Ok(Some(self.outgoing(Arc::new(Batch::new(events)))))
    }

    /// A run as this edge gets it: private keys go to those that take certificates alone.
    fn outgoing(&self, batch: Arc<Batch>) -> Outgoing {
        let left = if self.takes_certificates { None } else { certificates::without(&batch.events) };
        left.map_or(Outgoing::Shared(batch), |events| Outgoing::Own(ToEdge::Events(Arc::new(events)).into()))
    }

    /// Takes a message of the edge.
    pub fn receive(&mut self, message: ToControl) {
        match message {
            ToControl::Ack { applied, rejected } => {
                for rejected in &rejected {
                    tracing::error!(edge = %self.edge_id, rev = rejected.rev, reason = %rejected.reason,
                        "an edge rejected a change");
                }
                self.hub.metrics().rejected.inc_by(rejected.len() as u64);
                let before = self.hub.0.members.ack(&self.edge_id, self.session, applied, &rejected);
                if let Some(before) = before {
                    self.hub.0.timing.acked(before, applied);
                }
            }
            ToControl::Hello(_) => tracing::warn!(edge = %self.edge_id, "an edge sent hello twice"),
            ToControl::Resync { applied, reason } => {
                tracing::warn!(edge = %self.edge_id, applied, reason, "an edge requests a resync");
                self.hub.metrics().resyncs.inc();
                // Not beyond what it was sent: a heartbeat would confirm events that it never got.
                self.cursor = self.cursor.min(applied);
            }
        }
    }
}
