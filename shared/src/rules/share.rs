//! Which side of a division by percentage a visitor is on, without a cookie and without a memory.
//!
//! A visitor is an address and a user agent. A hash of both under a key of the account and of the day of UTC places it
//! among 10,000 places. So every edge places it alike for the day, another day and another account place it anew, and
//! the hash is neither stored nor sent. The key follows from the account and the day: it is not secret. A visitor who
//! works out its place learns nothing about others.

use std::net::IpAddr;

use crate::{client_address::network, id::AccountId, time::UnixMillis};

/// Places among which visitors are divided: hundredths of a percent.
pub const PLACES: u16 = 10_000;

const CONTEXT: &str = "waymark 2026-11 percentages of redirect rules";
const DAY_MS: i64 = 86_400_000;

/// A visitor of an account on one day of UTC.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Visitor([u8; 32]);

crate::opaque!(Visitor);

impl Visitor {
    /// The visitor of an address with a user agent, which is empty where none was sent.
    ///
    /// Of IPv6 the first 64 bits count, because devices change the others every few hours.
    #[must_use]
    pub fn new(account: &AccountId, at: UnixMillis, ip: IpAddr, user_agent: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key(CONTEXT);
        // Each part but the last has a fixed length.
        hasher.update(&at.0.div_euclid(DAY_MS).to_be_bytes()).update(account.as_str().as_bytes());
        match network(ip.to_canonical()) {
            IpAddr::V4(v4) => hasher.update(&v4.to_ipv6_mapped().octets()),
            IpAddr::V6(v6) => hasher.update(&v6.octets()),
        };
        hasher.update(user_agent);
        Self(*hasher.finalize().as_bytes())
    }

    /// Its place in the division with a name, 0 to 9,999; divisions with different names are independent.
    #[must_use]
    pub fn place(&self, division: &str) -> u16 {
        let hash = blake3::keyed_hash(&self.0, division.as_bytes());
        let mut bytes = [0; 8];
        for (to, from) in bytes.iter_mut().zip(hash.as_bytes()) {
            *to = *from;
        }
        // The places differ in size by less than 1 in 10^15.
        let place = (u128::from(u64::from_be_bytes(bytes)) * u128::from(PLACES)) >> 64;
        u16::try_from(place).unwrap_or(PLACES - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(n: u8) -> AccountId {
        format!("U00000000000000000000{n:03}").parse().unwrap()
    }

    fn visitor(account_number: u8, at: i64, ip: &str, agent: &str) -> Visitor {
        Visitor::new(&account(account_number), UnixMillis(at), ip.parse().unwrap(), agent.as_bytes())
    }

    #[test]
    fn a_visitor_is_the_same_for_a_day() {
        let one = visitor(1, 0, "192.0.2.7", "a");
        for (other, is_same, why) in [
            (visitor(1, DAY_MS - 1, "192.0.2.7", "a"), true, "the last millisecond of the day"),
            (visitor(1, 0, "::ffff:192.0.2.7", "a"), true, "the same address, written as IPv6"),
            (visitor(1, DAY_MS, "192.0.2.7", "a"), false, "the next day"),
            (visitor(1, -1, "192.0.2.7", "a"), false, "the day before"),
            (visitor(2, 0, "192.0.2.7", "a"), false, "another account"),
            (visitor(1, 0, "192.0.2.8", "a"), false, "another address"),
            (visitor(1, 0, "192.0.2.7", "b"), false, "another user agent"),
        ] {
            assert_eq!(one == other, is_same, "{why}");
        }
        let [a, b, c] =
            ["2001:db8::1", "2001:db8::2:3:4:5", "2001:db8:0:1::1"].map(|ip| visitor(1, 0, ip, "a"));
        assert_eq!(a, b, "the same 64 bits");
        assert_ne!(a, c);
        assert_eq!(one.place("x"), visitor(1, 1, "192.0.2.7", "a").place("x"));
    }

    /// The inputs are fixed, so the counts are, too.
    #[test]
    fn visitors_are_divided_evenly_and_names_divide_anew() {
        let count = 20_000_u32;
        let places = |division: &str| -> Vec<u16> {
            let ip = |n: u32| std::net::Ipv4Addr::from_bits(0x0A00_0000 + n).to_string();
            (0..count).map(|n| visitor(1, 0, &ip(n), "a").place(division)).collect()
        };
        let (first, second) = (places(""), places("other"));
        assert!(first.iter().all(|place| *place < PLACES));
        let below = |places: &[u16], bound: u16| places.iter().filter(|place| **place < bound).count();
        // Four standard deviations are 1.5 % of all.
        for (bound, expected) in [(1_000, 2_000), (5_000, 10_000), (9_000, 18_000)] {
            assert!(below(&first, bound).abs_diff(expected) < 300, "{bound}: {}", below(&first, bound));
        }
        let both = first.iter().zip(&second).filter(|(a, b)| **a < 5_000 && **b < 5_000).count();
        assert!(both.abs_diff(5_000) < 300, "{both} are on the same side of both");
    }
}
