//! When a link leads to its target, and where it leads at other times.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{problem::Code, time::UnixMillis};

/// `status` of a link that is not paused.
pub const ACTIVE: &str = "active";
/// `status` of a paused link.
pub const PAUSED: &str = "paused";

/// Most scans that a link may be limited to.
pub const MAX_SCANS: u32 = 1_000_000_000;

/// The time window of a link, after how many scans it ends, whether it is paused, and where it leads while it is closed.
///
/// Bounds are stored and never what follows from them: each request is compared with the clock and with the counts, so an answer
/// changes at the moment itself, without a message from anybody.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Availability {
    /// The first millisecond in which it is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_from: Option<UnixMillis>,
    /// The first millisecond in which it is no longer open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_until: Option<UnixMillis>,
    /// Scans after which it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_scans: Option<u32>,
    /// Scans that each edge counted while the link had `max_scans`, as far as control knows, by name of the edge. They stay when
    /// the limit goes.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub scans: BTreeMap<Box<str>, u32>,
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
    /// Its window is over, or its scans are used up.
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
        if self.valid_until.is_some_and(|until| now >= until) || self.is_used_up() {
            Some(Closed::Ended)
        } else if self.is_paused {
            Some(Closed::Paused)
        } else if self.valid_from.is_some_and(|from| now < from) {
            Some(Closed::Scheduled)
        } else {
            None
        }
    }

    /// Scans that are counted, as far as control knows.
    #[must_use]
    pub fn counted(&self) -> u64 {
        self.scans.values().copied().map(u64::from).sum()
    }

    /// A former availability with the scans that are counted by now: what was scanned, no undo takes back.
    #[must_use]
    pub fn back_to(former: Option<Box<Self>>, now: Option<&Self>) -> Option<Box<Self>> {
        let scans = now.map(|now| now.scans.clone()).unwrap_or_default();
        let after = Self { scans, ..former.map(|former| *former).unwrap_or_default() };
        (!after.is_empty()).then(|| Box::new(after))
    }

    /// Whether as many scans are counted as it may have. An edge that counts itself knows of more.
    #[must_use]
    pub fn is_used_up(&self) -> bool {
        self.max_scans.is_some_and(|most| self.counted() >= u64::from(most))
    }

    /// `status` in requests and answers.
    #[must_use]
    pub const fn status(&self) -> &'static str {
        if self.is_paused { PAUSED } else { ACTIVE }
    }

    /// The members of requests, answers and events: those that are set, and `status` only of a paused link.
    pub fn members(&self) -> impl Iterator<Item = (&'static str, Value)> {
        let Self { valid_from, valid_until, max_scans, scans: _, is_paused, ended_url } = self;
        let members = [
            ("validFrom", valid_from.map(|at| at.0.into())),
            ("validUntil", valid_until.map(|at| at.0.into())),
            ("maxScans", max_scans.map(Value::from)),
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
            ..Availability::default()
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
    fn a_link_ends_when_its_scans_are_used_up() {
        let used = |max_scans, scans: &[(&str, u32)], is_paused| Availability {
            max_scans,
            scans: scans.iter().map(|(edge, count)| ((*edge).into(), *count)).collect(),
            is_paused,
            ..Availability::default()
        };
        for (link, expected) in [
            (used(Some(1), &[], false), None),
            (used(Some(5), &[("e1", 2), ("e2", 2)], false), None),
            (used(Some(5), &[("e1", 2), ("e2", 3)], false), Some(Closed::Ended)),
            (used(Some(5), &[("e1", u32::MAX), ("e2", u32::MAX)], true), Some(Closed::Ended)),
            (used(None, &[("e1", 9)], false), None),
        ] {
            assert_eq!(link.closed(UnixMillis(0)), expected, "{link:?}");
        }
        let (former, now) = (used(Some(2), &[("e1", 1)], false), used(None, &[("e1", 9)], true));
        let back = Availability::back_to(Some(Box::new(former)), Some(&now));
        assert_eq!(back.as_deref(), Some(&used(Some(2), &[("e1", 9)], false)));
        assert_eq!(Availability::back_to(None, None), None);
        let limited: Availability = serde_json::from_str(r#"{"maxScans":5,"scans":{"e1":2}}"#).unwrap();
        assert_eq!(limited, used(Some(5), &[("e1", 2)], false));
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
            max_scans: Some(7),
            scans: [("e1".into(), 3)].into(),
            is_paused: true,
            ended_url: Some("https://e.com/".into()),
        };
        let shown = json!({"validFrom": 5, "validUntil": 9, "maxScans": 7, "status": "paused",
            "endedUrl": "https://e.com/"});
        assert_eq!((members(&all), all.status()), (shown, "paused"));
    }
}
