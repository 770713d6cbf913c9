//! Where the browser goes after the sign-in.

use std::fmt;

use serde::{Deserialize, Serialize};
use url::Url;

/// Most bytes of a path: with it the cookie is far from the 4,096 bytes that browsers keep.
const MAX_BYTES: usize = 1_024;

/// A path of this server, with its query and fragment. It never leads to another host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ReturnPath(String);

/// The text is no path of this server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a path of this server, such as /console/, of at most 1024 bytes")]
pub struct InvalidReturnPath;

impl ReturnPath {
    /// Reads a path that begins with one slash.
    ///
    /// # Errors
    /// A browser could read the text as a URL of another host, it has other characters than printable ASCII, or it is
    /// too long.
    pub fn parse(text: &str) -> Result<Self, InvalidReturnPath> {
        let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
        if !is_plain || text.len() > MAX_BYTES || !text.starts_with('/') || text.starts_with("//") {
            return Err(InvalidReturnPath);
        }
        // What browsers do with the text, for the case that the rules above forget something.
        let base = Url::parse("https://host.invalid/").map_err(|_| InvalidReturnPath)?;
        let joined = base.join(text).map_err(|_| InvalidReturnPath)?;
        // `/.//host` is the path `//host`, which a page may use as a link.
        if joined.origin() != base.origin() || joined.path().starts_with("//") {
            return Err(InvalidReturnPath);
        }
        Ok(Self(text.to_owned()))
    }

    /// The path as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ReturnPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for ReturnPath {
    type Error = InvalidReturnPath;

    fn try_from(text: String) -> Result<Self, InvalidReturnPath> {
        Self::parse(&text)
    }
}

impl From<ReturnPath> for String {
    fn from(path: ReturnPath) -> Self {
        path.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_return_path_stays_on_this_server() {
        for (text, fits) in [
            ("/", true),
            ("/console/", true),
            ("/console/things?filter=name%3Dx&page=2#top", true),
            ("/console/..", true),
            ("/@example.com", true),
            ("", false),
            ("console", false),
            ("//example.com", false),
            ("///example.com", false),
            ("/\\example.com", false),
            ("/\t/example.com", false),
            ("/\n/example.com", false),
            ("/ /example.com", false),
            ("/.//example.com", false),
            ("/a/..//example.com", false),
            ("\\/example.com", false),
            ("https://example.com/", false),
            ("https:/example.com", false),
            ("javascript:alert(1)", false),
            ("/ü", false),
            ("/\0", false),
        ] {
            assert_eq!(ReturnPath::parse(text).is_ok(), fits, "{text:?}");
        }
        assert!(ReturnPath::parse(&format!("/{}", "a".repeat(MAX_BYTES - 1))).is_ok());
        assert!(ReturnPath::parse(&format!("/{}", "a".repeat(MAX_BYTES))).is_err());
        assert!(serde_json::from_str::<ReturnPath>("\"//example.com\"").is_err());
    }
}
