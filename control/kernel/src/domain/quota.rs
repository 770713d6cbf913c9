//! Quotas of an account: how much it may hold, write in a day, and have open at once.

use std::fmt;

use shared::{problem::Code, time::UnixMillis};

use crate::error::DomainError;

/// Milliseconds in a day.
const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

/// Greatest limit: what every client reads as a whole number.
pub const MAX_LIMIT: u64 = (1 << 53) - 1;

shared::words! {
    /// What a quota bounds.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Quota {
        /// Things.
        Things = "things",
        /// Redirections that are not deleted.
        Links = "links",
        /// Bytes of files.
        StorageBytes = "storageBytes",
        /// Users of applications.
        Users = "users",
        /// Short domains that the account has claimed itself.
        ShortDomains = "shortDomains",
        /// Scans that are stored in a day: those of edges, and `scans` that a key writes.
        ScansPerDay = "scansPerDay",
        /// Values of properties, and actions other than scans, that keys write in a day.
        EventsPerDay = "eventsPerDay",
        /// Open event streams, exports, WebSockets and MQTT connections.
        Streams = "streams",
        /// Files that are being uploaded.
        Uploads = "uploads",
    } else UnknownQuota
}

/// How a quota is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nature {
    /// What there is, until it is deleted.
    Held,
    /// What came since midnight in UTC.
    Daily,
    /// What is open at this moment.
    Open,
}

impl Quota {
    /// How it is counted.
    #[must_use]
    pub const fn nature(self) -> Nature {
        match self {
            Self::Things | Self::Links | Self::StorageBytes | Self::Users | Self::ShortDomains => {
                Nature::Held
            }
            Self::ScansPerDay | Self::EventsPerDay => Nature::Daily,
            Self::Streams | Self::Uploads => Nature::Open,
        }
    }

    /// The quota that an action of a type counts for.
    #[must_use]
    pub fn of_action(kind: &str) -> Self {
        if matches!(kind, "scans" | "implicitScans") { Self::ScansPerDay } else { Self::EventsPerDay }
    }

    /// The day that it is counted in, in days since 1970; 0 for what is not counted by day.
    #[must_use]
    pub const fn day(self, now: UnixMillis) -> i64 {
        match self.nature() {
            Nature::Daily => now.0.div_euclid(DAY_MS),
            Nature::Held | Nature::Open => 0,
        }
    }

    const fn code(self) -> Code {
        match self.nature() {
            Nature::Held => Code::QuotaUsedUp,
            Nature::Daily => Code::DailyQuotaUsedUp,
            Nature::Open => Code::OpenQuotaUsedUp,
        }
    }
}

impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A text that names no quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not the name of a quota")]
pub struct UnknownQuota;

/// When the present day began.
#[must_use]
pub const fn begin_of_day(now: UnixMillis) -> UnixMillis {
    UnixMillis(now.0.div_euclid(DAY_MS).saturating_mul(DAY_MS))
}

/// When the present day is over.
#[must_use]
pub const fn next_day(now: UnixMillis) -> UnixMillis {
    UnixMillis(now.0.div_euclid(DAY_MS).saturating_add(1).saturating_mul(DAY_MS))
}

/// Seconds until then, at least one.
#[must_use]
pub fn seconds_to_next_day(now: UnixMillis) -> u64 {
    u64::try_from(next_day(now).0.saturating_sub(now.0)).unwrap_or_default().div_ceil(1_000).max(1)
}

/// A write that would exceed a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub struct Exceeded {
    /// Which.
    pub quota: Quota,
    /// How much the account may have.
    pub limit: u64,
    /// How much it has.
    pub used: u64,
    /// How much the write would have added.
    pub wanted: u64,
}

impl DomainError for Exceeded {
    fn code(&self) -> Code {
        self.quota.code()
    }
}

impl fmt::Display for Exceeded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { quota, limit, used, wanted } = self;
        let what = match quota.nature() {
            Nature::Held => "in use",
            Nature::Daily => "used since midnight (UTC)",
            Nature::Open => "open",
        };
        write!(
            f,
            "The quota {quota} of this account is used up: {used} of {limit} are {what}, and this needs {wanted} more."
        )
    }
}

/// What a quota is set to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// What holds for all accounts.
    Default,
    /// No limit, whatever holds for all accounts.
    Unlimited,
    /// This much.
    Most(u64),
}

/// The limit of an account for a quota, and its use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Usage {
    /// Which.
    pub quota: Quota,
    /// How much the account may have; `None` is any amount.
    pub limit: Option<u64>,
    /// Whether that was said of this account, and not of all.
    pub is_own: bool,
    /// How much it has; `None` while it is counted for the first time, and where it is not counted.
    pub used: Option<u64>,
    /// Whether `used` is only what was counted up to a bound.
    pub is_at_least: bool,
    /// How many scans came above the quota today, and were not stored.
    pub over: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_back_and_each_has_a_code() {
        for quota in Quota::ALL {
            assert_eq!(quota.as_str().parse(), Ok(quota));
            assert!(matches!(quota.code().status(), 403 | 429), "{quota}");
        }
        assert_eq!("thngs".parse::<Quota>(), Err(UnknownQuota));
    }

    #[test]
    fn a_day_ends_at_midnight_in_utc() {
        let day = |ms| Quota::ScansPerDay.day(UnixMillis(ms));
        assert_eq!([day(0), day(DAY_MS - 1), day(DAY_MS), day(-1)], [0, 0, 1, -1]);
        assert_eq!(Quota::Things.day(UnixMillis(DAY_MS * 9)), 0);
        for (now, seconds) in [(0, 86_400), (DAY_MS - 1, 1), (DAY_MS - 1_000, 1), (DAY_MS - 1_001, 2)] {
            assert_eq!(seconds_to_next_day(UnixMillis(now)), seconds, "{now}");
        }
        assert_eq!(seconds_to_next_day(UnixMillis(i64::MAX)), 1);
    }

    #[test]
    fn the_refusal_names_quota_limit_and_use() {
        let exceeded = Exceeded { quota: Quota::Links, limit: 10, used: 9, wanted: 2 };
        let text = exceeded.to_string();
        assert!(text.contains("links") && text.contains("9 of 10") && text.contains("2 more"), "{text}");
        assert_eq!(Quota::of_action("implicitScans"), Quota::ScansPerDay);
        assert_eq!(Quota::of_action("_x"), Quota::EventsPerDay);
    }
}
