use super::*;

#[test]
fn levels_are_those_of_the_path() {
    let read = |path: &str, mode| Asked::read(path, None, None, None).unwrap().levels(mode).join(" ");
    let product = "01/09528765123457";
    for (rest, mode, expected) in [
        ("", SerialMode::Known, ""),
        ("/21/A%2FB", SerialMode::Known, "/21/A%2FB"),
        ("/21/A", SerialMode::None, ""),
        ("/21/A", SerialMode::Template, ""),
        ("/10/L/21/A", SerialMode::Overrides, "/21/A /10/L"),
        ("/22/V/10/L/21/A", SerialMode::Known, "/21/A /22/V/10/L /10/L /22/V"),
        ("/22/V", SerialMode::Known, "/22/V"),
        ("/235/X", SerialMode::Known, "/235/X"),
    ] {
        let expected: Vec<_> = expected.split(' ').filter(|level| !level.is_empty()).collect();
        let expected: Vec<_> = expected.into_iter().map(|level| format!("{product}{level}")).collect();
        assert_eq!(read(&format!("/some/stem/{product}{rest}"), mode), expected.join(" "), "{rest}");
    }
}

#[test]
fn a_scan_says_whether_its_serial_was_issued() {
    for (path, mode, has_item, known) in [
        ("/01/09528765123457/21/S", SerialMode::Known, true, Some(true)),
        ("/01/09528765123457/21/S", SerialMode::Known, false, Some(false)),
        ("/01/09528765123457/21/S", SerialMode::Overrides, true, Some(true)),
        ("/01/09528765123457/21/S", SerialMode::Overrides, false, None),
        ("/01/09528765123457/21/S", SerialMode::None, false, None),
        ("/01/09528765123457", SerialMode::Known, false, None),
    ] {
        let set = LinkSet { description: "A bag".into(), serial_mode: mode, links: Vec::new() };
        let level = |id| Level { id, set: &set, thng_id: None };
        let product = level("01/09528765123457");
        let levels = if has_item { vec![level("01/09528765123457/21/S"), product] } else { vec![product] };
        let asked = Asked::read(path, None, None, None).unwrap();
        let scanned = asked.scanned("gs1:pip", &levels);
        assert_eq!(scanned.known, known, "{path} {mode:?} {has_item}");
        let serial = if path.ends_with("/S") { "S" } else { "" };
        assert_eq!((scanned.gtin, scanned.values), ("09528765123457", ["", "", serial, "gs1:pip"]));
    }
}

#[test]
fn a_target_has_the_values_of_the_path_and_the_thng_of_the_item() {
    let asked = Asked::read("/01/09528765123457/10/L/21/A&B", None, None, None).unwrap();
    let link = |href: &str| TypedLink {
        link_type: "gs1:pip".into(),
        href: href.into(),
        title: "Page".into(),
        media_type: None,
        hreflang: Vec::new(),
        context: Vec::new(),
        from: None,
        to: None,
        default: true,
    };
    for (mode, expected) in [
        (SerialMode::None, "https://a.example/09528765123457/?l=L&t=T"),
        (SerialMode::Template, "https://a.example/09528765123457/A%26B?l=L&t=T"),
        (SerialMode::Known, "https://a.example/09528765123457/A%26B?l=L&t=T"),
    ] {
        let of = |links| LinkSet { description: "A bag".into(), serial_mode: mode, links };
        let (item, product) =
            (of(Vec::new()), of(vec![link("https://a.example/{01}/{21}?l={10}&t={thngId}")]));
        let levels = [
            Level { id: "01/09528765123457/21/A&B", set: &item, thng_id: Some("T") },
            Level { id: "01/09528765123457", set: &product, thng_id: None },
        ];
        let Lead::To { level, location, .. } = asked.lead(&levels, UnixMillis(0)) else { panic!("{mode:?}") };
        assert_eq!((level, location.as_str(), counted(&levels, level)), (1, expected, 0), "{mode:?}");
    }
}
