//! The retry schedule of webhook messages, and how a failing receiver is treated.

use std::time::Duration;

/// How long a message is tried after its first try, and how long a receiver may fail before it is paused.
pub const TRIED_MS: i64 = 24 * 60 * 60 * 1_000;

/// Fewest failed batches before a receiver is paused.
const MIN_FAILURES: i64 = 10;

/// Failed batches after which a receiver gets one message at a time, until it accepts one.
const PROBED_AFTER: i64 = 3;

/// Pauses before the next attempts of a message, in seconds; the last one applies to all further attempts.
const PAUSES_S: [u64; 9] = [1, 5, 30, 120, 600, 1_800, 3_600, 7_200, 14_400];

/// Longest pause between two batches to a failing receiver.
const MAX_PAUSE: Duration = Duration::from_secs(60);

/// What happens to a message that was not accepted, after this many attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// It is tried again after this pause.
    After(Duration),
    /// It is given up, and can be sent again by hand.
    Dead,
}

/// The pause after the try number `tries`, the first of which was `age_ms` ago; `chance` is 0 to 1.
#[must_use]
pub fn retry(tries: i64, age_ms: i64, chance: f64) -> Retry {
    let index = usize::try_from(tries.saturating_sub(1)).unwrap_or(0).min(PAUSES_S.len() - 1);
    let seconds = PAUSES_S.get(index).copied().unwrap_or(1);
    if age_ms >= TRIED_MS {
        return Retry::Dead;
    }
    // Messages that failed together do not come back together.
    Retry::After(Duration::from_secs(seconds).mul_f64(0.8 + 0.4 * chance.clamp(0.0, 1.0)))
}

/// How a receiver does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Health {
    /// Failed batches since one in which a message was accepted.
    pub failures: i64,
    /// When the first of them was.
    pub failing_since: Option<i64>,
}

/// The consequences of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verdict {
    /// How the receiver does now.
    pub health: Health,
    /// How long the receiver is not contacted.
    pub pause: Duration,
    /// Whether it is paused for good.
    pub is_dead: bool,
}

impl Health {
    /// Most messages of the next batch.
    #[must_use]
    pub const fn room(self, most: u32) -> u32 {
        if self.failures >= PROBED_AFTER { 1 } else { most }
    }

    /// The consequences of a batch at `now_ms` in which a message was accepted, or none.
    #[must_use]
    pub fn after(self, was_taken: bool, now_ms: i64) -> Verdict {
        if was_taken {
            return Verdict { health: Self::default(), pause: Duration::ZERO, is_dead: false };
        }
        let failures = self.failures.saturating_add(1);
        let since = self.failing_since.unwrap_or(now_ms);
        let doublings = u32::try_from(failures - 1).unwrap_or(u32::MAX).min(6);
        Verdict {
            health: Self { failures, failing_since: Some(since) },
            pause: (Duration::from_millis(500) * 2_u32.pow(doublings)).min(MAX_PAUSE),
            is_dead: failures >= MIN_FAILURES && now_ms.saturating_sub(since) >= TRIED_MS,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retries_continue_for_a_day_with_growing_pauses() {
        let seconds = |retry| match retry {
            Retry::After(pause) => Some(pause.as_secs_f64()),
            Retry::Dead => None,
        };
        for (tries, age_ms, chance, expected) in [
            (1, 0, 0.5, Some(1.0)),
            (1, 0, 0.0, Some(0.8)),
            (1, 0, 1.0, Some(1.2)),
            (2, 1_000, 0.5, Some(5.0)),
            (9, 1_000, 0.5, Some(14_400.0)),
            (500, 1_000, 0.5, Some(14_400.0)),
            (3, TRIED_MS - 1, 0.5, Some(30.0)),
            (1, TRIED_MS, 0.5, None),
        ] {
            let found = seconds(retry(tries, age_ms, chance));
            let is_near = found.zip(expected).is_some_and(|(a, b)| (a - b).abs() < 1e-6);
            assert!(is_near || found == expected, "{tries} {age_ms} {chance}: {found:?}");
        }
        for chance in [0.0, 0.5, 1.0] {
            let (mut tries, mut age_ms) = (1, 0);
            while let Retry::After(pause) = retry(tries, age_ms, chance) {
                tries += 1;
                age_ms += i64::try_from(pause.as_millis()).unwrap();
            }
            assert!((12..=18).contains(&tries), "{tries} tries");
            assert!((TRIED_MS..TRIED_MS + 6 * 3_600_000).contains(&age_ms), "given up after {age_ms} ms");
        }
    }

    #[test]
    fn a_failing_receiver_is_probed_and_finally_paused() {
        let mut health = Health::default();
        for round in 1..=20 {
            let verdict = health.after(false, round * 1_000);
            assert!(!verdict.is_dead && verdict.pause <= MAX_PAUSE, "{verdict:?}");
            health = verdict.health;
            assert_eq!(health.room(16), if round >= PROBED_AFTER { 1 } else { 16 }, "{round}");
        }
        assert_eq!(health.failing_since, Some(1_000));
        assert!(health.after(false, 1_000 + TRIED_MS).is_dead);
        assert!(!Health { failures: 2, ..health }.after(false, 1_000 + TRIED_MS).is_dead);
        let taken = health.after(true, 1_000 + TRIED_MS);
        assert_eq!(taken, Verdict { health: Health::default(), pause: Duration::ZERO, is_dead: false });
    }
}
