use shared::id::ActionId;

use super::*;
use crate::domain::{
    assessment::{
        peak::{ByScan, Peak},
        rules::remembered,
    },
    case::{DecidedBy, Evidence},
};

const SCAN: UnixMillis = UnixMillis(100);
const DECIDED: UnixMillis = UnixMillis(1_700_000_000_000);

fn ruling(status: CaseStatus) -> Option<CaseDecision> {
    let names = |all: &[&str]| all.iter().map(|name| (*name).to_owned()).collect();
    let evidence = Evidence {
        scan: ActionId::new(1, [1; 16]),
        at: SCAN,
        points: 9,
        level: Level::Suspected,
        signs: names(&["countries", "NOT_ACTIVATED"]),
        countries: names(&["JP"]),
        reason: "r".to_owned(),
        since: Some(UnixMillis(1)),
    };
    let by = DecidedBy { kind: "operator".to_owned(), id: "O".to_owned() };
    let reason = Some("not for everybody".to_owned());
    let decision = Decision { status, reason, by, at: DECIDED, evidence };
    Some(CaseDecision { case: CaseId::new(1, [1; 16]), decision })
}

fn finding(reason: &str) -> Finding {
    Finding { matched: Match::True, reason: reason.to_owned() }
}

#[test]
fn a_dismissal_covers_what_was_known_since_the_same_commissioning() {
    let decided = Decided { counterfeit: ruling(CaseStatus::Dismissed), gray_market: None };
    let dismissed = decided.dismissed(Some(UnixMillis(1))).unwrap();
    for (points, level, signs, covered) in [
        (9, Level::Suspected, vec!["countries"], true),
        (0, Level::None, vec![], true),
        (10, Level::Suspected, vec!["countries"], false),
        (9, Level::Duplicate, vec!["countries"], false),
        (9, Level::Suspected, vec!["overlap"], false),
    ] {
        assert_eq!(dismissed.covers(points, level, signs.clone()), covered, "{points} {level:?} {signs:?}");
    }
    assert!(decided.dismissed(Some(UnixMillis(50))).is_none(), "the item was commissioned again");
    let confirmed = Decided { counterfeit: ruling(CaseStatus::Confirmed), gray_market: None };
    assert!(confirmed.dismissed(Some(UnixMillis(1))).is_none());
}

#[test]
fn dismissed_checks_are_unknown_and_name_the_case_without_the_reason_of_the_person() {
    let decided = Decided { counterfeit: ruling(CaseStatus::Dismissed), gray_market: None };
    let dismissed = decided.dismissed(None).unwrap();
    let known = dismissed.unless_known(finding("NOT_ACTIVATED: the item was never commissioned."));
    assert_eq!(known.matched, Match::Unknown);
    let case = CaseId::new(1, [1; 16]);
    let begin = format!("DISMISSED by a person on 2023-11-14 (case {case}); nothing is new since. Now: NOT_");
    assert!(known.reason.starts_with(&begin), "{known:?}");
    assert!(!known.reason.contains("not for everybody"), "whoever asks reads it: {known:?}");
    let other = finding("WITHDRAWN: the item is tagged stolen.");
    assert_eq!(dismissed.unless_known(other.clone()), other);
    let seen = finding("The inspector says that it does not match.");
    assert_eq!(dismissed.unless_before(seen.clone(), DECIDED).matched, Match::Unknown);
    assert_eq!(dismissed.unless_before(seen.clone(), UnixMillis(DECIDED.0 + 1)), seen);
    for (reason, expected) in
        [("NOT_ACTIVATED: x", Some("NOT_ACTIVATED")), ("Seen: x", None), (": x", None), ("none", None)]
    {
        assert_eq!(word(&finding(reason)), expected, "{reason}");
    }
}

#[test]
fn dismissed_countries_are_permitted_and_confirmed_cases_stay() {
    let codes = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect::<Vec<CountryCode>>();
    let decided = Decided { counterfeit: None, gray_market: ruling(CaseStatus::Dismissed) };
    assert_eq!(decided.markets(&codes(&["CH"]), None), codes(&["CH", "JP"]));
    assert_eq!(decided.markets(&codes(&["JP"]), None), codes(&["JP"]));
    assert_eq!(decided.markets(&[], None), [], "without markets there is no diversion");
    assert_eq!(decided.markets(&codes(&["CH"]), Some(UnixMillis(50))), codes(&["CH"]));
    let good =
        Verdict { authentication: Authenticity::Positive, counterfeit: Risk::None, gray_market: Risk::None };
    assert_eq!(decided.floor(good), good);
    let copy = Decided { counterfeit: ruling(CaseStatus::Confirmed), gray_market: None };
    let expected = Verdict { authentication: Authenticity::Negative, counterfeit: Risk::Confirmed, ..good };
    assert_eq!(copy.floor(good), expected);
    let gray = Decided { counterfeit: None, gray_market: ruling(CaseStatus::Confirmed) };
    let expected = Verdict { authentication: Authenticity::Negative, gray_market: Risk::Confirmed, ..good };
    assert_eq!(gray.floor(good), expected);
    assert!(gray.is_market_confirmed() && !decided.is_market_confirmed());
}

#[test]
fn earlier_worse_points_and_level_keep_their_own_scans() {
    let check = |found: Finding, matched: Match, words: &str| {
        assert_eq!(found.matched, matched, "{found:?}");
        assert!(found.reason.contains(words), "{found:?}");
    };
    let now = Finding { matched: Match::False, reason: "No duplicate: 1 of 10 points.".to_owned() };
    let by = ByScan { scan: ActionId::new(1, [1; 16]), at: DECIDED };
    let peak = |level| Peak::of_scan(12, level, by, None);
    let found = remembered(&now, &peak(Level::Duplicate));
    check(found, Match::True, "of 2023-11-14, with 12 points. Now: No duplicate");
    let found = remembered(&now, &peak(Level::Suspected));
    check(found, Match::False, "It may be a DUPLICATE since the scan");
    let other = ByScan { at: UnixMillis(1_700_100_000_000), ..by };
    let found = remembered(&now, &Peak { points_by: other, ..peak(Level::Suspected) });
    check(found.clone(), Match::False, "of 2023-11-14, with 12 points by the scan");
    check(found, Match::False, "of 2023-11-16. Now: No duplicate");
}
