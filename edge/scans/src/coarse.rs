//! Makes records coarse whose clients may not be written down: of address and user agent categories are left, the place that
//! a database names, and a hash of the device.
//!
//! It happens in the writer, between memory and disk, so that redirects pay nothing for it.

use std::{collections::HashMap, fmt, io, net::IpAddr, sync::Arc};

use shared::{
    geo::GeoIp,
    time::UnixMillis,
    wire::{
        scan::{CoarseClient, is_bot},
        spooled::{decode_in_memory, is_in_memory, split_frame, write_coarse},
    },
};

/// Milliseconds of a day.
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// User agents remembered, some 400 bytes each. They are in memory, as the records are that come here.
const REMEMBERED: usize = 4_096;

/// Makes records coarse.
pub(super) struct Coarsener {
    geo: Arc<dyn GeoIp>,
    parser: woothee::parser::Parser,
    agents: HashMap<Box<str>, Known>,
    /// Key of the hashes of devices: of this process alone, and never written down. So a hash tells nothing to anybody who
    /// tries addresses, and a device that scans at two edges, or before and after a restart, is two.
    key: [u8; 32],
    // Kept, so that they keep their memory.
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl fmt::Debug for Coarsener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Coarsener")
    }
}

/// What is known of a user agent.
#[derive(Debug, Clone, Default)]
struct Known {
    is_bot: bool,
    name: Option<Box<str>>,
    system: Option<Box<str>>,
}

impl Coarsener {
    /// With the geography of addresses.
    ///
    /// # Errors
    /// The system has no random bits for the key.
    pub(super) fn new(geo: Arc<dyn GeoIp>) -> io::Result<Self> {
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|error| io::Error::other(error.to_string()))?;
        let (parser, agents) = (woothee::parser::Parser::new(), HashMap::new());
        Ok(Self { geo, parser, agents, key, bytes: Vec::new(), ends: Vec::new() })
    }

    /// Makes those records of a buffer coarse that must be; one that cannot be read is left out. Returns how many those were.
    pub(super) fn apply(&mut self, bytes: &mut Vec<u8>, ends: &mut Vec<usize>) -> u64 {
        let starts = std::iter::once(0).chain(ends.iter().copied());
        let is_private = |start| payload(bytes, start).is_some_and(is_in_memory);
        if !starts.zip(&*ends).any(|(start, _)| is_private(start)) {
            return 0;
        }
        let (mut out, mut out_ends) = (std::mem::take(&mut self.bytes), std::mem::take(&mut self.ends));
        out.clear();
        out_ends.clear();
        let (mut start, mut left_out) = (0, 0);
        for end in ends.iter().copied() {
            let frame = bytes.get(start..end).unwrap_or_default();
            start = end;
            match split_frame(frame) {
                Some((payload, _)) if is_in_memory(payload) => {
                    if !self.write(payload, &mut out) {
                        left_out += 1;
                        continue;
                    }
                }
                // What has no such mark is written as it is, also what nobody can read.
                Some(_) | None if !payload(frame, 0).is_some_and(is_in_memory) => {
                    out.extend_from_slice(frame);
                }
                Some(_) | None => {
                    left_out += 1;
                    continue;
                }
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

    /// Appends a record in its coarse form; `false` when it cannot be read.
    fn write(&mut self, payload: &[u8], out: &mut Vec<u8>) -> bool {
        let Some(record) = decode_in_memory(payload) else { return false };
        let agent = record.user_agent.as_deref();
        let Known { is_bot, name, system } = self.agent(agent);
        let place = self.geo.find_shared(record.ip);
        let text = |text: &Option<String>| text.as_deref().map(Box::<str>::from);
        let client = CoarseClient {
            bot: is_bot,
            device: (!is_bot).then(|| self.device(record.at, &record.domain, record.ip, agent)),
            name,
            system,
            city: text(&place.city),
            region: text(&place.region),
            country_code: text(&place.country_code),
            time_zone: text(&place.time_zone),
        };
        write_coarse(&record, &client, out);
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

    fn agent(&mut self, sent: Option<&str>) -> Known {
        // Without one it is a program that hides, and counts as a robot.
        let Some(sent) = sent else { return Known { is_bot: true, ..Known::default() } };
        if let Some(known) = self.agents.get(sent) {
            return known.clone();
        }
        let found = self.parser.parse(sent);
        let known = |text: &str| Some(text).filter(|text| *text != "UNKNOWN").map(Box::<str>::from);
        let read = Known {
            is_bot: is_bot(sent) || found.as_ref().is_some_and(|found| found.category == "crawler"),
            name: found.as_ref().and_then(|found| known(found.name)),
            system: found.as_ref().and_then(|found| known(found.os)),
        };
        if self.agents.len() >= REMEMBERED {
            self.agents.clear();
        }
        self.agents.insert(sent.into(), read.clone());
        read
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
        let record =
            NewRecord { at: UnixMillis(at), ip: IP.into(), texts, language: "de-CH", rule, in_memory };
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
        let mut coarsener = Coarsener::new(Arc::new(Bern)).unwrap();
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        let rule = NewRule { application: "", index: 3, name: "Germany", location: "https://example.com/de" };
        for (in_memory, rule) in [(true, None), (false, None), (true, Some(rule))] {
            write(AGENT, 1_000, in_memory, rule, &mut bytes);
            ends.push(bytes.len());
        }
        let (marked, plain) = (bytes[..ends[0]].to_vec(), bytes[ends[0]..ends[1]].to_vec());
        assert!(decode(split_frame(&marked).unwrap().0).is_none(), "nobody reads it as it is");
        assert_eq!(coarsener.apply(&mut bytes, &mut ends), 0);
        assert_eq!((ends.len(), ends[2]), (3, bytes.len()));
        assert_eq!(&bytes[ends[0]..ends[1]], plain, "the one that is not marked stays as it is");
        for coarse in [&bytes[..ends[0]], &bytes[ends[1]..]] {
            assert!(!has(coarse, b"Marked") && !has(coarse, b"Mozilla") && !has(coarse, &IP));
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
        let device = |coarsener: &mut Coarsener, agent: &str, at: i64| {
            let (mut bytes, mut ends) = (Vec::new(), Vec::new());
            write(agent, at, true, None, &mut bytes);
            ends.push(bytes.len());
            assert_eq!(coarsener.apply(&mut bytes, &mut ends), 0);
            read(&bytes)[0].client.as_ref().unwrap().device
        };
        let mut one = Coarsener::new(Arc::new(NoGeoIp)).unwrap();
        let first = device(&mut one, AGENT, 0);
        assert!(first.is_some());
        assert_eq!(first, device(&mut one, AGENT, DAY_MS - 1));
        let mut other = Coarsener::new(Arc::new(NoGeoIp)).unwrap();
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
    fn what_is_marked_and_damaged_is_left_out() {
        let mut coarsener = Coarsener::new(Arc::new(NoGeoIp)).unwrap();
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for agent in [AGENT, "x/1"] {
            write(agent, 0, true, None, &mut bytes);
            ends.push(bytes.len());
        }
        let last = ends[0] - 1;
        bytes[last] ^= 1;
        assert_eq!(coarsener.apply(&mut bytes, &mut ends), 1);
        assert_eq!((ends.len(), read(&bytes).len()), (1, 1));
    }
}
