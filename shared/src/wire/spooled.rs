//! The binary format of scans in an edge's spool, which is also the format in which they are shipped.
//!
//! A record is `version | time i64 | 4 or 6 | address | domain | short id | entry URL | user agent | referer`. Each
//! text has a 16-bit length before it; numbers are little-endian. If the client sent a language, it follows as a text.
//! If a rule matched, `application | index u16 | name | location` follows, where an empty text means none. A sum of scans is `version | time i64 | count u32 | domain |
//! short id`. A redacted record is `version | time i64 | flags | device i64 | domain | short id | entry URL | referer |
//! language | browser | system | city | region | country | time zone`, and the rule behind it. A scan of a Digital Link has
//! `GTIN | variant | lot | serial | link type | known u8` at its end, where 0 is not known to be either, 1 is false and 2 is
//! true. Each record is preceded by its length and CRC-32C, 32 bits each.

mod read;

use std::{net::IpAddr, num::NonZeroU32, sync::Arc};

use bytes::Bytes;

use self::read::read;
use super::scan::{MAX_BATCH, RedactedClient, ScanBatch, ScanRecord, ScannedLink, cut};
use crate::time::UnixMillis;

/// First byte of a record without a rule.
const PLAIN: u8 = 1;
/// First byte of a record with a rule; one that is not known belongs to a later version.
const WITH_RULE: u8 = 2;
/// First byte of a sum of scans.
const SUM: u8 = 3;
/// First byte of a record with a language and without a rule.
const WITH_LANGUAGE: u8 = 4;
/// First byte of a record with a language and a rule.
const WITH_LANGUAGE_AND_RULE: u8 = 5;
/// First byte of a redacted record.
const REDACTED: u8 = 6;
/// First byte of a redacted record with a rule.
const REDACTED_WITH_RULE: u8 = 7;
/// Marks the first byte of the scan of a Digital Link; a control of a release before it reads none of these.
const LINKED: u8 = 0x40;
/// Marks the first byte of a record that must be redacted before it is written or sent. [`decode`] rejects this bit, so a
/// record that skips redaction is refused.
const IN_MEMORY: u8 = 0x80;

/// Flag of a robot.
const BOT: u8 = 1;
/// Flag of a client with a device.
const DEVICE: u8 = 2;

/// Bytes before each record: its length and its checksum.
pub const FRAME_HEAD: usize = 8;

/// `Content-Type` of records in spool format.
pub const SPOOLED: &str = "application/vnd.waymark.spooled-scans";

/// A scan that is to be written; texts that are absent are empty.
#[derive(Debug, Clone, Copy)]
pub struct NewRecord<'a> {
    /// When the redirect was answered, by the edge's clock.
    pub at: UnixMillis,
    /// The client's address.
    pub ip: IpAddr,
    /// Host, folded short id, short URL as requested, user agent and referer.
    pub texts: [&'a str; 5],
    /// The language that the client prefers; empty without one.
    pub language: &'a str,
    /// The rule by which the redirect went, if one fired.
    pub rule: Option<NewRule<'a>>,
    /// What the Digital Link said, if it was one.
    pub link: Option<NewLink<'a>>,
    /// Whether it must be redacted before it is written or sent.
    pub in_memory: bool,
}

/// The rule that decided a redirect.
#[derive(Debug, Clone, Copy)]
pub struct NewRule<'a> {
    /// Id of its application; empty for the account's own.
    pub application: &'a str,
    /// Its place among the rules of its owner.
    pub index: u16,
    /// Its name; empty without one.
    pub name: &'a str,
    /// The `Location` that was sent.
    pub location: &'a str,
}

/// What a GS1 Digital Link says; values are percent-decoded, and empty where they are absent.
#[derive(Debug, Clone, Copy)]
pub struct NewLink<'a> {
    /// The GTIN, 14 digits.
    pub gtin: &'a str,
    /// The consumer product variant (22), the lot (10), the serial (21) and the type of the link.
    pub values: [&'a str; 4],
    /// As that of [`ScannedLink`].
    pub known: Option<bool>,
}

impl NewRecord<'_> {
    /// Appends the record, behind its length and checksum.
    pub fn write(&self, out: &mut Vec<u8>) {
        frame(out, |out| {
            let version = match (self.language, self.rule) {
                ("", None) => PLAIN,
                ("", Some(_)) => WITH_RULE,
                (_, None) => WITH_LANGUAGE,
                (_, Some(_)) => WITH_LANGUAGE_AND_RULE,
            };
            let version = if self.link.is_some() { version | LINKED } else { version };
            out.push(if self.in_memory { version | IN_MEMORY } else { version });
            out.extend(self.at.0.to_le_bytes());
            match self.ip {
                IpAddr::V4(ip) => {
                    out.push(4);
                    out.extend(ip.octets());
                }
                IpAddr::V6(ip) => {
                    out.push(6);
                    out.extend(ip.octets());
                }
            }
            for text in self.texts {
                put(text, out);
            }
            if !self.language.is_empty() {
                put(self.language, out);
            }
            if let Some(rule) = &self.rule {
                rule.put(out);
            }
            if let Some(link) = self.link {
                link.put(out);
            }
        });
    }
}

impl NewRule<'_> {
    fn put(&self, out: &mut Vec<u8>) {
        put(self.application, out);
        out.extend(self.index.to_le_bytes());
        put(self.name, out);
        put(self.location, out);
    }
}

/// Whether a record, behind its length and checksum, must be redacted before it is written or sent.
#[must_use]
pub fn is_in_memory(payload: &[u8]) -> bool {
    payload.first().is_some_and(|version| version & IN_MEMORY != 0)
}

/// Reads a record that must be redacted; `None` when it is none.
#[must_use]
pub fn decode_in_memory(payload: &[u8]) -> Option<ScanRecord> {
    let (version, rest) = payload.split_first()?;
    (version & IN_MEMORY != 0).then(|| read(version & !IN_MEMORY, rest)).flatten()
}

/// Appends a redacted record, behind its length and checksum.
pub fn write_redacted(record: &ScanRecord, client: &RedactedClient, out: &mut Vec<u8>) {
    frame(out, |out| {
        let version = if record.rule.is_some() { REDACTED_WITH_RULE } else { REDACTED };
        out.push(if record.digital_link.is_some() { version | LINKED } else { version });
        out.extend(record.at.0.to_le_bytes());
        let device = if client.device.is_some() { DEVICE } else { 0 };
        out.push(device | if client.bot { BOT } else { 0 });
        out.extend(client.device.unwrap_or_default().to_le_bytes());
        for text in [&*record.domain, &*record.folded, &*record.entry_url] {
            put(text, out);
        }
        let known = [
            &record.referer,
            &record.language,
            &client.name,
            &client.system,
            &client.city,
            &client.region,
            &client.country_code,
            &client.time_zone,
        ];
        for text in known {
            put(text.as_deref().unwrap_or_default(), out);
        }
        if let Some(rule) = record.rule.as_deref() {
            let application = rule.application.as_ref().map_or("", |id| id.as_str());
            let (index, name, location) =
                (rule.index, rule.name.as_deref().unwrap_or_default(), &*rule.redirect_url);
            NewRule { application, index, name, location }.put(out);
        }
        if let Some(link) = record.digital_link.as_deref() {
            NewLink::of(link).put(out);
        }
    });
}

impl<'a> NewLink<'a> {
    pub(super) fn of(link: &'a ScannedLink) -> Self {
        let values = [&link.variant, &link.lot, &link.serial, &link.link_type];
        Self {
            gtin: &link.gtin,
            values: values.map(|text| text.as_deref().unwrap_or_default()),
            known: link.known,
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        put(self.gtin, out);
        for text in self.values {
            put(text, out);
        }
        out.push(self.known.map_or(0, |known| 1 + u8::from(known)));
    }
}

/// Appends a sum of the scans of a link in the minute that begins at `at`, behind its length and checksum.
pub fn write_sum(at: UnixMillis, count: NonZeroU32, [domain, folded]: [&str; 2], out: &mut Vec<u8>) {
    frame(out, |out| {
        out.push(SUM);
        out.extend(at.0.to_le_bytes());
        out.extend(count.get().to_le_bytes());
        put(domain, out);
        put(folded, out);
    });
}

fn frame(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend([0; FRAME_HEAD]);
    write(out);
    let payload = start + FRAME_HEAD;
    // Some texts of 64 KiB at most, so its length fits.
    let length = u32::try_from(out.len() - payload).unwrap_or_default();
    let sum = crc32c::crc32c(&out[payload..]);
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    out[start + 4..payload].copy_from_slice(&sum.to_le_bytes());
}

/// Appends a text of at most a few thousand bytes: all are bounded before they come here.
fn put(text: &str, out: &mut Vec<u8>) {
    let text = cut(text, usize::from(u16::MAX));
    out.extend(u16::try_from(text.len()).unwrap_or(0).to_le_bytes());
    out.extend(text.as_bytes());
}

/// A run of records of one boot of an edge, in order and without a gap, in spool format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpooledScans {
    /// Name of the edge.
    pub edge: Arc<str>,
    /// Which boot of the edge.
    pub boot: u64,
    /// Sequence number of the first record; the next records follow without a gap.
    pub first_seq: u64,
    /// How many they are, at most [`MAX_BATCH`].
    pub count: usize,
    /// The records, each behind its length and checksum.
    pub frames: Bytes,
}

impl SpooledScans {
    /// Reads the records, up to the first that this version cannot read; `None` when that is the first of all.
    #[must_use]
    pub fn read(&self) -> Option<ScanBatch> {
        let mut records = Vec::with_capacity(self.count.min(MAX_BATCH));
        let mut rest = &*self.frames;
        while let Some((payload, behind)) = split_frame(rest)
            && let Some(record) = decode(payload)
        {
            records.push(record);
            rest = behind;
        }
        let batch =
            ScanBatch { edge: self.edge.clone(), boot: self.boot, first_seq: self.first_seq, records };
        (!batch.records.is_empty()).then_some(batch)
    }
}

/// Reads all of a body of [`SPOOLED`] records; `None` when one of them cannot be read, or there are more than
/// [`MAX_BATCH`].
#[must_use]
pub fn read_all(mut frames: &[u8]) -> Option<Vec<ScanRecord>> {
    let mut records = Vec::new();
    while !frames.is_empty() {
        let (payload, behind) = split_frame(frames)?;
        records.push(decode(payload).filter(|_| records.len() < MAX_BATCH)?);
        frames = behind;
    }
    Some(records)
}

/// The first record's bytes and what comes behind; `None` at a torn or damaged one.
#[must_use]
pub fn split_frame(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    let (sum, rest) = rest.split_first_chunk::<4>()?;
    let (payload, rest) = rest.split_at_checked(u32::from_le_bytes(*length) as usize)?;
    (crc32c::crc32c(payload) == u32::from_le_bytes(*sum)).then_some((payload, rest))
}

/// Reads a record; `None` when it is not one.
#[must_use]
pub fn decode(bytes: &[u8]) -> Option<ScanRecord> {
    let (version, rest) = bytes.split_first()?;
    read(*version, rest)
}
