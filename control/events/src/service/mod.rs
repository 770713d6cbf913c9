//! Operations: one function each, called by HTTP handlers, the broker and workers alike.
//!
//! Functions fail when the database does; their docs list other errors only.

pub use ::actions::service::*;

pub mod connections;
pub mod events;
pub mod export;
pub mod fan_out;
pub mod followers;
pub mod live;
pub mod reactions;
pub mod remaining_capacity;
pub mod webhooks;

use std::sync::Arc;

use self::{connections::Connections, events::Streams, reactions::Reactions, webhooks::Webhooks};
use crate::{egress::EgressClient, feed::Feed};

/// What operations and workers of events need; one for each process.
pub struct EventState {
    /// What the operations of the catalog need.
    pub catalog: Catalog,
    /// What the operations on actions need.
    pub actions: ActionState,
    /// The event feed for subscribers.
    pub feed: Feed,
    /// Sends requests to addresses that somebody gave.
    pub egress: EgressClient,
    /// What workers of webhooks share.
    pub webhooks: Webhooks,
    /// What workers of reactions share.
    pub reactions: Reactions,
    /// Streams of events.
    pub streams: Streams,
    /// Connections to the broker.
    pub connections: Connections,
}

impl EventState {
    /// Without connections, streams and queued work yet; shared by handlers and workers.
    #[must_use]
    pub fn new(catalog: Catalog, actions: ActionState, feed: Feed, egress: EgressClient) -> Arc<Self> {
        Arc::new(Self {
            catalog,
            actions,
            feed,
            egress,
            webhooks: Webhooks::default(),
            reactions: Reactions::default(),
            streams: Streams::default(),
            connections: Connections::default(),
        })
    }
}

kernel::has_core!(EventState, actions.core);

impl AsRef<Self> for EventState {
    fn as_ref(&self) -> &Self {
        self
    }
}
