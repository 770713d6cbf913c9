//! Egress guard: where the service may send requests on behalf of a user. Never into the operator's own network.
//!
//! The URL is checked when it is stored, and each address it resolves to when it is connected to (the crate `egress`),
//! because a DNS answer may change in between.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use shared::networks::embedded_v4;
use url::{Host, Url};

use super::limits::MAX_URL;

/// Whether an address may be contacted on behalf of a user; the operator may allow `loopback` for tests.
#[must_use]
pub fn is_open(address: IpAddr, loopback: bool) -> bool {
    match address {
        IpAddr::V4(address) => is_open_v4(address, loopback),
        IpAddr::V6(address) => is_open_v6(address, loopback),
    }
}

fn is_open_v4(address: Ipv4Addr, loopback: bool) -> bool {
    if address.is_loopback() {
        return loopback;
    }
    let [a, b, c, _] = address.octets();
    let is_reserved = a == 0
        || address.is_private()
        || address.is_link_local()
        || address.is_documentation()
        || address.is_multicast()
        // Where a cloud answers the machines in it, though the address is a public one (Azure).
        || address == Ipv4Addr::new(168, 63, 129, 16)
        // Carriers' networks, protocol assignments, benchmarks, the old 6to4 relays, and all of class E.
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 198 && (18..20).contains(&b))
        || (a == 192 && b == 88 && c == 99)
        || a >= 240;
    !is_reserved
}

fn is_open_v6(address: Ipv6Addr, loopback: bool) -> bool {
    if address.is_loopback() {
        return loopback;
    }
    // Each way of writing an IPv4 address as an IPv6 one leads to that address.
    if let Some(inner) = inner_v4(address) {
        return is_open_v4(inner, loopback);
    }
    let [first, second, ..] = address.segments();
    // Only global unicast, without documentation prefixes, Teredo and other special ranges.
    first & 0xe000 == 0x2000 && !(first == 0x2001 && (second < 0x0200 || second == 0x0db8)) && first != 0x3fff
}

fn inner_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    match address.segments() {
        // 6to4
        [0x2002, high, low, ..] => {
            let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
            Some(Ipv4Addr::new(a, b, c, d))
        }
        _ => embedded_v4(address),
    }
}

/// Checks a URL without resolving its name.
///
/// # Errors
/// The fault, as a sentence without the name of the member.
pub fn check_url(text: &str, loopback: bool) -> Result<Url, String> {
    let (url, is_loopback) = check_host(text, loopback)?;
    match url.scheme() {
        "https" => Ok(url),
        "http" if loopback && is_loopback => Ok(url),
        _ => Err("must begin with https://".to_owned()),
    }
}

/// The ports of pages. With others, whether something answers would show what runs where.
const PAGE_PORTS: [u16; 2] = [80, 443];

/// Checks the URL of a page that is looked at and sent nothing: as [`check_url`], and http is allowed, too. Its port is 80 or 443, unless
/// the operator allows `loopback`.
///
/// # Errors
/// The fault, as a sentence without the name of the member.
pub fn check_page(text: &str, loopback: bool) -> Result<Url, String> {
    let (url, _) = check_host(text, loopback)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err("must begin with https:// or http://".to_owned());
    }
    let is_of_pages = url.port_or_known_default().is_some_and(|port| PAGE_PORTS.contains(&port));
    if is_of_pages || loopback { Ok(url) } else { Err("must have the port 80 or 443".to_owned()) }
}

/// The URL, and whether its host is this machine by its name.
fn check_host(text: &str, loopback: bool) -> Result<(Url, bool), String> {
    if text.len() > MAX_URL {
        return Err(format!("must have at most {MAX_URL} bytes"));
    }
    if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err("must not hold spaces or control characters".to_owned());
    }
    let url = Url::parse(text).map_err(|_| "must be an absolute URL".to_owned())?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not hold a user name or password".to_owned());
    }
    // The parser reads decimal, octal and hexadecimal hosts as the addresses that they are.
    let address = match url.host() {
        Some(Host::Ipv4(address)) => Some(IpAddr::V4(address)),
        Some(Host::Ipv6(address)) => Some(IpAddr::V6(address)),
        Some(Host::Domain(_)) => None,
        None => return Err("must name a host".to_owned()),
    };
    let name = url.host_str().unwrap_or_default().trim_end_matches('.').to_ascii_lowercase();
    let is_local_name = name == "localhost" || name.ends_with(".localhost");
    let is_inner = address.map_or(is_local_name && !loopback, |address| !is_open(address, loopback));
    let is_internal_name = [".local", ".internal", ".home.arpa"].iter().any(|end| name.ends_with(end));
    if is_inner || is_internal_name {
        return Err("must not lead to a private or local address".to_owned());
    }
    let is_loopback = is_local_name || address.is_some_and(|address| address.is_loopback());
    Ok((url, is_loopback))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn private_networks_are_refused_in_every_notation() {
        for (address, expected) in [
            ("93.184.216.34", true),
            ("1.1.1.1", true),
            ("2606:2800:220:1::1", true),
            ("2a00:1450:4001::1", true),
            ("::ffff:8.8.8.8", true),
            ("127.0.0.1", false),
            ("127.8.8.8", false),
            ("10.0.0.1", false),
            ("172.16.0.1", false),
            ("172.31.255.255", false),
            ("172.32.0.1", true),
            ("192.168.1.1", false),
            ("169.254.169.254", false),
            ("168.63.129.16", false),
            ("100.100.100.200", false),
            ("100.64.0.1", false),
            ("100.128.0.1", true),
            ("0.0.0.0", false),
            ("0.1.2.3", false),
            ("192.0.0.1", false),
            ("192.0.2.1", false),
            ("198.18.0.1", false),
            ("198.51.100.1", false),
            ("203.0.113.1", false),
            ("224.0.0.1", false),
            ("240.0.0.1", false),
            ("255.255.255.255", false),
            ("::", false),
            ("::1", false),
            ("::7f00:1", false),
            ("::ffff:127.0.0.1", false),
            ("::ffff:10.0.0.1", false),
            ("::ffff:0:10.0.0.1", false),
            ("64:ff9b::a9fe:a9fe", false),
            ("64:ff9b::808:808", true),
            ("64:ff9b:1::a9fe:a9fe", false),
            ("::ffff:168.63.129.16", false),
            ("2002:7f00:1::", false),
            ("2002:a9fe:a9fe::", false),
            ("2001:0:1::1", false),
            ("2001:db8::1", false),
            ("fc00::1", false),
            ("fd00:ec2::254", false),
            ("fe80::1", false),
            ("ff02::1", false),
            ("3fff::1", false),
        ] {
            assert_eq!(is_open(address.parse().unwrap(), false), expected, "{address}");
        }
        for (address, expected) in
            [("127.0.0.1", true), ("::1", true), ("::ffff:127.0.0.1", true), ("10.0.0.1", false)]
        {
            assert_eq!(is_open(address.parse().unwrap(), true), expected, "{address}");
        }
    }

    #[test]
    fn urls_are_checked_before_any_request() {
        let (private, https) = ("must not lead to a private or local address", "must begin with https://");
        for (url, expected) in [
            ("https://example.com/hook?a=b", Ok(())),
            ("https://example.com:8443/", Ok(())),
            ("https://8.8.8.8/", Ok(())),
            ("http://example.com/", Err(https)),
            ("ftp://example.com/", Err(https)),
            ("file:///etc/passwd", Err("must name a host")),
            ("example.com", Err("must be an absolute URL")),
            ("https://user@example.com/", Err("must not hold a user name or password")),
            ("https://user:pw@example.com/", Err("must not hold a user name or password")),
            ("https://exa mple.com/", Err("must not hold spaces or control characters")),
            ("https://example.com/\r\nHost: x", Err("must not hold spaces or control characters")),
            ("https://127.0.0.1/", Err(private)),
            ("https://2130706433/", Err(private)),
            ("https://0x7f000001/", Err(private)),
            ("https://0177.0.0.1/", Err(private)),
            ("https://127.1/", Err(private)),
            ("https://0/", Err(private)),
            ("https://[::1]/", Err(private)),
            ("https://[::ffff:7f00:1]/", Err(private)),
            ("https://[::ffff:169.254.169.254]/", Err(private)),
            ("https://[64:ff9b::10.0.0.1]/", Err(private)),
            ("https://0251.0376.0251.0376/", Err(private)),
            ("https://0xa9.0xfe.0xa9.0xfe/", Err(private)),
            ("https://2852039166/", Err(private)),
            ("https://100.64.0.1/", Err(private)),
            ("https://224.0.0.1/", Err(private)),
            ("https://@127.0.0.1/", Err(private)),
            ("https://169.254.169.254/latest/meta-data", Err(private)),
            ("https://localhost/", Err(private)),
            ("https://LOCALHOST./", Err(private)),
            ("https://a.localhost/", Err(private)),
            ("https://metadata.google.internal/", Err(private)),
            ("https://printer.local/", Err(private)),
            ("https://１２７.0.0.1/", Err(private)),
        ] {
            let found = check_url(url, false).map(|_| ());
            assert_eq!(found.as_ref().map_err(String::as_str), expected.as_ref().map_err(|e| *e), "{url}");
        }
        assert!(check_url(&format!("https://a.b/{}", "x".repeat(MAX_URL)), false).is_err());
        for (url, is_allowed) in [
            ("http://127.0.0.1:9/", true),
            ("http://localhost:9/", true),
            ("http://[::1]:9/", true),
            ("http://10.0.0.1/", false),
            ("http://example.com/", false),
            ("https://192.168.0.1/", false),
        ] {
            assert_eq!(check_url(url, true).is_ok(), is_allowed, "{url}");
        }
        for (url, is_allowed) in [
            ("http://example.com/", true),
            ("http://example.com:443/", true),
            ("https://example.com/", true),
            ("https://example.com:80/", true),
            ("http://example.com:8080/", false),
            ("https://example.com:22/", false),
            ("https://example.com:0/", false),
            ("http://93.184.216.34:6379/", false),
            ("ftp://example.com/", false),
            ("http://user@example.com/", false),
            ("http://0177.0.0.1/", false),
            ("http://[::ffff:169.254.169.254]/", false),
            ("http://metadata.google.internal/", false),
        ] {
            assert_eq!(check_page(url, false).is_ok(), is_allowed, "{url}");
        }
        assert!(check_page("http://127.0.0.1:8080/", true).is_ok(), "tests listen where they can");
    }
}
