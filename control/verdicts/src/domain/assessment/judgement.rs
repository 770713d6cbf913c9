//! One judgement of an item: every rule, by the scans that are believed or by all of them.

use std::collections::BTreeSet;

use countries::CountryCode;
use shared::{standing::Verdict, time::UnixMillis};

use super::{
    Facts, decided,
    explain::{Certainty, Explained},
    peak::{Level, Peak},
    profile::Profile,
    rules::{self, Finding, Known, Match},
    spread::{Spread, Trigger},
    verdict::{self, Findings},
};

/// The facts, with or without scans by public keys.
pub(super) struct Case<'a> {
    pub(super) facts: &'a Facts<'a>,
    pub(super) known: &'a Known,
    pub(super) since: Option<UnixMillis>,
}

/// The findings of one judgement.
pub(super) struct Judged {
    unauthorized: Finding,
    diversion: Finding,
    duplicate: Finding,
    seen: [(&'static str, Option<Finding>); 3],
    pub(super) spread: Spread,
    pub(super) points: u32,
    /// The level of the points.
    pub(super) level: Level,
    /// The level without dismissed findings.
    counted: Level,
    pub(super) signs: Vec<String>,
    pub(super) outside: BTreeSet<CountryCode>,
    pub(super) verdict: Verdict,
    pub(super) explained: Explained,
}

impl Case<'_> {
    /// Judges a profile and a trigger; of a neutral one neither place nor evidence is known.
    pub(super) fn judge(&self, profile: &Profile, trigger: &Trigger, is_neutral: bool) -> Judged {
        let Self { facts, known, since } = self;
        let dismissed = facts.decided.dismissed(*since);
        let spread = Spread::of(profile, trigger, *since, facts.settings);
        let mut unauthorized = rules::unauthorized(known, trigger.at, facts.settings);
        let mut signs: Vec<String> = decided::word(&unauthorized).map(str::to_owned).into_iter().collect();
        if let Some(dismissed) = dismissed {
            unauthorized = dismissed.unless_known(unauthorized);
        }
        let place = rules::Place {
            countries: if is_neutral { &[] } else { facts.countries },
            precision: trigger.spot.precision,
            is_professional: !is_neutral && facts.kind.event_group() != "consumer",
        };
        let outside = self.outside(place, &spread);
        let extended = facts
            .decided
            .is_market_dismissed()
            .then(|| Known { markets: facts.decided.markets(&known.markets, *since), ..(*known).clone() });
        let permitted = extended.as_ref().unwrap_or(known);
        let (diversion, gray_market) =
            rules::diversion(permitted, place, &spread, facts.settings.diversion_mode);
        let certainty = Certainty::of(&spread, facts.settings).beside(known.displays.as_ref());
        let points = certainty.points;
        let (found, is_suspected) = rules::duplicate_by(&certainty);
        let level = match (found.matched, is_suspected) {
            (Match::True, _) => Level::Duplicate,
            (Match::False | Match::Unknown, true) => Level::Suspected,
            (Match::False | Match::Unknown, false) => Level::None,
        };
        let names = || certainty.signs.iter().map(|sign| sign.name);
        signs.extend(names().filter(|_| level > Level::None).map(str::to_owned));
        let covering = dismissed.filter(|one| level > Level::None && one.covers(points, level, names()));
        let (found, counted) = match covering {
            Some(dismissed) => (dismissed.noted(&found, Match::False), Level::None),
            None => (found, level),
        };
        let is_kept = |peak: &Peak| {
            peak.is_current()
                && peak.is_since(*since)
                && peak.level_by.at <= trigger.at
                && !known.is_display()
                && peak.level > counted
                && !dismissed.is_some_and(|one| one.covers(peak.points, peak.level, []))
        };
        let kept = facts.peak.filter(is_kept);
        let duplicate = kept.map_or(found.clone(), |peak| rules::remembered(&found, &peak));
        let evidence = Some(facts.evidence)
            .filter(|_| !is_neutral && facts.settings.evidence_types.contains(&facts.kind));
        let mut seen = [
            ("physicalChecks", rules::physical(evidence)),
            ("watermarkChecks", rules::watermark(known, evidence)),
            ("markingsChecks", rules::markings(known, evidence)),
        ];
        let is_true =
            |finding: &Option<Finding>| finding.as_ref().is_some_and(|one| one.matched == Match::True);
        for (name, finding) in &mut seen {
            if is_true(finding) {
                signs.push((*name).to_owned());
            }
            if let Some(dismissed) = dismissed {
                *finding = finding.take().map(|one| dismissed.unless_before(one, trigger.at));
            }
        }
        let by_evidence =
            if seen.iter().any(|(_, finding)| is_true(finding)) { Match::True } else { Match::Unknown };
        let verdict = verdict::verdict(Findings {
            invalid: Match::False,
            evidence: by_evidence,
            unauthorized: unauthorized.matched,
            duplicate: duplicate.matched,
            duplicate_suspected: kept.map_or(counted, |peak| peak.level) == Level::Suspected,
            is_outlier: spread.outlier == Some(true),
            diversion: diversion.matched,
            gray_market,
            is_confirmed_item: evidence.and_then(|evidence| evidence.inspected) == Some(true),
        });
        let verdict = facts.decided.floor(verdict);
        let by_rule = (certainty.settled(counted, kept.as_ref()), &diversion, &unauthorized);
        let explained = Explained::of(permitted, &spread, place.precision, by_rule);
        Judged {
            unauthorized,
            diversion,
            duplicate,
            seen,
            spread,
            points,
            level,
            counted,
            signs,
            outside,
            verdict,
            explained,
        }
    }

    /// Countries of the trigger and of sessions before it that are outside of the markets.
    fn outside(&self, place: rules::Place<'_>, spread: &Spread) -> BTreeSet<CountryCode> {
        let markets = &self.known.markets;
        let own = Some(place.countries).filter(|countries| countries.len() == 1).unwrap_or_default();
        let all = spread.previous_countries.iter().flatten().chain(own);
        all.filter(|country| !markets.is_empty() && !markets.contains(country)).copied().collect()
    }
}

impl Judged {
    /// The checks that are shown; what only scans by public keys say is unknown.
    pub(super) fn checks(
        self,
        all: Option<Self>,
        is_public: bool,
        unverified: u64,
    ) -> Vec<(&'static str, Finding)> {
        let Some(all) = all else {
            let mut checks = vec![
                ("unauthorizedChecks", self.unauthorized),
                ("diversionChecks", self.diversion),
                ("duplicateChecks", self.duplicate),
            ];
            checks.extend(self.seen.into_iter().filter_map(|(name, finding)| Some((name, finding?))));
            return checks;
        };
        let doubted = |found: Finding| match found.matched {
            Match::True => rules::unverified(&found),
            Match::False | Match::Unknown => found,
        };
        let diversion = if is_public { doubted(all.diversion) } else { self.diversion };
        let mut duplicate = self.duplicate;
        if unverified > 0 {
            duplicate
                .reason
                .push_str(&format!(" UNVERIFIED_SCANS: {unverified} scans by public keys are left out."));
        }
        if all.counted > self.counted && duplicate.matched != Match::True {
            let unverified = rules::unverified(&all.duplicate);
            duplicate = Finding {
                matched: Match::Unknown,
                reason: format!("{} {}", duplicate.reason, unverified.reason),
            };
        }
        let seen = if is_public { all.seen } else { self.seen };
        let seen = seen.into_iter().filter_map(|(name, finding)| {
            let finding = finding?;
            Some((name, if is_public { rules::unverified(&finding) } else { finding }))
        });
        let mut checks = vec![
            ("unauthorizedChecks", self.unauthorized),
            ("diversionChecks", diversion),
            ("duplicateChecks", duplicate),
        ];
        checks.extend(seen);
        checks
    }
}
