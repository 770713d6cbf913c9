//! The client's address behind proxies: who may name it, and what they say (issue 3, "Location and context").
//!
//! `Forwarded` (RFC 7239) and `X-Forwarded-For` are written by whoever sends the request; they count only
//! where the other end of the connection is a proxy that the operator named.

use std::{
    net::{IpAddr, Ipv6Addr, SocketAddr},
    str::FromStr,
};

use ipnet::IpNet;

/// The header by which an edge shows control that it is one: then `X-Forwarded-For` holds the client alone.
pub const EDGE_TOKEN: &str = "x-waymark-edge";

/// The proxies whose word about the client counts; none by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<IpNet>);

/// An entry of a list of proxies that is neither an address nor a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither an address nor a network such as 10.0.0.0/8")]
pub struct NotANetwork(String);

impl FromStr for TrustedProxies {
    type Err = NotANetwork;

    /// Reads addresses and networks with commas between them; an empty text is none.
    fn from_str(text: &str) -> Result<Self, NotANetwork> {
        let entries = text.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        let network = |entry: &str| {
            let address = entry.parse::<IpAddr>().map(|ip| IpNet::from(ip.to_canonical()));
            address.or_else(|_| entry.parse::<IpNet>()).map_err(|_| NotANetwork(entry.to_owned()))
        };
        entries.map(network).collect::<Result<_, _>>().map(Self)
    }
}

impl TrustedProxies {
    /// Whether an address is that of a trusted proxy.
    #[must_use]
    pub fn trust(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        self.0.iter().any(|network| network.contains(&ip))
    }

    /// The client's address: that of the connection, or what trusted proxies say in their headers.
    ///
    /// Each proxy appends the address it was called from, so the list is walked from its right end past the
    /// trusted ones; the first other address is the client. A list with anything else in it counts for nothing,
    /// and so do two headers that name different clients: a proxy writes one of them, and may pass on the
    /// other from anybody. Then the client is the proxy itself.
    pub fn client<'a>(
        &self,
        peer: IpAddr,
        forwarded: impl Iterator<Item = &'a [u8]>,
        x_forwarded_for: impl Iterator<Item = &'a [u8]>,
    ) -> IpAddr {
        let peer = peer.to_canonical();
        if !self.trust(peer) {
            return peer;
        }
        // Spec gap: what happens when both headers come is not shown.
        match (self.walk(forwarded, forwarded_hops), self.walk(x_forwarded_for, plain_hops)) {
            (Ok(Some(client)), Ok(None)) | (Ok(None), Ok(Some(client))) => client,
            (Ok(Some(one)), Ok(Some(other))) if one == other => one,
            _ => peer,
        }
    }

    /// The client that the lines of one header name; `None` when they name nobody.
    fn walk<'a>(
        &self,
        lines: impl Iterator<Item = &'a [u8]>,
        hops: fn(&str, &mut Vec<IpAddr>) -> Result<(), Malformed>,
    ) -> Result<Option<IpAddr>, Malformed> {
        let mut chain = Vec::new();
        for line in lines {
            hops(std::str::from_utf8(line).map_err(|_| Malformed)?, &mut chain)?;
        }
        let client = chain.iter().rev().find(|ip| !self.trust(**ip)).or(chain.first());
        Ok(client.copied())
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

#[derive(Debug)]
struct Malformed;

/// The addresses of a line of `X-Forwarded-For`.
fn plain_hops(line: &str, hops: &mut Vec<IpAddr>) -> Result<(), Malformed> {
    for entry in line.split(',').map(str::trim).filter(|entry| !entry.is_empty()) {
        hops.push(node(entry)?);
    }
    Ok(())
}

/// The addresses of a line of `Forwarded`: each element must name one.
fn forwarded_hops(line: &str, hops: &mut Vec<IpAddr>) -> Result<(), Malformed> {
    for element in split_unquoted(line, ',')?.into_iter().filter(|element| !element.is_empty()) {
        let mut named = None;
        for pair in split_unquoted(element, ';')?.into_iter().filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').ok_or(Malformed)?;
            if name.trim().eq_ignore_ascii_case("for") && named.replace(value.trim()).is_some() {
                return Err(Malformed);
            }
        }
        let value = named.ok_or(Malformed)?;
        // No address has a character that must be escaped.
        let unquoted =
            value.strip_prefix('"').map(|rest| rest.strip_suffix('"').ok_or(Malformed)).transpose()?;
        hops.push(node(unquoted.unwrap_or(value))?);
    }
    Ok(())
}

/// The parts of a text between separators that are outside of quoted strings, trimmed.
fn split_unquoted(text: &str, separator: char) -> Result<Vec<&str>, Malformed> {
    let (mut parts, mut start, mut quoted, mut escaped) = (Vec::new(), 0, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            c if c == separator && !quoted => {
                parts.push(text[start..at].trim());
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    if quoted { Err(Malformed) } else { Ok(parts) }
}

/// An address, with a port or in brackets as some proxies write it.
fn node(text: &str) -> Result<IpAddr, Malformed> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let ip = bare.parse::<IpAddr>().or_else(|_| text.parse::<SocketAddr>().map(|address| address.ip()));
    ip.map(|ip| ip.to_canonical()).map_err(|_| Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

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
            let read = text.parse::<TrustedProxies>().ok().map(|proxies| proxies.0.len());
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

    #[test]
    fn only_trusted_proxies_name_the_client() {
        let proxies: TrustedProxies = "10.0.0.0/8, fd00::/8".parse().unwrap();
        let proxy = "10.0.0.1";
        let x = |list: &'static [&'static str]| (&[][..], list);
        let f = |list: &'static [&'static str]| (list, &[][..]);
        for (peer, (forwarded, for_), expected, why) in [
            ("203.0.113.9", x(&["1.1.1.1"]), "203.0.113.9", "a client does not name itself"),
            ("203.0.113.9", f(&["for=1.1.1.1"]), "203.0.113.9", "in neither form"),
            ("::ffff:203.0.113.9", x(&[]), "203.0.113.9", "an address in one form"),
            (proxy, x(&[]), proxy, "a proxy that says nothing"),
            (proxy, x(&[""]), proxy, "an empty list says nothing"),
            (proxy, x(&["203.0.113.7"]), "203.0.113.7", "a proxy's word"),
            ("::ffff:10.0.0.1", x(&["203.0.113.7"]), "203.0.113.7", "by a socket of both families"),
            (proxy, x(&["6.6.6.6, 203.0.113.7"]), "203.0.113.7", "what the client wrote is left of it"),
            (
                proxy,
                x(&["6.6.6.6,10.3.3.3, 203.0.113.7"]),
                "203.0.113.7",
                "a trusted name behind does not count",
            ),
            (proxy, x(&["203.0.113.7, 10.9.9.9 ,, fd00::2"]), "203.0.113.7", "past several proxies"),
            (proxy, x(&["6.6.6.6", "203.0.113.7", "10.9.9.9"]), "203.0.113.7", "lines are one list"),
            (proxy, x(&["10.2.2.2, 10.3.3.3"]), "10.2.2.2", "a client among the proxies"),
            (proxy, x(&["203.0.113.7:4711"]), "203.0.113.7", "with a port"),
            (proxy, x(&["2001:db8::7"]), "2001:db8::7", "IPv6"),
            (proxy, x(&["[2001:db8::7]:4711"]), "2001:db8::7", "IPv6 with a port"),
            (proxy, x(&["::ffff:203.0.113.7"]), "203.0.113.7", "mapped"),
            (proxy, x(&["unknown"]), proxy, "no address"),
            (proxy, x(&["x, 203.0.113.7"]), proxy, "a malformed list counts for nothing"),
            (proxy, x(&["203.0.113.7 6.6.6.6"]), proxy, "no comma"),
            (proxy, f(&["for=203.0.113.7"]), "203.0.113.7", "the standard's header"),
            (proxy, f(&["For=\"[2001:db8::7]:4711\";proto=https;by=10.0.0.1"]), "2001:db8::7", "quoted"),
            (proxy, f(&["for=6.6.6.6, for=203.0.113.7;host=\"a,b;c\""]), "203.0.113.7", "commas in quotes"),
            (proxy, f(&["for=203.0.113.7, for=10.9.9.9"]), "203.0.113.7", "past proxies"),
            (proxy, f(&["for=_hidden"]), proxy, "a name that hides"),
            (proxy, f(&["for=unknown"]), proxy, "unknown"),
            (proxy, f(&["proto=https"]), proxy, "an element without a client"),
            (proxy, f(&["for=6.6.6.6;for=203.0.113.7"]), proxy, "two clients in one element"),
            (proxy, f(&["for=\"203.0.113.7"]), proxy, "an open quote"),
            (proxy, f(&["203.0.113.7"]), proxy, "no pair"),
            (proxy, (&["for=203.0.113.7"], &["203.0.113.7"]), "203.0.113.7", "both, and they agree"),
            (proxy, (&["for=6.6.6.6"], &["203.0.113.7"]), proxy, "both, and they do not"),
            (proxy, (&["x"], &["203.0.113.7"]), proxy, "both, one malformed"),
        ] {
            let client = proxies.client(
                peer.parse().unwrap(),
                forwarded.iter().map(|line| line.as_bytes()),
                for_.iter().map(|line| line.as_bytes()),
            );
            assert_eq!(client, expected.parse::<IpAddr>().unwrap(), "{why}");
        }
        let bytes = [&b"203.0.113.7\xff"[..]];
        let client = proxies.client(proxy.parse().unwrap(), [].into_iter(), bytes.into_iter());
        assert_eq!(client.to_string(), proxy, "bytes that are no text");
    }

    proptest::proptest! {
        #[test]
        fn any_headers_are_survived(forwarded: Vec<Vec<u8>>, text in "[for=\",;\\[\\]:0-9. ]{0,60}") {
            let proxies: TrustedProxies = "10.0.0.0/8".parse().unwrap();
            let lines = || forwarded.iter().map(Vec::as_slice).chain([text.as_bytes()]);
            let _ = proxies.client([10, 0, 0, 1].into(), lines(), lines());
        }
    }
}
