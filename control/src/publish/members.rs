//! Who follows the change stream, and how far each edge is.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicU64, atomic::Ordering},
    time::{Duration, Instant},
};

use serde::Serialize;
use shared::wire::stream::{Hello, Rejected, Rev};
use tokio::sync::{Notify, futures::Notified};

/// How long an edge counts as a member after its last sign of life.
pub const LEASE: Duration = Duration::from_secs(10);

/// Refused revisions that are kept of an edge: the newest few are enough to answer those who wait.
const KEPT_REJECTED: usize = 64;

/// One edge as control sees it.
#[derive(Debug, Clone)]
struct Member {
    region: Arc<str>,
    build: Arc<str>,
    applied: Rev,
    rejected: Vec<Rev>,
    session: u64,
    seen: Instant,
}

/// The state of one edge, for operators.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EdgeStatus {
    /// Name of the edge.
    pub edge_id: Arc<str>,
    /// Region of the edge.
    pub region: Arc<str>,
    /// Build of the edge.
    pub build: Arc<str>,
    /// Whether its lease is valid.
    pub reachable: bool,
    /// The newest revision that is live on it.
    pub applied: Rev,
    /// Revisions it is behind.
    pub lag: u64,
    /// Milliseconds since its last sign of life.
    pub silent_ms: u64,
    /// Revisions it refused, newest last.
    pub rejected: Vec<Rev>,
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
    /// Milliseconds from the commit to the last acknowledgement, or to the deadline.
    pub ms: u64,
}

/// The edges of this process.
#[derive(Debug, Default)]
pub(super) struct Members {
    known: Mutex<HashMap<Arc<str>, Member>>,
    acked: Notify,
    sessions: AtomicU64,
}

impl Members {
    /// Takes in an edge that connects; gives the number of its session.
    pub(super) fn insert(&self, hello: &Hello, applied: Rev) -> u64 {
        let session = self.sessions.fetch_add(1, Ordering::Relaxed) + 1;
        let member = Member {
            region: hello.region.clone(),
            build: hello.build.clone(),
            applied,
            rejected: Vec::new(),
            session,
            seen: Instant::now(),
        };
        self.known().insert(hello.edge_id.clone(), member);
        session
    }

    /// Whether a session is the edge's newest: of two connections of one edge the older one ends.
    pub(super) fn is_current(&self, edge: &str, session: u64) -> bool {
        self.known().get(edge).is_some_and(|member| member.session == session)
    }

    /// Takes an acknowledgement; gives what the edge had applied before, if it is its newest session.
    pub(super) fn ack(&self, edge: &str, session: u64, applied: Rev, rejected: &[Rejected]) -> Option<Rev> {
        let mut before = None;
        if let Some(member) = self.known().get_mut(edge).filter(|member| member.session == session) {
            before = Some(member.applied);
            member.applied = member.applied.max(applied);
            member.seen = Instant::now();
            member.rejected.extend(rejected.iter().map(|rejected| rejected.rev));
            let surplus = member.rejected.len().saturating_sub(KEPT_REJECTED);
            member.rejected.drain(..surplus);
        }
        self.acked.notify_waiters();
        before
    }

    /// Resolves at the next acknowledgement after this call.
    pub(super) fn acked(&self) -> Notified<'_> {
        self.acked.notified()
    }

    /// How far the edges are with a revision.
    pub(super) fn report(&self, rev: Rev, begun: Instant) -> WaitReport {
        let mut report = WaitReport {
            rev,
            acked: 0,
            members: 0,
            lagging: Vec::new(),
            unreachable: Vec::new(),
            ms: millis(begun.elapsed()),
        };
        for (edge_id, member) in self.known().iter() {
            if member.seen.elapsed() > LEASE {
                report.unreachable.push(edge_id.clone());
                continue;
            }
            report.members += 1;
            if member.applied >= rev && !member.rejected.contains(&rev) {
                report.acked += 1;
            } else {
                report.lagging.push(edge_id.clone());
            }
        }
        report.lagging.sort_unstable();
        report.unreachable.sort_unstable();
        report
    }

    /// Every edge that was seen since the start, by name.
    pub(super) fn list(&self, head: Rev) -> Vec<EdgeStatus> {
        let status = |(edge_id, member): (&Arc<str>, &Member)| EdgeStatus {
            edge_id: edge_id.clone(),
            region: member.region.clone(),
            build: member.build.clone(),
            reachable: member.seen.elapsed() <= LEASE,
            applied: member.applied,
            lag: head.saturating_sub(member.applied),
            silent_ms: millis(member.seen.elapsed()),
            rejected: member.rejected.clone(),
        };
        let mut edges: Vec<EdgeStatus> = self.known().iter().map(status).collect();
        edges.sort_by(|a, b| a.edge_id.cmp(&b.edge_id));
        edges
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Arc<str>, Member>> {
        // Nothing panics while it is held; a poisoned map is as good as before.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
