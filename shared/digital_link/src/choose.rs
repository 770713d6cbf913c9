//! Chooses among the links of a level.

use std::cmp::Ordering;

use shared::{
    digital_link::{LinkSet, TypedLink},
    negotiate::weigh,
    time::UnixMillis,
};

use crate::{link_types, wanted::Wanted};

/// What a level has for a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Choice<'a> {
    /// No link of the type that is asked for.
    Nothing,
    /// This one, and what decided for it.
    One(&'a TypedLink, ChosenBy),
    /// Several, none of which fits better than the others.
    Several(Vec<&'a TypedLink>),
}

/// What decided for a link: the last thing that ruled another one out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChosenBy {
    /// It is the default link of its level, and none fits better.
    Default,
    /// It is the only one of the type that was asked for.
    LinkType,
    /// `Accept`.
    MediaType,
    /// `Accept-Language`, or that a link is for every language.
    Language,
    /// `context`, or that a link is for every context.
    Context,
}

/// Whether a link holds at a moment.
pub(crate) fn is_open(link: &TypedLink, now: UnixMillis) -> bool {
    link.from.is_none_or(|from| from <= now.0) && link.to.is_none_or(|to| now.0 < to)
}

/// The link of a level that a request leads to.
///
/// Of a type that is asked for: those that fit best by media type, then by language, then by context; of several the default
/// link of the level, if it is among them. Without a type the default link, or the one of its type and media type that fits
/// better by language and context.
pub(crate) fn choose<'a>(set: &'a LinkSet, wanted: &Wanted<'_>, now: UnixMillis) -> Choice<'a> {
    let open = || set.links.iter().filter(move |link| is_open(link, now));
    let Some(asked) = &wanted.link_type else {
        let Some(default) = open().find(|link| link.default) else { return Choice::Nothing };
        let is_alike = |link: &&TypedLink| {
            link.media_type == default.media_type && link_types::are_same(&link.link_type, &default.link_type)
        };
        if !wanted.has_preference() {
            return Choice::One(default, ChosenBy::Default);
        }
        let mut alike: Vec<_> = open().filter(is_alike).collect();
        let by = fit_visitor(&mut alike, wanted).unwrap_or(ChosenBy::Default);
        return if let [one] = *alike {
            Choice::One(one, by)
        } else {
            Choice::One(default, ChosenBy::Default)
        };
    };
    let mut found: Vec<_> = open().filter(|link| link_types::are_same(&link.link_type, asked)).collect();
    let mut by = ChosenBy::LinkType;
    if let Some(accept) = wanted.accept
        && keep_best(&mut found, |link| media_rank(link, accept))
    {
        by = ChosenBy::MediaType;
    }
    let by = fit_visitor(&mut found, wanted).unwrap_or(by);
    if let [one] = *found {
        return Choice::One(one, by);
    }
    match found.iter().find(|link| link.default) {
        Some(&default) => Choice::One(default, ChosenBy::Default),
        None if found.is_empty() => Choice::Nothing,
        None => Choice::Several(found),
    }
}

/// Keeps the links that fit the visitor best, and gives what of the request ruled out the last one of the others. What a request
/// does not say may rule some out, too: then it is none of both.
fn fit_visitor(links: &mut Vec<&TypedLink>, wanted: &Wanted<'_>) -> Option<ChosenBy> {
    if links.len() < 2 {
        return None;
    }
    let languages = wanted.languages();
    let by_language = keep_best(links, |link| language_rank(link, &languages)) && !languages.is_empty();
    let by_context =
        keep_best(links, |link| context_rank(link, wanted.context.as_deref())) && wanted.context.is_some();
    if by_context { Some(ChosenBy::Context) } else { by_language.then_some(ChosenBy::Language) }
}

/// Keeps the links of the highest rank; whether there were others.
fn keep_best<R: Ord>(links: &mut Vec<&TypedLink>, rank: impl Fn(&TypedLink) -> R) -> bool {
    let (mut best, mut kept) = (None, 0);
    for at in 0..links.len() {
        let Some(rank) = links.get(at).map(|link| rank(link)) else { break };
        match best.as_ref().map_or(Ordering::Greater, |best| rank.cmp(best)) {
            Ordering::Less => continue,
            Ordering::Equal => {}
            Ordering::Greater => (best, kept) = (Some(rank), 0),
        }
        links.swap(kept, at);
        kept += 1;
    }
    let had_others = kept < links.len();
    links.truncate(kept);
    had_others
}

/// By the quality of its media type, then whether that is named. Where nothing of it is accepted, a link without a media type
/// comes first.
fn media_rank(link: &TypedLink, accept: &str) -> (u16, u8, bool) {
    match &link.media_type {
        None => {
            let (quality, _) = weigh(accept, "*", "*");
            (quality, 0, quality == 0)
        }
        Some(media_type) => {
            let essence = media_type.split(';').next().unwrap_or_default().trim();
            let (kind, subtype) = essence.split_once('/').unwrap_or((essence, ""));
            let (quality, named) = weigh(accept, kind, subtype);
            (quality, named, false)
        }
    }
}

/// By RFC 4647, section 3.4: the first language that finds anything decides, and its longest match. A language also finds tags
/// below it, such as `pt` the tag `pt-BR`. Where nothing is found, a link without a language comes first.
fn language_rank(link: &TypedLink, languages: &[&str]) -> (usize, usize) {
    let of = |(place, language): (usize, &&str)| {
        let fits = |tag: &str| match tag.len().cmp(&language.len()) {
            // Longer than every other match.
            Ordering::Equal => tag.eq_ignore_ascii_case(language).then_some(usize::MAX),
            Ordering::Less => is_above(tag, language).then_some(tag.len()),
            Ordering::Greater => is_above(language, tag).then_some(0),
        };
        let longest = link.hreflang.iter().filter_map(|tag| fits(tag)).max()?;
        Some((languages.len() - place, longest))
    };
    languages.iter().enumerate().find_map(of).unwrap_or((0, usize::from(link.hreflang.is_empty())))
}

/// Whether a language tag is the start of a longer one.
fn is_above(short: &str, long: &str) -> bool {
    long.as_bytes().get(short.len()) == Some(&b'-')
        && long.get(..short.len()).is_some_and(|start| start.eq_ignore_ascii_case(short))
}

fn context_rank(link: &TypedLink, asked: Option<&str>) -> u8 {
    let holds = |asked: &str| link.context.iter().any(|context| context.eq_ignore_ascii_case(asked));
    match asked {
        Some(asked) if holds(asked) => 2,
        _ => u8::from(link.context.is_empty()),
    }
}

#[cfg(test)]
mod tests;
