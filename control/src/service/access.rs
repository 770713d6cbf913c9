//! Who calls, and whether the key may do what is asked.

use sha2::{Digest, Sha256};
use shared::problem::Code;

use super::App;
use crate::{
    domain::{
        access::{Actor, is_key},
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
    let hash: [u8; 32] = Sha256::digest(key.as_bytes()).into();
    let mut conn = app.db.read().await?;
    keys::find(&mut conn, &hash).await?.ok_or_else(unknown)
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
