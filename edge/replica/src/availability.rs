//! The availability of a link, behind the target of its record.
//!
//! A record ends with its target unless its link has an availability, so other links take no byte for it. Older releases stop
//! reading after the target, so each release can read the other's files; an older one ignores the window.

use shared::{availability::Availability, time::UnixMillis};

use super::{
    bytes::{byte, put_signed, signed},
    record::{Dictionary, put_target, target},
};

const HAS_FROM: u8 = 1;
const HAS_UNTIL: u8 = 1 << 1;
const IS_PAUSED: u8 = 1 << 2;
const HAS_ENDED_URL: u8 = 1 << 3;

/// Appends it.
pub(super) fn put(dictionary: &Dictionary, out: &mut Vec<u8>, availability: &Availability) {
    let Availability { valid_from, valid_until, is_paused, ended_url } = availability;
    let mut flags = 0;
    for (bit, holds) in [
        (HAS_FROM, valid_from.is_some()),
        (HAS_UNTIL, valid_until.is_some()),
        (IS_PAUSED, *is_paused),
        (HAS_ENDED_URL, ended_url.is_some()),
    ] {
        flags |= if holds { bit } else { 0 };
    }
    out.push(flags);
    for at in [valid_from, valid_until].into_iter().flatten() {
        put_signed(out, at.0);
    }
    if let Some(url) = ended_url {
        // Links of one campaign end at one page: it is in the dictionary once.
        put_target(dictionary, out, url);
    }
}

/// Reads it if bytes are left. The outer `None` means that the bytes are malformed.
pub(super) fn take(dictionary: &Dictionary, input: &mut &[u8]) -> Option<Option<Box<Availability>>> {
    if input.is_empty() {
        return Some(None);
    }
    let flags = byte(input)?;
    let mut at = |bit| Some(if flags & bit != 0 { Some(UnixMillis(signed(input)?)) } else { None });
    let (valid_from, valid_until) = (at(HAS_FROM)?, at(HAS_UNTIL)?);
    let ended_url = if flags & HAS_ENDED_URL != 0 {
        Some(String::from_utf8(target(dictionary, input)?).ok()?.into())
    } else {
        None
    };
    let is_paused = flags & IS_PAUSED != 0;
    Some(Some(Box::new(Availability { valid_from, valid_until, is_paused, ended_url })))
}
