//! One link as bytes: packed ids, shared texts by number, the target as a template with its parameters.
//!
//! `length | domain | key | revision | flags | ids | standing | times | extras | template | rest`, and behind it the status
//! code, the availability and the typed links of the few links that have them. Every number is a varint; the length counts all that follows it.
//! Bytes that this module did not write give no link, never a panic.

use http::HeaderValue;
use shared::{
    commission::CommissionState,
    redirect::{Redirect, RedirectKey, ResourceType},
    redirect_status::RedirectStatus,
    standing::{Authenticity, Risk, Standing, Verdict},
    time::UnixMillis,
    wire::stream::Rev,
};

use super::{
    availability,
    bytes::{byte, number, put_number, put_signed, put_text, signed, take, text},
    ids::{PACKED_ID, pack, parse, pass_id, put_id, take_id, unpack},
    names::Names,
};

/// Texts in which nothing is shared, by this number.
const NO_TEMPLATE: u64 = 0;
/// Parts of a target that may change from link to link are this long at least, if they hold a digit.
const LEAST_REST: usize = 3;

const FORWARDS_QUERY: u8 = 1 << 2;
const THNG_IS_PLATFORM: u8 = 1 << 3;
const HAS_THNG: u8 = 1 << 4;
const HAS_PRODUCT: u8 = 1 << 5;
const HAS_EXTRAS: u8 = 1 << 6;
const HAS_STANDING: u8 = 1 << 7;
const COMMISSIONS: [CommissionState; 3] =
    [CommissionState::NotCommissioned, CommissionState::Commissioned, CommissionState::Decommissioned];
const TYPES: [ResourceType; 4] =
    [ResourceType::Thng, ResourceType::Product, ResourceType::Collection, ResourceType::Place];

/// Where a link leads, and nothing else of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lead {
    /// The target.
    pub location: HeaderValue,
    /// Whether the query of the request goes with it.
    pub forward_query: bool,
    /// With which status code.
    pub status_code: RedirectStatus,
}

/// Texts that records name by number.
#[derive(Debug)]
pub(super) struct Dictionary {
    /// Hosts of short domains.
    pub(super) domains: Names,
    /// What stands before and behind the rest of a target, with a line feed between.
    pub(super) templates: Names,
    /// Ids of products and projects.
    pub(super) ids: Names,
}

impl Dictionary {
    /// Empty dictionaries; texts that do not fit into them are written literally.
    pub(super) fn new() -> Self {
        Self { domains: Names::new(4 << 20), templates: Names::new(8 << 20), ids: Names::new(2 << 20) }
    }

    /// Bytes that it takes, roughly.
    pub(super) fn bytes(&self) -> usize {
        self.domains.bytes() + self.templates.bytes() + self.ids.bytes()
    }
}

/// Bytes of a record, its length included; 0 when these are none.
pub(super) fn length(record: &[u8]) -> usize {
    let mut rest = record;
    match number(&mut rest) {
        Some(length) => (record.len() - rest.len()).saturating_add(length as usize).min(record.len()),
        None => 0,
    }
}

/// Number of the domain, and the folded short id, of a record.
pub(super) fn key(record: &[u8]) -> Option<(u32, &[u8])> {
    let input = &mut &*record;
    number(input)?;
    Some((number(input)? as u32, text(input)?))
}

/// The revision that wrote a record.
pub(super) fn rev(record: &[u8]) -> Option<Rev> {
    let input = &mut &*record;
    number(input)?;
    number(input)?;
    text(input)?;
    number(input)
}

/// Encodes a link; `None` if its domain does not fit or its members cannot be packed.
pub(super) fn encode(
    dictionary: &Dictionary,
    key: &RedirectKey,
    rev: Rev,
    link: &Redirect,
) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(96);
    put_number(&mut out, u64::from(dictionary.domains.number(&key.domain)?));
    put_text(&mut out, key.folded.as_bytes());
    put_number(&mut out, rev);
    let thng = link.thng_id.as_ref().map(|id| id.as_str());
    let is_plain =
        link.short_id.as_str() == &*key.folded && link.thng_name.is_none() && link.projects.is_empty();
    // Declared in the order of `TYPES`, so the cast is the index.
    let mut flags = link.resource_type as u8;
    for (bit, holds) in [
        (FORWARDS_QUERY, link.forward_query),
        (THNG_IS_PLATFORM, thng == Some(link.platform_id.as_str())),
        (HAS_THNG, thng.is_some_and(|thng| thng != link.platform_id.as_str())),
        (HAS_PRODUCT, link.product_id.is_some()),
        (HAS_EXTRAS, !is_plain),
        (HAS_STANDING, !link.standing.is_empty()),
    ] {
        flags |= if holds { bit } else { 0 };
    }
    out.push(flags);
    out.extend(pack(link.platform_id.as_str())?);
    if let Some(thng) = thng.filter(|_| flags & HAS_THNG != 0) {
        out.extend(pack(thng)?);
    }
    if let Some(product) = &link.product_id {
        put_id(&dictionary.ids, &mut out, product.as_str())?;
    }
    if !link.standing.is_empty() {
        out.extend(pack_standing(&link.standing)?);
    }
    put_signed(&mut out, link.created_at.0);
    put_signed(&mut out, link.updated_at.0.wrapping_sub(link.created_at.0));
    if !is_plain {
        put_text(&mut out, link.short_id.as_str().as_bytes());
        match &link.thng_name {
            None => out.push(0),
            Some(name) => {
                out.push(1);
                put_text(&mut out, name.as_bytes());
            }
        }
        put_number(&mut out, link.projects.len() as u64);
        for project in &link.projects {
            put_id(&dictionary.ids, &mut out, project.as_str())?;
        }
    }
    put_target(dictionary, &mut out, &link.target);
    let (availability, links) = (link.availability.as_deref(), link.digital_link.as_deref());
    availability::put(dictionary, &mut out, link.status_code, availability, links)?;
    let mut record = Vec::with_capacity(out.len() + 2);
    put_number(&mut record, out.len() as u64);
    record.extend(out);
    Some(record)
}

/// Reads a link.
pub(super) fn decode(dictionary: &Dictionary, record: &[u8]) -> Option<(Rev, Redirect)> {
    let input = &mut record.get(..length(record))?;
    number(input)?;
    let domain = dictionary.domains.text(number(input)? as u32)?;
    let folded = std::str::from_utf8(text(input)?).ok()?;
    let rev = number(input)?;
    let flags = byte(input)?;
    let platform_id = unpack(input)?;
    let thng_id = match flags & (THNG_IS_PLATFORM | HAS_THNG) {
        0 => None,
        HAS_THNG => Some(unpack(input)?),
        _ => Some(platform_id),
    };
    let product_id = if flags & HAS_PRODUCT != 0 { Some(take_id(&dictionary.ids, input)?) } else { None };
    let standing = if flags & HAS_STANDING != 0 {
        unpack_standing(byte(input)?, byte(input)?)?
    } else {
        Standing::default()
    };
    let created_at = signed(input)?;
    let updated_at = created_at.wrapping_add(signed(input)?);
    let (mut short_id, mut thng_name, mut projects) = (folded, None, Vec::new());
    if flags & HAS_EXTRAS != 0 {
        short_id = std::str::from_utf8(text(input)?).ok()?;
        if byte(input)? == 1 {
            thng_name = Some(std::str::from_utf8(text(input)?).ok()?.into());
        }
        for _ in 0..number(input)? {
            projects.push(parse(&take_id(&dictionary.ids, input)?)?);
        }
    }
    let target = String::from_utf8(target(dictionary, input)?).ok()?.into();
    let (status_code, availability, digital_link) = availability::take(dictionary, input)?;
    Some((
        rev,
        Redirect {
            domain: domain.parse().ok()?,
            short_id: short_id.parse().ok()?,
            resource_type: *TYPES.get(usize::from(flags & 3))?,
            platform_id: parse(&platform_id)?,
            thng_id: thng_id.as_ref().and_then(parse),
            product_id: product_id.as_ref().and_then(parse),
            thng_name,
            standing,
            projects: projects.into(),
            target,
            forward_query: flags & FORWARDS_QUERY != 0,
            status_code,
            availability,
            digital_link,
            created_at: UnixMillis(created_at),
            updated_at: UnixMillis(updated_at),
        },
    ))
}

/// Reads where a link leads; no lead when its target has tags, which the rest of the link fills in, nor when it does not always
/// lead there.
pub(super) fn lead(dictionary: &Dictionary, record: &[u8]) -> Option<(Rev, Option<Lead>)> {
    let input = &mut record.get(..length(record))?;
    number(input)?;
    number(input)?;
    text(input)?;
    let rev = number(input)?;
    let flags = byte(input)?;
    take(input, PACKED_ID)?;
    if flags & (THNG_IS_PLATFORM | HAS_THNG) == HAS_THNG {
        take(input, PACKED_ID)?;
    }
    if flags & HAS_PRODUCT != 0 {
        pass_id(input)?;
    }
    if flags & HAS_STANDING != 0 {
        take(input, 2)?;
    }
    signed(input)?;
    signed(input)?;
    if flags & HAS_EXTRAS != 0 {
        text(input)?;
        if byte(input)? == 1 {
            text(input)?;
        }
        for _ in 0..number(input)? {
            pass_id(input)?;
        }
    }
    let target = target(dictionary, input)?;
    let Some(status_code) = availability::status_alone(input).filter(|_| !target.contains(&b'{')) else {
        return Some((rev, None));
    };
    // It was validated by the same rules when it was inserted.
    let location = HeaderValue::from_maybe_shared(bytes::Bytes::from(target)).ok()?;
    Some((rev, Some(Lead { location, forward_query: flags & FORWARDS_QUERY != 0, status_code })))
}

/// Appends a target.
pub(super) fn put_target(dictionary: &Dictionary, out: &mut Vec<u8>, target: &str) {
    let (before, rest, behind) = split(target);
    match dictionary.templates.number(&format!("{before}\n{behind}")) {
        // No target has a line feed; one that had would be read back in another way.
        Some(template) if !target.contains('\n') => {
            put_number(out, u64::from(template) + 1);
            put_text(out, rest.as_bytes());
        }
        Some(_) | None => {
            put_number(out, NO_TEMPLATE);
            put_text(out, target.as_bytes());
        }
    }
}

/// Takes a target.
pub(super) fn target(dictionary: &Dictionary, input: &mut &[u8]) -> Option<Vec<u8>> {
    let template = number(input)?;
    let rest = text(input)?;
    if template == NO_TEMPLATE {
        return Some(rest.to_vec());
    }
    let template = dictionary.templates.text(u32::try_from(template - 1).ok()?)?.as_bytes();
    let mut out = Vec::with_capacity(template.len() + rest.len());
    let cut = template.iter().position(|byte| *byte == b'\n')?;
    out.extend_from_slice(template.get(..cut)?);
    out.extend_from_slice(rest);
    out.extend_from_slice(template.get(cut + 1..)?);
    Some(out)
}

/// Splits a target where similar links differ: at its last word with a digit, else at its last word.
fn split(target: &str) -> (&str, &str, &str) {
    let is_edge = |byte: u8| !byte.is_ascii_alphanumeric() && byte != b'%' && byte != b'{' && byte != b'}';
    let bytes = target.as_bytes();
    let (mut end, mut last) = (bytes.len(), None);
    while end > 0 {
        let begin = bytes[..end].iter().rposition(|byte| is_edge(*byte)).map_or(0, |at| at + 1);
        let word = &bytes[begin..end];
        if word.len() >= LEAST_REST && word.iter().any(u8::is_ascii_digit) {
            last = Some((begin, end));
            break;
        }
        if last.is_none() && !word.is_empty() {
            last = Some((begin, end));
        }
        end = begin.saturating_sub(1);
    }
    let (begin, end) = last.unwrap_or((0, 0));
    // Words hold ASCII alone or whole characters: an edge is one byte of ASCII.
    match (target.get(..begin), target.get(begin..end), target.get(end..)) {
        (Some(before), Some(rest), Some(behind)) => (before, rest, behind),
        _ => (target, "", ""),
    }
}

/// One byte for each part; 0 means unknown.
fn pack_standing(standing: &Standing) -> Option<[u8; 2]> {
    let commission = match standing.commission {
        None => 0,
        Some(state) => COMMISSIONS.iter().position(|each| *each == state)? + 1,
    };
    let verdict = match standing.verdict {
        None => 0,
        Some(Verdict { authentication, counterfeit, gray_market }) => {
            let risk = |risk| Risk::ALL.iter().position(|each| *each == risk);
            let of = Authenticity::ALL.iter().position(|each| *each == authentication)?;
            (of * Risk::ALL.len() + risk(counterfeit)?) * Risk::ALL.len() + risk(gray_market)? + 1
        }
    };
    Some([u8::try_from(commission).ok()?, u8::try_from(verdict).ok()?])
}

fn unpack_standing(commission: u8, verdict: u8) -> Option<Standing> {
    let commission = match usize::from(commission) {
        0 => None,
        number => Some(*COMMISSIONS.get(number - 1)?),
    };
    let verdict = match usize::from(verdict) {
        0 => None,
        number => {
            let (rest, gray_market) = ((number - 1) / Risk::ALL.len(), (number - 1) % Risk::ALL.len());
            let (of, counterfeit) = (rest / Risk::ALL.len(), rest % Risk::ALL.len());
            Some(Verdict {
                authentication: *Authenticity::ALL.get(of)?,
                counterfeit: *Risk::ALL.get(counterfeit)?,
                gray_market: *Risk::ALL.get(gray_market)?,
            })
        }
    };
    Some(Standing { commission, verdict })
}

#[cfg(test)]
mod tests;
