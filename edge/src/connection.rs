//! What a request knows of the connection it came by.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::SeqCst},
    },
};

/// Where a request came from: the connection, or what a trusted proxy says of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Client {
    /// The client's address.
    pub(crate) ip: IpAddr,
    /// Whether the client speaks TLS.
    pub(crate) is_tls: bool,
}

/// Requests of one connection.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    begun: AtomicU64,
    ended: AtomicU64,
}

impl Activity {
    /// Requests begun and ended so far.
    pub(crate) fn counts(&self) -> (u64, u64) {
        // `ended` first: a request that ends in between then counts as under way, never as quiet.
        let ended = self.ended.load(SeqCst);
        (self.begun.load(SeqCst), ended)
    }
}

/// A request under way; its connection does not count as idle before this is dropped.
#[derive(Debug)]
pub(crate) struct InFlight(Arc<Activity>);

impl InFlight {
    /// Notes that a request begins.
    pub(crate) fn begin(activity: &Arc<Activity>) -> Self {
        activity.begun.fetch_add(1, SeqCst);
        Self(activity.clone())
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, SeqCst);
    }
}
