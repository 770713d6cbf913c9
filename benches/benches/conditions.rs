//! What conditions of redirect rules cost a request that meets none of them, one by one.

use std::{hint::black_box, net::IpAddr};

use criterion::{Criterion, criterion_group, criterion_main};
use shared::{
    id::{AccountId, ProjectId},
    rules::{AccountRules, Compiled, Facts, Rule, RuleList, Text, Visitor},
    time::UnixMillis,
};

/// One condition of each kind.
const CONDITIONS: [&str; 9] = [
    "region=Saxony",
    "device=tablet",
    "languages=fr",
    "languages.en>0.9",
    "refererHost=example.org",
    "query.ref=poster",
    "network=198.51.100.0/24",
    "percentage<0",
    "hour.Europe/Berlin>23",
];

/// A scan of which everything is known.
struct Scan {
    account: AccountId,
}

impl Facts for Scan {
    fn text(&self, field: Text) -> Option<&str> {
        Some(if field == Text::Device { "phone" } else { "Bavaria" })
    }

    fn projects(&self) -> &[ProjectId] {
        &[]
    }

    fn language(&self) -> Option<&str> {
        Some("de-AT")
    }

    fn accept_language(&self) -> Option<&str> {
        Some(black_box("de-AT,de;q=0.9,en-GB;q=0.8,en;q=0.7"))
    }

    fn referer(&self) -> Option<&str> {
        Some(black_box("https://www.example.com/shop?item=4711"))
    }

    fn query(&self) -> Option<&str> {
        Some(black_box("utm_source=mail&utm_campaign=autumn&item=4711"))
    }

    fn address(&self) -> Option<IpAddr> {
        Some(black_box([192, 0, 2, 7].into()))
    }

    fn as_number(&self) -> Option<u32> {
        black_box(None)
    }

    /// As for the first condition of a request: an edge works out the visitor once.
    fn place(&self, division: &str) -> Option<u16> {
        let agent = b"Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko)";
        Some(Visitor::new(&self.account, self.time(), self.address()?, agent).place(division))
    }

    fn time(&self) -> UnixMillis {
        UnixMillis(1_790_034_400_000)
    }
}

fn conditions(criterion: &mut Criterion) {
    let Ok(account) = "U0000000000000000000000a".parse::<AccountId>() else { panic!("no id of an account") };
    let mut group = criterion.benchmark_group("conditions");
    let scan = Scan { account };
    for condition in CONDITIONS {
        let rule = Rule { name: None, condition: condition.into(), redirect_url: None };
        let rules = AccountRules::new(account, vec![RuleList { owner: None, rules: vec![rule] }]);
        let Ok(compiled) = Compiled::new(&rules, |_, _, _, _| Ok(())) else {
            panic!("{condition} is no condition of rules")
        };
        group.bench_function(condition, |b| b.iter(|| compiled.first(black_box(&scan)).is_some()));
    }
    group.finish();
}

criterion_group!(benches, conditions);
criterion_main!(benches);
