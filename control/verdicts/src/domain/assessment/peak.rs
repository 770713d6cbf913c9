//! State that does not expire: the greatest duplicate points since commissioning, and the status of an item.

use serde::{Deserialize, Serialize};
use shared::{
    id::ActionId,
    standing::{Authenticity, Risk, Verdict},
    time::UnixMillis,
};

use super::RULES_VERSION;

shared::words! {
    /// The level of duplicate points.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Level {
        /// Nothing, or too little.
        #[default]
        None = "none",
        /// It may be a duplicate.
        Suspected = "suspected",
        /// It is one.
        Duplicate = "duplicate",
    } else ()
}

/// A scan, and when it happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByScan {
    /// The scan.
    pub scan: ActionId,
    /// When it happened.
    pub at: UnixMillis,
}

/// The rules version since which points have their present meaning; peaks of older rules are ignored until they are
/// counted again.
pub const POINTS_SINCE: u32 = 5;

/// The rules of the first release, whose peaks do not name their version.
pub const FIRST_RULES: u32 = 5;

/// The greatest points and the greatest level of an item since its commissioning, each with the scan that brought it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Peak {
    /// The greatest sum of points.
    pub points: u32,
    /// The scan that brought the points.
    pub points_by: ByScan,
    /// The greatest level, which depends on more than the points.
    pub level: Level,
    /// The scan that brought the level.
    pub level_by: ByScan,
    /// The commissioning that both belong to; nothing before the first one, and where the first release wrote it.
    #[serde(default)]
    pub since: Option<UnixMillis>,
    /// The version of the rules that counted.
    pub rules_version: u32,
}

impl Peak {
    /// What one scan brought, by the rules of now.
    #[must_use]
    pub const fn of_scan(points: u32, level: Level, by: ByScan, since: Option<UnixMillis>) -> Self {
        Self { points, points_by: by, level, level_by: by, since, rules_version: RULES_VERSION }
    }

    /// The peak after an assessment; never lower in points or level than before it.
    ///
    /// A scan of before the commissioning that the peak belongs to raises nothing, whenever it is assessed. A peak of
    /// before the commissioning of the scan counts no more, nor does one of older rules.
    #[must_use]
    pub fn raised(before: Option<Self>, found: Self) -> Self {
        let Some(before) = before.filter(Self::is_current) else { return found };
        if found.since < before.since {
            return before;
        }
        if !before.is_since(found.since) {
            return found;
        }
        let (mut next, mut is_raised) = (Self { since: found.since, ..before }, false);
        if found.points > before.points {
            (next.points, next.points_by, is_raised) = (found.points, found.points_by, true);
        }
        if found.level > before.level {
            (next.level, next.level_by, is_raised) = (found.level, found.level_by, true);
        }
        if is_raised { Self { rules_version: found.rules_version, ..next } } else { next }
    }

    /// Whether it was reached after the commissioning.
    #[must_use]
    pub fn is_since(&self, since: Option<UnixMillis>) -> bool {
        since.is_none_or(|since| self.points_by.at >= since && self.level_by.at >= since)
    }

    /// Whether the rules of now may be bound by it.
    #[must_use]
    pub const fn is_current(&self) -> bool {
        self.rules_version >= POINTS_SINCE
    }
}

/// The status of an item: the verdict of its newest assessed scan.
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
    /// Its verdict.
    pub verdict: Verdict,
    /// When the scan happened.
    pub at: UnixMillis,
    /// Whether its country is known.
    pub has_country: bool,
    /// Whether it is a scan by a public key.
    pub is_public: bool,
}

/// The item status after an assessment; `None` if it does not change.
///
/// Only a scan that is not older than the one that set it changes it. For the gray market the last known country
/// counts: a scan without one keeps that status. A scan by a public key improves nothing, and later scans of edges
/// still count as newest.
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
    } else if !now.has_country && (before.at.is_some() || before.verdict.gray_market > Risk::Unknown) {
        verdict = with_gray_market(verdict, before.verdict.gray_market);
    }
    Some(Stood { verdict, at: if now.is_public { before.at } else { Some(now.at) } })
}

/// The verdict of a scan without a country, where `gray_market` is the status of the last known country.
fn with_gray_market(verdict: Verdict, gray_market: Risk) -> Verdict {
    let authentication = match gray_market {
        Risk::Confirmed => verdict.authentication.max(Authenticity::Negative),
        Risk::Suspected => verdict.authentication.max(Authenticity::Suspicious),
        // Only the country was missing: with it every check is false.
        Risk::None
            if verdict.authentication == Authenticity::Unknown && verdict.counterfeit == Risk::None =>
        {
            Authenticity::Positive
        }
        Risk::None | Risk::Unknown => verdict.authentication,
    };
    Verdict { authentication, gray_market, ..verdict }
}

/// The value after a public scan: a value worse than unknown stays.
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
        let risk = || prop::sample::select(Risk::ALL.to_vec());
        (prop::sample::select(Authenticity::ALL.to_vec()), risk(), risk()).prop_map(
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
        fn assessing_an_older_scan_never_changes_the_status(
            all in prop::collection::vec(judgements(), 0..12),
            older in judgements(),
        ) {
            let before = after(&all);
            if before.and_then(|stood| stood.at).is_some_and(|at| older.at < at) {
                prop_assert_eq!(advanced(before, older), None);
            }
        }

        #[test]
        fn scans_without_a_country_keep_the_gray_market_of_any_value(
            gray_market in prop::sample::select(Risk::ALL.to_vec()),
            first in verdicts(),
            later in prop::collection::vec(judgements(), 1..12),
        ) {
            let begun = Judgement {
                verdict: Verdict { gray_market, ..first },
                at: UnixMillis(0),
                has_country: true,
                is_public: false,
            };
            let without = later.into_iter().map(|one| Judgement { has_country: false, is_public: false, ..one });
            let all: Vec<Judgement> = std::iter::once(begun).chain(without).collect();
            prop_assert_eq!(after(&all).map(|stood| stood.verdict.gray_market), Some(gray_market));
        }

        #[test]
        fn a_public_scan_neither_improves_the_status_nor_becomes_the_newest(
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
            found in prop::collection::vec((0..30_u32, levels(), 0..100_i64), 1..20),
        ) {
            let mut before: Option<Peak> = None;
            for (n, (points, level, at)) in found.into_iter().enumerate() {
                let found = peak(points, level, at, Some(0), n as u8);
                let peak = Peak::raised(before, found);
                prop_assert!(peak.points >= points && peak.level >= found.level);
                prop_assert!(before.is_none_or(|before| peak.points >= before.points && peak.level >= before.level));
                before = Some(peak);
            }
        }

        /// Scans of two commissionings, assessed in any order: the peak is that of the later one, and each half of it
        /// names a scan that brought it.
        #[test]
        fn the_peak_of_two_commissionings_is_that_of_the_later_one(
            found in prop::collection::vec((0..30_u32, levels(), 0..50_i64, any::<bool>()), 1..20),
        ) {
            let all: Vec<Peak> = found.into_iter().enumerate().map(|(n, (points, level, at, is_later))| {
                let since = if is_later { 50 } else { 0 };
                peak(points, level, since + at, Some(since), n as u8)
            }).collect();
            let kept = all.iter().fold(None, |before, found| Some(Peak::raised(before, *found))).unwrap();
            let since = all.iter().map(|one| one.since).max().unwrap();
            let own: Vec<&Peak> = all.iter().filter(|one| one.since == since).collect();
            prop_assert_eq!(kept.since, since);
            prop_assert_eq!(kept.points, own.iter().map(|one| one.points).max().unwrap());
            prop_assert_eq!(kept.level, own.iter().map(|one| one.level).max().unwrap());
            prop_assert!(own.iter().any(|one| one.points == kept.points && one.points_by == kept.points_by));
            prop_assert!(own.iter().any(|one| one.level == kept.level && one.level_by == kept.level_by));
        }
    }

    fn levels() -> impl Strategy<Value = Level> {
        prop::sample::select(vec![Level::None, Level::Suspected, Level::Duplicate])
    }

    fn peak(points: u32, level: Level, at: i64, since: Option<i64>, n: u8) -> Peak {
        let by = ByScan { scan: ActionId::new(at, [n; 16]), at: UnixMillis(at) };
        Peak::of_scan(points, level, by, since.map(UnixMillis))
    }

    #[test]
    fn a_new_commissioning_resets_the_peak() {
        let of = |points, at, since| peak(points, Level::Duplicate, at, since, 1);
        let old = of(20, 5, Some(0));
        assert_eq!(Peak::raised(Some(old), of(1, 15, Some(10))), of(1, 15, Some(10)));
        assert_eq!(Peak::raised(Some(old), of(1, 15, Some(0))), old);
        // A scan of before the last commissioning, assessed after it.
        let current = of(3, 15, Some(10));
        assert_eq!(Peak::raised(Some(current), old), current);
        // A peak that the first release wrote does not name its commissioning: its time decides.
        let unsaid = |at| Peak { since: None, ..of(20, at, None) };
        assert_eq!(Peak::raised(Some(unsaid(5)), of(1, 15, Some(10))), of(1, 15, Some(10)));
        let kept = Peak { since: Some(UnixMillis(10)), ..unsaid(12) };
        assert_eq!(Peak::raised(Some(unsaid(12)), of(1, 15, Some(10))), kept);
    }

    #[test]
    fn a_peak_of_older_rules_is_ignored() {
        let found = peak(1, Level::None, 15, Some(0), 1);
        let old = Peak { rules_version: 4, ..peak(20, Level::Duplicate, 5, Some(0), 2) };
        assert_eq!(Peak::raised(Some(old), found), found);
        let first = Peak { rules_version: FIRST_RULES, ..old };
        assert_eq!(Peak::raised(Some(first), found), first);
    }

    #[test]
    fn points_and_level_name_their_own_scans() {
        let many = peak(9, Level::None, 5, Some(0), 1);
        let kept = Peak::raised(Some(many), peak(8, Level::Suspected, 6, Some(0), 2));
        assert_eq!((kept.points, kept.points_by.at), (9, UnixMillis(5)));
        assert_eq!((kept.level, kept.level_by.at), (Level::Suspected, UnixMillis(6)));
    }

    #[test]
    fn without_a_country_a_good_item_stays_good() {
        let good = Verdict {
            authentication: Authenticity::Positive,
            counterfeit: Risk::None,
            gray_market: Risk::None,
        };
        let unknown = Verdict { authentication: Authenticity::Unknown, gray_market: Risk::Unknown, ..good };
        let at = |at, verdict, has_country| Judgement {
            verdict,
            at: UnixMillis(at),
            has_country,
            is_public: false,
        };
        let stood = after(&[at(1, good, true), at(2, unknown, false)]).unwrap();
        assert_eq!(stood, Stood { verdict: good, at: Some(UnixMillis(2)) });
        // A copy shows all the same.
        let copied =
            Verdict { authentication: Authenticity::Suspicious, counterfeit: Risk::Suspected, ..unknown };
        let stood = after(&[at(1, good, true), at(2, copied, false)]).unwrap();
        assert_eq!(stood.verdict, Verdict { gray_market: Risk::None, ..copied });
        // A country from public scans alone is not known.
        let public = Judgement { is_public: true, ..at(1, good, true) };
        assert_eq!(after(&[public, at(2, unknown, false)]).unwrap().verdict, unknown);
    }
}
