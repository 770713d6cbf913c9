//! What the platform withholds: a page in place of a redirect, from the acknowledgement on and over restarts.

use edge::EdgeConfig;
use shared::{redirect::RedirectKey, withheld::Withheld};

use crate::support::{
    Answer, Control, HOST, Running, account, edge, edge_with, eventually, on_disk, request,
};

const OWN: &str = "https://example.com/own";
const HTML: [(&str, &str); 1] = [("accept", "text/html,*/*;q=0.8")];

fn suspension() -> Withheld {
    Withheld::Account(account())
}

fn link(folded: &str) -> Withheld {
    Withheld::Link(RedirectKey::new(HOST, folded))
}

fn host(name: &str) -> Withheld {
    Withheld::Host(name.into())
}

/// The body of an answer.
fn text(answer: &Answer) -> String {
    String::from_utf8_lossy(&answer.body).into_owned()
}

fn with_contact(config: &mut EdgeConfig) {
    config.contact = "abuse@example.com".parse().ok();
}

/// Asserts that an answer is a page or a problem and leads nowhere.
fn assert_withheld(answer: &Answer, status: u16, code: u32) {
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(answer.header("location"), "", "{answer:?}");
    assert_eq!(answer.header("cache-control"), "no-store");
    if answer.header("content-type") == "application/json" && !answer.body.is_empty() {
        answer.problem(code);
    }
}

#[tokio::test]
async fn a_suspended_account_shows_a_page_until_it_is_resumed() {
    let (control, edge, _folder) = edge_with(with_contact).await;
    control.acked(control.put("ABC", OWN)).await;
    edge.assert_leads("abc", OWN).await;
    // One event, however many links there are; also of what was never asked for, and of ids that nothing has.
    control.acked(control.withhold(suspension(), true)).await;
    let reads = control.reads();
    for path in ["/ABC", "/ABC.png", "/NEVER", "/ABC?format=json"] {
        assert_withheld(&edge.get(path, &[]).await, 403, 40303);
        assert_withheld(&request(edge.plain, "HEAD", HOST, path, &[]).await, 403, 40303);
    }
    assert_withheld(&edge.get("/ABC", &[("accept", "application/json")]).await, 403, 40303);
    let page = edge.get("/ABC", &HTML).await;
    assert_withheld(&page, 403, 40303);
    let text = text(&page);
    assert!(
        text.contains("This code is out of service") && text.contains("mailto:abuse@example.com"),
        "{text}"
    );
    assert_eq!(control.reads(), reads, "nothing is read for it");
    assert_eq!(edge.get("/robots.txt", &[]).await.status, 200);
    control.acked(control.withhold(suspension(), false)).await;
    edge.assert_leads("ABC", OWN).await;
    // It ships what is left before it ends.
    edge.stop().await;
    assert_eq!(control.scans().len(), 2, "a page is no scan");
}

#[tokio::test]
async fn a_link_that_was_taken_down_stays_so_whatever_its_owner_does() {
    let (control, edge, _folder) = edge().await;
    control.put("ABC", OWN);
    control.acked(control.put("OTHER", OWN)).await;
    control.acked(control.withhold(link("ABC"), true)).await;
    assert_withheld(&edge.get("/abc", &[]).await, 451, 45101);
    let page = edge.get("/abc", &HTML).await;
    assert!(page.status == 451 && text(&page).contains("This code was taken down"));
    control.acked(control.put("ABC", "https://example.com/again")).await;
    assert_withheld(&edge.get("/ABC", &[]).await, 451, 45101);
    edge.assert_leads("OTHER", OWN).await;
    control.acked(control.withhold(link("ABC"), false)).await;
    edge.assert_leads("ABC", "https://example.com/again").await;
    edge.stop().await;
}

#[tokio::test]
async fn nobody_is_led_to_a_host_that_was_taken_down() {
    for is_replica in [false, true] {
        let (control, edge, _folder) = edge_with(|config| config.is_replica = is_replica).await;
        control.put("GOOD", OWN);
        control.put("EVIL", "https://evil.example/a");
        control.put("BELOW", "https://www.EVIL.example:8443/{shortId}");
        for (short_id, target) in [
            ("PLAIN", "http://192.0.2.1/"),
            ("NUMBER", "http://3221225985/"),
            ("MAPPED", "http://[::ffff:192.0.2.1]/"),
            ("NAT64", "http://[64:ff9b::c000:201]:8080/"),
        ] {
            control.put(short_id, target);
        }
        control.acked(control.put("BESIDE", "https://notevil.example/")).await;
        edge.assert_leads("EVIL", "https://evil.example/a").await;
        control.withhold(host("192.0.2.1"), true);
        control.acked(control.withhold(host("evil.example"), true)).await;
        for path in ["/EVIL", "/BELOW", "/PLAIN", "/NUMBER", "/MAPPED", "/NAT64"] {
            assert_withheld(&edge.get(path, &[]).await, 451, 45101);
            assert_withheld(&edge.get(path, &[("accept", "application/json")]).await, 451, 45101);
        }
        edge.assert_leads("GOOD", OWN).await;
        edge.assert_leads("BESIDE", "https://notevil.example/").await;
        // What counts is where a scan is led in the end.
        control.acked(control.put_rules(&[("shortId=GOOD", Some("https://evil.example/rule"))])).await;
        assert_withheld(&edge.get("/GOOD", &[]).await, 451, 45101);
        control.acked(control.put_rules(&[("shortId=EVIL", Some("https://example.com/recall"))])).await;
        edge.assert_leads("EVIL", "https://example.com/recall").await;
        edge.assert_leads("GOOD", OWN).await;
        control.acked(control.withhold(host("evil.example"), false)).await;
        assert_eq!(edge.get("/BELOW", &[]).await.status, 307);
        edge.stop().await;
    }
}

#[tokio::test]
async fn a_restart_without_control_still_withholds() {
    let (control, folder) = (Control::new(), tempfile::tempdir().unwrap());
    let edge = Running::start(&control, folder.path(), None, on_disk).await;
    for short_id in ["ABC", "DEF"] {
        control.acked(control.put(short_id, OWN)).await;
        edge.assert_leads(short_id, OWN).await;
    }
    control.acked(control.withhold(link("ABC"), true)).await;
    edge.stop().await;
    control.faults(|faults| faults.is_down = true);
    let edge = Running::start_cold(&control, folder.path(), None, on_disk);
    assert_eq!(edge.handle.status().boot, Some("disk"));
    assert_withheld(&edge.get("/ABC", &[]).await, 451, 45101);
    edge.assert_leads("DEF", OWN).await;
    edge.stop().await;
}

#[tokio::test]
async fn an_edge_that_was_away_learns_it_when_it_returns() {
    for compacts in [false, true] {
        let (control, folder) = (Control::new(), tempfile::tempdir().unwrap());
        let edge = Running::start(&control, folder.path(), None, on_disk).await;
        control.acked(control.put("ABC", OWN)).await;
        edge.assert_leads("ABC", OWN).await;
        control.faults(|faults| faults.is_down = true);
        eventually("the edge notices", || edge.handle.status().state == "STALE").await;
        control.withhold(suspension(), true);
        let rev = control.withhold(link("ABC"), true);
        if compacts {
            control.compact();
        }
        edge.assert_leads("ABC", OWN).await;
        control.faults(|faults| faults.is_down = false);
        control.acked(rev).await;
        assert_withheld(&edge.get("/ABC", &[]).await, 403, 40303);
        // Released while it does not run.
        edge.stop().await;
        control.withhold(suspension(), false);
        let rev = control.withhold(link("ABC"), false);
        if compacts {
            control.compact();
        }
        let edge = Running::start(&control, folder.path(), None, on_disk).await;
        control.acked(rev).await;
        edge.assert_leads("ABC", OWN).await;
        edge.stop().await;
    }
}

#[tokio::test]
async fn an_older_control_takes_nothing_back() {
    let (control, edge, _folder) = edge().await;
    control.acked(control.put("ABC", OWN)).await;
    control.acked(control.withhold(suspension(), true)).await;
    control.faults(|faults| faults.is_older = true);
    control.break_streams();
    eventually("the edge reconnects", || control.hellos().len() >= 2).await;
    control.acked(control.put("DEF", OWN)).await;
    assert_withheld(&edge.get("/ABC", &[]).await, 403, 40303);
    edge.stop().await;
}

#[tokio::test]
async fn security_txt_names_the_contact() {
    let (_control, edge, _folder) = edge_with(with_contact).await;
    let answer = edge.get("/.well-known/security.txt", &[]).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, "text/plain; charset=utf-8"));
    let shown = text(&answer);
    assert!(shown.starts_with("Contact: mailto:abuse@example.com\nExpires: 20"), "{shown}");
    let page = edge.get("/NOTHING", &HTML).await;
    assert!(page.status == 404 && text(&page).contains("mailto:abuse@example.com"), "on every page");
    edge.stop().await;
    let (_control, edge, _folder) = crate::support::edge().await;
    edge.get("/.well-known/security.txt", &[]).await.problem(40402);
    edge.stop().await;
}
