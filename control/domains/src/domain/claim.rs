//! The claim of an account on a host, and what a check makes of it.

use std::str::FromStr;

use shared::{id::AccountId, short_url::Host, time::UnixMillis};

/// Where the file of a proof is on its host.
pub const FILE_PATH: &str = "/.well-known/waymark-domain.txt";

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;

/// Longest pause between two checks of a claim that was never proven.
const MAX_PAUSE_MS: i64 = 6 * HOUR_MS;

/// How long a claim that was never proven is checked by itself.
const TRIED_MS: i64 = 30 * DAY_MS;

/// Checks that must find no proof before a domain that was proven counts as unproven: a record may be missing for a moment.
const MAX_FAILURES: u32 = 3;

/// The same where the last of them got no answer: for three days that may be an outage, of DNS or of this service's network.
const MAX_UNANSWERED: u32 = 72;

/// Shortest time from a proof until its domain counts as unproven: when the worker's third check comes. Checks that are asked
/// for one after the other do not make it shorter.
const MIN_LOST_MS: i64 = DAY_MS + 2 * HOUR_MS;

/// How a claim stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// No proof was found yet.
    Pending,
    /// The last check found the proof, or too few since have not.
    Verified,
    /// It was proven once, and is no longer.
    Unproven,
    /// Another account has proven the host first.
    Refused,
}

/// A text that names none of its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not known")]
pub struct Unknown;

impl State {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Pending, Self::Verified, Self::Unproven, Self::Refused];

    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Verified => "verified",
            Self::Unproven => "unproven",
            Self::Refused => "refused",
        }
    }
}

impl FromStr for State {
    type Err = Unknown;

    fn from_str(text: &str) -> Result<Self, Unknown> {
        Self::ALL.into_iter().find(|state| state.as_str() == text).ok_or(Unknown)
    }
}

/// What proved a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// The TXT record.
    Txt,
    /// The file.
    File,
}

impl Proof {
    /// Every one.
    pub const ALL: [Self; 2] = [Self::Txt, Self::File];

    /// Its name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Txt => "txt",
            Self::File => "file",
        }
    }
}

impl FromStr for Proof {
    type Err = Unknown;

    fn from_str(text: &str) -> Result<Self, Unknown> {
        Self::ALL.into_iter().find(|proof| proof.as_str() == text).ok_or(Unknown)
    }
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
}

impl Claim {
    /// A new claim; `bits` are random.
    #[must_use]
    pub fn new(account: AccountId, host: Host, bits: [u8; 16], now: UnixMillis) -> Self {
        Self {
            account,
            host,
            token: bits.iter().map(|byte| format!("{byte:02x}")).collect(),
            state: State::Pending,
            proof: None,
            fault: None,
            created_at: now,
            verified_at: None,
            checked_at: None,
            unproven_since: None,
            next_check: Some(UnixMillis(now.0.saturating_add(MINUTE_MS))),
            failures: 0,
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
                ..checked
            },
            Finding::Taken => Self {
                state: State::Refused,
                fault: Some("Another account of this service has proven the host first.".to_owned()),
                next_check: None,
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
        let is_early = failed.verified_at.is_some_and(|at| now.0.saturating_sub(at.0) < MIN_LOST_MS);
        match failed.state {
            State::Pending | State::Refused => {
                let is_tried = now.0.saturating_sub(failed.created_at.0) < TRIED_MS;
                let pause = (MINUTE_MS << failures.min(16)).min(MAX_PAUSE_MS);
                let next_check = if is_tried { next(pause) } else { None };
                Self { state: State::Pending, next_check, ..failed }
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

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: UnixMillis = UnixMillis(1_790_000_000_000);

    fn claim() -> Claim {
        Claim::new(AccountId::new(1, [1; 16]), "go.example".parse().unwrap(), [0xab; 16], NOW)
    }

    fn missing() -> Finding {
        Finding::Missing("nothing".to_owned())
    }

    #[test]
    fn a_claim_says_what_proves_it() {
        let claim = claim();
        assert_eq!(claim.record_name(), "_waymark.go.example");
        assert_eq!(claim.content(), format!("waymark-domain={}", "ab".repeat(16)));
        assert_eq!(claim.file_url(), "https://go.example/.well-known/waymark-domain.txt");
    }

    #[test]
    fn pauses_grow_to_six_hours_and_end_after_a_month() {
        let (mut claim, mut pauses) = (claim(), Vec::new());
        let mut now = NOW;
        while let Some(next) = claim.next_check {
            pauses.push(next.0 - now.0);
            now = next;
            claim = claim.after(missing(), now, 0);
            assert_eq!(claim.state, State::Pending);
        }
        let minutes: Vec<i64> = pauses.iter().map(|pause| pause / MINUTE_MS).collect();
        assert_eq!(minutes[..11], [1, 2, 4, 8, 16, 32, 64, 128, 256, 360, 360]);
        assert!(now.0 - NOW.0 >= TRIED_MS && now.0 - NOW.0 < TRIED_MS + DAY_MS, "{now:?}");
        assert_eq!(
            claim.after(Finding::Proven(Proof::Txt), now, 0).state,
            State::Verified,
            "when it is asked for"
        );
    }

    #[test]
    fn a_proof_is_lost_after_three_checks_and_may_come_back() {
        let proven = claim().after(Finding::Proven(Proof::File), NOW, 0);
        assert_eq!((proven.state, proven.proof), (State::Verified, Some(Proof::File)));
        assert_eq!(proven.next_check, Some(UnixMillis(NOW.0 + DAY_MS)));
        let at = |hours: i64| UnixMillis(NOW.0 + hours * HOUR_MS);
        let once = proven.after(missing(), at(24), 0);
        assert_eq!((once.state, once.next_check), (State::Verified, Some(at(25))));
        let again = once.clone().after(Finding::Proven(Proof::Txt), at(25), 0);
        assert_eq!((again.failures, again.fault), (0, None), "one failure is no loss");
        let lost = once.after(missing(), at(25), 0).after(missing(), at(26), 0);
        assert_eq!((lost.state, lost.unproven_since), (State::Unproven, Some(at(26))));
        let still = lost.after(missing(), at(27), 0);
        assert_eq!((still.unproven_since, still.next_check), (Some(at(26)), Some(at(33))));
        assert_eq!(still.verified_at, Some(NOW));
        let back = still.after(Finding::Proven(Proof::Txt), at(33), 0);
        assert_eq!((back.state, back.unproven_since, back.failures), (State::Verified, None, 0));
    }

    #[test]
    fn checks_in_a_hurry_lose_no_proof() {
        let mut claim = claim().after(Finding::Proven(Proof::Txt), NOW, 0);
        for minutes in [1, 2, 3, 4, 25 * 60] {
            claim = claim.after(missing(), UnixMillis(NOW.0 + minutes * MINUTE_MS), 0);
            assert_eq!(claim.state, State::Verified, "{minutes}");
        }
        let lost = claim.after(missing(), UnixMillis(NOW.0 + 26 * HOUR_MS), 0);
        assert_eq!((lost.state, lost.failures), (State::Unproven, 6));
    }

    #[test]
    fn an_outage_loses_a_proof_after_three_days() {
        let mut claim = claim().after(Finding::Proven(Proof::Txt), NOW, 0);
        let mut hours = 0;
        while claim.state == State::Verified {
            hours += 1;
            let at = UnixMillis(NOW.0 + hours * HOUR_MS);
            claim = claim.after(Finding::Unanswered("DNS gave no answer".to_owned()), at, 0);
        }
        assert_eq!((claim.state, hours), (State::Unproven, 72));
    }

    #[test]
    fn a_claim_on_what_is_taken_waits_for_its_account() {
        let refused = claim().after(Finding::Taken, NOW, 0);
        assert_eq!((refused.state, refused.next_check), (State::Refused, None));
        // The other account has removed it.
        assert_eq!(refused.after(missing(), NOW, 0).state, State::Pending);
    }

    #[test]
    fn pauses_vary_by_a_tenth() {
        let next =
            |jitter| claim().after(Finding::Proven(Proof::Txt), NOW, jitter).next_check.unwrap().0 - NOW.0;
        assert_eq!(next(0), DAY_MS);
        assert!(next(255) > DAY_MS && next(255) <= DAY_MS + DAY_MS / 10, "{}", next(255));
    }

    #[test]
    fn names_are_read_back() {
        for state in State::ALL {
            assert_eq!(state.as_str().parse(), Ok(state));
        }
        for proof in Proof::ALL {
            assert_eq!(proof.as_str().parse(), Ok(proof));
        }
        assert_eq!("lost".parse::<State>(), Err(Unknown));
    }
}
