mod requests;

use std::{cell::Cell, net::IpAddr};

use proptest::prelude::*;

use super::*;
use crate::{
    filter::{Expr, Term},
    time::UnixMillis,
};

const THNG: &str = "UKXAGyEf8SQ5eTDmVgGpHqAa";
const PROJECT: &str = "UMe8gsKVBfgRtKRaagBefgwk";
const OTHER: &str = "UMe8gsKVBfgRtKRaagBefgwm";

/// A scan of which everything is known, or nothing but what always is.
struct Scan {
    projects: Vec<ProjectId>,
    language: Option<&'static str>,
    headers: Headers,
    ip: Option<IpAddr>,
    /// Its place in every division.
    place: Option<u16>,
    at: i64,
    knows_place: bool,
    asked: Cell<u32>,
}

/// What a request says that only some conditions read.
#[derive(Clone, Copy, Default)]
struct Headers {
    accept_language: Option<&'static str>,
    referer: Option<&'static str>,
    query: Option<&'static str>,
}

impl Facts for Scan {
    fn text(&self, field: Text) -> Option<&str> {
        self.asked.set(self.asked.get() + 1);
        match field {
            Text::Thng => Some(THNG),
            Text::ThngName => Some("Left shoe (red)"),
            Text::Product => None,
            Text::CommissionState => Some("commissioned"),
            Text::Assessment => Some("suspicious"),
            Text::Counterfeit => Some("suspected"),
            Text::GrayMarket => None,
            Text::ActionType => Some("implicitScans"),
            Text::Country => Some("DE").filter(|_| self.knows_place),
            Text::Region => Some("North Rhine-Westphalia").filter(|_| self.knows_place),
            Text::City => Some("Köln").filter(|_| self.knows_place),
            Text::AgentName => Some("Safari"),
            Text::SystemName => Some("iPhone"),
            Text::Device => Some("phone").filter(|_| self.knows_place),
            Text::ShortDomain => Some("tn.gg"),
            Text::ShortId => Some("K7Q2M4XA9R"),
        }
    }

    fn projects(&self) -> &[ProjectId] {
        &self.projects
    }

    fn language(&self) -> Option<&str> {
        self.language
    }

    fn accept_language(&self) -> Option<&str> {
        self.asked.set(self.asked.get() + 1);
        self.headers.accept_language
    }

    fn referer(&self) -> Option<&str> {
        self.asked.set(self.asked.get() + 1);
        self.headers.referer
    }

    fn query(&self) -> Option<&str> {
        self.asked.set(self.asked.get() + 1);
        self.headers.query
    }

    fn address(&self) -> Option<IpAddr> {
        self.ip
    }

    fn as_number(&self) -> Option<u32> {
        Some(15_169).filter(|_| self.knows_place)
    }

    fn place(&self, _division: &str) -> Option<u16> {
        self.place
    }

    fn time(&self) -> UnixMillis {
        UnixMillis(self.at)
    }
}

/// Monday, 2026-09-21, 23:46:40 UTC.
fn scan() -> Scan {
    Scan {
        projects: vec![PROJECT.parse().unwrap()],
        language: Some("de-AT"),
        headers: Headers {
            accept_language: Some("de-AT,en;q=0.8,fr;q=0"),
            referer: Some("https://www.Example.com:8443/a?b"),
            query: Some("ref=poster&size=42&ref=a%2Bb+c&empty"),
        },
        ip: Some([192, 0, 2, 7].into()),
        place: Some(2_500),
        at: 1_790_034_400_000,
        knows_place: true,
        asked: Cell::new(0),
    }
}

/// The same scan, of which little is known.
fn nowhere() -> Scan {
    let (language, headers) = (None, Headers::default());
    Scan { knows_place: false, language, headers, ip: None, place: None, projects: Vec::new(), ..scan() }
}

#[test]
fn conditions_on_known_and_unknown_facts() {
    let nowhere = nowhere();
    for (condition, known, unknown) in [
        (format!("thng={THNG}"), true, true),
        (format!("thng.id={OTHER}"), false, false),
        ("thng.name=Left shoe (red)".to_owned(), true, true),
        ("thng.name=left shoe (red)".to_owned(), false, false),
        ("thng.name~Left".to_owned(), true, true),
        ("assessment=suspicious".to_owned(), true, true),
        ("assessment.counterfeitStatus=suspected|assessment=negative".to_owned(), true, true),
        ("assessment.grayMarketStatus=none".to_owned(), false, false),
        ("commissionState=commissioned".to_owned(), true, true),
        ("commissionState!=commissioned".to_owned(), false, false),
        ("commissionState=not_commissioned".to_owned(), false, false),
        (format!("product={THNG}"), false, false),
        (format!("product!={THNG}"), true, true),
        (format!("project={PROJECT}"), true, false),
        (format!("project={OTHER}"), false, false),
        ("type=implicitScans".to_owned(), true, true),
        ("type=scans".to_owned(), false, false),
        ("country=DE".to_owned(), true, false),
        ("country=de".to_owned(), true, false),
        ("country!=FR".to_owned(), true, true),
        ("context.countryCode=DE&city=Köln".to_owned(), true, false),
        ("city=köln".to_owned(), false, false),
        ("context.city~Kö|country=FR".to_owned(), true, false),
        ("userAgentName=Safari&operatingSystemName=iPhone".to_owned(), true, true),
        ("context.userAgentName=Chrome".to_owned(), false, false),
        ("language=de".to_owned(), true, false),
        ("language=DE-at".to_owned(), true, false),
        ("language=de-a".to_owned(), false, false),
        ("language~de-a".to_owned(), true, false),
        ("language=d".to_owned(), false, false),
        ("language=de-AT-1996".to_owned(), false, false),
        ("language=".to_owned(), false, false),
        ("timestamp>1790034399999&timestamp<1790034400001".to_owned(), true, true),
        ("timestamp=1790034400000".to_owned(), true, true),
        ("timestamp<1790034400000".to_owned(), false, false),
        ("hour=23".to_owned(), true, true),
        ("hour>=8&hour<18".to_owned(), false, false),
        ("weekday=1".to_owned(), true, true),
        ("weekday>5".to_owned(), false, false),
        ("shortDomain=TN.gg&shortId=K7Q2M4XA9R".to_owned(), true, true),
        ("shortId=k7q2m4xa9r".to_owned(), false, false),
        ("!(country=DE|country=AT)".to_owned(), false, true),
    ] {
        let matcher = Matcher::parse(&condition).unwrap();
        assert_eq!(matcher.holds(&scan()), known, "{condition}");
        assert_eq!(matcher.holds(&nowhere), unknown, "{condition}, of which little is known");
    }
}

#[test]
fn conditions_that_could_never_hold_are_refused() {
    for (condition, expected) in [
        ("", "match: expected the name of a field"),
        ("country", "match: expected one of"),
        ("country=DE&", "match: expected the name of a field"),
        ("Country=DE", "match: there is no field Country; rules may use thng, "),
        ("customFields.a=1", "match: there is no field customFields.a"),
        ("thng.tags=x", "match: there is no field thng.tags"),
        ("product.name=x", "match: there is no field product.name"),
        ("commissionState<commissioned", "match: the field commissionState cannot be compared in this way"),
        ("likelyAuthentic=true", "match: the field likelyAuthentic is reserved"),
        ("assessment>positive", "match: the field assessment cannot be compared in this way"),
        ("country<DE", "match: the field country cannot be compared in this way"),
        ("language>de", "match: the field language cannot be compared in this way"),
        ("hour~1", "match: the field hour cannot be compared in this way"),
        ("hour=noon", "match: the field hour is compared with a number"),
        ("timestamp<2026-01-01", "match: the field timestamp is compared with a number"),
    ] {
        let faults = Matcher::parse(condition).unwrap_err();
        assert!(faults.len() == 1 && faults[0].to_string().starts_with(expected), "{condition}: {faults:?}");
    }
}

fn rule(condition: &str, url: Option<&str>) -> Rule {
    Rule { name: None, condition: condition.into(), redirect_url: url.map(Into::into) }
}

fn account() -> AccountId {
    "U000000000000000000000aa".parse().unwrap()
}

fn owner(application: &str, project: &str) -> Option<Owner> {
    Some(Owner { application: application.parse().unwrap(), project: project.parse().unwrap() })
}

/// Compiles; the data of each rule is its target.
fn compile(lists: Vec<RuleList>) -> Compiled<Option<String>> {
    let rules = AccountRules::new(account(), lists);
    Compiled::new(&rules, |_, _, _, target| Ok(target.map(|target| target.as_str().to_owned()))).unwrap()
}

#[test]
fn the_first_rule_that_matches_wins() {
    let url = |n: u8| format!("https://example.com/{n}");
    let list = |conditions: &[&str]| RuleList {
        owner: None,
        rules: conditions.iter().zip(0..).map(|(condition, n)| rule(condition, Some(&url(n)))).collect(),
    };
    for (conditions, expected) in [
        (&["country=FR", "country=DE", "country=DE"][..], Some(1)),
        (&["hour=23", "country=DE"], Some(0)),
        (&["country=FR", "hour=1"], None),
        (&[], None),
    ] {
        let compiled = compile(vec![list(conditions)]);
        let hit = compiled.first(&scan());
        assert_eq!(hit.as_ref().map(|hit| hit.index), expected, "{conditions:?}");
        if let Some(hit) = hit {
            let expected = expected.map(|index| url(u8::try_from(index).unwrap()));
            assert_eq!((hit.made, hit.application), (&expected, None));
        }
    }
    let kept = compile(vec![RuleList {
        owner: None,
        rules: vec![rule("country=DE", None), rule("hour=23", Some("https://example.com/"))],
    }]);
    assert_eq!(kept.first(&scan()).unwrap().made, &None, "a rule without a target wins too");
}

#[test]
fn applications_of_the_projects_come_first_in_order_of_creation() {
    let own = |owner| RuleList { owner, rules: vec![rule("hour=23", None)] };
    let (early, late) = ("U10000000000000000000000", "U20000000000000000000000");
    let lists = vec![own(None), own(owner(late, PROJECT)), own(owner(early, PROJECT))];
    let compiled = compile(lists);
    assert_eq!(compiled.first(&scan()).unwrap().application, Some(early.parse().unwrap()));
    let elsewhere = Scan { projects: vec![OTHER.parse().unwrap()], ..scan() };
    assert_eq!(compiled.first(&elsewhere).unwrap().application, None, "another project's rules do not hold");
    let compiled = compile(vec![own(None), own(owner(early, OTHER)), own(owner(late, PROJECT))]);
    assert_eq!(compiled.first(&scan()).unwrap().application, Some(late.parse().unwrap()));
}

#[test]
fn facts_are_computed_only_when_needed() {
    let scan = scan();
    let compiled = compile(vec![RuleList {
        owner: None,
        rules: vec![rule("hour=1&country=DE", None), rule("weekday=1|city=Köln", None)],
    }]);
    assert_eq!(compiled.first(&scan).unwrap().index, 1);
    assert_eq!(scan.asked.get(), 0);
}

/// Conditions of every form, of which some hold for [`scan`].
fn condition() -> impl Strategy<Value = Expr> {
    let terms = [
        "country=DE",
        "country=FR",
        "language=de",
        "hour=1",
        "hour=23",
        "shortId~K7",
        "product=x",
        "languages=en",
        "query.ref=poster",
        "network=192.0.2.0/24",
        "percentage<30",
        "hour.Asia/Tokyo=8",
    ];
    let term = proptest::sample::select(terms.to_vec()).prop_map(|term| term.parse::<Expr>().unwrap());
    term.prop_recursive(4, 12, 3, |part| {
        let parts = || proptest::collection::vec(part.clone(), 2..4);
        prop_oneof![
            parts().prop_map(Expr::And),
            parts().prop_map(Expr::Or),
            part.clone().prop_map(|part| Expr::Not(Box::new(part))),
        ]
    })
}

proptest! {
    /// A program continues after each test as the trees of its filters do.
    #[test]
    fn compiled_rules_agree_with_filters(conditions in proptest::collection::vec(condition(), 1..5)) {
        let alone = |term: &Term| Matcher::parse(&term.to_string()).unwrap().holds(&scan());
        let expected = conditions.iter().position(|condition| condition.eval(&mut |term| alone(term)));
        let rules = conditions.iter().map(|condition| rule(&condition.to_string(), None)).collect();
        let compiled = compile(vec![RuleList { owner: None, rules }]);
        prop_assert_eq!(compiled.first(&scan()).map(|hit| hit.index), expected);
    }

    /// An explanation comes to the same result as the program, from conditions that come to it as well.
    #[test]
    fn explanations_agree_with_compiled_rules(condition in condition()) {
        let text = condition.to_string();
        let explained = rule(&text, None).explain(&scan()).unwrap();
        prop_assert_eq!(explained.holds, Matcher::parse(&text).unwrap().holds(&scan()));
        prop_assert!(!explained.because.is_empty());
        for (_, one) in &explained.because {
            prop_assert_eq!(Matcher::parse(one).unwrap().holds(&scan()), explained.holds, "{} of {}", one, &text);
        }
    }
}

#[test]
fn an_explanation_names_what_decides() {
    for (condition, holds, because) in [
        ("country=DE", true, &["country=DE"][..]),
        ("country=de&hour=23", true, &["country=de", "hour=23"]),
        // What follows the first condition that fails is not looked at.
        ("hour=1&country=FR", false, &["hour=1"]),
        ("hour=23&country=FR", false, &["country=FR"]),
        ("country=FR|AT", false, &["country=FR", "country=AT"]),
        ("country=FR|DE", true, &["country=DE"]),
        ("country!=DE", false, &["country!=DE"]),
        ("!(country=DE|hour=1)", false, &["country!=DE"]),
        ("!(country=FR&hour=23)", true, &["country!=FR"]),
        ("thng.name~Left&!product=x", true, &["thng.name~Left", "product!=x"]),
        ("(country=FR|language=fr)&hour=1", false, &["country=FR", "language=fr"]),
    ] {
        let explained = rule(condition, None).explain(&scan()).unwrap();
        assert_eq!(explained.holds, holds, "{condition}");
        let found: Vec<&str> = explained.because.iter().map(|(_, condition)| condition.as_str()).collect();
        assert_eq!(found, because, "{condition}");
    }
    assert!(rule("colour=red", None).explain(&scan()).is_err());
}

#[test]
fn every_fault_of_a_rule_set_is_reported() {
    let long = "n".repeat(MAX_NAME + 1);
    for (name, condition, url, expected) in [
        (None, "hour=1", None, &[][..]),
        (Some("n"), "hour=1", Some("https://example.com/{shortId}"), &[]),
        (Some(""), "hour=1", None, &["name must have 1 to 128 bytes"]),
        (Some(&*long), "hour", None, &["name must have 1 to 128 bytes", "match: expected one of"]),
        (None, "hour=1", Some("javascript:alert(1)"), &["redirectUrl must be an absolute http"]),
        (None, "hour=1", Some("https://example.com/{colour}"), &["redirectUrl: holds an unknown tag"]),
    ] {
        let rule = Rule { name: name.map(Into::into), ..rule(condition, url) };
        let faults: Vec<String> =
            rule.check().err().unwrap_or_default().iter().map(ToString::to_string).collect();
        assert_eq!(faults.len(), expected.len(), "{rule:?}: {faults:?}");
        for (fault, expected) in faults.iter().zip(expected) {
            assert!(fault.starts_with(expected), "{rule:?}: {fault}");
        }
    }
}

#[test]
fn sets_are_bounded() {
    let new = |rules: Vec<Rule>| {
        let rules = AccountRules::new(account(), vec![RuleList { owner: None, rules }]);
        Compiled::new(&rules, |_, _, _, _| Ok(())).map(|_| ())
    };
    assert_eq!(new(vec![rule("hour=1", None); MAX_RULES]), Ok(()));
    assert_eq!(new(vec![rule("hour=1", None); MAX_RULES + 1]).unwrap_err(), "rules: at most 100, not 101");
    let five = ["hour=1"; 5].join("|");
    let fault = new(vec![rule(&five, None); MAX_RULES]).unwrap_err();
    assert_eq!(fault, "rules: at most 400 conditions, not 500");
    let fault = new(vec![rule("hour=1", None), rule("nope=1", None)]).unwrap_err();
    assert!(fault.starts_with("rules[1].match: there is no field nope"), "{fault}");
}

#[test]
fn rule_sets_round_trip() {
    let rules = AccountRules::new(
        account(),
        vec![
            RuleList { owner: None, rules: vec![rule("hour=1", Some("https://example.com/"))] },
            RuleList { owner: owner(THNG, PROJECT), rules: vec![] },
        ],
    );
    let text = serde_json::to_string(&rules).unwrap();
    assert_eq!(
        text,
        "{\"account\":\"U000000000000000000000aa\",\"lists\":[{\"rules\":[{\"match\":\"hour=1\",\
         \"redirectUrl\":\"https://example.com/\"}]}]}"
    );
    assert_eq!(serde_json::from_str::<AccountRules>(&text).unwrap(), rules);
    assert_eq!(rules.bytes(), text.len());
}
