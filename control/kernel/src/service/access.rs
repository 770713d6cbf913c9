//! Authenticates keys and checks permissions.

use std::{
    collections::HashMap,
    net::IpAddr,
    ops::Deref,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use shared::{contact::Contact, problem::Code, time::UnixMillis};
use tokio::sync::Notify;

use super::{
    batcher::{Batcher, of_all},
    key_uses::KeyUses,
    state::{Core, Random, RandomUnavailable},
};
use crate::{
    domain::{
        access::{Actor, ActorKind, Generation, KEY_LEN, derive_key, hash_key, is_key, key_from_random},
        api_key::{Bounds, KnownKey},
        grant::Grant,
        permission::{Subject, Verb, own_reach, reach},
    },
    error::{CommonError, ServiceError},
    store::{Ctx, Db, StoreError, keys},
};

/// Concurrent look-up batches: while one is in flight the next is sent.
const LOOKUP_LANES: usize = 2;

/// Who asks for an operation, and what its writes must know of the request.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Who it is.
    pub actor: Actor,
    /// What transactions of the request are begun with.
    pub ctx: Ctx,
    /// The bounds of the key by which the request came: a key of a project makes no wider ones.
    pub bounds: Bounds,
}

impl Caller {
    /// An actor by a key without bounds, whose writes have no more to know.
    #[must_use]
    pub fn plain(actor: Actor) -> Self {
        Self { actor, ctx: Ctx::default(), bounds: Bounds::default() }
    }
}

impl Deref for Caller {
    type Target = Actor;

    fn deref(&self) -> &Actor {
        &self.actor
    }
}

/// Authenticates a key that came from an address.
///
/// Keys are looked up by SHA-256, so timing reveals nothing about a stored key.
///
/// # Errors
/// [`Code::KeyUnknown`], [`Code::KeyExpired`], [`Code::ForeignNetwork`] or [`Code::Suspended`].
pub async fn identify(core: &Core, key: &str, client: Option<IpAddr>) -> Result<Actor, ServiceError> {
    Ok(identify_key(core, key, client).await?.actor)
}

/// [`identify`], with the bounds of the key.
///
/// # Errors
/// As [`identify`].
pub async fn identify_key(core: &Core, key: &str, client: Option<IpAddr>) -> Result<KnownKey, ServiceError> {
    let unknown = || CommonError::Key(Code::KeyUnknown);
    if !is_key(key) {
        return Err(unknown().into());
    }
    let hash = hash_key(key);
    let known = core.key_lookups.find(hash).await?.ok_or_else(unknown)?;
    known.check(|| core.clock.now(), client).map_err(|code| core.key_lookups.refusal(code))?;
    if known.notes_use() {
        core.key_lookups.uses.note(hash);
    }
    Ok(known)
}

/// How long a looked-up key is cached: a key that another process revokes is accepted here for at most this long.
///
/// With the time of a request, it is refused within a second.
pub const KNOWN_FOR: Duration = Duration::from_millis(800);

/// Most keys in the cache.
const MOST_KNOWN: usize = 10_000;

/// Looks up keys in batches, with a short-lived cache; cheap to clone.
///
/// Unknown keys are not cached: a new key is valid at once.
#[derive(Clone)]
pub struct KeyLookups {
    batcher: Batcher<[u8; 32], Result<Option<KnownKey>, StoreError>>,
    known: Arc<Mutex<Known>>,
    /// Notified when keys were revoked or changed in this process: open streams of theirs must end.
    pub changed: Arc<Notify>,
    /// Which keys were used.
    pub uses: Arc<KeyUses>,
    /// Where the owner of a suspended account asks why.
    pub contact: Option<Arc<Contact>>,
}

/// Keys that were looked up a moment ago.
#[derive(Default)]
struct Known {
    keys: HashMap<[u8; 32], (Instant, KnownKey)>,
    /// Number of revocations in this process: results of look-ups that began before one are discarded.
    revocations: u64,
    /// When those that are no longer known were last removed.
    swept: Option<Instant>,
}

impl Known {
    fn find(&self, hash: &[u8; 32]) -> Option<KnownKey> {
        let (at, key) = self.keys.get(hash)?;
        (at.elapsed() < KNOWN_FOR).then(|| key.clone())
    }

    fn insert(&mut self, hash: [u8; 32], at: Instant, key: KnownKey) {
        if self.keys.len() >= MOST_KNOWN && self.swept.is_none_or(|swept| swept.elapsed() >= KNOWN_FOR) {
            self.keys.retain(|_, (at, _)| at.elapsed() < KNOWN_FOR);
            self.swept = Some(Instant::now());
        }
        // While as many keys are at work in one second, the others are looked up each time.
        if self.keys.len() < MOST_KNOWN {
            self.keys.insert(hash, (at, key));
        }
    }
}

shared::opaque!(KeyLookups);

impl KeyLookups {
    /// Key look-ups in a database.
    #[must_use]
    pub fn new(db: Db) -> Self {
        let look_up = move |hashes: Vec<[u8; 32]>| {
            let db = db.clone();
            async move {
                let found = async { keys::find_many(&mut db.read().await?, &hashes).await };
                match found.await {
                    Ok(found) => hashes.iter().map(|hash| Ok(found.get(hash).cloned())).collect(),
                    Err(error) => hashes.iter().map(|_| Err(of_all(&error))).collect(),
                }
            }
        };
        Self {
            batcher: Batcher::new(
                LOOKUP_LANES,
                LOOKUP_LANES,
                |_| None,
                Box::new(move |hashes| Box::pin(look_up(hashes))),
            ),
            known: Arc::default(),
            changed: Arc::default(),
            uses: Arc::default(),
            contact: None,
        }
    }

    async fn find(&self, hash: [u8; 32]) -> Result<Option<KnownKey>, StoreError> {
        let (begun, revocations) = {
            let known = self.known();
            if let Some(key) = known.find(&hash) {
                return Ok(Some(key));
            }
            (Instant::now(), known.revocations)
        };
        let found = self.batcher.submit(hash).await??;
        if let Some(key) = &found {
            let mut known = self.known();
            // A key that was revoked during the look-up must not be cached as valid.
            if known.revocations == revocations {
                known.insert(hash, begun, key.clone());
            }
        }
        Ok(found)
    }

    /// The refusal of a key that is known.
    fn refusal(&self, code: Code) -> ServiceError {
        let contact = self.contact.as_deref().filter(|_| code == Code::Suspended).cloned();
        contact.map_or(CommonError::Key(code), CommonError::Suspended).into()
    }

    /// The refusal of what a suspended account gave out or holds.
    #[must_use]
    pub fn suspended(&self) -> ServiceError {
        self.refusal(Code::Suspended)
    }

    /// Clears the cache after keys were revoked or changed; called after the commit.
    pub fn revoked(&self) {
        {
            let mut known = self.known();
            known.revocations += 1;
            known.keys.clear();
        }
        self.changed.notify_one();
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The key of an application or Thng, which can be read again.
///
/// # Errors
/// One case in 10^30.
pub fn derived_key(
    core: &Core,
    kind: ActorKind,
    actor_id: &str,
    generation: Generation,
) -> Result<String, ServiceError> {
    derive_key(&core.secrets.api_key, kind, actor_id, generation)
        .ok_or_else(|| ServiceError::Internal("no key can be derived".to_owned()))
}

/// A new random key of a kind; only its hash is stored.
///
/// # Errors
/// There are no random bits.
pub fn new_key(random: &dyn Random, prefix: &str) -> Result<String, ServiceError> {
    let mut bits = [0; 2 * KEY_LEN];
    random.fill(&mut bits)?;
    Ok(key_from_random(prefix, &bits).ok_or(RandomUnavailable)?)
}

/// Longest time that a key works beside the one that replaces it: 30 days.
pub const MAX_OVERLAP_MS: u32 = 30 * 24 * 60 * 60 * 1_000;

/// When a key that is rotated now ends.
///
/// # Errors
/// The time that both shall work is too long.
pub fn end_of_overlap(now: UnixMillis, overlap_ms: u32) -> Result<UnixMillis, ServiceError> {
    if overlap_ms > MAX_OVERLAP_MS {
        return Err(CommonError::OverlapTooLong { most_ms: MAX_OVERLAP_MS }.into());
    }
    Ok(UnixMillis(now.0.saturating_add(i64::from(overlap_ms))))
}

/// The caller's grant for an operation; refuses a kind of key that has no permission for it.
///
/// # Errors
/// [`Code::Forbidden`].
pub fn require(actor: &Actor, verb: Verb, subject: Subject) -> Result<Grant, ServiceError> {
    let of_kind = reach(actor.kind, actor.user_rights, verb, subject);
    let is_allowed = subject == Subject::Access || actor.permissions.allow(verb, subject);
    let reach = of_kind.filter(|_| is_allowed).or_else(|| own_reach(actor.kind, verb, subject));
    reach.and_then(|reach| Grant::new(actor, reach)).ok_or_else(|| {
        let is_of_role = of_kind.is_some() && !is_allowed;
        if is_of_role { CommonError::RoleLacks(subject, verb) } else { CommonError::KeyKind(actor.kind) }
            .into()
    })
}

/// Refuses an account that has no enterprise features; `what` is the feature.
///
/// # Errors
/// [`Code::Forbidden`].
pub fn require_enterprise(actor: &Actor, what: &'static str) -> Result<(), ServiceError> {
    if actor.enterprise {
        return Ok(());
    }
    Err(CommonError::EnterpriseOnly(what).into())
}

#[cfg(test)]
mod tests {
    use shared::id::AccountId;

    use super::*;
    use crate::domain::{access::UserRights, subject::Permissions};

    fn key(n: usize) -> [u8; 32] {
        let mut hash = [0; 32];
        hash[..8].copy_from_slice(&n.to_le_bytes());
        hash
    }

    #[test]
    fn cached_keys_expire_and_the_cache_is_bounded() {
        let account: AccountId = "UKXAGyEf8SQ5eTDmVgGpHqAa".parse().unwrap();
        let actor = Actor {
            account,
            kind: ActorKind::Operator,
            id: "o".to_owned(),
            project: None,
            app: None,
            enterprise: false,
            user_rights: UserRights::default(),
            permissions: Permissions::ALL,
            confined_to: Vec::new(),
        };
        let (now, before) = (Instant::now(), Instant::now().checked_sub(KNOWN_FOR).unwrap());
        let actor = KnownKey { actor, bounds: Bounds::default(), is_suspended: false, is_session: false };
        let mut known = Known::default();
        known.insert(key(0), before, actor.clone());
        assert_eq!(known.find(&key(0)), None, "too long ago");
        for n in 1..=MOST_KNOWN {
            known.insert(key(n), now, actor.clone());
        }
        assert_eq!(known.keys.len(), MOST_KNOWN, "the old one made room");
        known.insert(key(MOST_KNOWN + 1), now, actor.clone());
        assert_eq!(known.find(&key(MOST_KNOWN + 1)), None, "there is no room");
        assert_eq!(known.find(&key(1)), Some(actor));
    }
}
