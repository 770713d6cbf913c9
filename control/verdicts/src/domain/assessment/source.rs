//! Who reported a scan, and so how much of it is believed.

use std::net::IpAddr;

use sha2::{Digest, Sha256};
use shared::networks;

use super::agent::AgentHash;

/// The network of an address as a device: all users within one are one.
#[must_use]
pub fn network_of(ip: IpAddr) -> AgentHash {
    let mut hasher = Sha256::new();
    match networks::network_of(ip).addr() {
        IpAddr::V4(v4) => hasher.update([&b"v4"[..], &v4.octets()[..3]].concat()),
        IpAddr::V6(v6) => hasher.update([&b"v6"[..], &v6.octets()[..6]].concat()),
    }
    let digest = hasher.finalize();
    AgentHash(digest.first_chunk::<8>().map_or(0, |first| u64::from_be_bytes(*first)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_network_is_one_device() {
        let of = |text: &str| network_of(text.parse().unwrap());
        assert_eq!(of("192.0.2.1"), of("192.0.2.254"));
        assert_eq!(of("192.0.2.1"), of("::ffff:192.0.2.9"));
        assert_eq!(of("2001:db8:1::1"), of("2001:db8:1:ffff::2"));
        assert_ne!(of("192.0.2.1"), of("192.0.3.1"));
        assert_ne!(of("2001:db8:1::1"), of("2001:db8:2::1"));
    }
}
