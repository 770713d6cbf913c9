//! What whoever runs the platform withholds: accounts, single links, and hosts that targets must not lead to.
//!
//! The list is short and held whole by every edge, so that one change of the log reaches all links that it concerns.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use url::{Host, Url};

use crate::{id::AccountId, networks::embedded_v4, redirect::RedirectKey};

/// One thing that is withheld.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Withheld {
    /// Every link on the short domains of a suspended account.
    Account(AccountId),
    /// A link that was taken down.
    Link(RedirectKey),
    /// Every link that leads to a host, or to one below it; as [`parse_host`] gives it.
    Host(Box<str>),
}

/// Reads something that is withheld; `None` for a kind of a newer release.
///
/// # Errors
/// The bytes are no JSON.
pub fn read_known<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Withheld>, D::Error> {
    Ok(Option::<Box<RawValue>>::deserialize(deserializer)?.as_deref().and_then(known))
}

/// Reads a list of what is withheld, without the kinds of a newer release.
///
/// # Errors
/// The bytes are no list.
pub fn read_all_known<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Withheld>, D::Error> {
    Ok(Vec::<Box<RawValue>>::deserialize(deserializer)?.iter().filter_map(|text| known(text)).collect())
}

fn known(text: &RawValue) -> Option<Withheld> {
    serde_json::from_str(text.get()).ok()
}

/// A host as it is withheld: in lower case, without a port and without a dot at the end. An IPv6 address that stands for
/// an IPv4 one is that one.
///
/// # Errors
/// The text is not an address and not a name with a dot in it, such as `example.com`.
pub fn parse_host(text: &str) -> Result<Box<str>, String> {
    let wrong = || format!("{text:?} is no host such as example.com");
    let host = Host::parse(text).map_err(|_| wrong())?;
    let is_name = matches!(host, Host::Domain(_));
    let host = normal(host);
    let fits = !is_name || (host.contains('.') && host.len() <= 253 && !host.contains('*'));
    if fits { Ok(host.into()) } else { Err(wrong()) }
}

/// The one form of a host in which it is compared.
fn normal<S: AsRef<str>>(host: Host<S>) -> String {
    match host {
        Host::Domain(name) => name.as_ref().trim_end_matches('.').to_owned(),
        Host::Ipv4(address) => address.to_string(),
        Host::Ipv6(address) => match embedded_v4(address) {
            Some(inner) => inner.to_string(),
            None => Host::<&str>::Ipv6(address).to_string(),
        },
    }
}

/// The host that a URL leads to, in the form of [`parse_host`]; `None` if it has none.
#[must_use]
pub fn host_of(url: &str) -> Option<Cow<'_, str>> {
    if let Some(host) = plain_host(url) {
        return Some(Cow::Borrowed(host));
    }
    // Whatever else a browser reads as a host: upper case, numbers, percent signs.
    let host = match written_host(url) {
        Some(host) => normal(Host::parse(host).ok()?),
        None => normal(Url::parse(url).ok()?.host()?),
    };
    Some(Cow::Owned(host))
}

/// The host of a URL as it is written, if it can be told without parsing all of the URL.
fn written_host(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let authority = &rest[..end];
    // A parser skips blanks, control characters and slashes, and a user name may stand before the host.
    if authority.is_empty() || !authority.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'@') {
        return None;
    }
    let length = match authority.find(']') {
        Some(end) => end + 1,
        None => authority.find(':').unwrap_or(authority.len()),
    };
    let (host, port) = authority.split_at(length);
    (port.is_empty() || port.starts_with(':')).then_some(host)
}

/// The host of a URL where it stands in its final form, which costs no parser.
fn plain_host(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let host = rest[..end].split(':').next()?;
    let is_plain = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.');
    let last = host.rsplit('.').next()?;
    // A last part with a digit in front may be a number, and `xn--` is checked by the parser.
    let fits = host.bytes().all(is_plain)
        && last.starts_with(|c: char| c.is_ascii_lowercase())
        && !host.contains("xn--")
        && !rest[..end].contains('@');
    fits.then_some(host)
}

/// A host and every host above it: what may be withheld for it to be.
pub fn and_parents(host: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(host), |host| host.split_once('.').map(|(_, parent)| parent))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hosts_are_read_as_a_browser_reads_them() {
        for (url, host) in [
            ("https://example.com/a?b=c", "example.com"),
            ("https://example.com", "example.com"),
            ("https://example.com:8443/", "example.com"),
            ("http://example.com?x", "example.com"),
            ("HTTPS://EXAMPLE.com./a", "example.com"),
            ("https://ex%61mple.com/", "example.com"),
            ("https://good.example@evil.example/", "evil.example"),
            ("https://evil.example\\@good.example/", "evil.example"),
            ("http://2130706433/", "127.0.0.1"),
            ("http://127.1:80/", "127.0.0.1"),
            ("http://[2001:DB8::1]:80/", "[2001:db8::1]"),
            ("http://[2001:DB8::1]", "[2001:db8::1]"),
            ("http://[::1]/", "[::1]"),
            // Each way of writing an IPv4 address as an IPv6 one.
            ("http://[::ffff:192.0.2.1]/", "192.0.2.1"),
            ("http://[::FFFF:c000:201]:8080/a", "192.0.2.1"),
            ("http://[::192.0.2.1]/", "192.0.2.1"),
            ("http://[::ffff:0:192.0.2.1]/", "192.0.2.1"),
            ("http://[64:ff9b::192.0.2.1]/", "192.0.2.1"),
            ("http://a@[::ffff:192.0.2.1]/", "192.0.2.1"),
            ("https://xn--bcher-kva.example/", "xn--bcher-kva.example"),
            ("https://localhost/", "localhost"),
        ] {
            assert_eq!(host_of(url).as_deref(), Some(host), "{url}");
        }
        for url in ["", "nothing", "mailto:a@b.example"] {
            assert_eq!(host_of(url), None, "{url}");
        }
    }

    #[test]
    fn hosts_are_parsed_and_others_refused() {
        for (text, host) in [
            ("Evil.Example.", "evil.example"),
            ("bücher.example", "xn--bcher-kva.example"),
            ("192.0.2.1", "192.0.2.1"),
            ("[2001:db8::1]", "[2001:db8::1]"),
            ("[::ffff:192.0.2.1]", "192.0.2.1"),
            ("[64:ff9b::c000:201]", "192.0.2.1"),
        ] {
            assert_eq!(parse_host(text).as_deref(), Ok(host), "{text}");
        }
        for text in ["", "com", "*.evil.example", "evil.example/a", "evil.example:80", "a b.example", "."] {
            assert!(parse_host(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_host_is_covered_by_those_above_it() {
        assert_eq!(and_parents("a.b.example").collect::<Vec<_>>(), ["a.b.example", "b.example", "example"]);
    }

    #[test]
    fn a_withheld_thing_is_json() {
        let account: AccountId = "UKXAGyEf8SQ5eTDmVgGpHqAa".parse().unwrap();
        for (withheld, json) in [
            (Withheld::Account(account), r#"{"account":"UKXAGyEf8SQ5eTDmVgGpHqAa"}"#),
            (Withheld::Link(RedirectKey::new("tn.gg", "A")), r#"{"link":{"domain":"tn.gg","folded":"A"}}"#),
            (Withheld::Host("evil.example".into()), r#"{"host":"evil.example"}"#),
        ] {
            assert_eq!(serde_json::to_string(&withheld).unwrap(), json);
            assert_eq!(serde_json::from_str::<Withheld>(json).unwrap(), withheld);
        }
    }

    #[test]
    fn kinds_of_a_newer_release_are_left_out() {
        #[derive(Debug, PartialEq, Eq, Deserialize)]
        struct One(#[serde(deserialize_with = "read_known")] Option<Withheld>);
        #[derive(Debug, PartialEq, Eq, Deserialize)]
        struct All(#[serde(deserialize_with = "read_all_known")] Vec<Withheld>);
        let host = Withheld::Host("evil.example".into());
        for (json, expected) in [
            (r#"{"host":"evil.example"}"#, Some(host.clone())),
            (r#"{"path":{"host":"evil.example","path":"/a"}}"#, None),
            ("null", None),
        ] {
            assert_eq!(serde_json::from_str::<One>(json).unwrap(), One(expected), "{json}");
        }
        let json = r#"[{"path":"/a"},{"host":"evil.example"},7]"#;
        assert_eq!(serde_json::from_str::<All>(json).unwrap(), All(vec![host]));
        assert!(serde_json::from_str::<All>("{}").is_err());
    }

    proptest! {
        #[test]
        fn a_host_as_it_is_written_is_what_the_parser_finds(
            url in "(https?://|HTTP://)?[a-zA-Z0-9.:@%_ \\t\\\\/\\[\\]-]{1,24}([/?#][a-z@:/]{0,6})?"
        ) {
            if let Some(host) = written_host(&url)
                && let Ok(parsed) = Url::parse(&url)
            {
                prop_assert_eq!(Host::parse(host).ok().map(normal), parsed.host().map(normal));
            }
        }

        #[test]
        fn a_host_without_the_parser_is_what_the_parser_finds(url in "https?://[a-z0-9.:@-]{1,20}(/[a-z]{0,3})?") {
            if let Some(host) = plain_host(&url)
                && let Ok(parsed) = Url::parse(&url)
            {
                prop_assert_eq!(parsed.host_str().map(|host| host.trim_end_matches('.')), Some(host));
            }
        }
    }
}
