//! Types of links: the terms of the GS1 Web vocabulary, under any of its namespaces, and URIs of others.

use std::borrow::Cow;

/// The namespace of the vocabulary, in which types are written.
pub const NAMESPACE: &str = "https://ref.gs1.org/voc/";
/// The prefix of curies.
pub const PREFIX: &str = "gs1:";
/// Hosts and path of the namespaces that were given out.
const NAMESPACES: [&str; 3] = ["ref.gs1.org/voc/", "gs1.org/voc/", "www.gs1.org/voc/"];
/// The term of the default link.
pub const DEFAULT: &str = "defaultLink";

/// The term of the vocabulary that a type names, such as `pip`.
fn term(link_type: &str) -> Option<&str> {
    if let Some(term) = link_type.strip_prefix(PREFIX) {
        return Some(term);
    }
    let rest = link_type.strip_prefix("https://").or_else(|| link_type.strip_prefix("http://"))?;
    NAMESPACES.iter().find_map(|namespace| rest.strip_prefix(namespace))
}

/// Whether two texts name one type.
pub(crate) fn are_same(one: &str, other: &str) -> bool {
    if one == other {
        return true;
    }
    match (term(one), term(other)) {
        (Some(one), Some(other)) => one == other,
        (None, None) => one == other,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

/// Whether a type stands for the default link.
pub(crate) fn is_default(link_type: &str) -> bool {
    term(link_type) == Some(DEFAULT)
}

/// The type as a URI, as a linkset has it.
#[must_use]
pub fn uri(link_type: &str) -> Cow<'_, str> {
    match term(link_type) {
        Some(term) => Cow::Owned(format!("{NAMESPACE}{term}")),
        None => Cow::Borrowed(link_type),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_has_one_name_under_each_namespace() {
        for (one, other, same) in [
            ("gs1:pip", "gs1:pip", true),
            ("gs1:pip", "https://ref.gs1.org/voc/pip", true),
            ("gs1:pip", "https://gs1.org/voc/pip", true),
            ("gs1:pip", "http://www.gs1.org/voc/pip", true),
            ("gs1:pip", "https://example.org/voc/pip", false),
            ("gs1:pip", "gs1:pips", false),
            ("gs1:pip", "pip", false),
            ("https://example.org/a", "https://example.org/a", true),
        ] {
            assert_eq!((are_same(one, other), are_same(other, one)), (same, same), "{one} {other}");
        }
        assert_eq!(uri("gs1:pip"), "https://ref.gs1.org/voc/pip");
        assert_eq!(uri("https://www.gs1.org/voc/pip"), "https://ref.gs1.org/voc/pip");
        assert_eq!(uri("https://example.org/a"), "https://example.org/a");
    }
}
