//! Scan records: what an edge stores for each redirect, and the batches it ships.

use std::{net::IpAddr, num::NonZeroU32, sync::Arc};

use serde::{Deserialize, Serialize};

use crate::{geo::Locality, id::ApplicationId, time::UnixMillis};

/// Longest user agent kept, in bytes; phones send 110 to 180.
pub const MAX_USER_AGENT: usize = 256;
/// Longest referer kept, in bytes.
pub const MAX_REFERER: usize = 128;
/// Longest entry URL kept, in bytes: host, short id and the start of the query.
pub const MAX_ENTRY_URL: usize = 256;
/// Longest type of a link kept, in bytes: that of [`ScannedLink`].
pub const MAX_LINK_TYPE: usize = 256;
/// Longest language tag kept, in bytes; those of browsers have 2 to 10.
pub const MAX_LANGUAGE: usize = 16;

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
    /// The client's address; unspecified where `client` says what is left of it.
    pub ip: IpAddr,
    /// `User-Agent`, if sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_agent: Option<Box<str>>,
    /// `Referer`, if sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub referer: Option<Box<str>>,
    /// The language that the client prefers, of `Accept-Language`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Box<str>>,
    /// The short URL as requested, without `access_token`.
    pub entry_url: Box<str>,
    /// The rule by which the redirect went, if one fired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Box<FiredRule>>,
    /// The number of scans by people in the minute that begins at `at`, for which there was no space one by one. They
    /// count in hits and create no action. The address of the record is then unspecified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<NonZeroU32>,
    /// The redacted client, where the account keeps neither addresses nor user agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<Box<RedactedClient>>,
    /// What a GS1 Digital Link said, where one was scanned; `folded` is then the record that answered, which may be that of
    /// the product.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digital_link: Option<Box<ScannedLink>>,
}

/// What a GS1 Digital Link said when it was scanned; values are percent-decoded.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ScannedLink {
    /// The GTIN, 14 digits.
    pub gtin: Box<str>,
    /// The consumer product variant (22).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<Box<str>>,
    /// The batch or lot (10).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lot: Option<Box<str>>,
    /// The serial (21).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serial: Option<Box<str>>,
    /// Type of the link that was taken: a curie such as `gs1:pip`, or a URI.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link_type: Option<Box<str>>,
    /// Whether the serial has a record; only where all serials that were issued have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known: Option<bool>,
}

/// A client whose address and user agent were redacted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct RedactedClient {
    /// Whether it is a robot.
    pub bot: bool,
    /// The device on the day of the scan: a hash under a key that the edge never writes down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<i64>,
    /// Name of the browser or program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Box<str>>,
    /// Name of the operating system.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<Box<str>>,
    /// City of the address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub city: Option<Box<str>>,
    /// Region of the address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<Box<str>>,
    /// Country of the address, ISO 3166-1 alpha-2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub country_code: Option<Box<str>>,
    /// Time zone of the address, by its IANA name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<Box<str>>,
}

impl RedactedClient {
    /// The place, without coordinates.
    #[must_use]
    pub fn locality(&self) -> Locality {
        let text = |text: &Option<Box<str>>| text.as_deref().map(str::to_owned);
        Locality {
            city: text(&self.city),
            region: text(&self.region),
            country_code: text(&self.country_code),
            time_zone: text(&self.time_zone),
            as_number: None,
            position: None,
        }
    }
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

/// The language that an `Accept-Language` prefers: the tag with the highest weight, of several the first one.
///
/// Tags of other than letters, digits and hyphens are passed over, and of long ones the subtags are kept that fit into
/// [`MAX_LANGUAGE`].
#[must_use]
pub fn preferred_language(accepted: &str) -> Option<&str> {
    // Browsers write the preferred one first and without a weight: one pass over its letters.
    let end = accepted.bytes().position(|byte| !byte.is_ascii_alphanumeric() && byte != b'-');
    let first = &accepted[..end.unwrap_or(accepted.len())];
    let is_alone = end.is_none_or(|end| accepted.as_bytes().get(end) == Some(&b','));
    if is_alone && first.len() <= MAX_LANGUAGE && first.starts_with(|first: char| first.is_ascii_alphabetic())
    {
        return Some(first);
    }
    let mut best: Option<(&str, u16)> = None;
    for item in accepted.split(',').take(16) {
        let (tag, weight) = item.split_once(';').map_or((item, 1_000), |(tag, of)| (tag, weight(of)));
        let tag = tag.trim_ascii();
        if !is_language(tag) || best.is_some_and(|(_, most)| most >= weight) || weight == 0 {
            continue;
        }
        best = Some((tag, weight));
        // None has more: browsers write it first.
        if weight == 1_000 {
            break;
        }
    }
    let (tag, _) = best?;
    let fits = |tag: &&str| tag.len() <= MAX_LANGUAGE;
    let shorter = tag.char_indices().rev().filter(|(_, letter)| *letter == '-').map(|(at, _)| &tag[..at]);
    Some(tag).filter(fits).or_else(|| shorter.into_iter().find(fits))
}

/// Whether a text can be a language tag: letters, digits and hyphens, and a letter first.
#[must_use]
pub fn is_language(tag: &str) -> bool {
    tag.starts_with(|first: char| first.is_ascii_alphabetic())
        && tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// The weight of `q=0.8` in thousandths; one that is malformed counts as none (RFC 9110, 12.4.2).
fn weight(parameter: &str) -> u16 {
    let Some(text) = parameter.trim_ascii().strip_prefix(['q', 'Q']).and_then(|text| text.strip_prefix('='))
    else {
        return 0;
    };
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let is_number = part.len() <= 3 && part.bytes().all(|byte| byte.is_ascii_digit());
    match whole {
        "1" if is_number => 1_000,
        "0" if is_number => {
            let digit = |at: usize| part.as_bytes().get(at).map_or(0, |digit| u16::from(digit - b'0'));
            digit(0) * 100 + digit(1) * 10 + digit(2)
        }
        _ => 0,
    }
}

/// Cuts a text to at most `max` bytes at a character boundary.
#[must_use]
pub fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_preferred_language_is_that_of_the_highest_weight() {
        for (accepted, expected) in [
            ("de", Some("de")),
            ("en-GB,en;q=0.9", Some("en-GB")),
            ("en;q=0.5, de-CH ; q=0.8, fr;q=0.8", Some("de-CH")),
            ("*;q=0.5,pt-BR;q=0.1", Some("pt-BR")),
            ("fr;q=0.9,*", Some("fr")),
            ("fr;q=0.900,it;q=1.0", Some("it")),
            ("fr;q=0,it;q=0.001", Some("it")),
            ("fr;q=2,it;q=x,es;level=1", None),
            ("zh-Hant-TW", Some("zh-Hant-TW")),
            ("de-CH-x-phonebk-more", Some("de-CH-x-phonebk")),
            ("abcdefghijklmnopqrstuvw", None),
            ("d\u{e9},x y,<script>,-de,1de", None),
            ("", None),
            (" , ;q=1,", None),
        ] {
            assert_eq!(preferred_language(accepted), expected, "{accepted}");
        }
    }

    #[test]
    fn what_a_digital_link_said_is_spooled() {
        use crate::wire::spooled::{NewLink, NewRecord, decode, split_frame};
        let link = ScannedLink {
            gtin: "09528765123457".into(),
            lot: Some("L1".into()),
            known: Some(false),
            ..ScannedLink::default()
        };
        let mut out = Vec::new();
        let texts = ["tn.gg", "01/09528765123457", "https://tn.gg/01/09528765123457/10/L1", "", ""];
        let (at, ip) = (UnixMillis(1), [192, 0, 2, 1].into());
        NewRecord {
            at,
            ip,
            texts,
            language: "de",
            rule: None,
            link: Some(NewLink::of(&link)),
            in_memory: false,
        }
        .write(&mut out);
        let (payload, _) = split_frame(&out).unwrap();
        let read = decode(payload).unwrap();
        assert_eq!((read.digital_link.as_deref(), read.language.as_deref()), (Some(&link), Some("de")));
        assert!((0..payload.len()).all(|end| decode(&payload[..end]).is_none()));
        let json = serde_json::to_string(&read).unwrap();
        assert!(json.ends_with(r#""digitalLink":{"gtin":"09528765123457","lot":"L1","known":false}}"#));
        assert_eq!(serde_json::from_str::<ScanRecord>(&json).unwrap(), read);
    }

    #[test]
    fn records_of_older_and_newer_releases_are_read() {
        let old = r#"{"at":1,"domain":"tn.gg","folded":"A","ip":"192.0.2.1","entryUrl":"https://tn.gg/a"}"#;
        let record: ScanRecord = serde_json::from_str(old).unwrap();
        assert_eq!(
            (record.language.as_deref(), serde_json::to_string(&record).unwrap()),
            (None, old.to_owned())
        );
        let newer = old.replace("\"entryUrl\"", "\"language\":\"de\",\"later\":7,\"entryUrl\"");
        let record: ScanRecord = serde_json::from_str(&newer).unwrap();
        assert_eq!(record.language.as_deref(), Some("de"));
    }
}
