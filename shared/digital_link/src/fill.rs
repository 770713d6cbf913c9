//! Targets with tags for what a Digital Link says: `{01}`, `{10}`, `{21}`, `{22}` and `{thngId}`.

use shared::rules::split_at_byte;

use crate::value::push_encoded;

/// Values for the tags of a target; an absent one expands to nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tags<'a> {
    /// `{01}`.
    pub gtin: &'a str,
    /// `{22}`.
    pub variant: Option<&'a str>,
    /// `{10}`.
    pub lot: Option<&'a str>,
    /// `{21}`.
    pub serial: Option<&'a str>,
    /// `{thngId}`.
    pub thng_id: Option<&'a str>,
}

impl<'a> Tags<'a> {
    /// The value of a tag; `None` where the text in braces is no tag.
    fn find(&self, tag: &str) -> Option<&'a str> {
        match tag {
            "01" => Some(self.gtin),
            "22" => Some(self.variant.unwrap_or_default()),
            "10" => Some(self.lot.unwrap_or_default()),
            "21" => Some(self.serial.unwrap_or_default()),
            "thngId" => Some(self.thng_id.unwrap_or_default()),
            _ => None,
        }
    }
}

/// The target with its tags replaced; unknown tags stay. Values are percent-encoded, so they add no other part to the URL.
#[must_use]
pub fn expand(href: &str, tags: &Tags<'_>) -> String {
    let mut out = String::with_capacity(href.len() + 24);
    let mut rest = href;
    while let Some((before, behind)) = split_at_byte(rest, b'{') {
        out.push_str(before);
        let found = split_at_byte(behind, b'}').and_then(|(tag, rest)| Some((tags.find(tag)?, rest)));
        match found {
            Some((value, behind)) => {
                push_encoded(value, &mut out);
                rest = behind;
            }
            None => {
                out.push('{');
                rest = behind;
            }
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_replaced_by_encoded_values() {
        let tags = Tags {
            gtin: "09528765123457",
            variant: Some("V"),
            lot: Some("L/1"),
            serial: Some("A&B"),
            thng_id: Some("T"),
        };
        for (href, expected) in [
            ("https://a.example/", "https://a.example/"),
            ("https://a.example/{01}/{21}?l={10}#{22}", "https://a.example/09528765123457/A%26B?l=L%2F1#V"),
            ("https://a.example/{thngId}", "https://a.example/T"),
            ("https://a.example/{other}{{01}{", "https://a.example/{other}{09528765123457{"),
        ] {
            assert_eq!(expand(href, &tags), expected, "{href}");
        }
        let bare = Tags { gtin: "09528765123457", ..Tags::default() };
        assert_eq!(expand("https://a.example/{10}{21}{22}{thngId}", &bare), "https://a.example/");
    }
}
