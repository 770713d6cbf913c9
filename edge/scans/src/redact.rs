//! Redacts records of clients whose address must not be stored: names of browser and system, the place that a database
//! names, and a hash of the device stand in place of address and user agent.
//!
//! It happens in the writer, between memory and disk, so that redirects pay nothing for it.

use std::{io, net::IpAddr, sync::Arc};

use shared::{
    geo::GeoIp,
    time::UnixMillis,
    user_agent::read_agent,
    wire::{
        scan::RedactedClient,
        spooled::{decode_in_memory, is_in_memory, split_frame, write_redacted},
    },
};

/// Milliseconds of a day.
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// User agents remembered, some 100 bytes each; browsers of one country send a few hundred kinds.
const SLOTS: usize = 1_024;

/// Redacts records.
pub(super) struct Redactor {
    geo: Arc<dyn GeoIp>,
    parser: woothee::parser::Parser,
    /// Each user agent has one slot, and pushes another out of it. It is known by its hash under the key alone.
    slots: Box<[Option<Known>]>,
    /// Key of the hashes of devices and user agents: of this process alone, and never written down. So a hash tells nothing
    /// to anybody who tries addresses, and a device that scans at two edges, or before and after a restart, is two.
    key: [u8; 32],
    // Kept, so that they keep their memory.
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

shared::opaque!(Redactor);

/// What is known of a user agent.
#[derive(Debug, Clone)]
struct Known {
    hash: [u8; 32],
    is_bot: bool,
    name: Option<Box<str>>,
    system: Option<Box<str>>,
}

impl Redactor {
    /// With the geography of addresses.
    ///
    /// # Errors
    /// The system has no random bits for the key.
    pub(super) fn new(geo: Arc<dyn GeoIp>) -> io::Result<Self> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|error| io::Error::other(error.to_string()))?;
        let (parser, slots) = (woothee::parser::Parser::new(), vec![None; SLOTS].into());
        Ok(Self { geo, parser, slots, key, bytes: Vec::new(), ends: Vec::new() })
    }

    /// Redacts those records of a buffer that must be; one that cannot be read is left out. Returns how many those were.
    /// Unmarked records pass unchanged, even unreadable ones.
    pub(super) fn apply(&mut self, bytes: &mut Vec<u8>, ends: &mut Vec<usize>) -> u64 {
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let is_marked = |start| payload(bytes, start).is_some_and(is_in_memory);
        if !starts.zip(&*ends).any(|(start, _)| is_marked(start)) {
            return 0;
        }
        let (mut out, mut out_ends) = (std::mem::take(&mut self.bytes), std::mem::take(&mut self.ends));
        out.clear();
        out_ends.clear();
        let (mut start, mut left_out) = (0, 0);
        for end in ends.iter().copied() {
            let frame = bytes.get(start..end).unwrap_or_default();
            start = end;
            if !payload(frame, 0).is_some_and(is_in_memory) {
                out.extend_from_slice(frame);
            } else if !split_frame(frame).is_some_and(|(payload, _)| self.write(payload, &mut out)) {
                left_out += 1;
                continue;
            }
            out_ends.push(out.len());
        }
        // Copied, not exchanged: the buffer keeps the memory that requests count on.
        bytes.clear();
        bytes.extend_from_slice(&out);
        ends.clear();
        ends.extend_from_slice(&out_ends);
        (self.bytes, self.ends) = (out, out_ends);
        left_out
    }

    /// Appends a record in its redacted form; `false` when it cannot be read.
    fn write(&mut self, payload: &[u8], out: &mut Vec<u8>) -> bool {
        let Some(record) = decode_in_memory(payload) else { return false };
        let agent = record.user_agent.as_deref();
        let device = self.device(record.at, &record.domain, record.ip, agent);
        let place = self.geo.find_shared(record.ip);
        let Known { is_bot, name, system, .. } = self.agent(agent);
        let text = |text: &Option<String>| text.as_deref().map(Box::<str>::from);
        let client = RedactedClient {
            bot: *is_bot,
            device: (!is_bot).then_some(device),
            name: name.clone(),
            system: system.clone(),
            city: text(&place.city),
            region: text(&place.region),
            country_code: text(&place.country_code),
            time_zone: text(&place.time_zone),
        };
        write_redacted(&record, &client, out);
        true
    }

    fn device(&self, at: UnixMillis, domain: &str, ip: IpAddr, agent: Option<&str>) -> i64 {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&at.0.div_euclid(DAY_MS).to_be_bytes());
        for text in [domain, &ip.to_string(), agent.unwrap_or_default()] {
            hasher.update(text.as_bytes()).update(&[0]);
        }
        hasher.finalize().as_bytes().first_chunk().map_or(0, |first| i64::from_be_bytes(*first))
    }

    fn agent(&mut self, sent: Option<&str>) -> &Known {
        // No user agent has the hash of an absent one: its bytes begin with another.
        let tagged = [&[u8::from(sent.is_some())], sent.unwrap_or_default().as_bytes()].concat();
        let hash = *blake3::keyed_hash(&self.key, &tagged).as_bytes();
        let [first, second, ..] = hash;
        // The remainder is below the number of slots.
        let slot = &mut self.slots[usize::from(u16::from_be_bytes([first, second])) % SLOTS];
        let parser = &self.parser;
        let read = || {
            let agent = read_agent(parser, sent);
            let text = |text: Option<&str>| text.map(Box::<str>::from);
            Known { hash, is_bot: agent.bot, name: text(agent.name), system: text(agent.system) }
        };
        if slot.as_ref().is_some_and(|known| known.hash != hash) {
            *slot = None;
        }
        slot.get_or_insert_with(read)
    }
}

/// The record that begins at a place, behind its length and checksum.
fn payload(bytes: &[u8], start: usize) -> Option<&[u8]> {
    bytes.get(start + shared::wire::spooled::FRAME_HEAD..)
}

#[cfg(test)]
mod tests {
    use shared::{
        geo::{Locality, NoGeoIp},
        wire::{
            scan::ScanRecord,
            spooled::{NewRecord, NewRule, decode},
        },
    };

    use super::*;

    const AGENT: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) \
        Version/17.5 Mobile/15E148 Safari/604.1 Marked/77.1";
    const IP: [u8; 4] = [203, 0, 113, 77];

    #[derive(Debug)]
    struct Bern;

    impl GeoIp for Bern {
        fn find(&self, _: IpAddr) -> Locality {
            Locality {
                city: Some("Bern".to_owned()),
                country_code: Some("CH".to_owned()),
                position: Some((46.948_1, 7.447_4)),
                ..Locality::default()
            }
        }
    }

    fn write(agent: &str, at: i64, in_memory: bool, rule: Option<NewRule<'_>>, out: &mut Vec<u8>) {
        let texts = ["tn.gg", "ABC", "https://tn.gg/abc", agent, "https://shop.example/"];
        let record = NewRecord {
            at: UnixMillis(at),
            ip: IP.into(),
            texts,
            language: "de-CH",
            rule,
            link: None,
            in_memory,
        };
        record.write(out);
    }

    fn read(mut bytes: &[u8]) -> Vec<ScanRecord> {
        let mut found = Vec::new();
        while let Some((payload, rest)) = split_frame(bytes) {
            found.push(decode(payload).unwrap());
            bytes = rest;
        }
        assert!(bytes.is_empty());
        found
    }

    fn has(bytes: &[u8], part: &[u8]) -> bool {
        bytes.windows(part.len()).any(|window| window == part)
    }

    #[test]
    fn only_marked_records_lose_their_client() {
        let mut redactor = Redactor::new(Arc::new(Bern)).unwrap();
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        let rule = NewRule { application: "", index: 3, name: "Germany", location: "https://example.com/de" };
        for (in_memory, rule) in [(true, None), (false, None), (true, Some(rule))] {
            write(AGENT, 1_000, in_memory, rule, &mut bytes);
            ends.push(bytes.len());
        }
        let (marked, plain) = (bytes[..ends[0]].to_vec(), bytes[ends[0]..ends[1]].to_vec());
        assert!(decode(split_frame(&marked).unwrap().0).is_none(), "nobody reads it as it is");
        assert_eq!(redactor.apply(&mut bytes, &mut ends), 0);
        assert_eq!((ends.len(), ends[2]), (3, bytes.len()));
        assert_eq!(&bytes[ends[0]..ends[1]], plain, "the one that is not marked stays as it is");
        for redacted in [&bytes[..ends[0]], &bytes[ends[1]..]] {
            assert!(!has(redacted, b"Marked") && !has(redacted, b"Mozilla") && !has(redacted, &IP));
        }
        let found = read(&bytes);
        let client = found[0].client.as_deref().unwrap();
        assert_eq!((found[0].ip, &found[0].user_agent), ([0, 0, 0, 0].into(), &None));
        assert_eq!((client.name.as_deref(), client.system.as_deref()), (Some("Safari"), Some("iPhone")));
        assert_eq!((client.city.as_deref(), client.country_code.as_deref()), (Some("Bern"), Some("CH")));
        assert_eq!((client.locality().position, client.bot), (None, false));
        assert_eq!(found[0].referer.as_deref(), Some("https://shop.example/"));
        assert_eq!(
            (found[0].language.as_deref(), &*found[0].entry_url),
            (Some("de-CH"), "https://tn.gg/abc")
        );
        let fired = found[2].rule.as_deref().unwrap();
        assert_eq!((fired.index, fired.name.as_deref()), (3, Some("Germany")));
        assert_eq!((found[0].client.as_ref(), &found[0].rule), (found[2].client.as_ref(), &None));
    }

    #[test]
    fn a_device_lasts_for_a_day_and_a_process() {
        let device = |redactor: &mut Redactor, agent: &str, at: i64| {
            let (mut bytes, mut ends) = (Vec::new(), Vec::new());
            write(agent, at, true, None, &mut bytes);
            ends.push(bytes.len());
            assert_eq!(redactor.apply(&mut bytes, &mut ends), 0);
            read(&bytes)[0].client.as_ref().unwrap().device
        };
        let mut one = Redactor::new(Arc::new(NoGeoIp)).unwrap();
        let first = device(&mut one, AGENT, 0);
        assert!(first.is_some());
        assert_eq!(first, device(&mut one, AGENT, DAY_MS - 1));
        let mut other = Redactor::new(Arc::new(NoGeoIp)).unwrap();
        for another in [
            device(&mut one, AGENT, DAY_MS),
            device(&mut one, "Mozilla/5.0 (Windows NT 10.0; rv:128.0) Gecko/20100101 Firefox/128.0", 0),
            device(&mut other, AGENT, 0),
        ] {
            assert!(another.is_some() && another != first);
        }
        assert_eq!(device(&mut one, "", 0), None, "without a user agent it is a robot");
        assert_eq!(device(&mut one, "curl/8.5.0", 0), None);
    }

    #[test]
    fn user_agents_are_remembered_as_hashes_within_bounds() {
        let mut redactor = Redactor::new(Arc::new(NoGeoIp)).unwrap();
        for round in 0..2 {
            for n in 0..2 * SLOTS {
                let Known { is_bot, name, .. } = redactor.agent(Some(&format!("unheard-of/{n}")));
                assert!(!is_bot && name.is_none(), "{round} {n}");
            }
            let known = redactor.agent(Some(AGENT));
            assert_eq!((known.is_bot, known.name.as_deref()), (false, Some("Safari")));
            assert!(redactor.agent(Some("curl/8.5.0")).is_bot && redactor.agent(None).is_bot);
        }
        assert_eq!(redactor.slots.len(), SLOTS);
        let held = format!("{:?}", redactor.slots);
        assert!(!held.contains("unheard-of") && !held.contains("Marked"));
    }

    #[test]
    fn unmarked_records_pass_unchanged_even_damaged_ones() {
        let mut redactor = Redactor::new(Arc::new(NoGeoIp)).unwrap();
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for in_memory in [false, true] {
            write(AGENT, 0, in_memory, None, &mut bytes);
            ends.push(bytes.len());
        }
        let last = ends[0] - 1;
        bytes[last] ^= 1;
        let damaged = bytes[..ends[0]].to_vec();
        assert_eq!(redactor.apply(&mut bytes, &mut ends), 0);
        assert_eq!((&bytes[..ends[0]], ends.len()), (&*damaged, 2));
    }

    #[test]
    fn what_is_marked_and_damaged_is_left_out() {
        let mut redactor = Redactor::new(Arc::new(NoGeoIp)).unwrap();
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for agent in [AGENT, "x/1"] {
            write(agent, 0, true, None, &mut bytes);
            ends.push(bytes.len());
        }
        let last = ends[0] - 1;
        bytes[last] ^= 1;
        assert_eq!(redactor.apply(&mut bytes, &mut ends), 1);
        assert_eq!((ends.len(), read(&bytes).len()), (1, 1));
    }
}
