//! Which paths of a short domain lead to its links: a prefix, and short ids of several segments.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use crate::short_id::{self, RESERVED, is_segment};

/// Most segments of a prefix.
pub const MAX_PREFIX_SEGMENTS: usize = 3;

/// Most characters of a segment of a prefix.
pub const MAX_PREFIX_SEGMENT: usize = 32;

/// Why a text is no prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPrefix {
    /// Segments or characters are wrong.
    #[error("must have 1 to 3 segments of 1 to 32 characters of A-Z a-z 0-9 _ -, such as shop/go")]
    Form,
    /// Its first segment is served by the short domain itself.
    #[error("must not begin with a reserved word")]
    Reserved,
    /// Its first segment is two to four digits, as the keys of GS1 are.
    #[error("must not begin with a key of GS1, such as 01")]
    Gs1Key,
}

/// A path below which the short ids of a domain are, too: 1 to 3 segments, without a slash before or behind.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PathPrefix(Box<str>);

impl PathPrefix {
    /// The prefix as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What stands behind the prefix and a slash; `None` where a path does not begin so.
    #[must_use]
    pub fn cut<'a>(&self, path: &'a str, case_sensitive: bool) -> Option<&'a str> {
        let (start, rest) = path.split_at_checked(self.0.len())?;
        let is_it = if case_sensitive { *start == *self.0 } else { start.eq_ignore_ascii_case(&self.0) };
        rest.strip_prefix('/').filter(|_| is_it)
    }
}

impl FromStr for PathPrefix {
    type Err = InvalidPrefix;

    fn from_str(text: &str) -> Result<Self, InvalidPrefix> {
        let fits = |segment: &str| segment.len() <= MAX_PREFIX_SEGMENT && is_segment(segment);
        if text.split('/').count() > MAX_PREFIX_SEGMENTS || !text.split('/').all(fits) {
            return Err(InvalidPrefix::Form);
        }
        let first = text.split('/').next().unwrap_or_default().to_ascii_uppercase();
        if RESERVED.binary_search(&&*first).is_ok() {
            return Err(InvalidPrefix::Reserved);
        }
        if (2..=4).contains(&first.len()) && first.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(InvalidPrefix::Gs1Key);
        }
        Ok(Self(text.into()))
    }
}

impl TryFrom<String> for PathPrefix {
    type Error = InvalidPrefix;

    fn try_from(text: String) -> Result<Self, InvalidPrefix> {
        text.parse()
    }
}

impl From<PathPrefix> for String {
    fn from(prefix: PathPrefix) -> Self {
        prefix.0.into()
    }
}

impl fmt::Display for PathPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Which paths of a short domain lead to its links, beside `/SHORTID`. Names and forms are those of the API and of the database.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DomainPaths {
    /// Its short ids are below this path, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_prefix: Option<PathPrefix>,
    /// Short URLs and QR codes have the prefix.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub prefix_in_urls: bool,
    /// Short ids of somebody's choice may have several segments.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub multi_segment: bool,
}

impl DomainPaths {
    /// Whether nothing was set.
    #[must_use]
    pub fn is_default(&self) -> bool {
        self.path_prefix.is_none() && !self.prefix_in_urls && !self.multi_segment
    }

    /// The prefix that short URLs have.
    #[must_use]
    pub fn in_urls(&self) -> Option<&PathPrefix> {
        self.path_prefix.as_ref().filter(|_| self.prefix_in_urls)
    }

    /// The short id of a path with a slash in it, which comes without its first slash. A path that begins with the prefix always
    /// means what stands behind it, so that no path means two links.
    #[cold]
    #[must_use]
    pub fn short_id_in<'a>(&self, path: &'a str, case_sensitive: bool) -> Option<&'a str> {
        let behind = self.path_prefix.as_ref().and_then(|prefix| prefix.cut(path, case_sensitive));
        let short_id = behind.unwrap_or(path);
        let fits = self.multi_segment || !short_id.contains('/');
        // Case counts in a Digital Link, and no short id of somebody's choice is one.
        let is_short_id = short_id::is_well_formed(short_id) && !short_id::reads_as_digital_link(short_id);
        (fits && is_short_id).then_some(short_id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_short_and_in_nobodys_way() {
        use InvalidPrefix::{Form, Gs1Key, Reserved};
        let long = "a".repeat(33);
        for (text, expected) in [
            ("r", Ok(())),
            ("shop/go", Ok(())),
            ("a/b/c", Ok(())),
            ("2026/x", Err(Gs1Key)),
            ("20260/x", Ok(())),
            ("x/01", Ok(())),
            ("1", Ok(())),
            (&long[..32], Ok(())),
            (long.as_str(), Err(Form)),
            ("a/b/c/d", Err(Form)),
            ("", Err(Form)),
            ("/r", Err(Form)),
            ("r/", Err(Form)),
            ("a//b", Err(Form)),
            (".well-known", Err(Form)),
            ("a b", Err(Form)),
            ("é", Err(Form)),
            ("Redirections/x", Err(Reserved)),
            ("v2", Err(Reserved)),
            ("01", Err(Gs1Key)),
            ("8006/x", Err(Gs1Key)),
        ] {
            assert_eq!(text.parse::<PathPrefix>().map(|_| ()), expected, "{text:?}");
        }
    }

    #[test]
    fn no_path_means_two_links() {
        let plain = DomainPaths::default();
        let below = DomainPaths { path_prefix: "shop/go".parse().ok(), ..plain.clone() };
        let many = DomainPaths { multi_segment: true, ..plain.clone() };
        let both = DomainPaths { multi_segment: true, ..below.clone() };
        for (path, expected) in [
            // Without anything, with a prefix, with several segments, with both.
            ("a/b", [None, None, Some("a/b"), Some("a/b")]),
            ("shop/go/A", [None, Some("A"), Some("shop/go/A"), Some("A")]),
            ("SHOP/Go/a", [None, Some("a"), Some("SHOP/Go/a"), Some("a")]),
            ("shop/go/a/b", [None, None, Some("shop/go/a/b"), Some("a/b")]),
            ("shop/go/a/b/c", [None, None, None, Some("a/b/c")]),
            ("shop/go/shop/go/A", [None, None, None, Some("shop/go/A")]),
            ("shop/gone/A", [None, None, Some("shop/gone/A"), Some("shop/gone/A")]),
            ("shop/go", [None, None, Some("shop/go"), Some("shop/go")]),
            ("shop/go/", [None; 4]),
            ("shop/go//A", [None; 4]),
            ("/A", [None; 4]),
            ("a/b/c/d/e", [None; 4]),
            ("01/09506000134352", [None; 4]),
            ("shop/go/%41", [None; 4]),
            ("é/go/A", [None; 4]),
        ] {
            let found = [&plain, &below, &many, &both].map(|paths| paths.short_id_in(path, false));
            assert_eq!(found, expected, "{path}");
        }
        assert_eq!(below.short_id_in("shop/go/A", true), Some("A"));
        assert_eq!(below.short_id_in("Shop/go/A", true), None, "case counts on such a domain");
    }

    #[test]
    fn settings_are_stored_as_the_api_names_them() {
        let text = r#"{"pathPrefix":"shop/go","prefixInUrls":true,"multiSegment":true}"#;
        let paths: DomainPaths = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&paths).unwrap(), text);
        assert_eq!(serde_json::from_str::<DomainPaths>("{}").unwrap(), DomainPaths::default());
        assert!(serde_json::from_str::<DomainPaths>(r#"{"pathPrefix":"01"}"#).is_err());
    }
}
