//! Files that a short domain serves beside its links: `robots.txt`, and those that apps ask for.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::Error as _};
use serde_json::{Value, value::RawValue};

/// Most bytes of a JSON file, without blanks. Two of them and the domain fit one frame of the change stream, which has 256 KiB.
pub const MAX_FILE_BYTES: usize = 64 << 10;

crate::words! {
    /// What robots may look at on a short domain.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Robots {
        /// Nothing.
        #[default]
        None = "none",
        /// Every link.
        All = "all",
    } else InvalidRobots
}

impl Robots {
    /// The content of `/robots.txt`.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Self::None => "User-agent: *\nDisallow: /\n",
            Self::All => "User-agent: *\nDisallow:\n",
        }
    }
}

/// A text that is not one of [`Robots::ALL`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be none or all")]
pub struct InvalidRobots;

/// A JSON document as it is served: without blanks. On the wire it is JSON within JSON, and not a string.
#[derive(Clone, PartialEq, Eq)]
pub struct JsonFile(Arc<str>);

impl JsonFile {
    /// The document of a value.
    #[must_use]
    pub fn new(value: &Value) -> Self {
        Self(value.to_string().into())
    }

    /// A document that was stored as [`Self::as_str`].
    #[must_use]
    pub fn stored(text: String) -> Self {
        Self(text.into())
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AsRef<[u8]> for JsonFile {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for JsonFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JsonFile({} bytes)", self.0.len())
    }
}

impl Serialize for JsonFile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(S::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for JsonFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Postgres puts blanks into the JSON of the change log.
        Value::deserialize(deserializer).map(|value| Self::new(&value))
    }
}

/// What a short domain serves beside its links.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DomainFiles {
    /// What `/robots.txt` says.
    #[serde(default)]
    pub robots: Robots,
    /// `/.well-known/assetlinks.json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asset_links: Option<JsonFile>,
    /// `/.well-known/apple-app-site-association`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apple_app_site_association: Option<JsonFile>,
}

impl DomainFiles {
    /// Whether they are those of a domain without settings.
    #[must_use]
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Bytes of the JSON files.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        let size = |file: &Option<JsonFile>| file.as_ref().map_or(0, |file| file.as_str().len());
        size(&self.asset_links) + size(&self.apple_app_site_association)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn files_travel_as_json_without_blanks() {
        let links =
            json!([{"relation": ["x"], "target": {"namespace": "web", "site": "https://\"\\.example"}}]);
        let files = DomainFiles {
            robots: Robots::All,
            asset_links: Some(JsonFile::new(&links)),
            apple_app_site_association: None,
        };
        let sent = serde_json::to_string(&files).unwrap();
        assert_eq!(
            serde_json::from_str::<Value>(&sent).unwrap(),
            json!({"robots": "all", "assetLinks": links})
        );
        assert_eq!(serde_json::from_str::<DomainFiles>(&sent).unwrap(), files);
        // As Postgres gives it back.
        let blanks = serde_json::to_string_pretty(&files).unwrap().replace("[{", "[ {");
        assert_eq!(serde_json::from_str::<DomainFiles>(&blanks).unwrap(), files);
        let value = serde_json::to_value(&files).unwrap();
        assert_eq!(serde_json::from_value::<DomainFiles>(value).unwrap(), files);
        assert_eq!(files.size_bytes(), links.to_string().len());
    }

    #[test]
    fn what_is_not_said_is_as_without_settings() {
        let files: DomainFiles = serde_json::from_str("{}").unwrap();
        assert!(files.is_default() && files.robots.text().ends_with("Disallow: /\n"));
        for robots in Robots::ALL {
            assert_eq!(robots.as_str().parse(), Ok(robots));
        }
        assert_eq!("some".parse::<Robots>(), Err(InvalidRobots));
    }
}
