//! Repeats of a request with the same `Idempotency-Key` get the first answer, for a day.

use futures_util::{FutureExt, future::BoxFuture};
use serde::{Deserialize, Serialize};
use shared::{id::AccountId, problem::Code, time::UnixMillis};

use crate::{
    error::ServiceError,
    store::{Tx, idempotency},
};

/// An `Idempotency-Key` with a hash of the request that it stands for.
#[derive(Debug, Clone)]
pub struct IdempotencyKey {
    /// The key, 1 to 255 characters.
    pub key: String,
    /// Hash of operation, domain and body.
    pub request: [u8; 32],
}

/// The answer kept under an idempotency key, if this request was carried out before.
pub(crate) async fn replay<T: for<'de> Deserialize<'de>>(
    tx: &mut Tx,
    account: AccountId,
    idempotency: Option<&IdempotencyKey>,
    at: UnixMillis,
) -> Result<Option<T>, ServiceError> {
    let Some(idempotency) = idempotency else { return Ok(None) };
    let Some((request, response)) = idempotency::find(tx, account, &idempotency.key, at.0).await? else {
        return Ok(None);
    };
    if request != idempotency.request {
        let text = "Idempotency-Key was used for another request within the last day.";
        return Err(ServiceError::refused(Code::IdempotencyMismatch, text));
    }
    serde_json::from_value(response)
        .map(Some)
        .map_err(|error| ServiceError::Internal(format!("a kept answer cannot be read: {error}")))
}

pub(crate) fn keep<'a, T: Serialize + Sync>(
    tx: &'a mut Tx,
    account: AccountId,
    idempotency: Option<&'a IdempotencyKey>,
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
