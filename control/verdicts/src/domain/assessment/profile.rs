//! The scan profile of a Thng: its last sessions, updated as scans arrive.
//!
//! A session is what one device did within one half hour of the clock. Its facts are the minimum or maximum over its
//! scans, and the profile holds the greatest keys. So the order of arrival does not matter, and a profile that is
//! rebuilt from the actions is identical.

use std::collections::BTreeMap;

use shared::time::UnixMillis;

use super::{
    agent::AgentHash,
    client::{Language, NetworkHash},
    spot::Spot,
};
use crate::domain::scan_source::Source;

mod bytes;

pub use bytes::InvalidProfile;

/// Most sessions that are kept: at some 38 bytes each, with network and language, a profile has about 2.5 KB.
pub const MAX_SESSIONS: usize = 64;

/// Most sessions of public keys that are kept beside them, at some 20 bytes each: they only show that there are some.
pub const MAX_UNVERIFIED: usize = 32;

/// The rules version since which sessions are made of scans as now; an older profile is rebuilt.
pub const SESSIONS_SINCE: u32 = 9;

/// The half hours that sessions are cut by, in milliseconds.
pub const SESSION_MS: i64 = 30 * 60 * 1_000;

/// One scan, reduced to what the profile uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// When it happened.
    pub at: UnixMillis,
    /// The device; scans whose device is not known are one.
    pub agent: Option<AgentHash>,
    /// Where.
    pub spot: Spot,
    /// Whether it was a redirect: an `implicitScans` action.
    pub is_implicit: bool,
    /// Who reported it. Of a public scan, the time is that of arrival, the device is the network, and only the
    /// country of the place is known.
    pub source: Source,
    /// The client's network, if its address is known.
    pub network: Option<NetworkHash>,
    /// The client's language, if it sent one.
    pub language: Option<Language>,
}

/// Which half hour and which device; later ones are greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SessionKey {
    half_hour: i64,
    agent: AgentHash,
}

impl SessionKey {
    /// The session that a scan belongs to.
    #[must_use]
    pub fn of(at: UnixMillis, agent: Option<AgentHash>) -> Self {
        Self { half_hour: at.0.div_euclid(SESSION_MS), agent: agent.unwrap_or(UNKNOWN_AGENT) }
    }

    /// The device.
    #[must_use]
    pub const fn agent(self) -> AgentHash {
        self.agent
    }
}

/// Placeholder for an unknown device; no user agent is known to have this hash.
const UNKNOWN_AGENT: AgentHash = AgentHash(0);

/// What one device did within half an hour.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Its first scan.
    pub first: UnixMillis,
    /// Its last scan.
    pub last: UnixMillis,
    /// How many redirects it had.
    pub implicit: u32,
    /// Where it was, by its best known scan, of those the first one.
    pub spot: Spot,
    /// The network of its scans, of several the one with the least hash.
    pub network: Option<NetworkHash>,
    /// The language of its scans, of several the first one by the alphabet.
    pub language: Option<Language>,
    spot_at: UnixMillis,
}

impl Session {
    fn new(seen: &Observation) -> Self {
        Self {
            first: seen.at,
            last: seen.at,
            implicit: u32::from(seen.is_implicit),
            spot: seen.spot.clone(),
            network: seen.network,
            language: seen.language,
            spot_at: seen.at,
        }
    }

    fn add(&mut self, seen: &Observation) {
        self.first = self.first.min(seen.at);
        self.last = self.last.max(seen.at);
        self.implicit = self.implicit.saturating_add(u32::from(seen.is_implicit));
        self.network = least(self.network, seen.network);
        self.language = least(self.language, seen.language);
        // The whole order, so that it does not matter which of two came first.
        let rank = |spot: &Spot, at: UnixMillis| (std::cmp::Reverse(spot.precision), at, spot.clone());
        if rank(&seen.spot, seen.at) < rank(&self.spot, self.spot_at) {
            (self.spot, self.spot_at) = (seen.spot.clone(), seen.at);
        }
    }
}

/// The lesser of two that are known: it does not depend on which came first.
fn least<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    one.into_iter().chain(other).min()
}

/// The last sessions of a Thng.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile {
    sessions: BTreeMap<SessionKey, Session>,
    /// Sessions of public keys, apart: they never push out the others. `implicit` counts all their scans.
    unverified: BTreeMap<SessionKey, Session>,
}

impl Profile {
    /// The profile of some scans, in any order.
    #[must_use]
    pub fn of<'a>(scans: impl IntoIterator<Item = &'a Observation>) -> Self {
        let mut profile = Self::default();
        scans.into_iter().for_each(|seen| profile.add(seen));
        profile
    }

    /// Takes a scan in; one that is older than all sessions of a full profile changes nothing.
    pub fn add(&mut self, seen: &Observation) {
        match seen.source {
            Source::Edge | Source::Server => add(&mut self.sessions, MAX_SESSIONS, seen),
            // Of a public scan the device is the network, and nothing else counts.
            Source::Public => {
                let seen = Observation { is_implicit: true, network: None, language: None, ..seen.clone() };
                add(&mut self.unverified, MAX_UNVERIFIED, &seen);
            }
        }
    }

    /// Whether a session is in it, of public keys or of the others.
    #[must_use]
    pub fn holds(&self, source: Source, key: SessionKey) -> bool {
        match source {
            Source::Edge | Source::Server => self.sessions.contains_key(&key),
            Source::Public => self.unverified.contains_key(&key),
        }
    }

    /// The sessions of public keys, the oldest first; `implicit` counts their scans of each type.
    pub fn unverified(&self) -> impl DoubleEndedIterator<Item = (SessionKey, &Session)> {
        self.unverified.iter().map(|(key, session)| (*key, session))
    }

    /// The profile as if every scan were believed.
    #[must_use]
    pub fn with_unverified(&self) -> Self {
        let mut sessions = self.sessions.clone();
        for (key, session) in &self.unverified {
            // A device and a network never have the same key but by chance.
            sessions.entry(*key).or_insert_with(|| Session { implicit: 0, ..session.clone() });
        }
        Self { sessions, unverified: BTreeMap::new() }
    }

    /// The profile after a scan of one session was deleted. `rebuilt` is built from the remaining scans, or from the
    /// newest of them: the session is replaced by the one there, and older sessions fill free room.
    #[must_use]
    pub fn corrected(mut self, source: Source, key: SessionKey, rebuilt: &Self) -> Self {
        let (sessions, from, most) = match source {
            Source::Edge | Source::Server => (&mut self.sessions, &rebuilt.sessions, MAX_SESSIONS),
            Source::Public => (&mut self.unverified, &rebuilt.unverified, MAX_UNVERIFIED),
        };
        sessions.remove(&key);
        for (other, session) in from {
            sessions.entry(*other).or_insert_with(|| session.clone());
        }
        while sessions.len() > most {
            sessions.pop_first();
        }
        self
    }

    /// Its sessions but those of public keys, the oldest first.
    pub fn sessions(&self) -> impl DoubleEndedIterator<Item = (SessionKey, &Session)> {
        self.sessions.iter().map(|(key, session)| (*key, session))
    }

    /// How many sessions it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty() && self.unverified.is_empty()
    }
}

fn add(sessions: &mut BTreeMap<SessionKey, Session>, most: usize, seen: &Observation) {
    let key = SessionKey::of(seen.at, seen.agent);
    match sessions.get_mut(&key) {
        Some(session) => session.add(seen),
        None => {
            sessions.insert(key, Session::new(seen));
            if sessions.len() > most {
                sessions.pop_first();
            }
        }
    }
}

#[cfg(test)]
pub(super) mod tests;
