//! The claim of an account on a host, and what a check makes of it.

use shared::{id::AccountId, short_url::Host, time::UnixMillis};

/// Where the file of a proof is on its host.
pub const FILE_PATH: &str = "/.well-known/waymark-domain.txt";

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;
const WEEK_MS: i64 = 7 * DAY_MS;

/// Longest pause between two checks of a claim that was never proven.
const MAX_PAUSE_MS: i64 = 6 * HOUR_MS;

/// Beyond this a next check is of a clock that was wrong: longer than every pause with its jitter.
pub const MAX_AHEAD_MS: i64 = 2 * DAY_MS;

/// How long a claim is kept that is not proven.
pub const UNPROVEN_MS: i64 = 7 * DAY_MS;

/// How long the proof of a domain is gone before another account can prove it.
pub const LOST_DAYS: i64 = 30;
/// The same in milliseconds. The clock of the database counts them.
pub const LOST_MS: i64 = LOST_DAYS * DAY_MS;

/// Checks that must find no proof before a domain that was proven counts as unproven: a record may be missing for a moment.
const MAX_FAILURES: u32 = 3;

/// The same where the last of them got no answer: for three days that may be an outage, of DNS or of this service's network.
const MAX_UNANSWERED: u32 = 72;

/// Shortest time from a proof until its domain counts as unproven: when the worker's third check comes. Checks that are asked
/// for one after the other do not make it shorter.
const MIN_LOST_MS: i64 = DAY_MS + 2 * HOUR_MS;

shared::words! {
    /// How a claim stands.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum State {
        /// No proof was found yet.
        Pending = "pending",
        /// The last check found the proof, or too few since have not.
        Verified = "verified",
        /// It was proven once, and is no longer.
        Unproven = "unproven",
        /// Another account has proven the host first.
        Refused = "refused",
    } else Unknown
}

/// A text that names none of its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not known")]
pub struct Unknown;

shared::words! {
    /// What proved a claim.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Proof {
        /// The TXT record.
        Txt = "txt",
        /// The file.
        File = "file",
    } else Unknown
}

/// What a check found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// The proof.
    Proven(Proof),
    /// No proof, and why.
    Missing(String),
    /// No answer, so that nobody knows, and why.
    Unanswered(String),
    /// The proof or not: the host belongs to another account.
    Taken,
}

/// The claim of an account on a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Who claims it.
    pub account: AccountId,
    /// The host.
    pub host: Host,
    /// What record and file must say; random, so that no account can use the proof of another.
    pub token: String,
    /// How it stands.
    pub state: State,
    /// What proved it last.
    pub proof: Option<Proof>,
    /// Why the last check found no proof.
    pub fault: Option<String>,
    /// When it was made.
    pub created_at: UnixMillis,
    /// When the proof was last found.
    pub verified_at: Option<UnixMillis>,
    /// When it was last looked for.
    pub checked_at: Option<UnixMillis>,
    /// Since when it counts as unproven.
    pub unproven_since: Option<UnixMillis>,
    /// When the worker looks for it; `None` is never.
    pub next_check: Option<UnixMillis>,
    /// Checks without a proof since the last one with it.
    pub failures: u32,
    /// When it ends, because it is not proven; `None` for one that is or was.
    pub ends_at: Option<UnixMillis>,
}

impl Claim {
    /// A new claim; `bits` are random.
    #[must_use]
    pub fn new(account: AccountId, host: Host, bits: [u8; 16], now: UnixMillis) -> Self {
        Self {
            account,
            host,
            token: token(bits),
            state: State::Pending,
            proof: None,
            fault: None,
            created_at: now,
            verified_at: None,
            checked_at: None,
            unproven_since: None,
            next_check: Some(UnixMillis(now.0.saturating_add(MINUTE_MS))),
            failures: 0,
            ends_at: Some(later(now, UNPROVEN_MS)),
        }
    }

    /// Whether its time to be proven is over.
    #[must_use]
    pub fn has_ended(&self, now: UnixMillis) -> bool {
        self.ends_at.is_some_and(|end| end <= now)
    }

    /// From when on another account can prove the host, if this one does not find its proof again. It is shown alone: the store
    /// decides.
    #[must_use]
    pub fn opens_at(&self) -> Option<UnixMillis> {
        match self.state {
            State::Unproven => self.unproven_since.map(|since| later(since, LOST_MS)),
            State::Pending | State::Verified | State::Refused => None,
        }
    }

    /// Whether a check is the first one in another week without the proof; `before` is the claim before it.
    #[must_use]
    pub fn begins_week(&self, before: &Self) -> bool {
        let week = |checked_at: Option<UnixMillis>| {
            Some(checked_at?.0.saturating_sub(self.unproven_since?.0).max(0) / WEEK_MS)
        };
        let is_lost = [before.state, self.state] == [State::Unproven; 2];
        is_lost && week(before.checked_at).is_some_and(|before| week(self.checked_at) > Some(before))
    }

    /// The claim after the platform has released its host: open at once, with another token; `bits` are random.
    #[must_use]
    pub fn released(self, bits: [u8; 16], now: UnixMillis) -> Self {
        Self {
            token: token(bits),
            state: State::Unproven,
            proof: None,
            fault: Some("Whoever runs this service has released the host.".to_owned()),
            unproven_since: Some(UnixMillis(now.0.saturating_sub(LOST_MS))),
            next_check: Some(now),
            ends_at: None,
            ..self
        }
    }

    /// The name of the TXT record.
    #[must_use]
    pub fn record_name(&self) -> String {
        format!("_waymark.{}", self.host)
    }

    /// What the record or the file must say.
    #[must_use]
    pub fn content(&self) -> String {
        format!("waymark-domain={}", self.token)
    }

    /// Where the file must be.
    #[must_use]
    pub fn file_url(&self) -> String {
        format!("https://{}{FILE_PATH}", self.host)
    }

    /// The claim after a check. `jitter` makes the pause to the next one up to a tenth longer, so that claims that were made
    /// together are not checked together for ever.
    #[must_use]
    pub fn after(self, finding: Finding, now: UnixMillis, jitter: u8) -> Self {
        let next =
            |pause: i64| Some(UnixMillis(now.0.saturating_add(pause + pause / 2_560 * i64::from(jitter))));
        let checked = Self { checked_at: Some(now), ..self };
        match finding {
            Finding::Proven(proof) => Self {
                state: State::Verified,
                proof: Some(proof),
                fault: None,
                verified_at: Some(now),
                unproven_since: None,
                next_check: next(DAY_MS),
                failures: 0,
                ends_at: None,
                ..checked
            },
            Finding::Taken => Self {
                state: State::Refused,
                fault: Some("Another account of this service has proven the host first.".to_owned()),
                next_check: None,
                ends_at: checked.ends_at.or_else(|| Some(later(now, UNPROVEN_MS))),
                ..checked
            },
            Finding::Missing(fault) => checked.without_proof((fault, MAX_FAILURES), now, next),
            Finding::Unanswered(fault) => checked.without_proof((fault, MAX_UNANSWERED), now, next),
        }
    }

    fn without_proof(
        self,
        (fault, most_failures): (String, u32),
        now: UnixMillis,
        next: impl Fn(i64) -> Option<UnixMillis>,
    ) -> Self {
        let failures = self.failures.saturating_add(1);
        let failed = Self { fault: Some(fault), failures, ..self };
        // A proof in the future is of a clock that was wrong.
        let is_early =
            failed.verified_at.is_some_and(|at| (0..MIN_LOST_MS).contains(&now.0.saturating_sub(at.0)));
        match failed.state {
            State::Pending | State::Refused => {
                let pause = (MINUTE_MS << failures.min(16)).min(MAX_PAUSE_MS);
                Self { state: State::Pending, next_check: next(pause), ..failed }
            }
            State::Verified if is_early || failures < most_failures => {
                Self { next_check: next(HOUR_MS), ..failed }
            }
            State::Verified => Self {
                state: State::Unproven,
                unproven_since: Some(now),
                next_check: next(HOUR_MS),
                ..failed
            },
            State::Unproven => Self { next_check: next(MAX_PAUSE_MS), ..failed },
        }
    }
}

fn token(bits: [u8; 16]) -> String {
    bits.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn later(at: UnixMillis, ms: i64) -> UnixMillis {
    UnixMillis(at.0.saturating_add(ms))
}

#[cfg(test)]
mod tests;
