//! Fills in what a link's target takes from the request.

use digital_link::{DigitalLink, Qualifier, push_encoded};
use shared::digital_link::SerialMode;

/// What the tags of targets stand for; an absent value is empty.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Values<'a> {
    link: &'a DigitalLink<'a>,
    mode: SerialMode,
    thng_id: Option<&'a str>,
}

impl<'a> Values<'a> {
    pub(crate) const fn new(link: &'a DigitalLink<'a>, mode: SerialMode, thng_id: Option<&'a str>) -> Self {
        Self { link, mode, thng_id }
    }

    /// The value of a tag; `None` where the text in braces is no tag.
    fn find(self, tag: &str) -> Option<&'a str> {
        let of = |qualifier| self.link.get(qualifier).unwrap_or_default();
        Some(match tag {
            "01" => self.link.gtin(),
            "21" if self.mode == SerialMode::None => "",
            "21" => of(Qualifier::Serial),
            "10" => of(Qualifier::Lot),
            "22" => of(Qualifier::Variant),
            "thngId" => self.thng_id.unwrap_or_default(),
            _ => return None,
        })
    }

    /// The target with its tags replaced. Values are percent-encoded, so they add no other part to the URL.
    pub(crate) fn fill(self, href: &str) -> String {
        let mut out = String::with_capacity(href.len() + 24);
        let mut rest = href;
        while let Some((before, behind)) = split(rest, b'{') {
            out.push_str(before);
            let found = split(behind, b'}').and_then(|(tag, rest)| Some((self.find(tag)?, rest)));
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
}

/// What is before and behind the first of these bytes. Targets are short: this is faster than `split_once`.
fn split(text: &str, at: u8) -> Option<(&str, &str)> {
    let at = text.bytes().position(|byte| byte == at)?;
    Some((text.get(..at)?, text.get(at + 1..)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_replaced_by_encoded_values() {
        let link = DigitalLink::parse("/01/09528765123457/22/V/10/L%2F1/21/A&B", None).unwrap();
        for (mode, href, expected) in [
            (SerialMode::Template, "https://a.example/", "https://a.example/"),
            (
                SerialMode::Template,
                "https://a.example/{01}/{21}?l={10}#{22}",
                "https://a.example/09528765123457/A%26B?l=L%2F1#V",
            ),
            (SerialMode::None, "https://a.example/{21}x", "https://a.example/x"),
            (SerialMode::Known, "https://a.example/{thngId}", "https://a.example/T"),
            (
                SerialMode::Known,
                "https://a.example/{other}{{01}{",
                "https://a.example/{other}{09528765123457{",
            ),
        ] {
            assert_eq!(Values::new(&link, mode, Some("T")).fill(href), expected, "{href}");
        }
        let bare = DigitalLink::parse("/01/09528765123457", None).unwrap();
        let empty = Values::new(&bare, SerialMode::Known, None);
        assert_eq!(empty.fill("https://a.example/{10}{21}{22}{thngId}"), "https://a.example/");
    }
}
