//! Topics of the MQTT broker: the paths of the API.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::property::{Owner, PropertyKey};

/// Longest topic or filter, in bytes: a path with an identifier and a key, both encoded.
pub const MAX_TOPIC: usize = 2_048;

/// Characters that are not encoded in a level of a topic; `/`, `+` and `#` have a meaning there.
const LEVEL: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b':');

/// The subject of a topic; references are not resolved yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Topic {
    /// `/thngs/:id/properties`: several properties at once.
    Properties(Owner, String),
    /// `/thngs/:id/properties/:key`; no key in a filter that ends in `+`.
    Property(Owner, String, Option<PropertyKey>),
    /// `/actions/:type` and those of a Thng, product or collection; `all` also where a filter ends in `+`.
    Actions(ActionScope, String),
    /// `/redirections`, or `/redirections/:shortId`: their changes. Nothing can be written to it.
    Redirections(Option<String>),
    /// `/jobs/actions`, or `/jobs/actions/:id`: their ends. Nothing can be written to it.
    Jobs(Option<String>),
}

/// What actions a topic is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ActionScope {
    /// All of the account.
    Account,
    /// Those of a Thng.
    Thng(String),
    /// Those of a product.
    Product(String),
    /// Those of a collection.
    Collection(String),
}

/// Why a text is no topic that there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopicFault {
    /// It mirrors no path.
    Unknown,
    /// It has a wildcard where there may be none.
    Wildcard,
    /// Something else is wrong with it.
    Invalid,
}

impl fmt::Display for TopicFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => {
                "There is no such topic: topics are /thngs/:id/properties, /thngs/:id/properties/:key, \
                 /thngs/:id/actions/:type, the same below /products and /collections, /actions/:type, \
                 /redirections, /redirections/:shortId, /jobs/actions and /jobs/actions/:id."
            }
            Self::Wildcard => {
                "A wildcard may only be + as the last level, in place of a key, a type or an id."
            }
            Self::Invalid => "The topic is too long, empty, not UTF-8 or has a key that cannot be.",
        })
    }
}

/// A topic filter, and the topic names of matching messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// Its subject.
    pub topic: Topic,
    /// Everything up to the last level, if that is a wildcard; else the whole topic.
    name: String,
    is_open: bool,
}

impl Filter {
    /// Parses a topic filter.
    ///
    /// # Errors
    /// Why it matches no topic.
    pub fn parse(text: &str) -> Result<Self, TopicFault> {
        let open = text.strip_suffix("/+");
        if open.unwrap_or(text).contains(['+', '#']) {
            return Err(TopicFault::Wildcard);
        }
        let topic = read(text, open.is_some())?;
        Ok(Self { topic, name: open.unwrap_or(text).to_owned(), is_open: open.is_some() })
    }

    /// The topic of a message; `last` is the key or type that it is about.
    #[must_use]
    pub fn name(&self, last: &str) -> String {
        if self.is_open {
            format!("{}/{}", self.name, utf8_percent_encode(last, LEVEL))
        } else {
            self.name.clone()
        }
    }
}

impl Topic {
    /// Reads the topic that a message is published to.
    ///
    /// # Errors
    /// Why nothing can be written to it.
    pub fn parse(text: &str) -> Result<Self, TopicFault> {
        if text.contains(['+', '#']) {
            return Err(TopicFault::Wildcard);
        }
        read(text, false)
    }
}

fn read(text: &str, is_open: bool) -> Result<Topic, TopicFault> {
    if text.len() > MAX_TOPIC || text.contains('\0') {
        return Err(TopicFault::Invalid);
    }
    let path = text.strip_prefix('/').unwrap_or(text);
    let path = path.strip_prefix("v2/").unwrap_or(path);
    let mut levels = Vec::new();
    for level in path.split('/') {
        let decoded = percent_decode_str(level).decode_utf8().map_err(|_| TopicFault::Invalid)?;
        if decoded.is_empty() || decoded.contains('\0') {
            return Err(TopicFault::Invalid);
        }
        levels.push(decoded);
    }
    let levels: Vec<&str> = levels.iter().map(AsRef::as_ref).collect();
    let owner = |word: &str| match word {
        "thngs" => Some(Owner::Thng),
        "products" => Some(Owner::Product),
        _ => None,
    };
    let kind = |last: &str| if is_open { "all".to_owned() } else { last.to_owned() };
    match levels.as_slice() {
        ["actions", last] => Ok(Topic::Actions(ActionScope::Account, kind(last))),
        ["thngs", id, "actions", last] => Ok(Topic::Actions(ActionScope::Thng((*id).to_owned()), kind(last))),
        ["products", id, "actions", last] => {
            Ok(Topic::Actions(ActionScope::Product((*id).to_owned()), kind(last)))
        }
        ["collections", id, "actions", last] => {
            Ok(Topic::Actions(ActionScope::Collection((*id).to_owned()), kind(last)))
        }
        ["redirections"] if !is_open => Ok(Topic::Redirections(None)),
        ["redirections", last] => Ok(Topic::Redirections((!is_open).then(|| fold(last)))),
        ["jobs", "actions"] if !is_open => Ok(Topic::Jobs(None)),
        ["jobs", "actions", last] => Ok(Topic::Jobs((!is_open).then(|| (*last).to_owned()))),
        [of, id, "properties"] if !is_open => {
            Ok(Topic::Properties(owner(of).ok_or(TopicFault::Unknown)?, (*id).to_owned()))
        }
        [of, id, "properties", last] => {
            let owner = owner(of).ok_or(TopicFault::Unknown)?;
            let key = match is_open {
                true => None,
                false => Some(PropertyKey::parse(last).map_err(|_| TopicFault::Invalid)?),
            };
            Ok(Topic::Property(owner, (*id).to_owned(), key))
        }
        _ => Err(TopicFault::Unknown),
    }
}

/// A short id in the form in which topics compare it, ignoring case as most domains do.
#[must_use]
pub fn fold(short_id: &str) -> String {
    short_id.to_ascii_uppercase()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(text: &str) -> Option<PropertyKey> {
        PropertyKey::parse(text).ok()
    }

    #[test]
    fn topics_mirror_paths() {
        let id = || "UKXAGyEf8SQ5eTDmVgGpHqAa".to_owned();
        let property = |key| Topic::Property(Owner::Thng, id(), key);
        let thng = "/thngs/UKXAGyEf8SQ5eTDmVgGpHqAa";
        for (text, expected) in [
            (format!("{thng}/properties"), Ok(Topic::Properties(Owner::Thng, id()))),
            (format!("/v2{thng}/properties"), Ok(Topic::Properties(Owner::Thng, id()))),
            (format!("{}/properties", &thng[1..]), Ok(Topic::Properties(Owner::Thng, id()))),
            (format!("{thng}/properties/Temp"), Ok(property(key("temp")))),
            (format!("{thng}/properties/a%2Fb%2B"), Ok(property(key("a/b+")))),
            (
                "/products/gs1%3A01%3A9506/properties".to_owned(),
                Ok(Topic::Properties(Owner::Product, "gs1:01:9506".to_owned())),
            ),
            (
                format!("{thng}/actions/scans"),
                Ok(Topic::Actions(ActionScope::Thng(id()), "scans".to_owned())),
            ),
            (
                "/collections/x/actions/_a".to_owned(),
                Ok(Topic::Actions(ActionScope::Collection("x".to_owned()), "_a".to_owned())),
            ),
            ("/actions/all".to_owned(), Ok(Topic::Actions(ActionScope::Account, "all".to_owned()))),
            ("/redirections".to_owned(), Ok(Topic::Redirections(None))),
            ("/v2/redirections/abC-1".to_owned(), Ok(Topic::Redirections(Some("ABC-1".to_owned())))),
            ("/jobs/actions".to_owned(), Ok(Topic::Jobs(None))),
            ("/jobs/actions/x".to_owned(), Ok(Topic::Jobs(Some("x".to_owned())))),
            ("/jobs".to_owned(), Err(TopicFault::Unknown)),
            ("/jobs/actions/x/logs".to_owned(), Err(TopicFault::Unknown)),
            (format!("{thng}/properties/+"), Err(TopicFault::Wildcard)),
            ("#".to_owned(), Err(TopicFault::Wildcard)),
            (format!("{thng}/properties/"), Err(TopicFault::Invalid)),
            (format!("{thng}/properties/%FF"), Err(TopicFault::Invalid)),
            (format!("{thng}/properties/{}", "a".repeat(129)), Err(TopicFault::Invalid)),
            ("/".repeat(MAX_TOPIC + 1), Err(TopicFault::Invalid)),
            (String::new(), Err(TopicFault::Invalid)),
            ("/collections/x/properties".to_owned(), Err(TopicFault::Unknown)),
            ("/thngs".to_owned(), Err(TopicFault::Unknown)),
            ("$SYS/broker".to_owned(), Err(TopicFault::Unknown)),
            ("$share/g/actions/scans".to_owned(), Err(TopicFault::Unknown)),
        ] {
            assert_eq!(Topic::parse(&text), expected, "{text}");
        }
    }

    #[test]
    fn a_topic_filter_may_end_with_a_wildcard() {
        for (text, last, expected) in [
            ("/thngs/a/properties/+", "b/c+", Ok("/thngs/a/properties/b%2Fc%2B")),
            ("thngs/a/actions/+", "_own", Ok("thngs/a/actions/_own")),
            ("/actions/+", "scans", Ok("/actions/scans")),
            ("/actions/all", "scans", Ok("/actions/all")),
            ("/thngs/a/properties", "", Ok("/thngs/a/properties")),
            ("/redirections/+", "ABC", Ok("/redirections/ABC")),
            ("/redirections", "ABC", Ok("/redirections")),
            ("/jobs/actions/+", "x", Ok("/jobs/actions/x")),
            ("/thngs/+/properties", "", Err(TopicFault::Wildcard)),
            ("/thngs/a/#", "", Err(TopicFault::Wildcard)),
            ("+/+", "", Err(TopicFault::Wildcard)),
            ("/thngs/a/properties/b+", "", Err(TopicFault::Wildcard)),
            ("/+", "", Err(TopicFault::Unknown)),
            ("/thngs/a/+", "", Err(TopicFault::Unknown)),
            ("+", "", Err(TopicFault::Wildcard)),
        ] {
            let filter = Filter::parse(text).map(|filter| filter.name(last));
            assert_eq!(filter.as_deref().map_err(|fault| *fault), expected, "{text}");
        }
        let open = Filter::parse("/thngs/a/properties/+").unwrap();
        assert_eq!(open.topic, Topic::Property(Owner::Thng, "a".to_owned(), None));
    }

    proptest! {
        #[test]
        fn names_built_from_a_filter_parse_as_its_topic(key in "[^\0]{1,40}") {
            let filter = Filter::parse("/thngs/a/properties/+").unwrap();
            let name = filter.name(&key);
            let expected = PropertyKey::parse(&key).ok();
            prop_assert_eq!(Topic::parse(&name), Ok(Topic::Property(Owner::Thng, "a".to_owned(), expected)));
        }

        #[test]
        fn any_text_is_parsed_without_panic(text in "[/+#a-z%0-9$ä]{0,60}") {
            let _ = (Topic::parse(&text), Filter::parse(&text));
        }
    }
}
