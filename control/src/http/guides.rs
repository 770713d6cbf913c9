//! The guides for users: Markdown files of the repository, built in and shown as HTML.
//!
//! Links between guides name the files (`events.md#limits`), so that they work on a code host too. Headings get the
//! anchors that code hosts give them. Raw HTML in a guide is shown as text.

use std::sync::{Arc, LazyLock};

use axum::{Router, extract::State, response::Redirect, routing::get};
use kernel::service::Core;
use maud::{DOCTYPE, PreEscaped, html};
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd};

use super::{docs::STYLE, service_info, state::RouterState};

macro_rules! guides {
    ($($name:literal),* $(,)?) => {
        /// Each guide: its name in URLs, and its text. The files are those of `deploy/guide`.
        const GUIDES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../../deploy/guide/", $name, ".md")))),*];
    };
}

guides![
    "alerts",
    "assessment",
    "audit",
    "cases",
    "clickhouse",
    "compatibility",
    "connected-things",
    "console",
    "digital-link",
    "domains",
    "events",
    "export",
    "fleet",
    "keys",
    "link-changes",
    "links",
    "moving",
    "operations",
    "operators-tool",
    "pages",
    "platform",
    "printing",
    "privacy",
    "reactions",
    "resolver",
    "roles",
    "rules",
    "settings",
    "sign-in",
    "single-sign-on",
    "sizing",
    "statistics",
    "users",
    "webhooks",
];

/// The list of guides.
const INDEX: &str = include_str!("../../../deploy/guide/README.md");

/// Path of the list; guides lie below it.
const ROOT: &str = "/docs/guide/";

/// The list and every guide, as HTML; rendered at the first request for one of them.
static PAGES: LazyLock<Vec<Arc<str>>> = LazyLock::new(|| {
    let guides = GUIDES.iter().map(|(_, markdown)| *markdown);
    std::iter::once(INDEX).chain(guides).map(|markdown| page(markdown).into()).collect()
});

/// One route for each guide, so that an unknown name is an unknown path. They need no key.
pub(super) fn routes() -> Router<RouterState> {
    let list = ROOT.trim_end_matches('/');
    let router = Router::new().route(list, get(|| async { Redirect::permanent(ROOT) }));
    let names = std::iter::once("").chain(GUIDES.iter().map(|(name, _)| *name));
    names.enumerate().fold(router, |router, (at, name)| {
        let page = move |State(core): State<Arc<Core>>| async move {
            service_info::page(&core, PAGES.get(at).map(|page| &**page).unwrap_or_default())
        };
        router.route(&format!("{ROOT}{name}"), get(page))
    })
}

/// A whole page of HTML.
fn page(markdown: &str) -> String {
    let (title, body) = render(markdown);
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " - Waymark" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                p { a href="./" { "Guides" } " · " a href="/docs" { "API" } }
                (PreEscaped(body))
            }
        }
    }
    .into_string()
}

/// The text of the first heading, and the HTML of the whole text.
fn render(markdown: &str) -> (String, String) {
    let mut events: Vec<Event<'_>> = Parser::new_ext(markdown, Options::ENABLE_TABLES).collect();
    let mut title = String::new();
    // Where the heading that is read begins, and its text so far.
    let mut heading: Option<(usize, String)> = None;
    for at in 0..events.len() {
        let Some(event) = events.get_mut(at) else { continue };
        match event {
            Event::Start(Tag::Heading { .. }) => heading = Some((at, String::new())),
            Event::Text(part) | Event::Code(part) => {
                if let Some((_, text)) = &mut heading {
                    text.push_str(part);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let Some((start, text)) = heading.take() else { continue };
                if let Some(Event::Start(Tag::Heading { id, .. })) = events.get_mut(start) {
                    *id = Some(anchor(&text).into());
                }
                if title.is_empty() {
                    title = text;
                }
            }
            Event::Start(Tag::Link { dest_url, .. }) => *dest_url = destination(dest_url).into(),
            Event::Html(raw) | Event::InlineHtml(raw) => {
                let raw = std::mem::replace(raw, CowStr::Borrowed(""));
                *event = Event::Text(raw);
            }
            _ => {}
        }
    }
    let mut html = String::with_capacity(markdown.len() * 2);
    pulldown_cmark::html::push_html(&mut html, events.into_iter());
    (title, html)
}

/// The anchor that code hosts give a heading: `What is looked at` is `what-is-looked-at`.
fn anchor(heading: &str) -> String {
    let lower = heading.to_lowercase();
    let kept = lower.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Where a link leads in the product: `events.md#limits` is `events#limits`, `README.md` is the list.
fn destination(url: &str) -> String {
    let (file, fragment) = match url.split_once('#') {
        Some((file, fragment)) => (file, format!("#{fragment}")),
        None => (url, String::new()),
    };
    match file.strip_suffix(".md") {
        Some("README") => format!("./{fragment}"),
        Some(name) if !name.contains('/') => format!("{name}{fragment}"),
        Some(_) | None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(markdown: &str, html: &str) {
        assert_eq!(render(markdown).1.trim(), html, "{markdown}");
    }

    #[test]
    fn raw_html_is_shown_as_text() {
        check("<script>alert(1)</script>\n", "&lt;script&gt;alert(1)&lt;/script&gt;");
        check("a <b onclick=\"x\">b</b>", "<p>a &lt;b onclick=\"x\"&gt;b&lt;/b&gt;</p>");
        check("<!-- a note -->\n", "&lt;!-- a note --&gt;");
        check("`<i>`", "<p><code>&lt;i&gt;</code></p>");
        let quoted = render("[a](<x\"onclick=\"y>)").1;
        assert!(!quoted.contains("\"onclick"), "{quoted}");
    }

    #[test]
    fn headings_have_anchors_and_the_first_is_the_title() {
        let (title, html) = render("# A `b` c\n\n## Who's who, and *why*?\n");
        assert_eq!(title, "A b c");
        assert!(
            html.contains("<h1 id=\"a-b-c\">") && html.contains("<h2 id=\"whos-who-and-why\">"),
            "{html}"
        );
    }

    #[test]
    fn links_between_guides_lose_their_ending() {
        check("[a](events.md)", "<p><a href=\"events\">a</a></p>");
        check("[a](events.md#limits)", "<p><a href=\"events#limits\">a</a></p>");
        check("[a](#limits)", "<p><a href=\"#limits\">a</a></p>");
        check("[a](README.md#x)", "<p><a href=\"./#x\">a</a></p>");
        check("[a](https://example.com/a.md)", "<p><a href=\"https://example.com/a.md\">a</a></p>");
    }

    #[test]
    fn tables_and_blocks_of_code_are_rendered() {
        let table = render("| a | b |\n|---|---|\n| `1` | 2 |\n").1;
        assert!(table.contains("<th>a</th>") && table.contains("<td><code>1</code></td>"), "{table}");
        check("```sh\na < b\n```", "<pre><code class=\"language-sh\">a &lt; b\n</code></pre>");
    }

    #[test]
    fn every_file_of_the_folder_is_a_guide_and_the_list_names_each() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/guide");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .filter(|file| file != "README.md")
            .collect();
        files.sort();
        let guides: Vec<String> = GUIDES.iter().map(|(name, _)| format!("{name}.md")).collect();
        assert_eq!(files, guides);
        for file in files {
            assert!(INDEX.contains(&format!("]({file})")), "the list lacks {file}");
        }
    }
}
