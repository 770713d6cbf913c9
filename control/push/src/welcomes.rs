//! What every welcome says of domains, certificates and what is withheld: read and encoded once for all edges that connect
//! together.
//!
//! A fleet that comes back costs one reading and its frames, and not one for each edge. Pages and files that an edge holds
//! are left out of its welcome (`shared::wire::contents`), and so are certificates; an edge that takes none is sent none.

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use bytes::Bytes;
use shared::{
    rules::AccountRules,
    short_url::ShortDomain,
    wire::{
        certificates::{Challenge, DomainCertificate},
        contents,
        frame::{Chunks, FrameError, encode_welcome},
        stream::{Change, Hello, Rev, Start, Welcome},
    },
    withheld::Withheld,
};
use tokio::{sync::Mutex, time::timeout};

use super::{hub::Hub, ring::Next};
use crate::store::{StoreError, certificates, domains, log, withheld};

/// How long a reading is shared. Then its memory is given back, too.
const SHARED_FOR: Duration = Duration::from_secs(10);

/// A commit is in the ring within milliseconds; after this time the database is read again.
const RING_WAIT: Duration = Duration::from_millis(100);

/// How long an edge waits for the readings of others: it gives up on its welcome after that time, too. So no connections
/// pile up behind readings that fail slowly.
const TURN_WAIT: Duration = Duration::from_secs(5);

/// Domains, certificates and what is withheld, as of a revision or later.
#[derive(Debug)]
struct Reading {
    domains: Vec<ShortDomain>,
    withheld: Vec<Withheld>,
    certificates: Vec<Arc<DomainCertificate>>,
    challenges: Vec<Arc<Challenge>>,
    digests: Vec<u64>,
    certificate_digests: Vec<u64>,
    /// Edges in the same process need no frames.
    encoded: OnceLock<Result<Encoded, FrameError>>,
}

/// A reading as chunks of a welcome.
#[derive(Debug)]
struct Encoded {
    /// The domains of each group, with their pages and files and without.
    groups: Vec<(Chunks, Chunks)>,
    withheld: Chunks,
    /// Those of each group.
    certificates: Vec<Chunks>,
    challenges: Chunks,
}

impl Encoded {
    fn of(reading: &Reading) -> Result<Self, FrameError> {
        let mut groups = vec![(Vec::new(), Vec::new()); usize::from(contents::GROUPS)];
        for domain in &reading.domains {
            if let Some((whole, small)) = groups.get_mut(usize::from(contents::group_of(domain))) {
                whole.push(domain.clone());
                small.push(contents::without(domain));
            }
        }
        let mut encoded = Vec::with_capacity(groups.len());
        for (whole, small) in &groups {
            encoded.push((Chunks::of(whole, &[], &[])?, Chunks::of(small, &[], &[])?));
        }
        let withheld = Chunks::of(&[], &[], &reading.withheld)?;
        let mut certificates = vec![Vec::new(); usize::from(contents::GROUPS)];
        for certificate in &reading.certificates {
            let group = contents::group_of_host(&certificate.host);
            if let Some(group) = certificates.get_mut(usize::from(group)) {
                group.push(certificate.clone());
            }
        }
        let chunks = certificates.iter().map(|group| Chunks::of_certificates(group, &[]));
        let certificates = chunks.collect::<Result<Vec<_>, _>>()?;
        let challenges = Chunks::of_certificates(&[], &reading.challenges)?;
        Ok(Self { groups: encoded, withheld, certificates, challenges })
    }
}

/// A welcome whose domains, certificates and list of what is withheld are shared with other edges.
#[derive(Debug, Clone)]
pub struct Greeting {
    welcome: Welcome,
    reading: Arc<Reading>,
}

impl Greeting {
    /// The frames, in parts; those that are shared are encoded once.
    ///
    /// # Errors
    /// A part of it is larger than a frame.
    pub(super) fn frames(&self) -> Result<Vec<Bytes>, FrameError> {
        let encoded = self.reading.encoded.get_or_init(|| Encoded::of(&self.reading));
        let encoded = encoded.as_ref().map_err(FrameError::clone)?;
        let mut shared = vec![&encoded.withheld];
        for ((whole, small), group) in encoded.groups.iter().zip(0_u8..) {
            shared.push(if self.welcome.kept.contains(&group) { small } else { whole });
        }
        if let Some(kept) = &self.welcome.kept_certificates {
            let groups = encoded.certificates.iter().zip(0_u8..);
            shared.extend(groups.filter(|(_, group)| !kept.contains(group)).map(|(chunks, _)| chunks));
            shared.push(&encoded.challenges);
        }
        encode_welcome(&self.welcome, &shared)
    }

    /// The whole welcome.
    pub(super) fn into_welcome(self) -> Welcome {
        let Self { welcome, reading } = self;
        let domains = reading.domains.iter().map(|domain| {
            let is_kept = welcome.kept.contains(&contents::group_of(domain));
            if is_kept { contents::without(domain) } else { domain.clone() }
        });
        let (certificates, challenges) = match &welcome.kept_certificates {
            None => (Vec::new(), Vec::new()),
            Some(kept) => {
                let is_kept = |host: &str| kept.contains(&contents::group_of_host(host));
                let left = reading.certificates.iter().filter(|one| !is_kept(&one.host));
                (left.cloned().collect(), reading.challenges.clone())
            }
        };
        Welcome {
            domains: domains.collect(),
            withheld: Some(reading.withheld.clone()),
            certificates,
            challenges,
            ..welcome
        }
    }
}

/// The newest reading.
#[derive(Default)]
pub(super) struct Welcomes(Mutex<Option<Newest>>);

struct Newest {
    reading: Arc<Reading>,
    /// No change up to this revision is missing.
    as_of: Rev,
    read_at: Instant,
}

/// A welcome without what [`Hub::greet`] adds.
pub(super) fn bare(head: log::Head, start: Start, rules: Vec<Arc<AccountRules>>) -> Welcome {
    Welcome {
        epoch: head.epoch,
        head: head.head,
        compacted: head.compacted,
        start,
        domains: Vec::new(),
        rules,
        withheld: None,
        kept: Vec::new(),
        kept_certificates: None,
        certificates: Vec::new(),
        challenges: Vec::new(),
    }
}

impl Hub {
    /// A welcome with the domains, certificates and what is withheld as of `at_least` or later, without the pages, files and
    /// certificates that an edge holds by its digests.
    pub(super) async fn greet(
        &self,
        welcome: Welcome,
        hello: &Hello,
        at_least: Rev,
    ) -> Result<Greeting, StoreError> {
        let (reading, as_of) = self.reading(at_least).await?;
        let kept = contents::same(&hello.contents, &reading.digests);
        let held = hello.certificates.as_ref();
        let kept_certificates = held.map(|held| contents::same(held, &reading.certificate_digests));
        // Events up to there change nothing of it, so that no older setting comes back while they are applied.
        let head = welcome.head.max(as_of);
        let welcome = Welcome { head, kept, kept_certificates, withheld: Some(Vec::new()), ..welcome };
        Ok(Greeting { welcome, reading })
    }

    /// A reading, and the revision up to which no change is missing in it.
    async fn reading(&self, at_least: Rev) -> Result<(Arc<Reading>, Rev), StoreError> {
        let mut head = self.0.head.subscribe();
        // Not under the lock, so that edges wait together.
        let _ = timeout(RING_WAIT, head.wait_for(|head| *head >= at_least)).await;
        let turn = timeout(TURN_WAIT, self.0.welcomes.0.lock()).await;
        let mut newest = turn.map_err(|_| StoreError::Busy)?;
        if let Some(known) = newest.as_mut().filter(|known| known.read_at.elapsed() < SHARED_FOR)
            && self.is_unchanged(known, at_least)
        {
            return Ok((known.reading.clone(), known.as_of));
        }
        // Its memory is free before the next one takes some.
        *newest = None;
        let mut conn = self.0.db.read().await?;
        let head = log::load_head(&mut conn).await?;
        if head.epoch != *self.epoch() {
            return Err(StoreError::Stopped);
        }
        // After the head: a domain of before is among them, one of after comes as an event.
        let domains = domains::list_all(&mut conn).await?;
        let withheld = withheld::list_all(&mut conn).await?;
        let stored = certificates::list_all(&mut conn).await?;
        let challenges = certificates::list_challenges(&mut conn).await?.into_iter().map(Arc::new).collect();
        let digests = contents::digests(&domains);
        // Also of those that do not decrypt here: an edge that has them keeps them.
        let digest_of = |one: &DomainCertificate| contents::digest_of_certificate(&one.host, &one.chain);
        let certificate_digests = contents::digests_of(stored.iter().map(digest_of).collect());
        let reading = Arc::new(Reading {
            domains,
            withheld,
            certificates: self.reveal_all(&stored),
            challenges,
            digests,
            certificate_digests,
            encoded: OnceLock::new(),
        });
        *newest = Some(Newest { reading: reading.clone(), as_of: head.head, read_at: Instant::now() });
        Ok((reading, head.head))
    }

    /// Whether a reading is also that of a later revision, by the events since.
    fn is_unchanged(&self, known: &mut Newest, at_least: Rev) -> bool {
        while known.as_of < at_least {
            let Next::Batch(batch) = self.0.ring.after(known.as_of) else { return false };
            let concerns = |change: &Change| match change {
                Change::Domain(_)
                | Change::Withhold(..)
                | Change::Certificate(..)
                | Change::Challenge(_)
                | Change::Unreadable(_) => true,
                Change::Redirect(..) | Change::Rules(_) => false,
            };
            if batch.events.items.iter().any(|event| concerns(&event.change)) {
                return false;
            }
            known.as_of = batch.events.last;
        }
        true
    }

    /// Gives back the memory of a reading that is no longer shared.
    pub(super) fn forget_reading(&self) {
        if let Ok(mut newest) = self.0.welcomes.0.try_lock()
            && newest.as_ref().is_some_and(|known| known.read_at.elapsed() >= SHARED_FOR)
        {
            *newest = None;
        }
    }
}
