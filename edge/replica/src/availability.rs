//! The status code, the availability and the typed links of a link, behind the target of its record.
//!
//! A record ends with its target unless its link has one of them, so other links take no byte for it; a status code alone takes
//! one. Older releases stop reading after the target, or ignore the bits of the status code, so each release can read the other's
//! files; an older one ignores the window, or answers with the default status code.

use std::collections::BTreeMap;

use shared::{
    availability::Availability, digital_link::LinkSet, redirect_status::RedirectStatus, time::UnixMillis,
};

use super::{
    bytes::{byte, number, put_number, put_signed, put_text, signed, text},
    record::{Dictionary, put_target, target},
};

const HAS_FROM: u8 = 1;
const HAS_UNTIL: u8 = 1 << 1;
const IS_PAUSED: u8 = 1 << 2;
const HAS_ENDED_URL: u8 = 1 << 3;
const HAS_LIMIT: u8 = 1 << 6;
/// Any of them: the link has an availability.
const AVAILABILITY: u8 = HAS_FROM | HAS_UNTIL | IS_PAUSED | HAS_ENDED_URL | HAS_LIMIT;
/// Two bits: the place of the status code in [`RedirectStatus::ALL`], in which the default is the first.
const STATUS: u8 = 0b11 << STATUS_SHIFT;
const STATUS_SHIFT: u32 = 4;
/// The typed links of a Digital Link follow, as JSON: there is one such record for a product, and not one for each item.
const HAS_LINKS: u8 = 1 << 7;

/// What stands behind the target.
type Rest = (RedirectStatus, Option<Box<Availability>>, Option<Box<LinkSet>>);

/// Appends them; `None` where the links cannot be written.
pub(super) fn put(
    dictionary: &Dictionary,
    out: &mut Vec<u8>,
    status: RedirectStatus,
    availability: Option<&Availability>,
    links: Option<&LinkSet>,
) -> Option<()> {
    let always = Availability::default();
    let Availability { valid_from, valid_until, max_scans, scans, is_paused, ended_url } =
        availability.unwrap_or(&always);
    // At most three.
    let place = RedirectStatus::ALL.iter().position(|each| *each == status).unwrap_or_default() as u8;
    let mut flags = place << STATUS_SHIFT;
    for (bit, holds) in [
        (HAS_FROM, valid_from.is_some()),
        (HAS_UNTIL, valid_until.is_some()),
        (IS_PAUSED, *is_paused),
        (HAS_ENDED_URL, ended_url.is_some()),
        (HAS_LIMIT, max_scans.is_some() || !scans.is_empty()),
        (HAS_LINKS, links.is_some()),
    ] {
        flags |= if holds { bit } else { 0 };
    }
    if flags == 0 {
        return Some(());
    }
    out.push(flags);
    for at in [valid_from, valid_until].into_iter().flatten() {
        put_signed(out, at.0);
    }
    if let Some(url) = ended_url {
        // Links of one campaign end at one page: it is in the dictionary once.
        put_target(dictionary, out, url);
    }
    if flags & HAS_LIMIT != 0 {
        // No limit is less than 1.
        put_number(out, max_scans.unwrap_or_default().into());
        put_number(out, scans.len() as u64);
        for (edge, count) in scans {
            put_text(out, edge.as_bytes());
            put_number(out, u64::from(*count));
        }
    }
    if let Some(links) = links {
        put_text(out, &serde_json::to_vec(links).ok()?);
    }
    Some(())
}

/// Reads them if bytes are left. `None` means that the bytes are malformed.
pub(super) fn take(dictionary: &Dictionary, input: &mut &[u8]) -> Option<Rest> {
    if input.is_empty() {
        return Some((RedirectStatus::default(), None, None));
    }
    let flags = byte(input)?;
    let mut at = |bit| Some(if flags & bit != 0 { Some(UnixMillis(signed(input)?)) } else { None });
    let (valid_from, valid_until) = (at(HAS_FROM)?, at(HAS_UNTIL)?);
    let ended_url = if flags & HAS_ENDED_URL != 0 {
        Some(String::from_utf8(target(dictionary, input)?).ok()?.into())
    } else {
        None
    };
    let (mut max_scans, mut scans) = (None, BTreeMap::new());
    if flags & HAS_LIMIT != 0 {
        max_scans = Some(number(input)? as u32).filter(|most| *most > 0);
        for _ in 0..number(input)? {
            let edge = std::str::from_utf8(text(input)?).ok()?.into();
            scans.insert(edge, number(input)? as u32);
        }
    }
    let is_paused = flags & IS_PAUSED != 0;
    let availability = Availability { valid_from, valid_until, max_scans, scans, is_paused, ended_url };
    let links = if flags & HAS_LINKS != 0 { Some(serde_json::from_slice(text(input)?).ok()?) } else { None };
    Some((status(flags), (flags & AVAILABILITY != 0).then(|| Box::new(availability)), links))
}

/// The status code if nothing else is left, so that the link always leads to its target.
#[inline]
pub(super) fn status_alone(input: &[u8]) -> Option<RedirectStatus> {
    match *input {
        [] => Some(RedirectStatus::default()),
        [flags] if flags & !STATUS == 0 => Some(status(flags)),
        _ => None,
    }
}

fn status(flags: u8) -> RedirectStatus {
    RedirectStatus::ALL.get(usize::from((flags & STATUS) >> STATUS_SHIFT)).copied().unwrap_or_default()
}
