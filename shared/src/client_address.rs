//! The client's address behind proxies (README, "Client address").
//!
//! `Forwarded` (RFC 7239) and `X-Forwarded-For` can be written by anybody who sends a request. They count only if the
//! peer of the connection is a proxy that the operator configured.

use std::{
    net::{IpAddr, Ipv6Addr, SocketAddr},
    str::FromStr,
};

use crate::networks::{Networks, NotANetwork};

/// The header by which an edge shows control that it is one: then `X-Forwarded-For` holds the client alone.
pub const EDGE_TOKEN: &str = "x-waymark-edge";

/// Headers that proxies add. A request over loopback that has one came through a proxy that was not configured as
/// trusted: it is limited by its address, and not treated as a program of this machine.
pub const PROXY_HEADERS: [&str; 4] = ["x-forwarded-for", "forwarded", "x-real-ip", "via"];

/// The one header in which trusted proxies name the client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ForwardedHeader {
    /// `X-Forwarded-For`.
    #[default]
    XForwardedFor,
    /// `Forwarded` (RFC 7239).
    Forwarded,
}

impl ForwardedHeader {
    /// The name in lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::XForwardedFor => "x-forwarded-for",
            Self::Forwarded => "forwarded",
        }
    }
}

/// A text that names none of the two headers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither X-Forwarded-For nor Forwarded")]
pub struct NotAForwardedHeader(String);

impl FromStr for ForwardedHeader {
    type Err = NotAForwardedHeader;

    fn from_str(text: &str) -> Result<Self, NotAForwardedHeader> {
        let named = [Self::XForwardedFor, Self::Forwarded];
        let found = named.into_iter().find(|header| header.as_str().eq_ignore_ascii_case(text));
        found.ok_or_else(|| NotAForwardedHeader(text.to_owned()))
    }
}

/// The trusted proxies, and the header in which they name the client; none by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedProxies {
    networks: Networks,
    header: ForwardedHeader,
    /// Whether there is a TLS proxy in front, which may run on this machine.
    behind_tls_proxy: bool,
}

/// Where a request came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress {
    /// The client's address, or that of the proxy if the proxy names no client.
    pub ip: IpAddr,
    /// Whether no proxy stands between: only then loopback means a program of this machine.
    pub is_direct: bool,
}

impl ClientAddress {
    /// Whether the client is a program of this machine, which limits by address leave alone.
    #[must_use]
    pub const fn is_local(self) -> bool {
        self.is_direct && self.ip.is_loopback()
    }

    /// The address by which the client is limited; `None` for a program of this machine.
    #[must_use]
    pub const fn limited(self) -> Option<IpAddr> {
        if self.is_local() { None } else { Some(self.ip) }
    }
}

impl FromStr for TrustedProxies {
    type Err = NotANetwork;

    /// Parses a comma-separated list of addresses and networks; an empty text is an empty list.
    fn from_str(text: &str) -> Result<Self, NotANetwork> {
        Ok(Self { networks: text.parse()?, ..Self::default() })
    }
}

impl TrustedProxies {
    /// The same proxies, which name the client in `header`.
    #[must_use]
    pub fn reading(self, header: ForwardedHeader) -> Self {
        Self { header, ..self }
    }

    /// The same proxies; behind a TLS proxy, a connection over loopback may be from anybody.
    #[must_use]
    pub fn behind_tls_proxy(self, behind_tls_proxy: bool) -> Self {
        Self { behind_tls_proxy, ..self }
    }

    /// Whether a connection is exempt from bounds by address: a trusted proxy carries those of others, and loopback
    /// is a local program unless there is a TLS proxy in front.
    #[must_use]
    pub fn is_exempt(&self, peer: IpAddr) -> bool {
        let peer = peer.to_canonical();
        self.trust(peer) || (peer.is_loopback() && !self.behind_tls_proxy)
    }

    /// The header in which they name the client; the other one is ignored.
    #[must_use]
    pub const fn header(&self) -> ForwardedHeader {
        self.header
    }

    /// Whether no proxy is trusted.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.networks.is_empty()
    }

    /// Whether an address is that of a trusted proxy.
    #[must_use]
    pub fn trust(&self, ip: IpAddr) -> bool {
        self.networks.contain(ip)
    }

    /// The client's address: that of the connection, or the one named by trusted proxies.
    ///
    /// Each proxy appends the address that called it to [`Self::header`], whose lines form one list. The list is read
    /// from the right, skipping trusted proxies and invalid entries, up to the first other address. Everything to the
    /// left of it is unverified. If all are trusted, the client is the leftmost; if there is no address, it is the
    /// proxy itself.
    pub fn client<'a>(
        &self,
        peer: IpAddr,
        lines: impl DoubleEndedIterator<Item = &'a [u8]>,
    ) -> ClientAddress {
        let peer = peer.to_canonical();
        if !self.trust(peer) {
            return ClientAddress { ip: peer, is_direct: !self.behind_tls_proxy };
        }
        let read = match self.header {
            ForwardedHeader::XForwardedFor => node,
            ForwardedHeader::Forwarded => forwarded_node,
        };
        let mut ip = peer;
        for hop in lines.rev().flat_map(|line| FromRight::new(line, b',')).filter_map(read) {
            ip = hop;
            if !self.trust(hop) {
                break;
            }
        }
        ClientAddress { ip, is_direct: false }
    }
}

/// What one client has to itself, for limits: an IPv4 address, or a /64 of IPv6.
#[must_use]
pub fn network(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(_) => ip,
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).into(),
    }
}

/// The parts of a line between separators outside of quoted strings, the last one first.
///
/// Reading from the right gives the same result for what a proxy appended, whatever a client wrote before it, even an
/// open quote.
struct FromRight<'a> {
    rest: Option<&'a [u8]>,
    separator: u8,
}

impl<'a> FromRight<'a> {
    fn new(line: &'a [u8], separator: u8) -> Self {
        Self { rest: Some(line), separator }
    }
}

impl<'a> Iterator for FromRight<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let line = self.rest.take()?;
        let mut is_quoted = false;
        for (at, byte) in line.iter().enumerate().rev() {
            let (before, from) = line.split_at(at);
            if *byte == b'"' {
                let escapes = before.iter().rev().take_while(|byte| **byte == b'\\').count();
                // A quote behind an odd number of backslashes belongs to the text.
                if !is_quoted || escapes % 2 == 0 {
                    is_quoted = !is_quoted;
                }
            } else if *byte == self.separator && !is_quoted {
                self.rest = Some(before);
                return from.get(1..);
            }
        }
        Some(line)
    }
}

/// The address that an element of `Forwarded` names by `for`, if it does so once.
fn forwarded_node(element: &[u8]) -> Option<IpAddr> {
    let mut named = None;
    for pair in FromRight::new(element, b';') {
        let Some(at) = pair.iter().position(|byte| *byte == b'=') else { continue };
        let (name, value) = pair.split_at(at);
        if name.trim_ascii().eq_ignore_ascii_case(b"for") && named.replace(value.get(1..)?).is_some() {
            return None;
        }
    }
    let value = named?.trim_ascii();
    // No address has a character that must be escaped.
    match value.strip_prefix(b"\"") {
        Some(quoted) => node(quoted.strip_suffix(b"\"")?),
        None => node(value),
    }
}

/// An address, with a port or in brackets as some proxies write it.
fn node(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?.trim();
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let ip = bare.parse::<IpAddr>().or_else(|_| text.parse::<SocketAddr>().map(|address| address.ip()));
    ip.map(|ip| ip.to_canonical()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behind_a_tls_proxy_loopback_is_not_local() {
        let [loopback, mapped, stranger] =
            ["127.0.0.1", "::ffff:127.0.0.1", "192.0.2.1"].map(|ip| ip.parse().unwrap());
        for (list, behind, expected) in
            [("", false, true), ("", true, false), ("10.0.0.0/8", true, false), ("127.0.0.1", true, true)]
        {
            let proxies = list.parse::<TrustedProxies>().unwrap().behind_tls_proxy(behind);
            for ip in [loopback, mapped] {
                assert_eq!(proxies.is_exempt(ip), expected, "{list:?} {behind}");
                let is_local = proxies.client(ip, std::iter::empty()).is_local();
                assert_eq!(is_local, !behind, "{list:?} {behind}");
            }
            assert!(!proxies.is_exempt(stranger));
        }
    }

    #[test]
    fn lists_of_proxies() {
        for (text, expected) in [
            ("", Some(0)),
            (" , ", Some(0)),
            ("10.0.0.0/8", Some(1)),
            ("127.0.0.1, ::1 ,fd00::/8", Some(3)),
            ("10.0.0.0/33", None),
            ("proxy.example", None),
            ("10.0.0.1:80", None),
            ("*", None),
        ] {
            let read = text.parse::<TrustedProxies>().ok().map(|proxies| proxies.networks.texts().count());
            assert_eq!(read, expected, "{text:?}");
        }
        let proxies: TrustedProxies = "10.0.0.0/8,::1,::ffff:192.0.2.1".parse().unwrap();
        for (ip, expected) in [
            ("10.1.2.3", true),
            ("::ffff:10.1.2.3", true),
            ("11.0.0.1", false),
            ("::1", true),
            ("127.0.0.1", false),
            ("192.0.2.1", true),
        ] {
            assert_eq!(proxies.trust(ip.parse().unwrap()), expected, "{ip}");
        }
    }

    fn client(proxies: &TrustedProxies, peer: &str, lines: &[&[u8]]) -> ClientAddress {
        proxies.client(peer.parse().unwrap(), lines.iter().copied())
    }

    #[test]
    fn the_header_is_one_of_two() {
        for (text, expected) in [
            ("X-Forwarded-For", Some(ForwardedHeader::XForwardedFor)),
            ("forwarded", Some(ForwardedHeader::Forwarded)),
            ("X-Real-IP", None),
            ("", None),
            ("X-Forwarded-For, Forwarded", None),
        ] {
            assert_eq!(text.parse::<ForwardedHeader>().ok(), expected, "{text:?}");
        }
    }

    #[test]
    fn only_trusted_proxies_name_the_client() {
        use ForwardedHeader::{Forwarded as F, XForwardedFor as X};
        let proxies: TrustedProxies = "10.0.0.0/8, fd00::/8".parse().unwrap();
        let (proxy, client_) = ("10.0.0.1", "203.0.113.7");
        for (header, peer, lines, expected, why) in [
            (X, "203.0.113.9", &["1.1.1.1"][..], "203.0.113.9", "a client does not name itself"),
            (F, "203.0.113.9", &["for=1.1.1.1"], "203.0.113.9", "in neither form"),
            (X, "::ffff:203.0.113.9", &[], "203.0.113.9", "an address in one form"),
            (X, proxy, &[], proxy, "a proxy that says nothing"),
            (X, proxy, &[""], proxy, "an empty list says nothing"),
            (X, proxy, &["203.0.113.7"], client_, "a proxy's word"),
            (X, "::ffff:10.0.0.1", &["203.0.113.7"], client_, "by a socket of both families"),
            (X, proxy, &["6.6.6.6, 203.0.113.7"], client_, "what the client wrote is left of it"),
            (X, proxy, &["6.6.6.6,10.3.3.3, 203.0.113.7"], client_, "a trusted name left of it"),
            (X, proxy, &["203.0.113.7, 10.9.9.9 ,, fd00::2"], client_, "past several proxies"),
            (X, proxy, &["6.6.6.6", "203.0.113.7", "10.9.9.9"], client_, "lines are one list"),
            (X, proxy, &["10.2.2.2, 10.3.3.3"], "10.2.2.2", "a client among the proxies"),
            (X, proxy, &["203.0.113.7:4711"], client_, "with a port"),
            (X, proxy, &["2001:db8::7"], "2001:db8::7", "IPv6"),
            (X, proxy, &["[2001:db8::7]:4711"], "2001:db8::7", "IPv6 with a port"),
            (X, proxy, &["[2001:db8::7]"], "2001:db8::7", "IPv6 in brackets"),
            (X, proxy, &["::ffff:203.0.113.7"], client_, "mapped"),
            (X, proxy, &["unknown"], proxy, "no address"),
            (X, proxy, &["unknown, 203.0.113.7"], client_, "an unreadable hop hides nobody"),
            (X, proxy, &["x, 203.0.113.7"], client_, "nor does a broken one"),
            (X, proxy, &["203.0.113.7, unknown, 10.9.9.9"], client_, "unreadable hops are passed over"),
            (X, proxy, &["\"6.6.6.6, 203.0.113.7"], client_, "an open quote on the left"),
            (X, proxy, &["203.0.113.7 6.6.6.6"], proxy, "no comma"),
            (X, proxy, &["127.0.0.1"], "127.0.0.1", "a proxy may name loopback"),
            (F, proxy, &["for=203.0.113.7"], client_, "the standard's header"),
            (F, proxy, &["For=\"[2001:db8::7]:4711\";proto=https;by=10.0.0.1"], "2001:db8::7", "quoted"),
            (F, proxy, &["for=6.6.6.6, for=203.0.113.7;host=\"a,b;c\""], client_, "commas in quotes"),
            (F, proxy, &["for=6.6.6.6, for=203.0.113.7;host=\"a\\\",b\""], client_, "escaped quotes"),
            (F, proxy, &["for=203.0.113.7, for=10.9.9.9"], client_, "past proxies"),
            (F, proxy, &["for=\"6.6.6.6, for=203.0.113.7"], client_, "an open quote on the left"),
            (F, proxy, &["junk\\, for=203.0.113.7"], client_, "a backslash on the left"),
            (
                F,
                proxy,
                &["for=203.0.113.7, proto=https"],
                client_,
                "an element without a client is passed over",
            ),
            (F, proxy, &["for=_hidden"], proxy, "a name that hides"),
            (F, proxy, &["for=unknown"], proxy, "unknown"),
            (F, proxy, &["for=6.6.6.6;for=203.0.113.7"], proxy, "two clients in one element"),
            (F, proxy, &["for=\"203.0.113.7"], proxy, "an open quote"),
            (F, proxy, &["203.0.113.7"], proxy, "no pair"),
        ] {
            let proxies = proxies.clone().reading(header);
            let lines: Vec<&[u8]> = lines.iter().map(|line| line.as_bytes()).collect();
            let found = client(&proxies, peer, &lines);
            assert_eq!(found.ip, expected.parse::<IpAddr>().unwrap(), "{why}");
            assert_eq!(found.is_direct, peer.contains("203.0.113.9"), "{why}");
        }
        let found = client(&proxies, proxy, &[b"6.6.6.6\xff, 203.0.113.7"]);
        assert_eq!(found.ip.to_string(), client_, "bytes that are no text");
    }

    #[test]
    fn through_a_trusted_proxy_nobody_is_local() {
        let proxies: TrustedProxies = "127.0.0.1".parse().unwrap();
        for (trusted, lines, expected) in [
            (false, &[][..], true),
            (false, &[&b"203.0.113.7"[..]], true),
            (true, &[], false),
            (true, &[b"127.0.0.1"], false),
            (true, &[b"::1, unknown"], false),
            (true, &[b"203.0.113.7"], false),
        ] {
            let proxies = if trusted { proxies.clone() } else { TrustedProxies::default() };
            let found = client(&proxies, "127.0.0.1", lines);
            assert_eq!((found.is_local(), found.limited().is_none()), (expected, expected), "{lines:?}");
        }
    }

    proptest::proptest! {
        /// Whatever a client writes, the hop that its proxy appends counts: on the same line or on its own.
        #[test]
        fn headers_written_by_clients_do_not_change_the_address(
            junk: Vec<u8>,
            text in "[a-zA-Z=\",;\\\\\\[\\]:0-9. ]{0,60}",
            is_one_line: bool,
            is_standard: bool,
        ) {
            let (header, hop) = if is_standard {
                (ForwardedHeader::Forwarded, "for=\"[2001:db8::7]:4711\";proto=https")
            } else {
                (ForwardedHeader::XForwardedFor, "[2001:db8::7]:4711")
            };
            let proxies = "10.0.0.0/8".parse::<TrustedProxies>().unwrap().reading(header);
            for left in [&junk[..], text.as_bytes()] {
                let joined = [left, b", ", hop.as_bytes()].concat();
                let lines = if is_one_line { vec![&joined[..]] } else { vec![left, hop.as_bytes()] };
                let found = client(&proxies, "10.0.0.1", &lines);
                proptest::prop_assert_eq!(found.ip.to_string(), "2001:db8::7");
                let alone = client(&proxies, "10.0.0.1", &[left]);
                proptest::prop_assert!(!alone.is_local());
            }
        }
    }
}
