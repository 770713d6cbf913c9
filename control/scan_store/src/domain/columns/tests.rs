use proptest::prelude::*;

use super::*;

fn scan() -> Value {
    json!({
        "customFields": {"shortDomain": "tn.gg", "shortId": "aBc"},
        "tags": [],
        "context": {"ipAddress": "203.0.113.7", "userAgent": "x/1", "userAgentName": "X", "city": "Bern",
            "countryCode": "CH", "language": "de", "entryUrl": "https://tn.gg/aBc"},
        "locationSource": "geoIp",
        "location": {"latitude": 46.5, "longitude": 7.5},
        "reactions": [],
        "scanSource": "edge",
    })
}

fn members(doc: Value) -> Map<String, Value> {
    let Value::Object(members) = doc else { panic!("no object") };
    members
}

#[test]
fn scans_of_one_link_share_all_texts_but_those_that_differ() {
    let one = Columns::of(None, &members(scan())).unwrap();
    assert_eq!((one.short_id.as_deref(), one.entry.as_deref()), (Some("aBc"), None));
    assert_eq!(one.ip.as_deref(), Some(&[203, 0, 113, 7][..]));
    let mut other = scan();
    other["context"]["ipAddress"] = json!("2001:db8::1");
    other["context"]["entryUrl"] = json!("https://tn.gg/xYz?utm=1");
    other["customFields"]["shortId"] = json!("xYz");
    let two = Columns::of(None, &members(other)).unwrap();
    assert_eq!(two.entry.as_deref(), Some("?utm=1"));
    assert_eq!(one.texts().collect::<Vec<_>>(), two.texts().collect::<Vec<_>>());
    let facets = Kind::Place.facets(one.place.as_deref().unwrap());
    assert_eq!(facets, ["context.city=Bern", "context.countryCode=CH"]);
    assert_eq!(Kind::Shape.facets(&one.shape), ["customFields.shortDomain=tn.gg"]);
}

#[test]
fn serials_of_one_product_share_all_texts() {
    let of = |url: &str, serial: &str| {
        let mut doc = scan();
        doc["context"]["entryUrl"] = json!(url);
        doc["customFields"]["shortId"] = json!("01/09521234543213");
        doc["serial"] = json!(serial);
        let columns = Columns::of(None, &members(doc.clone())).unwrap();
        assert_eq!(Value::Object(columns.document().unwrap().1), doc, "{url}");
        columns
    };
    let one = of("https://tn.gg/01/09521234543213/21/A%2F1?x=1", "A/1");
    let two = of("https://tn.gg/01/09521234543213/10/L/21/B/", "B");
    assert_eq!(one.shape, two.shape);
    assert_ne!(of("https://tn.gg/01/09521234543213", "C").shape, one.shape);
}

#[test]
fn an_erased_text_is_a_document_without_its_person() {
    let mut columns = Columns::of(None, &members(scan())).unwrap();
    let erased = |kind: Kind, text: &Option<String>| text.as_deref().map(|text| kind.erased(text));
    columns.agent = erased(Kind::Agent, &columns.agent);
    columns.place = erased(Kind::Place, &columns.place);
    columns.language = erased(Kind::Language, &columns.language);
    let (_, doc) = columns.document().unwrap();
    let expected = json!({"ipAddress": "203.0.113.7", "userAgentName": "X", "city": "Bern", "countryCode": "CH",
        "entryUrl": "https://tn.gg/aBc"});
    assert_eq!((&doc["context"], &doc["locationSource"]), (&expected, &json!("unknown")));
    assert_eq!(doc.get("location"), None);
    // What is written again of it fits into columns, too.
    assert!(Columns::of(None, &doc).is_some());
    assert_eq!(Kind::Shape.erased(&columns.shape), columns.shape);
    assert_eq!(Kind::Place.facets(columns.place.as_deref().unwrap()).len(), 2);
}

#[test]
fn what_differs_from_most_comes_back_too() {
    let product = "UKXAGyEf8SQ5eTDmVgGpHqAa".parse().ok();
    for (path, value) in [
        ("/context/entryUrl", json!("https://tn.gg/01/7612345?x=1")),
        ("/context/entryUrl", json!("https://tn.gg/")),
        ("/context/entryUrl", json!("https://tn.gg")),
        ("/context/entryUrl", json!("https://tn.gg//aBc")),
        ("/context/entryUrl", json!("https://tn.gg/aBcd")),
        ("/context/entryUrl", json!(7)),
        ("/context/ipAddress", json!("::ffff:1.2.3.4")),
        ("/context/ipAddress", json!("nowhere")),
        ("/context/language", json!(null)),
        ("/context/language", json!("")),
        ("/context", json!({})),
        ("/context", json!("x")),
        ("/customFields", json!({})),
        ("/customFields/shortId", json!(true)),
        (
            "/reactions",
            json!([{"type": "redirection", "rule": {"index": 3}, "redirectUrl": "https://e.com/"}]),
        ),
        ("/reactions", json!([{"redirectUrl": 7}])),
        ("/reactions", json!([{}, {}])),
        ("/scanSource", json!({"product": 1, "prefix": "x"})),
    ] {
        let mut doc = scan();
        *doc.pointer_mut(path).unwrap() = value;
        let doc = members(doc);
        let columns = Columns::of(product, &doc).unwrap_or_else(|| panic!("{doc:?}"));
        assert_eq!(columns.document(), Some((product, doc)));
    }
}

proptest! {
    #[test]
    fn entry_urls_come_back(url in "[a-z:/?#&]{0,12}|https://a/[ab/?#&]{0,6}", short_id in proptest::option::of("[ab]{0,3}")) {
        let (prefix, entry) = split_entry(&url, short_id.as_deref());
        prop_assert_eq!(entry_url(prefix.as_deref(), short_id.as_deref(), entry.as_deref()), Some(url));
    }
}
