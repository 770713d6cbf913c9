//! Links with a time window, paused links, and their ended page: by the clock of the edge alone.

use std::collections::BTreeMap;

use edge::EdgeConfig;
use shared::{availability::Availability, redirect::Redirect, time::UnixMillis, withheld::Withheld};

use crate::support::{
    Answer, Control, HOST, Running, edge, edge_with, eventually, full, on_disk, redirect, request,
};

const OWN: &str = "https://example.com/own";
const FROM: UnixMillis = UnixMillis(1_790_000_100_000);
const UNTIL: UnixMillis = UnixMillis(1_790_000_200_000);
const HTML: [(&str, &str); 1] = [("accept", "text/html,*/*;q=0.8")];
const JSON: [(&str, &str); 1] = [("accept", "application/json")];

fn with(short_id: &str, availability: Availability) -> Redirect {
    Redirect { availability: Some(Box::new(availability)), ..redirect(short_id, OWN) }
}

fn window() -> Availability {
    Availability { valid_from: Some(FROM), valid_until: Some(UNTIL), ..Availability::default() }
}

fn paused() -> Availability {
    Availability { is_paused: true, ..Availability::default() }
}

/// Asserts that an answer to GET leads nowhere, is kept by nobody, and has this code.
fn assert_closed(answer: &Answer, status: u16, code: u32) {
    assert_nowhere(answer, status);
    answer.problem(code);
}

/// The same without a body, as HEAD has it.
fn assert_nowhere(answer: &Answer, status: u16) {
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!((answer.header("location"), answer.header("cache-control")), ("", "no-store"));
}

#[tokio::test]
async fn a_window_opens_and_ends_at_its_millisecond_without_control() {
    for adapt in [on_disk as fn(&mut EdgeConfig), full] {
        let (control, edge, _folder) = edge_with(adapt).await;
        control.acked(control.put_record(with("ABC", window()))).await;
        assert_closed(&edge.get("/abc", &[]).await, 404, 40404);
        // From here on the clock alone says what the link is.
        control.faults(|faults| faults.is_down = true);
        eventually("the edge notices", || edge.handle.status().state == "STALE").await;
        for (at, open, code) in [
            (FROM.0 - 1, false, 40404),
            (FROM.0, true, 0),
            (UNTIL.0 - 1, true, 0),
            (UNTIL.0, false, 41001),
            // It jumps.
            (FROM.0 + 1, true, 0),
            (0, false, 40404),
            (i64::MAX / 2, false, 41001),
        ] {
            edge.clock.0.set(UnixMillis(at));
            for method in ["GET", "HEAD"] {
                let answer = request(edge.plain, method, HOST, "/ABC", &[]).await;
                if open {
                    let shown = (answer.status, answer.header("location"), answer.header("cache-control"));
                    assert_eq!(shown, (307, OWN, "no-store"), "{method} at {at}");
                } else if method == "GET" {
                    assert_closed(&answer, (code / 100) as u16, code);
                } else {
                    assert_nowhere(&answer, (code / 100) as u16);
                    assert!(answer.body.is_empty(), "{answer:?}");
                }
            }
            // A press prints before the start, and a museum shows codes after the end.
            assert_eq!(edge.get("/ABC.png", &[]).await.status, 200, "at {at}");
            let record = edge.get("/ABC", &JSON).await;
            let json = record.json();
            assert_eq!((record.status, record.header("cache-control")), (200, "no-store"));
            let shown = (&json["validFrom"], &json["validUntil"], &json["status"]);
            assert_eq!(shown, (&FROM.0.into(), &UNTIL.0.into(), &"active".into()));
            let target = open.then_some(OWN);
            assert_eq!(json["defaultRedirectUrl"].as_str(), target, "at {at}");
        }
        control.faults(|faults| faults.is_down = false);
        edge.stop().await;
        // Each GET is a scan, whatever it got; the first was before the loop.
        assert_eq!(control.scans().len(), 8);
    }
}

#[tokio::test]
async fn a_pause_is_pushed_and_taken_back() {
    for adapt in [on_disk as fn(&mut EdgeConfig), full] {
        let (control, edge, _folder) = edge_with(adapt).await;
        control.acked(control.put("ABC", OWN)).await;
        edge.assert_leads("ABC", OWN).await;
        control.acked(control.put_record(with("ABC", paused()))).await;
        assert_closed(&edge.get("/ABC", &[]).await, 404, 40405);
        assert_eq!(edge.get("/ABC", &JSON).await.json()["status"], "paused");
        let page = edge.get("/ABC", &HTML).await;
        let text = String::from_utf8_lossy(&page.body).into_owned();
        assert!(page.status == 404 && text.contains("This code is paused"), "{text}");
        control.acked(control.put("ABC", OWN)).await;
        edge.assert_leads("ABC", OWN).await;
        assert_eq!(edge.get("/ABC", &JSON).await.json()["status"], "active");
        edge.stop().await;
        assert_eq!(control.scans().len(), 4);
    }
}

#[tokio::test]
async fn while_it_is_closed_it_leads_to_its_ended_page() {
    let (control, edge, _folder) = edge().await;
    let ended = |url: &str| Availability { ended_url: Some(url.into()), ..window() };
    control.put_record(with("ABC", ended("https://example.com/over?id={shortId}")));
    let forward = Redirect { forward_query: true, ..with("DEF", ended("https://example.com/over")) };
    control.put_record(forward);
    control.acked(control.put_record(with("EVIL", ended("https://evil.example/")))).await;
    control.acked(control.withhold(Withheld::Host("evil.example".into()), true)).await;
    for at in [FROM.0 - 1, UNTIL.0] {
        edge.clock.0.set(UnixMillis(at));
        let answer = edge.get("/ABC?a=1", &[]).await;
        let shown = (answer.status, answer.header("location"), answer.header("cache-control"));
        assert_eq!(shown, (307, "https://example.com/over?id=ABC", "no-store"));
        edge.assert_leads("DEF?a=1&access_token=KEY", "https://example.com/over?a=1").await;
        edge.get("/EVIL", &[]).await.problem(45101);
        edge.get("/EVIL", &JSON).await.problem(45101);
    }
    edge.clock.0.set(FROM);
    edge.assert_leads("ABC", OWN).await;
    edge.assert_leads("DEF?a=1", "https://example.com/own?a=1").await;
    edge.assert_leads("EVIL", OWN).await;
    // As JSON, too: it leads to its target now, and the withheld page is not shown.
    let json = edge.get("/EVIL", &JSON).await.json();
    let shown = (json["defaultRedirectUrl"].as_str(), json.get("endedUrl"), &json["validUntil"]);
    assert_eq!(shown, (Some(OWN), None, &UNTIL.0.into()));
    edge.stop().await;
    let scans = control.scans();
    assert_eq!(scans.len(), 7, "nobody was led to the withheld host: {scans:?}");
    assert!(scans.iter().all(|(_, _, scan)| scan.rule.is_none()));
}

#[tokio::test]
async fn a_withheld_target_is_no_reason_while_the_ended_page_is_fine() {
    let (control, edge, _folder) = edge().await;
    let over = Availability { ended_url: Some("https://example.com/over".into()), ..window() };
    let link = Redirect { target: "https://evil.example/".into(), ..with("ABC", over) };
    control.acked(control.put_record(link)).await;
    control.acked(control.withhold(Withheld::Host("evil.example".into()), true)).await;
    edge.assert_leads("ABC", "https://example.com/over").await;
    let json = edge.get("/ABC", &JSON).await.json();
    let shown = (json.get("defaultRedirectUrl"), json["endedUrl"].as_str());
    assert_eq!(shown, (None, Some("https://example.com/over")));
    edge.clock.0.set(FROM);
    edge.get("/ABC", &[]).await.problem(45101);
    edge.get("/ABC", &JSON).await.problem(45101);
    edge.stop().await;
    assert_eq!(control.scans().len(), 1);
}

#[tokio::test]
async fn an_ended_page_that_cannot_be_served_is_refused_with_its_change() {
    let (control, edge, _folder) = edge().await;
    control.acked(control.put("ABC", OWN)).await;
    edge.assert_leads("ABC", OWN).await;
    let poison = Availability { ended_url: Some("javascript:alert(1)".into()), ..paused() };
    control.acked(control.put_record(with("ABC", poison))).await;
    edge.assert_leads("ABC", OWN).await;
    edge.stop().await;
}

#[tokio::test]
async fn rules_decide_within_the_window_alone() {
    let (control, edge, _folder) = edge().await;
    control.put_record(with("ABC", window()));
    control.acked(control.put_rules(&[("hour>=0", Some("https://example.com/rule"))])).await;
    assert_closed(&edge.get("/ABC", &[]).await, 404, 40404);
    edge.clock.0.set(FROM);
    edge.assert_leads("ABC", "https://example.com/rule").await;
    edge.clock.0.set(UNTIL);
    assert_closed(&edge.get("/ABC", &[]).await, 410, 41001);
    edge.stop().await;
    // Each connection may be another worker's, whose scans come together.
    let scans: BTreeMap<_, _> =
        control.scans().into_iter().map(|(_, _, scan)| (scan.at, scan.rule)).collect();
    let fired: Vec<_> = scans.values().map(Option::is_some).collect();
    assert_eq!(fired, [false, true, false], "{scans:?}");
}

#[tokio::test]
async fn a_start_without_control_keeps_windows() {
    for adapt in [on_disk as fn(&mut EdgeConfig), full] {
        let (control, folder) = (Control::new(), tempfile::tempdir().unwrap());
        control.put_record(with("ABC", window()));
        control.put("DEF", OWN);
        control.put_record(with("GHI", paused()));
        let edge = Running::start(&control, folder.path(), None, adapt).await;
        for short_id in ["ABC", "DEF", "GHI"] {
            // Into the cache, where not every link is held.
            edge.get(&format!("/{short_id}"), &[]).await;
        }
        edge.stop().await;
        control.faults(|faults| faults.is_down = true);
        let edge = Running::start_cold(&control, folder.path(), None, adapt);
        assert_eq!(edge.handle.status().boot, Some("disk"));
        edge.assert_leads("DEF", OWN).await;
        assert_closed(&edge.get("/GHI", &[]).await, 404, 40405);
        assert_closed(&edge.get("/ABC", &[]).await, 404, 40404);
        edge.clock.0.set(FROM);
        edge.assert_leads("ABC", OWN).await;
        edge.clock.0.set(UNTIL);
        let page = edge.get("/ABC", &HTML).await;
        let text = String::from_utf8_lossy(&page.body).into_owned();
        assert!(page.status == 410 && text.contains("This code is no longer active"), "{text}");
        edge.stop().await;
    }
}
