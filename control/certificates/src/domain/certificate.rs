//! The certificate of a short domain, and what an order makes of it.

use shared::{id::AccountId, short_url::Host, time::UnixMillis};

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;

/// Pause after the first order that failed; each further one doubles it. Authorities let a host fail some five times an hour.
const MIN_PAUSE_MS: i64 = 15 * MINUTE_MS;
const MAX_PAUSE_MS: i64 = 12 * HOUR_MS;

/// Pause after an authority refused because it is asked too often, without a time.
const LIMITED_MS: i64 = HOUR_MS;

/// Pause after an authority gave no answer, or edges were behind.
const UNAVAILABLE_MS: i64 = 2 * MINUTE_MS;

/// Longest pause that an authority can ask for: the window of the rate limits that are known.
const MAX_ASKED_MS: i64 = 7 * 24 * HOUR_MS;

/// Beyond this a next try is of a clock that was wrong: longer than every pause with its jitter.
pub const MAX_AHEAD_MS: i64 = 8 * 24 * HOUR_MS;

/// Largest difference between the clock of the database and that of an authority: a few percent of the shortest life that
/// authorities give, which is six days.
const MAX_SKEW_MS: i64 = 6 * HOUR_MS;

/// Most characters of a token of an authority: usual ones have 43.
const MAX_TOKEN: usize = 256;

/// Earliest renewal: a certificate of which two thirds are over when it comes must not be ordered again at once.
const MIN_RENEWAL_MS: i64 = HOUR_MS;

shared::words! {
    /// How a certificate stands.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum State {
        /// The account wants none.
        Off = "off",
        /// There is none yet.
        Pending = "pending",
        /// Edges have it.
        Valid = "valid",
        /// There is none, or it has ended, and the last order failed.
        Failed = "failed",
    }
}

/// A certificate that an authority gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issued {
    /// Who issued it.
    pub issuer: String,
    /// From when it is valid.
    pub not_before: UnixMillis,
    /// When it ends.
    pub not_after: UnixMillis,
}

impl Issued {
    /// When it is ordered again: at two thirds of its life, or up to a hundredth of its life earlier by `jitter`, so that
    /// domains that were proven together are not renewed together.
    #[must_use]
    pub fn renew_at(&self, now: UnixMillis, jitter: u8) -> UnixMillis {
        let life = self.not_after.0.saturating_sub(self.not_before.0).max(0);
        let earlier = life / 25_600 * i64::from(jitter);
        let at = self.not_before.0.saturating_add(life / 3 * 2).saturating_sub(earlier);
        UnixMillis(at.max(now.0.saturating_add(MIN_RENEWAL_MS)))
    }
}

/// An order under way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The directory of its authority.
    pub directory: String,
    /// Where the authority has it.
    pub url: String,
    /// Its private key, encrypted.
    pub sealed_key: String,
}

/// The certificate of a short domain, without its chain and key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The account of the domain.
    pub account: AccountId,
    /// The host.
    pub host: Host,
    /// Whether the account wants none.
    pub is_off: bool,
    /// What edges have.
    pub issued: Option<Issued>,
    /// The order under way.
    pub order: Option<Order>,
    /// Why the last try failed.
    pub error: Option<String>,
    /// Tries that failed since the last certificate.
    pub failures: u32,
    /// When an order is made, or goes on.
    pub next_try: UnixMillis,
}

/// Why a try failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// Whose fault it is.
    pub kind: FaultKind,
    /// For people.
    pub text: String,
    /// How long the authority wants to be left alone, in milliseconds.
    pub wait_ms: Option<i64>,
}

/// Whose fault it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// The authority refused the order or could not check the host: another order is made.
    Refused,
    /// What it gave cannot be used yet: the order stays.
    Unusable,
    /// It is asked too often.
    Limited,
    /// It gave no answer, or edges were behind: not the domain's fault.
    Unavailable,
    /// It does not know the account of this service, or does not accept it any more.
    NoAccount,
    /// The clock of the database is wrong: nobody is asked for anything.
    Clock,
}

/// What is wrong with the clock of the database, by that of an authority; `None`: nothing that matters.
///
/// By a clock that is ahead by months every certificate would be due, and again as soon as it is there.
#[must_use]
pub fn clock_fault(database: UnixMillis, authority: UnixMillis) -> Option<Fault> {
    let ahead_ms = database.0.saturating_sub(authority.0);
    if ahead_ms.saturating_abs() <= MAX_SKEW_MS {
        return None;
    }
    let (hours, side) =
        (ahead_ms.saturating_abs() / HOUR_MS, if ahead_ms > 0 { "ahead of" } else { "behind" });
    let text = format!(
        "The clock of the database is {hours} hours {side} that of the certificate authority: no certificate is ordered until \
         they agree."
    );
    Some(Fault { kind: FaultKind::Clock, text, wait_ms: None })
}

/// Whether a token of an authority is one (RFC 8555 section 8.3). Edges refuse others, and a long one would fit into no message to
/// them, which would end their streams.
#[must_use]
pub fn is_token(text: &str) -> bool {
    let is_text = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    (1..=MAX_TOKEN).contains(&text.len()) && text.bytes().all(is_text)
}

impl Certificate {
    /// The certificate of a domain that was not looked at yet.
    #[must_use]
    pub fn new(account: AccountId, host: Host, now: UnixMillis) -> Self {
        let (issued, order, error) = (None, None, None);
        Self { account, host, is_off: false, issued, order, error, failures: 0, next_try: now }
    }

    /// How it stands.
    #[must_use]
    pub fn state(&self, now: UnixMillis) -> State {
        if self.is_off {
            State::Off
        } else if self.issued.as_ref().is_some_and(|issued| now < issued.not_after) {
            State::Valid
        } else if self.error.is_some() {
            State::Failed
        } else {
            State::Pending
        }
    }

    /// The certificate after a try that failed. `jitter` makes the pause up to a tenth longer.
    #[must_use]
    pub fn after(self, fault: Fault, now: UnixMillis, jitter: u8) -> Self {
        let is_counted = match fault.kind {
            FaultKind::Refused | FaultKind::Unusable | FaultKind::Limited => true,
            FaultKind::Unavailable | FaultKind::NoAccount | FaultKind::Clock => false,
        };
        let failures = self.failures.saturating_add(u32::from(is_counted));
        let growing = (MIN_PAUSE_MS << failures.saturating_sub(1).min(16)).min(MAX_PAUSE_MS);
        let pause = match fault.kind {
            FaultKind::Refused | FaultKind::Unusable => growing,
            FaultKind::Limited if fault.wait_ms.is_none() => growing.max(LIMITED_MS),
            FaultKind::Limited | FaultKind::Unavailable | FaultKind::NoAccount | FaultKind::Clock => {
                UNAVAILABLE_MS
            }
        };
        let pause = pause + pause / 2_560 * i64::from(jitter);
        let asked = fault.wait_ms.map_or(0, |wait| wait.min(MAX_ASKED_MS));
        let keeps_order = match fault.kind {
            FaultKind::Refused | FaultKind::NoAccount => false,
            FaultKind::Unusable | FaultKind::Limited | FaultKind::Unavailable | FaultKind::Clock => true,
        };
        // A time by a wrong clock would hold once it is right, and so would one that was set by it before.
        let next_try = match fault.kind {
            FaultKind::Clock => UnixMillis(0),
            FaultKind::Refused
            | FaultKind::Unusable
            | FaultKind::Limited
            | FaultKind::Unavailable
            | FaultKind::NoAccount => UnixMillis(now.0.saturating_add(pause.max(asked))),
        };
        // Of a wrong clock the log says enough: it is the fault of no domain, and ends for all at once.
        let error = if fault.kind == FaultKind::Clock { self.error } else { Some(fault.text) };
        Self { error, failures, next_try, order: self.order.filter(|_| keeps_order), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixMillis = UnixMillis(1_000 * HOUR_MS);

    fn certificate() -> Certificate {
        let order = Order { directory: "d".to_owned(), url: "u".to_owned(), sealed_key: "k".to_owned() };
        let host = "go.example".parse().unwrap();
        Certificate { order: Some(order), ..Certificate::new(AccountId::new(1, [0; 16]), host, NOW) }
    }

    fn fault(kind: FaultKind, wait_ms: Option<i64>) -> Fault {
        Fault { kind, text: "why".to_owned(), wait_ms }
    }

    #[test]
    fn a_domain_that_fails_waits_longer_each_time() {
        let mut failed = certificate();
        for pause_min in [15, 30, 60, 120, 240, 480, 720, 720] {
            failed = failed.after(fault(FaultKind::Refused, None), NOW, 0);
            assert_eq!((failed.next_try.0 - NOW.0) / MINUTE_MS, pause_min);
            assert!(failed.order.is_none() && failed.state(NOW) == State::Failed);
        }
        let late = certificate().after(fault(FaultKind::Refused, None), NOW, 255);
        assert!((MIN_PAUSE_MS + 1..=MIN_PAUSE_MS / 10 * 11).contains(&(late.next_try.0 - NOW.0)));
    }

    #[test]
    fn pauses_follow_the_authority() {
        for (kind, wait_ms, pause, failures, keeps_order, why) in [
            (FaultKind::Limited, Some(5 * HOUR_MS), 5 * HOUR_MS, 1, true, "as it asks"),
            (FaultKind::Limited, None, LIMITED_MS, 1, true, "it gives no time"),
            (FaultKind::Limited, Some(i64::MAX), MAX_ASKED_MS, 1, true, "longer than any limit"),
            (FaultKind::Limited, Some(0), UNAVAILABLE_MS, 1, true, "that is over"),
            (FaultKind::Unavailable, None, UNAVAILABLE_MS, 0, true, "not the domain's fault"),
            (FaultKind::Unavailable, Some(HOUR_MS), HOUR_MS, 0, true, "as it asks"),
            (FaultKind::Unusable, None, MIN_PAUSE_MS, 1, true, "a wrong clock"),
            (FaultKind::NoAccount, None, UNAVAILABLE_MS, 0, false, "a new account has other orders"),
        ] {
            let after = certificate().after(fault(kind, wait_ms), NOW, 0);
            let found = (after.next_try.0 - NOW.0, after.failures, after.order.is_some());
            assert_eq!(found, (pause, failures, keeps_order), "{why}");
        }
    }

    #[test]
    fn a_wrong_clock_leaves_no_time_and_no_error_behind() {
        let days = |days: i64| UnixMillis(NOW.0 + days * 24 * HOUR_MS);
        let ahead = Certificate { next_try: days(3), ..certificate() };
        let after = ahead.after(fault(FaultKind::Clock, None), days(3), 0);
        assert_eq!((after.next_try, after.error, after.failures), (UnixMillis(0), None, 0));
        assert!(after.order.is_some());
    }

    #[test]
    fn no_pause_is_as_long_as_that_of_a_wrong_clock() {
        for kind in [FaultKind::Refused, FaultKind::Limited, FaultKind::Unavailable] {
            let failed = Certificate { failures: 40, ..certificate() };
            let next_try = failed.after(fault(kind, Some(i64::MAX)), NOW, 255).next_try;
            assert!(next_try.0 - NOW.0 < MAX_AHEAD_MS, "{kind:?}");
        }
    }

    #[test]
    fn a_clock_that_is_hours_off_is_a_fault() {
        for (ahead_ms, expected) in [
            (0, None),
            (MAX_SKEW_MS, None),
            (-MAX_SKEW_MS, None),
            (MAX_SKEW_MS + 1, Some("6 hours ahead of")),
            (-24 * HOUR_MS, Some("24 hours behind")),
            (90 * 24 * HOUR_MS, Some("2160 hours ahead of")),
            (-90 * 24 * HOUR_MS, Some("2160 hours behind")),
        ] {
            let found = clock_fault(UnixMillis(NOW.0 + ahead_ms), NOW);
            let is_right = match (&found, expected) {
                (Some(fault), Some(text)) => fault.text.contains(text) && fault.kind == FaultKind::Clock,
                (found, expected) => found.is_none() && expected.is_none(),
            };
            assert!(is_right, "{ahead_ms}: {found:?}");
        }
    }

    #[test]
    fn a_token_is_short_and_of_base64url() {
        for (text, is_one) in [("evaGxfADs6p-_SRb", true), ("", false), ("a/b", false), ("ä", false)] {
            assert_eq!(is_token(text), is_one, "{text:?}");
        }
        assert!(is_token(&"a".repeat(MAX_TOKEN)) && !is_token(&"a".repeat(MAX_TOKEN + 1)));
    }

    #[test]
    fn renewal_is_at_two_thirds() {
        let day = 24 * HOUR_MS;
        let issued = |days: i64| Issued {
            issuer: "CA".to_owned(),
            not_before: NOW,
            not_after: UnixMillis(NOW.0 + days * day),
        };
        assert_eq!(issued(90).renew_at(NOW, 0).0 - NOW.0, 60 * day);
        let early = issued(90).renew_at(NOW, 255).0 - NOW.0;
        assert!((59 * day..60 * day).contains(&early), "{early}");
        let late = UnixMillis(NOW.0 + 80 * day);
        assert_eq!(issued(90).renew_at(late, 0).0 - late.0, MIN_RENEWAL_MS, "not at once");
    }

    #[test]
    fn a_certificate_that_has_ended_is_not_valid() {
        let issuer = "CA".to_owned();
        let issued = Issued { issuer, not_before: NOW, not_after: UnixMillis(NOW.0 + 9) };
        let with = Certificate { issued: Some(issued), ..certificate() };
        assert_eq!(with.state(NOW), State::Valid);
        assert_eq!(with.clone().after(fault(FaultKind::Refused, None), NOW, 0).state(NOW), State::Valid);
        assert_eq!(with.state(UnixMillis(NOW.0 + 9)), State::Pending);
        assert_eq!(Certificate { is_off: true, ..with }.state(NOW), State::Off);
    }
}
