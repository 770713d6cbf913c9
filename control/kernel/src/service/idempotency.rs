//! Repeats of a request with the same `Idempotency-Key` get the first response, for a day.

use futures_util::{FutureExt, future::BoxFuture};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use shared::{id::AccountId, time::UnixMillis};

use super::Core;
use crate::{
    domain::access::Actor,
    error::{CommonError, ServiceError},
    store::{
        Ctx, StoreError, Tx,
        claim::Claim,
        idempotency::{self, OwnedKey},
    },
};

/// An `Idempotency-Key` with a hash of its request.
#[derive(Debug, Clone)]
pub struct IdempotencyKey {
    /// The key, 1 to 255 characters.
    pub key: String,
    /// Hash of operation, domain and body.
    pub request: [u8; 32],
}

/// A key of one caller: a caller never gets a response that was another's.
#[derive(Debug, Clone)]
pub struct CallersKey {
    key: OwnedKey,
    request: [u8; 32],
}

impl IdempotencyKey {
    /// The key as the caller's own.
    #[must_use]
    pub fn of(self, actor: &Actor) -> CallersKey {
        let mut hasher = Sha256::new();
        hasher.update(self.request);
        hasher.update(actor.kind.as_str());
        hasher.update(&actor.id);
        CallersKey { key: OwnedKey::new(actor, self.key), request: hasher.finalize().into() }
    }
}

/// The answer kept under an idempotency key, if this request was carried out before.
pub async fn replay<T: for<'de> Deserialize<'de>>(
    tx: &mut Tx,
    account: AccountId,
    idempotency: Option<&CallersKey>,
    at: UnixMillis,
) -> Result<Option<T>, ServiceError> {
    let Some(idempotency) = idempotency else { return Ok(None) };
    let Some((request, response)) =
        idempotency::find(tx, account, &idempotency.key, &idempotency.request, at.0).await?
    else {
        return Ok(None);
    };
    if request != idempotency.request {
        return Err(mismatch());
    }
    serde_json::from_value(response)
        .map(Some)
        .map_err(|error| ServiceError::Internal(format!("a kept answer cannot be read: {error}")))
}

/// Keeps the answer under an idempotency key, in the transaction of the request.
pub fn keep<'a, T: Serialize + Sync>(
    tx: &'a mut Tx,
    account: AccountId,
    idempotency: Option<&'a CallersKey>,
    answer: &'a T,
    at: UnixMillis,
) -> BoxFuture<'a, Result<(), ServiceError>> {
    async move {
        let Some(idempotency) = idempotency else { return Ok(()) };
        let answer =
            serde_json::to_value(answer).map_err(|error| ServiceError::Internal(error.to_string()))?;
        Ok(idempotency::insert(tx, account, &idempotency.key, &idempotency.request, &answer, at.0).await?)
    }
    .boxed()
}

/// Exchanges what [`keep`] kept, once more of the request is carried out.
pub fn keep_on<'a, T: Serialize + Sync>(
    tx: &'a mut Tx,
    account: AccountId,
    idempotency: Option<&'a CallersKey>,
    answer: &'a T,
) -> BoxFuture<'a, Result<(), ServiceError>> {
    async move {
        let Some(idempotency) = idempotency else { return Ok(()) };
        let answer =
            serde_json::to_value(answer).map_err(|error| ServiceError::Internal(error.to_string()))?;
        Ok(idempotency::update(tx, account, &idempotency.key, &idempotency.request, &answer).await?)
    }
    .boxed()
}

/// The stored response for a claim's key; null while there is none yet.
///
/// # Errors
/// The key was used for another request.
pub async fn find(core: &Core, claim: &Claim) -> Result<Option<Value>, ServiceError> {
    let mut conn = core.db.read().await?;
    match idempotency::find(&mut conn, claim.account, &claim.key, &claim.request, claim.at_ms).await? {
        Some((request, _)) if request != claim.request => Err(mismatch()),
        Some((_, answer)) => Ok(Some(answer)),
        None => Ok(None),
    }
}

/// Stores the response of a request that was carried out; without it a repeat is told that the response was lost.
pub async fn settle(core: &Core, claim: &Claim, answer: Value) {
    if let Err(error) = try_settle(core, claim, &answer).await {
        tracing::error!(%error, "the response to a request with an idempotency key was not stored");
    }
}

async fn try_settle(core: &Core, claim: &Claim, answer: &Value) -> Result<(), StoreError> {
    let mut tx = core.db.begin(&Ctx::default()).await?;
    if !claim.is_written() {
        // The request had nothing to write.
        claim.write(&mut tx).await?;
    }
    idempotency::update(&mut tx, claim.account, &claim.key, &claim.request, answer).await?;
    tx.commit().await
}

fn mismatch() -> ServiceError {
    CommonError::IdempotencyMismatch.into()
}
