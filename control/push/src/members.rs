//! The edges that follow the change stream and their progress: those of this replica, and those of others as last read.

mod status;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use shared::wire::stream::{Hello, Rejected, Rev};
use tokio::sync::{
    Notify,
    futures::{Notified, OwnedNotified},
};

pub use self::status::EdgeStatus;
use crate::store::edge_leases::{Lease, Opened};

/// How long an edge counts as a member after its last sign of life.
pub const LEASE: Duration = Duration::from_millis(LEASE_MS.unsigned_abs());
const LEASE_MS: i64 = 10_000;

/// An otherwise unchanged lease is renewed after this time, when two thirds of it are left.
const RENEW_AFTER: Duration = Duration::from_secs(3);

/// The fraction of all old leases that is renewed each second, and the minimum number; the last one is renewed when
/// half of the lease is left.
const RENEWED_PART: usize = 3;
const FEWEST_RENEWED: usize = 32;

/// Refused revisions that are kept of an edge: the newest few are enough to answer those who wait.
const KEPT_REJECTED: usize = 64;

/// An edge that was sent to another replica and came back is not sent away again for this time: it has no other.
const LEFT_ALONE: Duration = Duration::from_secs(600);

/// An edge whose stream this replica holds, or held last.
#[derive(Debug, Clone)]
struct Member {
    region: Arc<str>,
    build: Arc<str>,
    applied: Rev,
    rejected: Vec<Rev>,
    session: u64,
    seen: Instant,
    /// What was last published to other replicas: applied, total rejections, and the time of the last sign of life.
    told: Option<(Rev, u64, Instant)>,
    rejections: u64,
    is_sent_away: bool,
    /// Signals its acknowledgements to callers that wait for them.
    acked: Arc<Notify>,
}

impl Member {
    fn is_valid(&self) -> bool {
        self.seen.elapsed() <= LEASE
    }
}

/// An edge at another replica, as the database had it.
#[derive(Debug, Clone)]
struct Remote {
    lease: Lease,
    read_at: Instant,
}

impl Remote {
    /// Time since its last sign of life.
    fn silence(&self) -> Duration {
        let at_reading = LEASE_MS.saturating_sub(self.lease.left_ms).max(0).unsigned_abs();
        Duration::from_millis(at_reading) + self.read_at.elapsed()
    }
}

/// What a session should do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It continues.
    Current,
    /// The edge has a newer one, here or at another replica.
    Replaced,
    /// Another replica holds fewer: the edge should go there.
    SentAway,
}

/// An edge that somebody waits for.
pub(super) struct Laggard {
    pub(super) edge: Arc<str>,
    /// Resolves at its next acknowledgement.
    pub(super) acked: OwnedNotified,
}

/// The edges of this process, and those of other replicas as they were last read.
#[derive(Debug, Default)]
pub(super) struct Members {
    known: Mutex<Known>,
    /// Something other than an acknowledgement of an edge here changed.
    news: Arc<Notify>,
    /// Signals that there is something to publish to other replicas.
    pub(super) changed: Notify,
    sessions: AtomicU64,
}

#[derive(Debug, Default)]
struct Known {
    here: HashMap<Arc<str>, Member>,
    elsewhere: HashMap<Arc<str>, Remote>,
    /// Edges that are connecting to this replica, and since when. The lease query stops listing an edge at another replica
    /// as soon as its session here opens. Until `insert` registers it, its last remote lease still counts.
    arriving: HashMap<Arc<str>, Instant>,
    /// Edges that were asked to leave, and when.
    sent_away: HashMap<Arc<str>, Instant>,
}

impl Members {
    /// Announces an edge whose session the database is about to assign to this replica.
    pub(super) fn arrives(&self, edge_id: &Arc<str>) {
        self.known().arriving.insert(edge_id.clone(), Instant::now());
    }

    /// Registers an edge that connects; returns the number of its session.
    ///
    /// `opened` is the session that the database assigned, in a fleet. Rejections of the previous session still count
    /// if the edge resumes.
    pub(super) fn insert(&self, hello: &Hello, applied: Option<Rev>, opened: Option<Opened>) -> u64 {
        let mut known = self.known();
        let before = known.here.get(&hello.edge_id);
        let acked = before.map(|member| member.acked.clone()).unwrap_or_default();
        let (session, refused) = match opened {
            Some(opened) => (opened.session, opened.rejected),
            None => (
                self.sessions.fetch_add(1, Ordering::Relaxed) + 1,
                before.map(|member| member.rejected.clone()).unwrap_or_default(),
            ),
        };
        if before.is_some_and(|member| member.session > session) {
            // Two concurrent connections of one edge: the newer one was registered first.
            return session;
        }
        let member = Member {
            region: hello.region.clone(),
            build: hello.build.clone(),
            applied: applied.unwrap_or(0),
            rejected: if applied.is_some() { refused } else { Vec::new() },
            session,
            seen: Instant::now(),
            told: None,
            rejections: 0,
            is_sent_away: false,
            acked,
        };
        known.arriving.remove(&hello.edge_id);
        known.elsewhere.remove(&hello.edge_id);
        known.here.insert(hello.edge_id.clone(), member);
        drop(known);
        self.changed.notify_one();
        // Whoever waits for it waits for its acknowledgements here from now on.
        self.news.notify_waiters();
        session
    }

    /// What a session should do next: of two of one edge the older one ends.
    pub(super) fn standing(&self, edge: &str, session: u64) -> Standing {
        match self.known().here.get(edge) {
            Some(member) if member.session == session && member.is_sent_away => Standing::SentAway,
            Some(member) if member.session == session => Standing::Current,
            Some(_) | None => Standing::Replaced,
        }
    }

    /// Records an acknowledgement; returns what the edge had applied before, if this is its newest session.
    pub(super) fn ack(&self, edge: &str, session: u64, applied: Rev, rejected: &[Rejected]) -> Option<Rev> {
        let mut before = None;
        if let Some(member) = self.known().here.get_mut(edge).filter(|member| member.session == session) {
            before = Some(member.applied);
            member.applied = member.applied.max(applied);
            member.seen = Instant::now();
            member.rejections += rejected.len() as u64;
            member.rejected.extend(rejected.iter().map(|rejected| rejected.rev));
            let surplus = member.rejected.len().saturating_sub(KEPT_REJECTED);
            member.rejected.drain(..surplus);
            member.acked.notify_waiters();
        }
        self.changed.notify_one();
        before
    }

    /// Resolves when anything but an acknowledgement of an edge here changes after this call.
    pub(super) fn news(&self) -> Notified<'_> {
        self.news.notified()
    }

    /// Makes waiting callers check again.
    pub(super) fn wake_waiting(&self) {
        self.news.notify_waiters();
    }

    /// Takes the state of local edges that other replicas have not seen yet, sorted by edge, and marks it as
    /// published. If no other replica `listens`, only what a starting replica must find: which edges there are.
    pub(super) fn take_untold(&self, listens: bool) -> Vec<Lease> {
        let mut known = self.known();
        let mut due = Vec::new();
        // Edges that came together would else be due together for ever, and hold up the push while all are written.
        let mut renewals = known.here.len().div_ceil(RENEWED_PART).max(FEWEST_RENEWED);
        for (edge_id, member) in &mut known.here {
            let has_news = member.told.is_none_or(|(applied, rejections, _)| {
                listens && (applied, rejections) != (member.applied, member.rejections)
            });
            let is_old = member
                .told
                .is_some_and(|(_, _, seen)| member.seen.saturating_duration_since(seen) >= RENEW_AFTER);
            if !has_news {
                if !is_old || renewals == 0 {
                    continue;
                }
                renewals -= 1;
            }
            member.told = Some((member.applied, member.rejections, member.seen));
            due.push(Lease {
                edge_id: edge_id.clone(),
                session: member.session,
                replica: Arc::default(),
                region: member.region.clone(),
                build: member.build.clone(),
                applied: member.applied,
                rejected: member.rejected.clone(),
                left_ms: LEASE_MS.saturating_sub_unsigned(millis(member.seen.elapsed())),
            });
        }
        due.sort_unstable_by(|a, b| a.edge_id.cmp(&b.edge_id));
        due
    }

    /// Publishing the batch failed; marks every edge as unpublished.
    pub(super) fn tell_anew(&self) {
        self.known().here.values_mut().for_each(|member| member.told = None);
    }

    /// Updates the edges of other replicas from the database; returns local edges that have moved to one of them.
    pub(super) fn read(&self, leases: Vec<Lease>) -> Vec<Arc<str>> {
        let read_at = Instant::now();
        let mut known = self.known();
        let mut moved = Vec::new();
        let rows: HashMap<Arc<str>, Remote> =
            leases.into_iter().map(|lease| (lease.edge_id.clone(), Remote { lease, read_at })).collect();
        known.here.retain(|edge_id, member| match rows.get(edge_id) {
            Some(row) if row.lease.session > member.session => {
                if member.is_valid() {
                    moved.push(edge_id.clone());
                }
                false
            }
            Some(_) => true,
            // It has no key any more: it is no longer of the fleet.
            None => member.is_valid(),
        });
        // A session that was opened and came to nothing is listed again when its lease has run out.
        known.arriving.retain(|_, since| since.elapsed() <= LEASE);
        let before = std::mem::replace(&mut known.elsewhere, rows);
        let Known { here, elsewhere, arriving, .. } = &mut *known;
        for (edge_id, remote) in before {
            if arriving.contains_key(&edge_id) {
                elsewhere.entry(edge_id).or_insert(remote);
            }
        }
        elsewhere.retain(|edge_id, _| !here.contains_key(edge_id));
        known.sent_away.retain(|_, at| at.elapsed() < LEFT_ALONE);
        drop(known);
        self.news.notify_waiters();
        moved
    }

    /// Edges with a valid lease: those here that stay, those that are leaving, and those of each other replica.
    pub(super) fn counts(&self) -> (usize, usize, HashMap<Arc<str>, usize>) {
        let known = self.known();
        let valid = known.here.values().filter(|member| member.is_valid());
        let (leaving, here): (Vec<_>, Vec<_>) = valid.partition(|member| member.is_sent_away);
        let (leaving, here) = (leaving.len(), here.len());
        let mut elsewhere = HashMap::new();
        for remote in known.elsewhere.values().filter(|remote| remote.silence() <= LEASE) {
            *elsewhere.entry(remote.lease.replica.clone()).or_default() += 1;
        }
        (here, leaving, elsewhere)
    }

    /// Asks this many edges to go to other replicas, except those that were asked recently; returns how many.
    pub(super) fn send_away(&self, count: usize) -> usize {
        let mut known = self.known();
        let Known { here, sent_away, .. } = &mut *known;
        let mut sent = 0;
        for (edge_id, member) in here.iter_mut() {
            if sent == count {
                break;
            }
            if member.is_valid() && !member.is_sent_away && !sent_away.contains_key(edge_id) {
                member.is_sent_away = true;
                sent_away.insert(edge_id.clone(), Instant::now());
                sent += 1;
            }
        }
        sent
    }

    /// A member that has not applied the revision, if there is one. The previous one, `last`, is checked first, so
    /// that the acknowledgements of a fleet are not all counted again at each of them.
    pub(super) fn laggard(&self, rev: Rev, last: Option<&Arc<str>>) -> Option<Laggard> {
        let known = self.known();
        let lacks = |applied: Rev, rejected: &[Rev]| applied < rev || rejected.contains(&rev);
        let lags_here = |(edge, member): (&Arc<str>, &Member)| {
            (lacks(member.applied, &member.rejected) && member.is_valid())
                .then(|| Laggard { edge: edge.clone(), acked: member.acked.clone().notified_owned() })
        };
        let lags_elsewhere = |(edge, remote): (&Arc<str>, &Remote)| {
            (lacks(remote.lease.applied, &remote.lease.rejected) && remote.silence() <= LEASE)
                .then(|| Laggard { edge: edge.clone(), acked: self.news.clone().notified_owned() })
        };
        let same = last.and_then(|last| {
            let here = known.here.get_key_value(last).and_then(lags_here);
            here.or_else(|| known.elsewhere.get_key_value(last).and_then(lags_elsewhere))
        });
        same.or_else(|| known.here.iter().find_map(lags_here))
            .or_else(|| known.elsewhere.iter().find_map(lags_elsewhere))
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        // Nothing panics while it is held; a poisoned map is as good as before.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
