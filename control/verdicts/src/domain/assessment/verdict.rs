//! The three statuses of a verdict from the findings: one table, of which the first matching row applies.

use shared::standing::{Authenticity, Risk, Verdict};

use super::rules::Match;

/// The findings of the rules, reduced to what the verdict uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Findings {
    /// The item does not exist.
    pub invalid: Match,
    /// It does not match its description, or a watermark or marking is missing.
    pub evidence: Match,
    /// The factory did not declare it.
    pub unauthorized: Match,
    /// Its code is on several items.
    pub duplicate: Match,
    /// It may be.
    pub duplicate_suspected: bool,
    /// The trigger is far from all that was before.
    pub is_outlier: bool,
    /// It is outside of its markets.
    pub diversion: Match,
    /// How sure that is.
    pub gray_market: Risk,
    /// An inspector holds the item and confirms it.
    pub is_confirmed_item: bool,
}

/// The verdict on some findings.
#[must_use]
pub fn verdict(found: Findings) -> Verdict {
    let of = |authentication, counterfeit, gray_market| Verdict { authentication, counterfeit, gray_market };
    let is_true = |matched: Match| matched == Match::True;
    let gray = found.gray_market;
    if is_true(found.invalid) {
        return of(Authenticity::Negative, Risk::Confirmed, Risk::Unknown);
    }
    if is_true(found.evidence) {
        return of(Authenticity::Negative, Risk::Confirmed, gray);
    }
    if is_true(found.unauthorized) {
        return of(Authenticity::Negative, Risk::Suspected, gray);
    }
    let is_unknown = found.invalid == Match::Unknown || found.unauthorized == Match::Unknown;
    // The counterfeit status depends on the duplicate checks alone, whatever the market status is.
    let counterfeit = if is_true(found.duplicate) || found.duplicate_suspected {
        Risk::Suspected
    } else if is_unknown {
        Risk::Unknown
    } else {
        Risk::None
    };
    if is_true(found.duplicate) {
        // A code that is copied may be on the genuine item, too: an inspector's word lifts it this far. A confirmed
        // diversion is negative by itself, and a copy makes it no better.
        let is_negative = found.is_outlier && !found.is_confirmed_item || gray == Risk::Confirmed;
        let authentication = if is_negative { Authenticity::Negative } else { Authenticity::Suspicious };
        return of(authentication, counterfeit, gray);
    }
    if gray == Risk::Confirmed {
        return of(Authenticity::Negative, counterfeit, gray);
    }
    if gray == Risk::Suspected || found.duplicate_suspected {
        return of(Authenticity::Suspicious, counterfeit, gray);
    }
    let all_false =
        [found.invalid, found.unauthorized, found.diversion].iter().all(|one| *one == Match::False);
    if all_false {
        return of(Authenticity::Positive, counterfeit, Risk::None);
    }
    of(Authenticity::Unknown, counterfeit, Risk::Unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLEAN: Findings = Findings {
        invalid: Match::False,
        evidence: Match::Unknown,
        unauthorized: Match::False,
        duplicate: Match::False,
        duplicate_suspected: false,
        is_outlier: false,
        diversion: Match::False,
        gray_market: Risk::None,
        is_confirmed_item: false,
    };

    #[test]
    fn each_row_of_the_table() {
        use Authenticity::{Negative, Positive, Suspicious, Unknown};
        use Match::{False as F, True as T, Unknown as U};
        let outside = |risk| Findings { diversion: T, gray_market: risk, ..CLEAN };
        for (found, expected) in [
            (CLEAN, (Positive, Risk::None, Risk::None)),
            (Findings { duplicate: U, ..CLEAN }, (Positive, Risk::None, Risk::None)),
            (Findings { evidence: F, is_confirmed_item: true, ..CLEAN }, (Positive, Risk::None, Risk::None)),
            (Findings { invalid: T, unauthorized: T, ..CLEAN }, (Negative, Risk::Confirmed, Risk::Unknown)),
            (Findings { invalid: T, ..outside(Risk::Confirmed) }, (Negative, Risk::Confirmed, Risk::Unknown)),
            (Findings { evidence: T, unauthorized: T, ..CLEAN }, (Negative, Risk::Confirmed, Risk::None)),
            (
                Findings { evidence: T, ..outside(Risk::Suspected) },
                (Negative, Risk::Confirmed, Risk::Suspected),
            ),
            (Findings { unauthorized: T, duplicate: T, ..CLEAN }, (Negative, Risk::Suspected, Risk::None)),
            (
                Findings { unauthorized: T, ..outside(Risk::Confirmed) },
                (Negative, Risk::Suspected, Risk::Confirmed),
            ),
            (Findings { duplicate: T, ..CLEAN }, (Suspicious, Risk::Suspected, Risk::None)),
            (Findings { duplicate: T, is_outlier: true, ..CLEAN }, (Negative, Risk::Suspected, Risk::None)),
            (
                Findings { duplicate: T, is_outlier: true, is_confirmed_item: true, evidence: F, ..CLEAN },
                (Suspicious, Risk::Suspected, Risk::None),
            ),
            (
                Findings { duplicate: T, ..outside(Risk::Confirmed) },
                (Negative, Risk::Suspected, Risk::Confirmed),
            ),
            (
                Findings { duplicate: T, is_confirmed_item: true, ..outside(Risk::Confirmed) },
                (Negative, Risk::Suspected, Risk::Confirmed),
            ),
            (
                Findings { duplicate: T, ..outside(Risk::Suspected) },
                (Suspicious, Risk::Suspected, Risk::Suspected),
            ),
            (outside(Risk::Confirmed), (Negative, Risk::None, Risk::Confirmed)),
            (Findings { duplicate: U, ..outside(Risk::Confirmed) }, (Negative, Risk::None, Risk::Confirmed)),
            (
                Findings { duplicate_suspected: true, ..outside(Risk::Confirmed) },
                (Negative, Risk::Suspected, Risk::Confirmed),
            ),
            (outside(Risk::Suspected), (Suspicious, Risk::None, Risk::Suspected)),
            (Findings { duplicate_suspected: true, ..CLEAN }, (Suspicious, Risk::Suspected, Risk::None)),
            (
                Findings { duplicate_suspected: true, ..outside(Risk::Suspected) },
                (Suspicious, Risk::Suspected, Risk::Suspected),
            ),
            (Findings { unauthorized: U, ..CLEAN }, (Unknown, Risk::Unknown, Risk::Unknown)),
            (
                Findings { diversion: U, gray_market: Risk::Unknown, ..CLEAN },
                (Unknown, Risk::None, Risk::Unknown),
            ),
            (Findings { invalid: U, unauthorized: U, ..CLEAN }, (Unknown, Risk::Unknown, Risk::Unknown)),
        ] {
            let verdict = verdict(found);
            let told = (verdict.authentication, verdict.counterfeit, verdict.gray_market);
            assert_eq!(told, expected, "{found:?}");
        }
    }

    /// Over all combinations: worse findings never give a better verdict, and an inspector's confirmation alone makes
    /// nothing positive; `counterfeitStatus` does not depend on `grayMarketStatus`.
    #[test]
    fn a_true_check_is_never_positive_and_counterfeit_status_ignores_the_market() {
        let matches = [Match::True, Match::False, Match::Unknown];
        let mut seen = 0;
        for invalid in matches {
            for evidence in matches {
                for unauthorized in matches {
                    for duplicate in matches {
                        for gray_market in Risk::ALL {
                            let diversion = match gray_market {
                                Risk::None => Match::False,
                                Risk::Unknown => Match::Unknown,
                                Risk::Suspected | Risk::Confirmed => Match::True,
                            };
                            for (is_confirmed_item, duplicate_suspected) in
                                [(false, false), (false, true), (true, false), (true, true)]
                            {
                                seen += 1;
                                let found = Findings {
                                    invalid,
                                    evidence,
                                    unauthorized,
                                    duplicate,
                                    diversion,
                                    gray_market,
                                    is_confirmed_item,
                                    duplicate_suspected,
                                    ..CLEAN
                                };
                                let any_true = [invalid, evidence, unauthorized, duplicate, diversion]
                                    .contains(&Match::True);
                                let is_positive = verdict(found).authentication == Authenticity::Positive;
                                assert!(!(any_true && is_positive), "{found:?}");
                                let home =
                                    Findings { diversion: Match::False, gray_market: Risk::None, ..found };
                                assert_eq!(
                                    verdict(found).counterfeit,
                                    verdict(home).counterfeit,
                                    "it does not go by the market: {found:?}"
                                );
                                let copied =
                                    Findings { duplicate: Match::True, duplicate_suspected: false, ..found };
                                let is_no_better = verdict(copied).authentication
                                    >= verdict(Findings { duplicate: Match::False, ..found }).authentication;
                                assert!(is_no_better, "a copy makes nothing better: {found:?}");
                                let other = Findings { is_confirmed_item: !is_confirmed_item, ..found };
                                let turned = verdict(other).authentication == Authenticity::Positive;
                                assert_eq!(is_positive, turned, "{found:?}");
                            }
                        }
                    }
                }
            }
        }
        assert_eq!(seen, 81 * 4 * 4);
    }
}
