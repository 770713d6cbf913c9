//! Targets with tags for what a Digital Link says: `{01}`, `{10}`, `{21}`, `{22}` and `{thngId}`.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use shared::target::{MAX_BYTES, Target};

/// Unreserved characters of RFC 3986 stay as they are in a tag's value.
const VALUE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Values for the tags of a target; an absent one expands to nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tags<'a> {
    /// `{01}`.
    pub gtin: &'a str,
    /// `{22}`.
    pub variant: Option<&'a str>,
    /// `{10}`.
    pub lot: Option<&'a str>,
    /// `{21}`.
    pub serial: Option<&'a str>,
    /// `{thngId}`.
    pub thng_id: Option<&'a str>,
}

impl<'a> Tags<'a> {
    /// The value of a tag; `None`: there is no such tag.
    fn find(&self, tag: &str) -> Option<&'a str> {
        match tag {
            "01" => Some(self.gtin),
            "22" => Some(self.variant.unwrap_or_default()),
            "10" => Some(self.lot.unwrap_or_default()),
            "21" => Some(self.serial.unwrap_or_default()),
            "thngId" => Some(self.thng_id.unwrap_or_default()),
            _ => None,
        }
    }
}

/// The target with its tags replaced by percent-encoded values; unknown tags stay.
#[must_use]
pub fn expand(href: &str, tags: &Tags<'_>) -> String {
    let (mut out, mut rest) = (String::with_capacity(href.len() + 32), href);
    while let Some((before, from_tag)) = rest.split_once('{') {
        out.push_str(before);
        rest = match from_tag.split_once('}') {
            Some((tag, behind)) if tags.find(tag).is_some() => {
                out.extend(utf8_percent_encode(tags.find(tag).unwrap_or_default(), VALUE));
                behind
            }
            Some(_) | None => {
                out.push('{');
                from_tag
            }
        };
    }
    out.push_str(rest);
    out
}

/// What is wrong with a target: the same as with those of redirections, but for the tags.
pub(super) fn check(href: &str) -> Result<(), String> {
    if href.len() > MAX_BYTES {
        return Err(format!("must have at most {MAX_BYTES} bytes"));
    }
    let behind_scheme = href.find("://").map_or(0, |at| at + 3);
    let authority = href.get(behind_scheme..).and_then(|rest| rest.split(['/', '?', '#']).next());
    if authority.is_some_and(|authority| authority.contains('{')) {
        return Err("must not hold a tag in the host".to_owned());
    }
    // The longest values, percent-encoded: what is sent has a bounded length, too.
    let longest = "0".repeat(3 * 28);
    let value = Some(longest.as_str());
    let tags = Tags { gtin: "09528765123457", variant: value, lot: value, serial: value, thng_id: value };
    let sample = expand(href, &tags);
    if sample.contains(['{', '}']) {
        return Err("holds an unknown tag; allowed are {01} {10} {21} {22} {thngId}".to_owned());
    }
    Target::parse(&sample).map(|_| ()).map_err(|fault| fault.to_string())
}
