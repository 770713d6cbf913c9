//! Reads what an account chooses for the pages that people see where a code leads nowhere.

mod logo;
mod svg;

use std::collections::BTreeMap;

use serde_json::Value;
use shared::{
    pages::{Color, Colors, MIN_CONTRAST, PageLink, PageText, PageTexts, Pages},
    standing::Risk,
};
use url::Url;

use super::{body::text, limits::shorten, members::Members};

/// Most characters of the name that pages show: a line.
pub const MAX_PAGE_NAME: usize = 80;
/// Most characters of a heading.
pub const MAX_TITLE: usize = 80;
/// Most characters of a text: a paragraph, so that a page stays below 8 KiB.
pub const MAX_TEXT: usize = 500;
/// Most characters of the button.
pub const MAX_LABEL: usize = 40;
/// Most bytes of the URL of the button, each of which may take five on the page.
pub const MAX_LINK_BYTES: usize = 400;
/// Most languages.
pub const MAX_LANGUAGES: usize = 40;
/// Most bytes of all of it as JSON: with two files of the largest size the domain fits a frame of the change stream (256 KiB).
/// While one domain does not fit, no edge connects.
pub const MAX_BYTES: usize = 120 << 10;

/// Most characters of a language tag (RFC 5646, 4.4.1).
const MAX_TAG: usize = 35;

/// The kinds of pages with texts of their own.
pub const KINDS: [&str; 5] = ["unknown", "ended", "suspended", "copy", "root"];
/// Values of `copies`.
pub const COPIES: [Risk; 2] = [Risk::Suspected, Risk::Confirmed];

/// Reads the body of `PUT …/pages`.
///
/// It decodes images, which takes milliseconds.
///
/// # Errors
/// Every fault found, each naming its member.
pub fn parse(body: &Value) -> Result<Pages, Vec<String>> {
    let mut members = Members::of(body)?;
    only(&mut members, &["name", "logo", "colors", "link", "copies", "reports", "photos", "texts"]);
    let pages = Pages {
        name: shown(&mut members, "name", MAX_PAGE_NAME),
        logo: read_logo(&mut members),
        colors: inner(&mut members, "colors", read_colors),
        link: inner(&mut members, "link", read_link),
        copies: read_copies(&mut members),
        reports: members.boolean("reports").unwrap_or_default(),
        photos: members.boolean("photos").unwrap_or_default(),
        texts: inner(&mut members, "texts", read_texts).unwrap_or_default(),
    };
    let bytes = serde_json::to_string(&pages).map_or(usize::MAX, |text| text.len());
    if bytes > MAX_BYTES {
        members.fault(format!("The pages take at most {MAX_BYTES} bytes as JSON, not {bytes}."));
    }
    members.finish(Some(pages))
}

/// Most unknown members of an object that are named one by one, so that an answer stays small.
const MAX_UNKNOWN: usize = 20;

/// Faults for members that are not in `known`.
fn only(members: &mut Members<'_>, known: &[&str]) {
    let unknown: Vec<&str> = members.names().filter(|name| !known.contains(name)).collect();
    for name in unknown.iter().take(MAX_UNKNOWN) {
        let path = members.path(shorten(name));
        members.fault(format!("{path} is not known here."));
    }
    if let Some(more) = unknown.len().checked_sub(MAX_UNKNOWN).filter(|more| *more > 0) {
        members.fault(format!("{more} more members are not known here."));
    }
}

/// Reads an object inside of the body; its faults become those of the body.
fn inner<T>(
    members: &mut Members<'_>,
    name: &str,
    read: impl Fn(&mut Members<'_>) -> Option<T>,
) -> Option<T> {
    let value = members.raw(name)?;
    let found = Members::within(value, &members.path(name)).and_then(|mut inner| {
        let found = read(&mut inner);
        // What is missing has a fault already.
        inner.finish(Some(found))
    });
    match found {
        Ok(found) => found,
        Err(faults) => {
            for fault in faults {
                members.fault(fault);
            }
            None
        }
    }
}

/// A text that people see: not only blanks.
fn shown(members: &mut Members<'_>, name: &str, max: usize) -> Option<Box<str>> {
    let found = text(members, name, 1, max)?;
    if found.chars().all(char::is_whitespace) {
        members.fault(format!("{} must not be blank.", members.path(name)));
        return None;
    }
    Some(found.into_boxed_str())
}

fn required(members: &mut Members<'_>, names: &[&str]) {
    for name in names {
        if members.raw(name).is_none() {
            members.fault(format!("{} is required.", members.path(name)));
        }
    }
}

fn read_logo(members: &mut Members<'_>) -> Option<Box<str>> {
    match logo::check(members.text("logo")?) {
        Ok(url) => Some(url.into_boxed_str()),
        Err(fault) => {
            members.fault(format!("logo {fault}."));
            None
        }
    }
}

fn read_copies(members: &mut Members<'_>) -> Option<Risk> {
    let [suspected, confirmed] = COPIES.map(Risk::as_str);
    members.typed("copies", &format!("{suspected} or {confirmed}"), |value| {
        value.as_str()?.parse().ok().filter(|risk| COPIES.contains(risk))
    })
}

fn read_colors(members: &mut Members<'_>) -> Option<Colors> {
    only(members, &["background", "text", "accent"]);
    required(members, &["background", "text", "accent"]);
    let mut of = |name| members.parsed::<Color>(name);
    let (background, text, accent) = (of("background"), of("text"), of("accent"));
    let background = background?;
    for (name, color) in [("text", text), ("accent", accent)] {
        let Some(contrast) = color.map(|color| color.contrast(background)) else { continue };
        if contrast < MIN_CONTRAST {
            // Rounded down: 4.499 is not 4.5.
            let shown = (contrast * 100.0).floor() / 100.0;
            let (path, other) = (members.path(name), members.path("background"));
            members.fault(format!(
                "{path} has a contrast of {shown:.2} with {other}; it must be at least {MIN_CONTRAST}."
            ));
        }
    }
    Some(Colors { background, text: text?, accent: accent? })
}

fn read_link(members: &mut Members<'_>) -> Option<PageLink> {
    only(members, &["url", "label"]);
    required(members, &["url", "label"]);
    let expected = format!("an https URL of at most {MAX_LINK_BYTES} bytes without user and password");
    let url = members.typed("url", &expected, |value| {
        let url = Url::parse(value.as_str()?).ok()?;
        let is_plain = url.scheme() == "https" && url.username().is_empty() && url.password().is_none();
        (is_plain && url.as_str().len() <= MAX_LINK_BYTES).then(|| Box::<str>::from(String::from(url)))
    });
    let label = shown(members, "label", MAX_LABEL);
    Some(PageLink { url: url?, label: label? })
}

fn read_texts(members: &mut Members<'_>) -> Option<BTreeMap<Box<str>, PageTexts>> {
    let tags: Vec<&str> = members.names().filter(|tag| members.raw(tag).is_some()).collect();
    if tags.len() > MAX_LANGUAGES {
        members.fault(format!("texts has at most {MAX_LANGUAGES} languages, not {}.", tags.len()));
        return None;
    }
    let mut texts: BTreeMap<Box<str>, PageTexts> = BTreeMap::new();
    for tag in tags {
        if !is_tag(tag) {
            let path = members.path(shorten(tag));
            members.fault(format!("{path} must be a language tag such as de or pt-BR."));
            continue;
        }
        if texts.keys().any(|other| other.eq_ignore_ascii_case(tag)) {
            members.fault(format!("{} is there twice.", members.path(tag)));
            continue;
        }
        let found = inner(members, tag, |members| {
            only(members, &KINDS);
            let [unknown, ended, suspended, copy, root] = KINDS.map(|kind| inner(members, kind, read_text));
            Some(PageTexts { unknown, ended, suspended, copy, root })
        });
        texts.extend(found.filter(|found| *found != PageTexts::default()).map(|found| (tag.into(), found)));
    }
    Some(texts)
}

fn read_text(members: &mut Members<'_>) -> Option<PageText> {
    only(members, &["title", "text"]);
    required(members, &["title", "text"]);
    let (title, text) = (shown(members, "title", MAX_TITLE), shown(members, "text", MAX_TEXT));
    Some(PageText { title: title?, text: text? })
}

/// Whether a text is a language tag: a language of two or three letters, and parts of up to eight letters or digits.
fn is_tag(text: &str) -> bool {
    let mut parts = text.split('-');
    let is_language =
        |part: &str| (2..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphabetic());
    text.len() <= MAX_TAG
        && parts.next().is_some_and(is_language)
        && parts.all(|part| {
            (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
}

#[cfg(test)]
mod tests;
