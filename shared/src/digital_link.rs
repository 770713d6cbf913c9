//! The typed links behind a GS1 Digital Link, as control stores them and an edge chooses among them.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// What the serials of a GTIN are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SerialMode {
    /// A serial leads where its product does.
    #[default]
    None,
    /// The same, and `{21}` in a target is the serial.
    Template,
    /// Items with links of their own lead there, others where their product does.
    Overrides,
    /// The same, and a serial without a record was never issued.
    Known,
}

impl SerialMode {
    /// The mode as it is written in JSON.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Template => "template",
            Self::Overrides => "overrides",
            Self::Known => "known",
        }
    }

    /// Whether an item may have a record of its own.
    #[must_use]
    pub const fn has_items(self) -> bool {
        matches!(self, Self::Overrides | Self::Known)
    }
}

impl std::str::FromStr for SerialMode {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let all = [Self::None, Self::Template, Self::Overrides, Self::Known];
        all.into_iter().find(|mode| mode.as_str() == text).ok_or(())
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
    /// At least one, and exactly one of them is the default.
    pub links: Vec<TypedLink>,
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
