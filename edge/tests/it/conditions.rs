//! Conditions of rules on what a request says: query, referer, network, device, languages, time zones and percentages.

use std::{collections::BTreeSet, sync::Arc};

use shared::{
    geo::{GeoIp, Locality},
    redirect::Redirect,
    redirect_status::RedirectStatus,
    rules::Visitor,
    short_url::{Scheme, ShortDomain},
    time::UnixMillis,
    wire::stream::Change,
};

use crate::support::{Control, HOST, Running, WAYS, account, edge, edge_with, eventually, redirect, request};

const OWN: &str = "https://example.com/own";
/// What the clock of an edge shows at first: a Monday, 14:13 in UTC and 16:13 in Berlin.
const NOW: i64 = 1_790_000_000_000;
const DAY_MS: i64 = 86_400_000;
const TABLET: &str = "Mozilla/5.0 (Linux; Android 14; SM-X710) AppleWebKit/537.36 (KHTML, like Gecko) \
    Chrome/126.0.0.0 Safari/537.36";
const ROBOT: &str = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";

/// Every address is in one region and one autonomous system.
#[derive(Debug)]
struct Atlas;

impl GeoIp for Atlas {
    fn find(&self, _: std::net::IpAddr) -> Locality {
        Locality { region: Some("Bavaria".into()), as_number: Some(64_512), ..Locality::default() }
    }
}

#[tokio::test]
async fn rules_can_test_what_a_request_says() {
    let to = |page: &str| -> &'static str { format!("https://example.com/{page}").leak() };
    let (control, edge, _folder) = edge_with(|config| config.geo = Arc::new(Atlas)).await;
    control.put("ABC", OWN);
    let rules = [
        ("region=Saxony|network=203.0.113.0/24|query.access=1|asNumber=1", Some(to("never"))),
        ("region=Bavaria&query.ref=a b&asNumber=64512", Some(to("query"))),
        ("refererHost=example.org", Some(to("referer"))),
        ("device=tablet", Some(to("tablet"))),
        ("device=robot", Some(to("robot"))),
        ("languages=fr&languages.fr<0.9", Some(to("some-french"))),
        ("hour.Europe/Berlin=17|weekday.Europe/Berlin=2", Some(to("later"))),
        ("network=127.0.0.0/8&hour.Europe/Berlin=16&languages=pl", Some(to("here"))),
    ];
    control.acked(control.put_rules(&rules)).await;
    for (path, headers, expected) in [
        ("/ABC", &[][..], OWN),
        ("/ABC?ref=a+b", &[], to("query")),
        ("/ABC?x=1&ref=a%20b", &[], to("query")),
        ("/ABC?Ref=a+b", &[], OWN),
        ("/ABC", &[("referer", "https://shop.EXAMPLE.org/x?y")], to("referer")),
        ("/ABC", &[("referer", "https://example.org.evil.example/")], OWN),
        ("/ABC", &[("user-agent", TABLET)], to("tablet")),
        ("/ABC", &[("user-agent", ROBOT)], to("robot")),
        ("/ABC", &[("accept-language", "de,fr;q=0.5")], to("some-french")),
        ("/ABC", &[("accept-language", "fr,de;q=0.5")], OWN),
        ("/ABC", &[("accept-language", "de,fr;q=0")], OWN),
        ("/ABC", &[("accept-language", "de,pl;q=0.1")], to("here")),
    ] {
        for method in ["GET", "HEAD"] {
            let answer = request(edge.plain, method, HOST, path, headers).await;
            assert_eq!(answer.header("location"), expected, "{method} {path} {headers:?}");
            assert_eq!((answer.header("cache-control"), answer.header("vary")), ("no-store", "Accept"));
        }
    }
    edge.clock.0.set(UnixMillis(NOW + 3_600_000));
    edge.assert_leads("ABC", to("later")).await;
    // In Berlin it is Tuesday, two hours before UTC.
    edge.clock.0.set(UnixMillis(NOW + 8 * 3_600_000));
    edge.assert_leads("ABC", to("later")).await;
    edge.stop().await;
}

#[tokio::test]
async fn a_percentage_divides_visitors_for_a_day_without_a_cookie() {
    let (control, edge, _folder) = edge().await;
    control.put("ABC", OWN);
    let rules =
        [("percentage<50", Some("https://example.com/a")), ("percentage>=50", Some("https://example.com/b"))];
    control.acked(control.put_rules(&rules)).await;
    let side = async |agent: &str| {
        let answer = edge.get("/ABC", &[("user-agent", agent)]).await;
        assert_eq!(answer.header("set-cookie"), "");
        answer.header("location").rsplit('/').next().unwrap_or_default().to_owned()
    };
    let expected = |agent: &str, at: i64| {
        let ip = [127, 0, 0, 1].into();
        let visitor = Visitor::new(&account(), UnixMillis(at), ip, agent.as_bytes());
        if visitor.place("") < 5_000 { "a" } else { "b" }
    };
    let mut sides = BTreeSet::new();
    for n in 0..40 {
        let agent = format!("visitor/{n}");
        let mut days = String::new();
        // Its side of a day stays, at whatever hour; the next day has one of its own.
        for at in [NOW, NOW + 3_600_000, NOW + DAY_MS] {
            edge.clock.0.set(UnixMillis(at));
            let found = side(&agent).await;
            assert_eq!(found, expected(&agent, at), "{agent} at {at}");
            days.push_str(&found);
        }
        sides.insert(days);
    }
    let all: BTreeSet<String> = ["aaa", "aab", "bba", "bbb"].map(str::to_owned).into();
    assert_eq!(sides, all, "each side is taken, and the next day places visitors anew");
    // A scan says which side it was.
    eventually("the scans arrive", || control.scans().len() == 120).await;
    for (_, _, scan) in control.scans() {
        let rule = scan.rule.unwrap();
        assert_eq!(
            &*rule.redirect_url,
            ["https://example.com/a", "https://example.com/b"][usize::from(rule.index)]
        );
    }
    edge.stop().await;
}

fn shown(answer: &crate::support::Answer) -> (u16, &str, &str) {
    (answer.status, answer.header("location"), answer.header("cache-control"))
}

/// Asserts what each way to ask for a link gets.
async fn assert_kept(edge: &Running, cache_control: &str) {
    for (method, path) in [("GET", "/ABC"), ("HEAD", "/ABC"), ("GET", "/ABC?a=1"), ("GET", "/ABC")] {
        let answer = request(edge.plain, method, HOST, path, &[]).await;
        assert_eq!(shown(&answer), (301, OWN, cache_control), "{method} {path}");
    }
}

/// Whether the metrics say of how many accounts no rule can be used.
fn assert_refused(edge: &Running, accounts: u32) {
    let (text, line) = (edge.handle.metrics_text(), format!("waymark_edge_rules_refused {accounts}"));
    assert!(text.lines().any(|is| is == line), "no {line} in {text}");
}

/// Rules that an edge cannot use may lead the next visitor elsewhere, once it can: nobody may keep a redirect meanwhile.
#[tokio::test]
async fn redirects_of_an_account_with_refused_rules_are_kept_by_nobody() {
    for adapt in WAYS {
        let (control, folder) = (Control::new(), tempfile::tempdir().unwrap());
        let edge = Running::start(&control, folder.path(), None, adapt).await;
        let status_code = RedirectStatus::MovedPermanently;
        control.put_record(Redirect { status_code, ..redirect("ABC", OWN) });
        let domain = ShortDomain::new(Scheme::Https, HOST).unwrap();
        let domain = ShortDomain { account: Some(account()), redirect_max_age: Some(60), ..domain };
        control.acked(control.commit([Change::Domain(domain)])).await;
        assert_kept(&edge, "public, max-age=60, must-revalidate").await;
        // Of a release to come, where there were no rules before.
        let refused = control.put_rules(&[("colour=red", Some("https://example.com/red"))]);
        control.acked(control.put("DEF", OWN)).await;
        assert_eq!(control.rejected(), [refused]);
        assert_kept(&edge, "no-store").await;
        assert_refused(&edge, 1);
        // Another one that it cannot use either.
        control.put_rules(&[("colour=blue", None)]);
        control.acked(control.put("DEF", OWN)).await;
        assert_kept(&edge, "no-store").await;
        edge.stop().await;

        // It begins with them.
        let edge = Running::start(&control, folder.path(), None, adapt).await;
        assert_kept(&edge, "no-store").await;
        assert_refused(&edge, 1);
        control.acked(control.put_rules(&[])).await;
        assert_kept(&edge, "public, max-age=60, must-revalidate").await;
        assert_refused(&edge, 0);
        edge.stop().await;
    }
}
