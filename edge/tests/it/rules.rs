//! Rules of redirection: which one decides, at once after the acknowledgement, without a read of anything.

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use shared::{
    geo::{GeoIp, Locality},
    redirect::Redirect,
    rules::{Owner, Rule, RuleList},
};

use crate::support::{Control, Running, edge, edge_with, eventually, redirect, request};

const FIREFOX: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:128.0) Gecko/20100101 Firefox/128.0";
const OWN: &str = "https://example.com/own";

/// Rules over everything that a request tells; the edge's clock stands on a Monday at 14:13 UTC.
const RULES: [(&str, Option<&str>); 6] = [
    ("country=DE|city~K", Some("https://example.com/never-without-a-database")),
    ("userAgentName=Firefox&operatingSystemName~Windows", Some("https://example.com/firefox?s={shortId}")),
    ("language=de&hour=14&weekday=1", Some("https://example.com/de/{productId}#top")),
    ("language=fr", None),
    ("shortId~K|thng.name=Left shoe", Some("https://example.com/shoe")),
    ("country!=DE&shortId=HOUR&hour<14", Some("https://example.com/never-at-this-hour")),
];

#[tokio::test]
async fn the_first_rule_that_matches_decides() {
    let (control, edge, _folder) = edge().await;
    let product = "U5Gq8sKVBfgRtKRaagBefgwk";
    for (short_id, name) in [("ABC", None), ("KEY", None), ("SHOE", Some("Left shoe")), ("HOUR", None)] {
        control.put_record(Redirect { thng_name: name.map(Into::into), ..redirect(short_id, OWN) });
    }
    control.acked(control.put_rules(&RULES)).await;
    let de = format!("https://example.com/de/{product}#top");
    for (path, agent, language, expected) in [
        ("/ABC", "", "", OWN),
        ("/abc", FIREFOX, "de", "https://example.com/firefox?s=ABC"),
        ("/ABC", "curl/8.5.0", "de-AT,en;q=0.5", &de),
        ("/ABC", "", "en,de;q=0.9", OWN),
        ("/KEY", "", "fr-CA", OWN),
        ("/KEY", "", "*", "https://example.com/shoe"),
        ("/SHOE", "", "", "https://example.com/shoe"),
        ("/HOUR", "", "", OWN),
    ] {
        for method in ["GET", "HEAD"] {
            let headers = [("user-agent", agent), ("accept-language", language)];
            let headers: Vec<_> = headers.into_iter().filter(|(_, value)| !value.is_empty()).collect();
            let answer = request(edge.plain, method, "tn.gg", path, &headers).await;
            assert_eq!((answer.status, answer.header("location")), (307, expected), "{method} {path}");
            assert_eq!((answer.header("cache-control"), answer.header("vary")), ("no-store", "Accept"));
        }
    }
    let headers = [("user-agent", FIREFOX), ("accept", "application/json")];
    assert_eq!(edge.get("/ABC", &headers).await.json()["defaultRedirectUrl"], OWN);
    assert_eq!(edge.get("/ABC.png", &headers[..1]).await.status, 200);
    assert_eq!(control.reads(), 4, "each link was read once, and no rule was");
    edge.stop().await;
}

#[tokio::test]
async fn a_scan_records_which_rule_matched() {
    let (control, edge, _folder) = edge().await;
    control.put_record(Redirect { forward_query: true, ..redirect("ABC", OWN) });
    let named = |name: Option<&str>, condition: &str, url: Option<&str>| Rule {
        name: name.map(Into::into),
        condition: condition.into(),
        redirect_url: url.map(Into::into),
    };
    let rules = vec![
        named(None, "language=fr", None),
        named(Some("Ausland"), "language=en", Some("https://example.com/en?a=b#c")),
    ];
    control.acked(control.put_lists(vec![RuleList { owner: None, rules }])).await;
    for language in ["de", "fr", "en"] {
        let path = format!("/ABC?n={language}&access_token=SECRETKEY");
        edge.get(&path, &[("accept-language", language)]).await;
    }
    eventually("the scans arrive", || control.scans().len() == 3).await;
    let mut scans = control.scans();
    // Two threads of the edge recorded them.
    scans.sort_by_key(|(_, _, scan)| ["n=de", "n=fr", "n=en"].map(|end| !scan.entry_url.ends_with(end)));
    let [none, own, en] = scans.try_into().unwrap();
    assert_eq!(none.2.rule, None);
    let own = own.2.rule.unwrap();
    assert_eq!((own.index, own.name, own.application), (0, None, None));
    assert_eq!(&*own.redirect_url, "https://example.com/own?n=fr");
    let en = en.2.rule.unwrap();
    assert_eq!((en.index, en.name.as_deref()), (1, Some("Ausland")));
    assert_eq!(&*en.redirect_url, "https://example.com/en?a=b&n=en#c");
    edge.stop().await;
}

#[tokio::test]
async fn rules_of_applications_apply_to_their_projects() {
    let (control, edge, _folder) = edge().await;
    let (project, other) = ("UMe8gsKVBfgRtKRaagBefgwk", "UMe8gsKVBfgRtKRaagBefgwm");
    let (early, late) = ("U10000000000000000000000", "U20000000000000000000000");
    let list = |owner: Option<(&str, &str)>, condition: &str, url: &str| RuleList {
        owner: owner.map(|(application, project)| Owner {
            application: application.parse().unwrap(),
            project: project.parse().unwrap(),
        }),
        rules: vec![Rule {
            name: None,
            condition: condition.into(),
            redirect_url: Some(format!("https://example.com/{url}").into()),
        }],
    };
    control.put_lists(vec![
        list(None, "hour>=0", "account"),
        list(Some((late, project)), "hour>=0", "late"),
        list(Some((early, project)), "language=de", "early"),
    ]);
    for (short_id, projects) in [("NONE", vec![]), ("MINE", vec![project, other]), ("OTHER", vec![other])] {
        let projects = projects.into_iter().map(|id| id.parse().unwrap()).collect();
        let rev = control.put_record(Redirect { projects, ..redirect(short_id, OWN) });
        control.acked(rev).await;
    }
    for (path, language, expected) in [
        ("/NONE", "de", "account"),
        ("/MINE", "de", "early"),
        ("/MINE", "en", "late"),
        ("/OTHER", "de", "account"),
    ] {
        let answer = edge.get(path, &[("accept-language", language)]).await;
        assert_eq!(answer.header("location"), format!("https://example.com/{expected}"), "{path} {language}");
    }
    eventually("the scans arrive", || control.scans().len() == 4).await;
    // Two threads of the edge recorded them.
    let fired = control.scans().into_iter().filter_map(|(_, _, scan)| scan.rule?.application);
    let mut fired: Vec<String> = fired.map(|application| application.to_string()).collect();
    fired.sort();
    assert_eq!(fired, [early, late]);
    edge.stop().await;
}

/// A database that is put in place while the edge runs.
#[derive(Debug, Default)]
struct Atlas(AtomicBool);

impl GeoIp for Atlas {
    fn find(&self, ip: IpAddr) -> Locality {
        if !self.0.load(SeqCst) {
            return Locality::default();
        }
        assert!(ip.is_loopback());
        Locality { city: Some("Köln".into()), country_code: Some("DE".into()), ..Locality::default() }
    }
}

#[tokio::test]
async fn rules_can_test_the_clients_location() {
    let atlas = Arc::new(Atlas::default());
    let (control, edge, _folder) = edge_with(|config| config.geo = atlas.clone()).await;
    control.put("ABC", OWN);
    let rules = [
        ("country=FR|city=Paris", Some("https://example.com/fr")),
        ("country=de&city~K", Some("https://example.com/koeln")),
        ("country!=AT", Some("https://example.com/elsewhere")),
    ];
    control.acked(control.put_rules(&rules)).await;
    edge.assert_leads("ABC", "https://example.com/elsewhere").await;
    atlas.0.store(true, SeqCst);
    edge.assert_leads("ABC", "https://example.com/koeln").await;
    edge.stop().await;
}

fn to(target: &str) -> [(&str, Option<&str>); 1] {
    [("hour>=0", Some(target))]
}

#[tokio::test]
async fn rules_are_live_once_they_are_acknowledged() {
    let (control, edge, _folder) = edge().await;
    control.put("ABC", OWN);
    for round in 0..200 {
        let target = format!("https://example.com/{round}");
        match round % 5 {
            4 => {
                control.acked(control.put_rules(&[])).await;
                edge.assert_leads("ABC", OWN).await;
            }
            _ => {
                control.acked(control.put_rules(&to(&target))).await;
                edge.assert_leads("ABC", &target).await;
            }
        }
    }
    edge.stop().await;
}

#[tokio::test]
async fn rules_survive_reconnects_of_the_stream() {
    let (control, edge, _folder) = edge().await;
    let target = |n: u32| format!("https://example.com/{n}");
    control.put("ABC", OWN);
    control.acked(control.put_rules(&to(&target(1)))).await;
    edge.assert_leads("ABC", &target(1)).await;

    control.faults(|faults| faults.is_down = true);
    eventually("control is out of reach", || edge.handle.status().state == "STALE").await;
    edge.assert_leads("ABC", &target(1)).await;
    control.put_rules(&to(&target(2)));
    control.faults(|faults| faults.is_down = false);
    control.acked(control.head()).await;
    edge.assert_leads("ABC", &target(2)).await;

    control.faults(|faults| faults.is_down = true);
    control.put_rules(&to(&target(3)));
    control.compact();
    control.faults(|faults| faults.is_down = false);
    control.acked(control.head()).await;
    edge.assert_leads("ABC", &target(3)).await;

    control.faults(|faults| faults.lost_events = 1);
    control.acked(control.put_rules(&to(&target(4)))).await;
    edge.assert_leads("ABC", &target(4)).await;

    control.faults(|faults| faults.is_down = true);
    control.put_rules(&to(&target(5)));
    control.new_epoch("second");
    control.faults(|faults| faults.is_down = false);
    control.acked(control.head()).await;
    edge.assert_leads("ABC", &target(5)).await;

    control.faults(|faults| faults.is_down = true);
    control.put_rules(&[]);
    control.new_epoch("third");
    control.faults(|faults| faults.is_down = false);
    control.acked(control.head()).await;
    edge.assert_leads("ABC", OWN).await;
    edge.stop().await;
}

#[tokio::test]
async fn unusable_rules_leave_the_old_ones() {
    let (control, edge, folder) = edge().await;
    control.put("ABC", OWN);
    control.acked(control.put_rules(&to("https://example.com/old"))).await;
    let refused = control.put_rules(&[("colour=red", None)]);
    control.acked(control.put("DEF", OWN)).await;
    assert_eq!(control.rejected(), [refused]);
    edge.assert_leads("ABC", "https://example.com/old").await;
    edge.stop().await;

    // An edge that begins with such rules says so, and serves as if there were none.
    let edge = Running::start(&control, folder.path(), None, |_| {}).await;
    eventually("the refusal is reported", || control.rejected().len() == 2).await;
    edge.assert_leads("ABC", OWN).await;
    control.acked(control.put_rules(&to("https://example.com/new"))).await;
    edge.assert_leads("ABC", "https://example.com/new").await;
    edge.stop().await;
}

/// The history checker of links, with the rules changing too: what a reader sees was the rule's target, or
/// the link's own while no rule held, at some moment since what was acknowledged or seen before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rules_and_targets_never_go_back() {
    const CHANGES: u64 = 300;
    let (control, folder) = (Control::new(), tempfile::tempdir().unwrap());
    let edge = Running::start(&control, folder.path(), None, |config| config.cache_bytes = 1_500).await;
    let edge = Arc::new(edge);
    let mut readers = tokio::task::JoinSet::new();
    for _ in 0..3 {
        let (control, edge) = (control.clone(), edge.clone());
        readers.spawn(async move {
            let (mut reads, mut seen_link, mut seen_rules) = (0_u32, 0, 0);
            while control.head() < CHANGES {
                let acked = control.acked_rev();
                let (link_from, rules_from) = (acked.max(seen_link), acked.max(seen_rules));
                let answer = request(edge.plain, "GET", "tn.gg", "/ABC", &[]).await;
                if answer.status == 503 {
                    continue;
                }
                let head = control.head();
                let (kind, rev) = match answer.status {
                    404 => ("own", None),
                    _ => {
                        let rest = answer.header("location").strip_prefix("https://example.com/").unwrap();
                        let (kind, rev) = rest.split_once('/').unwrap();
                        (kind, Some(rev.parse::<u64>().unwrap()))
                    }
                };
                let link_at = |rev| control.value_at("ABC", rev);
                if kind == "rule" {
                    let shown = (rules_from..=head).find(|at| control.rules_at(*at) == rev);
                    seen_rules = shown.unwrap_or_else(|| panic!("rule {rev:?} from {rules_from} to {head}"));
                    let alive = (link_from..=head).find(|at| link_at(*at).is_some());
                    seen_link = alive.unwrap_or_else(|| panic!("deleted from {link_from} to {head}"));
                } else {
                    let shown = (link_from..=head).find(|at| link_at(*at) == rev);
                    seen_link = shown.unwrap_or_else(|| panic!("target {rev:?} from {link_from} to {head}"));
                    if rev.is_some() {
                        let none = (rules_from..=head).find(|at| control.rules_at(*at).is_none());
                        seen_rules = none.unwrap_or_else(|| panic!("no rule from {rules_from} to {head}"));
                    }
                }
                reads += 1;
            }
            reads
        });
    }
    for rev in 1..=CHANGES {
        control.faults(|faults| {
            faults.view_lag = (rev % 5) as usize;
            faults.slow_reads = Duration::from_micros(rev % 3 * 500);
        });
        let committed = match rev * rev % 7 {
            0 => control.put_rules(&[]),
            1 | 2 => control.put_rules(&to(&format!("https://example.com/rule/{rev}"))),
            _ if rev % 11 == 0 => control.delete("ABC"),
            _ => control.put("ABC", &format!("https://example.com/own/{rev}")),
        };
        assert_eq!(committed, rev);
        if rev % 3 == 0 {
            control.acked(rev).await;
        }
        if rev % 40 == 0 {
            if rev % 80 == 0 {
                control.compact();
            }
            control.break_streams();
        }
    }
    let mut reads = 0;
    while let Some(count) = readers.join_next().await {
        reads += count.unwrap();
    }
    assert!(reads > 50, "the readers read: {reads}");
    Arc::into_inner(edge).unwrap().stop().await;
}
