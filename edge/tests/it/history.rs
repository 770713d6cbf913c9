//! Many readers while one writer changes, deletes and creates: nobody ever sees the past.

use std::{sync::Arc, time::Duration};

use edge::EdgeConfig;

use crate::support::{Control, Running, request};

const IDS: [&str; 3] = ["AAA", "BBB", "CCC"];
const CHANGES: u64 = 400;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_never_go_back_and_follow_every_ack() {
    nobody_sees_the_past(|config| config.cache_bytes = 1_500).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_never_go_back_with_a_full_replica() {
    nobody_sees_the_past(|config| (config.cache_bytes, config.is_replica) = (1_500, true)).await;
}

/// Invariants I3, I5 and I6, on the edge as clients see it: views that lag, a cache that holds next to
/// nothing, four readers.
async fn nobody_sees_the_past(adapt: impl FnOnce(&mut EdgeConfig)) {
    let (control, folder) = (Control::new(), tempfile::tempdir().unwrap());
    let edge = Running::start(&control, folder.path(), None, adapt).await;
    let edge = Arc::new(edge);
    let mut readers = tokio::task::JoinSet::new();
    for reader in 0..4 {
        let (control, edge) = (control.clone(), edge.clone());
        readers.spawn(async move {
            let (mut reads, mut unanswered) = (0, 0);
            let mut seen = [0; IDS.len()];
            while control.head() < CHANGES {
                let n = (reads + reader) % IDS.len();
                let promised = control.acked_rev().max(seen[n]);
                let answer = request(edge.plain, "GET", "tn.gg", &format!("/{}", IDS[n]), &[]).await;
                let shown = match answer.status {
                    307 => {
                        Some(answer.header("location").rsplit('/').next().unwrap().parse::<u64>().unwrap())
                    }
                    404 => None,
                    // A view that lags and cannot be verified; allowed, never wrong.
                    503 => {
                        unanswered += 1;
                        continue;
                    }
                    other => panic!("status {other}"),
                };
                let first = (promised..=control.head()).find(|rev| control.value_at(IDS[n], *rev) == shown);
                let Some(first) = first else {
                    panic!("{} shows {shown:?}, which was not true from {promised} on", IDS[n]);
                };
                seen[n] = first;
                reads += 1;
            }
            (reads, unanswered)
        });
    }
    for rev in 1..=CHANGES {
        let id = IDS[(rev * rev % 7) as usize % IDS.len()];
        control.faults(|faults| {
            faults.view_lag = (rev % 5) as usize;
            faults.slow_reads = Duration::from_micros(rev % 3 * 500);
        });
        let committed = match rev % 4 {
            0 => control.delete(id),
            _ => control.put(id, &format!("https://example.com/{rev}")),
        };
        assert_eq!(committed, rev);
        if rev % 3 == 0 {
            control.acked(rev).await;
        }
        if rev % 50 == 0 {
            // A connection that breaks, now and then with a log that was cut.
            if rev % 100 == 0 {
                control.compact();
            }
            control.break_streams();
        }
    }
    let (mut reads, mut unanswered) = (0, 0);
    while let Some(counts) = readers.join_next().await {
        let counts = counts.unwrap();
        (reads, unanswered) = (reads + counts.0, unanswered + counts.1);
    }
    assert!(reads > 100, "the readers read: {reads}, without an answer {unanswered}");
    Arc::into_inner(edge).unwrap().stop().await;
}
