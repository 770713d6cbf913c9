//! What all pages have around their words: head, style, name and logo of the account, and the contact.

use std::fmt::Write;

use shared::{
    contact::Contact,
    pages::{Colors, Pages},
};

use crate::page::Brand;

/// What a page may load: its own style, and the logo that it holds. Its form goes to its own host.
pub const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'; frame-ancestors 'none'";

/// Languages that are written from right to left.
const RIGHT_TO_LEFT: [&str; 13] =
    ["ar", "arc", "ckb", "dv", "fa", "he", "iw", "ks", "ps", "sd", "ug", "ur", "yi"];
/// Scripts that are written from right to left (ISO 15924).
const RIGHT_TO_LEFT_SCRIPTS: [&str; 9] =
    ["Adlm", "Arab", "Aran", "Hebr", "Mand", "Nkoo", "Rohg", "Syrc", "Thaa"];

/// A page without a script, another host, or an image but the logo.
pub(crate) struct Frame<'a> {
    /// The language of its words.
    pub(crate) tag: &'a str,
    /// Its heading, a plain text.
    pub(crate) title: &'a str,
    /// What stands below the heading, as HTML.
    pub(crate) main: String,
    /// What stands before the contact, as HTML.
    pub(crate) footer: String,
    /// Stands before the contact.
    pub(crate) report: &'a str,
    /// What the account has chosen.
    pub(crate) pages: Option<&'a Pages>,
    /// Where abuse is reported.
    pub(crate) contact: Option<&'a Contact>,
}

impl Frame<'_> {
    /// The page.
    pub(crate) fn html(&self) -> String {
        let mut page = begin(self.tag, self.title, &self.main, self.pages);
        put(&mut page, format_args!("<footer>{}", self.footer));
        if let Some(contact) = self.contact {
            let (label, uri) = (escape(self.report), contact.uri());
            put(&mut page, format_args!("<p>{label}: <a href=\"{uri}\">{contact}</a></p>"));
        }
        page.push_str("</footer></body></html>");
        page
    }
}

impl Brand {
    /// A page of something else than a [`Kind`](crate::Kind), which the edge answers with. `title` is text in an unknown language,
    /// `main` is HTML.
    #[must_use]
    pub fn page(&self, title: &str, main: &str) -> String {
        let mut page = begin("", title, main, self.pages.as_deref());
        page.push_str("</body></html>");
        page
    }
}

/// A page up to its footer. `title` is text, `main` is HTML.
fn begin(tag: &str, title: &str, main: &str, pages: Option<&Pages>) -> String {
    let title = escape(title);
    let direction = if is_right_to_left(tag) { " dir=\"rtl\"" } else { "" };
    let forms = if main.contains("<form") { FORMS } else { "" };
    let mut page = format!(
        "<!doctype html><html lang=\"{}\"{direction}><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <meta name=\"robots\" content=\"noindex\"><title>{title}</title><style>{}{STYLE}{forms}</style></head><body>",
        escape(tag),
        colors(pages.and_then(|pages| pages.colors)),
    );
    if let Some(pages) = pages.filter(|pages| pages.logo.is_some() || pages.name.is_some()) {
        page.push_str("<header>");
        if let Some(logo) = &pages.logo {
            page.push_str("<img src=\"");
            page.push_str(&escape(logo));
            page.push_str("\" alt=\"\">");
        }
        if let Some(name) = &pages.name {
            put(&mut page, format_args!("<p class=\"n\">{}</p>", escape(name)));
        }
        page.push_str("</header>");
    }
    put(&mut page, format_args!("<main><h1>{title}</h1>{main}</main>"));
    page
}

/// A script that is named decides, as in `pa-Arab`: the only part of four letters before extensions, which begin with one letter.
fn is_right_to_left(tag: &str) -> bool {
    let primary = tag.split('-').next().unwrap_or_default();
    let script = tag
        .split('-')
        .skip(1)
        .take_while(|part| part.len() > 1)
        .find(|part| part.len() == 4 && part.bytes().all(|byte| byte.is_ascii_alphabetic()));
    let is_in = |all: &[&str], part: &str| all.iter().any(|one| one.eq_ignore_ascii_case(part));
    script.map_or_else(|| is_in(&RIGHT_TO_LEFT, primary), |script| is_in(&RIGHT_TO_LEFT_SCRIPTS, script))
}

fn put(page: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string never fails.
    let _ = page.write_fmt(text);
}

/// The style of pages with a form.
const FORMS: &str = "button.k{border:0;font:inherit;cursor:pointer}label{display:block;margin:.75rem 0 .25rem}\
    textarea,input{box-sizing:border-box;width:100%;font:inherit;padding:.5rem;background:var(--b);\
    color:var(--t);border:1px solid;border-radius:.5rem}";

const STYLE: &str = "body{background:var(--b);color:var(--t);font:1rem/1.5 system-ui,sans-serif;margin:0;\
    min-height:100vh;display:flex;flex-direction:column;justify-content:center;align-items:center;\
    overflow-wrap:anywhere}header,main,footer{box-sizing:border-box;width:100%;max-width:36rem;padding:0 2rem}\
    h1{font-size:1.5rem;line-height:1.3;margin:.5rem 0}p{margin:.5rem 0}.n{font-weight:600}\
    img{background:var(--l);border-radius:.5rem;padding:.5rem;max-width:12rem;max-height:6rem}\
    .k{display:inline-block;background:var(--a);color:var(--o);border-radius:.5rem;padding:.6rem 1.2rem;\
    margin:.5rem 0;text-decoration:none}footer{font-size:.875rem}footer a{color:inherit}";

/// Colours in the light and in the dark: of the background, the text, the button and its text, and behind the logo.
fn colors(own: Option<Colors>) -> String {
    const DARK: &str = "@media(prefers-color-scheme:dark){:root{";
    let Some(Colors { background, text, accent }) = own else {
        return format!(
            ":root{{color-scheme:light dark;--b:#fff;--t:#1a1a1a;--a:#0b57d0;--o:#fff;--l:#fff}}\
             {DARK}--b:#121212;--t:#ececec;--a:#8ab4f8;--o:#121212}}}}"
        );
    };
    let mut css =
        format!(":root{{--b:{background};--t:{text};--a:{accent};--o:{background};--l:{background}}}");
    if background.luminance() > text.luminance() {
        // Both pairs keep the contrast that was checked.
        css.push_str(&format!("{DARK}--b:{text};--t:{background};--a:{background};--o:{text}}}}}"));
    }
    css
}

/// A text as HTML shows it, also in a quoted attribute.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&#34;"),
            // A browser would read them as something else.
            '\0' => escaped.push('\u{fffd}'),
            letter => escaped.push(letter),
        }
    }
    escaped
}
