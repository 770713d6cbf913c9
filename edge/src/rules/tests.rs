use proptest::prelude::*;
use shared::{
    geo::NoGeoIp,
    redirect::RedirectKey,
    rules::{MAX_NAME, Owner, Rule, RuleList},
};

use super::*;

const APPLICATION: &str = "U5Gq8sKVBfgRtKRaagBefgwk";
const PROJECT: &str = "UMe8gsKVBfgRtKRaagBefgwk";

/// A redirection of a project.
fn served(project: &str) -> Served {
    let record = Redirect {
        projects: [project.parse().unwrap()].into(),
        ..Redirect::plain(
            "tn.gg".parse().unwrap(),
            "ABC".parse().unwrap(),
            "0".repeat(24).parse().unwrap(),
            "https://example.com/",
            UnixMillis(0),
        )
    };
    Served::new(&RedirectKey::new("tn.gg", "ABC"), Arc::new(record)).unwrap()
}

proptest! {
    /// That a scan keeps this name is tested in the crate `scans`.
    #[test]
    fn a_rule_that_decides_is_named_for_the_scan(named: bool, own: bool, name in ".{1,40}",
        path in "[a-z]{0,2000}") {
        let location = format!("https://example.com/{path}");
        let name: Option<Box<str>> = named.then(|| cut(&name, MAX_NAME).into());
        let lists = vec![RuleList {
            owner: (!own).then(|| Owner { application: APPLICATION.parse().unwrap(), project: PROJECT.parse().unwrap() }),
            rules: vec![
                Rule { name: None, condition: "hour<0".into(), redirect_url: None },
                Rule {
                    name: name.clone(),
                    condition: "hour>=0".into(),
                    redirect_url: Some(location.as_str().into()),
                },
            ],
        }];
        let set = read(&AccountRules::new(APPLICATION.parse().unwrap(), lists)).unwrap().unwrap();
        let (served, headers, agents) = (served(PROJECT), HeaderMap::new(), Agents::default());
        let sources = Sources { agents: &agents, geo: &NoGeoIp };
        let account = APPLICATION.parse().unwrap();
        let (ip, at) = ([127, 0, 0, 1].into(), UnixMillis(1));
        let asked = AskedLink { account: &account, headers: &headers, query: None, ip, at };
        let facts = RequestFacts::new(&served, asked, sources);
        let (rule, decided) = set.decide(&facts).unwrap();
        let application = (!own).then(|| APPLICATION.parse().unwrap());
        prop_assert_eq!(&*rule, &RuleName { application, index: 1, name });
        prop_assert_eq!(decided, location.as_str());
    }
}
