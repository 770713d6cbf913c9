use serde_json::json;
use shared::short_url::Scheme;

use super::*;

fn brand(pages: serde_json::Value) -> Brand {
    let pages: Pages = serde_json::from_value(pages).unwrap();
    Brand { pages: Some(Arc::new(pages)), shows_link: true }
}

fn shown(kind: Kind, accepted: &str, brand: &Brand) -> String {
    let contact = "abuse@example.com".parse().unwrap();
    let page =
        PageCache::default().page((code(kind), kind), Some(accepted.as_bytes()), brand, Some(&contact));
    String::from_utf8(page.to_vec()).unwrap()
}

fn code(kind: Kind) -> Code {
    match kind {
        Kind::Unknown => Code::ShortIdUnknown,
        Kind::Scheduled => Code::LinkScheduled,
        Kind::Paused => Code::LinkPaused,
        Kind::Ended => Code::LinkEnded,
        Kind::Copy => Code::SuspectedCopy,
        Kind::Suspended => Code::Suspended,
        Kind::TakenDown => Code::TakenDown,
        Kind::Root => Code::NoSuchPath,
    }
}

fn text(word: &str) -> serde_json::Value {
    json!({"title": word, "text": word})
}

#[test]
fn each_language_says_everything() {
    for language in &LANGUAGES {
        assert!(!language.report.is_empty());
        for kind in Kind::ALL {
            let (title, text) = language.of(kind);
            // As long as what accounts may write.
            assert!((1..=80).contains(&title.chars().count()), "{} {kind:?}", language.tag);
            assert!((1..=500).contains(&text.chars().count()), "{} {kind:?}", language.tag);
            let page = shown(kind, language.tag, &Brand::default());
            assert!(page.contains(&format!("<h1>{title}</h1>")), "{page}");
            assert!(page.contains(&format!("<html lang=\"{}\"", language.tag)), "{page}");
            assert_eq!(page.contains(" dir=\"rtl\""), language.tag == "ar", "{page}");
            assert_eq!(page.matches("<h1>").count(), 1);
            assert!(page.len() <= 8 << 10, "{}", page.len());
        }
    }
    let mut tags: Vec<_> = LANGUAGES.iter().map(|language| language.tag).collect();
    tags.sort_unstable();
    tags.dedup();
    assert_eq!(tags.len(), LANGUAGES.len());
    assert_eq!(LANGUAGES[0].tag, ENGLISH.tag);
}

#[test]
fn the_language_is_the_one_that_is_liked_best() {
    let own = brand(json!({"texts": {"pt-BR": {"unknown": text("x")}, "sv": {"unknown": text("x")},
        "de": {"root": text("x")}}}));
    let taiwan = brand(json!({"texts": {"zh-TW": {"unknown": text("x")}, "zh": {"unknown": text("x")}}}));
    let chinese = brand(json!({"texts": {"zh": {"unknown": text("x")}}}));
    let none = Brand::default();
    for (accepted, brand, expected, why) in [
        ("", &none, "en", "nothing is asked for"),
        (&format!("{}de", "xx;q=0.9,".repeat(31)), &none, "de", "the last that is looked at"),
        (&format!("{}de", "xx;q=0.9,".repeat(5_000)), &none, "en", "behind all that are looked at"),
        (&format!("{}de", "xx;q=2,".repeat(5_000)), &none, "en", "behind many that say nothing"),
        ("de", &none, "de", "one of ours"),
        ("DE-at", &none, "de", "a part of the world, without case"),
        ("zh-Hans-CN-x-a,en;q=0.5", &none, "zh", "some parts fewer"),
        ("zh-Hant-TW", &none, "zh-Hant", "one part fewer"),
        ("zh-tw", &none, "zh-Hant", "a region of traditional script"),
        ("zh-HK", &none, "zh-Hant", "another one"),
        ("zh-MO", &none, "zh-Hant", "another one"),
        ("zh-yue-HK", &none, "zh-Hant", "with an extended language"),
        ("zh-SG", &none, "zh", "a region of simplified script"),
        ("zh-Hans-HK", &none, "zh", "the script before the region"),
        ("zh-HK", &taiwan, "zh-TW", "one of the account in the same script"),
        ("zh-Hant", &chinese, "zh", "one of the account in an unnamed script, before ours"),
        ("en;q=0.3,fr;q=0.9,de;q=0.8", &none, "fr", "the highest quality"),
        ("it,fr", &none, "it", "the first among equals"),
        ("xx,ja;q=0.1", &none, "ja", "the first that is there"),
        ("de;q=0,nl;q=0.1", &none, "nl", "a refused one never"),
        ("xx", &none, "en", "none that is there"),
        ("*", &none, "en", "any"),
        (";;;,,,q", &none, "en", "no list"),
        ("sv", &own, "sv", "one of the account"),
        ("sv-FI", &own, "sv", "one of the account for a part of the world"),
        ("pt", &own, "pt-BR", "one of the account before ours"),
        ("pt-br", &own, "pt-BR", "without case"),
        ("pt-PT", &own, "pt-BR", "of another part of the world"),
        ("de,sv;q=0.5", &own, "de", "ours where the account has no text of the kind"),
        ("xx,sv;q=0.5", &own, "sv", "the second"),
        ("xx-SV-sv,sv;q=0.5", &own, "sv", "the second after one of several parts"),
        ("sv-aaaaaaaa-bbbbbbbb-cccccccc-dddddddd", &own, "sv", "too long: its language alone"),
        ("xx-aaaaaaaa-bbbbbbbb-cccccccc-dddddddd,de", &none, "de", "too long, and unknown"),
    ] {
        let page = shown(Kind::Unknown, accepted, brand);
        assert!(page.contains(&format!("<html lang=\"{expected}\"")), "{why}: {accepted}: {page}");
    }
    let bytes = PageCache::default().page((Code::LinkEnded, Kind::Ended), Some(b"de,\xff"), &none, None);
    assert!(bytes.starts_with(b"<!doctype html><html lang=\"en\""), "no text");
}

#[test]
fn the_script_of_a_text_says_where_it_begins() {
    for (tag, is_rtl) in [
        ("ar", true),
        ("he-IL", true),
        ("UR", true),
        ("pa-Arab-PK", true),
        ("ku-arab", true),
        ("pa", false),
        ("ar-Latn", false),
        ("ks-Deva-IN", false),
        ("de-1996", false),
        ("de-x-arab", false),
    ] {
        let own = brand(json!({"texts": {tag: {"root": text("x")}}}));
        let page = shown(Kind::Root, tag, &own);
        let direction = if is_rtl { " dir=\"rtl\"" } else { "" };
        assert!(page.contains(&format!("<html lang=\"{tag}\"{direction}>")), "{page}");
    }
}

#[test]
fn an_account_has_its_name_its_colors_and_its_words() {
    let own = brand(json!({
        "name": "Acme",
        "logo": "data:image/png;base64,AAAA",
        "colors": {"background": "#fffff0", "text": "#101010", "accent": "#003300"},
        "link": {"url": "https://example.com/help?a=1&b=2", "label": "Help"},
        "texts": {"en": {"unknown": text("Own unknown"), "ended": text("Own ended"),
            "suspended": text("Own pause"), "copy": text("Own copy"), "root": text("Own root")}},
    }));
    for (kind, title) in [
        (Kind::Unknown, "Own unknown"),
        (Kind::Ended, "Own ended"),
        (Kind::Paused, "Own pause"),
        (Kind::Copy, "Own copy"),
        (Kind::Root, "Own root"),
        (Kind::Scheduled, "This code is not active yet"),
    ] {
        let page = shown(kind, "en", &own);
        for part in [
            &*format!("<h1>{title}</h1>"),
            "<p class=\"n\">Acme</p>",
            "<img src=\"data:image/png;base64,AAAA\" alt=\"\">",
            "--b:#fffff0;--t:#101010;--a:#003300;--o:#fffff0",
            "@media(prefers-color-scheme:dark){:root{--b:#101010;--t:#fffff0;--a:#fffff0;--o:#101010}}",
            "href=\"https://example.com/help?a=1&amp;b=2\">Help</a>",
            "<a href=\"mailto:abuse@example.com\">abuse@example.com</a>",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
    }
    // It may be withheld for what it says.
    for kind in [Kind::Suspended, Kind::TakenDown] {
        let page = shown(kind, "en", &own);
        assert_eq!(page, shown(kind, "en", &Brand::default()));
        assert!(!page.contains("Acme") && !page.contains("example.com/help"), "{page}");
    }
    let dark = brand(json!({"colors": {"background": "#000000", "text": "#ffffff", "accent": "#ffff00"}}));
    assert!(!shown(Kind::Root, "en", &dark).contains("@media"), "dark at all times");
}

#[test]
fn own_colors_of_the_edge_can_be_read() {
    for (one, other) in
        [("#ffffff", "#1a1a1a"), ("#ffffff", "#0b57d0"), ("#121212", "#ececec"), ("#121212", "#8ab4f8")]
    {
        let [one, other] = [one, other].map(|text| text.parse::<shared::pages::Color>().unwrap());
        assert!(one.contrast(other) >= shared::pages::MIN_CONTRAST, "{one} {other}");
    }
}

#[test]
fn what_an_account_says_is_text() {
    let evil = "<script>&\"'</title>";
    let own = brand(json!({"name": evil, "logo": evil, "link": {"url": evil, "label": evil},
        "texts": {evil: {"root": text(evil)}, "en": {"root": text(evil)}}}));
    for accepted in ["en", evil] {
        let page = shown(Kind::Root, accepted, &own);
        assert!(!page.contains("<script") && page.matches("</title>").count() == 1, "{page}");
        assert!(page.contains("<h1>&lt;script&gt;&amp;&#34;'&lt;/title&gt;</h1>"), "{page}");
    }
}

#[test]
fn a_page_is_small() {
    // The worst that control takes: each letter is written as five.
    let own = brand(json!({
        "name": "&".repeat(80),
        "colors": {"background": "#fffff0", "text": "#101010", "accent": "#003300"},
        "link": {"url": format!("https://example.com/?{}", "&".repeat(379)), "label": "&".repeat(40)},
        "texts": {"en": {"root": {"title": "&".repeat(80), "text": "&".repeat(500)}}},
    }));
    let page = shown(Kind::Root, "en", &own);
    assert!(page.len() <= 8 << 10, "{}", page.len());
}

#[test]
fn the_cache_keeps_no_pages_that_were_replaced() {
    let (cache, own) = (PageCache::default(), brand(json!({"name": "Acme"})));
    let page = cache.page((Code::LinkEnded, Kind::Ended), None, &own, None);
    assert!(String::from_utf8_lossy(&page).contains("Acme"));
    let pages = own.pages.as_ref().map(Arc::downgrade).unwrap();
    drop(own);
    assert!(pages.upgrade().is_none());
}

#[test]
fn a_page_is_rendered_once_and_again_for_other_pages() {
    let cache = PageCache::default();
    let domain = |name: &str| {
        let pages = serde_json::from_value(json!({"name": name,
            "link": {"url": "https://evil.example/", "label": "Help"}}));
        ShortDomain {
            pages: Some(Arc::new(pages.unwrap())),
            ..ShortDomain::new(Scheme::Https, "tn.gg").unwrap()
        }
    };
    let page = |brand: &Brand| cache.page((Code::LinkEnded, Kind::Ended), Some(b"de"), brand, None);
    let of = |domain: &ShortDomain| Brand::of(domain, false, |_| false);
    let (one, other) = (domain("One"), domain("Other"));
    let first = page(&of(&one));
    let second = page(&of(&one));
    assert_eq!(first.as_ptr(), second.as_ptr(), "the same bytes");
    assert!(String::from_utf8_lossy(&page(&of(&other))).contains("Other"));
    assert!(first.windows(4).any(|part| part == b"Help"));
    let without = page(&Brand::of(&one, false, |url| url == b"https://evil.example/"));
    assert!(!without.windows(4).any(|part| part == b"Help"), "its host was taken down");
    let suspended = page(&Brand::of(&one, true, |_| false));
    assert_eq!(suspended, page(&Brand::default()), "its account is suspended");
}

#[test]
fn a_page_is_answered_again_for_what_decides_about_it() {
    let cache = PageCache::default();
    let [own, other] =
        ["Acme", "Other"].map(|name| brand(json!({"name": name, "link": {"url": "u", "label": "Help"}})));
    let hidden = Brand { shows_link: false, ..own.clone() };
    let long = format!("de,{}", "en;q=0.5,".repeat(40));
    let all = [Brand::default(), own, other, hidden];
    // Also in another order, with each page in the cache by now.
    for accepted in [&b"de"[..], b"en", b"de-AT,de;q=0.9", b"", long.as_bytes(), b"de"] {
        for kind in Kind::ALL {
            for brand in &all {
                let ask = |cache: &PageCache| cache.page((code(kind), kind), Some(accepted), brand, None);
                let expected = ask(&PageCache::default());
                assert_eq!((ask(&cache), ask(&cache)), (expected.clone(), expected), "{kind:?} {brand:?}");
            }
        }
    }
    let ask =
        |accepted: &[u8]| cache.page((Code::ShortIdUnknown, Kind::Unknown), Some(accepted), &all[0], None);
    assert_eq!(
        ask(&b"de"[..]).as_ptr(),
        ask(&b"de-AT,de;q=0.9"[..]).as_ptr(),
        "rendered once for a language"
    );
}
