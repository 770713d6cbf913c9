//! Links that end after a number of scans: exact on one edge, and on several late by what they could not know.

use edge::EdgeConfig;
use shared::{
    availability::Availability,
    redirect::{Redirect, RedirectKey},
    wire::stream::Rev,
};
use tokio::task::JoinSet;

use crate::support::{Control, HOST, Running, edge_with, eventually, full, on_disk, redirect, request};

const OWN: &str = "https://example.com/own";
const PERSON: [(&str, &str); 1] = [(
    "user-agent",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.5 \
     Mobile/15E148 Safari/604.1",
)];

fn limited(most: u32) -> Redirect {
    let availability = Availability { max_scans: Some(most), ..Availability::default() };
    Redirect { availability: Some(Box::new(availability)), ..redirect("ABC", OWN) }
}

/// The link as control has it.
fn link(control: &Control) -> Redirect {
    let (_, records, ..) = control.everything(control.head());
    Redirect::clone(&records[&RedirectKey::new(HOST, "ABC")].1)
}

fn counted(control: &Control) -> u64 {
    link(control).availability.unwrap().counted()
}

/// Changes the limit and nothing else, as a `PUT` does.
fn change(control: &Control, most: Option<u32>) -> Rev {
    let mut link = link(control);
    link.availability.as_mut().unwrap().max_scans = most;
    control.put_record(link)
}

/// How many of `asked` people who scan are led to the target.
async fn led(edge: &Running, asked: usize) -> usize {
    let mut led = 0;
    for _ in 0..asked {
        let answer = edge.get("/ABC", &PERSON).await;
        assert!(answer.status == 307 || answer.status == 410, "{answer:?}");
        assert_eq!(answer.header("cache-control"), "no-store");
        led += usize::from(answer.header("location") == OWN);
    }
    led
}

/// Method, path and headers.
type Request<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

#[tokio::test]
async fn one_edge_is_exact_and_counts_people_who_are_redirected() {
    for adapt in [on_disk as fn(&mut EdgeConfig), full] {
        let (control, edge, _folder) = edge_with(adapt).await;
        control.acked(control.put_record(limited(3))).await;
        let others: [Request<'_>; 5] = [
            ("HEAD", "/ABC", &PERSON),
            ("GET", "/ABC", &[]),
            ("GET", "/ABC", &[("user-agent", "curl/8.5.0")]),
            ("GET", "/ABC", &[("accept", "application/json"), PERSON[0]]),
            ("GET", "/ABC.svg", &PERSON),
        ];
        for (method, path, headers) in others {
            let answer = request(edge.plain, method, HOST, path, headers).await;
            assert!(answer.status == 307 || answer.status == 200, "{method} {path}: {answer:?}");
        }
        assert_eq!(led(&edge, 5).await, 3);
        edge.get("/ABC", &PERSON).await.problem(41001);
        for (method, path, headers) in others {
            let answer = request(edge.plain, method, HOST, path, headers).await;
            let is_shown = path == "/ABC.svg" || headers.len() > 1;
            assert_eq!(answer.status, if is_shown { 200 } else { 410 }, "{method} {path}: {answer:?}");
        }
        let json = edge.get("/ABC", &[("accept", "application/json")]).await.json();
        assert_eq!((json.get("defaultRedirectUrl"), json["maxScans"].as_u64()), (None, Some(3)));
        eventually("control has the count", || counted(&control) == 3).await;

        // Higher: it goes on. Without: it is open, and nothing is counted.
        control.acked(change(&control, Some(5))).await;
        assert_eq!(led(&edge, 4).await, 2);
        eventually("control has the count", || counted(&control) == 5).await;
        control.acked(change(&control, None)).await;
        assert_eq!(led(&edge, 4).await, 4);
        control.acked(change(&control, Some(6))).await;
        assert_eq!(led(&edge, 4).await, 1);
        edge.stop().await;
        assert_eq!(counted(&control), 6);
    }
}

#[tokio::test]
async fn people_who_come_at_once_get_no_more_than_there_are() {
    let (control, edge, _folder) = edge_with(|_| {}).await;
    control.acked(control.put_record(limited(7))).await;
    let mut asking = JoinSet::new();
    for _ in 0..30 {
        let at = edge.plain;
        asking.spawn(async move { request(at, "GET", HOST, "/ABC", &PERSON).await.status });
    }
    let answers = asking.join_all().await;
    assert_eq!(answers.iter().filter(|status| **status == 307).count(), 7, "{answers:?}");
    edge.stop().await;
}

#[tokio::test]
async fn three_edges_that_are_cut_off_give_what_they_could_not_know_and_agree_again() {
    let control = Control::new();
    let folders: Vec<_> = (0..3).map(|_| tempfile::tempdir().unwrap()).collect();
    let adapt = |n: usize| {
        move |config: &mut EdgeConfig| {
            config.edge_id = format!("edge-{n}").into();
            on_disk(config);
        }
    };
    let mut edges = Vec::new();
    for (n, folder) in (1..).zip(&folders) {
        edges.push(Running::start(&control, folder.path(), None, adapt(n)).await);
    }
    let until_counted = async |edges: &[Running], total: u64| {
        eventually("all edges know all counts", || {
            counted(&control) == total
                && edges.iter().all(|edge| edge.handle.status().applied == control.head())
        })
        .await;
    };
    control.put_record(limited(10));
    until_counted(&edges, 0).await;
    for edge in &edges {
        assert_eq!(led(edge, 2).await, 2);
    }
    until_counted(&edges, 6).await;
    // Four are left, as far as each of them knows.
    control.faults(|faults| faults.is_down = true);
    for edge in &edges {
        assert_eq!(led(edge, 5).await, 4);
    }
    // One starts again meanwhile: its file has what control never heard.
    edges.remove(0).stop().await;
    let again = Running::start_cold(&control, folders[0].path(), None, adapt(1));
    assert_eq!((again.handle.status().boot, led(&again, 2).await), (Some("disk"), 0));
    edges.push(again);
    control.faults(|faults| faults.is_down = false);
    until_counted(&edges, 18).await;
    // One more, whichever edge gives it.
    change(&control, Some(19));
    until_counted(&edges, 18).await;
    assert_eq!(led(&edges[0], 2).await, 1);
    until_counted(&edges, 19).await;
    assert_eq!((led(&edges[1], 1).await, led(&edges[2], 1).await), (0, 0));
    for edge in edges {
        edge.stop().await;
    }
}
