//! Rate limits of keys and addresses, counted in this process.
//!
//! A limit is a token bucket. Each known key has its own; addresses share a fixed number, so that nobody can fill the
//! memory.

use std::{
    collections::hash_map::RandomState,
    fmt,
    hash::{BuildHasher, Hash},
    net::IpAddr,
    num::NonZeroU32,
    sync::Arc,
    time::Duration,
};

use governor::{
    Quota, RateLimiter, clock::Clock, middleware::StateInformationMiddleware, state::keyed::DashMapStateStore,
};
use shared::{client_address::network, id::AccountId, networks::network_of};

/// Buckets that addresses share, as at the edge: two clients of 65,536 rarely meet.
const BUCKETS: u64 = 65_536;

/// How many addresses' worth of logins a /24 or /48 has.
const WIDE_SHARE: u32 = 8;

/// The limits; 0 switches one off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Requests of one key, a second; bursts of twice as many.
    ///
    /// An import by arrays of 1,000 at 20,000 rows a second takes 20 of them. All public keys of an account together,
    /// of which anybody can get any number, have twice as many.
    pub requests_per_key: u32,
    /// Requests of one address without a key that is known, a second; bursts of ten times as many.
    ///
    /// A key has 476 bits: this bounds what guesses cost, not whether they succeed.
    pub refusals_per_address: u32,
    /// Logins, registrations and activations of one address, per minute; all of them may come in one burst.
    ///
    /// Trying a list of 10,000 passwords takes most of a working day from one address. The addresses of a /24, or of a /48
    /// of IPv6, have 8 times as many together. As many requests by which finders write, counted apart.
    pub logins_per_address: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self { requests_per_key: 2_000, refusals_per_address: 5, logins_per_address: 30 }
    }
}

/// Time since some start, which never goes back.
#[derive(Clone)]
pub struct Ticks(Arc<dyn Fn() -> Duration + Send + Sync>);

impl Ticks {
    /// A clock from a function that returns the time since some start.
    pub fn new(since_start: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self(Arc::new(since_start))
    }
}

impl fmt::Debug for Ticks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ticks").field(&(self.0)()).finish()
    }
}

impl Clock for Ticks {
    type Instant = Duration;

    fn now(&self) -> Duration {
        (self.0)()
    }
}

/// The decision of a limit on a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the request is allowed.
    pub is_allowed: bool,
    /// The burst: requests that a full bucket allows.
    pub limit: u32,
    /// Requests that it still takes now.
    pub remaining: u32,
    /// Seconds until it is untouched again, if nothing comes; at least 1 once something came.
    pub reset_seconds: u64,
}

/// Counts requests.
#[derive(Debug)]
pub struct Limiter {
    keys: Limit<[u8; 16]>,
    public: Limit<AccountId>,
    refusals: Limit<u32>,
    logins: Limit<u32>,
    /// Of a /24 or /48.
    wide_logins: Limit<u32>,
    reports: Limit<u32>,
    /// Of a /24 or /48.
    wide_reports: Limit<u32>,
    hasher: RandomState,
}

impl Limiter {
    /// Limits as configured.
    #[must_use]
    pub fn new(limits: &Limits, ticks: &Ticks) -> Self {
        const SECOND: Duration = Duration::from_secs(1);
        let a_minute = |most| Limit::new(most, 60 * SECOND, 1, ticks);
        let of_address = limits.logins_per_address;
        let of_network = of_address.saturating_mul(WIDE_SHARE);
        Self {
            keys: Limit::new(limits.requests_per_key, SECOND, 2, ticks),
            public: Limit::new(limits.requests_per_key.saturating_mul(2), SECOND, 2, ticks),
            refusals: Limit::new(limits.refusals_per_address, SECOND, 10, ticks),
            logins: a_minute(of_address),
            wide_logins: a_minute(of_network),
            reports: a_minute(of_address),
            wide_reports: a_minute(of_network),
            hasher: RandomState::new(),
        }
    }

    /// A request with a key that is known, by its SHA-256; `None` where nothing limits it.
    #[must_use]
    pub fn request(&self, key: &[u8; 32]) -> Option<Verdict> {
        // Half of the hash is enough to distinguish keys.
        let mut half = [0; 16];
        half.copy_from_slice(key.get(..16)?);
        self.keys.check(&half)
    }

    /// A request with any public key of an account; `None` where nothing limits it.
    #[must_use]
    pub fn public_request(&self, account: AccountId) -> Option<Verdict> {
        self.public.check(&account)
    }

    /// Counts a request without a valid key; local programs, `None`, are not limited.
    #[must_use]
    pub fn refusal(&self, client: Option<IpAddr>) -> Option<Verdict> {
        self.refusals.check(&self.bucket(client)?)
    }

    /// A request by which passwords and codes could be guessed; the tighter of the limits of its address and its network.
    #[must_use]
    pub fn login(&self, client: Option<IpAddr>) -> Option<Verdict> {
        self.tighter(&self.logins, &self.wide_logins, client)
    }

    /// A request by which a finder writes to an account: no more of an address, or of its network, than logins.
    #[must_use]
    pub fn report(&self, client: Option<IpAddr>) -> Option<Verdict> {
        self.tighter(&self.reports, &self.wide_reports, client)
    }

    fn tighter(&self, narrow: &Limit<u32>, wide: &Limit<u32>, client: Option<IpAddr>) -> Option<Verdict> {
        let narrow = narrow.check(&self.bucket(client)?)?;
        if !narrow.is_allowed {
            return Some(narrow);
        }
        let wide = wide.check(&self.bucket(client.map(wide_network))?)?;
        Some(if wide.is_allowed { narrow } else { wide })
    }

    /// Frees the memory of idle keys and addresses; called on a timer.
    pub fn forget(&self) {
        self.keys.forget();
        self.public.forget();
        self.refusals.forget();
        self.logins.forget();
        self.wide_logins.forget();
        self.reports.forget();
        self.wide_reports.forget();
    }

    fn bucket(&self, client: Option<IpAddr>) -> Option<u32> {
        // The remainder is below 65,536.
        Some((self.hasher.hash_one(network(client?.to_canonical())) % BUCKETS) as u32)
    }
}

/// The /24 of an address, or its /48 of IPv6: what one customer of a provider may have.
fn wide_network(ip: IpAddr) -> IpAddr {
    network_of(ip).addr()
}

type Keyed<K> = RateLimiter<K, DashMapStateStore<K>, Ticks, StateInformationMiddleware>;

/// One limit; `None` inside when it is off.
#[derive(Debug)]
struct Limit<K: Clone + Hash + Eq + fmt::Debug> {
    limiter: Option<Keyed<K>>,
    burst: u32,
    /// Time in which one request comes back.
    period: Duration,
}

impl<K: Clone + Hash + Eq + fmt::Debug> Limit<K> {
    fn new(rate: u32, per: Duration, bursts: u32, ticks: &Ticks) -> Self {
        let burst = rate.saturating_mul(bursts);
        let period = per.checked_div(rate).unwrap_or_default();
        let quota =
            NonZeroU32::new(burst).and_then(|burst| Some(Quota::with_period(period)?.allow_burst(burst)));
        let limiter = quota.map(|quota| {
            RateLimiter::dashmap_with_clock(quota, ticks.clone())
                .with_middleware::<StateInformationMiddleware>()
        });
        Self { limiter, burst, period }
    }

    fn check(&self, key: &K) -> Option<Verdict> {
        let found = self.limiter.as_ref()?.check_key(key);
        let remaining = found.as_ref().map_or(0, |state| state.remaining_burst_capacity());
        let missing = self.burst.saturating_sub(remaining);
        let reset = self.period.saturating_mul(missing);
        Some(Verdict {
            is_allowed: found.is_ok(),
            limit: self.burst,
            remaining,
            reset_seconds: reset.as_secs() + u64::from(reset.subsec_nanos() > 0),
        })
    }

    fn forget(&self) {
        if let Some(limiter) = &self.limiter {
            limiter.retain_recent();
            limiter.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use shared::time::{Clock as _, ManualClock, UnixMillis};

    use super::*;

    fn limiter(limits: Limits) -> (Limiter, Arc<ManualClock>) {
        let clock = Arc::new(ManualClock::new(UnixMillis(0)));
        let ticks = clock.clone();
        let ticks = Ticks::new(move || Duration::from_millis(ticks.now().0.unsigned_abs()));
        (Limiter::new(&limits, &ticks), clock)
    }

    fn allowed(verdicts: impl Iterator<Item = Option<Verdict>>) -> usize {
        verdicts.filter(|verdict| verdict.is_none_or(|verdict| verdict.is_allowed)).count()
    }

    #[test]
    fn a_key_has_a_bucket_of_its_own() {
        let (limiter, clock) = limiter(Limits { requests_per_key: 2, ..Limits::default() });
        let verdict = |is_allowed, remaining, reset_seconds| {
            Some(Verdict { is_allowed, limit: 4, remaining, reset_seconds })
        };
        let (one, other) = ([1; 32], [2; 32]);
        for expected in [verdict(true, 3, 1), verdict(true, 2, 1), verdict(true, 1, 2), verdict(true, 0, 2)] {
            assert_eq!(limiter.request(&one), expected);
        }
        assert_eq!(limiter.request(&one), verdict(false, 0, 2));
        assert_eq!(limiter.request(&other), verdict(true, 3, 1));
        clock.set(UnixMillis(499));
        assert_eq!(limiter.request(&one), verdict(false, 0, 2));
        clock.set(UnixMillis(500));
        assert_eq!(limiter.request(&one), verdict(true, 0, 2));
        clock.set(UnixMillis(2_500));
        assert_eq!(limiter.request(&one), verdict(true, 3, 1));
    }

    #[test]
    fn public_keys_of_an_account_share_a_bucket() {
        let (limiter, _) = limiter(Limits { requests_per_key: 2, ..Limits::default() });
        let account = |n: u8| AccountId::new(1, [n; 16]);
        assert_eq!(allowed((0..50).map(|_| limiter.public_request(account(1)))), 8);
        assert_eq!(allowed((0..50).map(|_| limiter.public_request(account(2)))), 8, "another account");
    }

    #[test]
    fn an_address_is_limited_by_its_network() {
        let (limiter, clock) =
            limiter(Limits { refusals_per_address: 1, logins_per_address: 3, ..Limits::default() });
        let ip = |text: &str| Some(text.parse().unwrap());
        assert_eq!(allowed((0..50).map(|_| limiter.refusal(ip("192.0.2.1")))), 10);
        assert_eq!(allowed((0..50).map(|_| limiter.refusal(ip("192.0.2.2")))), 10);
        assert_eq!(allowed((0..50).map(|n| limiter.refusal(ip(&format!("2001:db8::{n:x}"))))), 10);
        assert_eq!(allowed((0..50).map(|_| limiter.login(ip("192.0.2.1")))), 3);
        assert_eq!(allowed((0..50).map(|_| limiter.login(None))), 50, "programs of this machine");
        // Loopback that a proxy names, or that is the proxy.
        for limited in [ip("127.0.0.1"), ip("::1")] {
            assert_eq!(allowed((0..50).map(|_| limiter.login(limited))), 3, "{limited:?}");
        }
        clock.set(UnixMillis(20_000));
        assert_eq!(allowed((0..50).map(|_| limiter.login(ip("192.0.2.1")))), 1);
    }

    #[test]
    fn logins_are_limited_by_the_wider_network() {
        let (limiter, clock) = limiter(Limits { logins_per_address: 3, ..Limits::default() });
        let of = |text: String| limiter.login(text.parse().ok());
        assert_eq!(allowed((0..50).map(|n| of(format!("192.0.2.{n}")))), 24);
        assert_eq!(allowed((0..50).map(|n| of(format!("192.0.3.{n}")))), 24);
        assert_eq!(allowed((0..50).map(|n| of(format!("2001:db8:1:{n:x}::1")))), 24);
        assert_eq!(allowed((0..50).map(|n| of(format!("2001:db8:2:{n:x}::1")))), 24);
        let report = |n: u8| limiter.report(Some([192, 0, 2, n].into()));
        assert_eq!(allowed((0..50).map(report)), 24, "counted apart");
        clock.set(UnixMillis(60_000));
        assert_eq!(allowed((0..50).map(|n| of(format!("192.0.2.{n}")))), 24);
    }

    #[test]
    fn zero_disables_a_limit_and_idle_clients_are_dropped() {
        let (limiter, _) =
            limiter(Limits { requests_per_key: 0, refusals_per_address: 0, logins_per_address: 0 });
        assert_eq!(limiter.request(&[1; 32]), None);
        assert_eq!(limiter.refusal("192.0.2.1".parse().ok()), None);
        let (limiter, clock) = self::limiter(Limits::default());
        for n in 0..100 {
            let _ = limiter.request(&[n; 32]);
        }
        let kept = || limiter.keys.limiter.as_ref().map(|keys| keys.len());
        assert_eq!(kept(), Some(100));
        limiter.forget();
        assert_eq!(kept(), Some(100));
        clock.set(UnixMillis(60_000));
        limiter.forget();
        assert_eq!(kept(), Some(0));
    }
}
