//! Waiting until edges have a change.

use std::{sync::Arc, time::Duration};

use futures_util::future::BoxFuture;
use serde::Serialize;
use shared::wire::stream::Rev;

/// Who knows how far the edges are. The composition names it.
pub trait Edges: Send + Sync + 'static {
    /// Waits until every edge has `rev` live, at most until `timeout` is over.
    fn wait(&self, rev: Rev, timeout: Duration) -> BoxFuture<'_, WaitReport>;
}

/// What `?wait=edges` reports.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WaitReport {
    /// The revision waited for.
    pub rev: Rev,
    /// Edges that have it live.
    pub acked: usize,
    /// Edges with a valid lease.
    pub members: usize,
    /// Members that do not have it live; empty unless the deadline passed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lagging: Vec<Arc<str>>,
    /// Edges that are known but whose lease has run out.
    pub unreachable: Vec<Arc<str>>,
    /// Whether the edges of other replicas could not be read since the change: then more may lag than listed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
    /// Milliseconds from the commit to the last acknowledgement, or to the deadline.
    pub ms: u64,
}

impl WaitReport {
    /// Whether every member has the revision live.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.lagging.is_empty() && !self.incomplete
    }
}
