//! What all pages have in common: their look, with the logo, the name and the colours of the account.

use shared::pages::{Colors, Pages};

use super::{Brand, escape, put};

/// What a page may load: its own style, and the logo that it holds.
pub const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'";

impl Brand {
    /// A page of something else than a [`super::Kind`], which the edge answers with. `title` is text in an unknown language, `main`
    /// is HTML.
    #[must_use]
    pub fn page(&self, title: &str, main: &str) -> String {
        let title = escape(title);
        let mut page = begin("", "", &title, self.pages.as_deref());
        put(&mut page, format_args!("<main><h1>{title}</h1>{main}</main></body></html>"));
        page
    }
}

/// A page up to its text. `direction` is an attribute, `title` is HTML.
pub(super) fn begin(language: &str, direction: &str, title: &str, pages: Option<&Pages>) -> String {
    let mut page = format!(
        "<!doctype html><html lang=\"{}\"{direction}><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <meta name=\"robots\" content=\"noindex\"><title>{title}</title><style>{}{STYLE}</style></head><body>",
        escape(language),
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
    page
}

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
