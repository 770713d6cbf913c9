//! When a link leads to its target, and where it leads at other times.

use serde::{Deserialize, Serialize};

use crate::time::UnixMillis;

/// The time window of a link, whether it is paused, and where it leads while it is closed.
///
/// Bounds are stored and never what follows from them: each request is compared with the clock, so an answer changes at the
/// moment itself, without a message from anybody.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Availability {
    /// The first millisecond in which it is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_from: Option<UnixMillis>,
    /// The first millisecond in which it is no longer open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<UnixMillis>,
    /// Somebody closed it for now.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_paused: bool,
    /// Where it leads while it is closed, tags not expanded; validated when it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_url: Option<Box<str>>,
}

/// Why a link does not lead to its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    /// Its window is over.
    Ended,
    /// Somebody paused it.
    Paused,
    /// Its window is still to come.
    Scheduled,
}

impl Availability {
    /// Whether nothing of it was ever said.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Why a link is closed at a moment; the one that lasts longest, where several hold.
    #[must_use]
    pub fn closed(&self, now: UnixMillis) -> Option<Closed> {
        if self.valid_until.is_some_and(|until| now >= until) {
            Some(Closed::Ended)
        } else if self.is_paused {
            Some(Closed::Paused)
        } else if self.valid_from.is_some_and(|from| now < from) {
            Some(Closed::Scheduled)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_open_from_its_start_to_just_before_its_end() {
        use Closed::{Ended, Paused, Scheduled};
        let of = |from: Option<i64>, until: Option<i64>, is_paused| Availability {
            valid_from: from.map(UnixMillis),
            valid_until: until.map(UnixMillis),
            is_paused,
            ended_url: None,
        };
        for (availability, now, expected) in [
            (of(None, None, false), 0, None),
            (of(None, None, true), 0, Some(Paused)),
            (of(Some(5), None, false), 4, Some(Scheduled)),
            (of(Some(5), None, false), 5, None),
            (of(None, Some(5), false), 4, None),
            (of(None, Some(5), false), 5, Some(Ended)),
            (of(Some(3), Some(5), false), 2, Some(Scheduled)),
            (of(Some(3), Some(5), false), 4, None),
            (of(Some(3), Some(5), false), i64::MAX, Some(Ended)),
            (of(Some(3), Some(5), true), 2, Some(Paused)),
            (of(Some(3), Some(5), true), 4, Some(Paused)),
            (of(Some(3), Some(5), true), 5, Some(Ended)),
        ] {
            assert_eq!(availability.closed(UnixMillis(now)), expected, "{availability:?} at {now}");
        }
    }

    #[test]
    fn only_what_was_said_is_written() {
        assert_eq!(serde_json::to_string(&Availability::default()).unwrap(), "{}");
        let paused = Availability { is_paused: true, ..Availability::default() };
        assert_eq!(serde_json::to_string(&paused).unwrap(), r#"{"isPaused":true}"#);
        let newer: Availability = serde_json::from_str(r#"{"validUntil":7,"moon":"full"}"#).unwrap();
        assert_eq!(newer.valid_until, Some(UnixMillis(7)));
    }
}
