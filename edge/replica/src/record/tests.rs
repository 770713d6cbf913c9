use proptest::prelude::*;
use shared::availability::Availability;

use super::*;

fn link(fold: bool, kind: usize, thng: u8, texts: (&str, Option<&str>), times: (i64, i64)) -> Redirect {
    let risk = |n: i64| Risk::ALL[(n % 4).unsigned_abs() as usize];
    let id = |n: i64| shared::id::compose(n, [7; 16]);
    let text = |n| String::from_utf8(id(n).to_vec()).unwrap();
    Redirect {
        domain: "tn.gg".parse().unwrap(),
        short_id: if fold { "K7Q2" } else { "k7q2" }.parse().unwrap(),
        resource_type: TYPES[kind],
        platform_id: text(times.0).parse().unwrap(),
        thng_id: (thng > 0).then(|| text(if thng == 1 { times.0 } else { 9 }).parse().unwrap()),
        product_id: (kind > 1).then(|| text(5).parse().unwrap()),
        thng_name: texts.1.map(Into::into),
        standing: Standing {
            commission: COMMISSIONS.get(kind).copied(),
            verdict: (thng == 2).then(|| Verdict {
                authentication: Authenticity::ALL[kind],
                counterfeit: risk(times.0),
                gray_market: risk(times.1),
            }),
        },
        projects: (0..i64::from(thng)).map(|n| text(n).parse().unwrap()).collect(),
        target: texts.0.into(),
        forward_query: fold,
        status_code: RedirectStatus::default(),
        availability: None,
        digital_link: None,
        created_at: UnixMillis(times.0),
        updated_at: UnixMillis(times.1),
    }
}

fn availability() -> impl Strategy<Value = Availability> {
    let at = || prop::option::of(any::<i64>().prop_map(UnixMillis));
    let url = prop::option::of("https://[a-z]{1,9}\\.example/[ -~é]{0,60}".prop_map(Into::into));
    let limit = (
        prop::option::of(1_u32..),
        prop::collection::btree_map(".{0,9}".prop_map(String::into_boxed_str), any::<u32>(), 0..3),
    );
    (at(), at(), limit, any::<bool>(), url)
        .prop_map(|(valid_from, valid_until, (max_scans, scans), is_paused, ended_url)| Availability {
            valid_from,
            valid_until,
            max_scans,
            scans,
            is_paused,
            ended_url,
        })
        // Control gives a link none that is empty, and a record has no form for it.
        .prop_filter("some member is set", |availability| !availability.is_empty())
}

proptest! {
    #[test]
    fn records_round_trip(
        fold: bool, kind in 0..4_usize, thng in 0..3_u8, target in "https://[a-z]{1,9}\\.example/[ -~é]{0,60}",
        name in prop::option::of(".{0,30}"), created in 0..2_000_000_000_000_i64, updated: i64, rev: u64, room: bool,
        availability in prop::option::of(availability()), status in 0..RedirectStatus::ALL.len(),
    ) {
        let dictionary = if room { Dictionary::new() } else {
            Dictionary { domains: Names::new(5), templates: Names::new(0), ids: Names::new(0) }
        };
        let status_code = RedirectStatus::ALL[status];
        let link = Redirect {
            status_code,
            availability: availability.map(Box::new),
            ..link(fold, kind, thng, (&target, name.as_deref()), (created, updated))
        };
        let record = encode(&dictionary, &RedirectKey::new("tn.gg", "K7Q2"), rev, &link).unwrap();
        prop_assert_eq!(length(&record), record.len());
        prop_assert_eq!(key(&record), Some((0, &b"K7Q2"[..])));
        prop_assert_eq!(super::rev(&record), Some(rev));
        let location = HeaderValue::from_bytes(target.as_bytes()).unwrap();
        let is_lead = !target.contains('{') && link.availability.is_none();
        let expected = is_lead.then_some(Lead { location, forward_query: fold, status_code });
        prop_assert_eq!(lead(&dictionary, &record), Some((rev, expected)));
        prop_assert_eq!(decode(&dictionary, &record), Some((rev, link)));
        for cut in 0..record.len() {
            let cut = &record[..cut];
            let _ = (decode(&dictionary, cut), lead(&dictionary, cut), length(cut));
        }
    }

    #[test]
    fn any_bytes_are_decoded_without_panic(bytes: Vec<u8>) {
        let dictionary = Dictionary::new();
        dictionary.domains.number("tn.gg");
        prop_assert!(length(&bytes) <= bytes.len());
        let _ = (decode(&dictionary, &bytes), lead(&dictionary, &bytes), key(&bytes), rev(&bytes));
    }
}

#[test]
fn targets_are_cut_where_they_differ() {
    for (target, rest) in [
        ("https://e.com/view?item=4711000000012345", "4711000000012345"),
        ("https://e.com/p/47110815?utm_source=qr", "47110815"),
        ("https://e.com/welcome", "welcome"),
        ("https://e.com/{shortId}", "{shortId}"),
        ("https://e.com/", "com"),
        ("https://e.com/a1/page", "page"),
        ("https://e.com/ab1/é", "ab1"),
    ] {
        let (before, found, behind) = split(target);
        assert_eq!((found, format!("{before}{found}{behind}").as_str()), (rest, target));
    }
}

#[test]
fn a_link_with_a_target_of_60_characters_takes_about_70_bytes() {
    let dictionary = Dictionary::new();
    let target = "https://shop.example.com/products/view?item=4711000000012345";
    let link = link(true, 0, 1, (target, None), (1_790_000_000_000, 1_790_000_000_000));
    let standing = Standing::default();
    let link =
        Redirect { standing, projects: Box::default(), short_id: "K7Q2M4XA9R".parse().unwrap(), ..link };
    let key = RedirectKey::new("tn.gg", "K7Q2M4XA9R");
    let record = encode(&dictionary, &key, 10_000_000, &link).unwrap();
    assert!((60..=72).contains(&record.len()), "{} bytes", record.len());
    let availability = Availability {
        valid_from: Some(UnixMillis(1_790_000_000_000)),
        valid_until: Some(UnixMillis(1_800_000_000_000)),
        ended_url: Some("https://shop.example.com/over?from=47110000".into()),
        ..Availability::default()
    };
    let link = Redirect { availability: Some(Box::new(availability)), ..link };
    let more = encode(&dictionary, &key, 10_000_000, &link).unwrap().len() - record.len();
    assert!((13..=24).contains(&more), "{more} bytes for a window and an ended page");
}

#[test]
fn older_releases_read_up_to_the_target() {
    let dictionary = Dictionary::new();
    let plain = link(true, 0, 1, ("https://e.com/a1b2c3", None), (5, 5));
    let availability = Availability { is_paused: true, ..Availability::default() };
    let paused = Redirect { availability: Some(Box::new(availability)), ..plain.clone() };
    let moved = Redirect { status_code: RedirectStatus::MovedPermanently, ..plain.clone() };
    let both = Redirect { status_code: RedirectStatus::PermanentRedirect, ..paused.clone() };
    let key = RedirectKey::new("tn.gg", "K7Q2");
    let record = |link| encode(&dictionary, &key, 9, link).unwrap();
    let plain = record(&plain);
    // All lengths take one byte, and nothing but the end differs.
    for (link, end) in [(&paused, 0b0000_0100), (&moved, 0b0001_0000), (&both, 0b0011_0100)] {
        let with = record(link);
        assert_eq!((&with[1..plain.len()], &with[plain.len()..]), (&plain[1..], &[end][..]));
    }
}

#[test]
fn typed_links_are_kept_and_give_no_lead() {
    let dictionary = Dictionary::new();
    let plain = link(true, 1, 0, ("https://e.com/a1b2c3", None), (5, 5));
    let set = serde_json::from_str(
        r#"{"description":"A bag","serialMode":"template","links":[
            {"linkType":"gs1:pip","href":"https://e.com/{21}","title":"Bag","hreflang":["de"],"default":true}]}"#,
    );
    let short_id = "01/09528765123457/10/l%2F1";
    let link = Redirect { short_id: short_id.parse().unwrap(), digital_link: Some(set.unwrap()), ..plain };
    let limit =
        Availability { max_scans: Some(5), scans: [("e1".into(), 2)].into(), ..Availability::default() };
    let limited = Redirect { availability: Some(Box::new(limit)), ..link.clone() };
    for link in [link, limited] {
        let record = encode(&dictionary, &RedirectKey::new("tn.gg", short_id), 9, &link).unwrap();
        assert_eq!(lead(&dictionary, &record), Some((9, None)));
        assert_eq!(decode(&dictionary, &record), Some((9, link)));
    }
}
