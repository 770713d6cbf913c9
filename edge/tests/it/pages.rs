//! Pages where a code leads nowhere: in the language of the visitor, with what the account has chosen, on each path to an answer.

use std::sync::Arc;

use serde_json::{Value, json};
use shared::{
    availability::Availability,
    pages::Pages,
    redirect::RedirectKey,
    short_url::{Scheme, ShortDomain},
    standing::{Authenticity, Risk, Standing, Verdict},
    time::UnixMillis,
    wire::stream::Change,
    withheld::Withheld,
};

use crate::support::{
    Answer, Control, HOST, Running, WAYS, account, build, edge, edge_with, eventually, h2_prior_knowledge,
    on_disk, redirect, request,
};

const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'; frame-ancestors 'none'";
const OWN: &str = "https://example.com/own";

/// The test domain with pages.
fn domain(pages: Option<Value>) -> Change {
    let domain = ShortDomain::new(Scheme::Https, HOST).unwrap();
    let pages = pages.map(|pages| Arc::new(serde_json::from_value::<Pages>(pages).unwrap()));
    Change::Domain(ShortDomain { account: Some(account()), pages, ..domain })
}

fn pages(name: &str) -> Value {
    json!({
        "name": name,
        "link": {"url": "https://example.com/help", "label": "Help"},
        "texts": {"de": {"unknown": {"title": "Eigener Titel", "text": "Eigener <Text>"}}},
    })
}

/// A page in a language.
async fn page(edge: &Running, path: &str, language: &str) -> (Answer, String) {
    let headers = [("accept", "text/html,*/*;q=0.8"), ("accept-language", language)];
    let answer = edge.get(path, &headers).await;
    assert_eq!(answer.header("location"), "");
    assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
    assert_eq!(answer.header("content-security-policy"), POLICY);
    assert_eq!(answer.header("cache-control"), "no-store");
    assert_eq!(answer.header("vary"), "Accept, Accept-Language");
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    assert!(!text.contains("<script") && text.matches("<h1>").count() == 1, "{text}");
    (answer, text)
}

/// Links that lead nowhere for each reason of the account.
async fn closed_links(control: &Control) {
    let with = |short_id: &str, availability: Availability| {
        let availability = Some(Box::new(availability));
        control.put_record(shared::redirect::Redirect { availability, ..redirect(short_id, OWN) })
    };
    with("OVER", Availability { valid_until: Some(UnixMillis(1)), ..Availability::default() });
    with("SOON", Availability { valid_from: Some(UnixMillis(i64::MAX)), ..Availability::default() });
    let rev = with("PAUSED", Availability { is_paused: true, ..Availability::default() });
    control.acked(rev).await;
}

#[tokio::test]
async fn each_reason_has_its_page_in_the_language_of_the_visitor() {
    for adapt in WAYS {
        let (control, edge, _folder) = edge_with(adapt).await;
        closed_links(&control).await;
        for (path, status, english, german) in [
            ("/NONE", 404, "This code leads nowhere", "Dieser Code führt nirgendwohin"),
            ("/a/b", 404, "This code leads nowhere", "Dieser Code führt nirgendwohin"),
            ("/", 404, "Nothing is here", "Hier ist nichts"),
            ("/OVER", 410, "This code is no longer active", "Dieser Code ist nicht mehr aktiv"),
            ("/SOON", 404, "This code is not active yet", "Dieser Code ist noch nicht aktiv"),
            ("/PAUSED", 404, "This code is paused", "Dieser Code pausiert"),
        ] {
            for (language, tag, title) in
                [("fr;q=0.1,de-AT;q=0.9", "de", german), ("xx", "en", english), ("en,de", "en", english)]
            {
                let (answer, text) = page(&edge, path, language).await;
                assert_eq!(answer.status, status, "{path}");
                assert!(text.contains(&format!("<html lang=\"{tag}\">")), "{path} {language}: {text}");
                assert!(text.contains(&format!("<h1>{title}</h1>")), "{path} {language}: {text}");
            }
            let (_, text) = page(&edge, path, "ar").await;
            assert!(text.contains("<html lang=\"ar\" dir=\"rtl\">"), "{text}");
            // Programs get what they got before.
            for accept in ["*/*", "application/json"] {
                let headers = [("accept", accept), ("accept-language", "de")];
                let answer = edge.get(path, &headers).await;
                if path == "/NONE" {
                    answer.problem(40403);
                    assert_eq!(answer.header("vary"), "Accept");
                }
                assert_eq!(answer.header("content-security-policy"), "", "{path} {accept}");
            }
        }
        edge.stop().await;
    }
}

#[tokio::test]
async fn a_code_has_the_logo_of_the_pages_and_is_not_kept_for_long() {
    let (control, edge, _folder) = edge().await;
    control.put("ABC", OWN);
    let path = "/ABC.svg?logo=1&ecl=H&version=6&color=1a4d8f&shape=rounded";
    for logo in ["data:image/svg+xml;base64,PHN2Zy8+", "data:image/svg+xml;base64,PHN2ZyAvPg=="] {
        control.acked(control.commit([domain(Some(json!({"logo": logo})))])).await;
        let answer = edge.get(path, &[]).await;
        let text = String::from_utf8(answer.body.to_vec()).unwrap();
        assert!(answer.status == 200 && text.contains(&format!("href=\"{logo}\"")), "{text}");
        assert_eq!(answer.header("cache-control"), "public, max-age=300");
        let plain = edge.get("/ABC.svg", &[]).await;
        assert_eq!(plain.header("cache-control"), "public, max-age=31536000, immutable");
    }
    edge.stop().await;
}

#[tokio::test]
async fn a_change_of_pages_shows_with_its_acknowledgement() {
    for adapt in WAYS {
        let (control, edge, _folder) = edge_with(adapt).await;
        closed_links(&control).await;
        for name in ["Acme", "Acme & Söhne", "Acme"] {
            control.acked(control.commit([domain(Some(pages(name)))])).await;
            for path in ["/NONE", "/", "/a/b", "/OVER", "/SOON", "/PAUSED"] {
                let (_, text) = page(&edge, path, "de").await;
                let shown = name.replace('&', "&amp;");
                assert!(text.contains(&format!("<p class=\"n\">{shown}</p>")), "{path}: {text}");
                assert!(text.contains("href=\"https://example.com/help\">Help</a>"), "{path}: {text}");
                let has_own = text.contains("<h1>Eigener Titel</h1><p>Eigener &lt;Text&gt;</p>");
                assert_eq!(has_own, ["/NONE", "/a/b"].contains(&path), "{path}: {text}");
            }
            // HEAD has the same headers, and HTTP/2 the same page.
            let headers = [("accept", "text/html"), ("accept-language", "de")];
            let head = request(edge.plain, "HEAD", HOST, "/NONE", &headers).await;
            let (whole, _) = page(&edge, "/NONE", "de").await;
            assert!(head.body.is_empty());
            assert_eq!(head.header("content-length"), whole.body.len().to_string());
            let asked = build("GET", &format!("http://{HOST}/NONE"), &headers, "");
            let answers = h2_prior_knowledge(edge.plain, vec![asked]).await;
            assert_eq!(answers[0].body, whole.body);
        }
        control.acked(control.commit([domain(None)])).await;
        let (_, text) = page(&edge, "/NONE", "de").await;
        assert!(!text.contains("Acme") && text.contains("Dieser Code führt nirgendwohin"), "{text}");
        edge.stop().await;
    }
}

#[tokio::test]
async fn what_the_platform_withholds_shows_nothing_of_the_account() {
    let (control, edge, _folder) = edge_with(|config| {
        config.contact = "abuse@example.com".parse().ok();
    })
    .await;
    control.put("ABC", OWN);
    control.put("EVIL", "https://evil.example/");
    control.withhold(Withheld::Link(RedirectKey::new(HOST, "ABC")), true);
    control.withhold(Withheld::Host("evil.example".into()), true);
    control.acked(control.commit([domain(Some(pages("Acme")))])).await;
    for path in ["/ABC", "/EVIL"] {
        let (answer, text) = page(&edge, path, "de").await;
        assert_eq!(answer.status, 451);
        assert!(text.contains("Dieser Code wurde gesperrt") && text.contains("mailto:abuse@example.com"));
        assert!(!text.contains("Acme") && !text.contains("example.com/help"), "{text}");
    }
    // The host of the button, too.
    let (_, text) = page(&edge, "/NONE", "de").await;
    assert!(text.contains("Acme") && text.contains("example.com/help"), "{text}");
    control.acked(control.withhold(Withheld::Host("example.com".into()), true)).await;
    let (_, text) = page(&edge, "/NONE", "de").await;
    assert!(text.contains("Acme") && !text.contains("example.com/help"), "{text}");
    // The account, whatever is asked for.
    control.acked(control.withhold(Withheld::Account(account()), true)).await;
    for (path, status) in [("/ABC", 403), ("/NONE", 403), ("/", 404), ("/a/b", 404)] {
        let (answer, text) = page(&edge, path, "de").await;
        assert_eq!(answer.status, status, "{path}");
        assert!(!text.contains("Acme") && text.contains("Missbrauch melden"), "{path}: {text}");
    }
    edge.stop().await;
}

/// Neither reader leads anybody on to an item that may be a copy, if the account wants so, unless a rule does.
#[tokio::test]
async fn who_scans_a_copy_is_led_on_unless_the_account_shows_a_page() {
    for adapt in WAYS {
        let (control, edge, _folder) = edge_with(adapt).await;
        let with = |short_id: &str, counterfeit: Option<Risk>| {
            let verdict = counterfeit.map(|counterfeit| Verdict {
                authentication: Authenticity::Suspicious,
                counterfeit,
                gray_market: Risk::None,
            });
            let standing = Standing { verdict, ..Standing::default() };
            control.put_record(shared::redirect::Redirect { standing, ..redirect(short_id, OWN) })
        };
        with("GOOD", Some(Risk::None));
        with("NEW", None);
        with("SUSPECTED", Some(Risk::Suspected));
        control.acked(with("CONFIRMED", Some(Risk::Confirmed))).await;
        let all = ["GOOD", "NEW", "SUSPECTED", "CONFIRMED"];
        for short_id in all {
            edge.assert_leads(short_id, OWN).await;
        }
        let mut recorded = all.len();
        for (from, stopped) in [("suspected", &all[2..]), ("confirmed", &all[3..])] {
            control.acked(control.commit([domain(Some(json!({"name": "Acme", "copies": from})))])).await;
            for short_id in all {
                recorded += 1;
                if !stopped.contains(&short_id) {
                    edge.assert_leads(short_id, OWN).await;
                    continue;
                }
                let answer = edge.get(&format!("/{short_id}"), &[]).await;
                assert_eq!((answer.status, answer.header("location")), (403, ""), "{from} {short_id}");
                answer.problem(40305);
                recorded += 1;
                let (answer, text) = page(&edge, &format!("/{short_id}"), "de").await;
                assert_eq!(answer.status, 403);
                assert!(text.contains("Acme") && text.contains("eine Kopie sein"), "{text}");
                // What programs read of it, and its image, are as before.
                let json = edge.get(&format!("/{short_id}"), &[("accept", "application/json")]).await.json();
                assert_eq!(json["defaultRedirectUrl"], OWN);
            }
        }
        // A rule goes first.
        control.acked(control.put_rules(&[("shortId=CONFIRMED", Some("https://example.com/copy"))])).await;
        edge.assert_leads("CONFIRMED", "https://example.com/copy").await;
        edge.stop().await;
        assert_eq!(control.scans().len(), recorded + 1, "a page is a scan, too");
    }
}

/// A page with a large logo is not answered by the fast path, which keeps the memory of its answers.
#[tokio::test]
async fn a_large_logo_comes_whole() {
    let logo = format!("data:image/png;base64,{}", "A".repeat(87_000));
    for adapt in WAYS {
        let (control, edge, _folder) = edge_with(adapt).await;
        control.acked(control.commit([domain(Some(json!({"logo": logo})))])).await;
        for _ in 0..2 {
            let (answer, text) = page(&edge, "/NONE", "de").await;
            assert_eq!(answer.status, 404);
            assert!(text.contains(&format!("<img src=\"{logo}\" alt=\"\">")));
            assert!(text.len() - logo.len() <= 8 << 10, "{}", text.len());
        }
        edge.stop().await;
    }
}

#[tokio::test]
async fn pages_are_there_after_a_start_without_control() {
    let (control, folder) = (Control::new(), tempfile::tempdir().unwrap());
    control.put("ABC", OWN);
    let edge = Running::start(&control, folder.path(), None, on_disk).await;
    control.acked(control.commit([domain(Some(pages("Acme")))])).await;
    edge.assert_leads("ABC", OWN).await;
    edge.stop().await;
    control.faults(|faults| faults.is_down = true);
    let edge = Running::start_cold(&control, folder.path(), None, on_disk);
    eventually("the edge serves what is on disk", || edge.handle.status().boot == Some("disk")).await;
    let (_, text) = page(&edge, "/", "de").await;
    assert!(text.contains("Acme") && text.contains("Hier ist nichts"), "{text}");
    // Control is back: what is on the disk is not sent again.
    control.faults(|faults| faults.is_down = false);
    eventually("the edge is live", || edge.handle.status().boot.is_none()).await;
    assert!(!control.hellos().pop().unwrap().contents.is_empty());
    let (_, text) = page(&edge, "/", "de").await;
    assert!(text.contains("Acme"), "{text}");
    edge.stop().await;
}

/// A welcome leaves out pages that the edge holds, unless they changed meanwhile; an older control sends all of them.
#[tokio::test]
async fn pages_stay_when_the_stream_comes_back() {
    let (control, edge, _folder) = edge().await;
    control.acked(control.commit([domain(Some(pages("Acme")))])).await;
    for (name, is_older) in [("Acme", false), ("Other", false), ("Third", true), ("Acme", false)] {
        control.faults(|faults| (faults.is_down, faults.is_older) = (true, is_older));
        control.break_streams();
        let before = control.hellos().len();
        if before > 1 {
            control.commit([domain(Some(pages(name)))]);
        }
        control.faults(|faults| faults.is_down = false);
        eventually("the edge reconnects", || control.hellos().len() > before).await;
        control.acked(control.put("ABC", OWN)).await;
        let hello = control.hellos().pop().unwrap();
        assert_eq!(hello.contents.iter().filter(|digest| **digest != 0).count(), 1, "{hello:?}");
        let (_, text) = page(&edge, "/NONE", "de").await;
        assert!(text.contains(&format!("<p class=\"n\">{name}</p>")), "{name}: {text}");
    }
    edge.stop().await;
}

/// Other errors are none of a code: they are in English, and depend on no language.
#[tokio::test]
async fn other_errors_have_no_pages_of_the_account() {
    let (control, edge, _folder) = edge().await;
    control.acked(control.commit([domain(Some(pages("Acme")))])).await;
    let headers = [("accept", "text/html"), ("accept-language", "de")];
    for (method, host, status) in [("POST", HOST, 405), ("GET", "other.example", 421)] {
        let answer = request(edge.plain, method, host, "/NONE", &headers).await;
        let text = String::from_utf8_lossy(&answer.body).into_owned();
        assert_eq!((answer.status, answer.header("vary")), (status, "Accept"), "{text}");
        assert!(text.contains("<html lang=\"en\">") && !text.contains("Acme"), "{text}");
    }
    edge.stop().await;
}
