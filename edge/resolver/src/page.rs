//! Links as a page for people.

use std::fmt::Write;

use visitor_pages::{Brand, escape};

use crate::linkset::Shown;

/// A page with the links of all levels, in the look of the account. It has no words of its own, and so no language.
pub(crate) fn page(levels: &[Shown<'_>], brand: &Brand) -> String {
    let title = levels.first().map_or("", |level| level.description);
    let mut main = String::new();
    for (nth, level) in levels.iter().enumerate() {
        if nth > 0 {
            put(&mut main, format_args!("<h2>{}</h2>", escape(level.description)));
        }
        for (link, href) in &level.links {
            let language = link.hreflang.first().map(|tag| escape(tag)).unwrap_or_default();
            put(
                &mut main,
                format_args!(
                    "<p><a class=\"k\" rel=\"noopener noreferrer\" href=\"{}\" hreflang=\"{language}\" lang=\"{language}\">{}</a>",
                    escape(href),
                    escape(&link.title),
                ),
            );
            let facts = link.hreflang.iter().chain(&link.media_type).chain(&link.context);
            for fact in facts {
                put(&mut main, format_args!(" <small>{}</small>", escape(fact)));
            }
            main.push_str("</p>");
        }
    }
    brand.page(title, &main)
}

fn put(page: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string never fails.
    let _ = page.write_fmt(text);
}
