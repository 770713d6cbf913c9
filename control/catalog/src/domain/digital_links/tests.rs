use kernel::domain::body::assert_faults;
use serde_json::json;

use super::*;

fn read(body: &Value) -> Result<ProductLinks, Vec<String>> {
    let mut members = Members::of(body)?;
    let links = ProductLinks::read(&mut members);
    members.finish(Some(links))
}

fn link() -> Value {
    json!({"linkType": "gs1:pip", "href": "https://example.com/{01}?s={21}", "title": "Product", "default": true})
}

fn with(name: &str, value: Value) -> Value {
    let mut link = link();
    link[name] = value;
    json!({"links": [link]})
}

#[test]
fn every_fault_of_links_is_named() {
    let other = json!({"linkType": "gs1:faqs", "href": "https://example.com/faq", "title": "Questions"});
    for (body, faults) in [
        (json!({}), vec![]),
        (json!({"links": [], "levels": [], "gtinAliases": [], "serialMode": "known"}), vec![]),
        (json!({"links": [link(), other]}), vec![]),
        (json!({"links": [other]}), vec!["links must have exactly one link with default true, not 0"]),
        (json!({"links": [link(), link()]}), vec!["exactly one link with default true, not 2"]),
        (json!({"links": vec![link(); 65]}), vec!["links must have at most 64 items, not 65"]),
        (json!({"links": {}}), vec!["links must be an array of objects"]),
        (
            json!({"links": [{"default": true}]}),
            vec!["links[0].linkType is required", "links[0].href is required", "links[0].title is required"],
        ),
        (with("linkType", json!("pip")), vec!["links[0].linkType must be like gs1:pip"]),
        (with("linkType", json!("schema:url")), vec!["links[0].linkType must be like gs1:pip"]),
        (with("linkType", json!("https://example.com/terms/manual")), vec![]),
        (
            with("href", json!("http://{01}.example.com/")),
            vec!["links[0].href must not hold a tag in the host"],
        ),
        (with("href", json!("https://example.com/{shortId}")), vec!["links[0].href holds an unknown tag"]),
        (with("href", json!("https://example.com/{01")), vec!["links[0].href holds an unknown tag"]),
        (with("href", json!("javascript:alert(1)")), vec!["links[0].href must be an absolute http"]),
        (with("type", json!("html")), vec!["links[0].type must be a media type"]),
        (with("hreflang", json!(["pt-BR", "1x"])), vec!["links[0].hreflang must be an array of at most 20"]),
        (with("context", json!("DE")), vec!["links[0].context must be an array of at most 20"]),
        (with("from", json!(5)), vec!["links[0]: the default link holds always"]),
        (with("title", json!("")), vec!["links[0].title must not be empty"]),
        (json!({"serialMode": "all"}), vec!["serialMode must be none, template, overrides or known"]),
        (
            json!({"gtinAliases": ["9521234543213", "09521234543214", "00000000000000"]}),
            vec!["gtinAliases[1] must be a GTIN", "gtinAliases[2] must not have the GS1 prefix"],
        ),
        (json!({"levels": [{"lot": "L1", "links": [link()]}]}), vec![]),
        (
            json!({"levels": [{"links": [link()]}, {"lot": "a b"}, {"lot": "L", "tpx": "X", "links": [link()]}]}),
            vec![
                "levels[0] must have a variant",
                "levels[1].lot: ",
                "levels[1].links must have a link",
                "levels[2].tpx must stand alone",
            ],
        ),
        (
            json!({"levels": [{"lot": "L1", "links": [link()]}, {"lot": "L1", "links": [link()]}]}),
            vec!["levels[1] is there twice"],
        ),
    ] {
        assert_faults(&body, read, &faults);
    }
    let other = json!({"linkType": "gs1:faqs", "href": "https://e.com", "title": "Q", "from": 5, "to": 5});
    let faults = read(&json!({"links": [link(), other]})).unwrap_err();
    assert_eq!(faults, ["links[1].to must be later than from."]);
}

#[test]
fn links_are_kept_in_one_form() {
    let level = json!([{"variant": "V", "lot": "L/1", "links": [link()]}]);
    let mut body = with("linkType", json!("https://gs1.org/voc/pip"));
    body["levels"] = level;
    body["gtinAliases"] = json!(["96385074", "00000096385074"]);
    let read = read(&body).unwrap();
    assert_eq!(&*read.of_gtin()[0].link_type, "gs1:pip");
    assert_eq!(read.aliases(), ["00000096385074"]);
    let gtin = DigitalLink::new("09521234543213").unwrap();
    let path = read.of_levels()[0].path(gtin).unwrap().path();
    assert_eq!(path, "/01/09521234543213/22/V/10/L%2F1");
    let stored = serde_json::to_value(&read).unwrap();
    assert_eq!(serde_json::from_value::<ProductLinks>(stored).unwrap(), read);
}

#[test]
fn each_gtin_has_a_record_at_each_level() {
    let level = |lot: &str| json!({"lot": lot, "links": [link()]});
    let aliases = json!(["9521234543220", "96385074"]);
    for (body, expected) in [
        (json!({}), 0),
        (json!({"gtinAliases": aliases}), 0),
        (json!({"links": [link()]}), 1),
        (json!({"links": [link()], "levels": [level("L1"), level("L2")]}), 3),
        (json!({"levels": [level("L1"), level("L2")], "gtinAliases": aliases}), 6),
        (json!({"links": [link()], "levels": [level("L1"), level("L2")], "gtinAliases": aliases}), 9),
    ] {
        assert_eq!(read(&body).unwrap().count_records(), expected, "{body}");
    }
}

#[test]
fn tags_become_percent_encoded_values() {
    let tags = Tags { gtin: "09521234543213", serial: Some("A/1"), ..Tags::default() };
    for (href, expected) in [
        ("https://e.com/{01}?s={21}&l={10}", "https://e.com/09521234543213?s=A%2F1&l="),
        ("https://e.com/", "https://e.com/"),
        ("https://e.com/{x}{", "https://e.com/{x}{"),
    ] {
        assert_eq!(expand(href, &tags), expected);
    }
}
