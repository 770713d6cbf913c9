//! Changes: visible after the acknowledgement, whatever happens to the stream.

use std::time::Duration;

use shared::{
    short_url::{Scheme, ShortDomain},
    time::UnixMillis,
    wire::stream::Change,
};

use crate::support::{Control, Running, edge, eventually, redirect, request};

#[tokio::test]
async fn a_change_is_live_once_it_is_acknowledged() {
    let (control, edge, _folder) = edge().await;
    for round in 0..200 {
        let target = format!("https://example.com/{round}");
        control.acked(control.put("ABC", &target)).await;
        edge.assert_leads("abc", &target).await;
    }
    control.acked(control.delete("ABC")).await;
    edge.get("/ABC", &[]).await.problem(40403);
    edge.stop().await;
}

#[tokio::test]
async fn an_unknown_id_is_cached_until_it_is_created() {
    let (control, edge, _folder) = edge().await;
    for _ in 0..20 {
        assert_eq!(edge.get("/NEW", &[]).await.status, 404);
    }
    assert_eq!(control.reads(), 1, "one read for all of them");
    control.acked(control.put("NEW", "https://example.com/new")).await;
    edge.assert_leads("NEW", "https://example.com/new").await;
    edge.stop().await;
}

#[tokio::test]
async fn requests_that_miss_together_read_once() {
    let (control, edge, _folder) = edge().await;
    control.acked(control.put("ABC", "https://example.com/")).await;
    control.faults(|faults| faults.slow_reads = Duration::from_millis(200));
    let asks = (0..20).map(|_| edge.get("/ABC", &[]));
    let answers = futures_util::future::join_all(asks).await;
    assert!(answers.iter().all(|answer| answer.status == 307));
    assert_eq!(control.reads(), 1);
    edge.stop().await;
}

#[tokio::test]
async fn a_lagging_view_is_never_served() {
    let (control, edge, _folder) = edge().await;
    control.put("ABC", "https://example.com/old");
    control.put("DEL", "https://example.com/deleted");
    control.delete("DEL");
    let rev = control.put("ABC", "https://example.com/new");
    control.acked(rev).await;
    control.faults(|faults| faults.view_lag = 2);
    edge.assert_leads("ABC", "https://example.com/new").await;
    assert_eq!(edge.get("/DEL", &[]).await.status, 404);
    edge.stop().await;
}

#[tokio::test]
async fn a_view_that_cannot_be_verified_is_503() {
    let control = Control::new();
    let folder = tempfile::tempdir().unwrap();
    for round in 0..10 {
        control.put("ABC", &format!("https://example.com/{round}"));
    }
    // The edge begins at revision 10 by a snapshot, so its tail does not reach back to 5.
    let edge = Running::start(&control, folder.path(), None, |_| {}).await;
    control.faults(|faults| faults.view_lag = 5);
    let answer = edge.get("/ABC", &[]).await;
    assert_eq!((answer.status, answer.header("retry-after")), (503, "1"));
    answer.problem(50301);
    control.faults(|faults| faults.view_lag = 0);
    edge.assert_leads("ABC", "https://example.com/9").await;
    edge.stop().await;
}

#[tokio::test]
async fn a_lost_message_causes_a_resync() {
    let (control, edge, _folder) = edge().await;
    control.acked(control.put("ABC", "https://example.com/1")).await;
    edge.assert_leads("ABC", "https://example.com/1").await;
    control.faults(|faults| faults.lost_events = 1);
    // The last message: only the heartbeat shows that it is missing.
    control.acked(control.put("ABC", "https://example.com/2")).await;
    edge.assert_leads("ABC", "https://example.com/2").await;
    assert_eq!(control.resyncs(), 1);
    edge.stop().await;
}

#[tokio::test]
async fn a_silent_stream_is_closed_and_resumed() {
    let (control, edge, _folder) = edge().await;
    control.acked(control.put("ABC", "https://example.com/1")).await;
    control.faults(|faults| faults.is_silent = true);
    eventually("the watchdog reconnects", || control.hellos().len() >= 2).await;
    control.faults(|faults| faults.is_silent = false);
    let again = control.hellos().remove(1);
    assert_eq!((again.epoch.as_deref(), again.applied), (Some("first"), 1));
    control.acked(control.put("ABC", "https://example.com/2")).await;
    edge.assert_leads("ABC", "https://example.com/2").await;
    edge.stop().await;
}

#[tokio::test]
async fn an_edge_keeps_serving_when_control_is_gone() {
    let (control, edge, _folder) = edge().await;
    control.acked(control.put("ABC", "https://example.com/1")).await;
    edge.assert_leads("ABC", "https://example.com/1").await;
    control.faults(|faults| faults.is_down = true);
    eventually("the edge notices", || edge.handle.status().state == "STALE").await;
    edge.assert_leads("ABC", "https://example.com/1").await;
    let ready = request(edge.admin, "GET", "admin", "/ready", &[]).await;
    assert_eq!((ready.status, &ready.json()["state"]), (200, &"STALE".into()));
    assert!(ready.json()["since"].is_i64());
    assert_eq!(edge.get("/OTHER", &[]).await.status, 503, "what is not held cannot be verified");
    let rev = control.put("ABC", "https://example.com/2");
    control.faults(|faults| faults.is_down = false);
    control.acked(rev).await;
    edge.assert_leads("ABC", "https://example.com/2").await;
    edge.stop().await;
}

#[tokio::test]
async fn a_compacted_log_or_another_epoch_leaves_no_old_entries() {
    let (control, edge, _folder) = edge().await;
    control.acked(control.put("ABC", "https://example.com/1")).await;
    edge.assert_leads("ABC", "https://example.com/1").await;
    control.faults(|faults| faults.is_down = true);
    eventually("the edge notices", || edge.handle.status().state == "STALE").await;
    let rev = control.put("ABC", "https://example.com/2");
    control.compact();
    control.faults(|faults| faults.is_down = false);
    control.acked(rev).await;
    edge.assert_leads("ABC", "https://example.com/2").await;

    control.new_epoch("second");
    eventually("the edge is in the new epoch", || {
        let status = edge.handle.status();
        status.epoch.as_deref() == Some("second") && status.state == "LIVE"
    })
    .await;
    edge.assert_leads("ABC", "https://example.com/2").await;
    control.acked(control.delete("ABC")).await;
    assert_eq!(edge.get("/ABC", &[]).await.status, 404);
    edge.stop().await;
}

#[tokio::test]
async fn an_invalid_change_is_rejected_alone() {
    let (control, edge, _folder) = edge().await;
    control.acked(control.put("ABC", "https://example.com/1")).await;
    edge.assert_leads("ABC", "https://example.com/1").await;
    let bad = control.put_record(redirect("ABC", "javascript:alert(1)"));
    control.acked(control.put("DEF", "https://example.com/def")).await;
    assert_eq!(control.rejected(), [bad]);
    edge.assert_leads("ABC", "https://example.com/1").await;
    edge.assert_leads("DEF", "https://example.com/def").await;
    edge.stop().await;
}

#[tokio::test]
async fn a_new_domain_is_served_after_its_event() {
    let (control, edge, _folder) = edge().await;
    let domain = ShortDomain::new(Scheme::Http, "dev.test:8081").unwrap();
    let ask = || request(edge.plain, "GET", "DEV.test:8081", "/ABC", &[]);
    ask().await.problem(42101);
    control.acked(control.commit([Change::Domain(domain)])).await;
    ask().await.problem(40403);
    edge.stop().await;
}

#[tokio::test]
async fn before_the_first_contact_misses_get_503() {
    let control = Control::new();
    control.put("ABC", "https://example.com/");
    control.faults(|faults| faults.is_down = true);
    let folder = tempfile::tempdir().unwrap();
    let edge = Running::start_cold(&control, folder.path(), None, |_| {});
    assert_eq!(edge.get("/ABC", &[]).await.status, 503);
    assert_eq!(request(edge.admin, "GET", "admin", "/ready", &[]).await.status, 503);
    assert_eq!(request(edge.admin, "GET", "admin", "/live", &[]).await.status, 200);
    control.faults(|faults| faults.is_down = false);
    eventually("the edge is ready", || edge.handle.is_ready()).await;
    edge.assert_leads("ABC", "https://example.com/").await;
    let metrics = request(edge.admin, "GET", "admin", "/metrics", &[]).await;
    let text = String::from_utf8(metrics.body.to_vec()).unwrap();
    for line in [
        "\nwaymark_edge_applied_rev 1\n",
        "# TYPE waymark_edge_responses_total counter\n",
        "waymark_edge_responses_total{status=\"307\"} 1",
        "\nprocess_open_fds ",
    ] {
        assert!(text.contains(line), "{line} in\n{text}");
    }
    edge.stop().await;
}

/// I10: nothing is ordered, kept or thrown away by the wall clock, wherever it jumps.
#[tokio::test]
async fn clock_jump() {
    let (control, edge, _folder) = edge().await;
    control.acked(control.put("HELD", "https://example.com/held")).await;
    edge.assert_leads("HELD", "https://example.com/held").await;
    assert_eq!(edge.get("/NONE", &[]).await.status, 404);
    const YEAR: i64 = 365 * 24 * 60 * 60 * 1_000;
    let start = 1_790_000_000_000;
    for (round, now) in
        [start + YEAR, start - 10 * YEAR, 0, start + 100 * YEAR, start].into_iter().enumerate()
    {
        edge.clock.0.set(UnixMillis(now));
        let reads = control.reads();
        edge.assert_leads("HELD", "https://example.com/held").await;
        assert_eq!(edge.get("/NONE", &[]).await.status, 404);
        assert_eq!(control.reads(), reads, "round {round}: what was held still is");
        let target = format!("https://example.com/{round}");
        control.acked(control.put("ABC", &target)).await;
        edge.assert_leads("ABC", &target).await;
        // A stream that was cut acknowledges changes while it still catches up.
        eventually("the edge is live", || edge.handle.status().state == "LIVE").await;
        control.break_streams();
        control.acked(control.put("ABC", "https://example.com/after-the-cut")).await;
        edge.assert_leads("ABC", "https://example.com/after-the-cut").await;
        control.acked(control.delete("ABC")).await;
        edge.get("/ABC", &[]).await.problem(40403);
    }
    edge.stop().await;
}
