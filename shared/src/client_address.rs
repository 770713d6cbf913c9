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
mod tests;
