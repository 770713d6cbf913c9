//! Pages for people where a code leads nowhere: in their language, with the name and colours of the account.

mod frame;

use std::{
    fmt::Write,
    hash::{Hash, Hasher},
    sync::{Arc, Weak},
};

use bytes::Bytes;
use moka::sync::Cache;
use shared::{
    contact::Contact,
    pages::{PageText, PageTexts, Pages},
    problem::Code,
    rules::accepted_languages,
    short_url::ShortDomain,
};

pub use self::frame::POLICY;
use crate::{
    answered::{Answered, Asked},
    texts::{ENGLISH, LANGUAGES, Language, TRADITIONAL_CHINESE, is_traditional},
};

/// Bytes of rendered pages that are kept: some ten thousand without a logo.
const CACHE_BYTES: u64 = 16 << 20;
/// Bytes of an entry beside its page.
const OVERHEAD: usize = 256;
/// Most bytes of a language tag (RFC 5646, 4.4.1); of a longer one its language counts.
const MAX_TAG: usize = 35;
/// Languages that are written from right to left.
const RIGHT_TO_LEFT: [&str; 13] =
    ["ar", "arc", "ckb", "dv", "fa", "he", "iw", "ks", "ps", "sd", "ug", "ur", "yi"];
/// Scripts that are written from right to left (ISO 15924).
const RIGHT_TO_LEFT_SCRIPTS: [&str; 9] =
    ["Adlm", "Arab", "Aran", "Hebr", "Mand", "Nkoo", "Rohg", "Syrc", "Thaa"];

/// Why there is a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// No link has the id, or the path can have none.
    Unknown,
    /// The link opens later.
    Scheduled,
    /// The account has paused the link.
    Paused,
    /// The link has ended.
    Ended,
    /// The item may be a copy.
    Copy,
    /// The platform operator has suspended the account.
    Suspended,
    /// The platform operator has taken the link or its target down.
    TakenDown,
    /// No id was asked for.
    Root,
}

impl Kind {
    /// Every one.
    #[cfg(test)]
    pub(crate) const ALL: [Self; 8] = [
        Self::Unknown,
        Self::Scheduled,
        Self::Paused,
        Self::Ended,
        Self::Copy,
        Self::Suspended,
        Self::TakenDown,
        Self::Root,
    ];

    /// The page of an error; `None` for errors that are none of a code.
    #[must_use]
    pub const fn of(code: Code) -> Option<Self> {
        match code {
            Code::ShortIdUnknown | Code::NoSuchPath => Some(Self::Unknown),
            Code::LinkScheduled => Some(Self::Scheduled),
            Code::LinkPaused => Some(Self::Paused),
            Code::LinkEnded => Some(Self::Ended),
            Code::SuspectedCopy => Some(Self::Copy),
            Code::Suspended => Some(Self::Suspended),
            Code::TakenDown => Some(Self::TakenDown),
            _ => None,
        }
    }

    /// Whether the platform operator withholds it: then nothing of the account is shown, which may be the reason for it.
    const fn is_withheld(self) -> bool {
        matches!(self, Self::Suspended | Self::TakenDown)
    }

    /// What an account says on it.
    fn text(self, texts: &PageTexts) -> Option<&PageText> {
        match self {
            Self::Unknown => texts.unknown.as_ref(),
            Self::Paused => texts.suspended.as_ref(),
            Self::Ended => texts.ended.as_ref(),
            Self::Copy => texts.copy.as_ref(),
            Self::Root => texts.root.as_ref(),
            Self::Scheduled | Self::Suspended | Self::TakenDown => None,
        }
    }
}

/// What an account shows on the pages of a domain.
#[derive(Debug, Clone, Default)]
pub struct Brand {
    pages: Option<Arc<Pages>>,
    /// Not if its host was taken down.
    shows_link: bool,
}

impl Brand {
    /// That of a domain; none while its account is suspended. `is_blocked` says of a URL whether nobody may be led there.
    pub fn of(domain: &ShortDomain, is_suspended: bool, is_blocked: impl Fn(&[u8]) -> bool) -> Self {
        let Some(pages) = domain.pages.as_ref().filter(|_| !is_suspended) else { return Self::default() };
        let shows_link = pages.link.as_ref().is_some_and(|link| !is_blocked(link.url.as_bytes()));
        Self { pages: Some(pages.clone()), shows_link }
    }
}

/// One and the same pages; equal ones of another domain are others. It keeps their address in memory, so that no others come
/// to it, but not what they hold: else the cache kept pages that were replaced long ago, up to 120 KiB for each entry.
#[derive(Debug, Clone)]
struct Same(Weak<Pages>);

impl PartialEq for Same {
    fn eq(&self, other: &Self) -> bool {
        Weak::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Same {}

impl Hash for Same {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.as_ptr().hash(state);
    }
}

/// A language of the account or one of the edge, by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Spoken {
    Own(usize),
    Ours(usize),
}

/// What a page depends on.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    code: Code,
    kind: Kind,
    spoken: Spoken,
    pages: Option<Same>,
    shows_link: bool,
}

/// Pages as they were rendered, one for each domain, language and kind.
#[derive(Debug)]
pub struct PageCache {
    rendered: Cache<Key, Bytes>,
    /// Looked at first: it costs a fraction of reading the languages.
    answered: Answered,
}

impl Default for PageCache {
    fn default() -> Self {
        let weigh = |_: &Key, page: &Bytes| u32::try_from(page.len() + OVERHEAD).unwrap_or(u32::MAX);
        let rendered = Cache::builder().max_capacity(CACHE_BYTES).weigher(weigh).build();
        Self { rendered, answered: Answered::default() }
    }
}

impl PageCache {
    /// The page of an error for somebody who accepts these languages (`Accept-Language` as sent).
    pub fn page(
        &self,
        (code, kind): (Code, Kind),
        accepted: Option<&[u8]>,
        brand: &Brand,
        contact: Option<&Contact>,
    ) -> Bytes {
        let none = Brand::default();
        let brand = if kind.is_withheld() { &none } else { brand };
        let (pages, shows_link) = (brand.pages.as_ref(), brand.shows_link);
        let asked = Asked { code, kind, accepted: accepted.unwrap_or_default(), pages, shows_link };
        if let Some(page) = self.answered.find(&asked) {
            return page;
        }
        let page = self.rendered(&asked, contact);
        self.answered.put(&asked, &page);
        page
    }

    fn rendered(&self, asked: &Asked<'_>, contact: Option<&Contact>) -> Bytes {
        let Asked { code, kind, accepted, pages, shows_link } = *asked;
        let spoken = choose(accepted, kind, pages.map(|pages| &**pages));
        let same = pages.map(|pages| Same(Arc::downgrade(pages)));
        let key = Key { code, kind, spoken, pages: same, shows_link };
        if let Some(page) = self.rendered.get(&key) {
            return page;
        }
        let page = Bytes::from(render(&key, pages.map(|pages| &**pages), contact));
        self.rendered.insert(key, page.clone());
        page
    }
}

/// The language of a page: the one that the visitor likes best of those in which there is a text.
///
/// For each tag, by falling quality: the account's text of the tag or of a part of the world where it is spoken, then that
/// of the edge, then both for the tag without its last part (RFC 4647, 3.4). Tags of Chinese in traditional script, by name or
/// by region, are one language: the account's text of any of them, then its text of `zh`, then that of the edge.
fn choose(accepted: &[u8], kind: Kind, pages: Option<&Pages>) -> Spoken {
    let accepted = str::from_utf8(accepted).unwrap_or_default();
    let own = |fits: &dyn Fn(&str) -> bool| {
        let mut texts = pages?.texts.iter();
        texts.position(|(tag, texts)| fits(tag) && kind.text(texts).is_some()).map(Spoken::Own)
    };
    let ours = |tag: &str| {
        LANGUAGES.iter().position(|language| language.tag.eq_ignore_ascii_case(tag)).map(Spoken::Ours)
    };
    let find = |tag: &str| {
        let is_same = |own: &str| own.eq_ignore_ascii_case(tag);
        let is_below = |own: &str| {
            own.get(..tag.len()).is_some_and(is_same) && own.as_bytes().get(tag.len()) == Some(&b'-')
        };
        own(&is_same).or_else(|| own(&is_below)).or_else(|| ours(tag))
    };
    let find_traditional = |tag: &str| {
        own(&|own: &str| own.eq_ignore_ascii_case(tag))
            .or_else(|| own(&is_traditional))
            .or_else(|| own(&|own: &str| own.eq_ignore_ascii_case("zh")))
            .or_else(|| ours(TRADITIONAL_CHINESE))
    };
    let look_up = |tag: &str| {
        let primary = tag.split('-').next().unwrap_or_default();
        if primary.len() == tag.len() || tag.len() > MAX_TAG {
            return find(primary);
        }
        if is_traditional(tag) {
            return find_traditional(tag);
        }
        // What is found for a tag is found for its first part, too: a tag of many parts for which there is nothing costs one search.
        find(primary)?;
        let mut tag = tag;
        loop {
            if let Some(found) = find(tag) {
                return Some(found);
            }
            tag = tag.rsplit_once('-')?.0;
        }
    };
    // Nothing comes before a first tag without a quality, as browsers send it.
    let first = accepted.split(',').next().unwrap_or_default().trim();
    let is_tag = !first.is_empty() && first != "*" && !first.contains(';');
    if let Some(found) = Some(first).filter(|_| is_tag).and_then(look_up) {
        return found;
    }
    let mut wanted: Vec<(&str, f64)> =
        accepted_languages(accepted).filter(|(_, quality)| *quality > 0.0).collect();
    // Among equals the first one stays the first.
    wanted.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let found = wanted.iter().find_map(|(tag, _)| look_up(tag));
    found.or_else(|| find(ENGLISH.tag)).unwrap_or(Spoken::Ours(0))
}

/// Renders a page: no script, no other host, no image but the logo.
fn render(key: &Key, pages: Option<&Pages>, contact: Option<&Contact>) -> String {
    let own = match key.spoken {
        Spoken::Own(index) => pages.and_then(|pages| pages.texts.iter().nth(index)),
        Spoken::Ours(_) => None,
    };
    let ours = match key.spoken {
        Spoken::Ours(index) => LANGUAGES.get(index).unwrap_or(&ENGLISH),
        // What the account does not say in its language has the words of ours that is next to it.
        Spoken::Own(_) => own.map_or(&ENGLISH, |(tag, _)| next_to(tag)),
    };
    let (title, text) = match own.and_then(|(_, texts)| key.kind.text(texts)) {
        Some(own) => (&*own.title, &*own.text),
        None => ours.of(key.kind),
    };
    let (title, text) = (escape(title), escape(text));
    let tag = own.map_or(ours.tag, |(tag, _)| &**tag);
    let primary = tag.split('-').next().unwrap_or_default();
    // A script that is named decides, as in `pa-Arab`: the only part of four letters before extensions, which begin with one letter.
    let script = tag
        .split('-')
        .skip(1)
        .take_while(|part| part.len() > 1)
        .find(|part| part.len() == 4 && part.bytes().all(|byte| byte.is_ascii_alphabetic()));
    let is_in = |all: &[&str], part: &str| all.iter().any(|one| one.eq_ignore_ascii_case(part));
    let is_rtl =
        script.map_or_else(|| is_in(&RIGHT_TO_LEFT, primary), |script| is_in(&RIGHT_TO_LEFT_SCRIPTS, script));
    let direction = if is_rtl { " dir=\"rtl\"" } else { "" };
    let mut page = frame::begin(tag, direction, &title, pages);
    put(&mut page, format_args!("<main><h1>{title}</h1><p>{text}</p>"));
    let link = pages.and_then(|pages| pages.link.as_ref()).filter(|_| key.shows_link);
    if let Some(link) = link {
        let (url, label) = (escape(&link.url), escape(&link.label));
        put(
            &mut page,
            format_args!("<p><a class=\"k\" rel=\"noopener noreferrer\" href=\"{url}\">{label}</a></p>"),
        );
    }
    let (status, number) = (key.code.status(), key.code as u32);
    put(&mut page, format_args!("</main><footer><p>{status} · {number}</p>"));
    if let Some(contact) = contact {
        let (label, uri) = (escape(ours.report), contact.uri());
        put(&mut page, format_args!("<p>{label}: <a href=\"{uri}\">{contact}</a></p>"));
    }
    page.push_str("</footer></body></html>");
    page
}

fn put(page: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string never fails.
    let _ = page.write_fmt(text);
}

/// Our language for a tag of the account: that of its first part, or English.
fn next_to(tag: &str) -> &'static Language {
    let primary = tag.split('-').next().unwrap_or_default();
    let wanted = if is_traditional(tag) { TRADITIONAL_CHINESE } else { primary };
    LANGUAGES.iter().find(|language| language.tag.eq_ignore_ascii_case(wanted)).unwrap_or(&ENGLISH)
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

#[cfg(test)]
mod tests;
