//! Appends the query of a request to the URL that its link leads to.

use crate::access_token::without_access_token;

/// Most bytes of path and query together that an edge takes, unless its settings say otherwise.
pub const MAX_URI: usize = 2 << 10;

/// A target with the request's query appended, before the fragment and after a query of its own.
///
/// Characters that a header may not contain, or a browser would read differently, are percent-encoded. `access_token` is
/// left out.
#[must_use]
pub fn forward_query(location: &str, query: &str) -> String {
    let query = without_access_token(query);
    let (base, fragment) = match location.split_once('#') {
        Some((base, fragment)) => (base, Some(fragment)),
        None => (location, None),
    };
    let mut out = String::with_capacity(location.len() + query.len() + 1);
    out.push_str(base);
    if !query.is_empty() {
        match base.split_once('?') {
            None => out.push('?'),
            Some((_, own)) if own.is_empty() || own.ends_with('&') => {}
            Some(_) => out.push('&'),
        }
        for byte in query.bytes() {
            if byte.is_ascii_graphic() && !b"\"<>\\^`{|}#".contains(&byte) {
                out.push(char::from(byte));
            } else {
                out.push_str(percent_encoding::percent_encode_byte(byte));
            }
        }
    }
    if let Some(fragment) = fragment {
        out.push('#');
        out.push_str(fragment);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_appended_without_the_key() {
        for (location, query, expected) in [
            ("https://e.com/", "a=1", "https://e.com/?a=1"),
            ("https://e.com", "a=1", "https://e.com?a=1"),
            ("https://e.com/?x=y", "a=1&b", "https://e.com/?x=y&a=1&b"),
            ("https://e.com/?", "a=1", "https://e.com/?a=1"),
            ("https://e.com/?x&", "a=1", "https://e.com/?x&a=1"),
            ("https://e.com/#top", "a=1", "https://e.com/?a=1#top"),
            ("https://e.com/?x=y#?z", "a=1", "https://e.com/?x=y&a=1#?z"),
            ("https://e.com/", "", "https://e.com/"),
            ("https://e.com/#f", "access_token=k", "https://e.com/#f"),
            ("https://e.com/", "a=1&access_token=k&b=2", "https://e.com/?a=1&b=2"),
            ("https://e.com/", "access%5Ftoken=k&ACCESS_TOKEN=k&%61ccess_token=k&c", "https://e.com/?c"),
            ("https://e.com/", "access_token", "https://e.com/"),
            ("https://e.com/", "access_tokens=1", "https://e.com/?access_tokens=1"),
            ("https://e.com/", "q=a|b\"{é}", "https://e.com/?q=a%7Cb%22%7B%C3%A9%7D"),
        ] {
            assert_eq!(forward_query(location, query), expected, "{location} + {query}");
        }
    }
}
