//! Who calls, and whether the key may do what is asked.

use shared::problem::Code;

use super::App;
use crate::{
    domain::{
        access::{Actor, ActorKind, derive_key, hash_key, is_key},
        grant::Grant,
        permission::{Subject, Verb, reach},
    },
    error::ServiceError,
    store::keys,
};

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
    let mut conn = app.db.read().await?;
    keys::find(&mut conn, &hash_key(key)).await?.ok_or_else(unknown)
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
