//! Status codes of links, and how long redirects of a domain may be kept: on both paths, from the cache and from the replica.

use shared::{
    availability::Availability,
    redirect::Redirect,
    redirect_status::RedirectStatus,
    short_url::{Scheme, ShortDomain},
    time::UnixMillis,
    wire::stream::Change,
};

use crate::support::{
    Answer, Control, HOST, Running, WAYS, account, build, edge, edge_with, h2_prior_knowledge, redirect,
    request,
};

const OWN: &str = "https://example.com/own";
const OVER: &str = "https://example.com/over";
/// What the clock of an edge shows at first.
const NOW: i64 = 1_790_000_000_000;

fn shown(answer: &Answer) -> (u16, &str, &str, &str) {
    (answer.status, answer.header("location"), answer.header("cache-control"), answer.header("vary"))
}

fn domain(redirect_max_age: Option<u32>) -> Change {
    let domain = ShortDomain::new(Scheme::Https, HOST).unwrap();
    Change::Domain(ShortDomain { account: Some(account()), redirect_max_age, ..domain })
}

/// Puts a link for each status code, named by it, and returns them.
async fn one_of_each(control: &Control) -> Vec<(String, u16)> {
    let mut all = Vec::new();
    let mut rev = 0;
    for status_code in RedirectStatus::ALL {
        let code = status_code.as_u16();
        rev = control.put_record(Redirect { status_code, ..redirect(&format!("L{code}"), OWN) });
        all.push((format!("/L{code}"), code));
    }
    control.acked(rev).await;
    all
}

/// Asserts what every kind of request for a link gets; returns how many scans that makes.
async fn assert_answers(edge: &Running, path: &str, (status, cache_control): (u16, &str)) -> usize {
    let expected = (status, OWN, cache_control, "Accept");
    // The first may find nothing in memory.
    for _ in 0..2 {
        assert_eq!(shown(&edge.get(path, &[]).await), expected, "{path}");
    }
    // hyper answers a request with a query.
    assert_eq!(shown(&edge.get(&format!("{path}?a=1"), &[]).await), expected, "{path} with a query");
    let head = request(edge.plain, "HEAD", HOST, path, &[]).await;
    assert_eq!(shown(&head), expected, "HEAD {path}");
    assert!(head.body.is_empty());
    let requests = ["GET", "HEAD"].map(|method| build(method, &format!("http://{HOST}{path}"), &[], ""));
    for answer in h2_prior_knowledge(edge.plain, requests.into()).await {
        assert_eq!(shown(&answer), expected, "{path} by HTTP/2");
    }
    4
}

#[tokio::test]
async fn each_status_code_is_answered_and_its_scans_are_recorded() {
    for adapt in WAYS {
        let (control, edge, _folder) = edge_with(adapt).await;
        let mut scans = 0;
        for (path, code) in one_of_each(&control).await {
            scans += assert_answers(&edge, &path, (code, "no-store")).await;
            let json = edge.get(&path, &[("accept", "application/json")]).await.json();
            assert_eq!(json["statusCode"], code, "{json}");
        }
        // A change is one like any other.
        let moved = Redirect { status_code: RedirectStatus::Found, ..redirect("L301", OWN) };
        control.acked(control.put_record(moved)).await;
        scans += assert_answers(&edge, "/L301", (302, "no-store")).await;
        control.acked(control.put("L301", OWN)).await;
        scans += assert_answers(&edge, "/L301", (307, "no-store")).await;
        edge.stop().await;
        let recorded = control.scans();
        assert_eq!(recorded.len(), scans);
    }
}

#[tokio::test]
async fn a_domain_says_how_long_its_redirects_are_kept() {
    for adapt in WAYS {
        let (control, edge, _folder) = edge_with(adapt).await;
        let links = one_of_each(&control).await;
        for (age, expected) in [
            (Some(60), "public, max-age=60, must-revalidate"),
            (Some(0), "public, max-age=0, must-revalidate"),
            (None, "no-store"),
        ] {
            control.acked(control.commit([domain(age)])).await;
            for (path, code) in &links {
                assert_answers(&edge, path, (*code, expected)).await;
            }
            // Nothing else is kept longer for it.
            for (path, status) in [("/NONE", 404), ("/", 404), ("/L307.gif", 404)] {
                let answer = edge.get(path, &[]).await;
                assert_eq!((answer.status, answer.header("cache-control")), (status, "no-store"), "{path}");
            }
            let json = edge.get("/L301", &[("accept", "application/json")]).await;
            assert_eq!((json.status, json.header("cache-control")), (200, "no-store"));
        }
        edge.stop().await;
    }
}

#[tokio::test]
async fn a_closed_link_is_kept_by_nobody_and_an_open_one_until_its_end() {
    for adapt in WAYS {
        let (control, edge, _folder) = edge_with(adapt).await;
        let with = |short_id: &str, availability: Availability| {
            let availability = Some(Box::new(availability));
            let status_code = RedirectStatus::MovedPermanently;
            control.put_record(Redirect { availability, status_code, ..redirect(short_id, OWN) })
        };
        let until = |seconds: i64| Availability {
            valid_until: Some(UnixMillis(NOW + seconds * 1_000)),
            ..Availability::default()
        };
        let ended_url = || Some(OVER.into());
        with("SOON", until(10));
        with("LATER", until(3_600));
        with("OVER", until(-1));
        with("ELSEWHERE", Availability { ended_url: ended_url(), ..until(-1) });
        with("PAUSED", Availability { is_paused: true, ended_url: ended_url(), ..Availability::default() });
        let from = Availability { valid_from: Some(UnixMillis(NOW + 1)), ..Availability::default() };
        with("EARLY", from);
        control.acked(control.commit([domain(Some(60))])).await;
        for (path, expected) in [
            ("/SOON", (301, OWN, "public, max-age=10, must-revalidate")),
            ("/LATER", (301, OWN, "public, max-age=60, must-revalidate")),
            ("/OVER", (410, "", "no-store")),
            // What holds for the moment is never permanent.
            ("/ELSEWHERE", (307, OVER, "no-store")),
            ("/PAUSED", (307, OVER, "no-store")),
            ("/EARLY", (404, "", "no-store")),
        ] {
            for method in ["GET", "HEAD", "GET"] {
                let answer = request(edge.plain, method, HOST, path, &[]).await;
                let (status, location, cache_control, _) = shown(&answer);
                assert_eq!((status, location, cache_control), expected, "{method} {path}");
            }
        }
        edge.clock.0.set(UnixMillis(NOW + 9_999));
        assert_eq!(shown(&edge.get("/SOON", &[]).await), (301, OWN, "no-store", "Accept"));
        edge.clock.0.set(UnixMillis(NOW + 10_000));
        let ended = edge.get("/SOON", &[]).await;
        assert_eq!((ended.status, ended.header("cache-control")), (410, "no-store"));
        edge.stop().await;
    }
}

/// The next visitor may be led elsewhere, so nobody keeps what a rule decided, or did not.
#[tokio::test]
async fn what_rules_decide_is_temporary_and_kept_by_nobody() {
    let (control, edge, _folder) = edge().await;
    control.put_record(Redirect { status_code: RedirectStatus::PermanentRedirect, ..redirect("ABC", OWN) });
    control.put_rules(&[("language=de", Some(OVER)), ("language=fr", None)]);
    control.acked(control.commit([domain(Some(60))])).await;
    for (language, status, target) in [("de", 307, OVER), ("fr", 307, OWN), ("en", 308, OWN)] {
        for method in ["GET", "HEAD"] {
            let answer = request(edge.plain, method, HOST, "/ABC", &[("accept-language", language)]).await;
            assert_eq!(shown(&answer), (status, target, "no-store", "Accept"), "{method} {language}");
        }
    }
    control.acked(control.put_rules(&[])).await;
    assert_answers(&edge, "/ABC", (308, "public, max-age=60, must-revalidate")).await;
    edge.stop().await;
}
