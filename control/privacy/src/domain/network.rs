//! Networks whose data is erased.

use std::{fmt, net::IpAddr, str::FromStr};

use ipnet::{IpNet, Ipv4Net};
use serde::{Deserialize, Serialize};

/// Fewest bits of a network: those of providers have more, and with fewer a slip would erase half of an account.
const MIN_BITS_V4: u8 = 8;
const MIN_BITS_V6: u8 = 16;

/// A range of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Network(IpNet);

/// A text that is no network to erase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an address or a network, such as 203.0.113.0/24, of at least 8 bits of IPv4 or 16 of IPv6")]
pub struct InvalidNetwork;

impl Network {
    /// Whether an address is in it; an IPv4 address may be written as IPv6.
    #[must_use]
    pub fn contains(self, ip: IpAddr) -> bool {
        self.0.contains(&ip) || self.0.contains(&ip.to_canonical())
    }

    /// Whether it and another one have addresses in common.
    #[must_use]
    pub fn overlaps(self, other: &IpNet) -> bool {
        self.0.contains(other) || other.contains(&self.0)
    }

    /// The first and the last address.
    #[must_use]
    pub fn ends(self) -> (IpAddr, IpAddr) {
        (self.0.network(), self.0.broadcast())
    }
}

impl FromStr for Network {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, InvalidNetwork> {
        let address = text.parse::<IpAddr>().map(|ip| IpNet::from(ip.to_canonical()));
        let network = address.or_else(|_| text.parse::<IpNet>()).map_err(|_| InvalidNetwork)?;
        let network = canonical(network.trunc());
        let least = match network {
            IpNet::V4(_) => MIN_BITS_V4,
            IpNet::V6(_) => MIN_BITS_V6,
        };
        if network.prefix_len() < least { Err(InvalidNetwork) } else { Ok(Self(network)) }
    }
}

/// A network of IPv4 that is written as IPv6 as one of IPv4: addresses are compared with it as such.
fn canonical(network: IpNet) -> IpNet {
    let IpNet::V6(written) = network else { return network };
    let mapped = written.addr().to_ipv4_mapped().zip(written.prefix_len().checked_sub(96));
    mapped.and_then(|(ip, bits)| Ipv4Net::new(ip, bits).ok()).map_or(network, IpNet::V4)
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Network {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Network {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}
