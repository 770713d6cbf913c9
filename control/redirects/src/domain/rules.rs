//! Redirect rules as a request gives them, and their validation.

use serde_json::Value;
use shared::{
    entity_tag::EntityTag,
    rules::{MAX_CONDITIONS, MAX_RULES, Rule},
    target::{TagValues, Target},
    time::UnixMillis,
};

use super::{members::Members, target_hosts::TargetHosts};

/// Faults after which no further rule is read: a rule may have 64, and each may list every field.
const MAX_FAULTS: usize = 100;

/// The list of an account or application.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoredRules {
    /// In the order in which they are tried.
    pub rules: Vec<Rule>,
    /// Creation time of the list.
    pub created_at: UnixMillis,
    /// When it was last replaced.
    pub updated_at: UnixMillis,
}

impl StoredRules {
    /// Names the state that the list is in.
    #[must_use]
    pub fn tag(&self) -> EntityTag {
        EntityTag::of(&(&self.rules, self.created_at, self.updated_at))
    }
}

// Spec gap: the body is not shown; clients send `rules` with `match` and, it may be, without `redirectUrl`.
/// Reads the body of a PUT: the whole list.
///
/// # Errors
/// Every fault found, each naming its member; with very many, those of the first rules.
pub fn parse(body: &Value) -> Result<Vec<Rule>, Vec<String>> {
    let mut members = Members::of(body)?;
    let rules = match members.raw("rules") {
        None => {
            members.fault("rules is required.");
            None
        }
        Some(Value::Array(items)) if items.len() > MAX_RULES => {
            members.fault(format!("rules must hold at most {MAX_RULES} rules, not {}.", items.len()));
            None
        }
        Some(Value::Array(items)) => read_all(items, &mut members),
        Some(_) => {
            members.fault("rules must be an array.");
            None
        }
    };
    members.finish(rules)
}

fn read_all(items: &[Value], members: &mut Members<'_>) -> Option<Vec<Rule>> {
    let (mut rules, mut conditions, mut found) = (Vec::with_capacity(items.len()), 0, 0);
    for (index, item) in items.iter().enumerate() {
        match read(item) {
            Ok((rule, count)) => {
                conditions += count;
                rules.push(rule);
            }
            Err(faults) => {
                found += faults.len();
                faults.into_iter().for_each(|fault| members.fault(format!("rules[{index}].{fault}")));
            }
        }
        if found >= MAX_FAULTS {
            break;
        }
    }
    if conditions > MAX_CONDITIONS {
        members.fault(format!("rules must hold at most {MAX_CONDITIONS} conditions, not {conditions}."));
    }
    (rules.len() == items.len()).then_some(rules)
}

/// Reads one rule, and how many conditions it has.
fn read(item: &Value) -> Result<(Rule, usize), Vec<String>> {
    let mut members = Members::of(item).map_err(|_| vec!["must be an object.".to_owned()])?;
    let name = members.text("name").map(Into::into);
    if members.raw("match").is_none() {
        members.fault("match is required.");
    }
    let condition = members.text("match").map(Into::into);
    let redirect_url = members.text("redirectUrl").map(Into::into);
    let rule = condition.map(|condition| Rule { name, condition, redirect_url });
    // Also where another member has the wrong type.
    let checked = rule.as_ref().map(Rule::check);
    if let Some(Err(faults)) = &checked {
        faults.iter().for_each(|fault| members.fault(format!("{fault}.")));
    }
    let rule = members.finish(rule)?;
    let conditions = checked.and_then(Result::ok).map_or(0, |(matcher, _)| matcher.conditions());
    Ok((rule, conditions))
}

/// The faults of rules that lead to one of our own short URLs, which could form a loop.
#[must_use]
pub fn leading_back(rules: &[Rule], is_ours: impl Fn((&str, &str)) -> bool) -> Vec<String> {
    // Placeholders: a tag forms one segment at most, whatever it holds.
    let values = TagValues { short_id: "0", platform_id: "0", thng_id: Some("0"), product_id: Some("0") };
    let is_back = |rule: &Rule| {
        let target = rule.redirect_url.as_deref().and_then(|url| Target::parse(url).ok());
        target
            .and_then(|target| target.as_short_url(&values))
            .is_some_and(|(host, path)| is_ours((host.as_str(), path.as_str())))
    };
    let back = rules.iter().enumerate().filter(|(_, rule)| is_back(rule));
    back.map(|(index, _)| format!("rules[{index}].redirectUrl must not lead to a short URL.")).collect()
}

/// The faults of rules that lead to hosts which the account does not allow.
#[must_use]
pub fn leading_elsewhere(rules: &[Rule], hosts: &TargetHosts) -> Vec<String> {
    let fault = |(index, rule): (usize, &Rule)| {
        let target = Target::parse(rule.redirect_url.as_deref()?).ok()?;
        hosts.fault(&target).map(|fault| format!("rules[{index}].redirectUrl {fault}."))
    };
    rules.iter().enumerate().filter_map(fault).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn faults_are_bounded_by_whole_rules() {
        let unknown = |count: usize| (0..count).map(|n| format!("f{n}=1")).collect::<Vec<_>>().join("|");
        for (in_each, expected) in [(1, 100), (2, 100), (64, 128)] {
            let rules = vec![json!({"match": unknown(in_each)}); MAX_RULES];
            let faults = parse(&json!({"rules": rules})).unwrap_err();
            assert_eq!(faults.len(), expected, "{in_each}");
        }
    }

    #[test]
    fn every_fault_is_named_with_its_place() {
        let many = vec![json!({"match": "hour=1"}); MAX_RULES + 1];
        let five = ["hour=1"; 5].join("|");
        let heavy = vec![json!({"match": five}); MAX_RULES];
        for (body, expected) in [
            (json!({"rules": []}), vec![]),
            (json!({"rules": [{"match": "thng.name=test"}], "other": 1}), vec![]),
            (json!({"rules": [{"match": "hour=1", "name": null, "redirectUrl": null, "x": {}}]}), vec![]),
            (json!([]), vec!["The body must be a JSON object."]),
            (json!({}), vec!["rules is required."]),
            (json!({"rules": null}), vec!["rules is required."]),
            (json!({"rules": {}}), vec!["rules must be an array."]),
            (json!({"rules": [1]}), vec!["rules[0].must be an object."]),
            (json!({"rules": [{}]}), vec!["rules[0].match is required."]),
            (
                json!({"rules": [{"match": 1, "name": 2}, {"match": "hour=1"}, {"match": "x=1"}]}),
                vec![
                    "rules[0].name must be a string.",
                    "rules[0].match must be a string.",
                    "rules[2].match: there is no field x",
                ],
            ),
            (
                json!({"rules": [{"match": "hour", "redirectUrl": "ftp://x"}]}),
                vec!["rules[0].match: expected one of", "rules[0].redirectUrl must be an absolute"],
            ),
            (
                json!({"rules": [{"match": "x=1&device=watch", "name": 2, "redirectUrl": "ftp://x"}]}),
                vec![
                    "rules[0].name must be a string.",
                    "rules[0].match: there is no field x",
                    "rules[0].match: the field device is one of",
                    "rules[0].redirectUrl must be an absolute",
                ],
            ),
            (json!({"rules": many}), vec!["rules must hold at most 100 rules, not 101."]),
            (json!({"rules": heavy}), vec!["rules must hold at most 400 conditions, not 500."]),
        ] {
            let faults = parse(&body).err().unwrap_or_default();
            assert_eq!(faults.len(), expected.len(), "{body}: {faults:?}");
            for (fault, start) in faults.iter().zip(&expected) {
                assert!(fault.starts_with(start), "{body}: {fault}");
            }
        }
    }

    #[test]
    fn targets_that_are_short_urls_are_found() {
        let rule = |url: Option<&str>| Rule {
            name: None,
            condition: "hour=1".into(),
            redirect_url: url.map(Into::into),
        };
        let rules = [
            None,
            Some("https://example.com/ABC"),
            Some("https://tn.gg/ABC"),
            Some("https://TN.gg/{shortId}?x=1"),
            Some("https://tn.gg/{thngId}{productId}"),
            Some("https://tn.gg/a/b"),
            Some("https://tn.gg/"),
        ]
        .map(rule);
        let faults = leading_back(&rules, |(host, path)| host == "tn.gg" && !path.contains('/'));
        let place = |n| format!("rules[{n}].redirectUrl must not lead to a short URL.");
        assert_eq!(faults, [place(2), place(3), place(4)]);
    }
}
