//! Who calls, and whether the key may do what is asked.

use shared::problem::Code;

use super::{
    App,
    rounds::{Rounds, of_all},
};
use crate::{
    domain::{
        access::{Actor, ActorKind, derive_key, hash_key, is_key},
        grant::Grant,
        permission::{Subject, Verb, reach},
    },
    error::ServiceError,
    store::{Db, StoreError, keys},
};

/// Rounds of look-ups at once: while one is under way the next is sent.
const LOOKUP_LANES: usize = 2;

/// Finds the caller behind a key.
///
/// Keys are looked up by SHA-256, so how long the comparison takes says nothing about a stored key.
///
/// # Errors
/// [`Code::KeyUnknown`], or the database failed.
pub async fn identify(app: &App, key: &str) -> Result<Actor, ServiceError> {
    let unknown = || ServiceError::refused(Code::KeyUnknown, "The API key is not known.");
    if !is_key(key) {
        return Err(unknown());
    }
    app.key_lookups.find(hash_key(key)).await?.ok_or_else(unknown)
}

/// Looks keys up, many at once where many ask; cheap to clone.
#[derive(Debug, Clone)]
pub struct KeyLookups(Rounds<[u8; 32], Result<Option<Actor>, StoreError>>);

impl KeyLookups {
    /// Look-ups in a database.
    #[must_use]
    pub fn new(db: Db) -> Self {
        Self(Rounds::new(
            LOOKUP_LANES,
            |_| None,
            Box::new(move |hashes| {
                let db = db.clone();
                Box::pin(async move {
                    let found = async { keys::find_many(&mut db.read().await?, &hashes).await };
                    match found.await {
                        Ok(found) => hashes.iter().map(|hash| Ok(found.get(hash).cloned())).collect(),
                        Err(error) => hashes.iter().map(|_| Err(of_all(&error))).collect(),
                    }
                })
            }),
        ))
    }

    async fn find(&self, hash: [u8; 32]) -> Result<Option<Actor>, StoreError> {
        self.0.submit(hash).await?
    }
}

/// The key of an application or Thng, which can be read again.
///
/// # Errors
/// One case in 10^30.
pub(super) fn derived_key(
    app: &App,
    kind: ActorKind,
    actor_id: &str,
    generation: u32,
) -> Result<String, ServiceError> {
    derive_key(&app.secrets.api_key, kind, actor_id, generation)
        .ok_or_else(|| ServiceError::Internal("no key can be derived".to_owned()))
}

/// What a caller may do this to; refuses one whose kind of key may not do it at all.
///
/// # Errors
/// [`Code::Forbidden`].
pub fn require(actor: &Actor, verb: Verb, subject: Subject) -> Result<Grant, ServiceError> {
    let grant = reach(actor.kind, verb, subject).and_then(|reach| Grant::new(actor, reach));
    grant.ok_or_else(|| {
        let kind = actor.kind.as_str();
        ServiceError::refused(Code::Forbidden, format!("A key of the kind {kind} may not do this."))
    })
}

/// Refuses an account without the enterprise parts (decisions 1); `what` is the part.
///
/// # Errors
/// [`Code::Forbidden`].
pub fn require_enterprise(actor: &Actor, what: &str) -> Result<(), ServiceError> {
    if actor.enterprise {
        return Ok(());
    }
    let fault = format!("{what} is for enterprise accounts only.");
    Err(ServiceError::refused(Code::Forbidden, fault))
}
