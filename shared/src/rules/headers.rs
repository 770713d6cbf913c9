//! What conditions read of the headers and the query of a request, without memory of its own where nothing is encoded.

use std::borrow::Cow;

use url::form_urlencoded;

/// Most languages of an `Accept-Language` that are read: browsers send some ten, and each is compared by every condition.
pub const MAX_LANGUAGES: usize = 32;
/// Most parameters of a query that are read.
pub const MAX_PARAMETERS: usize = 64;

/// The languages of an `Accept-Language` with their qualities, in the order of the text.
///
/// `*` names no language. An item whose quality is not a number from 0 to 1 is left out. Only the first [`MAX_LANGUAGES`] items are
/// looked at, also where they name none.
pub fn accepted_languages(accepted: &str) -> impl Iterator<Item = (&str, f64)> {
    pieces(accepted, b',').take(MAX_LANGUAGES).filter_map(|item| {
        let mut parts = pieces(item, b';');
        let tag = parts.next().unwrap_or_default().trim_ascii();
        let mut quality: f64 = 1.0;
        for part in parts {
            let Some((name, value)) = split_at_byte(part, b'=') else { continue };
            if name.trim_ascii().eq_ignore_ascii_case("q") {
                quality = read_quality(value.trim_ascii())?;
            }
        }
        (!tag.is_empty() && tag != "*").then_some((tag, quality))
    })
}

/// A quality from 0 to 1.
fn read_quality(text: &str) -> Option<f64> {
    // As nearly all are written; a division rounds as the parser does.
    if let [b'0', b'.', tenth @ b'0'..=b'9'] = text.as_bytes() {
        return Some(f64::from(*tenth - b'0') / 10.0);
    }
    text.parse().ok().filter(|quality| (0.0..=1.0).contains(quality))
}

/// The parts of a text between bytes.
fn pieces(text: &str, at: u8) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest.take()?;
        let Some((piece, behind)) = split_at_byte(text, at) else { return Some(text) };
        rest = Some(behind);
        Some(piece)
    })
}

/// What is before and behind the first of these bytes, which is ASCII. In short texts this is faster than `split_once`.
#[inline]
#[must_use]
pub fn split_at_byte(text: &str, at: u8) -> Option<(&str, &str)> {
    let at = text.bytes().position(|byte| byte == at)?;
    Some((text.get(..at)?, text.get(at + 1..)?))
}

/// The host of a `Referer`, as it was sent; without port, and without the dot at its end.
#[must_use]
pub fn referer_host(referer: &str) -> Option<&str> {
    let (scheme, rest) = referer.trim().split_once("://")?;
    let is_scheme = !scheme.is_empty()
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'));
    if !is_scheme {
        return None;
    }
    let authority = rest.split(['/', '\\', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    let end = match host.find(']') {
        // An IPv6 address has colons of its own.
        Some(at) if host.starts_with('[') => at + 1,
        _ => host.find(':').unwrap_or(host.len()),
    };
    let host = host.get(..end).unwrap_or_default();
    Some(host.strip_suffix('.').unwrap_or(host)).filter(|host| !host.is_empty())
}

/// The first [`MAX_PARAMETERS`] parameters of a query with their values, decoded.
pub(super) fn parameters(query: &str) -> impl Iterator<Item = (Cow<'_, str>, Cow<'_, str>)> {
    form_urlencoded::parse(query.as_bytes()).take(MAX_PARAMETERS)
}

/// The parameters of a query that conditions read, with their values; without keys (`access_token`).
#[must_use]
pub fn query_parameters(query: &str) -> Vec<(String, String)> {
    parameters(query)
        .filter(|(name, _)| !is_access_token(name))
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}

/// Whether a decoded name of a parameter is that of a key, in any spelling that a server may take for it.
pub(super) fn is_access_token(name: &str) -> bool {
    let bytes = name.bytes().filter(|byte| *byte != b' ' && *byte != b'+');
    bytes.map(|byte| byte.to_ascii_lowercase()).eq(b"access_token".iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_accepted_language_has_its_quality() {
        for (accepted, expected) in [
            ("de-AT,en;q=0.5", &[("de-AT", 1.0), ("en", 0.5)][..]),
            (" fr ; q=0.8 , de;Q=1.000", &[("fr", 0.8), ("de", 1.0)]),
            ("*;q=0.1,en;q=0", &[("en", 0.0)]),
            ("de;q=2,fr;q=x,it;q=NaN,es;q=,pl", &[("pl", 1.0)]),
            ("en;level=1;q=0.3", &[("en", 0.3)]),
            (",;q=1, ,", &[]),
            ("", &[]),
        ] {
            let found: Vec<_> = accepted_languages(accepted).collect();
            assert_eq!(found, expected, "{accepted:?}");
        }
    }

    #[test]
    fn the_host_of_a_referer_is_found() {
        for (referer, expected) in [
            ("https://example.com/", Some("example.com")),
            ("http://WWW.example.com:8080/a?b#c", Some("WWW.example.com")),
            ("https://example.com", Some("example.com")),
            ("https://example.com.", Some("example.com")),
            ("https://a:b@example.com/@evil.example", Some("example.com")),
            ("https://example.com\\@evil.example", Some("example.com")),
            ("https://example.com?https://evil.example/", Some("example.com")),
            ("https://[2001:db8::1]:80/", Some("[2001:db8::1]")),
            ("android-app://com.example/", Some("com.example")),
            ("https:///a", None),
            ("https://:80/", None),
            ("about:blank", None),
            ("/a://b", None),
            ("://b", None),
            ("", None),
        ] {
            assert_eq!(referer_host(referer), expected, "{referer:?}");
        }
    }

    #[test]
    fn what_is_read_of_a_request_is_bounded() {
        let languages: Vec<String> = (0..=MAX_LANGUAGES).map(|n| format!("a{n}")).collect();
        let languages = format!("*,x;q=2,{}", languages.join(","));
        let last = accepted_languages(&languages).last();
        assert_eq!(last, Some((&*format!("a{}", MAX_LANGUAGES - 3), 1.0)));
        assert_eq!(accepted_languages(&languages).count(), MAX_LANGUAGES - 2);
        for nothing in ["x;q=2,", "*,", ",", "x;q=;q=1e999;q,"] {
            let hostile = format!("{}de", nothing.repeat(5_000));
            assert_eq!(accepted_languages(&hostile).next(), None, "{nothing}");
        }
        let query: Vec<String> = (0..=MAX_PARAMETERS).map(|n| format!("a{n}")).collect();
        let query = query.join("&&");
        let read = query_parameters(&query);
        assert_eq!(read.len(), MAX_PARAMETERS);
        assert_eq!(read.last().unwrap().0, format!("a{}", MAX_PARAMETERS - 1));
    }

    #[test]
    fn parameters_are_decoded_and_keys_left_out() {
        let query = "a=1&b&a=%C3%A4+b&&access_token=k&ACCESS%5Ftoken=k&c=%2B=d";
        let expected = [("a", "1"), ("b", ""), ("a", "ä b"), ("c", "+=d")];
        let found = query_parameters(query);
        assert_eq!(found, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }
}
