//! Target URLs: what a redirection leads to, validated when it is written.

use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use url::Url;

/// Longest target in bytes, as stored.
pub const MAX_BYTES: usize = 2_048;

/// Unreserved characters of RFC 3986 stay as they are in a tag's value.
const TAG_VALUE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Why a text is not a target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTarget {
    /// Longer than [`MAX_BYTES`].
    #[error("must have at most 2048 bytes")]
    TooLong,
    /// A byte outside printable ASCII, or a space.
    #[error("must be printable ASCII without spaces; percent-encode other characters")]
    Characters,
    /// Not an absolute `http` or `https` URL.
    #[error("must be an absolute http or https URL")]
    NotHttp,
    /// User name or password inside.
    #[error("must not hold a user name or password")]
    Credentials,
    /// A brace around anything but a tag.
    #[error(
        "holds an unknown tag; allowed are {{shortId}} {{platformId}} {{evrythngId}} {{thngId}} {{productId}}"
    )]
    UnknownTag,
    /// A tag in the scheme or host.
    #[error("must not hold a tag in the scheme or host")]
    TagInHost,
}

/// A validated target, as it was given, tags not expanded.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Target(Box<str>);

/// A target split at its tags, for fast repeated expansion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    parts: Box<[Part]>,
    /// Bytes of the texts between the tags.
    text_bytes: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(Box<str>),
    Tag(Tag),
}

/// A tag in braces, which is replaced by its percent-encoded value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tag {
    Short,
    Platform,
    Thng,
    Product,
}

/// Values for the tags of a target; an absent one expands to nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct TagValues<'a> {
    /// `{shortId}`.
    pub short_id: &'a str,
    /// `{platformId}` and `{evrythngId}`.
    pub platform_id: &'a str,
    /// `{thngId}`.
    pub thng_id: Option<&'a str>,
    /// `{productId}`.
    pub product_id: Option<&'a str>,
}

impl Target {
    /// Checks a target: absolute `http`/`https`, printable ASCII, no credentials, known tags only.
    ///
    /// # Errors
    /// The first fault found.
    pub fn parse(text: &str) -> Result<Self, InvalidTarget> {
        if text.len() > MAX_BYTES {
            return Err(InvalidTarget::TooLong);
        }
        let forbidden =
            |b: u8| !b.is_ascii_graphic() || matches!(b, b'"' | b'<' | b'>' | b'\\' | b'^' | b'`' | b'|');
        if text.bytes().any(forbidden) {
            return Err(InvalidTarget::Characters);
        }
        let (mut sample, mut rest) = (String::with_capacity(text.len()), text);
        while let Some((before, tag, behind)) = cut_at_tag(rest) {
            Tag::parse(tag).ok_or(InvalidTarget::UnknownTag)?;
            sample.push_str(before);
            sample.push('0');
            rest = behind;
        }
        sample.push_str(rest);
        if sample.contains(['{', '}']) {
            return Err(InvalidTarget::UnknownTag);
        }
        let url = parse_http(&sample)?;
        let authority_end = authority_end(text);
        if text[..authority_end].contains('{') {
            return Err(InvalidTarget::TagInHost);
        }
        if !url.username().is_empty() || url.password().is_some() || text[..authority_end].contains('@') {
            return Err(InvalidTarget::Credentials);
        }
        Ok(Self(text.into()))
    }

    /// The target as it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The target with its tags replaced: the bytes of `Location`.
    #[must_use]
    pub fn expand(&self, values: &TagValues<'_>) -> String {
        self.template().expand(values)
    }

    /// The target cut at its tags.
    #[must_use]
    pub fn template(&self) -> Template {
        let (mut parts, mut rest) = (Vec::new(), &*self.0);
        while let Some((text, tag, behind)) = cut_at_tag(rest) {
            parts.extend((!text.is_empty()).then(|| Part::Text(text.into())));
            // Every tag is known: others were refused.
            parts.extend(Tag::parse(tag).map(Part::Tag));
            rest = behind;
        }
        parts.extend((!rest.is_empty()).then(|| Part::Text(rest.into())));
        let length = |part: &Part| match part {
            Part::Text(text) => text.len(),
            Part::Tag(_) => 0,
        };
        Template { text_bytes: parts.iter().map(length).sum(), parts: parts.into() }
    }

    /// Host in lower case, with a port that is not the default.
    #[must_use]
    pub fn host(&self) -> Option<String> {
        // A tag stands behind the host.
        let url = Url::parse(&self.expand(&TagValues::default())).ok()?;
        let host = url.host_str()?.to_ascii_lowercase();
        Some(url.port().map_or_else(|| host.clone(), |port| format!("{host}:{port}")))
    }

    /// Host with a port that is not the default, and the path without its first slash, if there is one.
    ///
    /// Serves to find targets that are short URLs themselves, once their tags are replaced.
    #[must_use]
    pub fn as_short_url(&self, values: &TagValues<'_>) -> Option<(String, String)> {
        let url = Url::parse(&self.expand(values)).ok()?;
        let mut host = url.host_str()?.to_ascii_lowercase();
        if let Some(port) = url.port() {
            host = format!("{host}:{port}");
        }
        let path = url.path().strip_prefix('/').filter(|path| !path.is_empty())?;
        Some((host, path.to_owned()))
    }
}

impl Template {
    /// The target with its tags replaced: the bytes of `Location`.
    #[must_use]
    pub fn expand(&self, values: &TagValues<'_>) -> String {
        let value_bytes = |part: &Part| match part {
            Part::Text(_) => 0,
            Part::Tag(tag) => values.find(*tag).len(),
        };
        // Exact for ids, which need no encoding: what becomes a header value without a copy.
        let mut out =
            String::with_capacity(self.text_bytes + self.parts.iter().map(value_bytes).sum::<usize>());
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Tag(tag) => out.extend(utf8_percent_encode(values.find(*tag), TAG_VALUE)),
            }
        }
        out
    }
}

impl Tag {
    fn parse(name: &str) -> Option<Self> {
        match name {
            "shortId" => Some(Self::Short),
            // The older name of `platformId`.
            "platformId" | "evrythngId" => Some(Self::Platform),
            "thngId" => Some(Self::Thng),
            "productId" => Some(Self::Product),
            _ => None,
        }
    }
}

impl<'a> TagValues<'a> {
    fn find(&self, tag: Tag) -> &'a str {
        match tag {
            Tag::Short => self.short_id,
            Tag::Platform => self.platform_id,
            Tag::Thng => self.thng_id.unwrap_or_default(),
            Tag::Product => self.product_id.unwrap_or_default(),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn parse_http(text: &str) -> Result<Url, InvalidTarget> {
    // `http:/x` and `http:x` are repaired by the URL standard; a client may not, so `//` is required.
    let lower = text.get(..8).unwrap_or(text).to_ascii_lowercase();
    if !lower.starts_with("http://") && !lower.starts_with("https://") {
        return Err(InvalidTarget::NotHttp);
    }
    let url = Url::parse(text).map_err(|_| InvalidTarget::NotHttp)?;
    if authority_end(text) == lower.find("//").map_or(0, |at| at + 2) {
        Err(InvalidTarget::NotHttp)
    } else {
        Ok(url)
    }
}

/// Index behind the authority (`scheme://authority`) of a URL text.
fn authority_end(text: &str) -> usize {
    let start = text.find("://").map_or(0, |at| at + 3);
    text[start..].find(['/', '?', '#']).map_or(text.len(), |at| start + at)
}

/// What stands before the first tag, the tag's name, and what stands behind it.
fn cut_at_tag(text: &str) -> Option<(&str, &str, &str)> {
    let open = text.find('{')?;
    let (name, behind) = text[open + 1..].split_once('}')?;
    Some((&text[..open], name, behind))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn targets_are_checked() {
        use InvalidTarget as Bad;
        for (text, expected) in [
            ("https://example.com", Ok(())),
            ("HTTP://EXAMPLE.COM:8080/a?b=c#d", Ok(())),
            ("https://example.com/{shortId}?t={thngId}&p={productId}", Ok(())),
            ("https://example.com?x={platformId}", Ok(())),
            ("https://[::1]:8443/x", Ok(())),
            ("https://example.com/a@b", Ok(())),
            ("javascript:alert(1)", Err(Bad::NotHttp)),
            ("data:text/html,hi", Err(Bad::NotHttp)),
            ("ftp://example.com/", Err(Bad::NotHttp)),
            ("//example.com/", Err(Bad::NotHttp)),
            ("/relative", Err(Bad::NotHttp)),
            ("example.com", Err(Bad::NotHttp)),
            ("", Err(Bad::NotHttp)),
            ("https://", Err(Bad::NotHttp)),
            ("https:///path", Err(Bad::NotHttp)),
            ("https:example.com", Err(Bad::NotHttp)),
            ("https://exa mple.com", Err(Bad::Characters)),
            ("https://example.com/\r\nSet-Cookie: a=b", Err(Bad::Characters)),
            ("https://example.com/\u{7f}", Err(Bad::Characters)),
            ("https://example.com/ü", Err(Bad::Characters)),
            ("https://example.com\\@evil.example", Err(Bad::Characters)),
            ("https://user@example.com/", Err(Bad::Credentials)),
            ("https://user:pass@example.com/", Err(Bad::Credentials)),
            ("https://:@example.com/", Err(Bad::Credentials)),
            ("https://{shortId}.example.com/", Err(Bad::TagInHost)),
            ("https://example.com/{shortID}", Err(Bad::UnknownTag)),
            ("https://example.com/{", Err(Bad::UnknownTag)),
            ("https://example.com/}", Err(Bad::UnknownTag)),
            ("https://example.com/{{shortId}}", Err(Bad::UnknownTag)),
            ("https://example.com:99999/", Err(Bad::NotHttp)),
        ] {
            assert_eq!(Target::parse(text).map(|_| ()), expected, "{text:?}");
        }
    }

    #[test]
    fn length_is_bounded_to_the_byte() {
        let base = "https://example.com/";
        let fits = format!("{base}{}", "a".repeat(MAX_BYTES - base.len()));
        assert!(Target::parse(&fits).is_ok());
        assert_eq!(Target::parse(&format!("{fits}a")), Err(InvalidTarget::TooLong));
    }

    #[test]
    fn tags_expand_to_encoded_values() {
        let target =
            Target::parse("https://e.com/{shortId}?a={evrythngId}&t={thngId}&p={productId}").unwrap();
        let values =
            TagValues { short_id: "A_b-1", platform_id: "x y&z", thng_id: Some("é"), product_id: None };
        assert_eq!(target.expand(&values), "https://e.com/A_b-1?a=x%20y%26z&t=%C3%A9&p=");
    }

    #[test]
    fn short_urls_are_recognised() {
        for (text, expected) in [
            ("https://TN.gg/ABC", Some(("tn.gg", "ABC"))),
            ("http://127.0.0.1:8081/abc?x=1#y", Some(("127.0.0.1:8081", "abc"))),
            ("https://tn.gg/{shortId}?t={thngId}", Some(("tn.gg", "ABC"))),
            ("https://tn.gg/{shortId}-{platformId}", Some(("tn.gg", "ABC-P"))),
            ("https://tn.gg/shop/{shortId}", Some(("tn.gg", "shop/ABC"))),
            ("https://tn.gg/", None),
        ] {
            let values = TagValues { short_id: "ABC", platform_id: "P", ..TagValues::default() };
            let found = Target::parse(text).unwrap().as_short_url(&values);
            assert_eq!(found, expected.map(|(h, s)| (h.to_owned(), s.to_owned())), "{text}");
        }
    }

    proptest! {
        #[test]
        fn whatever_is_accepted_is_a_safe_header_value(text in ".{0,80}") {
            for candidate in [text.clone(), format!("https://e.com/{text}")] {
                if let Ok(target) = Target::parse(&candidate) {
                    let location = target.expand(&TagValues::default());
                    prop_assert!(location.bytes().all(|b| b.is_ascii_graphic()), "{location:?}");
                    prop_assert!(Url::parse(&location).is_ok());
                }
            }
        }
    }
}
