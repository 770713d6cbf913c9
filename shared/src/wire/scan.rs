//! Scan records: what an edge stores for each redirect, and the batches it ships.

use std::{net::IpAddr, num::NonZeroU32, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{id::ApplicationId, time::UnixMillis};

/// Longest user agent kept, in bytes; phones send 110 to 180.
pub const MAX_USER_AGENT: usize = 256;
/// Longest referer kept, in bytes.
pub const MAX_REFERER: usize = 128;
/// Longest entry URL kept, in bytes: host, short id and the start of the query.
pub const MAX_ENTRY_URL: usize = 256;

/// One redirect as an edge saw it.
///
/// Texts are cut to the maxima above, so a record takes at most 0.8 KiB and typically under 200 bytes. A rule
/// that fired adds its name and the whole `Location`: at most some 5 KiB, typically 100 bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScanRecord {
    /// When the redirect was answered, by the edge's clock.
    pub at: UnixMillis,
    /// Host of the short domain.
    pub domain: Arc<str>,
    /// The folded short id.
    pub folded: Arc<str>,
    /// The client's address.
    pub ip: IpAddr,
    /// `User-Agent`, if sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<Box<str>>,
    /// `Referer`, if sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub referer: Option<Box<str>>,
    /// The short URL as requested, without `access_token`.
    pub entry_url: Box<str>,
    /// The rule by which the redirect went, if one fired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Box<FiredRule>>,
    /// The number of scans by people in the minute that begins at `at`, for which there was no space one by one. They
    /// count in hits and create no action. The address of the record is then unspecified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<NonZeroU32>,
}

/// The rule that decided a redirect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FiredRule {
    /// The application whose rule it was; `None` for the account's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<ApplicationId>,
    /// Its place among the rules of its owner at that moment, from 0.
    pub index: u16,
    /// Its name, if it had one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<Box<str>>,
    /// The `Location` that was sent.
    pub redirect_url: Box<str>,
}

/// A run of records of one boot of an edge, in order and without a gap.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScanBatch {
    /// Name of the edge.
    pub edge: Arc<str>,
    /// Which boot of the edge: on its disk before the first record of it.
    pub boot: u64,
    /// Sequence number of the first record; the next records follow without a gap.
    pub first_seq: u64,
    /// At most [`MAX_BATCH`] records.
    pub records: Vec<ScanRecord>,
}

/// Most records in a batch.
pub const MAX_BATCH: usize = 1_000;

/// Answer to a batch: everything below `next_seq` of this boot is stored, and may be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScanReceipt {
    /// The sequence number that control expects next.
    pub next_seq: u64,
}

/// A receipt, and what the control that wrote it accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ScanAnswer {
    /// How far it is.
    #[serde(flatten)]
    pub receipt: ScanReceipt,
    /// Whether it also accepts records in spool format; the previous version does not.
    #[serde(default)]
    pub takes_spooled: bool,
}

/// Words in the user agents of robots, previews and health checks that the parser does not know.
const BOT_WORDS: &[&str] = &[
    "bot",
    "crawl",
    "spider",
    "slurp",
    "preview",
    "facebookexternalhit",
    "facebookcatalog",
    "whatsapp",
    "telegram",
    "skypeuripreview",
    "embedly",
    "quora link",
    "pinterest/",
    "vkshare",
    "w3c_validator",
    "headlesschrome",
    "lighthouse",
    "pingdom",
    "uptime",
    "monitor",
    "statuscake",
    "site24x7",
    "datadog",
    "curl/",
    "wget/",
    "python-requests",
    "python-urllib",
    "python-httpx",
    "aiohttp",
    "go-http-client",
    "java/",
    "okhttp-monitor",
    "libwww-perl",
    "apache-httpclient",
    "scrapy",
    "nmap",
    "masscan",
    "zgrab",
    "censys",
    "nuclei",
    "nikto",
];

/// Whether a word in a user agent identifies a robot; other robots are known by their whole name.
#[must_use]
pub fn is_bot(user_agent: &str) -> bool {
    let lower = user_agent.to_ascii_lowercase();
    BOT_WORDS.iter().any(|word| lower.contains(word))
}

/// Cuts a text to at most `max` bytes at a character boundary.
#[must_use]
pub fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}
