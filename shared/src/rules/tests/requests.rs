//! Conditions on what a request says: tables, and a comparison with an evaluator that is written another way.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use jiff::{Timestamp, tz::TimeZoneDatabase};
use proptest::{prelude::*, sample::select};

use super::*;

fn holds(condition: &str, scan: &Scan) -> bool {
    Matcher::parse(condition).unwrap_or_else(|faults| panic!("{condition}: {faults:?}")).holds(scan)
}

#[test]
fn conditions_on_requests() {
    let nowhere = nowhere();
    for (condition, known, unknown) in [
        ("region=North Rhine-Westphalia&context.region~North", true, false),
        ("region=Bavaria", false, false),
        ("device=phone", true, false),
        ("device=tablet|desktop", false, false),
        ("device!=robot", true, true),
        ("languages=de", true, false),
        ("languages=EN", true, false),
        ("languages=de-at", true, false),
        ("languages~de-a", true, false),
        ("languages=fr", false, false),
        ("languages!=fr", true, true),
        ("languages=it", false, false),
        ("languages.en=0.8&languages.DE>=1", true, false),
        ("languages.en>0.8", false, false),
        ("languages.fr<0.1", true, false),
        ("languages.it<1", false, false),
        ("refererHost=example.com", true, false),
        ("refererHost=WWW.example.com", true, false),
        ("refererHost=example.com.", true, false),
        ("refererHost=ample.com", false, false),
        ("refererHost=a.www.example.com", false, false),
        ("refererHost=com", true, false),
        ("refererHost~WWW.ex", true, false),
        ("refererHost~example", false, false),
        ("query.ref=poster", true, false),
        ("query.ref=a+b c", true, false),
        ("query.ref=Poster", false, false),
        ("query.ref~po", true, false),
        ("query.Ref=poster", false, false),
        ("query.empty=", true, false),
        ("query.empty~", true, false),
        ("query.none~", false, false),
        ("query.none!~", true, true),
        ("query.size=42", true, false),
        ("network=192.0.2.0/24", true, false),
        ("network=192.0.2.7", true, false),
        ("network=192.0.2.77/24", true, false),
        ("network=::ffff:192.0.2.0/120", true, false),
        ("network=192.0.3.0/24|2001:db8::/32", false, false),
        ("network=0.0.0.0/0", true, false),
        ("network=::/0", false, false),
        ("network!=10.0.0.0/8", true, true),
        ("asNumber=15169", true, false),
        ("asNumber=64512|AS15169", true, false),
        ("asNumber!=64512", true, true),
        ("percentage<50", true, false),
        ("percentage<25", false, false),
        ("percentage<25.01&percentage>=25", true, false),
        ("percentage.banner>=25", true, false),
        ("percentage>=100", false, false),
        // 01:46 of Tuesday.
        ("hour.Europe/Berlin=1&weekday.Europe/Berlin=2", true, true),
        ("hour.America/New_York=19&weekday.America/New_York=1", true, true),
        ("hour.europe/berlin<1", false, false),
    ] {
        assert_eq!(holds(condition, &scan()), known, "{condition}");
        assert_eq!(holds(condition, &nowhere), unknown, "{condition}, of which little is known");
    }
    let mapped = Scan { ip: Some("::ffff:192.0.2.7".parse().unwrap()), ..scan() };
    assert!(holds("network=192.0.2.0/24", &mapped), "an address of IPv4 that comes as IPv6");
}

/// Each list is at its limit; a request costs no more than that it is parsed once, and one comparison for each condition.
#[test]
fn a_request_is_parsed_once_for_all_conditions() {
    let list = |owner| RuleList {
        owner,
        rules: vec![rule("languages=xx|languages.xx>0|refererHost=a.example|query.x=1", None); MAX_RULES],
    };
    let scan = scan();
    let compiled = compile(vec![list(None), list(owner(THNG, PROJECT))]);
    assert!(compiled.first(&scan).is_none());
    assert_eq!(scan.asked.get(), 3, "languages, referer and query");
    // What is behind the bounds is not read, by rules and by what explains them alike.
    let many = |one: &str, count: usize, last: &str| -> Option<&'static str> {
        Some(format!("{}{last}", one.repeat(count)).leak())
    };
    for (less, is_read) in [(1, true), (0, false)] {
        let headers = Headers {
            accept_language: many("de,", MAX_LANGUAGES - less, "fr"),
            query: many("a&", MAX_PARAMETERS - less, "b"),
            ..Headers::default()
        };
        let scan = Scan { headers, ..super::scan() };
        for condition in ["languages=fr", "languages.fr>0", "query.b~"] {
            assert_eq!(holds(condition, &scan), is_read, "{condition}");
            assert_eq!(rule(condition, None).explain(&scan).unwrap().holds, is_read, "{condition}");
        }
    }
}

#[test]
fn hours_and_days_are_those_of_utc() {
    for (at, hour, weekday) in [
        (0, 0, 4),
        (3_600_000, 1, 4),
        (86_399_999, 23, 4),
        (86_400_000, 0, 5),
        (-1, 23, 3),
        (-86_400_001, 23, 2),
        // 2024-02-29 12:00:00, a Thursday.
        (1_709_208_000_000, 12, 4),
        // 2026-11-22 00:00:00, a Sunday.
        (1_795_305_600_000, 0, 7),
    ] {
        let facts = Scan { at, ..scan() };
        let matcher = Matcher::parse(&format!("hour={hour}&weekday={weekday}")).unwrap();
        assert!(matcher.holds(&facts), "{at}: {hour} {weekday}");
    }
}

#[test]
fn two_halves_divide_exactly() {
    for place in 0..PLACES {
        let scan = Scan { place: Some(place), ..scan() };
        assert!(holds("percentage<50", &scan) != holds("percentage>=50", &scan), "{place}");
        // A third, and the rest of it.
        assert!(holds("percentage<33.33", &scan) != holds("percentage>=33.33", &scan), "{place}");
        assert_eq!(holds("percentage<33.33", &scan), place < 3_333, "{place}");
    }
}

#[test]
fn every_fault_of_a_condition_is_named() {
    for (condition, expected) in [
        ("region<a", &["the field region cannot be compared in this way"][..]),
        ("device=watch", &["the field device is one of phone, tablet, desktop, robot"]),
        ("device~ph", &["the field device cannot be compared in this way"]),
        ("query=a", &["there is no field query; rules may use thng, "]),
        ("query.=a", &["the field query. must name a parameter of 1 to 128 bytes"]),
        ("query.access_token=a", &["the field query.access_token cannot be asked for"]),
        ("query.Access_Token~", &["the field query.Access_Token cannot be asked for"]),
        ("query.a>1", &["the field query.a cannot be compared in this way"]),
        ("languages.=1", &["the field languages. must name a language"]),
        ("languages.de_AT=1", &["the field languages.de_AT must name a language"]),
        ("languages.de>1.5", &["the field languages.de is compared with a number from 0 to 1"]),
        ("languages.de~1", &["the field languages.de cannot be compared in this way"]),
        ("refererHost=https://example.com/", &["the field refererHost is compared with a host"]),
        ("refererHost=", &["the field refererHost is compared with a host"]),
        ("refererHost=.", &["the field refererHost is compared with a host"]),
        ("network=10.0.0.0/33", &["the field network is compared with an address or a network"]),
        ("network=example.com", &["the field network is compared with an address or a network"]),
        ("network~10.", &["the field network cannot be compared in this way"]),
        ("asNumber>1", &["the field asNumber cannot be compared in this way"]),
        ("asNumber~1", &["the field asNumber cannot be compared in this way"]),
        ("asNumber=1.5", &["the field asNumber is compared with the number of an autonomous system"]),
        ("asNumber=4294967296", &["the field asNumber is compared with the number of an autonomous system"]),
        ("percentage=50", &["the field percentage cannot be compared in this way"]),
        ("percentage<101", &["the field percentage is compared with a number from 0 to 100"]),
        ("percentage<half", &["the field percentage is compared with a number from 0 to 100"]),
        ("percentage.<50", &["the field percentage. must have 1 to 64 letters"]),
        ("percentage.a b<50", &["the field percentage.a b must have 1 to 64 letters"]),
        ("hour.Berlin=1", &["there is no time zone Berlin; write a name such as Europe/Berlin"]),
        ("weekday.=1", &["there is no time zone ; write a name"]),
        ("hour.Europe/Berlin=noon", &["the field hour.Europe/Berlin is compared with a number"]),
        // All at once, and the same one once.
        (
            "device=watch&(network=x|colour=red)&!hour.Nowhere=1&colour=blue",
            &[
                "the field device is one of",
                "the field network is compared",
                "there is no field colour",
                "there is no time zone Nowhere",
            ],
        ),
    ] {
        let faults = Matcher::parse(condition).unwrap_err();
        assert_eq!(faults.len(), expected.len(), "{condition}: {faults:?}");
        for (fault, expected) in faults.iter().zip(expected) {
            assert!(fault.member == "match" && fault.what.starts_with(expected), "{condition}: {fault}");
        }
    }
    let long = format!("query.{}=1", "a".repeat(129));
    assert!(Matcher::parse(&long).is_err());
    assert!(Matcher::parse(&long.replacen('a', "", 1)).is_ok());
}

/// What a request is made of; texts are leaked, because the scan of the tests has them for ever.
#[derive(Debug, Clone)]
struct Request {
    languages: Vec<(&'static str, u16)>,
    query: Vec<(&'static str, &'static str)>,
    host: Option<&'static str>,
    ip: IpAddr,
    place: u16,
    at: i64,
}

const TAGS: [&str; 5] = ["de", "de-AT", "en", "EN-gb", "fr"];
const HOSTS: [&str; 4] = ["example.com", "www.example.com", "notexample.com", "EXAMPLE.org"];
const VALUES: [&str; 5] = ["", "a", "a b", "ä&=+", "A"];
const ZONES: [&str; 4] = ["Europe/Berlin", "America/St_Johns", "Asia/Kolkata", "Pacific/Apia"];

fn address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        (0_u32..1_024).prop_map(|low| IpAddr::from(Ipv4Addr::from_bits(0x0A00_0000 | low))),
        (0_u32..1_024).prop_map(|low| IpAddr::from(Ipv4Addr::from_bits(0x0A00_0000 | low).to_ipv6_mapped())),
        (0_u128..1_024).prop_map(|low| IpAddr::from(Ipv6Addr::from_bits((0x2001_0DB8_u128 << 96) | low))),
    ]
}

fn request() -> impl Strategy<Value = Request> {
    (
        proptest::collection::vec((select(TAGS.to_vec()), 0_u16..=10), 0..4),
        proptest::collection::vec((select(vec!["a", "b c"]), select(VALUES.to_vec())), 0..4),
        proptest::option::of(select(HOSTS.to_vec())),
        address(),
        0..PLACES,
        0_i64..4_102_444_800_000,
    )
        .prop_map(|(languages, query, host, ip, place, at)| Request {
            languages,
            query,
            host,
            ip,
            place,
            at,
        })
}

impl Request {
    fn scan(&self) -> Scan {
        let leak = |text: String| -> Option<&'static str> { Some(Box::leak(text.into_boxed_str())) };
        let mut encoded = url::form_urlencoded::Serializer::new(String::new());
        encoded.extend_pairs(&self.query);
        let tags =
            self.languages.iter().map(|(tag, tenths)| format!("{tag};q={}.{}", tenths / 10, tenths % 10));
        let headers = Headers {
            accept_language: leak(tags.collect::<Vec<_>>().join(", ")),
            query: leak(encoded.finish()),
            referer: self.host.and_then(|host| leak(format!("https://u@{host}:1/x"))),
        };
        Scan { headers, ip: Some(self.ip), place: Some(self.place), at: self.at, ..scan() }
    }
}

/// A condition as data, and its evaluation in plain words.
#[derive(Debug, Clone)]
enum Naive {
    Accepts(&'static str),
    Prefers(&'static str, u16),
    CameFrom(&'static str),
    Has(&'static str, &'static str),
    Within(IpAddr, u8),
    Below(u16),
    AtHour(&'static str, i8),
    OnDay(&'static str, i8),
}

fn naive() -> impl Strategy<Value = Naive> {
    let tag = || select(TAGS.to_vec());
    let zone = || select(ZONES.to_vec());
    prop_oneof![
        tag().prop_map(Naive::Accepts),
        (tag(), 0_u16..=10).prop_map(|(tag, tenths)| Naive::Prefers(tag, tenths)),
        select(HOSTS.to_vec()).prop_map(Naive::CameFrom),
        (select(vec!["a", "b c", "d"]), select(VALUES.to_vec()))
            .prop_map(|(name, value)| Naive::Has(name, value)),
        (address(), 20_u8..=32).prop_map(|(ip, bits)| {
            Naive::Within(ip.to_canonical(), if ip.to_canonical().is_ipv4() { bits } else { bits + 96 })
        }),
        (0..=PLACES).prop_map(Naive::Below),
        (zone(), 0_i8..24).prop_map(|(zone, hour)| Naive::AtHour(zone, hour)),
        (zone(), 1_i8..=7).prop_map(|(zone, day)| Naive::OnDay(zone, day)),
    ]
}

/// Whether an accepted tag is a language or a variant of it.
fn is_kind_of(accepted: &str, language: &str) -> bool {
    let (accepted, language) = (accepted.to_lowercase(), language.to_lowercase());
    accepted == language || accepted.starts_with(&format!("{language}-"))
}

impl Naive {
    fn condition(&self) -> String {
        let term = |field: String, sign: &str, value: String| -> String {
            let operator =
                if sign == "=" { crate::filter::Operator::Equal } else { crate::filter::Operator::AtLeast };
            Term { field, operator, value: crate::filter::Value::new(value) }.to_string()
        };
        match self {
            Self::Accepts(tag) => term("languages".into(), "=", (*tag).into()),
            Self::Prefers(tag, tenths) => {
                term(format!("languages.{tag}"), ">=", format!("{}.{}", tenths / 10, tenths % 10))
            }
            Self::CameFrom(host) => term("refererHost".into(), "=", (*host).into()),
            Self::Has(name, value) => term(format!("query.{name}"), "=", (*value).into()),
            Self::Within(ip, bits) => term("network".into(), "=", format!("{ip}/{bits}")),
            Self::Below(place) => format!("percentage<{}.{:02}", place / 100, place % 100),
            Self::AtHour(zone, hour) => term(format!("hour.{zone}"), "=", hour.to_string()),
            Self::OnDay(zone, day) => term(format!("weekday.{zone}"), "=", day.to_string()),
        }
    }

    fn holds(&self, request: &Request) -> bool {
        // Milliseconds since 1970 on the clocks there.
        let there = |zone: &str| {
            let zone = TimeZoneDatabase::bundled().get(zone).unwrap();
            let offset = zone.to_offset(Timestamp::from_millisecond(request.at).unwrap());
            UnixMillis(request.at + i64::from(offset.seconds()) * 1_000)
        };
        match self {
            Self::Accepts(tag) => {
                request.languages.iter().any(|(accepted, tenths)| *tenths > 0 && is_kind_of(accepted, tag))
            }
            Self::Prefers(tag, least) => {
                let mine = request.languages.iter().filter(|(accepted, _)| is_kind_of(accepted, tag));
                mine.map(|(_, tenths)| *tenths).max().is_some_and(|best| best >= *least)
            }
            Self::CameFrom(host) => request.host.is_some_and(|from| {
                let (from, host) = (from.to_lowercase(), host.to_lowercase());
                from == host || from.ends_with(&format!(".{host}"))
            }),
            Self::Has(name, value) => request.query.contains(&(*name, *value)),
            Self::Within(network, bits) => match (network, request.ip.to_canonical()) {
                (IpAddr::V4(network), IpAddr::V4(ip)) => {
                    let shift = 32 - u32::from(*bits);
                    u64::from(network.to_bits()) >> shift == u64::from(ip.to_bits()) >> shift
                }
                (IpAddr::V6(network), IpAddr::V6(ip)) => {
                    let differ = network.to_bits() ^ ip.to_bits();
                    differ.leading_zeros() >= u32::from(*bits)
                }
                (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
            },
            Self::Below(place) => request.place < *place,
            Self::AtHour(zone, hour) => super::super::hour(there(zone)) == i64::from(*hour),
            Self::OnDay(zone, day) => super::super::weekday(there(zone)) == i64::from(*day),
        }
    }
}

proptest! {
    /// The compiled condition, its opposite and its explanation agree with the plain evaluation.
    #[test]
    fn conditions_agree_with_a_naive_evaluation(request in request(), naive in naive()) {
        let (condition, scan) = (naive.condition(), request.scan());
        let expected = naive.holds(&request);
        prop_assert_eq!(holds(&condition, &scan), expected, "{}", &condition);
        prop_assert_eq!(holds(&format!("!({condition})"), &scan), !expected, "{}", &condition);
        let explained = rule(&condition, None).explain(&scan).unwrap();
        prop_assert_eq!(explained.holds, expected, "{}", &condition);
    }

    /// Whatever somebody sends or writes, nothing panics.
    #[test]
    fn no_input_panics(condition: String, header: String, at: i64) {
        let text: &'static str = Box::leak(header.into_boxed_str());
        let headers =
            Headers { accept_language: Some(text), referer: Some(text), query: Some(text) };
        let scan = Scan { headers, at, ..scan() };
        for condition in [
            "languages=de&languages.de>0&refererHost=a.b&query.a~",
            "hour.Europe/Berlin=1|weekday.Asia/Tokyo=1|hour=1",
        ] {
            holds(&condition.replace('&', "|"), &scan);
        }
        let _ = Matcher::parse(&condition).map(|matcher| matcher.holds(&scan));
        let _ = Field::parse(&condition);
        let _ = query_parameters(text);
    }
}
