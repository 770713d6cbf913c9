//! A question about the rules that decided scans of a link, and the counts that answer it.

use serde_json::Value;
use shared::time::UnixMillis;

use super::{periods::Period, stats_query};

/// Longest range. Scans are read one by one.
const MAX_HOURS: i32 = 31 * 24;

/// The range of a question, in whole hours; times are as in [`stats_query`].
///
/// # Errors
/// Every fault found, each naming its parameter.
pub fn range(from: Option<&str>, to: Option<&str>, now: UnixMillis) -> Result<Period, Vec<String>> {
    let mut faults = Vec::new();
    let range = stats_query::range(from, to, &jiff::tz::TimeZone::UTC, now, &mut faults);
    if range.is_some_and(|range| range.hours() > MAX_HOURS) {
        faults.push(format!("from and to: the range may have at most {} days.", MAX_HOURS / 24));
    }
    match range {
        Some(range) if faults.is_empty() => Ok(range),
        Some(_) | None => Err(faults),
    }
}

/// Scans that one rule decided.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleCount {
    /// The application of its list; `None` for that of the account.
    pub application: Option<String>,
    /// Its place in the list when it decided the newest of these scans, from 0.
    pub index: u64,
    /// Its name.
    pub name: Option<String>,
    /// Scans of people, and of robots.
    pub scans: Scans,
}

/// Counted scans.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Scans {
    /// Of people.
    pub people: u64,
    /// Of robots.
    pub robots: u64,
}

/// The scans of a link by the rule that decided.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RuleCounts {
    /// Rules that decided a scan.
    pub rules: Vec<RuleCount>,
    /// Scans that no rule decided.
    pub without: Scans,
}

impl RuleCounts {
    /// Counts a scan, by the members of its action; scans come newest first. A rule with a name is one wherever it stood.
    pub fn add(&mut self, reactions: Option<&Value>, is_robot: bool) {
        let mut fired = reactions.and_then(Value::as_array).into_iter().flatten();
        let scans = match fired.find_map(|reaction| reaction.get("rule")) {
            None => &mut self.without,
            Some(rule) => self.of_rule(rule),
        };
        if is_robot {
            scans.robots += 1;
        } else {
            scans.people += 1;
        }
    }

    fn of_rule(&mut self, rule: &Value) -> &mut Scans {
        let text = |name: &str| rule.get(name).and_then(Value::as_str);
        let (application, name) = (text("application"), text("name"));
        let index = rule.get("index").and_then(Value::as_u64).unwrap_or_default();
        let is_same = |known: &RuleCount| {
            known.application.as_deref() == application
                && known.name.as_deref() == name
                && (name.is_some() || known.index == index)
        };
        let at = self.rules.iter().position(is_same).unwrap_or(self.rules.len());
        if at == self.rules.len() {
            let (application, name) = (application.map(str::to_owned), name.map(str::to_owned));
            self.rules.push(RuleCount { application, index, name, scans: Scans::default() });
        }
        match self.rules.get_mut(at) {
            Some(known) => &mut known.scans,
            None => &mut self.without,
        }
    }

    /// The counts with the rules that decided most scans first.
    #[must_use]
    pub fn sorted(mut self) -> Self {
        self.rules.sort_by_key(|rule| std::cmp::Reverse(rule.scans.people));
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn scans_are_counted_by_rule() {
        let fired = |rule: Value| json!([{"type": "redirection", "rule": rule, "redirectUrl": "https://example.com/"}]);
        let mut counts = RuleCounts::default();
        for (reactions, is_robot) in [
            (Some(fired(json!({"index": 2, "name": "Germany"}))), false),
            // It stood elsewhere before.
            (Some(fired(json!({"index": 0, "name": "Germany"}))), false),
            (Some(fired(json!({"index": 0}))), false),
            (Some(fired(json!({"index": 1}))), false),
            (Some(fired(json!({"index": 1}))), true),
            (Some(fired(json!({"index": 1, "application": "A"}))), false),
            (Some(json!([])), false),
            (None, true),
        ] {
            counts.add(reactions.as_ref(), is_robot);
        }
        let counts = counts.sorted();
        let shown: Vec<_> = counts
            .rules
            .iter()
            .map(|rule| {
                let scans = (rule.scans.people, rule.scans.robots);
                (rule.application.as_deref(), rule.index, rule.name.as_deref(), scans)
            })
            .collect();
        assert_eq!(
            shown,
            [
                (None, 2, Some("Germany"), (2, 0)),
                (None, 0, None, (1, 0)),
                (None, 1, None, (1, 1)),
                (Some("A"), 1, None, (1, 0)),
            ]
        );
        assert_eq!(counts.without, Scans { people: 1, robots: 1 });
    }

    #[test]
    fn each_fault_names_its_parameter() {
        let now = UnixMillis(1_767_225_600_000);
        assert_eq!(range(None, None, now).unwrap().hours(), 168);
        for (from, to, fault) in [
            (Some("x"), None, "from must be"),
            (None, Some("x"), "to must be"),
            (Some("2025-01-01"), None, "from and to: the range may have at most 31 days"),
        ] {
            let faults = range(from, to, now).unwrap_err();
            assert!(faults[0].starts_with(fault), "{faults:?}");
        }
    }
}
