use super::*;

fn write(version: Version, start: Micros, end: Micros, outcome: Outcome) -> Write {
    Write { key: 1, version, start, end, outcome }
}

fn read(edge: u16, start: Micros, end: Micros, answer: Answer) -> Read {
    Read { edge, key: 1, start, end, answer }
}

fn both() -> Outcome {
    Outcome::Acked(vec![0, 1])
}

fn found(writes: &[Write], reads: &[Read], boots: &[Boot], last: &[Read]) -> Vec<Kind> {
    let history = History {
        writes: writes.to_vec(),
        reads: reads.to_vec(),
        boots: boots.to_vec(),
        last: last.to_vec(),
    };
    check(&history).violations.iter().map(|violation| violation.kind).collect()
}

#[test]
fn a_right_history_passes() {
    use Answer::{Failed, NotFound, Version};
    let writes = [write(1, 10, 20, both()), write(2, 30, 60, both()), write(DELETED, 100, 120, both())];
    let reads = [
        read(0, 0, 5, NotFound),
        read(0, 12, 14, Version(1)),
        read(0, 21, 22, Version(1)),
        read(0, 35, 40, Version(2)),
        read(1, 35, 40, Version(1)),
        read(1, 55, 65, Version(1)),
        read(1, 61, 62, Version(2)),
        read(1, 63, 64, Failed),
        read(0, 105, 110, NotFound),
        read(1, 105, 110, Version(2)),
        read(1, 121, 122, NotFound),
    ];
    assert_eq!(found(&writes, &reads, &[], &[read(0, 200, 201, NotFound)]), []);
}

#[test]
fn each_broken_history_is_found() {
    use Answer::{NotFound, Version};
    let (one, two) = (write(1, 10, 20, both()), write(2, 30, 40, both()));
    let gone = write(DELETED, 50, 60, both());
    let cases = [
        (
            vec![one.clone(), two.clone()],
            vec![read(0, 41, 42, Version(1))],
            Kind::Stale,
            "older than the ack",
        ),
        (
            vec![one.clone()],
            vec![read(0, 21, 22, NotFound)],
            Kind::Stale,
            "a created id is a 404 after the ack",
        ),
        (
            vec![one.clone(), gone.clone()],
            vec![read(1, 61, 62, Version(1))],
            Kind::Resurrected,
            "a deleted id is served again after the ack",
        ),
        (
            vec![one.clone(), write(2, 30, 40, Outcome::Stored)],
            vec![read(0, 32, 33, Version(2)), read(0, 34, 35, Version(1))],
            Kind::WentBack,
            "reads of one edge go back, without any ack",
        ),
        (
            vec![one.clone(), write(DELETED, 30, 99, Outcome::Unknown)],
            vec![read(0, 21, 22, Version(1)), read(0, 32, 33, NotFound), read(0, 34, 35, Version(1))],
            Kind::WentBack,
            "a deleted id comes back before the ack",
        ),
        (
            vec![one.clone()],
            vec![read(0, 21, 22, Version(7))],
            Kind::FromFuture,
            "a version that nobody wrote",
        ),
        (
            vec![one.clone(), two.clone()],
            vec![read(0, 22, 25, Version(2))],
            Kind::FromFuture,
            "a version before it was sent",
        ),
        (
            vec![one.clone(), write(2, 30, 40, Outcome::Refused)],
            vec![read(0, 41, 42, Version(2))],
            Kind::FromFuture,
            "what was refused is served",
        ),
    ];
    for (writes, reads, expected, why) in cases {
        assert_eq!(found(&writes, &reads, &[], &[]), [expected], "{why}");
    }
}

#[test]
fn only_members_that_acknowledged_are_held_to_it() {
    let writes = [write(1, 10, 20, both()), write(2, 30, 40, Outcome::Acked(vec![1]))];
    assert_eq!(found(&writes, &[read(0, 41, 42, Answer::Version(1))], &[], &[]), []);
    assert_eq!(found(&writes, &[read(1, 41, 42, Answer::Version(1))], &[], &[]), [Kind::Stale]);
}

#[test]
fn a_boot_from_disk_is_excused_until_the_first_contact() {
    let writes = [write(1, 10, 20, both()), write(2, 30, 40, both())];
    let boots = [Boot { edge: 0, start: 50, end: 70 }];
    assert_eq!(found(&writes, &[read(0, 60, 61, Answer::Version(1))], &boots, &[]), []);
    assert_eq!(found(&writes, &[read(1, 60, 61, Answer::Version(1))], &boots, &[]), [Kind::Stale]);
    assert_eq!(found(&writes, &[read(0, 71, 72, Answer::Version(1))], &boots, &[]), [Kind::Stale]);
    assert_eq!(found(&writes, &[read(0, 60, 61, Answer::Version(9))], &boots, &[]), [Kind::FromFuture]);
}

#[test]
fn what_is_stored_is_there_in_the_end() {
    use Answer::{Failed, NotFound, Version};
    let writes = [write(1, 10, 20, both()), write(2, 30, 40, Outcome::Stored)];
    let unknown = [writes[0].clone(), writes[1].clone(), write(3, 50, 60, Outcome::Unknown)];
    let gone = [writes[0].clone(), write(DELETED, 50, 60, Outcome::Stored)];
    for (writes, answer, expected, why) in [
        (&writes[..], Version(2), &[][..], "the last"),
        (&writes, Version(1), &[Kind::Lost], "an update is lost"),
        (&writes, NotFound, &[Kind::Lost], "a creation is lost"),
        (&writes, Failed, &[Kind::Lost], "nothing answers"),
        (&unknown, Version(2), &[], "the unknown one did not happen"),
        (&unknown, Version(3), &[], "the unknown one happened"),
        (&unknown, Version(1), &[Kind::Lost], "neither"),
        (&gone, NotFound, &[], "deleted"),
        (&gone, Version(1), &[Kind::Lost], "a deletion is lost"),
    ] {
        assert_eq!(found(writes, &[], &[], &[read(0, 100, 101, answer)]), expected, "{why}");
    }
}
