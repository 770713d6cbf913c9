//! Applies people's decisions on the cases of an item to an assessment.

use std::collections::BTreeSet;

use countries::CountryCode;
use shared::{
    id::CaseId,
    standing::{Authenticity, Risk, Verdict},
    time::UnixMillis,
};

use super::{
    peak::Level,
    rules::{Finding, Match},
};
use crate::domain::case::{CaseState, CaseStatus, Decision};

/// The decisions that hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Decided {
    /// On whether it is a copy.
    pub counterfeit: Option<CaseDecision>,
    /// On whether it is outside of its markets.
    pub gray_market: Option<CaseDecision>,
}

/// A decision that holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseDecision {
    /// The case.
    pub case: CaseId,
    /// The decision.
    pub decision: Decision,
}

impl CaseDecision {
    /// The decision on a case; nothing while it is open.
    #[must_use]
    pub fn of(case: &CaseState) -> Option<Self> {
        let decision = case.details.decision.clone().filter(|_| case.status != CaseStatus::Open)?;
        Some(Self { case: case.id, decision })
    }

    fn is(&self, status: CaseStatus) -> bool {
        self.decision.status == status
    }

    fn said(&self) -> String {
        let word = match self.decision.status {
            CaseStatus::Dismissed => "DISMISSED",
            CaseStatus::Confirmed => "CONFIRMED",
            CaseStatus::Open => "OPEN",
        };
        format!("{word} by a person on {} (case {})", day(self.decision.at), self.case)
    }
}

/// The effect of a dismissed case of a copy on the findings of an assessment.
#[derive(Debug, Clone, Copy)]
pub struct Dismissed<'a>(&'a CaseDecision);

impl Dismissed<'_> {
    /// Whether points, level and signs do not exceed what was dismissed.
    #[must_use]
    pub fn covers<'n>(&self, points: u32, level: Level, signs: impl IntoIterator<Item = &'n str>) -> bool {
        let known = &self.0.decision.evidence;
        points <= known.points
            && level <= known.level
            && signs.into_iter().all(|sign| known.signs.contains(sign))
    }

    /// Whether a check with this reason code was dismissed: what the factory did not declare does not change, and is
    /// known.
    #[must_use]
    pub fn unless_known(&self, finding: Finding) -> Finding {
        let is_known = word(&finding).is_some_and(|word| self.0.decision.evidence.signs.contains(word));
        if is_known { self.noted(&finding, Match::Unknown) } else { finding }
    }

    /// A check of what an inspector saw, unless it was seen after the decision.
    #[must_use]
    pub fn unless_before(&self, finding: Finding, at: UnixMillis) -> Finding {
        if finding.matched == Match::True && at <= self.0.decision.at {
            self.noted(&finding, Match::Unknown)
        } else {
            finding
        }
    }

    /// A dismissed finding, with what it was.
    #[must_use]
    pub fn noted(&self, finding: &Finding, matched: Match) -> Finding {
        let reason = format!("{}; nothing is new since. Now: {}", self.0.said(), finding.reason);
        Finding { matched, reason }
    }
}

impl Decided {
    /// The dismissal of a copy, if it is not of before a commissioning.
    #[must_use]
    pub fn dismissed(&self, since: Option<UnixMillis>) -> Option<Dismissed<'_>> {
        let ruling = self.counterfeit.as_ref().filter(|ruling| ruling.is(CaseStatus::Dismissed));
        ruling.filter(|ruling| ruling.decision.evidence.is_of(since)).map(Dismissed)
    }

    /// The markets of an item with the countries that were dismissed; without markets there are none to add to.
    #[must_use]
    pub fn markets(&self, markets: &[CountryCode], since: Option<UnixMillis>) -> Vec<CountryCode> {
        let mut all = markets.to_vec();
        let ruling = self.gray_market.as_ref().filter(|ruling| ruling.is(CaseStatus::Dismissed));
        if let Some(ruling) =
            ruling.filter(|ruling| !markets.is_empty() && ruling.decision.evidence.is_of(since))
        {
            let known: BTreeSet<CountryCode> =
                ruling.decision.evidence.countries.iter().filter_map(|code| code.parse().ok()).collect();
            all.extend(known.into_iter().filter(|country| !markets.contains(country)));
        }
        all
    }

    /// Whether the diversion was dismissed.
    #[must_use]
    pub fn is_market_dismissed(&self) -> bool {
        self.gray_market.as_ref().is_some_and(|ruling| ruling.is(CaseStatus::Dismissed))
    }

    /// Whether the diversion was confirmed.
    #[must_use]
    pub fn is_market_confirmed(&self) -> bool {
        self.gray_market.as_ref().is_some_and(|ruling| ruling.is(CaseStatus::Confirmed))
    }

    /// The verdict with confirmed cases applied, whatever the scans show.
    #[must_use]
    pub fn floor(&self, mut verdict: Verdict) -> Verdict {
        let is_confirmed = |ruling: &Option<CaseDecision>| {
            ruling.as_ref().is_some_and(|ruling| ruling.is(CaseStatus::Confirmed))
        };
        if is_confirmed(&self.counterfeit) {
            verdict.counterfeit = Risk::Confirmed;
            verdict.authentication = Authenticity::Negative;
        }
        if is_confirmed(&self.gray_market) {
            verdict.gray_market = Risk::Confirmed;
            verdict.authentication = Authenticity::Negative;
        }
        verdict
    }

    /// Names the decisions in the reasons of the checks that they are about.
    pub fn note(&self, checks: &mut [(&'static str, Finding)], is_permitted_by_it: bool) {
        let confirmed = |ruling: &Option<CaseDecision>| {
            ruling.as_ref().filter(|ruling| ruling.is(CaseStatus::Confirmed)).map(CaseDecision::said)
        };
        let dismissed = self.gray_market.as_ref().filter(|_| is_permitted_by_it).map(CaseDecision::said);
        for (name, finding) in checks {
            let said = match *name {
                "duplicateChecks" => confirmed(&self.counterfeit),
                "diversionChecks" => confirmed(&self.gray_market).or_else(|| dismissed.clone()),
                _ => None,
            };
            if let Some(said) = said {
                finding.reason.push_str(&format!(" {said}."));
            }
        }
    }
}

/// The code that a reason begins with, if it has one: `NOT_ACTIVATED: …`.
#[must_use]
pub fn word(finding: &Finding) -> Option<&str> {
    let (word, _) = finding.reason.split_once(':').filter(|_| finding.matched == Match::True)?;
    let is_word = word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    Some(word).filter(|word| is_word && !word.is_empty())
}

/// The day of a time, in UTC.
#[must_use]
pub fn day(at: UnixMillis) -> String {
    jiff::Timestamp::from_millisecond(at.0)
        .map_or_else(|_| at.0.to_string(), |at| at.strftime("%Y-%m-%d").to_string())
}

#[cfg(test)]
mod tests;
