//! What was taken down of an account's links, as its owner sees it and as writes are checked against.

use serde::{Deserialize, Serialize};
use shared::{
    redirect::RedirectKey,
    rules::Rule,
    time::UnixMillis,
    withheld::{Withheld, and_parents, host_of},
};

/// A link, or a host that links lead to, which the platform operator took down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakeDown {
    /// The link or the host.
    pub what: Withheld,
    /// Why, for the owner of the link.
    pub reason: String,
    /// Since when.
    pub since: UnixMillis,
    /// When it ends by itself.
    pub until: Option<UnixMillis>,
}

impl TakeDown {
    /// Whether this is the take-down of the host that a target leads to.
    #[must_use]
    pub fn is_of_target(&self, target: &str) -> bool {
        match &self.what {
            Withheld::Host(host) => {
                host_of(target).is_some_and(|of| and_parents(&of).any(|of| *of == **host))
            }
            Withheld::Link(_) | Withheld::Account(_) => false,
        }
    }
}

/// The take-downs that may concern some links.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TakeDowns(pub Vec<TakeDown>);

impl TakeDowns {
    /// The take-down of a link itself.
    #[must_use]
    pub fn of_link(&self, key: &RedirectKey) -> Option<&TakeDown> {
        self.0.iter().find(|one| matches!(&one.what, Withheld::Link(link) if link == key))
    }

    /// The take-down of the host that a target leads to.
    #[must_use]
    pub fn of_target(&self, target: &str) -> Option<&TakeDown> {
        self.0.iter().find(|one| one.is_of_target(target))
    }

    /// The fault of a target, as a sentence without the name of the member.
    #[must_use]
    pub fn target_fault(&self, target: &str) -> Option<String> {
        let Withheld::Host(host) = &self.of_target(target)?.what else { return None };
        Some(format!("must not lead to {host}, which whoever runs this service has blocked"))
    }

    /// The faults of rules that lead to such a host.
    #[must_use]
    pub fn rule_faults(&self, rules: &[Rule]) -> Vec<String> {
        let fault = |(index, rule): (usize, &Rule)| {
            let fault = self.target_fault(rule.redirect_url.as_deref()?)?;
            Some(format!("rules[{index}].redirectUrl {fault}."))
        };
        rules.iter().enumerate().filter_map(fault).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take_down(what: Withheld) -> TakeDown {
        TakeDown { what, reason: "phishing".to_owned(), since: UnixMillis(1), until: None }
    }

    #[test]
    fn links_and_targets_are_compared_with_what_was_taken_down() {
        let key = RedirectKey::new("tn.gg", "ONE");
        let host = |host: &str| take_down(Withheld::Host(host.into()));
        let all =
            TakeDowns(vec![take_down(Withheld::Link(key.clone())), host("evil.example"), host("192.0.2.1")]);
        assert!(all.of_link(&key).is_some());
        assert!(all.of_link(&RedirectKey::new("tn.gg", "TWO")).is_none());
        let is_blocked = |target: &str| all.target_fault(target).is_some();
        assert!(is_blocked("https://evil.example/{shortId}"));
        assert!(is_blocked("https://WWW.evil.example:8443/"));
        assert!(is_blocked("http://[::ffff:192.0.2.1]/") && !is_blocked("http://[::ffff:192.0.2.2]/"));
        assert!(!is_blocked("https://good.example/?u=https://evil.example/"));
        assert!(!is_blocked("https://evil.example.good.example/"));
        let rule = |url: Option<&str>| Rule {
            name: None,
            condition: "hour=1".into(),
            redirect_url: url.map(Into::into),
        };
        let rules = [rule(None), rule(Some("https://a.evil.example/")), rule(Some("https://good.example/"))];
        let faults = all.rule_faults(&rules);
        assert!(faults.len() == 1 && faults[0].starts_with("rules[1].redirectUrl must not"), "{faults:?}");
    }
}
