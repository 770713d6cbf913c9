//! GS1 Digital Links over real sockets: levels, choice, forms, scans and memory.

use std::sync::Arc;

use edge::EdgeConfig;
use serde_json::{Value, json};
use shared::{
    digital_link::LinkSet,
    pages::Pages,
    redirect::Redirect,
    short_url::{Scheme, ShortDomain},
    standing::{Authenticity, Risk, Standing, Verdict},
    wire::stream::Change,
    withheld::Withheld,
};
use tempfile::TempDir;

use crate::support::{Answer, Control, HOST, Running, account, edge_with, eventually, redirect, request};

const PRODUCT: &str = "01/09528765123457";
/// Edges that fetch what they are asked for, and edges that hold every link.
const WAYS: [fn(&mut EdgeConfig); 2] = [|_| {}, |config| config.is_replica = true];

/// The record of a level with these links.
pub(crate) fn level(short_id: &str, serial_mode: &str, links: &Value) -> Redirect {
    let set = json!({"description": short_id, "serialMode": serial_mode, "links": links});
    let set: LinkSet = serde_json::from_value(set).unwrap();
    Redirect { digital_link: Some(Box::new(set)), ..redirect(short_id, "https://example.com/unused") }
}

fn put(control: &Control, short_id: &str, serial_mode: &str, links: &Value) {
    control.put_record(level(short_id, serial_mode, links));
}

fn link(link_type: &str, href: &str) -> Value {
    json!({"linkType": link_type, "href": href, "title": link_type})
}

fn default(link_type: &str, href: &str) -> Value {
    json!({"linkType": link_type, "href": href, "title": link_type, "default": true})
}

/// An edge whose domain resolves a product with a lot, a variant, and one item.
async fn resolver(serial_mode: &str, adapt: fn(&mut EdgeConfig)) -> (Control, Running, TempDir) {
    let (control, edge, folder) = edge_with(adapt).await;
    let domain = ShortDomain::new(Scheme::Https, HOST).unwrap();
    let domain = ShortDomain { account: Some(account()), digital_links: true, ..domain };
    put_product(&control, serial_mode);
    control.put("ABC", "https://example.com/short");
    control.acked(control.commit([Change::Domain(domain)])).await;
    (control, edge, folder)
}

/// A product with a lot and one item that have links of their own.
pub(crate) fn put_product(control: &Control, serial_mode: &str) {
    let german = json!({"linkType": "gs1:pip", "href": "https://example.com/de", "title": "Deutsch", "hreflang": ["de"]});
    let portuguese = json!({"linkType": "gs1:pip", "href": "https://example.com/pt", "title": "Português", "hreflang": ["pt"]});
    let links = json!([
        default("gs1:pip", "https://example.com/{01}/{21}?a=1#top"),
        german,
        portuguese,
        link("gs1:instructions", "https://example.com/one"),
        link("gs1:instructions", "https://example.com/two"),
        link("gs1:certificationInfo", "https://example.com/{01}/{10}"),
    ]);
    put(control, PRODUCT, serial_mode, &links);
    let lot = json!([default("gs1:recallStatus", "https://example.com/recall/{10}")]);
    put(control, &format!("{PRODUCT}/10/L%2F1"), serial_mode, &lot);
    let item = json!([default("gs1:dpp", "https://example.com/item/{21}")]);
    put(control, &format!("{PRODUCT}/21/Abc"), serial_mode, &item);
}

fn location(answer: &Answer) -> (u16, &str) {
    (answer.status, answer.header("location"))
}

#[tokio::test]
async fn a_link_leads_from_the_first_level_that_has_what_is_asked() {
    for adapt in WAYS {
        let (_control, edge, _folder) = resolver("overrides", adapt).await;
        for (target, headers, expected) in [
            ("", &[][..], (307, "https://example.com/09528765123457/?a=1#top")),
            ("/", &[], (307, "https://example.com/09528765123457/?a=1#top")),
            ("?17=261231&x=%2f", &[], (307, "https://example.com/09528765123457/?a=1&17=261231&x=%2f#top")),
            ("?17=261231;3103=000750", &[], (400, "")),
            ("/17/261231", &[], (400, "")),
            ("/foo", &[], (400, "")),
            ("/21/S/10/L", &[], (400, "")),
            ("/21/Abc", &[], (307, "https://example.com/item/Abc")),
            ("/21/abc", &[], (307, "https://example.com/09528765123457/abc?a=1#top")),
            ("/10/L%2F1/21/S", &[], (307, "https://example.com/recall/L%2F1")),
            ("/10/L%2F1/21/Abc", &[], (307, "https://example.com/item/Abc")),
            ("/10/L%2F2", &[], (307, "https://example.com/09528765123457/?a=1#top")),
            ("/22/V/10/L%2F1", &[], (307, "https://example.com/recall/L%2F1")),
            ("/235/X", &[], (307, "https://example.com/09528765123457/?a=1#top")),
            (
                "/10/L%2F1?linkType=gs1:certificationInfo",
                &[],
                (307, "https://example.com/09528765123457/L%2F1?linkType=gs1:certificationInfo"),
            ),
            (
                "?linkType=https://www.gs1.org/voc/certificationInfo",
                &[],
                (
                    307,
                    "https://example.com/09528765123457/?linkType=https://www.gs1.org/voc/certificationInfo",
                ),
            ),
            ("?linkType=gs1:nosuch", &[], (404, "")),
            ("?linkType=gs1:instructions", &[], (300, "")),
            ("", &[("accept-language", "pt-BR")], (307, "https://example.com/pt")),
            (
                "",
                &[("accept-language", "ja,de-CH;q=0.5"), ("accept", "*/*")],
                (307, "https://example.com/de"),
            ),
        ] {
            let path = format!("/{PRODUCT}{target}");
            let answer = edge.get(&path, headers).await;
            assert_eq!(location(&answer), expected, "{path}");
            assert_eq!(answer.header("access-control-allow-origin"), "*", "{path}");
            assert_eq!(answer.header("vary"), "Accept, Accept-Language", "{path}");
            let head = request(edge.plain, "HEAD", HOST, &path, headers).await;
            assert_eq!((location(&head), head.header("link")), (expected, answer.header("link")), "{path}");
            assert!(head.body.is_empty(), "{path}");
        }
        for (path, status) in [
            ("/some/stem/01/09528765123457", 307),
            ("/01/09528765123458", 400),
            ("/01/9528765123457", 400),
            ("/01/09506000134352", 404),
            ("/02/09528765123457", 404),
            ("/a/b", 404),
            ("/ABC", 307),
            ("/abc/", 404),
            // A tag with another scheme of EPC, and one with another GTIN.
            ("/eh31164596f40c0e5cbe991a83", 404),
            ("/eh30164596f44c0e5cbe991a83", 404),
        ] {
            assert_eq!(edge.get(path, &[]).await.status, status, "{path}");
        }
        edge.get("/01/09528765123458", &[]).await.problem(40001);
        for tag in ["/eh30164596f40c0e5cbe991a83", "/exMBZFlvQMDly-mRqD?x=1"] {
            let answer = edge.get(tag, &[]).await;
            assert!(
                answer.header("location").starts_with("https://example.com/09528765123457/123456789123?a=1")
            );
            assert!(answer.header("link").starts_with("<https://tn.gg/01/09528765123457/21/123456789123?"));
        }
        edge.stop().await;
    }
}

#[tokio::test]
async fn links_are_shown_as_linkset_page_and_choice() {
    let (control, edge, _folder) = resolver("none", WAYS[0]).await;
    control.acked(control.withhold(Withheld::Host("evil.example".into()), true)).await;
    let path = format!("/{PRODUCT}/10/L%2F1");
    for (query, accept, kind) in [
        ("?linkType=linkset", "*/*", "application/linkset+json"),
        ("", "application/linkset+json", "application/linkset+json"),
        ("", "application/json", "application/json"),
    ] {
        let answer = edge.get(&format!("{path}{query}"), &[("accept", accept)]).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, kind), "{query} {accept}");
        let linkset = answer.json();
        let anchors: Vec<_> =
            linkset["linkset"].as_array().unwrap().iter().map(|level| &level["anchor"]).collect();
        assert_eq!(anchors, [&format!("https://tn.gg{path}"), &format!("https://tn.gg/{PRODUCT}")]);
    }
    let html = "text/html,*/*;q=0.8";
    let page = edge.get(&format!("{path}?linkType=linkset"), &[("accept", html)]).await;
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    let text = str::from_utf8(&page.body).unwrap();
    assert!(
        text.contains("href=\"https://example.com/recall/L%2F1\"") && text.contains("Português"),
        "{text}"
    );
    let choice = edge.get(&format!("/{PRODUCT}?linkType=gs1:instructions"), &[("accept", html)]).await;
    assert_eq!((choice.status, choice.header("content-type")), (300, "text/html; charset=utf-8"));

    for path in [&*path, "/.well-known/gs1resolver"] {
        let answer = request(edge.plain, "OPTIONS", HOST, path, &[("origin", "https://shop.example")]).await;
        assert_eq!((answer.status, answer.header("allow")), (204, "GET, HEAD, OPTIONS"), "{path}");
        assert_eq!(answer.header("access-control-allow-methods"), "GET, HEAD, OPTIONS", "{path}");
        assert_eq!(request(edge.plain, "POST", HOST, path, &[]).await.status, 405, "{path}");
    }
    let described = edge.get("/.well-known/gs1resolver", &[]).await;
    assert_eq!(described.header("content-type"), "application/json");
    assert_eq!(described.json()["resolverRoot"], "https://tn.gg");

    // What is withheld is neither shown nor led to.
    let links = json!([default("gs1:pip", "https://evil.example/"), link("gs1:dpp", "https://example.com/")]);
    put(&control, "01/09506000134352", "none", &links);
    control.acked(control.head()).await;
    assert_eq!(edge.get("/01/09506000134352", &[]).await.status, 451);
    let linkset = edge.get("/01/09506000134352?linkType=linkset", &[]).await;
    assert!(linkset.status == 200 && !linkset.json().to_string().contains("evil"), "{:?}", linkset.body);
    edge.stop().await;
}

#[tokio::test]
async fn without_the_setting_a_domain_knows_no_digital_links() {
    let (control, edge, _folder) = resolver("none", WAYS[0]).await;
    let domain = ShortDomain::new(Scheme::Https, HOST).unwrap();
    let domain = ShortDomain { account: Some(account()), ..domain };
    control.acked(control.commit([Change::Domain(domain.clone())])).await;
    for path in [format!("/{PRODUCT}"), "/.well-known/gs1resolver".to_owned()] {
        edge.get(&path, &[]).await.problem(40402);
        assert_eq!(request(edge.plain, "OPTIONS", HOST, &path, &[]).await.status, 405);
    }
    // No short id of several segments is one.
    let mut several = domain;
    several.paths.multi_segment = true;
    control.acked(control.commit([Change::Domain(several)])).await;
    edge.get(&format!("/{PRODUCT}"), &[]).await.problem(40402);
    edge.stop().await;
}

#[tokio::test]
async fn serials_of_a_product_leave_nothing_behind() {
    for serial_mode in ["none", "template"] {
        let (control, edge, _folder) = resolver(serial_mode, WAYS[0]).await;
        assert_eq!(edge.get(&format!("/{PRODUCT}/21/S"), &[]).await.status, 307);
        // What is not read is not kept either.
        let reads = control.reads();
        for n in 0..100 {
            let answer = edge.get(&format!("/{PRODUCT}/21/S{n}"), &[]).await;
            let serial = if serial_mode == "none" { String::new() } else { format!("S{n}") };
            let expected = format!("https://example.com/09528765123457/{serial}?a=1#top");
            assert_eq!(location(&answer), (307, &*expected));
        }
        assert_eq!(control.reads(), reads, "{serial_mode}");
        edge.stop().await;
    }
}

#[tokio::test]
async fn scans_say_what_the_link_said() {
    for adapt in WAYS {
        let (control, edge, _folder) = resolver("known", adapt).await;
        for target in
            ["/22/V/10/L%2F1/21/Abc?linkType=gs1:pip", "/10/L%2F1/21/Xyz", "", "?linkType=gs1:instructions"]
        {
            edge.get(&format!("/{PRODUCT}{target}"), &[]).await;
        }
        edge.get("/eh30164596f40c0e5cbe991a83", &[]).await;
        // Programs read these; nobody scanned.
        edge.get(&format!("/{PRODUCT}?linkType=linkset"), &[]).await;
        request(edge.plain, "HEAD", HOST, &format!("/{PRODUCT}"), &[]).await;
        eventually("the scans arrive", || control.count_scans() == 5).await;
        let mut found: Vec<Value> = control
            .scans()
            .into_iter()
            .map(|(_, _, record)| json!([&*record.folded, record.digital_link.unwrap()]))
            .collect();
        // Those of two threads may change places.
        found.sort_by_key(ToString::to_string);
        let gtin = "09528765123457";
        let mut expected = vec![
            json!([format!("{PRODUCT}/21/Abc"), {"gtin": gtin, "variant": "V", "lot": "L/1", "serial": "Abc", "linkType": "gs1:pip", "known": true}]),
            json!([format!("{PRODUCT}/10/L%2F1"), {"gtin": gtin, "lot": "L/1", "serial": "Xyz", "linkType": "gs1:recallStatus", "known": false}]),
            json!([PRODUCT, {"gtin": gtin, "linkType": "gs1:pip"}]),
            json!([PRODUCT, {"gtin": gtin}]),
            json!([PRODUCT, {"gtin": gtin, "serial": "123456789123", "linkType": "gs1:pip", "known": false}]),
        ];
        expected.sort_by_key(ToString::to_string);
        assert_eq!(found, expected);
        edge.stop().await;
    }
}

/// With the small reader in front of hyper and without it.
#[tokio::test]
async fn each_look_up_and_answer_is_counted_once() {
    let mut counted = Vec::new();
    for adapt in [(|_| {}) as fn(&mut EdgeConfig), |config| config.fast_redirects = false] {
        let (_control, edge, _folder) = resolver("known", adapt).await;
        let paths = ["", "/21/Abc", "/21/Xyz", "/10/L1", "/22/V/10/L1/21/Xyz"];
        for path in paths.iter().chain(&paths) {
            assert_eq!(edge.get(&format!("/{PRODUCT}{path}"), &[]).await.status, 307, "{path}");
        }
        let text = edge.handle.metrics_text();
        let is_count = |line: &&str| {
            ["waymark_edge_lookups", "waymark_edge_responses"].iter().any(|name| line.starts_with(name))
        };
        counted.push(text.lines().filter(is_count).map(str::to_owned).collect::<Vec<_>>());
        edge.stop().await;
    }
    assert!(counted[0].iter().any(|line| line.contains("307") && line.ends_with(" 10")), "{counted:?}");
    assert_eq!(counted[0], counted[1]);
}

#[tokio::test]
async fn nobody_is_led_on_to_a_copy() {
    let (control, edge, _folder) = resolver("known", WAYS[0]).await;
    let verdict = Verdict {
        authentication: Authenticity::Suspicious,
        counterfeit: Risk::Confirmed,
        gray_market: Risk::None,
    };
    let standing = Standing { verdict: Some(verdict), ..Standing::default() };
    let links = json!([default("gs1:dpp", "https://example.com/item/{21}")]);
    let item = level(&format!("{PRODUCT}/21/Abc"), "known", &links);
    control.acked(control.put_record(Redirect { standing, ..item })).await;
    let path = format!("/{PRODUCT}/21/Abc");
    assert_eq!(location(&edge.get(&path, &[]).await), (307, "https://example.com/item/Abc"));
    let pages = serde_json::from_value(json!({"copies": "confirmed"})).unwrap();
    let domain = ShortDomain::new(Scheme::Https, HOST).unwrap();
    let pages = Some(Arc::<Pages>::new(pages));
    let domain = ShortDomain { account: Some(account()), digital_links: true, pages, ..domain };
    control.acked(control.commit([Change::Domain(domain)])).await;
    assert_eq!(location(&edge.get(&path, &[]).await), (403, ""));
    let other = edge.get(&format!("/{PRODUCT}/21/Xyz"), &[]).await;
    assert_eq!(location(&other), (307, "https://example.com/09528765123457/Xyz?a=1#top"));
    edge.stop().await;
}

#[tokio::test]
async fn rules_decide_about_the_default_link_alone() {
    let (control, edge, _folder) = resolver("none", WAYS[0]).await;
    control.acked(control.put_rules(&[("language=fr", Some("https://rule.example/"))])).await;
    for (query, language, expected) in [
        ("", "fr", "https://rule.example/"),
        ("", "en", "https://example.com/09528765123457/?a=1#top"),
        ("?x=1", "fr", "https://rule.example/?x=1"),
        ("?x=1", "en", "https://example.com/09528765123457/?a=1&x=1#top"),
        (
            "?linkType=gs1:certificationInfo",
            "fr",
            "https://example.com/09528765123457/?linkType=gs1:certificationInfo",
        ),
    ] {
        let answer = edge.get(&format!("/{PRODUCT}{query}"), &[("accept-language", language)]).await;
        assert_eq!(location(&answer), (307, expected), "{query} {language}");
    }
    edge.stop().await;
}
