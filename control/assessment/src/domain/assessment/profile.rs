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
    spot::{CountryCode, Point, Precision, Spot},
};
use crate::domain::scan_source::Source;

/// Most sessions that are kept: at some 35 bytes each, a profile has about 2 KiB.
pub const MAX_SESSIONS: usize = 64;

/// Most sessions of public keys that are kept beside them, at some 20 bytes each: they only show that there are some.
pub const MAX_UNVERIFIED: usize = 32;

/// The rules version since which scans are grouped into sessions as now; an older profile is rebuilt.
pub const SESSIONS_SINCE: u32 = 5;

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
    spot_at: UnixMillis,
}

impl Session {
    fn new(seen: &Observation) -> Self {
        Self {
            first: seen.at,
            last: seen.at,
            implicit: u32::from(seen.is_implicit),
            spot: seen.spot.clone(),
            spot_at: seen.at,
        }
    }

    fn add(&mut self, seen: &Observation) {
        self.first = self.first.min(seen.at);
        self.last = self.last.max(seen.at);
        self.implicit = self.implicit.saturating_add(u32::from(seen.is_implicit));
        // The whole order, so that it does not matter which of two came first.
        let rank = |spot: &Spot, at: UnixMillis| (std::cmp::Reverse(spot.precision), at, spot.clone());
        if rank(&seen.spot, seen.at) < rank(&self.spot, self.spot_at) {
            (self.spot, self.spot_at) = (seen.spot.clone(), seen.at);
        }
    }
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
            Source::Public => {
                add(&mut self.unverified, MAX_UNVERIFIED, &Observation { is_implicit: true, ..seen.clone() });
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

    /// The profile after a scan of one session was deleted. `anew` is built from the remaining scans, or from the
    /// newest of them: the session is replaced by the one there, and older sessions fill free room.
    #[must_use]
    pub fn corrected(mut self, source: Source, key: SessionKey, anew: &Self) -> Self {
        let (sessions, from, most) = match source {
            Source::Edge | Source::Server => (&mut self.sessions, &anew.sessions, MAX_SESSIONS),
            Source::Public => (&mut self.unverified, &anew.unverified, MAX_UNVERIFIED),
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

/// The form that is stored begins with it.
const VERSION: u8 = 1;

/// Bytes that are no profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the bytes are no scan profile")]
pub struct InvalidProfile;

impl Profile {
    /// The form that is stored of the sessions but those of public keys: numbers as LEB128, names of regions once.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        Self::write(&self.sessions)
    }

    /// The form that is stored of the sessions of public keys; empty without any.
    #[must_use]
    pub fn unverified_to_bytes(&self) -> Vec<u8> {
        if self.unverified.is_empty() { Vec::new() } else { Self::write(&self.unverified) }
    }

    fn write(sessions: &BTreeMap<SessionKey, Session>) -> Vec<u8> {
        let mut regions: Vec<&str> =
            sessions.values().filter_map(|session| session.spot.region.as_deref()).collect();
        regions.sort_unstable();
        regions.dedup();
        let mut out = vec![VERSION];
        put(&mut out, regions.len() as u64);
        for region in &regions {
            put(&mut out, region.len() as u64);
            out.extend(region.as_bytes());
        }
        put(&mut out, sessions.len() as u64);
        let mut before = 0_i64;
        for (key, session) in sessions {
            put_signed(&mut out, key.half_hour.wrapping_sub(before));
            before = key.half_hour;
            out.extend(key.agent.0.to_be_bytes());
            put_signed(&mut out, session.first.0.wrapping_sub(key.half_hour.wrapping_mul(SESSION_MS)));
            put_signed(&mut out, session.last.0.wrapping_sub(session.first.0));
            put_signed(&mut out, session.spot_at.0.wrapping_sub(session.first.0));
            put(&mut out, session.implicit.into());
            put_spot(&mut out, &session.spot, &regions);
        }
        out
    }

    /// Reads the two forms that are stored; nothing is a profile without sessions.
    ///
    /// # Errors
    /// The bytes are something else.
    pub fn from_bytes(sessions: &[u8], unverified: &[u8]) -> Result<Self, InvalidProfile> {
        Ok(Self { sessions: Self::read(sessions)?, unverified: Self::read(unverified)? })
    }

    fn read(bytes: &[u8]) -> Result<BTreeMap<SessionKey, Session>, InvalidProfile> {
        if bytes.is_empty() {
            return Ok(BTreeMap::new());
        }
        let mut reader = Reader(bytes);
        if reader.byte()? != VERSION {
            return Err(InvalidProfile);
        }
        let mut regions = Vec::new();
        for _ in 0..reader.count(MAX_SESSIONS)? {
            let length = reader.count(MAX_SESSIONS)?;
            regions.push(str::from_utf8(reader.take(length)?).map_err(|_| InvalidProfile)?);
        }
        let (mut sessions, mut before) = (BTreeMap::new(), 0_i64);
        for _ in 0..reader.count(MAX_SESSIONS)? {
            let half_hour = before.wrapping_add(reader.signed()?);
            before = half_hour;
            let agent: [u8; 8] = reader.take(8)?.try_into().map_err(|_| InvalidProfile)?;
            let first = half_hour.wrapping_mul(SESSION_MS).wrapping_add(reader.signed()?);
            let last = first.wrapping_add(reader.signed()?);
            let spot_at = first.wrapping_add(reader.signed()?);
            let implicit = u32::try_from(reader.number()?).map_err(|_| InvalidProfile)?;
            let spot = reader.spot(&regions)?;
            let (first, last, spot_at) = (UnixMillis(first), UnixMillis(last), UnixMillis(spot_at));
            let key = SessionKey { half_hour, agent: AgentHash(u64::from_be_bytes(agent)) };
            sessions.insert(key, Session { first, last, implicit, spot, spot_at });
        }
        if reader.0.is_empty() { Ok(sessions) } else { Err(InvalidProfile) }
    }
}

fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

fn put_signed(out: &mut Vec<u8>, number: i64) {
    put(out, ((number << 1) ^ (number >> 63)) as u64);
}

fn put_spot(out: &mut Vec<u8>, spot: &Spot, regions: &[&str]) {
    out.push(spot.precision as u8 | u8::from(spot.point.is_some()) << 4);
    if let Some(point) = spot.point {
        out.extend(point.latitude_e6.to_be_bytes());
        out.extend(point.longitude_e6.to_be_bytes());
    }
    out.extend(spot.country.map_or([0; 2], CountryCode::bytes));
    let region = spot.region.as_deref().and_then(|region| regions.binary_search(&region).ok());
    put(out, region.map_or(0, |at| at as u64 + 1));
}

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], InvalidProfile> {
        let (head, tail) = self.0.split_at_checked(count).ok_or(InvalidProfile)?;
        self.0 = tail;
        Ok(head)
    }

    fn byte(&mut self) -> Result<u8, InvalidProfile> {
        self.take(1)?.first().copied().ok_or(InvalidProfile)
    }

    fn number(&mut self) -> Result<u64, InvalidProfile> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err(InvalidProfile)
    }

    fn signed(&mut self) -> Result<i64, InvalidProfile> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    fn count(&mut self, most: usize) -> Result<usize, InvalidProfile> {
        usize::try_from(self.number()?).ok().filter(|count| *count <= most).ok_or(InvalidProfile)
    }

    fn point(&mut self) -> Result<i32, InvalidProfile> {
        self.take(4)?.try_into().map(i32::from_be_bytes).map_err(|_| InvalidProfile)
    }

    fn spot(&mut self, regions: &[&str]) -> Result<Spot, InvalidProfile> {
        let kind = self.byte()?;
        let precision = *Precision::ALL.get(usize::from(kind & 0xf)).ok_or(InvalidProfile)?;
        let point = match kind >> 4 {
            0 => None,
            1 => Some(Point { latitude_e6: self.point()?, longitude_e6: self.point()? }),
            _ => return Err(InvalidProfile),
        };
        let letters: [u8; 2] = self.take(2)?.try_into().map_err(|_| InvalidProfile)?;
        let region = match self.count(MAX_SESSIONS)? {
            0 => None,
            at => Some((*regions.get(at - 1).ok_or(InvalidProfile)?).into()),
        };
        Ok(Spot { precision, point, country: CountryCode::new(letters), region })
    }
}

#[cfg(test)]
pub(super) mod tests;
