//! The checker: finds reads in a recorded history that should not have been possible.
//!
//! Each key has one writer, so its writes are in one order: versions 1, 2, … and finally, maybe, a deletion. Times are
//! from one monotonic clock, in microseconds. The checks (`edge/README.md`) are: I3 and I5, a member that acknowledged
//! a write never returns an older value; I6, reads of one edge never go back; no read comes from the future; nothing
//! acknowledged is lost in the end.

use std::collections::{BTreeMap, HashMap, HashSet};

/// Microseconds since the begin of the campaign.
pub type Micros = u64;

/// A version of a key: 0 before it is created; a deletion is the last.
pub type Version = u64;

/// The version of a key that was deleted.
pub const DELETED: Version = Version::MAX;

/// How a write ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is stored, and live on these edges.
    Acked(Vec<u16>),
    /// It is stored; which edges have it is not known.
    Stored,
    /// Nobody knows whether it is stored.
    Unknown,
    /// It was refused and changed nothing.
    Refused,
}

/// One write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// The key.
    pub key: u32,
    /// The version that it makes.
    pub version: Version,
    /// When it was sent.
    pub start: Micros,
    /// When the answer was there.
    pub end: Micros,
    /// How it ended.
    pub outcome: Outcome,
}

/// What an edge answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The redirect of a version.
    Version(Version),
    /// No such redirection.
    NotFound,
    /// No answer, or one that says that none can be given now.
    Failed,
}

/// One read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// The edge.
    pub edge: u16,
    /// The key.
    pub key: u32,
    /// When it was sent.
    pub start: Micros,
    /// When the answer was there.
    pub end: Micros,
    /// The answer.
    pub answer: Answer,
}

/// An edge restarted from its disk: until its first contact it may serve what was right before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Boot {
    /// The edge.
    pub edge: u16,
    /// When it was ended.
    pub start: Micros,
    /// When it was seen to follow the stream again.
    pub end: Micros,
}

/// All that was recorded.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// Writes in any order.
    pub writes: Vec<Write>,
    /// Reads in any order.
    pub reads: Vec<Read>,
    /// New begins of edges.
    pub boots: Vec<Boot>,
    /// Reads after everything had come to rest, of every key on every edge.
    pub last: Vec<Read>,
}

/// What should not have been possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// An edge that had acknowledged a write served something older (I3).
    Stale,
    /// An edge that had acknowledged a deletion served the redirection again (I5).
    Resurrected,
    /// An edge served something older than it had served before (I6).
    WentBack,
    /// A version that nobody had begun to write.
    FromFuture,
    /// After everything had come to rest, an edge has something else than the last write that is stored.
    Lost,
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// What.
    pub kind: Kind,
    /// The read that shows it.
    pub read: Read,
    /// Why it should not have been.
    pub why: String,
}

/// What the checker found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Findings, by time.
    pub violations: Vec<Violation>,
    /// Reads that were judged.
    pub judged: u64,
    /// Those of them that were redirects.
    pub redirects: u64,
    /// Reads without an answer.
    pub failed: u64,
    /// Reads that fell into a new begin of their edge, where older answers are allowed.
    pub excused: u64,
}

impl Verdict {
    /// Findings of a kind.
    #[must_use]
    pub fn count(&self, kind: Kind) -> usize {
        self.violations.iter().filter(|violation| violation.kind == kind).count()
    }
}

/// Judges a history.
#[must_use]
pub fn check(history: &History) -> Verdict {
    let mut verdict = Verdict::default();
    let mut keys: BTreeMap<u32, (Vec<&Write>, Vec<&Read>)> = BTreeMap::new();
    for write in &history.writes {
        keys.entry(write.key).or_default().0.push(write);
    }
    for read in &history.reads {
        keys.entry(read.key).or_default().1.push(read);
    }
    for (writes, reads) in keys.values_mut() {
        writes.sort_by_key(|write| write.version);
        check_key(writes, reads, &history.boots, &mut verdict);
    }
    let none = (Vec::new(), Vec::new());
    for read in &history.last {
        let (writes, _) = keys.get(&read.key).unwrap_or(&none);
        check_last(writes, read, &mut verdict);
    }
    verdict.violations.sort_by_key(|violation| violation.read.start);
    verdict
}

/// What is known of an edge and a key at a time.
#[derive(Default, Clone, Copy)]
struct Floor {
    /// Nothing older may be served, since it was acknowledged or, in `seen`, served.
    acked: Version,
    seen: Version,
}

/// Goes through the moments of a key in order: ends of writes and reads raise floors, starts are held to them.
fn check_key(writes: &[&Write], reads: &[&Read], boots: &[Boot], verdict: &mut Verdict) {
    #[derive(PartialEq, Eq, PartialOrd, Ord)]
    enum Moment {
        // At the same time a start goes first: what is not surely before is not held to it.
        Start(usize),
        WriteEnd(usize),
        ReadEnd(usize),
    }
    let mut moments = Vec::with_capacity(writes.len() + reads.len() * 2);
    for (at, write) in writes.iter().enumerate() {
        moments.push((write.end, Moment::WriteEnd(at)));
    }
    for (at, read) in reads.iter().enumerate() {
        moments.push((read.start, Moment::Start(at)));
        moments.push((read.end, Moment::ReadEnd(at)));
    }
    moments.sort();
    let mut floors: HashMap<u16, Floor> = HashMap::new();
    let mut held: HashMap<usize, Floor> = HashMap::new();
    let mut booted: HashSet<(u16, Micros)> = HashSet::new();
    for (now, moment) in moments {
        match moment {
            Moment::WriteEnd(at) => {
                if let Outcome::Acked(edges) = &writes[at].outcome {
                    for edge in edges {
                        let floor = floors.entry(*edge).or_default();
                        floor.acked = floor.acked.max(writes[at].version);
                    }
                }
            }
            Moment::Start(at) => {
                let edge = reads[at].edge;
                // What an edge served before it was ended says nothing of what its disk had; after its first
                // contact the acknowledgements hold again.
                for boot in boots.iter().filter(|boot| boot.edge == edge && boot.start <= now) {
                    if booted.insert((edge, boot.start)) {
                        floors.entry(edge).or_default().seen = 0;
                    }
                }
                held.insert(at, floors.get(&edge).copied().unwrap_or_default());
            }
            Moment::ReadEnd(at) => {
                let (read, floor) = (reads[at], held.remove(&at).unwrap_or_default());
                let Some(version) = version_of(writes, read, floor) else {
                    verdict.failed += 1;
                    continue;
                };
                let is_excused = boots
                    .iter()
                    .any(|boot| boot.edge == read.edge && read.end >= boot.start && read.start <= boot.end);
                verdict.judged += 1;
                verdict.redirects += u64::from(matches!(read.answer, Answer::Version(_)));
                judge(writes, read, version, floor, is_excused, verdict);
                if !is_excused {
                    let floor = floors.entry(read.edge).or_default();
                    floor.seen = floor.seen.max(version);
                }
            }
        }
    }
}

/// The version that an answer shows; an absent key may be one that is not there yet, or no longer.
fn version_of(writes: &[&Write], read: &Read, floor: Floor) -> Option<Version> {
    match read.answer {
        Answer::Version(version) => Some(version),
        Answer::NotFound => {
            let is_deleted = writes
                .iter()
                .any(|w| w.version == DELETED && w.start <= read.end && w.outcome != Outcome::Refused);
            // Whoever has had the key can only have lost it by the deletion.
            let was_there = floor.acked.max(floor.seen) > 0;
            Some(if is_deleted && was_there { DELETED } else { 0 })
        }
        Answer::Failed => None,
    }
}

fn judge(
    writes: &[&Write],
    read: &Read,
    version: Version,
    floor: Floor,
    is_excused: bool,
    verdict: &mut Verdict,
) {
    let mut blame = |kind, why: String| verdict.violations.push(Violation { kind, read: read.clone(), why });
    if version != 0 && version != DELETED {
        let is_begun = writes
            .iter()
            .any(|w| w.version == version && w.start <= read.end && w.outcome != Outcome::Refused);
        if !is_begun {
            blame(Kind::FromFuture, format!("nobody had begun to write version {version}"));
            return;
        }
    }
    if is_excused {
        if version < floor.acked.max(floor.seen) {
            verdict.excused += 1;
        }
        return;
    }
    if version < floor.acked {
        let kind = if floor.acked == DELETED { Kind::Resurrected } else { Kind::Stale };
        blame(kind, format!("{} was acknowledged by this edge before", name(floor.acked)));
    } else if version < floor.seen {
        blame(Kind::WentBack, format!("{} was served by this edge before", name(floor.seen)));
    }
}

/// The last state is that of the newest stored write, or of one after it of which nobody knows.
fn check_last(writes: &[&Write], read: &Read, verdict: &mut Verdict) {
    let stored = |write: &&&Write| matches!(write.outcome, Outcome::Acked(_) | Outcome::Stored);
    let newest = writes.iter().filter(stored).map(|write| write.version).max().unwrap_or(0);
    let unknown = |version| {
        writes.iter().any(|w| w.outcome == Outcome::Unknown && w.version == version && w.version > newest)
    };
    let is_right = match read.answer {
        Answer::Version(version) => version == newest || unknown(version),
        Answer::NotFound => newest == DELETED || newest == 0 || unknown(DELETED),
        Answer::Failed => false,
    };
    if !is_right {
        let why = format!("{} is the last that was stored", name(newest));
        verdict.violations.push(Violation { kind: Kind::Lost, read: read.clone(), why });
    }
}

fn name(version: Version) -> String {
    match version {
        0 => "the absence".to_owned(),
        DELETED => "the deletion".to_owned(),
        version => format!("version {version}"),
    }
}

#[cfg(test)]
mod tests;
