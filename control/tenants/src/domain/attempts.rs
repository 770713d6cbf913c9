//! Limits on attempts for one e-mail address. They apply whether or not a user has the address; otherwise the limit would
//! reveal it.

use shared::time::UnixMillis;

/// What is attempted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptKind {
    /// A password of a login.
    Password,
    /// The old password of a change.
    Change,
    /// A registration, which sends a mail.
    Registration,
    /// A password reset, which sends a mail.
    Reset,
    /// An invitation, which sends a mail.
    Invitation,
    /// Any mail of an account, with the most per hour.
    Mail(u32),
    /// Any mail of an account that one network requested, with the most per hour.
    NetworkMail(u32),
}

const SECOND_MS: i64 = 1_000;
const HOUR_MS: i64 = 3_600 * SECOND_MS;

/// Wrong passwords without a pause: a person mistypes a few times.
const FREE_PASSWORDS: u32 = 5;
/// The first pause, and the longest; each is twice the one before. So a day has some 30 guesses, from however many
/// networks they come.
const PAUSES_MS: (i64, i64) = (30 * SECOND_MS, HOUR_MS);
/// After a day without a try nothing is held against an address.
pub const FORGET_MS: i64 = 24 * HOUR_MS;
/// Mails of one kind to one address an hour. A code of a reset is valid for an hour, so whoever asks in the name of
/// others leaves them a code that works.
const MAILS: u32 = 3;

impl AttemptKind {
    /// Part of what is hashed for the subject.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Password => "password",
            Self::Change => "change",
            Self::Registration => "registration",
            Self::Reset => "reset",
            Self::Invitation => "invitation",
            Self::Mail(_) => "mail",
            Self::NetworkMail(_) => "networkMail",
        }
    }
}

/// The tries with an address so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Attempts {
    /// How many.
    pub count: u32,
    /// Of passwords, when the pause ends; of mails, when the hour ends.
    pub until: UnixMillis,
    /// When the last one was.
    pub last_at: UnixMillis,
}

/// There were too many attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryAfter {
    /// How long to wait.
    pub seconds: u64,
}

impl Attempts {
    /// With one more try; it counts before its result is known, so that many at once are no more than one by one.
    ///
    /// # Errors
    /// It comes too early, and nothing changes.
    pub fn with(self, tried: AttemptKind, now: UnixMillis) -> Result<Self, RetryAfter> {
        let is_over = self.until <= now;
        let wait =
            RetryAfter { seconds: u64::try_from((self.until.0 - now.0 + 999) / 1_000).unwrap_or_default() };
        match tried {
            AttemptKind::Password | AttemptKind::Change if !is_over => Err(wait),
            AttemptKind::Password | AttemptKind::Change => {
                let is_forgotten = self.last_at.0.saturating_add(FORGET_MS) <= now.0;
                let count = if is_forgotten { 1 } else { self.count.saturating_add(1) };
                Ok(Self { count, until: UnixMillis(now.0.saturating_add(pause_ms(count))), last_at: now })
            }
            AttemptKind::Registration | AttemptKind::Reset | AttemptKind::Invitation => {
                self.within_the_hour(MAILS, now).ok_or(wait)
            }
            AttemptKind::Mail(most) | AttemptKind::NetworkMail(most) => {
                self.within_the_hour(most, now).ok_or(wait)
            }
        }
    }

    fn within_the_hour(self, most: u32, now: UnixMillis) -> Option<Self> {
        if self.until <= now {
            return Some(Self { count: 1, until: UnixMillis(now.0.saturating_add(HOUR_MS)), last_at: now });
        }
        (self.count < most).then_some(Self { count: self.count.saturating_add(1), last_at: now, ..self })
    }
}

/// The pause after so many tries.
fn pause_ms(count: u32) -> i64 {
    match count.checked_sub(FREE_PASSWORDS) {
        None => 0,
        Some(doublings) => PAUSES_MS.0.saturating_mul(1 << doublings.min(16)).min(PAUSES_MS.1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_passwords_slow_down_an_address() {
        let mut attempts = Attempts::default();
        let mut now = UnixMillis(1_000_000);
        for pause in [0, 0, 0, 0, 30, 60, 120, 240, 480, 960, 1_920, 3_600, 3_600] {
            attempts = attempts.with(AttemptKind::Password, now).unwrap();
            assert_eq!(attempts.until.0 - now.0, pause * 1_000, "{}", attempts.count);
            if pause > 0 {
                let early = UnixMillis(attempts.until.0 - 1_500);
                assert_eq!(attempts.with(AttemptKind::Password, early), Err(RetryAfter { seconds: 2 }));
            }
            now = attempts.until;
        }
        let later = UnixMillis(attempts.last_at.0 + FORGET_MS);
        assert_eq!(attempts.with(AttemptKind::Password, later).map(|attempts| attempts.count), Ok(1));
    }

    #[test]
    fn an_address_gets_three_mails_of_a_kind_an_hour() {
        for tried in
            [AttemptKind::Registration, AttemptKind::Reset, AttemptKind::Mail(3), AttemptKind::NetworkMail(3)]
        {
            let mut attempts = Attempts::default();
            for minute in [0, 10, 59] {
                attempts = attempts.with(tried, UnixMillis(60_000 * minute)).unwrap();
            }
            assert_eq!(attempts.with(tried, UnixMillis(HOUR_MS - 1)), Err(RetryAfter { seconds: 1 }));
            assert_eq!(attempts.with(tried, UnixMillis(HOUR_MS)).map(|attempts| attempts.count), Ok(1));
        }
    }
}
