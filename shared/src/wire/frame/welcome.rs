//! Welcomes as frames: a head, chunks of the lists, and an end with their count and hash.

use std::{fmt, sync::Arc};

use bytes::{Bytes, BytesMut};

use super::{
    End, FrameError, HEAD, Item, MAX_ITEMS, MAX_WELCOME_BYTES, Unfinished, WelcomeHead, kind, put, put_cut,
    read,
};
use crate::{
    rules::AccountRules,
    short_url::ShortDomain,
    wire::{
        certificates::{Challenge, DomainCertificate},
        stream::Welcome,
    },
    withheld::Withheld,
};

/// Items of welcomes, encoded once for all edges that get them.
#[derive(Clone)]
pub struct Chunks {
    frames: Bytes,
    items: u64,
}

// Frames may hold private keys.
impl fmt::Debug for Chunks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chunks").field("items", &self.items).finish_non_exhaustive()
    }
}

impl Chunks {
    /// Encodes items.
    ///
    /// # Errors
    /// One is larger than a frame.
    pub fn of(
        domains: &[ShortDomain],
        rules: &[Arc<AccountRules>],
        withheld: &[Withheld],
    ) -> Result<Self, FrameError> {
        let domains = domains.iter().map(|domain| Item { domain: Some(domain.clone()), ..Item::default() });
        let rules = rules.iter().map(|rules| Item { rules: Some(rules.clone()), ..Item::default() });
        let withheld = withheld.iter().map(|what| Item { withheld: Some(what.clone()), ..Item::default() });
        Self::encode(&domains.chain(rules).chain(withheld).collect::<Vec<_>>())
    }

    /// Encodes certificates, and what authorities are about to check.
    ///
    /// # Errors
    /// One is larger than a frame.
    pub fn of_certificates(
        certificates: &[Arc<DomainCertificate>],
        challenges: &[Arc<Challenge>],
    ) -> Result<Self, FrameError> {
        let certificates =
            certificates.iter().map(|one| Item { certificate: Some(one.clone()), ..Item::default() });
        let challenges =
            challenges.iter().map(|one| Item { challenge: Some(one.clone()), ..Item::default() });
        Self::encode(&certificates.chain(challenges).collect::<Vec<_>>())
    }

    fn encode(items: &[Item]) -> Result<Self, FrameError> {
        let mut out = BytesMut::new();
        put_cut(&mut out, items, &mut |out, items: &[Item]| put(out, kind::CHUNK, items))?;
        Ok(Self { frames: out.freeze(), items: items.len() as u64 })
    }

    /// Hashes the bodies of the frames.
    fn hash(&self, hash: &mut blake3::Hasher) {
        let mut rest = self.frames.clone();
        while let Some(&[a, b, c, d]) = rest.first_chunk::<4>() {
            let frame = rest.split_to(HEAD + u32::from_le_bytes([a, b, c, d]) as usize);
            hash.update(frame.get(HEAD..).unwrap_or_default());
        }
    }
}

/// The frames of a welcome that has the items of `shared` beside those in its own lists, in parts: those of `shared` are
/// not copied.
///
/// # Errors
/// An item of the welcome is larger than a frame.
pub fn encode_welcome(welcome: &Welcome, shared: &[&Chunks]) -> Result<Vec<Bytes>, FrameError> {
    let Welcome { epoch, head, compacted, start, domains, rules, withheld, kept, .. } = welcome;
    let Welcome { kept_certificates, certificates, challenges, .. } = welcome;
    let own = Chunks::of(domains, rules, withheld.as_deref().unwrap_or_default())?;
    let own_certificates = Chunks::of_certificates(certificates, challenges)?;
    let head = WelcomeHead {
        epoch: epoch.clone(),
        head: *head,
        compacted: *compacted,
        start: start.clone(),
        withheld: withheld.is_some(),
        kept: kept.clone(),
        kept_certificates: kept_certificates.clone(),
    };
    let mut parts = vec![one(kind::WELCOME, &head)?];
    let (mut hash, mut count) = (blake3::Hasher::new(), 0);
    for chunks in shared.iter().copied().chain([&own, &own_certificates]) {
        chunks.hash(&mut hash);
        count += chunks.items;
        parts.push(chunks.frames.clone());
    }
    parts.push(one(kind::END, &End { count, hash: hash.finalize().to_hex().to_string() })?);
    Ok(parts)
}

fn one<T: serde::Serialize>(kind: u8, body: &T) -> Result<Bytes, FrameError> {
    let mut out = BytesMut::new();
    put(&mut out, kind, body)?;
    Ok(out.freeze())
}

impl Unfinished {
    pub(super) fn chunk(&mut self, body: &[u8]) -> Result<(), FrameError> {
        let items: Vec<Item> = read(kind::CHUNK, body)?;
        self.count += items.len() as u64;
        self.bytes += body.len();
        if self.head.is_none() || self.count > MAX_ITEMS || self.bytes > MAX_WELCOME_BYTES {
            return Err(FrameError::Unfitting);
        }
        self.hash.update(body);
        for item in items {
            self.domains.extend(item.domain);
            self.rules.extend(item.rules);
            self.withheld.extend(item.withheld);
            self.certificates.extend(item.certificate);
            self.challenges.extend(item.challenge);
        }
        Ok(())
    }

    pub(super) fn end(self, end: End) -> Result<Welcome, FrameError> {
        let fits = end.count == self.count && end.hash == self.hash.finalize().to_hex().as_str();
        let WelcomeHead { epoch, head, compacted, start, withheld, kept, kept_certificates } =
            self.head.filter(|_| fits).ok_or(FrameError::Unfitting)?;
        let (domains, rules, withheld) = (self.domains, self.rules, withheld.then_some(self.withheld));
        let (certificates, challenges) = (self.certificates, self.challenges);
        Ok(Welcome {
            epoch,
            head,
            compacted,
            start,
            domains,
            rules,
            withheld,
            kept,
            kept_certificates,
            certificates,
            challenges,
        })
    }
}
