use std::{collections::BTreeMap, thread};

use proptest::prelude::*;
use shared::{availability::Availability, time::UnixMillis, wire::limits::LimitedScans};

use super::*;

const EDGES: [&str; 3] = ["e1", "e2", "e3"];

fn key() -> RedirectKey {
    RedirectKey::new("tn.gg", "ABC")
}

fn link(most: u32, scans: &BTreeMap<Box<str>, u32>) -> Redirect {
    let availability =
        Availability { max_scans: Some(most), scans: scans.clone(), ..Availability::default() };
    let mut link: Redirect = serde_json::from_str(
        r#"{"domain": "tn.gg", "shortId": "ABC", "type": "thng", "platformId": "UKXAGyEf8SQ5eTDmVgGpHqAa",
            "target": "https://example.com/", "createdAt": 5, "updatedAt": 5}"#,
    )
    .unwrap();
    link.availability = Some(Box::new(availability));
    link
}

/// Saves what is counted, if something was since the last time.
fn save(limits: &ScanLimits) {
    let Some(counts) = limits.lock().take_changed() else { return };
    let counts = counts.into_iter().map(|(key, count)| count.report_of(&key)).collect();
    file::save(&limits.path, &limits.edge, counts).unwrap();
}

/// What is due, as control would hear it.
fn due(limits: &ScanLimits) -> Vec<LimitedScans> {
    limits.lock().take_due()
}

#[test]
fn one_edge_is_exact_however_many_threads_ask() {
    let folder = tempfile::tempdir().unwrap();
    let limits = ScanLimits::open(folder.path(), "e1".into());
    let link = link(1_000, &BTreeMap::new());
    let (asked, scanned) = (&limits, &link);
    let led: usize = thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| scope.spawn(move || (0..400).filter(|_| asked.admit(&key(), scanned)).count()))
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(led, 1_000);
    assert!(limits.is_used_up(&key(), &link));
    assert_eq!(due(&limits)[0].scans, 1_000);
}

#[test]
fn reports_are_seldom_until_the_end_is_near() {
    let folder = tempfile::tempdir().unwrap();
    let limits = ScanLimits::open(folder.path(), "e1".into());
    let mut reports = 0;
    let link = link(100_000, &BTreeMap::new());
    while limits.admit(&key(), &link) {
        let reported = due(&limits);
        reports += reported.len();
        limits.lock().reported(&reported);
    }
    // Each scan of the last 1,024, and before that one for each part of what is left: some 4,000.
    assert!((1_024..6_500).contains(&reports), "{reports}");
    limits.lock().sweep();
    assert!(due(&limits).is_empty());
}

#[test]
fn a_raised_limit_goes_on_and_another_link_begins_anew() {
    let folder = tempfile::tempdir().unwrap();
    let limits = ScanLimits::open(folder.path(), "e1".into());
    let none = BTreeMap::new();
    let led = |link: &Redirect| (0..9).filter(|_| limits.admit(&key(), link)).count();
    assert_eq!((led(&link(3, &none)), led(&link(3, &none))), (3, 0));
    assert_eq!(led(&link(5, &none)), 2);
    let open = Redirect { availability: None, ..link(3, &none) };
    assert!(led(&open) == 9 && !limits.is_used_up(&key(), &open));
    assert_eq!(led(&link(6, &none)), 1, "what had no limit was not counted");
    let other = Redirect { created_at: UnixMillis(6), ..link(3, &none) };
    assert_eq!((limits.is_used_up(&key(), &other), led(&other)), (false, 3));
}

#[test]
fn an_orderly_stop_loses_nothing_and_the_file_of_another_edge_is_ignored() {
    let folder = tempfile::tempdir().unwrap();
    let none = BTreeMap::new();
    let limits = ScanLimits::open(folder.path(), "e1".into());
    assert!((0..3).all(|_| limits.admit(&key(), &link(5, &none))));
    save(&limits);
    let again = ScanLimits::open(folder.path(), "e1".into());
    assert_eq!((0..9).filter(|_| again.admit(&key(), &link(5, &none))).count(), 2);
    let other = ScanLimits::open(folder.path(), "e2".into());
    assert_eq!((0..9).filter(|_| other.admit(&key(), &link(5, &none))).count(), 5);
    std::fs::write(&limits.path, "{").unwrap();
    let damaged = ScanLimits::open(folder.path(), "e1".into());
    // Then control says what it has.
    let known = [("e1".into(), 4)].into();
    assert_eq!((0..9).filter(|_| damaged.admit(&key(), &link(5, &known))).count(), 1);
}

/// What happens to an edge.
#[derive(Debug, Clone, Copy)]
enum Step {
    Scan,
    /// Control takes its report; or the report is lost on the way.
    Report(bool),
    /// It gets the record that control has.
    Push,
    /// It starts again, with its file or without it.
    Restart(bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => Just(Step::Scan),
        2 => any::<bool>().prop_map(Step::Report),
        2 => Just(Step::Push),
        1 => any::<bool>().prop_map(Step::Restart),
    ]
}

proptest! {
    // Files are synced.
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Three edges share a link; each may be cut off and start again. A scan too many is always one that an edge could not know
    /// of, and no edge ends the link before all its scans are used up.
    #[test]
    fn three_edges_end_a_link_late_by_what_they_could_not_know_and_never_early(
        most in 1_u32..20,
        steps in prop::collection::vec((0..EDGES.len(), step()), 1..120),
    ) {
        let folders: Vec<_> = EDGES.iter().map(|_| tempfile::tempdir().unwrap()).collect();
        let open = |edge: usize| ScanLimits::open(folders[edge].path(), EDGES[edge].into());
        let mut edges: Vec<ScanLimits> = (0..EDGES.len()).map(open).collect();
        let mut control: BTreeMap<Box<str>, u32> = BTreeMap::new();
        let mut seen = [(); EDGES.len()].map(|()| BTreeMap::new());
        // What each counted, and what it still knows of it.
        let (mut truth, mut own) = ([0_u32; EDGES.len()], [0_u32; EDGES.len()]);
        for (at, step) in steps {
            let record = link(most, &seen[at]);
            let all: u32 = truth.iter().sum();
            match step {
                Step::Scan => {
                    let was_used_up = edges[at].is_used_up(&key(), &record);
                    let led = edges[at].admit(&key(), &record);
                    prop_assert_eq!(led, !was_used_up);
                    let of = |edge: usize| seen[at].get(EDGES[edge]).copied().unwrap_or_default();
                    own[at] = own[at].max(of(at));
                    let known = own[at] + (0..EDGES.len()).filter(|other| *other != at).map(of).sum::<u32>();
                    prop_assert_eq!(led, known < most);
                    prop_assert!(led || all >= most, "it ended after {} of {}", all, most);
                    if led {
                        truth[at] += 1;
                        own[at] += 1;
                    }
                }
                Step::Report(arrives) => {
                    let reported = due(&edges[at]);
                    if !arrives {
                        edges[at].lock().not_reported(&reported);
                    } else if let [reported] = &reported[..] {
                        let known = control.entry(EDGES[at].into()).or_default();
                        *known = (*known).max(reported.scans);
                        edges[at].lock().reported(std::slice::from_ref(reported));
                    }
                }
                Step::Push => seen[at] = control.clone(),
                Step::Restart(has_file) => {
                    if has_file {
                        save(&edges[at]);
                    } else {
                        let _ = std::fs::remove_file(&edges[at].path);
                        own[at] = 0;
                    }
                    edges[at] = open(at);
                }
            }
            prop_assert!(control.values().sum::<u32>() <= truth.iter().sum::<u32>());
        }
    }
}
