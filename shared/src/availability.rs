//! When a link leads to its target, and where it leads at other times.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{problem::Code, time::UnixMillis};

/// `status` of a link that is not paused.
pub const ACTIVE: &str = "active";
/// `status` of a paused link.
pub const PAUSED: &str = "paused";

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

impl Closed {
    /// What a scan gets where the link has no ended page.
    #[must_use]
    pub const fn code(self) -> Code {
        match self {
            Self::Ended => Code::LinkEnded,
            Self::Paused => Code::LinkPaused,
            Self::Scheduled => Code::LinkScheduled,
        }
    }

    /// The reason as answers name it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ended => "ended",
            Self::Paused => PAUSED,
            Self::Scheduled => "scheduled",
        }
    }
}

impl Availability {
    /// Whether no member is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Why a link is closed at a moment. If several reasons hold, the first of: ended, paused, scheduled.
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

    /// `status` in requests and answers.
    #[must_use]
    pub const fn status(&self) -> &'static str {
        if self.is_paused { PAUSED } else { ACTIVE }
    }

    /// The members of requests, answers and events: those that are set, and `status` only of a paused link.
    pub fn members(&self) -> impl Iterator<Item = (&'static str, Value)> {
        let Self { valid_from, valid_until, is_paused, ended_url } = self;
        let members = [
            ("validFrom", valid_from.map(|at| at.0.into())),
            ("validUntil", valid_until.map(|at| at.0.into())),
            ("status", is_paused.then(|| self.status().into())),
            ("endedUrl", ended_url.as_deref().map(Value::from)),
        ];
        members.into_iter().filter_map(|(name, value)| Some((name, value?)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_link_is_open_from_its_start_to_just_before_its_end() {
        use Closed::{Ended, Paused, Scheduled};
        let availability = |from: Option<i64>, until: Option<i64>, is_paused| Availability {
            valid_from: from.map(UnixMillis),
            valid_until: until.map(UnixMillis),
            is_paused,
            ended_url: None,
        };
        for (link, now, expected) in [
            (availability(None, None, false), 0, None),
            (availability(None, None, true), 0, Some(Paused)),
            (availability(Some(5), None, false), 4, Some(Scheduled)),
            (availability(Some(5), None, false), 5, None),
            (availability(None, Some(5), false), 4, None),
            (availability(None, Some(5), false), 5, Some(Ended)),
            (availability(Some(3), Some(5), false), 2, Some(Scheduled)),
            (availability(Some(3), Some(5), false), 4, None),
            (availability(Some(3), Some(5), false), i64::MAX, Some(Ended)),
            (availability(Some(3), Some(5), true), 2, Some(Paused)),
            (availability(Some(3), Some(5), true), 4, Some(Paused)),
            (availability(Some(3), Some(5), true), 5, Some(Ended)),
        ] {
            assert_eq!(link.closed(UnixMillis(now)), expected, "{link:?} at {now}");
        }
    }

    #[test]
    fn only_members_that_are_set_are_written() {
        assert_eq!(serde_json::to_string(&Availability::default()).unwrap(), "{}");
        let paused = Availability { is_paused: true, ..Availability::default() };
        assert_eq!(serde_json::to_string(&paused).unwrap(), r#"{"isPaused":true}"#);
        let newer: Availability = serde_json::from_str(r#"{"validUntil":7,"moon":"full"}"#).unwrap();
        assert_eq!(newer.valid_until, Some(UnixMillis(7)));
    }

    #[test]
    fn answers_have_the_members_that_are_set() {
        let members = |availability: &Availability| {
            let members = availability.members().map(|(name, value)| (name.to_owned(), value));
            Value::Object(members.collect())
        };
        let none = Availability::default();
        assert_eq!((members(&none), none.status()), (json!({}), "active"));
        let all = Availability {
            valid_from: Some(UnixMillis(5)),
            valid_until: Some(UnixMillis(9)),
            is_paused: true,
            ended_url: Some("https://e.com/".into()),
        };
        let shown =
            json!({"validFrom": 5, "validUntil": 9, "status": "paused", "endedUrl": "https://e.com/"});
        assert_eq!((members(&all), all.status()), (shown, "paused"));
    }
}
