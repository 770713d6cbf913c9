//! The state machine of jobs: every state with every event.

use proptest::prelude::*;
use serde_json::json;

use super::{
    JobEvent::{Broken, CancelAsked, Loaded, Stopped, Taken, Worked},
    JobStatus::{
        Cancelled, Cancelling, Completed, CompletedWithFailures, Enqueued, Executing, Failed, Starting,
    },
    *,
};
use crate::domain::job_input::JobDraft;

fn job() -> Job {
    let body = json!({"payload": {"type": "scans"}, "target": "THNGS",
        "input": {"type": "LIST", "contentType": "PLATFORM_IDS", "payload": ["a", "b"]}});
    let draft = JobDraft::parse(&body).unwrap();
    let id = JobId::new(1, [1; 16]);
    let blob = Some("blob".to_owned());
    Job::new(id, AccountId::new(1, [2; 16]), None, draft.request.unwrap(), blob, UnixMillis(1_000))
}

fn in_state(status: JobStatus) -> Job {
    let last = |steps: &[JobEvent]| {
        steps.iter().fold(job(), |job, event| job.on(event.clone(), UnixMillis(2_000)).unwrap())
    };
    let failing = Worked { done: 2, failed: 1 };
    match status {
        Enqueued => job(),
        Starting => last(&[Taken]),
        Executing => last(&[Taken, Loaded(2)]),
        Cancelling => last(&[CancelAsked]),
        Completed => last(&[Taken, Loaded(2), Worked { done: 2, failed: 0 }]),
        CompletedWithFailures => last(&[Taken, Loaded(2), failing]),
        Cancelled => last(&[CancelAsked, Stopped]),
        Failed => last(&[Taken, Broken("x".to_owned())]),
    }
}

#[test]
fn every_state_follows_the_transition_table() {
    let broken = || Broken("why".to_owned());
    let events = [
        Taken,
        Loaded(0),
        Loaded(2),
        Worked { done: 1, failed: 0 },
        Worked { done: 2, failed: 0 },
        Worked { done: 2, failed: 2 },
        Worked { done: 3, failed: 0 },
        Worked { done: 1, failed: 2 },
        CancelAsked,
        Stopped,
        broken(),
    ];
    let table: [(JobStatus, [Option<JobStatus>; 11]); 8] = [
        (
            Enqueued,
            [Some(Starting), None, None, None, None, None, None, None, Some(Cancelling), None, Some(Failed)],
        ),
        (
            Starting,
            [
                Some(Starting),
                Some(Completed),
                Some(Executing),
                None,
                None,
                None,
                None,
                None,
                Some(Cancelling),
                None,
                Some(Failed),
            ],
        ),
        (
            Executing,
            [
                None,
                None,
                None,
                Some(Executing),
                Some(Completed),
                Some(CompletedWithFailures),
                None,
                None,
                Some(Cancelling),
                None,
                Some(Failed),
            ],
        ),
        (
            Cancelling,
            [None, None, None, None, None, None, None, None, Some(Cancelling), Some(Cancelled), None],
        ),
        (Completed, [const { None }; 11]),
        (CompletedWithFailures, [const { None }; 11]),
        (Cancelled, [const { None }; 11]),
        (Failed, [const { None }; 11]),
    ];
    for (status, cells) in table {
        for (event, expected) in events.iter().zip(cells) {
            let before = in_state(status);
            assert_eq!(before.status, status);
            let after = before.clone().on(event.clone(), UnixMillis(3_000));
            assert_eq!(after.as_ref().ok().map(|job| job.status), expected, "{status:?} {event:?}");
            let Ok(after) = after else { continue };
            // The history starts with the old one, ends with the present state, and grows only with the state.
            assert!(after.history.starts_with(&before.history), "{status:?} {event:?}");
            assert_eq!(after.history.last().map(|step| step.status), Some(after.status));
            assert_eq!(after.history.len() == before.history.len(), after.status == status);
            assert!(after.history.is_sorted_by_key(|step| step.timestamp));
            let terminal: Vec<bool> = after.history.iter().map(|step| step.status.is_terminal()).collect();
            let (last, others) = terminal.split_last().unwrap();
            assert!(others.iter().all(|is_terminal| !is_terminal), "{:?}", after.history);
            assert_eq!(*last, after.completed_at.is_some());
            assert_eq!(after.message.is_some(), after.status == Failed);
            assert_eq!(after.blob.is_none(), after.status.is_terminal(), "what has ended keeps no input");
        }
    }
}

#[test]
fn progress_only_grows_and_ends_at_100() {
    let mut job = in_state(Starting).on(Loaded(7), UnixMillis(1)).unwrap();
    let mut last = job.progress.percentage(job.status);
    assert_eq!(last, 0.0);
    for (done, failed) in [(1, 1), (0, 0), (3, 0), (3, 2)] {
        job = job.on(Worked { done, failed }, UnixMillis(1)).unwrap();
        let now = job.progress.percentage(job.status);
        assert!(now >= last && now <= 100.0, "{now} after {last}");
        last = now;
    }
    assert_eq!((last, job.status), (100.0, CompletedWithFailures));
    assert_eq!(job.progress, Progress { requested: 7, done: 7, failed: 3 });
    let empty = in_state(Starting).on(Loaded(0), UnixMillis(1)).unwrap();
    assert_eq!(empty.progress.percentage(empty.status), 100.0);
    let states: Vec<JobStatus> = empty.history.iter().map(|step| step.status).collect();
    assert_eq!(states, [Enqueued, Starting, Executing, Completed]);
    assert_eq!(in_state(Cancelled).progress.percentage(Cancelled), 0.0);
}

/// Any event at any time, as far as the machine takes it.
fn events() -> impl Strategy<Value = Vec<(JobEvent, i64)>> {
    let event = prop_oneof![
        2 => Just(Taken),
        2 => (0..500_u64).prop_map(Loaded),
        9 => (0..200_u64, 0..200_u64).prop_map(|(done, failed)| Worked { done, failed }),
        1 => Just(CancelAsked),
        1 => Just(Stopped),
        1 => Just(Broken("why".to_owned())),
    ];
    proptest::collection::vec((event, 0..5_000_i64), 0..60)
}

proptest! {
    #[test]
    fn progress_never_decreases_and_final_states_are_final(events in events()) {
        let mut job = job();
        for (event, at) in events {
            let before = job.clone();
            let Ok(after) = job.clone().on(event.clone(), UnixMillis(at)) else { continue };
            prop_assert!(before.completed_at.is_none(), "{event:?} after an end");
            prop_assert!(after.progress.failed <= after.progress.done);
            prop_assert!(after.progress.done <= after.progress.requested || after.progress.requested == 0);
            let (was, is) =
                (before.progress.percentage(before.status), after.progress.percentage(after.status));
            prop_assert!(is >= was && (0.0..=100.0).contains(&is), "{is} after {was}");
            prop_assert!(after.progress.done >= before.progress.done);
            prop_assert!(after.progress.failed >= before.progress.failed);
            let all = [Completed, CompletedWithFailures].contains(&after.status);
            prop_assert_eq!(all, after.progress.done == after.progress.requested && after.completed_at.is_some()
                && after.status != Cancelled && after.status != Failed);
            prop_assert_eq!(after.completed_at.is_some(), after.status.is_terminal());
            prop_assert!(after.history.starts_with(&before.history));
            prop_assert!(after.history.is_sorted_by_key(|step| step.timestamp));
            job = after;
        }
    }
}

#[test]
fn a_clock_that_goes_back_leaves_the_history_in_order() {
    let job = job().on(Taken, UnixMillis(5)).unwrap();
    assert_eq!(job.history[1].timestamp, UnixMillis(1_000));
    assert_eq!(job.updated_at, UnixMillis(1_000));
}

#[test]
fn states_are_spelt_as_in_the_api() {
    for status in JobStatus::ALL {
        assert_eq!(status.as_str().parse(), Ok(status));
        assert_eq!(json!(status), status.as_str());
    }
    assert!("RUNNING".parse::<JobStatus>().is_err());
}

#[test]
fn ids_of_actions_follow_the_entries_and_repeat() {
    let (at, job) = (UnixMillis(1_700_000_000_000), JobId::new(1, [1; 16]));
    let key = action_key(&[7; 32], job);
    let ids: Vec<ActionId> =
        [0, 1, 2, 49, 50, 4_999, 5_000, 99_999_999].map(|index| action_id(&key, at, index)).into();
    assert!(ids.is_sorted() && ids.windows(2).all(|two| two[0] != two[1]));
    assert_eq!(ids[5], action_id(&key, at, 4_999));
    for other in [action_key(&[8; 32], job), action_key(&[7; 32], JobId::new(1, [2; 16]))] {
        let id = action_id(&other, at, 4_999);
        assert_eq!(id.as_str()[..8], ids[5].as_str()[..8]);
        assert_ne!(id, ids[5]);
    }
}
