//! Reads records.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    num::NonZeroU32,
    sync::Arc,
};

use super::{
    BOT, DEVICE, LINKED, PLAIN, REDACTED, REDACTED_WITH_RULE, SUM, WITH_LANGUAGE, WITH_LANGUAGE_AND_RULE,
    WITH_RULE,
};
use crate::{
    time::UnixMillis,
    wire::scan::{FiredRule, RedactedClient, ScanRecord, ScannedLink},
};

pub(super) fn read(version: u8, mut bytes: &[u8]) -> Option<ScanRecord> {
    let input = &mut bytes;
    let is_linked = version & LINKED != 0;
    let (has_language, has_rule) = match version & !LINKED {
        PLAIN => (false, false),
        WITH_RULE => (false, true),
        WITH_LANGUAGE => (true, false),
        WITH_LANGUAGE_AND_RULE => (true, true),
        SUM if !is_linked => return decode_sum(input),
        REDACTED => return decode_redacted(input, (false, is_linked)),
        REDACTED_WITH_RULE => return decode_redacted(input, (true, is_linked)),
        _ => return None,
    };
    let at = UnixMillis(i64::from_le_bytes(take(input)?));
    let ip = match take::<1>(input)? {
        [4] => IpAddr::V4(Ipv4Addr::from(take::<4>(input)?)),
        [6] => IpAddr::V6(Ipv6Addr::from(take::<16>(input)?)),
        _ => return None,
    };
    let domain = text(input)?.into();
    let folded = text(input)?.into();
    let entry_url = text(input)?.into();
    let (user_agent, referer) = (optional(input)?, optional(input)?);
    let language = if has_language { optional(input)? } else { None };
    let rule = if has_rule { Some(Box::new(rule(input)?)) } else { None };
    let digital_link = if is_linked { Some(Box::new(link(input)?)) } else { None };
    let record = ScanRecord { ip, user_agent, referer, language, ..bare(at, domain, folded) };
    input.is_empty().then_some(ScanRecord { entry_url, rule, digital_link, ..record })
}

fn decode_redacted(mut bytes: &[u8], (has_rule, is_linked): (bool, bool)) -> Option<ScanRecord> {
    let input = &mut bytes;
    let at = UnixMillis(i64::from_le_bytes(take(input)?));
    let [flags] = take::<1>(input)?;
    let device = i64::from_le_bytes(take(input)?);
    let (domain, folded, entry_url) = (text(input)?.into(), text(input)?.into(), text(input)?.into());
    let (referer, language) = (optional(input)?, optional(input)?);
    let client = RedactedClient {
        bot: flags & BOT != 0,
        device: (flags & DEVICE != 0).then_some(device),
        name: optional(input)?,
        system: optional(input)?,
        city: optional(input)?,
        region: optional(input)?,
        country_code: optional(input)?,
        time_zone: optional(input)?,
    };
    let rule = if has_rule { Some(Box::new(rule(input)?)) } else { None };
    let digital_link = if is_linked { Some(Box::new(link(input)?)) } else { None };
    let record = ScanRecord { client: Some(Box::new(client)), digital_link, ..bare(at, domain, folded) };
    input.is_empty().then_some(ScanRecord { entry_url, referer, language, rule, ..record })
}

/// A record of which nothing but time and link is known.
fn bare(at: UnixMillis, domain: Arc<str>, folded: Arc<str>) -> ScanRecord {
    ScanRecord {
        at,
        domain,
        folded,
        ip: Ipv4Addr::UNSPECIFIED.into(),
        user_agent: None,
        referer: None,
        language: None,
        entry_url: Box::default(),
        rule: None,
        count: None,
        client: None,
        digital_link: None,
    }
}

fn link(input: &mut &[u8]) -> Option<ScannedLink> {
    let gtin = text(input)?.into();
    let mut optional = || optional(input);
    let (variant, lot, serial, link_type) = (optional()?, optional()?, optional()?, optional()?);
    let known = match take::<1>(input)? {
        [0] => None,
        [1] => Some(false),
        [2] => Some(true),
        _ => return None,
    };
    Some(ScannedLink { gtin, variant, lot, serial, link_type, known })
}

fn rule(input: &mut &[u8]) -> Option<FiredRule> {
    let application = match text(input)? {
        "" => None,
        id => Some(id.parse().ok()?),
    };
    let index = u16::from_le_bytes(take(input)?);
    let name = optional(input)?;
    let redirect_url = text(input)?.into();
    Some(FiredRule { application, index, name, redirect_url })
}

fn take<const N: usize>(input: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = input.split_first_chunk::<N>()?;
    *input = rest;
    Some(*head)
}

fn text<'a>(input: &mut &'a [u8]) -> Option<&'a str> {
    let length = usize::from(u16::from_le_bytes(take(input)?));
    let (head, rest) = input.split_at_checked(length)?;
    *input = rest;
    std::str::from_utf8(head).ok()
}

/// A text that is empty where it is absent.
fn optional(input: &mut &[u8]) -> Option<Option<Box<str>>> {
    Some(Some(text(input)?).filter(|text| !text.is_empty()).map(Box::from))
}

fn decode_sum(mut bytes: &[u8]) -> Option<ScanRecord> {
    let input = &mut bytes;
    let at = UnixMillis(i64::from_le_bytes(take(input)?));
    let count = NonZeroU32::new(u32::from_le_bytes(take(input)?))?;
    let (domain, folded) = (text(input)?.into(), text(input)?.into());
    input.is_empty().then(|| ScanRecord { count: Some(count), ..bare(at, domain, folded) })
}
