use std::sync::Arc;

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::json;
use shared::{
    domain_files::{DomainFiles, JsonFile, MAX_FILE_BYTES},
    short_url::{Scheme, ShortDomain},
    wire::{
        frame,
        stream::{Change, Event, Events, ToEdge},
    },
};

use super::*;

const NAMESPACE: &str = "http://www.w3.org/2000/svg";

/// A `data:` URL of bytes.
fn url(kind: &str, bytes: &[u8]) -> String {
    format!("data:image/{kind};base64,{}", BASE64_STANDARD.encode(bytes))
}

fn png(width: u32, height: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Grayscale);
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&vec![7; (width * height) as usize]).unwrap();
    writer.finish().unwrap();
    bytes
}

/// An SVG with this inside.
fn svg(inside: &str) -> String {
    url("svg+xml", format!("<svg xmlns=\"{NAMESPACE}\" viewBox=\"0 0 8 8\">{inside}</svg>").as_bytes())
}

fn faults(body: &Value) -> Vec<String> {
    parse(body).err().unwrap_or_default()
}

#[test]
fn pages_are_read_as_they_are_written() {
    let body = json!({
        "name": "Acme & Söhne",
        "logo": svg("<path d='M0 0h8v8z' fill='#123456'/>"),
        "colors": {"background": "#ffffff", "text": "#1A1A1A", "accent": "#0b57d0"},
        "link": {"url": "https://example.com/help?a=1&b=2", "label": "Help"},
        "copies": "suspected",
        "texts": {"de": {"unknown": {"title": "Unbekannt", "text": "Diesen Code gibt es nicht."}},
            "pt-BR": {"root": {"title": "Olá", "text": "Leia um código."}}},
    });
    let pages = parse(&body).unwrap();
    let mut expected = body;
    expected["colors"]["text"] = "#1a1a1a".into();
    assert_eq!(serde_json::to_value(&pages).unwrap(), expected);
    assert!(parse(&json!({})).unwrap().is_empty());
    assert!(parse(&json!({"name": null, "texts": {"de": {"root": null}, "fr": null}})).unwrap().is_empty());
}

#[test]
fn every_fault_is_named_at_once() {
    let body = json!({
        "name": "",
        "logo": "https://example.com/logo.png",
        "colors": {"background": "#ffffff", "text": "#777777", "accent": "#ffff00", "shadow": "#000000"},
        "link": {"url": "http://example.com/", "label": " "},
        "texts": {"german": {}, "de": {"paused": {}, "root": {"title": "x"}}, "DE": {}, "fr": 7},
        "sound": "x",
    });
    let found = faults(&body);
    for part in [
        "sound is not known here",
        "name must not be empty",
        "logo must begin with data:image/png;base64, or data:image/svg+xml;base64,",
        "colors.shadow is not known here",
        "colors.text has a contrast of 4.47 with colors.background; it must be at least 4.5",
        "colors.accent has a contrast of 1.07 with colors.background",
        "link.url must be an https URL of at most 400 bytes",
        "link.label must not be blank",
        "texts.german must be a language tag",
        "texts.de.paused is not known here",
        "texts.de.root.text is required",
        "texts.fr must be an object",
    ] {
        assert!(found.iter().any(|fault| fault.contains(part)), "{part}: {found:#?}");
    }
    assert_eq!(found.len(), 12, "{found:#?}");
    assert_eq!(faults(&json!([])), ["The body must be a JSON object."]);
}

#[test]
fn what_is_missing_or_too_long_is_named() {
    let text = |length: usize| json!({"title": "x", "text": "ä".repeat(length)});
    let many = |count: u32| {
        let tag = |number: u32| format!("de-{number}");
        (0..count).map(|number| (tag(number), json!({"root": text(1)}))).collect::<serde_json::Map<_, _>>()
    };
    for (body, part) in [
        (json!({"name": "x".repeat(81)}), "name must have at most 80 characters, not 81"),
        (json!({"colors": {}}), "colors.background is required"),
        (json!({"colors": {"background": "white"}}), "colors.background: must be a colour such as #1a2b3c"),
        (json!({"colors": []}), "colors must be an object"),
        (json!({"copies": "unknown"}), "copies must be suspected or confirmed"),
        (json!({"copies": "none"}), "copies must be suspected or confirmed"),
        (json!({"copies": true}), "copies must be suspected or confirmed"),
        (json!({"link": {"label": "x"}}), "link.url is required"),
        (json!({"link": {"url": "https://a:b@example.com/", "label": "x"}}), "without user and password"),
        (json!({"link": {"url": "javascript:alert(1)", "label": "x"}}), "link.url must be an https URL"),
        (json!({"link": {"url": "/help", "label": "x"}}), "link.url must be an https URL"),
        (
            json!({"texts": {"de": {"root": text(501)}}}),
            "texts.de.root.text must have at most 500 characters",
        ),
        (json!({"texts": {"d": {}}}), "texts.d must be a language tag"),
        (json!({"texts": {"de_DE": {}}}), "texts.de_DE must be a language tag"),
        (json!({"texts": {"de": {"root": text(1)}, "DE": {"root": text(1)}}}), "is there twice"),
        (json!({"texts": many(41)}), "texts has at most 40 languages, not 41"),
    ] {
        let found = faults(&body);
        assert!(found.iter().any(|fault| fault.contains(part)), "{body}: {found:?}");
    }
    assert_eq!(faults(&json!({"texts": many(40)})), Vec::<String>::new());
    // Each text is within its bounds, and all together are not.
    let of_all = KINDS.map(|kind| (kind.to_owned(), json!({"title": "x", "text": "語".repeat(500)})));
    let of_all: serde_json::Map<_, _> = of_all.into_iter().collect();
    let all: serde_json::Map<_, _> =
        (0..40).map(|number| (format!("de-{number}"), Value::Object(of_all.clone()))).collect();
    let found = faults(&json!({"texts": all}));
    assert!(found.len() == 1 && found[0].contains("at most 122880 bytes as JSON"), "{found:?}");
}

/// No edge connects while a domain is larger than a frame.
#[test]
fn the_largest_domain_fits_one_frame() {
    let file = || Some(JsonFile::new(&json!("x".repeat(MAX_FILE_BYTES - 2))));
    let files =
        DomainFiles { asset_links: file(), apple_app_site_association: file(), ..DomainFiles::default() };
    let name = "x".repeat(MAX_BYTES - r#"{"name":""}"#.len());
    let pages = Pages { name: Some(name.into_boxed_str()), ..Pages::default() };
    assert_eq!(serde_json::to_string(&pages).unwrap().len(), MAX_BYTES);
    let label = "a".repeat(60);
    let domain = ShortDomain {
        files: Some(Arc::new(files)),
        pages: Some(Arc::new(pages)),
        ..ShortDomain::new(Scheme::Https, &format!("{label}.{label}.{label}.gg")).unwrap()
    };
    let items = vec![Event { rev: 1, change: Change::Domain(domain) }];
    let events = ToEdge::Events(Arc::new(Events { prev: 0, items, last: 1 }));
    assert!(frame::encode(&events).is_ok());
}

#[test]
fn unknown_members_are_named_up_to_a_bound() {
    let many: serde_json::Map<_, _> = (0..30).map(|number| (format!("m{number}"), json!(1))).collect();
    let found = faults(&Value::Object(many));
    assert_eq!(found.len(), 21, "{found:?}");
    assert_eq!(found.last().unwrap(), "10 more members are not known here.");
}

#[test]
fn logos_are_pictures_within_bounds() {
    let logo = |url: &str| faults(&json!({"logo": url}));
    for fine in [url("png", &png(1, 1)), url("png", &png(512, 512)), svg("")] {
        assert_eq!(logo(&fine), Vec::<String>::new(), "{fine}");
    }
    let mut cut = png(64, 64);
    cut.truncate(cut.len() - 20);
    for (url, part) in [
        (url("png", &png(513, 1)), "logo must have at most 512 x 512 pixels, not 513 x 1"),
        (url("png", &cut), "logo is no PNG that can be read"),
        (url("png", b"GIF89a"), "logo is no PNG that can be read"),
        (url("png", &vec![0; 65_537]), "logo must have at most 65536 bytes, not 65537"),
        (url("svg+xml", &vec![b' '; 32_769]), "logo must have at most 32768 bytes, not 32769"),
        (url("svg+xml", &[0xff, 0xfe]), "logo is no UTF-8"),
        (url("gif", b"GIF89a"), "logo must begin with"),
        ("data:image/png;base64,§".to_owned(), "logo is not base64"),
        ("data:image/svg+xml,<svg/>".to_owned(), "logo must begin with"),
    ] {
        let found = logo(&url);
        assert!(found.len() == 1 && found[0].contains(part), "{part}: {found:?}");
    }
}

#[test]
fn drawings_hold_shapes_and_nothing_else() {
    let check = |text: &str| svg::check(text).err();
    for fine in [
        "<g fill=\"none\" stroke='rgb(1, 2, 3)'><circle cx=\"4\" cy=\"4\" r=\"3\"/></g>",
        "<defs><linearGradient id=\"a.b-1\"><stop offset=\"0\" stop-color=\"#fff\"/></linearGradient></defs>\
         <rect width=\"8\" height=\"8\" fill=\"url(#a.b-1)\" transform=\"rotate(9) scale(2)\"/>",
        "<title>A &amp; B</title><!-- drawn by hand -->",
        "<clipPath id=\"a\"><path d=\"M0 0h8v8z\"/></clipPath><g clip-path=\"url(#a)\"><g clip-path=\"url(#a)\"/></g>",
    ] {
        let text =
            format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns='{NAMESPACE}'>{fine}</svg>\n");
        assert_eq!(check(&text), None, "{text}");
    }
    for (inside, part) in [
        ("<script>alert(1)</script>", "and not <script"),
        ("<SCRIPT/>", "and not <SCRIPT"),
        ("<foreignObject/>", "and not <foreignObject"),
        ("<a href=\"https://example.com\"/>", "and not <a "),
        ("<image href=\"https://example.com/x.png\"/>", "and not <image"),
        ("<use href=\"#a\"/>", "and not <use"),
        ("<style>*{fill:red}</style>", "and not <style"),
        ("<animate/>", "and not <animate"),
        ("<svg xmlns=\"http://www.w3.org/2000/svg\"/>", "only there"),
        ("<x:g/>", "and not <x:g"),
        ("<g onload=\"alert(1)\"/>", "the attribute onload"),
        ("<g xlink:href=\"#a\"/>", "the attribute xlink:href"),
        ("<g style=\"fill:red\"/>", "the attribute style"),
        ("<g xmlns=\"http://www.w3.org/1999/xhtml\"/>", "xmlns must be"),
        ("<g fill=\"url(https://example.com/a)\"/>", "as url(#id)"),
        ("<g fill=\"URL(//example.com/a)\"/>", "as url(#id)"),
        ("<g fill=\"u\\72l(//example.com/a)\"/>", "holds one of"),
        ("<g fill=\"&#117;rl(//example.com/a)\"/>", "holds one of"),
        ("<g fill=\"src(//example.com/a)\"/>", "as url(#id)"),
        ("<g fill=\"rgb(1,2,3) url(//example.com/a)\"/>", "as url(#id)"),
        ("<g fill=\"red\" fill=\"blue\"/>", "is there twice"),
        ("<g fill=red/>", "has no value in quotes"),
        ("<g fill=\"red\"stroke=\"red\"/>", "is not well-formed"),
        ("<![CDATA[<script>]]>", "and not <![CDATA["),
        ("<?php x ?>", "and not <?php"),
        ("<!-- a -- b -->", "two hyphens"),
        ("<!-- a", "a comment has no end"),
        ("text", "text outside of title and desc"),
        ("<title>&x;</title>", "an entity"),
        ("<title><g/></title>", "text alone"),
        ("<clipPath id=\"a\"><g><g clip-path=\"url(#b)\"/></g></clipPath>", "has no clip-path"),
        ("<clipPath id=\"a\" clip-path=\"url(#b)\"/>", "has no clip-path"),
        ("<g>", "do not end in the order"),
        ("</svg><g/>", "more than one element"),
        ("\u{1}", "control characters"),
    ] {
        let text = format!("<svg xmlns=\"{NAMESPACE}\">{inside}</svg>");
        let fault = check(&text);
        assert!(fault.as_ref().is_some_and(|fault| fault.contains(part)), "{inside}: {fault:?}");
    }
    for (text, part) in [
        (String::new(), "no end"),
        ("<svg/>".to_owned(), "xmlns"),
        ("<g/>".to_owned(), "must be at the top"),
        (format!("<!DOCTYPE svg><svg xmlns=\"{NAMESPACE}\"/>"), "and not <!DOCTYPE"),
        (format!("<?xml version=\"1.0\" encoding=\"UTF-16\"?><svg xmlns=\"{NAMESPACE}\"/>"), "UTF-8"),
        (format!("<svg xmlns=\"{NAMESPACE}\">{}", "<g>".repeat(40)), "nested more than 32"),
        (format!("<svg xmlns=\"{NAMESPACE}\""), "not well-formed"),
    ] {
        let fault = check(&text);
        assert!(fault.as_ref().is_some_and(|fault| fault.contains(part)), "{text}: {fault:?}");
    }
}
