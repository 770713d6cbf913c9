//! Limits on misses: guessing short ids costs the guesser, not the store.

use std::{collections::hash_map::RandomState, hash::BuildHasher, net::IpAddr, num::NonZeroU32};

use governor::{DefaultDirectRateLimiter, DefaultKeyedRateLimiter, Quota, RateLimiter};
use shared::client_address::network;

use crate::config::Limits;

/// Buckets that addresses share: the keyed limiter never holds more.
const BUCKETS: u64 = 65_536;

/// Counts misses for each client and over all.
#[derive(Debug)]
pub(crate) struct Limiter {
    clients: DefaultKeyedRateLimiter<u32>,
    all: DefaultDirectRateLimiter,
    hasher: RandomState,
}

impl Limiter {
    /// Limits as configured; 0 counts as 1.
    pub(crate) fn new(limits: &Limits) -> Self {
        let quota = |per_second: u32, bursts: u32| {
            let rate = NonZeroU32::new(per_second).unwrap_or(NonZeroU32::MIN);
            Quota::per_second(rate)
                .allow_burst(rate.saturating_mul(NonZeroU32::MIN.saturating_add(bursts - 1)))
        };
        Self {
            clients: RateLimiter::keyed(quota(limits.misses_per_address, 4)),
            all: RateLimiter::direct(quota(limits.misses_per_second, 2)),
            hasher: RandomState::new(),
        }
    }

    /// Whether a client may miss once more; loopback always may.
    pub(crate) fn allows(&self, ip: IpAddr) -> bool {
        let ip = ip.to_canonical();
        if ip.is_loopback() {
            return true;
        }
        // The remainder is below 65,536.
        let bucket = (self.hasher.hash_one(network(ip)) % BUCKETS) as u32;
        self.clients.check_key(&bucket).is_ok() && self.all.check().is_ok()
    }

    /// Gives back the memory of clients that are quiet; called on a timer.
    pub(crate) fn forget(&self) {
        self.clients.retain_recent();
        self.clients.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn misses(limiter: &Limiter, ips: &[&str]) -> usize {
        ips.iter().filter(|ip| limiter.allows(ip.parse().unwrap())).count()
    }

    #[test]
    fn a_client_is_limited_by_its_network() {
        let limits = Limits { misses_per_address: 1, misses_per_second: 1_000_000, ..Limits::default() };
        let limiter = Limiter::new(&limits);
        // A burst of four, then no more; the next second is far away.
        assert_eq!(misses(&limiter, &["192.0.2.1"; 50]), 4);
        assert_eq!(misses(&limiter, &["192.0.2.2"; 50]), 4);
        let same_64: Vec<String> = (0..50).map(|i| format!("2001:db8::{i:x}")).collect();
        assert_eq!(misses(&limiter, &same_64.iter().map(String::as_str).collect::<Vec<_>>()), 4);
        assert_eq!(misses(&limiter, &["127.0.0.1"; 50]), 50);
        assert_eq!(misses(&limiter, &["::ffff:127.0.0.1"; 50]), 50);
    }

    #[test]
    fn all_clients_share_one_limit() {
        let limits = Limits { misses_per_address: 100, misses_per_second: 5, ..Limits::default() };
        let limiter = Limiter::new(&limits);
        let ips: Vec<String> = (0..100).map(|i| format!("198.51.100.{i}")).collect();
        assert_eq!(misses(&limiter, &ips.iter().map(String::as_str).collect::<Vec<_>>()), 10);
    }
}
