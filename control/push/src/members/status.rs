//! How far edges are: the report to whoever waits for a revision, and the list for operators.

use std::{sync::Arc, time::Instant};

use redirects::edges::WaitReport;
use serde::Serialize;
use shared::wire::stream::Rev;

use super::{LEASE, Members, millis};

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
    /// The replica of control that holds its stream, or did; absent where one process is all there is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replica: Option<Arc<str>>,
}

impl Members {
    /// How far the edges are with a revision.
    pub(crate) fn report(&self, rev: Rev, begun: Instant) -> WaitReport {
        let mut report = WaitReport {
            rev,
            acked: 0,
            members: 0,
            lagging: Vec::new(),
            unreachable: Vec::new(),
            incomplete: false,
            ms: millis(begun.elapsed()),
        };
        let known = self.known();
        let here = known
            .here
            .iter()
            .map(|(edge_id, member)| (edge_id, member.is_valid(), member.applied, &member.rejected));
        let elsewhere = known.elsewhere.iter().map(|(edge_id, remote)| {
            (edge_id, remote.silence() <= LEASE, remote.lease.applied, &remote.lease.rejected)
        });
        for (edge_id, is_valid, applied, rejected) in here.chain(elsewhere) {
            if !is_valid {
                report.unreachable.push(edge_id.clone());
                continue;
            }
            report.members += 1;
            if applied >= rev && !rejected.contains(&rev) {
                report.acked += 1;
            } else {
                report.lagging.push(edge_id.clone());
            }
        }
        drop(known);
        report.lagging.sort_unstable();
        report.unreachable.sort_unstable();
        report
    }

    /// Every edge that is known, by name; `replica` is this one's id, in a fleet.
    pub(crate) fn list(&self, head: Rev, replica: Option<&Arc<str>>) -> Vec<EdgeStatus> {
        let known = self.known();
        let here = known.here.iter().map(|(edge_id, member)| EdgeStatus {
            edge_id: edge_id.clone(),
            region: member.region.clone(),
            build: member.build.clone(),
            reachable: member.is_valid(),
            applied: member.applied,
            lag: head.saturating_sub(member.applied),
            silent_ms: millis(member.seen.elapsed()),
            rejected: member.rejected.clone(),
            replica: replica.cloned(),
        });
        let elsewhere = known.elsewhere.values().map(|remote| EdgeStatus {
            edge_id: remote.lease.edge_id.clone(),
            region: remote.lease.region.clone(),
            build: remote.lease.build.clone(),
            reachable: remote.silence() <= LEASE,
            applied: remote.lease.applied,
            lag: head.saturating_sub(remote.lease.applied),
            silent_ms: millis(remote.silence()),
            rejected: remote.lease.rejected.clone(),
            replica: Some(remote.lease.replica.clone()),
        });
        let mut edges: Vec<EdgeStatus> = here.chain(elsewhere).collect();
        drop(known);
        edges.sort_unstable_by(|a, b| a.edge_id.cmp(&b.edge_id));
        edges
    }
}
