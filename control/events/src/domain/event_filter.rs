//! Event filters: by type, and by a condition on the event's members.

use serde_json::Value;
use shared::filter::{Expr, Fact};

use super::{
    action::ActionType,
    filter::{Field, Filter, Holds},
    limits::shorten,
};

/// Most types that one filter names.
pub const MAX_TYPES: usize = 50;

/// The families of types: what stands before the dot.
const FAMILIES: [(&str, &[&str]); 9] = [
    // Behind the dot is the type of the action.
    ("action", &[]),
    ("properties", &["updated"]),
    ("redirection", &["created", "updated", "deleted"]),
    ("job", &["completed"]),
    ("printOrder", &["completed"]),
    ("shortDomain", &["verified", "unproven", "certificateIssued", "certificateFailed"]),
    ("linkChange", &["completed"]),
    ("case", &["reported"]),
    (REACTION, &[]),
];

/// What reactions send to webhooks; nothing in the log is of this type.
pub const REACTION: &str = "reaction";

/// The fields of an event that a condition can test; deeper members by paths such as `customFields.a.b`.
const FIELDS: [Field; 18] = [
    field("timestamp", Holds::Millis),
    field("type", Holds::Text),
    field("id", Holds::Id),
    field("thng", Holds::Id),
    field("product", Holds::Id),
    field("collection", Holds::Id),
    field("user", Holds::Id),
    field("tags", Holds::Labels),
    field("identifiers.*", Holds::Labels),
    field("customFields.*", Holds::Scalars),
    field("context.*", Holds::Scalars),
    field("location.*", Holds::Scalars),
    field("locationSource", Holds::Text),
    field("properties.*", Holds::Scalars),
    field("shortDomain", Holds::Text),
    field("shortId", Holds::Text),
    field("platformId", Holds::Id),
    field("status", Holds::Text),
];

const fn field(name: &'static str, holds: Holds) -> Field {
    Field { name, holds }
}

/// Types of events: `action.scans`, or the family `action` for all of it. None means all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Types(Vec<String>);

impl Types {
    /// Parses a list of types.
    ///
    /// # Errors
    /// The fault, as a sentence without the name of the parameter.
    pub fn new(names: Vec<String>) -> Result<Self, String> {
        if names.len() > MAX_TYPES {
            return Err(format!("names at most {MAX_TYPES} types, not {}", names.len()));
        }
        match names.iter().find(|name| !is_type(name) || *name == REACTION) {
            Some(name) => Err(format!(
                "{:?} is no type of event: there are action, action.<type of action>, properties.updated, \
                 redirection.created, redirection.updated, redirection.deleted, job.completed, printOrder.completed, \
                 shortDomain.verified, shortDomain.unproven, shortDomain.certificateIssued, \
                 shortDomain.certificateFailed, linkChange.completed and case.reported",
                shorten(name)
            )),
            None => Ok(Self(names)),
        }
    }

    /// Reads the list of a webhook, which may also name [`REACTION`].
    ///
    /// # Errors
    /// As [`Types::new`].
    pub fn of_webhook(names: Vec<String>) -> Result<Self, String> {
        let known = names.iter().filter(|name| *name != REACTION).cloned().collect();
        if names.len() > MAX_TYPES {
            return Self::new(names);
        }
        Self::new(known).map(|_| Self(names))
    }

    /// Reads a list as a query holds it, with commas.
    ///
    /// # Errors
    /// As [`Types::new`].
    pub fn parse(text: &str) -> Result<Self, String> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        Self::new(names.map(str::to_owned).collect())
    }

    /// The names, as they were given.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.0
    }

    /// Whether a type is among them.
    #[must_use]
    pub fn admit(&self, kind: &str) -> bool {
        let family = kind.split('.').next().unwrap_or(kind);
        self.0.is_empty() || self.0.iter().any(|name| name == kind || name == family)
    }

    /// Whether some type of a family may be among them.
    #[must_use]
    pub fn admit_family(&self, family: &str) -> bool {
        self.0.is_empty() || self.0.iter().any(|name| name.split('.').next() == Some(family))
    }
}

fn is_type(name: &str) -> bool {
    let (family, last) = name.split_once('.').map_or((name, None), |(family, last)| (family, Some(last)));
    let Some((_, known)) = FAMILIES.iter().find(|(known, _)| *known == family) else { return false };
    match last {
        None => true,
        Some(last) if family == "action" => ActionType::parse(last).is_some_and(|kind| kind.name().is_some()),
        Some(last) => known.contains(&last),
    }
}

/// A condition on an event, in the language of `filter`.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    text: String,
    expr: Expr,
}

impl Condition {
    /// Parses a condition.
    ///
    /// # Errors
    /// The fault, as a sentence for the client that names `match`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let filter = Filter::parse(text, &FIELDS).map_err(|fault| fault.replacen("filter", "match", 1))?;
        Ok(Self { text: text.to_owned(), expr: filter.expr().clone() })
    }

    /// It as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The fields that it tests.
    pub fn fields(&self) -> impl Iterator<Item = &str> {
        self.expr.terms().into_iter().map(|term| term.field.as_str())
    }

    /// Whether it holds for a document; a field with several values meets a term when one of them does.
    #[must_use]
    pub fn holds(&self, document: &Value) -> bool {
        self.expr.eval(&mut |term| any(document, &term.field, &mut |fact| term.admits(fact)))
    }
}

/// Whether an event may be asked for this.
#[must_use]
pub fn is_field(name: &str) -> bool {
    FIELDS.iter().any(|field| field.is(name))
}

/// The first text, number or truth value at a path of a document, as conditions find it.
#[must_use]
pub fn find<'a>(value: &'a Value, path: &str) -> Option<&'a Value> {
    match value {
        Value::Array(items) => items.iter().find_map(|item| find(item, path)),
        Value::Object(members) => members.iter().find_map(|(name, value)| {
            let rest = path.strip_prefix(name.as_str())?;
            if rest.is_empty() { first(value) } else { find(value, rest.strip_prefix('.')?) }
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

fn first(value: &Value) -> Option<&Value> {
    match value {
        Value::Array(items) => items.iter().find_map(first),
        Value::String(_) | Value::Number(_) | Value::Bool(_) => Some(value),
        Value::Null | Value::Object(_) => None,
    }
}

/// Whether one of the scalars at a path meets a test; names may hold dots themselves.
fn any(value: &Value, path: &str, meets: &mut impl FnMut(Fact<'_>) -> bool) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| any(item, path, meets)),
        Value::Object(members) => members.iter().any(|(name, value)| {
            let Some(rest) = path.strip_prefix(name.as_str()) else { return false };
            if rest.is_empty() {
                return scalar(value, meets);
            }
            rest.strip_prefix('.').is_some_and(|rest| any(value, rest, meets))
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

fn scalar(value: &Value, meets: &mut impl FnMut(Fact<'_>) -> bool) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| scalar(item, meets)),
        Value::String(text) => meets(Fact::Text(text)),
        Value::Number(number) => number.as_f64().is_some_and(|number| meets(Fact::Number(number))),
        Value::Bool(value) => meets(Fact::Text(if *value { "true" } else { "false" })),
        Value::Null | Value::Object(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn types_are_known_and_families_hold_theirs() {
        for (text, kind, expected) in [
            ("", "action.scans", Some(true)),
            ("action", "action.scans", Some(true)),
            ("action.scans", "action.scans", Some(true)),
            ("action.scans", "action.checkins", Some(false)),
            ("job, redirection.deleted", "redirection.deleted", Some(true)),
            ("job,redirection.deleted", "redirection.created", Some(false)),
            ("action._own.a", "action._own.a", Some(true)),
            ("properties", "properties.updated", Some(true)),
            ("scans", "", None),
            ("action.all", "", None),
            ("action.", "", None),
            ("action.Scans", "", None),
            ("job.started", "", None),
            ("job,printOrder", "printOrder.completed", Some(true)),
            ("job", "printOrder.completed", Some(false)),
            ("printOrder.begun", "", None),
            ("linkChange", "linkChange.completed", Some(true)),
            ("case", "case.reported", Some(true)),
            ("properties.updated.x", "", None),
        ] {
            assert_eq!(Types::parse(text).ok().map(|types| types.admit(kind)), expected, "{text}: {kind}");
        }
        assert!(Types::parse(&"job,".repeat(MAX_TYPES)).is_ok());
        assert!(Types::parse(&"job,".repeat(MAX_TYPES + 1)).is_err());
        let own = |names: &[&str]| Types::of_webhook(names.iter().map(|name| (*name).to_owned()).collect());
        assert!(
            own(&["reaction"]).is_ok_and(|types| !types.admit("action.scans") && types.admit("reaction"))
        );
        assert!(own(&["reaction", "nothing"]).is_err() && own(&["reaction.x"]).is_err());
        assert!(own(&["reaction"; MAX_TYPES + 1]).is_err() && Types::parse("reaction").is_err());
        let types = Types::parse("action.scans").unwrap();
        assert!(types.admit_family("action") && !types.admit_family("job"));
    }

    #[test]
    fn conditions_are_evaluated_on_the_events_members() {
        let id = "UKXAGyEf8SQ5eTDmVgGpHqAa";
        let document = json!({
            "type": "scans", "timestamp": 5, "thng": id, "tags": ["a", "b"],
            "customFields": {"n": 10, "yes": true, "deep": {"list": [{"x": "y"}]}, "dot.ted": "z"},
            "context": {"countryCode": "DE", "city": "Bonn"}, "properties": {"temp": 21.5},
        });
        for (text, expected) in [
            ("context.countryCode=DE", true),
            ("context.countryCode=FR", false),
            ("context.countryCode=FR|context.city~Bo", true),
            ("type=scans&tags=b", true),
            ("!tags=c", true),
            ("customFields.n>9", true),
            ("customFields.n<9", false),
            ("customFields.yes=true", true),
            ("customFields.deep.list.x=y", true),
            ("customFields.dot.ted=z", true),
            ("customFields.none=z", false),
            ("properties.temp>=21.5", true),
            ("timestamp<5", false),
            (&format!("thng={id}"), true),
            ("locationSource=sensor", false),
        ] {
            assert_eq!(Condition::parse(text).map(|c| c.holds(&document)), Ok(expected), "{text}");
        }
        for (text, part) in [
            ("", "match: expected"),
            ("color=red", "match: \"color\" is not one of the fields"),
            ("thng=x", "match: thng is compared with an id."),
            ("a=\0", "match: "),
        ] {
            let fault = Condition::parse(text).unwrap_err();
            assert!(fault.starts_with(part), "{text}: {fault}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_without_panic(text in "[a-z.=&|!~<>(),\\\\ 0-9]{0,40}", names in "[a-z.,_]{0,40}") {
            if let Ok(condition) = Condition::parse(&text) {
                let _ = condition.holds(&json!({"type": "a", "tags": [1, null, {"a": 1}]}));
            }
            let _ = Types::parse(&names);
        }
    }
}
