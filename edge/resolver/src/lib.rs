#![doc = include_str!("../README.md")]

mod answer;
mod description;
mod linkset;
mod page;
pub mod redirect_head;

use bytes::Bytes;
use digital_link::{Asked, Form, LINKSET, Lead, Level, counted};
use http::{HeaderValue, Method, Response, StatusCode, header::LINK};
use shared::{
    digital_link::{LinkSet, TypedLink},
    short_url::ShortDomain,
    time::UnixMillis,
};
use visitor_pages::Brand;

pub use self::answer::{open, redirected};
use self::linkset::Shown;

/// Room for a URI of common length, with what the header `Link` says behind it.
const URI_CAPACITY: usize = 320;

/// What is known of the domain that is asked.
#[derive(Clone, Copy)]
pub struct Site<'a> {
    /// The domain.
    pub domain: &'a ShortDomain,
    /// How its account's pages look.
    pub brand: &'a dyn Fn() -> Brand,
    /// Whether nobody may be led to a URL.
    pub is_blocked: &'a dyn Fn(&[u8]) -> bool,
}

/// What a request comes to.
#[derive(Debug)]
pub enum Resolved<'a> {
    /// A redirect.
    To {
        /// The place of the level for which it counts: the item where it was found, else the one that has the link.
        level: usize,
        /// The target.
        location: HeaderValue,
        /// The type of the link.
        link_type: &'a str,
        /// Whether no type was asked for, so that rules may decide otherwise.
        is_default: bool,
    },
    /// Several links fit, and none better than the others.
    Choice {
        /// As that of a redirect.
        level: usize,
        /// 300 with all of them.
        answer: Response<Bytes>,
    },
    /// All links.
    Links(Response<Bytes>),
    /// There is no link of the type that was asked for.
    Nothing,
}

/// The answer to OPTIONS.
#[must_use]
pub fn options(asked: &Asked<'_>, domain: &ShortDomain) -> Response<Bytes> {
    let mut answer = answer::options();
    answer.headers_mut().insert(LINK, link_value(asked, domain));
    answer
}

/// The value of `Link`: where the linkset of this link is, and what makes it JSON-LD.
#[must_use]
pub fn link_value(asked: &Asked<'_>, domain: &ShortDomain) -> HeaderValue {
    // A host, and a path that is percent-encoded: always a header value.
    HeaderValue::try_from(link_text(asked, domain)).unwrap_or(HeaderValue::from_static(""))
}

/// The text of [`link_value`], for those who write a head themselves.
#[must_use]
pub fn link_text(asked: &Asked<'_>, domain: &ShortDomain) -> String {
    let mut text = String::with_capacity(URI_CAPACITY);
    text.push('<');
    push_origin(domain, &mut text);
    asked.link().push_path(&mut text);
    text.extend(answer::LINK_PARAMETERS);
    text
}

/// What a request comes to, with the levels that were found, the most specific first.
#[must_use]
pub fn resolve<'l>(asked: &Asked<'_>, levels: &[Level<'l>], site: Site<'_>, now: UnixMillis) -> Resolved<'l> {
    match asked.form() {
        Form::Redirect => lead(asked, levels, site, now),
        Form::Linkset(media_type) => {
            let shown = shown(asked, levels, site, now);
            Resolved::Links(linkset(asked, StatusCode::OK, media_type, &shown, site))
        }
        Form::Page => {
            let shown = shown(asked, levels, site, now);
            Resolved::Links(page(asked, StatusCode::OK, &shown, site))
        }
    }
}

fn lead<'l>(asked: &Asked<'_>, levels: &[Level<'l>], site: Site<'_>, now: UnixMillis) -> Resolved<'l> {
    match asked.lead(levels, now) {
        Lead::To { level, link, location, .. } => match HeaderValue::try_from(location) {
            Ok(location) => Resolved::To {
                level: counted(levels, level),
                location,
                link_type: &link.link_type,
                is_default: asked.is_default(),
            },
            // Never: `check` refuses such a record.
            Err(_) => Resolved::Nothing,
        },
        Lead::Several { level, links } => {
            let Some(of) = levels.get(level) else { return Resolved::Nothing };
            let shown = [shown_level(asked, levels, of, links.into_iter(), site)];
            let answer = if asked.takes_page() {
                page(asked, StatusCode::MULTIPLE_CHOICES, &shown, site)
            } else {
                linkset(asked, StatusCode::MULTIPLE_CHOICES, LINKSET, &shown, site)
            };
            Resolved::Choice { level: counted(levels, level), answer }
        }
        Lead::Nothing => Resolved::Nothing,
    }
}

/// All levels with the links that hold now; not an item that has a record, but no links of its own.
fn shown<'l>(asked: &Asked<'_>, levels: &[Level<'l>], site: Site<'_>, now: UnixMillis) -> Vec<Shown<'l>> {
    let open = |level: &Level<'l>| {
        let links = level.open_links(now);
        Shown { with_default: true, ..shown_level(asked, levels, level, links, site) }
    };
    levels.iter().filter(|level| !level.set.links.is_empty()).map(open).collect()
}

/// Some links of a level, without those to which nobody may be led.
fn shown_level<'l>(
    asked: &Asked<'_>,
    levels: &[Level<'_>],
    level: &Level<'l>,
    links: impl Iterator<Item = &'l TypedLink>,
    site: Site<'_>,
) -> Shown<'l> {
    let links = links
        .map(|link| (link, asked.target(levels, level, link)))
        .filter(|(_, href)| !(site.is_blocked)(href.as_bytes()))
        .collect();
    // An item is what the whole link says: other qualifiers may stand before its serial.
    let anchor = if level.is_item() { asked.link().path() } else { format!("/{}", level.id) };
    let description = &level.set.description;
    Shown { anchor: uri(site.domain, &anchor), description, links, with_default: false }
}

fn linkset(
    asked: &Asked<'_>,
    status: StatusCode,
    media_type: &'static str,
    shown: &[Shown<'_>],
    site: Site<'_>,
) -> Response<Bytes> {
    let mut answer = answer::with_body(status, media_type, linkset::json(shown));
    answer.headers_mut().insert(LINK, link_value(asked, site.domain));
    answer
}

fn page(asked: &Asked<'_>, status: StatusCode, shown: &[Shown<'_>], site: Site<'_>) -> Response<Bytes> {
    let body = page::page(shown, &(site.brand)()).into_bytes();
    let mut answer = answer::with_body(status, "text/html; charset=utf-8", body);
    answer.headers_mut().insert(LINK, link_value(asked, site.domain));
    answer
}

/// The answer on `/.well-known/gs1resolver`: the description of a domain as a resolver.
#[must_use]
pub fn described(method: &Method, domain: &ShortDomain) -> Response<Bytes> {
    match *method {
        Method::OPTIONS => answer::options(),
        _ => answer::with_body(StatusCode::OK, "application/json", description::json(domain)),
    }
}

/// Looks whether every link of a record can be answered with.
///
/// # Errors
/// The reason, for people: a target is no URL of printable ASCII.
pub fn check(set: &LinkSet) -> Result<(), String> {
    let is_url = |href: &str| {
        (href.starts_with("https://") || href.starts_with("http://"))
            && href.bytes().all(|byte| byte.is_ascii_graphic())
    };
    match set.links.iter().find(|link| !is_url(&link.href)) {
        Some(link) => Err(format!("the target of a link of the type {} is no URL", link.link_type)),
        None => Ok(()),
    }
}

/// Bytes that the links of a record take, roughly.
#[must_use]
pub fn size_bytes(set: &LinkSet) -> usize {
    let of = |link: &TypedLink| {
        let tags = link.hreflang.iter().chain(&link.context).map(|tag| tag.len() + 32).sum::<usize>();
        size_of::<TypedLink>() + link.link_type.len() + link.href.len() + link.title.len() + tags + 48
    };
    size_of::<LinkSet>() + set.description.len() + set.links.iter().map(of).sum::<usize>()
}

fn uri(domain: &ShortDomain, path: &str) -> String {
    let mut uri = String::with_capacity(URI_CAPACITY);
    push_origin(domain, &mut uri);
    uri.push_str(path);
    uri
}

fn push_origin(domain: &ShortDomain, uri: &mut String) {
    for part in [domain.scheme.as_str(), "://", domain.host.as_str()] {
        uri.push_str(part);
    }
}

#[cfg(test)]
mod tests;
