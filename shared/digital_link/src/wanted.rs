//! What a request asks for: a type of link, a context, languages, and the form of the answer.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use shared::{negotiate::weigh, rules::accepted_languages};

use crate::link_types;

/// In which form the links are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A redirect to one of them.
    Redirect,
    /// All of them as JSON, under this media type.
    Linkset(&'static str),
    /// All of them as a page.
    Page,
}

/// The media type of RFC 9264.
pub const LINKSET: &str = "application/linkset+json";
const JSON: &str = "application/json";

/// What a request asks for.
#[derive(Debug, Clone)]
pub(crate) struct Wanted<'a> {
    /// The type of link, as a curie or a URI; `None` asks for the default link.
    pub(crate) link_type: Option<Cow<'a, str>>,
    /// The context, such as a country.
    pub(crate) context: Option<Cow<'a, str>>,
    /// `Accept`, if it is text.
    pub(crate) accept: Option<&'a str>,
    /// `Accept-Language`, if it is text.
    language: Option<&'a str>,
    pub(crate) form: Form,
}

impl<'a> Wanted<'a> {
    /// Reads a raw query (without `?`) and two headers. Of a parameter that is there twice the first one counts.
    pub(crate) fn read(query: Option<&'a str>, accept: Option<&'a [u8]>, language: Option<&'a [u8]>) -> Self {
        let text = |bytes: &'a [u8]| str::from_utf8(bytes).ok();
        let (accept, language) = (accept.and_then(text), language.and_then(text));
        let (mut asked, mut context) = (None, None);
        for parameter in query.into_iter().flat_map(|query| query.split('&')) {
            let slot = match parameter.split_once('=') {
                Some(("linkType", value)) => Some((&mut asked, value)),
                Some(("context", value)) => Some((&mut context, value)),
                Some(_) | None => None,
            };
            if let Some((slot, value)) = slot.filter(|(slot, value)| slot.is_none() && !value.is_empty()) {
                *slot = Some(percent_decode_str(value).decode_utf8_lossy());
            }
        }
        let is_list = asked.as_deref().is_some_and(|asked| matches!(asked, "linkset" | "all"));
        let form = form(is_list, asked.is_some(), accept);
        let link_type = asked.filter(|asked| !is_list && !link_types::is_default(asked));
        Self { link_type, context, accept, language, form }
    }

    /// Whether a request without a type may lead elsewhere than to the default link.
    pub(crate) fn has_preference(&self) -> bool {
        self.language.is_some() || self.context.is_some()
    }

    /// The languages that are accepted, the best one first; of equal ones the first stays the first.
    pub(crate) fn languages(&self) -> Vec<&'a str> {
        let accepted = accepted_languages(self.language.unwrap_or_default());
        let mut wanted: Vec<_> = accepted.filter(|(_, quality)| *quality > 0.0).collect();
        wanted.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        wanted.into_iter().map(|(tag, _)| tag).collect()
    }
}

/// A program that names the media type of linksets gets one, whatever else it asks for; one that names JSON gets one where no
/// type of link is named, because such a link may lead to JSON.
fn form(is_list: bool, is_typed: bool, accept: Option<&str>) -> Form {
    let accept = match accept {
        // Nearly every scan. The general rule gives the same: without a `j` there is no JSON among the media types.
        Some(accept)
            if !is_list
                && (accept == "*/*"
                    || accept.starts_with("text/html,")
                        && !accept.bytes().any(|byte| byte | 0x20 == b'j')) =>
        {
            return Form::Redirect;
        }
        Some(accept) => accept,
        None => return if is_list { Form::Linkset(LINKSET) } else { Form::Redirect },
    };
    let html = weigh(accept, "text", "html");
    let linkset = weigh(accept, "application", "linkset+json");
    let json = weigh(accept, "application", "json");
    let (_, is_named) = linkset;
    if linkset.0 > 0 && is_named > 0 && linkset >= html && linkset >= json {
        return Form::Linkset(LINKSET);
    }
    if is_list && html > linkset.max(json) {
        return Form::Page;
    }
    if json > html && (is_list || !is_typed) {
        return Form::Linkset(JSON);
    }
    if is_list { Form::Linkset(LINKSET) } else { Form::Redirect }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_chosen_by_type_and_accept() {
        let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
        for (query, accept, expected) in [
            ("", None, Form::Redirect),
            ("", Some("*/*"), Form::Redirect),
            ("", Some(browser), Form::Redirect),
            ("", Some("undefined"), Form::Redirect),
            ("", Some(""), Form::Redirect),
            ("", Some("text/html"), Form::Redirect),
            ("", Some("image/png"), Form::Redirect),
            ("", Some(LINKSET), Form::Linkset(LINKSET)),
            ("", Some("application/linkset+json, */*"), Form::Linkset(LINKSET)),
            ("", Some("text/html,application/linkset+json"), Form::Linkset(LINKSET)),
            ("", Some("application/linkset+json,text/html"), Form::Linkset(LINKSET)),
            ("", Some("text/html,application/linkset+JSON;q=0.5,*/*;q=0.1"), Form::Redirect),
            ("", Some("text/html, application/linkset+json;q=0.5"), Form::Redirect),
            ("", Some("application/linkset+json;q=0"), Form::Redirect),
            ("", Some("application/json, text/plain, */*"), Form::Linkset(JSON)),
            ("", Some("application/json, application/linkset+json;q=0.9"), Form::Linkset(JSON)),
            ("linkType=gs1:pip", Some("application/json"), Form::Redirect),
            ("linkType=gs1:pip", Some(LINKSET), Form::Linkset(LINKSET)),
            ("linkType=linkset", None, Form::Linkset(LINKSET)),
            ("linkType=linkset", Some("*/*"), Form::Linkset(LINKSET)),
            ("linkType=linkset", Some("image/png"), Form::Linkset(LINKSET)),
            ("linkType=linkset", Some("application/json"), Form::Linkset(JSON)),
            ("linkType=linkset", Some(browser), Form::Page),
            ("linkType=linkset", Some("text/html"), Form::Page),
            ("linkType=all", Some(LINKSET), Form::Linkset(LINKSET)),
        ] {
            let wanted = Wanted::read(Some(query), accept.map(str::as_bytes), None);
            assert_eq!(wanted.form, expected, "{query} {accept:?}");
        }
    }

    #[test]
    fn parameters_are_decoded_and_the_first_counts() {
        let read = |query| {
            let wanted = Wanted::read(Some(query), None, None);
            (wanted.link_type.map(Cow::into_owned), wanted.context.map(Cow::into_owned))
        };
        let text = |text: &str| Some(text.to_owned());
        for (query, expected) in [
            ("linkType=gs1%3Apip&context=LK&linkType=gs1:x", (text("gs1:pip"), text("LK"))),
            ("17=261231&linkType=&context", (None, None)),
            ("linkType=gs1:defaultLink", (None, None)),
            ("linkType=https://www.gs1.org/voc/defaultLink", (None, None)),
            ("linkType=linkset", (None, None)),
            ("linktype=gs1:pip", (None, None)),
            ("linkType=%ff", (text("\u{fffd}"), None)),
        ] {
            assert_eq!(read(query), expected, "{query}");
        }
    }

    #[test]
    fn languages_are_ordered_by_quality() {
        let read = |accepted: &'static str| {
            Wanted::read(None, None, Some(accepted.as_bytes())).languages().join(" ")
        };
        assert_eq!(read("en;q=0.5, pt-BR, de;q=0.8, fr;q=0, *;q=0.1"), "pt-BR de en");
        assert_eq!(read(""), "");
        let many: Vec<String> = (0..5_000).map(|n| format!("x{n};q=0.{n}")).collect();
        let many = many.join(",");
        assert_eq!(Wanted::read(None, None, Some(many.as_bytes())).languages().len(), 31, "q=0.0 is none");
    }
}
