use proptest::prelude::*;
use serde_json::{Value, json};
use shared::{digital_link::SerialMode, short_url::Scheme};

use super::*;

fn domain() -> ShortDomain {
    ShortDomain::new(Scheme::Https, "brand.example").unwrap()
}

fn link(link_type: &str, href: &str, default: bool) -> TypedLink {
    TypedLink {
        link_type: link_type.into(),
        href: href.into(),
        title: format!("Title of {link_type}").into(),
        media_type: Some("text/html".into()),
        hreflang: vec!["zh-Hant".into(), "pt-BR".into()],
        context: Vec::new(),
        from: None,
        to: None,
        default,
    }
}

fn set(description: &str, serial_mode: SerialMode, links: Vec<TypedLink>) -> LinkSet {
    LinkSet { description: description.into(), serial_mode, links }
}

fn resolve<'l>(target: &str, accept: &str, levels: &[Level<'l>]) -> Resolved<'l> {
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let accept = Some(accept.as_bytes()).filter(|accept| !accept.is_empty());
    let domain = domain();
    let is_blocked = |url: &[u8]| url.starts_with(b"https://evil.example/");
    let site = Site { domain: &domain, brand: &Brand::default, is_blocked: &is_blocked };
    super::resolve(&Asked::read(path, query, accept, None).unwrap(), levels, site, UnixMillis(0))
}

fn body(resolved: Resolved<'_>) -> (Response<Bytes>, Value) {
    let answer = match resolved {
        Resolved::Links(answer) | Resolved::Choice { answer, .. } => answer,
        other => panic!("{other:?}"),
    };
    let body = serde_json::from_slice(answer.body()).unwrap();
    (answer, body)
}

/// Holds where a linkset is one that GS1's schema takes.
fn is_valid(linkset: &Value) -> bool {
    let only = |object: &Value, allowed: &[&str]| {
        object.as_object().unwrap().keys().all(|key| allowed.contains(&key.as_str()))
    };
    let is_url = |text: &Value| {
        text.as_str().is_some_and(|text| text.starts_with("https://") || text.starts_with("http://"))
    };
    let is_tag = |tag: &Value| matches!(tag.as_str().map(str::len), Some(2 | 5));
    let is_link = |link: &Value| {
        only(link, &["href", "title", "hreflang", "type", "context"])
            && is_url(&link["href"])
            && link["title"].is_string()
            && link.get("hreflang").is_none_or(|tags| tags.as_array().unwrap().iter().all(is_tag))
            && link.get("context").is_none_or(Value::is_array)
    };
    let is_level = |level: &Value| {
        is_url(&level["anchor"])
            && level["itemDescription"].is_string()
            && level.as_object().unwrap().iter().all(|(key, links)| {
                matches!(key.as_str(), "anchor" | "itemDescription")
                    || (key.starts_with("https://") && links.as_array().unwrap().iter().all(is_link))
            })
    };
    only(linkset, &["linkset"]) && linkset["linkset"].as_array().unwrap().iter().all(is_level)
}

#[test]
fn the_first_level_that_has_what_is_asked_leads() {
    let lot =
        set("A lot", SerialMode::Template, vec![link("gs1:recallStatus", "https://a.example/{10}", true)]);
    let product = set(
        "A bag",
        SerialMode::Template,
        vec![
            link("gs1:pip", "https://a.example/{01}?serial={21}", true),
            link("gs1:instructions", "https://a.example/one", false),
            link("gs1:instructions", "https://a.example/two", false),
        ],
    );
    let levels = [
        Level { id: "01/09528765123457/10/L%2F1", set: &lot, thng_id: None },
        Level { id: "01/09528765123457", set: &product, thng_id: None },
    ];
    let path = "/01/09528765123457/10/L%2F1/21/S";
    for (query, expected) in [
        ("", "0 https://a.example/L%2F1 gs1:recallStatus true"),
        ("?linkType=gs1:defaultLink", "0 https://a.example/L%2F1 gs1:recallStatus true"),
        ("?linkType=gs1:pip", "1 https://a.example/09528765123457?serial=S gs1:pip false"),
        ("?linkType=gs1:nosuch", "nothing"),
    ] {
        let found = match resolve(&format!("{path}{query}"), "", &levels) {
            Resolved::To { level, location, link_type, is_default } => {
                format!("{level} {} {link_type} {is_default}", location.to_str().unwrap())
            }
            Resolved::Nothing => "nothing".to_owned(),
            other => format!("{other:?}"),
        };
        assert_eq!(found, expected, "{query}");
    }
    let (answer, choice) = body(resolve(&format!("{path}?linkType=gs1:instructions"), "", &levels));
    assert_eq!(answer.status(), StatusCode::MULTIPLE_CHOICES);
    assert!(is_valid(&choice), "{choice}");
    assert_eq!(choice["linkset"][0]["https://ref.gs1.org/voc/instructions"].as_array().unwrap().len(), 2);
    assert_eq!(choice["linkset"][0]["https://ref.gs1.org/voc/defaultLink"], Value::Null);
}

#[test]
fn a_linkset_has_every_level_and_no_link_that_is_withheld() {
    let item = set("Bag 7", SerialMode::Known, vec![link("gs1:dpp", "https://a.example/{thngId}", true)]);
    let product = set(
        "A bag",
        SerialMode::Known,
        vec![link("gs1:pip", "https://a.example/", true), link("gs1:pip", "https://evil.example/", false)],
    );
    let levels = [
        Level { id: "01/09528765123457/21/S", set: &item, thng_id: Some("T") },
        Level { id: "01/09528765123457", set: &product, thng_id: None },
    ];
    let target = "/01/09528765123457/10/L/21/S?linkType=linkset";
    let (answer, linkset) = body(resolve(target, "*/*", &levels));
    assert!(is_valid(&linkset), "{linkset}");
    let entry = |href: &str, link_type: &str| {
        json!({
            "href": href,
            "title": format!("Title of {link_type}"),
            "type": "text/html",
            "hreflang": ["zh", "pt-BR"],
        })
    };
    assert_eq!(
        linkset,
        json!({"linkset": [
            {
                "anchor": "https://brand.example/01/09528765123457/10/L/21/S",
                "itemDescription": "Bag 7",
                "https://ref.gs1.org/voc/defaultLink": [
                    {"href": "https://a.example/T", "title": "Title of gs1:dpp"},
                ],
                "https://ref.gs1.org/voc/dpp": [entry("https://a.example/T", "gs1:dpp")],
            },
            {
                "anchor": "https://brand.example/01/09528765123457",
                "itemDescription": "A bag",
                "https://ref.gs1.org/voc/defaultLink": [
                    {"href": "https://a.example/", "title": "Title of gs1:pip"},
                ],
                "https://ref.gs1.org/voc/pip": [entry("https://a.example/", "gs1:pip")],
            },
        ]})
    );
    for (name, expected) in [
        ("content-type", "application/linkset+json"),
        ("vary", "Accept, Accept-Language"),
        ("access-control-allow-origin", "*"),
        ("access-control-expose-headers", "Link, Location"),
        (
            "link",
            "<https://brand.example/01/09528765123457/10/L/21/S?linkType=linkset>; rel=\"linkset\"; \
             type=\"application/linkset+json\", <https://ref.gs1.org/standards/resolver/linkset-context>; \
             rel=\"http://www.w3.org/ns/json-ld#context\"; type=\"application/ld+json\"",
        ),
    ] {
        assert_eq!(answer.headers()[name], expected, "{name}");
    }
}

#[test]
fn an_item_without_links_leads_where_its_product_does() {
    let item = set("Bag 7", SerialMode::Known, Vec::new());
    let product =
        set("A bag", SerialMode::Known, vec![link("gs1:pip", "https://a.example/{21}/{thngId}", true)]);
    let levels = [
        Level { id: "01/09528765123457/21/S", set: &item, thng_id: Some("T") },
        Level { id: "01/09528765123457", set: &product, thng_id: None },
    ];
    let Resolved::To { level: 0, location, .. } = resolve("/01/09528765123457/21/S", "", &levels) else {
        panic!("it counts for the item");
    };
    assert_eq!(location, "https://a.example/S/T");
    let (_, linkset) = body(resolve("/01/09528765123457/21/S?linkType=linkset", "", &levels));
    assert_eq!(linkset["linkset"].as_array().unwrap().len(), 1, "{linkset}");
}

#[test]
fn a_page_shows_titles_as_text() {
    let evil = TypedLink { title: "<script>".into(), ..link("gs1:pip", "https://a.example/?a=1&b=\"", true) };
    let set = set("Bag & <b>", SerialMode::None, vec![evil]);
    let levels = [Level { id: "01/09528765123457", set: &set, thng_id: None }];
    let Resolved::Links(answer) = resolve("/01/09528765123457?linkType=linkset", "text/html", &levels) else {
        panic!("a page");
    };
    let page = str::from_utf8(answer.body()).unwrap();
    assert_eq!(answer.headers()["content-security-policy"], visitor_pages::POLICY);
    assert!(page.contains("<h1>Bag &amp; &lt;b&gt;</h1>"), "{page}");
    assert!(page.contains("href=\"https://a.example/?a=1&amp;b=&#34;\""), "{page}");
    assert!(page.contains(">&lt;script&gt;</a>") && !page.contains("<script"), "{page}");
}

#[test]
fn a_domain_is_described_as_a_resolver_of_gtins() {
    let described: Value = serde_json::from_slice(described(&Method::GET, &domain()).body()).unwrap();
    assert_eq!(described["resolverRoot"], "https://brand.example");
    assert_eq!(described["supportedPrimaryKeys"], json!(["01"]));
    assert_eq!(described["supportedLinkType"][0]["prefix"], "gs1:");
    assert_eq!(described["contact"]["fn"], "brand.example");
}

proptest! {
    #[test]
    fn any_request_leads_to_a_target_of_the_record_or_nowhere(
        path in "(/01/09528765123457|/01)(/(10|21|22|235|17|x)/[!-~]{0,4}){0,3}/?|/\\PC{0,20}",
        query in prop::option::of("(linkType=[ -~]{0,9}|context=[!-~]{0,3}|17=\\PC{0,6}|&){0,4}"),
        accept in prop::option::of("[ -~]{0,20}|application/linkset\\+json|text/html"),
        language in prop::option::of(prop::collection::vec(any::<u8>(), 0..9)),
    ) {
        let set = set("An item", SerialMode::Known, vec![link("gs1:pip", "https://a.example/{21}/x", true)]);
        let levels = [Level { id: "01/09528765123457", set: &set, thng_id: None }];
        let domain = domain();
        let site = Site { domain: &domain, brand: &Brand::default, is_blocked: &|_| false };
        let accept = accept.as_deref().map(str::as_bytes);
        if let Ok(asked) = Asked::read(&path, query.as_deref(), accept, language.as_deref()) {
            prop_assert_eq!(asked.product(), "01/09528765123457");
            let _ = asked.levels(SerialMode::Known);
            match super::resolve(&asked, &levels, site, UnixMillis(0)) {
                Resolved::To { location, .. } => {
                    let location = location.to_str().unwrap();
                    let serial = location.strip_prefix("https://a.example/").and_then(|rest| rest.strip_suffix("/x"));
                    prop_assert!(serial.is_some_and(|serial| !serial.contains('/')), "{}", location);
                }
                Resolved::Links(answer) | Resolved::Choice { answer, .. } => {
                    if answer.headers()["content-type"] != "text/html; charset=utf-8" {
                        prop_assert!(is_valid(&serde_json::from_slice(answer.body()).unwrap()));
                    }
                }
                Resolved::Nothing => {}
            }
        }
    }
}
