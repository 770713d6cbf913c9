//! How long roll-ups are kept.

use shared::time::UnixMillis;

use super::roll_ups::{DAY_HOURS, hour};

/// Days for which hours, and the days of links, can be asked for. Days of anything else are kept without end.
pub const KEPT_DAYS: i32 = 400;

/// Days after which they are removed: later than they cannot be asked for any more, so that no answer misses some.
const REMOVED_DAYS: i32 = KEPT_DAYS + 2;

/// From when on rows are stored; those before are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    /// The first hour of rows by the hour.
    pub from_hour: i32,
    /// The first day of rows of links.
    pub links_from_day: i32,
}

impl Kept {
    /// What is stored at a time.
    #[must_use]
    pub fn at(now: UnixMillis) -> Self {
        let links_from_day = hour(now.0).div_euclid(DAY_HOURS).saturating_sub(REMOVED_DAYS);
        Self { from_hour: links_from_day.saturating_mul(DAY_HOURS), links_from_day }
    }
}

/// The first hour that can be asked for by the hour, or by link.
#[must_use]
pub fn oldest_hour(now: UnixMillis) -> i32 {
    hour(now.0).saturating_sub(KEPT_DAYS * DAY_HOURS)
}
