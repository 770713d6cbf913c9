use CommissionState::{Commissioned, Decommissioned, NotCommissioned};
use proptest::prelude::*;

use super::*;

const STATES: [CommissionState; 3] = [NotCommissioned, Commissioned, Decommissioned];

fn facts(state: CommissionState) -> Facts<'static> {
    Facts { state, is_encoded: true, factories: Factories::default() }
}

#[test]
fn each_step_from_each_state() {
    use Refusal::{AlreadyCommissioned, AlreadyDecommissioned, NeverCommissioned};
    for (step, from, expected) in [
        (Step::Commission, NotCommissioned, Ok(Commissioned)),
        (Step::Commission, Commissioned, Err(vec![AlreadyCommissioned])),
        (Step::Commission, Decommissioned, Ok(Commissioned)),
        (Step::Decommission, NotCommissioned, Err(vec![NeverCommissioned])),
        (Step::Decommission, Commissioned, Ok(Decommissioned)),
        (Step::Decommission, Decommissioned, Err(vec![AlreadyDecommissioned])),
    ] {
        assert_eq!(take(step, &facts(from)), expected, "{step:?} from {from:?}");
    }
}

#[test]
fn only_commissioning_requires_an_encoding() {
    let bare = |state| Facts { is_encoded: false, ..facts(state) };
    assert_eq!(take(Step::Commission, &bare(NotCommissioned)), Err(vec![Refusal::NotEncoded]));
    assert_eq!(take(Step::Decommission, &bare(Commissioned)), Ok(Decommissioned));
}

#[test]
fn thng_request_and_place_must_name_the_same_factory() {
    let id = PlaceId::new(1, [1; 16]);
    let place = |factory| Some((id, factory));
    let other = |name: &str| Some(name.to_owned());
    for (thng, request, at, expected) in [
        (None, None, None, vec![]),
        (None, None, place(None), vec![]),
        // A place of a factory asks for nothing: neither the Thng nor the request names one.
        (None, None, place(Some("F")), vec![]),
        (Some("F"), Some("F"), place(Some("F")), vec![]),
        (None, Some("F"), place(Some("F")), vec![Refusal::FactoryOfThng(None)]),
        (Some("F"), None, place(Some("F")), vec![Refusal::FactoryOfRequest]),
        (Some("F"), Some("F"), None, vec![Refusal::NoPlace]),
        (Some("F"), Some("F"), place(None), vec![Refusal::FactoryOfPlace(id, None)]),
        (Some("F"), Some("F"), place(Some("G")), vec![Refusal::FactoryOfPlace(id, other("G"))]),
        (Some("G"), Some("F"), place(Some("F")), vec![Refusal::FactoryOfThng(other("G"))]),
        (
            Some("F"),
            Some("G"),
            place(Some("F")),
            vec![Refusal::FactoryOfThng(other("F")), Refusal::FactoryOfPlace(id, other("F"))],
        ),
        (Some("F"), Some("f"), place(Some("f")), vec![Refusal::FactoryOfThng(other("F"))]),
        (None, Some("F"), None, vec![Refusal::FactoryOfThng(None), Refusal::NoPlace]),
        (Some("F"), None, None, vec![Refusal::FactoryOfRequest, Refusal::NoPlace]),
    ] {
        let factories = Factories { thng, request, place: at };
        assert_eq!(check_factories(&factories), expected, "{factories:?}");
        for (step, from) in [(Step::Commission, NotCommissioned), (Step::Decommission, Commissioned)] {
            let found = take(step, &Facts { factories, ..facts(from) });
            assert_eq!(found.err().unwrap_or_default(), expected, "{step:?} {factories:?}");
        }
    }
}

#[test]
fn every_reason_is_reported() {
    let factories = Factories { thng: Some("F"), ..Factories::default() };
    let refused = take(Step::Commission, &Facts { state: Commissioned, is_encoded: false, factories });
    let expected =
        vec![Refusal::AlreadyCommissioned, Refusal::NotEncoded, Refusal::FactoryOfRequest, Refusal::NoPlace];
    assert_eq!(refused, Err(expected));
}

#[test]
fn timestamps_need_date_time_and_offset() {
    for (text, expected) in [
        ("1970-01-01T00:00:00Z", Some(0)),
        ("1970-01-01T00:00:00z", Some(0)),
        ("1970-01-01t00:00:00+00:00", Some(0)),
        ("1970-01-01T00:00:00-00:00", Some(0)),
        ("1970-01-01T01:00:00+01:00", Some(0)),
        ("1969-12-31T19:00:00-05:00", Some(0)),
        ("2026-11-22T08:15:30.5+05:30", Some(1_795_315_530_500)),
        ("2026-11-22T08:15:30.123456789Z", Some(1_795_335_330_123)),
        ("2024-02-29T00:00:00Z", Some(1_709_164_800_000)),
        ("2000-02-29T00:00:00Z", Some(951_782_400_000)),
        ("2016-12-31T23:59:60Z", Some(1_483_228_800_000)),
        ("0000-01-01T00:00:00Z", Some(-62_167_219_200_000)),
        ("9999-12-31T23:59:59.999Z", Some(253_402_300_799_999)),
        ("1969-12-31T23:59:59.999Z", Some(-1)),
        ("", None),
        ("2026-11-22", None),
        ("2026-11-22T08:15:30", None),
        ("2026-11-22T08:15Z", Some(1_795_335_300_000)),
        ("2026-11-22T08:15+0100", Some(1_795_331_700_000)),
        ("2026-11-22T08:15:30,5Z", Some(1_795_335_330_500)),
        ("2026-11-22T08:15.5Z", None),
        ("2026-11-22 08:15:30Z", None),
        ("2026-11-22T08:15:30.Z", None),
        ("2026-11-22T08:15:30+0100", Some(1_795_331_730_000)),
        ("2026-11-22T08:15:30.25-0530", Some(1_795_355_130_250)),
        ("2026-11-22T08:15:30+01", Some(1_795_331_730_000)),
        ("2026-11-22T08:15:30+01:", None),
        ("2026-11-22T08:15:30+01:0", None),
        ("2026-11-22T08:15:30+010", None),
        ("2026-11-22T08:15:30+1", None),
        ("2026-11-22T08:15:30+24:00", None),
        ("2026-11-22T08:15:30+01:60", None),
        ("2026-11-22T08:15:30Zx", None),
        ("2026-11-22T24:00:00Z", None),
        ("2026-11-22T08:60:00Z", None),
        ("2026-11-22T08:15:61Z", None),
        ("2026-13-01T00:00:00Z", None),
        ("2026-00-01T00:00:00Z", None),
        ("2026-11-31T00:00:00Z", None),
        ("2026-11-00T00:00:00Z", None),
        ("2023-02-29T00:00:00Z", None),
        ("1900-02-29T00:00:00Z", None),
        ("+026-11-22T08:15:30Z", None),
        ("2026-11-22T08:15:30\u{2212}01:00", None),
        ("２026-11-22T08:15:30Z", None),
        ("1767225600000", None),
    ] {
        let found = text.parse::<Moment>();
        assert_eq!(found.as_ref().ok().map(|moment| moment.at.0), expected, "{text}");
        if let Ok(moment) = found {
            assert_eq!(moment.text, text, "the text is kept");
        }
    }
    let long = format!("2026-11-22T08:15:30.{}Z", "1".repeat(40));
    assert!(long.parse::<Moment>().is_err());
}

fn commission(steps: &[(i64, CommissionState)]) -> Commission {
    let steps = steps.iter().map(|(at, to)| Taken { at: UnixMillis(*at), to: *to }).collect();
    Commission {
        state: Commissioned,
        product: ProductId::new(1, [1; 16]),
        occurred_at: String::new(),
        factory: None,
        purchase_order: None,
        steps,
    }
}

#[test]
fn the_state_at_a_time() {
    let twice = commission(&[(10, Commissioned), (20, Decommissioned), (30, Commissioned)]);
    for (at, state, since) in [
        (9, NotCommissioned, Some(10)),
        (10, Commissioned, Some(10)),
        (20, Decommissioned, Some(10)),
        (29, Decommissioned, Some(10)),
        (30, Commissioned, Some(30)),
        (99, Commissioned, Some(30)),
    ] {
        assert_eq!(twice.state_at(UnixMillis(at)), state, "{at}");
        assert_eq!(twice.commissioned_at(UnixMillis(at)), since.map(UnixMillis), "{at}");
    }
    assert_eq!(commission(&[(5, Commissioned), (5, Decommissioned)]).state_at(UnixMillis(5)), Decommissioned);
    // A step that was reported late counts at its own time.
    let late = commission(&[(20, Commissioned), (10, Decommissioned)]);
    assert_eq!(late.state_at(UnixMillis(15)), Decommissioned);
    assert_eq!(late.state_at(UnixMillis(25)), Commissioned);
}

proptest! {
    #[test]
    fn any_sequence_of_steps_alternates(steps in prop::collection::vec(any::<bool>(), 0..200)) {
        let (mut state, mut known) = (NotCommissioned, commission(&[]));
        for (at, commission) in (0..).zip(steps) {
            let step = if commission { Step::Commission } else { Step::Decommission };
            match take(step, &facts(state)) {
                Ok(next) => {
                    prop_assert_ne!(next, state);
                    prop_assert_eq!(next, step.leads_to());
                    state = next;
                    known.remember(Taken { at: UnixMillis(at), to: next });
                }
                Err(refusals) => {
                    let is_held = state == step.leads_to() || state == NotCommissioned;
                    prop_assert!(is_held && refusals.len() == 1);
                }
            }
            prop_assert!(known.steps.len() <= MAX_STEPS);
            if !known.steps.is_empty() {
                prop_assert_eq!(known.state_at(UnixMillis(at)), state);
            }
        }
        prop_assert!(STATES.contains(&state));
    }

    #[test]
    fn any_timestamp_text_is_read_without_panic(text in "[0-9TZtz:+.\\- ]{0,40}|\\PC{0,40}") {
        let _ = text.parse::<Moment>();
    }

    #[test]
    fn timestamps_of_one_offset_sort_by_time(a in 0i64..4_000_000, b in 0i64..4_000_000) {
        let text = |n: i64| {
            let (day, second) = (n / 86_400, n % 86_400);
            format!("2026-{:02}-{:02}T{:02}:{:02}:{:02}+02:00", 1 + day / 28, 1 + day % 28,
                second / 3_600, second / 60 % 60, second % 60)
        };
        let at = |n| text(n).parse::<Moment>().unwrap().at;
        prop_assert_eq!(a < b, at(a) < at(b), "{} {}", text(a), text(b));
    }
}
