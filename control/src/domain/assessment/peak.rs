//! What does not fade: the greatest points of a duplicate since the commissioning, and the standing of an item.

use std::str::FromStr;

use shared::{
    id::ActionId,
    standing::{Authenticity, Risk, Verdict},
    time::UnixMillis,
};

/// What the points of a duplicate amounted to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Nothing, or too little.
    #[default]
    None,
    /// It may be a duplicate.
    Suspected,
    /// It is one.
    Duplicate,
}

impl Level {
    /// The word as it is stored.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Suspected => "suspected",
            Self::Duplicate => "duplicate",
        }
    }
}

impl FromStr for Level {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        [Self::None, Self::Suspected, Self::Duplicate].into_iter().find(|one| one.as_str() == text).ok_or(())
    }
}

/// The greatest points of an item, and the scan that brought them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peak {
    /// The greatest sum of points.
    pub points: u32,
    /// The greatest level, which goes by more than the sum.
    pub level: Level,
    /// The scan that raised either last.
    pub scan: ActionId,
    /// When it happened.
    pub at: UnixMillis,
}

impl Peak {
    /// The peak after an assessment; never lower in points or level than before it.
    ///
    /// One of before the last commissioning, which is at `since`, counts no more.
    #[must_use]
    pub fn raised(before: Option<Self>, found: Self, since: Option<UnixMillis>) -> Self {
        match before.filter(|before| before.is_since(since)) {
            None => found,
            Some(before) if found.points <= before.points && found.level <= before.level => before,
            Some(before) => Self {
                points: found.points.max(before.points),
                level: found.level.max(before.level),
                ..found
            },
        }
    }

    /// Whether it was reached after the commissioning.
    #[must_use]
    pub fn is_since(&self, since: Option<UnixMillis>) -> bool {
        since.is_none_or(|since| self.at >= since)
    }
}

/// The standing of an item: what its newest assessed scan said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stood {
    /// The verdict that edges get.
    pub verdict: Verdict,
    /// When the scan happened that wrote it; nothing where only public scans did, or none is known.
    pub at: Option<UnixMillis>,
}

/// What an assessment may do to a standing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judgement {
    /// What it says.
    pub verdict: Verdict,
    /// When the scan happened.
    pub at: UnixMillis,
    /// Whether its country is known.
    pub has_country: bool,
    /// Whether it is a scan by a public key.
    pub is_public: bool,
}

/// The standing after an assessment; `None` when it stays as it is.
///
/// Only a scan that is not older than the one that wrote it changes it. A scan without a country does not lift a
/// diversion: the last known country holds. One by a public key lifts nothing, and does not keep the scans of edges
/// that come in after it from being the newest.
#[must_use]
pub fn advanced(before: Option<Stood>, now: Judgement) -> Option<Stood> {
    let Some(before) = before else {
        return Some(Stood { verdict: now.verdict, at: Some(now.at).filter(|_| !now.is_public) });
    };
    if before.at.is_some_and(|at| now.at < at) {
        return None;
    }
    let mut verdict = now.verdict;
    if now.is_public {
        verdict = Verdict {
            authentication: held(
                before.verdict.authentication,
                verdict.authentication,
                Authenticity::Unknown,
            ),
            counterfeit: held(before.verdict.counterfeit, verdict.counterfeit, Risk::Unknown),
            gray_market: held(before.verdict.gray_market, verdict.gray_market, Risk::Unknown),
        };
    } else if !now.has_country && before.verdict.gray_market > Risk::Unknown {
        verdict.gray_market = before.verdict.gray_market.max(verdict.gray_market);
        let by_market = match verdict.gray_market {
            Risk::Confirmed => Authenticity::Negative,
            Risk::Suspected => Authenticity::Suspicious,
            Risk::None | Risk::Unknown => verdict.authentication,
        };
        verdict.authentication = verdict.authentication.max(by_market);
    }
    Some(Stood { verdict, at: if now.is_public { before.at } else { Some(now.at) } })
}

/// What stands where a public scan says `now`: what is worse than unknown stays.
fn held<T: Ord>(before: T, now: T, unknown: T) -> T {
    if before > unknown { before.max(now) } else { now }
}

/// The verdict where some scans are by public keys: `believed` without them, `all` as if they were believed, too.
///
/// Alone they never move a verdict beyond unknown, and they lift none that is worse.
#[must_use]
pub fn settled(believed: Verdict, all: Verdict) -> Verdict {
    fn of<T: Ord + Copy>(believed: T, all: T, unknown: T) -> T {
        if believed > unknown { believed } else { all.min(unknown) }
    }
    Verdict {
        authentication: of(believed.authentication, all.authentication, Authenticity::Unknown),
        counterfeit: of(believed.counterfeit, all.counterfeit, Risk::Unknown),
        gray_market: of(believed.gray_market, all.gray_market, Risk::Unknown),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn verdicts() -> impl Strategy<Value = Verdict> {
        let risk = || prop::sample::select(Risk::ALL);
        (prop::sample::select(Authenticity::ALL), risk(), risk()).prop_map(
            |(authentication, counterfeit, gray_market)| Verdict { authentication, counterfeit, gray_market },
        )
    }

    prop_compose! {
        fn judgements()(verdict in verdicts(), at in 0..20_i64, has_country in any::<bool>(),
            is_public in prop::bool::weighted(0.3)) -> Judgement
        {
            Judgement { verdict, at: UnixMillis(at), has_country, is_public }
        }
    }

    fn after(all: &[Judgement]) -> Option<Stood> {
        all.iter().fold(None, |before, now| advanced(before, *now).or(before))
    }

    proptest! {
        #[test]
        fn a_later_assessment_of_an_older_scan_never_changes_the_standing(
            all in prop::collection::vec(judgements(), 0..12),
            older in judgements(),
        ) {
            let before = after(&all);
            if before.and_then(|stood| stood.at).is_some_and(|at| older.at < at) {
                prop_assert_eq!(advanced(before, older), None);
            }
        }

        #[test]
        fn a_scan_without_a_country_lifts_no_confirmed_diversion(
            all in prop::collection::vec(judgements(), 0..12),
            now in judgements(),
        ) {
            let before = after(&all);
            if before.is_some_and(|stood| stood.verdict.gray_market == Risk::Confirmed) && !now.has_country {
                let stood = advanced(before, now).or(before).unwrap();
                prop_assert_eq!(stood.verdict.gray_market, Risk::Confirmed);
            }
        }

        #[test]
        fn a_public_scan_lifts_nothing_and_does_not_become_the_newest(
            all in prop::collection::vec(judgements(), 1..12),
            now in judgements(),
        ) {
            let before = after(&all).unwrap();
            let stood = advanced(Some(before), Judgement { is_public: true, ..now }).unwrap_or(before);
            prop_assert_eq!(stood.at, before.at);
            prop_assert!(before.verdict.counterfeit <= Risk::Unknown
                || stood.verdict.counterfeit >= before.verdict.counterfeit);
            prop_assert!(before.verdict.gray_market <= Risk::Unknown
                || stood.verdict.gray_market >= before.verdict.gray_market);
        }

        #[test]
        fn public_scans_alone_never_move_a_verdict_beyond_unknown(believed in verdicts(), all in verdicts()) {
            let found = settled(believed, all);
            prop_assert!(found.authentication <= believed.authentication.max(Authenticity::Unknown));
            prop_assert!(found.counterfeit <= believed.counterfeit.max(Risk::Unknown));
            prop_assert!(found.gray_market <= believed.gray_market.max(Risk::Unknown));
            // Nor do they lift one that is worse.
            prop_assert!(believed.counterfeit <= Risk::Unknown || found.counterfeit == believed.counterfeit);
            prop_assert!(believed.gray_market <= Risk::Unknown || found.gray_market == believed.gray_market);
        }

        #[test]
        fn points_since_commissioning_never_fall(
            found in prop::collection::vec((0..30_u32, 0..3_usize, 0..100_i64), 1..20),
        ) {
            let levels = [Level::None, Level::Suspected, Level::Duplicate];
            let mut before: Option<Peak> = None;
            for (n, (points, level, at)) in found.into_iter().enumerate() {
                let scan = ActionId::new(at, [n as u8; 16]);
                let found = Peak { points, level: levels[level], scan, at: UnixMillis(at) };
                let peak = Peak::raised(before, found, Some(UnixMillis(0)));
                prop_assert!(peak.points >= points && peak.level >= found.level);
                prop_assert!(before.is_none_or(|before| peak.points >= before.points && peak.level >= before.level));
                before = Some(peak);
            }
        }
    }

    #[test]
    fn a_new_commissioning_begins_anew() {
        let peak = |points, at| Peak {
            points,
            level: Level::Duplicate,
            scan: ActionId::new(at, [1; 16]),
            at: UnixMillis(at),
        };
        let (old, new) = (peak(20, 5), peak(1, 15));
        assert_eq!(Peak::raised(Some(old), new, Some(UnixMillis(10))), new);
        assert_eq!(Peak::raised(Some(old), new, Some(UnixMillis(5))), old);
        assert_eq!(Peak::raised(Some(old), new, None), old);
    }
}
