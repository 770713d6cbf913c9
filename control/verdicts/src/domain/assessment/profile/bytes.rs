//! The stored form of a scan profile.

use std::collections::BTreeMap;

use countries::CountryCode;
use shared::time::UnixMillis;

use super::{MAX_SESSIONS, Profile, SESSION_MS, Session, SessionKey};
use crate::domain::assessment::{
    agent::AgentHash,
    client::{Language, NetworkHash},
    spot::{Point, Precision, Spot},
};

/// The form of sessions that is stored begins with it.
const VERSION: u8 = 1;

/// The form of networks and languages begins with it.
const CLIENTS_VERSION: u8 = 1;

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

    /// The form that is stored of the networks and languages of the sessions, in the same order; empty where none is
    /// known. It is apart because a release that does not know it refuses what it does not know in the other one.
    #[must_use]
    pub fn clients_to_bytes(&self) -> Vec<u8> {
        let mut languages: Vec<Language> = self.sessions.values().filter_map(|one| one.language).collect();
        languages.sort_unstable();
        languages.dedup();
        if languages.is_empty() && self.sessions.values().all(|one| one.network.is_none()) {
            return Vec::new();
        }
        let mut out = vec![CLIENTS_VERSION];
        put(&mut out, self.sessions.len() as u64);
        put(&mut out, languages.len() as u64);
        languages.iter().for_each(|language| out.extend(language.bytes()));
        for session in self.sessions.values() {
            // Which language, from 1, and whether there is a network.
            let language = session.language.and_then(|one| languages.binary_search(&one).ok());
            put(&mut out, language.map_or(0, |at| at as u64 + 1) << 1 | u64::from(session.network.is_some()));
            out.extend(session.network.iter().flat_map(|network| network.0.to_be_bytes()));
        }
        out
    }

    /// Reads the forms that are stored: sessions, those of public keys, and networks and languages. Nothing is a profile
    /// without sessions, and networks and languages of another number of sessions are left out: a release that does not
    /// know them changed the sessions.
    ///
    /// # Errors
    /// The bytes are something else.
    pub fn from_bytes(sessions: &[u8], unverified: &[u8], clients: &[u8]) -> Result<Self, InvalidProfile> {
        let mut sessions = Self::read(sessions)?;
        if let Some(clients) = read_clients(clients, sessions.len())? {
            for (session, (network, language)) in sessions.values_mut().zip(clients) {
                (session.network, session.language) = (network, language);
            }
        }
        Ok(Self { sessions, unverified: Self::read(unverified)? })
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
            sessions
                .insert(key, Session { first, last, implicit, spot, network: None, language: None, spot_at });
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

type Client = (Option<NetworkHash>, Option<Language>);

fn read_clients(bytes: &[u8], sessions: usize) -> Result<Option<Vec<Client>>, InvalidProfile> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let mut reader = Reader(bytes);
    if reader.byte()? != CLIENTS_VERSION {
        return Err(InvalidProfile);
    }
    let count = reader.count(MAX_SESSIONS)?;
    let mut languages = Vec::new();
    for _ in 0..reader.count(MAX_SESSIONS)? {
        let letters: [u8; 3] = reader.take(3)?.try_into().map_err(|_| InvalidProfile)?;
        languages.push(Language::of_bytes(letters).ok_or(InvalidProfile)?);
    }
    let mut clients = Vec::new();
    for _ in 0..count {
        let kind = reader.count(2 * MAX_SESSIONS + 1)?;
        let language = match kind >> 1 {
            0 => None,
            at => Some(*languages.get(at - 1).ok_or(InvalidProfile)?),
        };
        let mut network = None;
        if kind & 1 == 1 {
            let bits: [u8; 2] = reader.take(2)?.try_into().map_err(|_| InvalidProfile)?;
            network = Some(NetworkHash(u16::from_be_bytes(bits)));
        }
        clients.push((network, language));
    }
    if reader.0.is_empty() { Ok(Some(clients).filter(|_| count == sessions)) } else { Err(InvalidProfile) }
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
