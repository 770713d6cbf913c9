//! The form by which whoever found an item that may be a copy writes to its maker, and what answers it. Without a script: a form
//! is sent to the address of its own page.

use percent_encoding::percent_decode;
use serde_json::{Map, Value};
use shared::contact::Contact;

use crate::{
    frame::{Frame, escape},
    page::{Brand, our_language},
    report_texts::{ReportTexts, texts_of},
};

/// What follows a step of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportPage<'a> {
    /// The form.
    Form {
        /// Goes with the report.
        token: &'a str,
        /// Whether an address may be given.
        takes_mail: bool,
        /// Whether a photo may be given.
        takes_photo: bool,
    },
    /// The report was received.
    Received,
    /// It was not, and this page is no form: another scan gives one.
    Refused,
}

/// The page after a step of a report, for somebody who accepts these languages (`Accept-Language` as sent).
#[must_use]
pub fn report_page(
    page: ReportPage<'_>,
    accepted: Option<&[u8]>,
    brand: &Brand,
    contact: Option<&Contact>,
) -> String {
    let language = our_language(accepted.unwrap_or_default());
    let texts = texts_of(language.tag);
    let (title, main) = match page {
        ReportPage::Form { token, takes_mail, takes_photo } => {
            (texts.offer, form(texts, token, takes_mail, takes_photo))
        }
        ReportPage::Received => (texts.received.0, format!("<p>{}</p>", escape(texts.received.1))),
        ReportPage::Refused => (texts.refused.0, format!("<p>{}</p>", escape(texts.refused.1))),
    };
    let (tag, report, pages) = (language.tag, language.report, brand.pages.as_deref());
    Frame { tag, title, main, footer: String::new(), report, pages, contact }.html()
}

/// The button below the words of the page of copies, which asks for the form.
pub(crate) fn offer(tag: &str) -> String {
    format!("<form method=\"post\"><button class=\"k\">{}</button></form>", escape(texts_of(tag).offer))
}

fn form(texts: &ReportTexts, token: &str, takes_mail: bool, takes_photo: bool) -> String {
    let [token, ask, mail, photo, send] = [token, texts.ask, texts.mail, texts.photo, texts.send].map(escape);
    let mail = if takes_mail {
        format!(
            "<label for=\"m\">{mail}</label><input id=\"m\" name=\"mail\" type=\"email\" maxlength=\"254\" \
             autocomplete=\"email\">"
        )
    } else {
        String::new()
    };
    let (encoding, photo) = if takes_photo {
        let input = format!(
            "<label for=\"p\">{photo}</label><input id=\"p\" name=\"photo\" type=\"file\" \
             accept=\"image/jpeg,image/png,image/webp\">"
        );
        (" enctype=\"multipart/form-data\"", input)
    } else {
        ("", String::new())
    };
    format!(
        "<form method=\"post\"{encoding}><input type=\"hidden\" name=\"token\" value=\"{token}\"><label for=\"t\">{ask}</label>\
         <textarea id=\"t\" name=\"text\" rows=\"6\" maxlength=\"2000\" required></textarea>{mail}{photo}\
         <p><button class=\"k\">{send}</button></p></form>"
    )
}

/// What was filled in, as the JSON that control takes; fields that are empty are left out. `None` if a field is none of ours or comes
/// twice.
#[must_use]
pub fn read_report(form: &[u8]) -> Option<String> {
    let mut report = Map::new();
    for field in form.split(|byte| *byte == b'&').filter(|field| !field.is_empty()) {
        let mut parts = field.splitn(2, |byte| *byte == b'=');
        let name = parts.next().filter(|name| [&b"token"[..], b"text", b"mail"].contains(name))?;
        let spaced: Vec<u8> =
            parts.next()?.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
        // A browser ends lines by two letters, and counts one.
        let value = percent_decode(&spaced).decode_utf8().ok()?.replace("\r\n", "\n");
        let name = str::from_utf8(name).ok()?.to_owned();
        if !value.trim().is_empty() && report.insert(name, value.into()).is_some() {
            return None;
        }
    }
    Some(Value::Object(report).to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use shared::pages::Pages;

    use super::*;
    use crate::texts::LANGUAGES;

    #[test]
    fn each_language_has_a_form_and_its_answers() {
        for language in &LANGUAGES {
            let texts = texts_of(language.tag);
            assert_eq!(texts.tag, language.tag, "it has words of its own");
            for text in [texts.offer, texts.ask, texts.mail, texts.photo, texts.send] {
                assert!((1..=100).contains(&text.chars().count()), "{text}");
            }
            let contact = "abuse@example.com".parse().unwrap();
            let shown =
                |page| report_page(page, Some(language.tag.as_bytes()), &Brand::default(), Some(&contact));
            for (takes_mail, takes_photo) in [(true, true), (true, false), (false, false)] {
                let page = shown(ReportPage::Form { token: "a\"<b", takes_mail, takes_photo });
                assert!(page.contains(&format!("<html lang=\"{}\"", language.tag)), "{page}");
                assert!(page.contains("name=\"token\" value=\"a&#34;&lt;b\""), "{page}");
                assert_eq!(page.contains("name=\"mail\""), takes_mail);
                assert_eq!(
                    page.contains("multipart/form-data") && page.contains("type=\"file\""),
                    takes_photo
                );
                assert_eq!(
                    (page.matches("<label for").count(), page.matches("<h1>").count()),
                    (1 + usize::from(takes_mail) + usize::from(takes_photo), 1)
                );
                assert!(!page.contains("<script") && !page.contains("http"), "{page}");
            }
            for (page, (title, text)) in
                [(ReportPage::Received, texts.received), (ReportPage::Refused, texts.refused)]
            {
                let page = shown(page);
                assert!(page.contains(&format!("<h1>{title}</h1><p>{text}</p>")), "{page}");
            }
        }
    }

    #[test]
    fn forms_become_json() {
        for (form, expected) in [
            ("", Some("{}")),
            (
                "token=1.A.f&text=In+a%20shop%0D%0A%C3%BC%26&mail=",
                Some(r#"{"text":"In a shop\nü&","token":"1.A.f"}"#),
            ),
            ("text=a%3Db=c&mail=a%40b", Some(r#"{"mail":"a@b","text":"a=b=c"}"#)),
            ("text=%FF", None),
            ("text", None),
            ("name=x", None),
            ("text=a&text=b", None),
        ] {
            let found =
                read_report(form.as_bytes()).map(|json| serde_json::from_str::<Value>(&json).unwrap());
            let expected = expected.map(|json| serde_json::from_str::<Value>(json).unwrap());
            assert_eq!(found, expected, "{form}");
        }
    }

    #[test]
    fn the_account_is_shown_and_languages_are_ours() {
        let pages = r#"{"name":"Acme","texts":{"nb":{"copy":{"title":"a","text":"b"}}}}"#;
        let pages: Pages = serde_json::from_str(pages).unwrap();
        let brand = Brand { pages: Some(Arc::new(pages)), shows_link: false };
        let page = report_page(ReportPage::Received, Some(b"nb"), &brand, None);
        assert!(page.contains("<p class=\"n\">Acme</p>") && page.contains("<html lang=\"en\">"), "{page}");
    }
}
