//! What the load asks for, and what has to come back.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use crate::{
    answer::Answer,
    drive::Script,
    links::{Id, Links, Rng},
};

/// Which ids are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// One known id over and over.
    Hot,
    /// Random known ids of the first `among`.
    Known {
        /// How many.
        among: usize,
    },
    /// Random ones of the first `among` ids that lead nowhere.
    Unknown {
        /// How many.
        among: usize,
    },
    /// Every known id once, in a random order.
    EachKnown,
    /// Some unknown ids, each once.
    EachUnknown {
        /// How many.
        count: usize,
    },
}

/// What a server answers to a known id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answers {
    /// The link's own target, with this status.
    Link(u16),
    /// The target of the first link, whatever is asked for, with this status.
    Fixed(u16),
    /// An image of its code.
    Image,
}

impl Answers {
    /// The status of its answers.
    pub(crate) const fn status(self) -> u16 {
        match self {
            Self::Link(status) | Self::Fixed(status) => status,
            Self::Image => 200,
        }
    }
}

/// Scans of links whose targets never change; status and target of each answer are checked.
#[derive(Debug)]
pub(crate) struct Scans<'a> {
    links: &'a Links,
    kind: Kind,
    answers: Answers,
    rng: Rng,
    /// How many were asked for.
    asked: usize,
    /// Of `EachKnown`: the distance of two ids that follow each other.
    step: usize,
}

impl<'a> Scans<'a> {
    /// Scans of ours.
    pub(crate) fn new(links: &'a Links, kind: Kind, seed: u64) -> Self {
        Self::of(links, kind, Answers::Link(307), seed)
    }

    /// Scans of a server that answers as it does.
    pub(crate) fn of(links: &'a Links, kind: Kind, answers: Answers, seed: u64) -> Self {
        // A step without a common divisor visits each id once, in an order that no cache expects.
        let count = links.count();
        let step = (count * 61 / 100..).find(|step| gcd(*step, count) == 1).unwrap_or(1);
        Self { links, kind, answers, rng: Rng::new(seed), asked: 0, step }
    }
}

const fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

impl Script for Scans<'_> {
    /// The index of a known link.
    type Ticket = Option<usize>;

    fn next(&mut self) -> Option<(Id, Self::Ticket)> {
        let (links, turn) = (self.links, self.asked);
        self.asked += 1;
        let index = match self.kind {
            Kind::Hot => links.count() / 2,
            Kind::Known { among } => self.rng.below(among),
            Kind::EachKnown if turn < links.count() => turn * self.step % links.count(),
            Kind::Unknown { among } => return Some((links.unknown(self.rng.below(among)), None)),
            Kind::EachUnknown { count } if turn < count => return Some((links.unknown(turn), None)),
            Kind::EachKnown | Kind::EachUnknown { .. } => return None,
        };
        Some((links.known(index), Some(index)))
    }

    fn check(&mut self, ticket: Self::Ticket, answer: &Answer<'_>) -> Result<(), String> {
        let is_right = match ticket {
            None => answer.status == 404 && answer.location.is_none(),
            Some(index) => {
                let target = match self.answers {
                    Answers::Link(_) => Some(self.links.target(index)),
                    Answers::Fixed(_) => Some(self.links.target(0)),
                    Answers::Image => None,
                };
                answer.status == self.answers.status()
                    && answer.location == target.as_ref().map(|target| &target[..])
            }
        };
        if is_right { Ok(()) } else { Err(describe(ticket, answer)) }
    }
}

/// An answer that is not what it should be.
pub(crate) fn describe(ticket: Option<usize>, answer: &Answer<'_>) -> String {
    let location = answer.location.map(String::from_utf8_lossy).unwrap_or_default();
    match ticket {
        None => format!("an unknown id was answered {} {location}", answer.status),
        Some(index) => format!("the known link {index} was answered {} {location}", answer.status),
    }
}

/// Where every changed link leads: behind it comes the version.
pub(crate) const CHANGED: &str = "https://changed.example.com/v/";

/// Scans of links whose targets are being changed: none may be older than what was acknowledged
/// before the scan was sent.
#[derive(Debug)]
pub(crate) struct Changing<'a> {
    ids: &'a [Id],
    /// The version of each link that is acknowledged; 0 is the imported target.
    acknowledged: &'a [AtomicU64],
    rng: Rng,
}

impl<'a> Changing<'a> {
    /// Scans `ids` at random.
    pub(crate) fn new(ids: &'a [Id], acknowledged: &'a [AtomicU64], seed: u64) -> Self {
        Self { ids, acknowledged, rng: Rng::new(seed) }
    }
}

impl Script for Changing<'_> {
    /// The index of the link, and its acknowledged version when it was asked for.
    type Ticket = (usize, u64);

    fn next(&mut self) -> Option<(Id, Self::Ticket)> {
        let index = self.rng.below(self.ids.len());
        Some((self.ids[index], (index, self.acknowledged[index].load(SeqCst))))
    }

    fn check(&mut self, (index, promised): (usize, u64), answer: &Answer<'_>) -> Result<(), String> {
        let shown = answer.location.map_or(0, version);
        match answer.status {
            307 if shown >= promised => Ok(()),
            307 => Err(format!("link {index} showed version {shown} after {promised} was acknowledged")),
            _ => Err(describe(Some(index), answer)),
        }
    }
}

/// The version in a target; 0 for one that was never changed.
pub(crate) fn version(location: &[u8]) -> u64 {
    let text = std::str::from_utf8(location).unwrap_or_default();
    text.strip_prefix(CHANGED).and_then(|rest| rest.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_known_id_is_asked_for_once() {
        for count in [1, 2, 100, 1_000] {
            let links = Links::generate(count, 3);
            let mut script = Scans::new(&links, Kind::EachKnown, 1);
            let asked: Vec<Id> = std::iter::from_fn(|| script.next().map(|(id, _)| id)).collect();
            assert_eq!(asked.len(), count);
            assert_eq!(asked.iter().collect::<HashSet<_>>().len(), count);
        }
    }

    #[test]
    fn wrong_answers_are_found() {
        let links = Links::generate(10, 3);
        let mut script = Scans::new(&links, Kind::Hot, 1);
        let (right, other) = (links.target(1), links.target(2));
        for (ticket, status, location, is_right) in [
            (Some(1), 307, Some(&right), true),
            (Some(1), 302, Some(&right), false),
            (Some(1), 307, Some(&other), false),
            (Some(1), 307, None, false),
            (Some(1), 404, None, false),
            (None, 404, None, true),
            (None, 307, Some(&right), false),
            (None, 503, None, false),
        ] {
            let answer = Answer { status, location: location.map(|target| &target[..]) };
            assert_eq!(script.check(ticket, &answer).is_ok(), is_right, "{ticket:?} {status}");
        }
        let mut fixed = Scans::of(&links, Kind::Hot, Answers::Fixed(302), 1);
        for (location, is_right) in [(links.target(0), true), (right, false)] {
            let answer = Answer { status: 302, location: Some(&location) };
            assert_eq!(fixed.check(Some(1), &answer).is_ok(), is_right);
        }
        let mut images = Scans::of(&links, Kind::Hot, Answers::Image, 1);
        for (status, location, is_right) in
            [(200, None, true), (200, Some(&right[..]), false), (404, None, false)]
        {
            assert_eq!(images.check(Some(1), &Answer { status, location }).is_ok(), is_right);
        }
    }

    #[test]
    fn an_old_target_after_its_acknowledgement_is_found() {
        let (ids, acknowledged) = ([*b"ABCDEFGHKM"], [AtomicU64::new(0)]);
        let mut script = Changing::new(&ids, &acknowledged, 1);
        let location = format!("{CHANGED}7");
        let answer = Answer { status: 307, location: Some(location.as_bytes()) };
        for (promised, is_right) in [(0, true), (7, true), (8, false)] {
            acknowledged[0].store(promised, SeqCst);
            let (_, ticket) = script.next().unwrap();
            assert_eq!(script.check(ticket, &answer).is_ok(), is_right, "{promised}");
        }
        assert_eq!(version(b"https://elsewhere.example.com/9"), 0);
    }
}
