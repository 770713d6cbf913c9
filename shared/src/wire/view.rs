//! The Redis view: keys and values of the copy of all redirections, with a watermark (README, "Redis view").
//!
//! Every key carries the hash tag of its shard, so that one atomic `MGET` of a record and its shard's [`Meta`] stays on
//! one node of a cluster. Nothing expires.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize};

use super::stream::{Epoch, Rev};
use crate::{
    redirect::{Redirect, RedirectKey},
    rules::AccountRules,
    short_url::ShortDomain,
    withheld::{Withheld, read_all_known},
};

/// Most shards of a view.
pub const MAX_SHARDS: u16 = 256;

/// The metadata of a shard: its epoch, how far it is, and who wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    /// The epoch of the log that the view was built from.
    pub epoch: Epoch,
    /// Term of the publisher that wrote last: a deposed one has a smaller term and is refused.
    pub term: u64,
    /// Everything up to this revision is in the shard.
    pub watermark: Rev,
    /// Whether the shard holds every key; false while it is rebuilt.
    pub complete: bool,
    /// Into how many shards the view is cut.
    pub shards: u16,
}

/// Why a text is no [`Meta`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a view's meta reads: w1 EPOCH TERM WATERMARK 0|1 SHARDS")]
pub struct InvalidMeta;

impl fmt::Display for Meta {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { epoch, term, watermark, complete, shards } = self;
        write!(f, "w1 {epoch} {term} {watermark} {} {shards}", u8::from(*complete))
    }
}

impl FromStr for Meta {
    type Err = InvalidMeta;

    fn from_str(text: &str) -> Result<Self, InvalidMeta> {
        let mut parts = text.split(' ');
        let mut next = || parts.next().filter(|part| !part.is_empty()).ok_or(InvalidMeta);
        if next()? != "w1" {
            return Err(InvalidMeta);
        }
        let meta = Self {
            epoch: next()?.into(),
            term: next()?.parse().map_err(|_| InvalidMeta)?,
            watermark: next()?.parse().map_err(|_| InvalidMeta)?,
            complete: match next()? {
                "0" => false,
                "1" => true,
                _ => return Err(InvalidMeta),
            },
            shards: next()?.parse().map_err(|_| InvalidMeta)?,
        };
        if meta.shards == 0 || meta.shards > MAX_SHARDS || parts.next().is_some() {
            return Err(InvalidMeta);
        }
        Ok(meta)
    }
}

/// One redirection in the view, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The revision that wrote it.
    pub rev: Rev,
    /// The redirection.
    pub value: Arc<Redirect>,
}

/// What an edge needs beside redirections, as JSON: with it one starts while control is away.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Setup {
    /// Every short domain.
    pub domains: Vec<ShortDomain>,
    /// The rules of every account that has some.
    pub rules: Vec<Arc<AccountRules>>,
    /// Everything that is withheld; `None` from an older publisher, which does not know it.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "read_withheld")]
    pub withheld: Option<Vec<Withheld>>,
}

fn read_withheld<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<Withheld>>, D::Error> {
    read_all_known(deserializer).map(Some)
}

/// The shard of a key among `shards`, which is not 0.
#[must_use]
pub fn shard_of(key: &RedirectKey, shards: u16) -> u16 {
    let sum = crc32c::crc32c_append(crc32c::crc32c(key.domain.as_bytes()), key.folded.as_bytes());
    // The remainder is below `shards`.
    (sum % u32::from(shards)) as u16
}

/// The key of a shard's [`Meta`].
#[must_use]
pub fn meta_key(shard: u16) -> String {
    format!("{{waymark:{shard}}}:meta")
}

/// The key of a redirection's [`Record`].
#[must_use]
pub fn record_key(shard: u16, key: &RedirectKey) -> String {
    format!("{{waymark:{shard}}}:r:{}/{}", key.domain, key.folded)
}

/// What all keys of a shard's records begin with.
#[must_use]
pub fn record_prefix(shard: u16) -> String {
    format!("{{waymark:{shard}}}:r:")
}

/// The key of [`Setup`]; it belongs to shard 0 and is as of its watermark.
#[must_use]
pub fn setup_key() -> String {
    "{waymark:0}:setup".to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meta_round_trips_and_other_texts_are_refused() {
        let meta = Meta { epoch: "E1".into(), term: 7, watermark: 812, complete: true, shards: 16 };
        assert_eq!(meta.to_string(), "w1 E1 7 812 1 16");
        assert_eq!(meta.to_string().parse(), Ok(meta));
        for text in [
            "",
            "w1",
            "w2 E 7 8 1 1",
            "w1  7 8 1 1",
            "w1 E -7 8 1 1",
            "w1 E 7 8 2 1",
            "w1 E 7 8 1 0",
            "w1 E 7 8 1 257",
            "w1 E 7 8 1 1 1",
            "w1 E 7 8 1",
            "w1 E 7 99999999999999999999 1 1",
        ] {
            assert_eq!(text.parse::<Meta>(), Err(InvalidMeta), "{text:?}");
        }
    }

    #[test]
    fn a_setup_says_whether_its_publisher_knew_what_is_withheld() {
        let host = Withheld::Host("evil.example".into());
        for withheld in [None, Some(Vec::new()), Some(vec![host.clone()])] {
            let setup = Setup { withheld, ..Setup::default() };
            let json = serde_json::to_string(&setup).unwrap();
            assert_eq!(serde_json::from_str::<Setup>(&json).unwrap(), setup, "{json}");
        }
        let newer = r#"{"domains":[],"rules":[],"withheld":[{"path":"/a"},{"host":"evil.example"}]}"#;
        assert_eq!(serde_json::from_str::<Setup>(newer).unwrap().withheld, Some(vec![host]));
    }

    #[test]
    fn keys_carry_the_hash_tag_of_their_shard() {
        let key = RedirectKey::new("tn.gg", "K7Q2M4XA9R");
        let shard = shard_of(&key, 16);
        assert!(shard < 16);
        assert_eq!(shard_of(&key, 1), 0);
        assert!(record_key(shard, &key).starts_with(&record_prefix(shard)));
        let tag = |text: String| text.split('}').next().map(str::to_owned);
        assert_eq!(tag(record_key(shard, &key)), tag(meta_key(shard)));
        assert_eq!(tag(setup_key()), tag(meta_key(0)));
    }
}
