//! Checks of targets with tags for what a Digital Link says.

use digital_link::{Tags, expand};
use shared::target::{MAX_BYTES, Target};

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
