use serde_json::json;

use super::*;

fn evidence(points: u32, signs: &[&str], countries: &[&str]) -> Evidence {
    let names = |all: &[&str]| all.iter().map(|name| (*name).to_owned()).collect();
    Evidence {
        scan: ActionId::new(points.into(), [1; 16]),
        at: UnixMillis(100),
        points,
        level: if points >= 10 { Level::Duplicate } else { Level::Suspected },
        signs: names(signs),
        countries: names(countries),
        reason: "r".to_owned(),
        since: Some(UnixMillis(1)),
    }
}

fn asked(status: CaseStatus) -> DecisionRequest {
    DecisionRequest { status, reason: Some("why".to_owned()), is_display: false, version: None }
}

fn by() -> DecidedBy {
    DecidedBy { kind: "operator".to_owned(), id: "O".to_owned() }
}

fn opened(evidence: Evidence) -> CaseState {
    CaseState::open(CaseId::new(1, [1; 16]), evidence)
}

#[test]
fn a_dismissed_case_reopens_only_on_new_evidence() {
    use CaseKind::{Counterfeit, GrayMarket};
    let start = evidence(9, &["countries", "devices"], &["JP"]);
    let dismissed = opened(start.clone()).decide(&asked(CaseStatus::Dismissed), by(), UnixMillis(200));
    assert_eq!((dismissed.status, dismissed.version), (CaseStatus::Dismissed, 2));
    for (kind, found, opens, why) in [
        (Counterfeit, start.clone(), false, "the same again"),
        (Counterfeit, evidence(8, &["countries"], &["JP"]), false, "less"),
        (Counterfeit, evidence(9, &["countries"], &["JP", "AU"]), false, "countries are for the other kind"),
        (Counterfeit, evidence(10, &["countries"], &[]), true, "more points"),
        (Counterfeit, evidence(8, &["overlap"], &[]), true, "a sign that is new"),
        (Counterfeit, Evidence { level: Level::Duplicate, ..start.clone() }, true, "a higher level"),
        (GrayMarket, evidence(20, &["overlap"], &["JP"]), false, "points are for the other kind"),
        (GrayMarket, evidence(0, &[], &["AU"]), true, "another country"),
        (
            Counterfeit,
            Evidence { since: Some(UnixMillis(150)), ..evidence(8, &[], &[]) },
            true,
            "a new commissioning",
        ),
    ] {
        let met = dismissed.clone().meets(kind, found.clone(), UnixMillis(300));
        assert_eq!(met.as_ref().map(|case| case.status), opens.then_some(CaseStatus::Open), "{why}");
        let Some(met) = met else { continue };
        let told: Vec<CaseStatus> = met.details.history.iter().map(|one| one.status).collect();
        assert_eq!(told, [CaseStatus::Dismissed, CaseStatus::Open], "{why}");
        assert_eq!((met.version, &met.details.decision), (3, &None), "{why}");
        assert_eq!(met.details.history[1].by.id, found.scan.to_string(), "{why}");
    }
}

#[test]
fn each_inspection_is_new_evidence() {
    let seen = evidence(0, &["physicalChecks"], &[]);
    let dismissed = opened(seen.clone()).decide(&asked(CaseStatus::Dismissed), by(), UnixMillis(200));
    assert_eq!(dismissed.clone().meets(CaseKind::Counterfeit, seen.clone(), UnixMillis(300)), None);
    let again = Evidence { at: UnixMillis(250), ..seen };
    let met = dismissed.meets(CaseKind::Counterfeit, again, UnixMillis(300)).unwrap();
    assert_eq!(met.status, CaseStatus::Open);
}

#[test]
fn evidence_grows_and_a_confirmed_case_stays() {
    let start = opened(evidence(8, &["countries"], &[]));
    assert_eq!(start.clone().meets(CaseKind::Counterfeit, evidence(7, &[], &[]), UnixMillis(1)), None);
    let grown = start.meets(CaseKind::Counterfeit, evidence(7, &["devices"], &[]), UnixMillis(1)).unwrap();
    assert_eq!((grown.details.evidence.points, grown.details.evidence.signs.len(), grown.version), (8, 2, 2));
    let confirmed = grown.decide(&asked(CaseStatus::Confirmed), by(), UnixMillis(5));
    let met = confirmed.meets(CaseKind::Counterfeit, evidence(20, &["overlap"], &[]), UnixMillis(9)).unwrap();
    assert_eq!((met.status, met.details.evidence.points), (CaseStatus::Confirmed, 20));
    assert_eq!(met.details.decision.as_ref().unwrap().evidence.points, 8, "what was decided on");
    // A person opens it again.
    let open = met.decide(&DecisionRequest { reason: None, ..asked(CaseStatus::Open) }, by(), UnixMillis(10));
    assert_eq!((open.status, open.details.decision, open.details.history.len()), (CaseStatus::Open, None, 2));
}

#[test]
fn the_history_is_bounded() {
    let mut case = opened(evidence(8, &[], &[]));
    for at in 0..120 {
        case = case.decide(&asked(CaseStatus::Dismissed), by(), UnixMillis(at));
    }
    assert_eq!((case.details.history.len(), case.version), (MAX_HISTORY, 121));
    assert_eq!(case.details.history.last().map(|one| one.at), Some(UnixMillis(119)));
    let text = serde_json::to_string(&case.details).unwrap();
    assert_eq!(serde_json::from_str::<CaseDetails>(&text).unwrap(), case.details);
}

#[test]
fn each_fault_of_a_decision_is_named() {
    let long = "x".repeat(MAX_REASON + 1);
    for (body, faults) in [
        (json!({}), vec!["status is required."]),
        (json!({"status": "closed", "reason": "r"}), vec!["status must be open, dismissed or confirmed."]),
        (json!({"status": "dismissed"}), vec!["reason is required"]),
        (json!({"status": "confirmed", "reason": null}), vec!["reason is required"]),
        (json!({"status": "confirmed", "reason": ""}), vec!["reason must not be empty."]),
        (json!({"status": "confirmed", "reason": 1}), vec!["reason must be a string."]),
        (json!({"status": "confirmed", "reason": long}), vec!["reason must have at most 1024"]),
        (json!({"status": "confirmed", "reason": "r", "display": true}), vec!["display goes with"]),
        (json!({"status": "open", "display": "x", "version": 0}), vec!["display must be", "version must be"]),
    ] {
        let found = DecisionRequest::parse(&body).unwrap_err();
        let fits = found.len() == faults.len()
            && found.iter().zip(&faults).all(|(fault, expected)| fault.starts_with(expected));
        assert!(fits, "{body}: {found:?}");
    }
    let body = json!({"status": "dismissed", "reason": "a shop window", "display": true, "version": 3});
    let expected = DecisionRequest {
        status: CaseStatus::Dismissed,
        reason: Some("a shop window".to_owned()),
        is_display: true,
        version: Some(3),
    };
    assert_eq!(DecisionRequest::parse(&body), Ok(expected));
    assert!(DecisionRequest::parse(&json!({"status": "open"})).is_ok_and(|one| one.reason.is_none()));
}
