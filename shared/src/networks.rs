//! Lists of networks, such as those from which a key may be used.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    str::FromStr,
};

use ipnet::IpNet;

/// Addresses and networks (CIDR); an empty list has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Networks(Vec<IpNet>);

/// An entry of a list that is neither an address nor a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither an address nor a network such as 10.0.0.0/8")]
pub struct NotANetwork(String);

/// The IPv4 address that an IPv6 one stands for: whoever connects to it reaches that address.
///
/// These are `::a.b.c.d`, `::ffff:a.b.c.d`, `::ffff:0:a.b.c.d` and `64:ff9b::a.b.c.d`.
#[must_use]
pub fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let is_own = address.is_loopback() || address.is_unspecified();
    match address.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
            if !is_own =>
        {
            let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
            Some(Ipv4Addr::new(a, b, c, d))
        }
        _ => None,
    }
}

/// The network of a client's address: the first 24 bits of IPv4, the first 48 of IPv6.
///
/// An address of 6to4 (`2002::/16`, RFC 3056) has an IPv4 address after its first 16 bits: of it, too, 24 bits are left.
#[must_use]
pub fn network_of(client: IpAddr) -> IpNet {
    let client = client.to_canonical();
    let bits = match client {
        IpAddr::V4(_) => 24,
        IpAddr::V6(v6) if v6.segments()[0] == 0x2002 => 16 + 24,
        IpAddr::V6(_) => 48,
    };
    // Each length fits its family.
    IpNet::new(client, bits).map_or_else(|_| client.into(), |network| network.trunc())
}

impl Networks {
    /// The networks of some texts.
    ///
    /// # Errors
    /// The first that is neither an address nor a network.
    pub fn parse<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Self, NotANetwork> {
        let network = |entry: &str| {
            let address = entry.parse::<IpAddr>().map(|ip| IpNet::from(ip.to_canonical()));
            let network = address.or_else(|_| entry.parse::<IpNet>()).map(|network| network.trunc());
            network.map_err(|_| NotANetwork(entry.to_owned()))
        };
        Ok(Self(entries.into_iter().map(network).collect::<Result<_, _>>()?))
    }

    /// Whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether an address is in one of them; an IPv4 address may be written as IPv6.
    #[must_use]
    pub fn contain(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        self.0.iter().any(|network| network.contains(&ip))
    }

    /// Whether every address of this list is in the other one, too.
    #[must_use]
    pub fn are_within(&self, other: &Self) -> bool {
        self.0.iter().all(|network| other.0.iter().any(|outer| outer.contains(network)))
    }

    /// Each in its canonical form: `10.0.0.0/8`, also where host bits were given.
    pub fn texts(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(ToString::to_string)
    }
}

impl FromStr for Networks {
    type Err = NotANetwork;

    /// Parses a comma-separated list of addresses and networks; an empty text is an empty list.
    fn from_str(text: &str) -> Result<Self, NotANetwork> {
        Self::parse(text.split(',').map(str::trim).filter(|entry| !entry.is_empty()))
    }
}

impl fmt::Display for Networks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, network) in self.0.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{network}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_network_of_an_address_is_a_24_or_a_48() {
        for (client, expected) in [
            ("192.0.2.77", "192.0.2.0/24"),
            ("::ffff:192.0.2.77", "192.0.2.0/24"),
            ("2001:db8:1:2::7", "2001:db8:1::/48"),
            // 192.0.2.77 in 6to4.
            ("2002:c000:24d:1::7", "2002:c000:200::/40"),
            ("2003:c000:24d:1::7", "2003:c000:24d::/48"),
        ] {
            let network = network_of(client.parse().unwrap());
            assert_eq!(network.to_string(), expected, "{client}");
            assert_eq!(network_of(network.addr()), network, "the network of a network is itself: {client}");
        }
    }

    #[test]
    fn lists_are_parsed_and_written() {
        for (text, expected) in [
            ("", Some("")),
            ("10.1.2.3/8", Some("10.0.0.0/8")),
            ("192.0.2.7", Some("192.0.2.7/32")),
            ("2001:db8::1/32, 192.0.2.0/24 ,", Some("2001:db8::/32,192.0.2.0/24")),
            ("::ffff:192.0.2.7", Some("192.0.2.7/32")),
            ("10.0.0.0/33", None),
            ("10.0.0.0/8;10.0.0.1", None),
            ("example.com", None),
        ] {
            let parsed = text.parse::<Networks>().ok().map(|networks| networks.to_string());
            assert_eq!(parsed.as_deref(), expected, "{text}");
        }
        let networks: Networks = "192.0.2.0/24,2001:db8::/32".parse().unwrap();
        for (ip, expected) in
            [("192.0.2.9", true), ("::ffff:192.0.2.9", true), ("192.0.3.1", false), ("2001:db8:1::", true)]
        {
            assert_eq!(networks.contain(ip.parse().unwrap()), expected, "{ip}");
        }
        for (inner, outer, expected) in [
            ("10.1.0.0/16,10.2.3.4", "10.0.0.0/8", true),
            ("10.1.0.0/16,192.0.2.1", "10.0.0.0/8", false),
            ("10.0.0.0/8", "10.1.0.0/16", false),
            ("::/0", "0.0.0.0/0", false),
            ("", "10.0.0.0/8", true),
        ] {
            let [inner, outer]: [Networks; 2] = [inner, outer].map(|text| text.parse().unwrap());
            assert_eq!(inner.are_within(&outer), expected, "{inner} {outer}");
        }
        assert!(!Networks::default().contain("192.0.2.9".parse().unwrap()));
    }
}
