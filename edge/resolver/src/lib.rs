#![doc = include_str!("../README.md")]

mod answer;
mod choose;
mod description;
mod fill;
mod link_types;
mod linkset;
mod page;
pub mod redirect_head;
mod wanted;

use std::borrow::Cow;

use bytes::Bytes;
use digital_link::{DigitalLink, DigitalLinkError, Qualifier};
use http::{HeaderValue, Method, Response, StatusCode, header::LINK};
use shared::{
    digital_link::{LinkSet, SerialMode, TypedLink},
    redirect::Redirect,
    short_url::ShortDomain,
    time::UnixMillis,
    wire::spooled::NewLink,
};
use visitor_pages::Brand;

pub use self::answer::{open, redirected};
use self::{
    choose::{Choice, choose, is_open},
    fill::Values,
    linkset::Shown,
    wanted::{Form, LINKSET, Wanted},
};

/// Room for a URI of common length, with what the header `Link` says behind it.
const URI_CAPACITY: usize = 320;

/// Bytes of the short id of a GTIN, `01/` with 14 digits.
const PRODUCT: usize = 17;

/// A request for a Digital Link.
#[derive(Debug, Clone)]
pub struct Asked<'a> {
    path: &'a str,
    link: DigitalLink<'a>,
    wanted: Wanted<'a>,
}

/// The links of one level, as they were found.
#[derive(Debug, Clone, Copy)]
pub struct Level<'a> {
    /// The short id of the level.
    pub id: &'a str,
    /// Its links.
    pub set: &'a LinkSet,
    /// The Thng of the level, for `{thngId}`.
    pub thng_id: Option<&'a str>,
}

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

/// A redirect.
#[derive(Debug)]
pub struct To<'a> {
    /// The place of the level for which it counts: the item where it was found, else the one that has the link.
    pub level: usize,
    /// The target: printable ASCII.
    pub location: String,
    /// The type of the link.
    pub link_type: &'a str,
    /// Whether no type was asked for, so that rules may decide otherwise.
    pub is_default: bool,
}

/// Links of one of the levels.
enum Picked<'a> {
    /// One of them fits.
    To(To<'a>),
    /// Several links of a level fit; with its place, and that of the level for which the request counts.
    Several {
        place: usize,
        counted: usize,
        links: Vec<&'a TypedLink>,
    },
    Nothing,
}

/// What a request comes to.
#[derive(Debug)]
pub enum Resolved<'a> {
    /// A redirect.
    To(To<'a>),
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

impl<'a> Level<'a> {
    /// The level of a record that was found by this short id; `None` where it has no typed links.
    #[must_use]
    pub fn of(id: &'a str, record: &'a Redirect) -> Option<Self> {
        let thng_id = record.thng_id.as_ref().map(|id| id.as_str());
        Some(Self { id, set: record.digital_link.as_deref()?, thng_id })
    }

    fn is_item(&self) -> bool {
        self.id.get(PRODUCT..PRODUCT + 4) == Some("/21/")
    }
}

impl<'a> Asked<'a> {
    /// Reads the raw path, the raw query (without `?`), `Accept` and `Accept-Language`.
    ///
    /// # Errors
    /// As [`DigitalLink::parse`]: `NoKey` where the path is something else, all others say what is wrong.
    pub fn read(
        path: &'a str,
        query: Option<&'a str>,
        accept: Option<&'a [u8]>,
        language: Option<&'a [u8]>,
    ) -> Result<Self, DigitalLinkError> {
        let link = DigitalLink::parse(path, query)?;
        Ok(Self { path, link, wanted: Wanted::read(query, accept, language) })
    }

    /// The short id of the GTIN. Its record says whether items have records of their own.
    #[must_use]
    pub fn product(&self) -> Cow<'a, str> {
        // As nearly every path has it.
        let written =
            self.path.get(1..=PRODUCT).filter(|id| id.strip_prefix("01/") == Some(self.link.gtin()));
        written.map_or_else(|| Cow::Owned(self.link.level(&[])), Cow::Borrowed)
    }

    /// The short ids of the levels below the GTIN that may have links, the most specific first.
    ///
    /// A lot comes before a variant: what is said of a lot, such as a recall, is about fewer items.
    #[must_use]
    pub fn levels(&self, mode: SerialMode) -> Vec<String> {
        use Qualifier::{Lot, Serial, ThirdParty, Variant};

        let of: [&[Qualifier]; 5] = [&[Serial], &[Variant, Lot], &[Lot], &[Variant], &[ThirdParty]];
        let fits = |kept: &&[Qualifier]| {
            kept.iter().all(|qualifier| {
                self.link.get(*qualifier).is_some() && (*qualifier != Serial || mode.has_items())
            })
        };
        of.into_iter().filter(fits).map(|kept| self.link.level(kept)).collect()
    }

    /// What a scan says of the link, for which these levels were found.
    #[must_use]
    pub fn scanned<'s>(&'s self, link_type: &'s str, levels: &[Level<'_>]) -> NewLink<'s> {
        let has_item = levels.iter().any(|level| level.is_item());
        let mode = levels.last().map(|level| level.set.serial_mode).unwrap_or_default();
        let of = |qualifier| self.link.get(qualifier).unwrap_or_default();
        let serial = of(Qualifier::Serial);
        let can_be_known = !serial.is_empty() && (has_item || mode == SerialMode::Known);
        NewLink {
            gtin: self.link.gtin(),
            values: [of(Qualifier::Variant), of(Qualifier::Lot), serial, link_type],
            known: can_be_known.then_some(has_item),
        }
    }

    /// The answer to OPTIONS.
    #[must_use]
    pub fn options(&self, domain: &ShortDomain) -> Response<Bytes> {
        let mut answer = answer::options();
        answer.headers_mut().insert(LINK, self.link_value(domain));
        answer
    }

    /// The value of `Link`: where the linkset of this link is, and what makes it JSON-LD.
    #[must_use]
    pub fn link_value(&self, domain: &ShortDomain) -> HeaderValue {
        // A host, and a path that is percent-encoded: always a header value.
        HeaderValue::try_from(self.link_text(domain)).unwrap_or(HeaderValue::from_static(""))
    }

    /// The same as text.
    #[must_use]
    pub fn link_text(&self, domain: &ShortDomain) -> String {
        let mut text = String::with_capacity(URI_CAPACITY);
        text.push('<');
        push_origin(domain, &mut text);
        self.link.push_path(&mut text);
        text.extend(answer::BEHIND_URI);
        text
    }

    /// What the request comes to, with the levels that were found, the most specific first.
    #[must_use]
    pub fn resolve<'l>(&self, levels: &[Level<'l>], site: Site<'_>, now: UnixMillis) -> Resolved<'l> {
        match self.wanted.form {
            Form::Redirect => self.lead(levels, site, now),
            Form::Linkset(media_type) => {
                let shown = self.shown(levels, site, now);
                Resolved::Links(self.linkset(StatusCode::OK, media_type, &shown, site))
            }
            Form::Page => {
                let shown = self.shown(levels, site, now);
                Resolved::Links(self.page(StatusCode::OK, &shown, site))
            }
        }
    }

    /// The redirect that the request comes to, if it comes to one.
    #[must_use]
    pub fn redirect<'l>(&self, levels: &[Level<'l>], now: UnixMillis) -> Option<To<'l>> {
        match self.wanted.form {
            Form::Redirect => match self.pick(levels, now) {
                Picked::To(to) => Some(to),
                Picked::Several { .. } | Picked::Nothing => None,
            },
            Form::Linkset(_) | Form::Page => None,
        }
    }

    fn pick<'l>(&self, levels: &[Level<'l>], now: UnixMillis) -> Picked<'l> {
        let has_item = levels.first().is_some_and(Level::is_item);
        for (place, level) in levels.iter().enumerate() {
            let counted = if has_item { 0 } else { place };
            match choose(level.set, &self.wanted, now) {
                Choice::Nothing => {}
                Choice::One(link) => {
                    let location = self.values(levels, level).fill(&link.href);
                    // Any other target was not checked.
                    if !location.bytes().fold(true, |all, byte| all & byte.is_ascii_graphic()) {
                        continue;
                    }
                    let (link_type, is_default) = (&*link.link_type, self.wanted.link_type.is_none());
                    return Picked::To(To { level: counted, location, link_type, is_default });
                }
                Choice::Several(links) => return Picked::Several { place, counted, links },
            }
        }
        Picked::Nothing
    }

    fn lead<'l>(&self, levels: &[Level<'l>], site: Site<'_>, now: UnixMillis) -> Resolved<'l> {
        let (place, level, links) = match self.pick(levels, now) {
            Picked::To(to) => return Resolved::To(to),
            Picked::Several { place, counted, links } => (place, counted, links),
            Picked::Nothing => return Resolved::Nothing,
        };
        let Some(of) = levels.get(place) else { return Resolved::Nothing };
        let shown = [self.shown_level(levels, of, links.into_iter(), site)];
        let answer = if self.wanted.accept.unwrap_or_default().contains("text/html") {
            self.page(StatusCode::MULTIPLE_CHOICES, &shown, site)
        } else {
            self.linkset(StatusCode::MULTIPLE_CHOICES, LINKSET, &shown, site)
        };
        Resolved::Choice { level, answer }
    }

    /// All levels with the links that hold now; not an item that has a record, but no links of its own.
    fn shown<'l>(&self, levels: &[Level<'l>], site: Site<'_>, now: UnixMillis) -> Vec<Shown<'l>> {
        let open = |level: &Level<'l>| {
            let links = level.set.links.iter().filter(|link| is_open(link, now));
            Shown { with_default: true, ..self.shown_level(levels, level, links, site) }
        };
        levels.iter().filter(|level| !level.set.links.is_empty()).map(open).collect()
    }

    /// Some links of a level, without those to which nobody may be led.
    fn shown_level<'l>(
        &self,
        levels: &[Level<'_>],
        level: &Level<'l>,
        links: impl Iterator<Item = &'l TypedLink>,
        site: Site<'_>,
    ) -> Shown<'l> {
        let values = self.values(levels, level);
        let links = links
            .map(|link| (link, values.fill(&link.href)))
            .filter(|(_, href)| !(site.is_blocked)(href.as_bytes()))
            .collect();
        // An item is what the whole link says: other qualifiers may stand before its serial.
        let anchor = if level.is_item() { self.link.path() } else { format!("/{}", level.id) };
        let description = &level.set.description;
        Shown { anchor: uri(site.domain, &anchor), description, links, with_default: false }
    }

    fn values<'v>(&'v self, levels: &[Level<'v>], level: &Level<'v>) -> Values<'v> {
        let thng_id = levels.iter().find_map(|level| level.thng_id);
        Values::new(&self.link, level.set.serial_mode, thng_id)
    }

    fn linkset(
        &self,
        status: StatusCode,
        media_type: &'static str,
        shown: &[Shown<'_>],
        site: Site<'_>,
    ) -> Response<Bytes> {
        let mut answer = answer::with_body(status, media_type, linkset::json(shown));
        answer.headers_mut().insert(LINK, self.link_value(site.domain));
        answer
    }

    fn page(&self, status: StatusCode, shown: &[Shown<'_>], site: Site<'_>) -> Response<Bytes> {
        let body = page::page(shown, &(site.brand)()).into_bytes();
        let mut answer = answer::with_body(status, "text/html; charset=utf-8", body);
        answer.headers_mut().insert(LINK, self.link_value(site.domain));
        answer
    }
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
