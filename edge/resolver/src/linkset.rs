//! Linksets as JSON (RFC 9264), in the form of GS1's schema, which allows no other members.

use digital_link::link_types;
use serde_json::{Map, Value, json};
use shared::digital_link::TypedLink;

/// A level, and links of it.
#[derive(Debug)]
pub(crate) struct Shown<'a> {
    /// URI of the level.
    pub(crate) anchor: String,
    /// What it is called.
    pub(crate) description: &'a str,
    /// The links, each with its target.
    pub(crate) links: Vec<(&'a TypedLink, String)>,
    /// Whether the default link is named as such.
    pub(crate) with_default: bool,
}

/// The links of all levels.
pub(crate) fn json(levels: &[Shown<'_>]) -> Vec<u8> {
    let linkset: Vec<Value> = levels.iter().map(level).collect();
    json!({ "linkset": linkset }).to_string().into_bytes()
}

fn level(shown: &Shown<'_>) -> Value {
    let mut members = Map::new();
    members.insert("anchor".to_owned(), shown.anchor.as_str().into());
    members.insert("itemDescription".to_owned(), shown.description.into());
    let default = shown.links.iter().find(|(link, _)| link.default && shown.with_default);
    if let Some((link, href)) = default {
        // GS1 allows no other members here.
        let found = json!([{ "href": href, "title": link.title }]);
        members.insert(format!("{}{}", link_types::NAMESPACE, link_types::DEFAULT), found);
    }
    for (link, href) in &shown.links {
        let uri = link_types::uri(&link.link_type);
        if !is_taken(&uri) {
            continue;
        }
        let of_type = members.entry(uri).or_insert_with(|| json!([]));
        if let Value::Array(of_type) = of_type {
            of_type.push(entry(link, href));
        }
    }
    members.into()
}

/// Whether GS1's schema takes a URI as the type of a link.
fn is_taken(uri: &str) -> bool {
    let rest = uri.strip_prefix("https://").or_else(|| uri.strip_prefix("http://"));
    rest.is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"./_".contains(&byte)))
}

fn entry(link: &TypedLink, href: &str) -> Value {
    let mut entry = json!({ "href": href, "title": link.title });
    let languages: Vec<&str> = link.hreflang.iter().filter_map(|tag| short_tag(tag)).collect();
    if !languages.is_empty() {
        entry["hreflang"] = json!(languages);
    }
    if let Some(media_type) = &link.media_type {
        entry["type"] = json!(media_type);
    }
    if !link.context.is_empty() {
        entry["context"] = json!(link.context);
    }
    entry
}

/// A language tag as GS1's schema takes it: `pt` or `pt-BR`. Of another one the language alone, if it has two letters.
fn short_tag(tag: &str) -> Option<&str> {
    let mut parts = tag.split('-');
    let (language, region) = (parts.next()?, parts.next());
    let is_short = |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !is_short(language) {
        return None;
    }
    let is_whole = region.is_none_or(is_short) && parts.next().is_none();
    Some(if is_whole { tag } else { language })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_those_of_the_schema() {
        for (uri, expected) in [
            ("https://ref.gs1.org/voc/pip", true),
            ("http://example.org/a_b/c.d", true),
            ("https://example.org/voc#a", false),
            ("urn:x:y", false),
        ] {
            assert_eq!(is_taken(uri), expected, "{uri}");
        }
    }

    #[test]
    fn tags_are_those_of_the_schema() {
        for (tag, expected) in [
            ("pt", Some("pt")),
            ("pt-BR", Some("pt-BR")),
            ("zh-Hant", Some("zh")),
            ("zh-Hant-TW", Some("zh")),
            ("es-419", Some("es")),
            ("de-CH-x", Some("de")),
            ("gsw", None),
            ("", None),
        ] {
            assert_eq!(short_tag(tag), expected, "{tag}");
        }
    }
}
