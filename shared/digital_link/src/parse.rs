//! Reads a path and a query as a Digital Link.

use std::borrow::Cow;

use crate::{
    ai::Ai,
    error::DigitalLinkError,
    identifiers::Row,
    link::{DigitalLink, Qualifier, check_gtin, check_length, check_qualifier},
    query,
    value::{self, Kinds},
};

impl<'a> DigitalLink<'a> {
    /// Reads the raw path and the raw query (without `?`) of a request.
    ///
    /// One `/` at the end of the path is tolerated. Values of the query are checked where their name is an
    /// application identifier; all other parameters, such as `linkType`, are passed over.
    ///
    /// # Errors
    /// `NoKey` where the path is something else. All others say what is wrong with the Digital Link; verdicts are those
    /// of GS1's engine, but for what the README lists.
    pub fn parse(path: &'a str, query: Option<&'a str>) -> Result<Self, DigitalLinkError> {
        let found = Found::search(path)?;
        let kinds = Kinds::of(path.as_bytes());
        if !kinds.are_path() {
            let offset = path.bytes().position(|byte| !Kinds::of_byte(byte).are_path()).unwrap_or_default();
            return Err(DigitalLinkError::PathCharacter { offset });
        }
        if let Some(fault) = found.fault {
            return Err(fault);
        }
        let gtin = if kinds.are_plain() {
            Cow::Borrowed(found.gtin)
        } else {
            value::decode_path(found.gtin).ok_or(DigitalLinkError::Characters { ai: Ai::GTIN })?
        };
        check_gtin(gtin.as_bytes())?;
        let mut values = [const { None }; 4];
        for ((qualifier, raw), slot) in Qualifier::ALL.into_iter().zip(found.values).zip(&mut values) {
            *slot = raw.map(|raw| read(qualifier, raw, kinds)).transpose()?;
        }
        let link = Self { stem: found.stem, gtin, values, query };
        if let Some(query) = query {
            query::check(query, &link)?;
        }
        Ok(link)
    }
}

/// Reads a value of a path whose bytes are these.
fn read(qualifier: Qualifier, raw: &str, kinds: Kinds) -> Result<Cow<'_, str>, DigitalLinkError> {
    if kinds.are_plain() {
        check_length(qualifier, raw.as_bytes())?;
        return Ok(Cow::Borrowed(raw));
    }
    let text = value::decode_path(raw).ok_or(DigitalLinkError::Characters { ai: qualifier.ai() })?;
    check_qualifier(qualifier, text.as_bytes())?;
    Ok(text)
}

/// The parts of a path, raw.
struct Found<'a> {
    stem: &'a str,
    gtin: &'a str,
    values: [Option<&'a str>; 4],
    /// The pairs behind the key are not those that a GTIN may have, or not in their order.
    fault: Option<DigitalLinkError>,
}

impl<'a> Found<'a> {
    /// Goes back from the end of the path, pair by pair, to the first primary key.
    fn search(path: &'a str) -> Result<Self, DigitalLinkError> {
        let body = path.strip_prefix('/').ok_or(DigitalLinkError::NoKey)?;
        let mut rest = body.strip_suffix('/').unwrap_or(body);
        let (mut values, mut fault) = ([None; 4], None);
        // The place of the qualifier that was read last.
        let mut behind: Option<Qualifier> = None;
        loop {
            let Some((before, value)) = split_last(rest) else { return Err(without_key(body)) };
            let (stem, ai) = match split_last(before) {
                Some((stem, ai)) => (Some(stem), ai),
                None => (None, before),
            };
            if ai.as_bytes() == Ai::GTIN_TEXT {
                // With the `/` before it, which `body` lacks.
                let stem = stem.and_then(|stem| path.get(..=stem.len())).unwrap_or_default();
                return Ok(Self { stem, gtin: value, values, fault });
            }
            if let Some(qualifier) = Qualifier::of(ai) {
                let fits = match behind {
                    None => true,
                    Some(Qualifier::ThirdParty) => false,
                    Some(behind) => qualifier.place() < behind.place(),
                };
                if !fits {
                    fault = Some(DigitalLinkError::Order { ai: qualifier.ai() });
                }
                if let Some(slot) = values.get_mut(qualifier.place()) {
                    *slot = Some(value);
                }
                behind = Some(qualifier);
            } else {
                let known = Ai::parse(ai).and_then(|ai| Row::find(ai).map(|row| (ai, row)));
                match known {
                    Some((ai, row)) if !row.key => fault = Some(DigitalLinkError::Order { ai }),
                    Some(_) => return Err(DigitalLinkError::NoKey),
                    None => return Err(without_key(body)),
                }
            }
            rest = stem.ok_or(DigitalLinkError::NoKey)?;
        }
    }
}

/// Splits at the last `/`. Segments are short: looking at each byte is faster here than `rsplit_once`.
fn split_last(text: &str) -> Option<(&str, &str)> {
    let at = text.bytes().rposition(|byte| byte == b'/')?;
    Some((text.get(..at)?, text.get(at + 1..)?))
}

/// A GTIN with something behind it that is no pairs is a fault; a path without a GTIN is something else.
fn without_key(body: &str) -> DigitalLinkError {
    let segments = || body.split('/');
    let is_gtin =
        |text: &str| matches!(text.len(), 8 | 12..=14) && text.bytes().all(|byte| byte.is_ascii_digit());
    let found = segments()
        .zip(segments().skip(1))
        .any(|(ai, value)| ai.as_bytes() == Ai::GTIN_TEXT && is_gtin(value));
    if found { DigitalLinkError::Unpaired } else { DigitalLinkError::NoKey }
}
