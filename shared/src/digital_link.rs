//! The typed links behind a GS1 Digital Link, as control stores them and an edge chooses among them.

use std::sync::Arc;

use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};

crate::words! {
    /// What the serials of a GTIN are.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum SerialMode {
        /// A serial leads where its product does.
        #[default]
        None = "none",
        /// The same, and `{21}` in a target is the serial.
        Template = "template",
        /// Items with links of their own lead there, others where their product does.
        Overrides = "overrides",
        /// The same, and a serial without a record was never issued.
        Known = "known",
    } else ()
}

impl SerialMode {
    /// Whether an item may have a record of its own.
    #[must_use]
    pub const fn has_items(self) -> bool {
        matches!(self, Self::Overrides | Self::Known)
    }
}

/// The links of one level: of a GTIN, of a lot or variant of it, or of an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LinkSet {
    /// What the level is called: `itemDescription` of a linkset.
    pub description: Arc<str>,
    /// Of the GTIN, on every level of it.
    #[serde(default)]
    pub serial_mode: SerialMode,
    /// Exactly one of them is the default; none where an item leads where its product does.
    pub links: Vec<TypedLink>,
}

impl LinkSet {
    /// Bytes that it takes, roughly.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        let size = |link: &TypedLink| {
            let tags: usize = link.hreflang.iter().chain(&link.context).map(|tag| 24 + tag.len()).sum();
            160 + link.link_type.len() + link.href.len() + link.title.len() + tags
        };
        self.description.len() + self.links.iter().map(size).sum::<usize>()
    }
}

/// Where a level leads for one purpose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TypedLink {
    /// `gs1:pip` or an absolute URI.
    pub link_type: Arc<str>,
    /// The target, with the tags `{01}`, `{21}`, `{10}`, `{22}` and `{thngId}` behind its host.
    pub href: Arc<str>,
    /// What people read of it.
    pub title: Arc<str>,
    /// Media type of the target.
    #[serde(rename = "type", default, skip_serializing_if = "Option::is_none")]
    pub media_type: Option<Arc<str>>,
    /// Language tags of the target.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hreflang: Vec<Arc<str>>,
    /// Contexts in which it holds, such as a country.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context: Vec<Arc<str>>,
    /// Since when it holds, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<i64>,
    /// When it no longer does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<i64>,
    /// Whether it is where a request without `linkType` leads.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub default: bool,
}

/// What the short id of a level says; values are percent-decoded.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Level<'a> {
    /// The GTIN, 14 digits.
    pub gtin: &'a str,
    /// The consumer product variant (22).
    pub variant: Option<String>,
    /// The batch or lot (10).
    pub lot: Option<String>,
    /// The serial (21).
    pub serial: Option<String>,
}

impl<'a> Level<'a> {
    /// Reads a short id; `None`: it is no Digital Link.
    #[must_use]
    pub fn of(short_id: &'a str) -> Option<Self> {
        let mut segments = short_id.strip_prefix("01/")?.split('/');
        let mut level = Self { gtin: segments.next()?, ..Self::default() };
        while let Some((ai, value)) = segments.next().zip(segments.next()) {
            let value = Some(percent_decode_str(value).decode_utf8_lossy().into_owned());
            match ai {
                "22" => level.variant = value,
                "10" => level.lot = value,
                "21" => level.serial = value,
                _ => {}
            }
        }
        Some(level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_read_from_short_ids() {
        let read = |short_id| {
            Level::of(short_id).map(|level| (level.gtin.to_owned(), level.variant, level.lot, level.serial))
        };
        let (gtin, text) = ("09521234543213".to_owned(), |text: &str| Some(text.to_owned()));
        for (short_id, expected) in [
            ("K7Q2M4XA9R", None),
            ("01/09521234543213", Some((gtin.clone(), None, None, None))),
            ("01/09521234543213/22/10/10/l%2F1", Some((gtin.clone(), text("10"), text("l/1"), None))),
            ("01/09521234543213/21/S", Some((gtin.clone(), None, None, text("S")))),
            ("01/09521234543213/235/X", Some((gtin, None, None, None))),
        ] {
            assert_eq!(read(short_id), expected, "{short_id}");
        }
    }
}
