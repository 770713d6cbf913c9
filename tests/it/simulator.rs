//! Assessment detects copies and diverted goods, in a simulation with a fixed seed.

use kernel::domain::{location::Coordinates, scan_source::Source};
use proptest::prelude::*;
use shared::time::UnixMillis;
use simulator::{
    ATTACKED, FIRST_EVALUATION_SEED, Figures, KEPT_HEAD, KEPT_ITEMS, MISSED, Population, Report, attack, auc,
    kept_table, measure, precision, run,
};
use tests::product::root;
use verdicts::domain::assessment::{
    agent::AgentHash,
    explain::{signs, sum},
    profile::{Observation, Profile},
    settings::Settings,
    spot::Spot,
    spread::{Spread, Trigger},
};

/// Items of each mix; `cargo run --release -p tests --bin simulate` takes many more.
const ITEMS: usize = 16_000;

/// Items of each of the fourteen mixes that have floors.
const FLOOR_ITEMS: usize = 6_000;

/// Floors of a mix, beside the area under the curve and the recall.
struct Floors {
    /// Share of other items that are called copies, at most.
    false_positives: f64,
    /// Area of the points over that of each baseline, at least.
    over_baselines: f64,
    /// Precision of confirmed diversions where one item in ten is diverted.
    diversion_precision: f64,
    /// Share of diverted items with an earlier session outside that are confirmed, at least: those that nobody tried
    /// inside of the market first, and all of them.
    diversion_never_inside: f64,
    diversion_seen_again: f64,
}

fn check(figures: &Figures, floors: &Floors) {
    let report = Report::of(&run(FIRST_EVALUATION_SEED, ITEMS, Population::First("", *figures)));
    assert!(report.counts.iter().all(|count| *count > 3_000), "{report}");
    assert!(report.auc[0] >= 0.95, "{report}");
    assert!(report.recall >= 0.65 && report.false_positives <= floors.false_positives, "{report}");
    for baseline in [1, 2] {
        assert!(report.auc[0] - report.auc[baseline] > floors.over_baselines, "{report}");
        let best = report.recall.max(report.recall_at_allowed[0]);
        assert!(best > report.recall_at_allowed[baseline], "{report}");
    }
    assert!(report.diversion_precision(0.10) >= floors.diversion_precision, "{report}");
    assert!(report.diversion_noticed >= 0.85, "{report}");
    // What is wrongly called diverted was bought on a journey: no rule that goes by places tells it from diverted goods.
    assert!(report.diversion_bought_on_a_journey >= 0.8, "{report}");
    // The first scan outside by an address is only suspected; what was not tried inside first is confirmed by the second.
    assert!(report.diversion_never_inside.share >= floors.diversion_never_inside, "{report}");
    assert!(report.diversion_seen_again.share >= floors.diversion_seen_again, "{report}");
}

/// The floor of confirmed diversions: 93 of 100 at twelve false alarms in a thousand, where nobody buys on a journey and
/// nothing is tried inside of its market first, with untagged display pieces. Of the mixes without, the plain and the shifted
/// one among them, [`floors_hold_or_are_missed_by_what_is_known`] says the same.
#[test]
fn diversions_are_confirmed_at_few_false_alarms_but_for_tourists() {
    let without = Figures { tourist: 0.0, tried_inside: 0.0, ..Figures::CROWDED };
    let report = Report::of(&run(FIRST_EVALUATION_SEED, ITEMS, Population::First("", without)));
    assert!(report.diversion_seen_again.share >= 0.93, "{report}");
    assert!(report.diversion_false_positives <= 0.012, "{report}");
}

/// Where 6 items in 100 are bought on a journey and one in ten is diverted, four in five confirmed diversions are right.
/// With untagged display pieces or twice the VPNs as well, this is missed by some two hundredths.
#[test]
fn confirmed_diversions_are_precise_with_tourists() {
    let tourists = Figures { tourist: 0.06, tried_inside: 0.0, ..Figures::PLAIN };
    let report = Report::of(&run(FIRST_EVALUATION_SEED, ITEMS, Population::First("", tourists)));
    let (recall, wrong) = (report.diversion_seen_again.share, report.diversion_false_positives);
    assert!(precision(0.10, recall, wrong) >= 0.80, "{report}");
}

/// The precision of diversion over all items is below 0.80: half of what is diverted is scanned once, and its first scan
/// outside is only suspected. What is called diverted and is not was mostly bought on a journey, by a phone that is seen at
/// home while it roams: no rule that goes by places tells it from a diverted item. This bar keeps what the rules reach.
#[test]
fn copies_and_diverted_goods_are_detected_in_the_plain_mix() {
    check(
        &Figures::PLAIN,
        &Floors {
            false_positives: 0.01,
            over_baselines: 0.0,
            diversion_precision: 0.70,
            diversion_never_inside: 0.93,
            diversion_seen_again: 0.8,
        },
    );
}

/// With twice the tourists, the precision of diversion is lower. Counting scans orders items nearly as well here, where
/// two codes in five stay in one country; at one false alarm in a hundred it finds fewer.
#[test]
fn copies_and_diverted_goods_are_detected_in_the_shifted_mix() {
    check(
        &Figures::SHIFTED,
        &Floors {
            false_positives: 0.01,
            over_baselines: -0.01,
            diversion_precision: 0.45,
            diversion_never_inside: 0.91,
            diversion_seen_again: 0.7,
        },
    );
}

/// The mix that no rule was chosen by. The points alone, at one false alarm in a hundred, find fewer copies here than
/// either baseline, as untagged display pieces collect them; what is called a duplicate goes by regions, too.
#[test]
fn copies_and_diverted_goods_are_detected_in_the_crowded_mix() {
    check(
        &Figures::CROWDED,
        &Floors {
            false_positives: 0.01,
            over_baselines: -0.01,
            diversion_precision: 0.70,
            diversion_never_inside: 0.93,
            diversion_seen_again: 0.8,
        },
    );
}

/// Keys that anybody can get, and a botnet that has them, make no genuine item look copied or diverted, and clear no copy.
/// What each attacker can do is published, with the figures of this run.
#[test]
fn attackers_with_public_keys_change_no_verdict_beyond_unknown() {
    let published = std::fs::read_to_string(root().join("SECURITY.md")).unwrap();
    let attacks = attack(FIRST_EVALUATION_SEED, ATTACKED);
    let table: Vec<String> = attacks.iter().map(|attack| attack.row()).collect();
    for attack in &attacks {
        assert!(attack.genuine.values().sum::<usize>() > 200 && attack.copied > 50, "{attack}");
        if attack.attacker.is_public() {
            assert_eq!((attack.incriminated, attack.cleared), (0, 0), "{attack}");
        } else {
            // What edges see is believed: the attack works, and would show here if the others were believed, too.
            assert!(attack.incriminated > 0, "{attack}");
        }
        assert!(published.contains(&attack.row()), "SECURITY.md must have the rows\n{}", table.join("\n"));
    }
}

/// The floors hold in every mix of both populations, or are missed by no more than is known.
#[test]
fn floors_hold_or_are_missed_by_what_is_known() {
    let mut wrong = Vec::new();
    for population in Population::all() {
        let name = population.to_string();
        for measured in measure(population, &run(FIRST_EVALUATION_SEED, FLOOR_ITEMS, population)) {
            println!("{name}: {measured}");
            let is_known = |one: &&::simulator::Missed| {
                name.starts_with(one.population)
                    && one.mix == population.mix()
                    && one.quantity == measured.quantity
            };
            let known = MISSED.iter().find(is_known).map_or(0.0, |one| one.by);
            if measured.bound.missed_by(measured.value) > known {
                wrong.push(format!("{name}: {measured}"));
            }
        }
    }
    assert!(wrong.is_empty(), "worse than known:\n{}", wrong.join("\n"));
}

/// What assessment finds under each setting of `personalData` is published, with the figures of this run.
/// `WAYMARK_REFRESH_SIMULATION=1` writes them into the guide.
#[test]
fn the_guide_tells_what_personal_data_costs() {
    let path = root().join("deploy/guide/privacy.md");
    let guide = std::fs::read_to_string(&path).unwrap();
    let table = kept_table(FIRST_EVALUATION_SEED, KEPT_ITEMS);
    assert_eq!(table.lines().count(), 2 + 2 * 3, "{table}");
    let begin = guide.find(KEPT_HEAD).expect("the guide has the head of the table");
    let end = guide[begin..].find("\n\n").map_or(guide.len(), |end| begin + end + 1);
    if std::env::var_os("WAYMARK_REFRESH_SIMULATION").is_some() {
        std::fs::write(path, [&guide[..begin], &table, &guide[end..]].concat()).unwrap();
        return;
    }
    assert_eq!(&guide[begin..end], table, "write it by WAYMARK_REFRESH_SIMULATION=1");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    const PLAIN: Population = Population::FIRST[0];
    assert_eq!(run(3, 200, PLAIN), run(3, 200, PLAIN));
    assert_ne!(run(3, 200, PLAIN), run(4, 200, PLAIN));
}

#[test]
fn figures_of_known_scores() {
    assert!((auc(&[2.0, 3.0], &[0.0, 1.0]) - 1.0).abs() < 1e-12);
    assert!((auc(&[1.0], &[1.0]) - 0.5).abs() < 1e-12);
    assert!((auc(&[0.0], &[1.0, 2.0])).abs() < 1e-12);
    assert!((precision(0.10, 0.7, 0.01) - 0.886).abs() < 1e-3);
}

prop_compose! {
    /// A scan by one of few devices, somewhere, within a month.
    fn scans()(hour in 0..720_i64, agent in 1..8_u64, latitude in -60.0..70.0_f64, longitude in -180.0..180.0_f64,
        country in prop::sample::select(vec!["CH", "DE", "FR"]), is_sensor in any::<bool>()) -> Observation {
        let at = Coordinates::new(latitude, longitude).unwrap();
        let spot = if is_sensor {
            Spot::of_sensor(at, country.parse().ok(), None)
        } else {
            Spot::of_address(true, Some(at), Some(country), None)
        };
        Observation { at: UnixMillis(hour * 3_600_000), agent: Some(AgentHash(agent)), spot, is_implicit: true, source: Source::Edge, network: None, language: None }
    }
}

fn points_of(scans: &[Observation]) -> u32 {
    let trigger = Trigger {
        at: UnixMillis(1_000 * 3_600_000),
        agent: None,
        network: None,
        language: None,
        spot: Spot::NOWHERE,
        is_counted: false,
    };
    let settings = Settings::default();
    let spread = Spread::of(&Profile::of(scans), &trigger, None, &settings);
    sum(&signs(&spread, &settings))
}

proptest! {
    #[test]
    fn a_copy_in_a_new_country_never_lowers_the_points(
        scans in prop::collection::vec(scans(), 0..60),
        latitude in -60.0..70.0_f64,
        longitude in -180.0..180.0_f64,
    ) {
        let at = Coordinates::new(latitude, longitude);
        let spot = Spot::of_address(true, at, Some("NZ"), None);
        let copy = Observation { at: UnixMillis(900 * 3_600_000), agent: Some(AgentHash(99)), spot, is_implicit: true, source: Source::Edge, network: None, language: None };
        let before = points_of(&scans);
        let after = points_of(&[scans, vec![copy]].concat());
        prop_assert!(after >= before, "{after} after {before}");
    }
}
