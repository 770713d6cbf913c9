use std::borrow::Cow;

use proptest::prelude::*;

use crate::{DigitalLink, DigitalLinkError, Qualifier};

const GTIN: &str = "09528765123457";

/// Reads a path with its query behind `?`.
fn parse(target: &str) -> Result<DigitalLink<'_>, DigitalLinkError> {
    match target.split_once('?') {
        Some((path, query)) => DigitalLink::parse(path, Some(query)),
        None => DigitalLink::parse(target, None),
    }
}

/// The text of the fault, or `ok`.
fn verdict(target: &str) -> String {
    parse(target).map_or_else(|fault| fault.to_string(), |_| "ok".to_owned())
}

#[test]
fn paths_become_links() {
    for (path, stem, human) in [
        ("/01/09528765123457", "", "(01)09528765123457"),
        ("/01/09528765123457/", "", "(01)09528765123457"),
        ("/01/09528765123457/22/2A", "", "(01)09528765123457(22)2A"),
        ("/01/09528765123457/22/2A/10/L/21/S", "", "(01)09528765123457(22)2A(10)L(21)S"),
        ("/01/09528765123457/235/T", "", "(01)09528765123457(235)T"),
        // A stem, which may look like pairs.
        ("/some/stem/01/09528765123457/21/S", "/some/stem", "(01)09528765123457(21)S"),
        ("//01/09528765123457", "/", "(01)09528765123457"),
        ("/01/01/09528765123457", "/01", "(01)09528765123457"),
        ("/01/09528765123457/01/09521234543213", "/01/09528765123457", "(01)09521234543213"),
        ("/414/x/01/09528765123457", "/414/x", "(01)09528765123457"),
        // Values that look like identifiers.
        ("/01/09528765123457/10/01/21/235", "", "(01)09528765123457(10)01(21)235"),
        ("/01/09528765123457/21/01", "", "(01)09528765123457(21)01"),
        // Percent-encoding, after the path was split.
        ("/01/%309528765123457/21/a%2Fb%2f", "", "(01)09528765123457(21)a/b/"),
        ("/01/09528765123457/21/%zz%4%", "", "(01)09528765123457(21)%zz%4%"),
        ("/01/09528765123457/21/!'()*+,:;=&", "", "(01)09528765123457(21)!'()*+,:;=&"),
        ("/01/09528765123457/10/12345678901234567890", "", "(01)09528765123457(10)12345678901234567890"),
    ] {
        let link = parse(path).unwrap_or_else(|fault| panic!("{path}: {fault}"));
        assert_eq!((link.stem(), link.human_readable().as_str()), (stem, human), "{path}");
    }
}

#[test]
fn other_paths_are_no_fault() {
    for path in [
        "",
        "/",
        "//",
        "/abc",
        "/a/b",
        "/01",
        "/01/",
        "/21/S",
        "/gtin/09528765123457",
        "/0109528765123457",
        "/414/9521321000018",
        "/414/9521321000018/254/x",
        "/01/09528765123457/414/9521321000018",
        "/8006/095212345432130102/21/x",
        "01/09528765123457",
        "/01/a/b",
        "/a/01/x/y/z",
    ] {
        assert_eq!(parse(path), Err(DigitalLinkError::NoKey), "{path}");
    }
}

#[test]
fn a_fault_says_what_and_where() {
    const PAIRS: &str =
        "what follows the GTIN must be pairs of an identifier and its value: 22, 10, 21, or 235 alone";
    let order = |ai: &str| {
        format!(
            "({ai}) may not stand there: a GTIN is followed by 22, 10 and 21 in this order, or by 235 alone"
        )
    };
    for (path, text) in [
        ("/01/9528765123457", "(01) has 13 characters; it must have 14"),
        ("/01/036000291452", "(01) has 12 characters; it must have 14"),
        ("/01/96385074/21/x", "(01) has 8 characters; it must have 14"),
        ("/01/095287651234577", "(01) has 15 characters; it must have 14"),
        ("/01/x", "(01) has 1 characters; it must have 14"),
        ("/01//21/x", "(01) has no value"),
        ("/01/0952876512345X", "(01) has a character that this identifier does not allow"),
        ("/01/0952876512345%37%37", "(01) has 15 characters; it must have 14"),
        ("/01/09528765123458", "(01) has a wrong check digit"),
        ("/01/00000000000000", "(01) begins with the GS1 prefix 0000000, which nobody owns"),
        ("/01/10000000000007", "(01) begins with the GS1 prefix 0000000, which nobody owns"),
        ("/01/00000096385074", "ok"),
        ("/01/09528765123457/21", PAIRS),
        ("/01/09528765123457/21/", PAIRS),
        ("/01/09528765123457//", PAIRS),
        ("/01/09528765123457/x", PAIRS),
        ("/01/09528765123457/89/x", PAIRS),
        ("/01/9528765123457/21/x/y", PAIRS),
        ("/01/09528765123457/21//", "(21) has no value"),
        ("/01/09528765123457/10//21/x", "(10) has no value"),
        ("/01/09528765123457/21/123456789012345678901", "(21) has 21 characters; it must have 1 to 20"),
        (
            "/01/09528765123457/235/12345678901234567890123456789",
            "(235) has 29 characters; it must have 1 to 28",
        ),
        ("/01/09528765123457/21/a%20b", "(21) has a character that this identifier does not allow"),
        ("/01/09528765123457/21/%C3%A9", "(21) has a character that this identifier does not allow"),
        ("/01/09528765123457/21/%FF", "(21) has a character that this identifier does not allow"),
        ("/01/09528765123457/21/%00", "(21) has a character that this identifier does not allow"),
        ("/01/09528765123457/21/a%23", "(21) has a character that this identifier does not allow"),
        ("/01/09528765123457/21/a~", "(21) has a character that this identifier does not allow"),
        ("/01/09528765123457/21/a\"", "the path has a character that must be percent-encoded, at byte 23"),
        ("/01/09528765123457/21/é", "the path has a character that must be percent-encoded, at byte 22"),
        ("/ /01/09528765123457", "the path has a character that must be percent-encoded, at byte 1"),
    ] {
        assert_eq!(verdict(path), text, "{path}");
    }
    for (behind, ai) in [
        ("/21/a/10/b", "10"),
        ("/10/a/22/b", "22"),
        ("/21/a/21/b", "21"),
        ("/10/a/235/b", "10"),
        ("/235/a/10/b", "235"),
        ("/11/251231", "11"),
        ("/7040/1ABC", "7040"),
    ] {
        let path = format!("/01/{GTIN}{behind}");
        let expected = if behind == "/21/a/10/b" { order("21") } else { order(ai) };
        let expected = if behind == "/10/a/22/b" { order("10") } else { expected };
        assert_eq!(verdict(&path), expected, "{path}");
    }
    let other = DigitalLink::parse("/01/09528765123457?21", None);
    assert_eq!(other, Err(DigitalLinkError::PathCharacter { offset: 18 }));
}

#[test]
fn identifiers_in_a_query_are_checked() {
    const CHARACTER: &str = "has a character that this identifier does not allow";
    for (query, text) in [
        ("", "ok"),
        ("linkType=gs1:pip&a=b&&c&=&s%C3%A9", "the query has ``, which is no identifier of GS1"),
        ("linkType=gs1:pip&a=b&&c&s%C3%A9=1", "ok"),
        ("11=261231", "ok"),
        ("11=261200", "ok"),
        ("11", "ok"),
        ("%31%31=x", "ok"),
        ("11=261331", "(11) must be a date YYMMDD, where the day may be 00"),
        ("15=250229", "(15) must be a date YYMMDD, where the day may be 00"),
        ("15=000229", "ok"),
        ("7006=261200", "(7006) must be a date YYMMDD"),
        ("11=26123", "(11) has 5 characters; it must have 6"),
        ("11=26123x", &format!("(11) {CHARACTER}")),
        ("11=", "(11) has no value"),
        ("99=a b", "the query has a character that must be percent-encoded, at byte 4"),
        ("99=a+b", &format!("(99) {CHARACTER}")),
        ("99=a%2Bb", "ok"),
        ("89=x", "the query has `89`, which is no identifier of GS1"),
        ("123456789012345678901234=x", "the query has `12345678901234567890`, which is no identifier of GS1"),
        ("8200=x", "(8200) may not stand in a query"),
        ("21=x", "(21) must stand in the path, not in the query"),
        ("10=x", "(10) must stand in the path, not in the query"),
        ("01=09521234543213", "(01) is there twice"),
        ("11=261231&11=261231", "(11) is there twice"),
        ("250=x", "(250) needs (21)"),
        ("12=261231", "(12) needs (8020)"),
        ("3922=1", "(3922) needs (30) or (31nn) or (32nn) or (35nn) or (36nn)"),
        ("3922=1&3103=000001", "ok"),
        ("3103=000001&3104=000001", "(3103) and (3104) may not be there together"),
        ("37=1", "(01) and (37) may not be there together"),
        ("253=9521321000018", "ok"),
        ("253=9521321000019", "(253) has a wrong check digit"),
        (
            "8030=abc",
            "(8030) needs (00) or (01) with (21) or (253) or (255) or (8003) or (8004) or (8006) with (21) \
             or (8010) with (8011) or (8017) or (8018)",
        ),
        ("8030=abc&253=9521321000018", "(253) needs its serial, as there is a signature (8030)"),
        ("422=276", "ok"),
        ("422=999", "(422) must be a numeric country code of ISO 3166"),
        ("8013=1987654Ad4X4bL5ttr2310c2K", "ok"),
        ("8013=1987654Ad4X4bL5ttr2310c2L", "(8013) must be a text with its pair of check characters"),
        ("8110=106141416543213150110120", "ok"),
        ("8110=106141416543213150110120920010", "(8110) must be a coupon code of North America"),
    ] {
        assert_eq!(verdict(&format!("/01/{GTIN}?{query}")), text, "{query}");
    }
    for (target, text) in [
        ("/01/09528765123457/21/S?250=x", "ok"),
        ("/01/09528765123457/235/T?10=x", "ok"),
        ("/01/09528765123457/235/T?21=x", "(21) must stand in the path, not in the query"),
        ("/01/09528765123457/10/L?10=L", "(10) is there twice"),
        (
            "/01/09528765123457/21/S?8030=abc&253=9521321000018",
            "(253) needs its serial, as there is a signature (8030)",
        ),
        ("/01/09528765123457/21/S?8030=abc&253=9521321000018A", "ok"),
    ] {
        assert_eq!(verdict(target), text, "{target}");
    }
}

#[test]
fn more_than_64_identifiers_are_refused() {
    let names: Vec<String> = [310, 311, 312, 313, 314, 315, 316, 320, 321, 322, 323, 324, 325]
        .iter()
        .flat_map(|tens| (0..5).map(move |last| format!("{tens}{last}=000001")))
        .collect();
    let target = |count: usize| format!("/01/{GTIN}?{}", names[..count].join("&"));
    assert_eq!(verdict(&target(64)), "more than 64 identifiers");
    assert_eq!(verdict(&target(63)), "(3100) and (3101) may not be there together");
}

#[test]
fn links_are_written_in_every_form() {
    let link = parse("/stem/01/09528765123457/22/2A/10/a%2fb/21/%21c?linkType=gs1:pip").unwrap();
    assert_eq!(link.path(), "/01/09528765123457/22/2A/10/a%2Fb/21/%21c");
    assert_eq!(link.uri("b.example"), "https://b.example/01/09528765123457/22/2A/10/a%2Fb/21/%21c");
    assert_eq!(link.element_string(), "0109528765123457222A\u{1d}10a/b\u{1d}21!c");
    assert_eq!(link.human_readable(), "(01)09528765123457(22)2A(10)a/b(21)!c");
    assert_eq!(link.query(), Some("linkType=gs1:pip"));
    let product = DigitalLink::new(GTIN).unwrap();
    assert_eq!(product.element_string(), "0109528765123457");
    assert_eq!(product.uri("b.example"), "https://b.example/01/09528765123457");
}

#[test]
fn a_link_is_made_of_its_parts() {
    let product = || DigitalLink::new(GTIN).unwrap();
    let item = product().with(Qualifier::Serial, "S/1").unwrap().with(Qualifier::Lot, "L").unwrap();
    assert_eq!(item.path(), "/01/09528765123457/10/L/21/S%2F1");
    assert_eq!(item.clone().with(Qualifier::Lot, "M").unwrap().path(), "/01/09528765123457/10/M/21/S%2F1");
    let third_party = product().with(Qualifier::ThirdParty, "T").unwrap();
    for (result, text) in [
        (DigitalLink::new("9528765123457"), "(01) has 13 characters; it must have 14"),
        (product().with(Qualifier::Serial, ""), "(21) has no value"),
        (
            product().with(Qualifier::Serial, "a b"),
            "(21) has a character that this identifier does not allow",
        ),
        (
            third_party.with(Qualifier::Lot, "L"),
            "(10) may not stand there: a GTIN is followed by 22, 10 and 21 in this order, or by 235 alone",
        ),
        (
            item.with(Qualifier::ThirdParty, "T"),
            "(235) may not stand there: a GTIN is followed by 22, 10 and 21 in this order, or by 235 alone",
        ),
    ] {
        assert_eq!(result.unwrap_err().to_string(), text);
    }
}

#[test]
fn nothing_is_copied_that_is_not_encoded() {
    let link = parse("/01/09528765123457/10/L/21/a%2Fb").unwrap();
    assert!(matches!(link.gtin, Cow::Borrowed(_)));
    let borrowed = link.values.iter().flatten().map(|value| matches!(value, Cow::Borrowed(_)));
    assert_eq!(borrowed.collect::<Vec<_>>(), [true, false]);
}

const VALUE: &str = r#"[!"%&'()*+,\-./0-9:;<=>?A-Z_a-z]{1,20}"#;

proptest! {
    #[test]
    fn no_text_panics(path in ".{0,80}", query in ".{0,80}") {
        let _ = DigitalLink::parse(&path, Some(&query));
    }

    #[test]
    fn no_text_that_looks_like_a_link_panics(
        path in r#"(/(01|10|21|22|235|414|09528765123457|[ -~é]{0,4})){0,8}"#,
        query in r#"((10|21|01|11|253|422|8003|8008|8013|8030|8110|[0-9]{2,4})=[ -~é]{0,20}&?){0,4}"#,
    ) {
        if let Ok(link) = DigitalLink::parse(&path, Some(&query)) {
            prop_assert_eq!(link.query(), Some(query.as_str()));
            prop_assert!(path.starts_with(link.stem()));
        }
    }

    #[test]
    fn what_is_written_is_read_again(
        lot in proptest::option::of(VALUE),
        serial in proptest::option::of(VALUE),
        variant in proptest::option::of(VALUE),
    ) {
        let mut link = DigitalLink::new(GTIN).unwrap();
        for (qualifier, value) in
            [(Qualifier::Serial, serial), (Qualifier::Lot, lot), (Qualifier::Variant, variant)]
        {
            if let Some(value) = value {
                link = link.with(qualifier, value).unwrap();
            }
        }
        let path = link.path();
        prop_assert_eq!(&DigitalLink::parse(&path, None).unwrap(), &link);
        prop_assert_eq!(DigitalLink::parse(&format!("/a{path}/"), None).unwrap().path(), path);
    }
}
