//! One typed link, and the links of a level.

use std::sync::Arc;

use serde_json::Value;
use shared::{digital_link::TypedLink, wire::scan::is_language};

use super::{MAX_LINKS, href};
use crate::domain::{body, members::Members};

/// Longest type of a link in bytes.
const MAX_TYPE: usize = 256;
/// Longest title in characters.
const MAX_TITLE: usize = 200;
/// Most languages or contexts of a link.
const MAX_TAGS: usize = 20;
/// Longest language tag and context in characters.
const MAX_TAG: usize = 64;
/// Names that GS1's vocabulary has; a type in one of them is kept as a curie.
const VOCABULARIES: [&str; 3] =
    ["https://ref.gs1.org/voc/", "https://gs1.org/voc/", "https://www.gs1.org/voc/"];
const CURIE: &str = "gs1:";

/// Reads the links of a level.
///
/// # Errors
/// Every fault found, each with the path of its member.
pub(super) fn read_all(items: &[Value], path: &str) -> Result<Vec<TypedLink>, Vec<String>> {
    if items.len() > MAX_LINKS {
        return Err(vec![format!("{path} must have at most {MAX_LINKS} items, not {}.", items.len())]);
    }
    let (mut links, mut faults) = (Vec::with_capacity(items.len()), Vec::new());
    for (index, item) in items.iter().enumerate() {
        match read(item, &format!("{path}[{index}]")) {
            Ok(link) => links.push(link),
            Err(found) => faults.extend(found),
        }
    }
    let defaults = items.iter().filter(|item| item.get("default") == Some(&Value::Bool(true))).count();
    if defaults != 1 && !items.is_empty() {
        faults.push(format!("{path} must have exactly one link with default true, not {defaults}."));
    }
    if faults.is_empty() { Ok(links) } else { Err(faults) }
}

fn read(item: &Value, path: &str) -> Result<TypedLink, Vec<String>> {
    let mut members = Members::within(item, path)?;
    for name in ["linkType", "href", "title"] {
        if members.raw(name).is_none() {
            members.fault(format!("{path}.{name} is required."));
        }
    }
    let link_type = members.text("linkType").and_then(|text| {
        let read = read_type(text);
        if read.is_none() {
            members.fault(format!("{path}.linkType must be like gs1:pip, or an absolute URI."));
        }
        read
    });
    let href = members.text("href").and_then(|text| match href::check(text) {
        Ok(()) => Some(Arc::<str>::from(text)),
        Err(fault) => {
            members.fault(format!("{path}.href {fault}."));
            None
        }
    });
    let title = body::text(&mut members, "title", 1, MAX_TITLE);
    let media_type = members.typed("type", "a media type such as text/html", |value| {
        value.as_str().filter(|text| is_media_type(text)).map(Arc::<str>::from)
    });
    let hreflang = texts(&mut members, "hreflang", "language tags", is_language);
    let context = texts(&mut members, "context", "texts without blanks", |text| {
        text.bytes().all(|byte| byte.is_ascii_graphic())
    });
    let (from, to) = (body::millis(&mut members, "from"), body::millis(&mut members, "to"));
    if from.zip(to).is_some_and(|(from, to)| to <= from) {
        members.fault(format!("{path}.to must be later than from."));
    }
    let default = members.boolean("default").unwrap_or_default();
    if default && (from.is_some() || to.is_some()) {
        members.fault(format!("{path}: the default link holds always, without from and to."));
    }
    let link = link_type.zip(href).zip(title).map(|((link_type, href), title)| TypedLink {
        link_type,
        href,
        title: title.into(),
        media_type,
        hreflang,
        context,
        from: from.map(|at| at.0),
        to: to.map(|at| at.0),
        default,
    });
    members.finish(link)
}

/// A type as it is kept: a curie for those of GS1.
fn read_type(text: &str) -> Option<Arc<str>> {
    let fits = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte);
    if text.len() > MAX_TYPE || !text.bytes().all(fits) {
        return None;
    }
    let of_gs1 = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let name = VOCABULARIES.into_iter().chain([CURIE]).find_map(|start| text.strip_prefix(start));
    if let Some(name) = name {
        return of_gs1(name).then(|| format!("{CURIE}{name}").into());
    }
    let (scheme, rest) = text.split_once(':')?;
    let is_uri = scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        && rest.len() > 1
        // A curie of another vocabulary would be read by nobody.
        && (rest.starts_with("//") || scheme == "urn");
    is_uri.then(|| text.into())
}

/// A list of texts of which each fits.
fn texts(members: &mut Members<'_>, name: &str, what: &str, fits: impl Fn(&str) -> bool) -> Vec<Arc<str>> {
    let expected = format!("an array of at most {MAX_TAGS} {what} of 1 to {MAX_TAG} characters");
    let read = members.typed(name, &expected, |value| {
        let items = value.as_array().filter(|items| items.len() <= MAX_TAGS)?;
        let one = |item: &Value| {
            let text = item.as_str().filter(|text| (1..=MAX_TAG).contains(&text.len()) && fits(text))?;
            Some(Arc::<str>::from(text))
        };
        items.iter().map(one).collect::<Option<Vec<Arc<str>>>>()
    });
    read.unwrap_or_default()
}

fn is_media_type(text: &str) -> bool {
    let fits = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&^_.+-".contains(&byte))
    };
    text.len() <= 127 && text.split_once('/').is_some_and(|(kind, rest)| fits(kind) && fits(rest))
}
