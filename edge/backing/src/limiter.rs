//! Rate limits on cache misses, so that guessing short ids does not load the store.

use std::{
    collections::hash_map::RandomState,
    hash::BuildHasher,
    net::IpAddr,
    num::NonZeroU32,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use governor::{DefaultDirectRateLimiter, DefaultKeyedRateLimiter, Quota, RateLimiter};
use shared::client_address::network;
use tokio::time::sleep;

/// Interval of the check for miss storms.
pub const LOOK: Duration = Duration::from_secs(10);

/// Refused misses per interval that count as a storm: as many as one client is allowed.
const STORM: u64 = 500;

/// Buckets that addresses share: the keyed limiter never holds more.
const BUCKETS: u64 = 65_536;

/// Counts misses for each client and over all.
#[derive(Debug)]
pub struct Limiter {
    clients: DefaultKeyedRateLimiter<u32>,
    all: DefaultDirectRateLimiter,
    hasher: RandomState,
    refused: AtomicU64,
}

impl Limiter {
    /// So many misses a second of one address, and of all; 0 counts as 1.
    #[must_use]
    pub fn new(per_address: u32, of_all: u32) -> Self {
        let quota = |per_second: u32, bursts: u32| {
            let rate = NonZeroU32::new(per_second).unwrap_or(NonZeroU32::MIN);
            Quota::per_second(rate)
                .allow_burst(rate.saturating_mul(NonZeroU32::MIN.saturating_add(bursts - 1)))
        };
        Self {
            clients: RateLimiter::keyed(quota(per_address, 4)),
            all: RateLimiter::direct(quota(of_all, 2)),
            hasher: RandomState::new(),
            refused: AtomicU64::new(0),
        }
    }

    /// Whether a client may miss once more; programs of this machine need not ask.
    #[must_use]
    pub fn allows(&self, ip: IpAddr) -> bool {
        // The remainder is below 65,536.
        let bucket = (self.hasher.hash_one(network(ip.to_canonical())) % BUCKETS) as u32;
        let is_allowed = self.clients.check_key(&bucket).is_ok() && self.all.check().is_ok();
        if !is_allowed {
            self.refused.fetch_add(1, Relaxed);
        }
        is_allowed
    }

    /// Frees the memory of idle clients, and tells whether there is a miss storm when that changes; runs for ever.
    pub async fn watch(&self, look: Duration, on_change: impl Fn(bool)) {
        let mut is_storm = false;
        loop {
            sleep(look).await;
            self.clients.retain_recent();
            self.clients.shrink_to_fit();
            let refused = self.refused.swap(0, Relaxed);
            match storm(is_storm, refused) {
                Some(true) => tracing::warn!(refused, "miss storm: short ids are guessed"),
                Some(false) => tracing::info!("the miss storm is over"),
                None => continue,
            }
            is_storm = !is_storm;
            on_change(is_storm);
        }
    }
}

/// Whether a storm begins or ends, from the misses refused in the last interval.
fn storm(is_storm: bool, refused: u64) -> Option<bool> {
    let is_now = refused >= STORM;
    (is_now != is_storm).then_some(is_now)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    fn misses(limiter: &Limiter, ips: &[&str]) -> usize {
        ips.iter().filter(|ip| limiter.allows(ip.parse().unwrap())).count()
    }

    #[test]
    fn a_client_is_limited_by_its_network() {
        let limiter = Limiter::new(1, 1_000_000);
        // A burst of four, then no more; the next second is far away.
        assert_eq!(misses(&limiter, &["192.0.2.1"; 50]), 4);
        assert_eq!(misses(&limiter, &["192.0.2.2"; 50]), 4);
        let same_64: Vec<String> = (0..50).map(|i| format!("2001:db8::{i:x}")).collect();
        assert_eq!(misses(&limiter, &same_64.iter().map(String::as_str).collect::<Vec<_>>()), 4);
        // Loopback that a proxy names is a client like any other.
        assert_eq!(misses(&limiter, &["127.0.0.1"; 50]), 4);
        assert_eq!(misses(&limiter, &["::ffff:127.0.0.1"; 50]), 0);
    }

    #[test]
    fn all_clients_share_one_limit() {
        let limiter = Limiter::new(100, 5);
        let ips: Vec<String> = (0..100).map(|i| format!("198.51.100.{i}")).collect();
        assert_eq!(misses(&limiter, &ips.iter().map(String::as_str).collect::<Vec<_>>()), 10);
    }

    #[test]
    fn the_start_and_end_of_a_miss_storm_are_reported() {
        let mut is_storm = false;
        for (refused, expected) in [
            (0, None),
            (499, None),
            (500, Some(true)),
            (9_000, None),
            (500, None),
            (499, Some(false)),
            (0, None),
        ] {
            let told = storm(is_storm, refused);
            assert_eq!(told, expected, "{refused}");
            is_storm = told.unwrap_or(is_storm);
        }
    }

    #[tokio::test]
    async fn a_storm_and_its_end_are_told() {
        let (limiter, is_storm) = (Limiter::new(1, 5_000), AtomicBool::new(false));
        let looks = async {
            assert_eq!(misses(&limiter, &["192.0.2.1"; 600]), 4);
            // A storm, then quiet; a test that waits for ever is ended by its runner.
            for expected in [true, false] {
                while is_storm.load(Relaxed) != expected {
                    sleep(Duration::from_millis(1)).await;
                }
            }
        };
        tokio::select! {
            () = limiter.watch(Duration::from_millis(20), |is_now| is_storm.store(is_now, Relaxed)) => unreachable!(),
            () = looks => {}
        }
    }
}
