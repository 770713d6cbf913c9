//! An idempotency key that is written by the next commit of a request.
//!
//! A request that creates something is carried out exactly once if its key is stored in the same transaction. The layer
//! that knows the key is far from the service function that commits, so the claim is part of the request's
//! [`Ctx`](super::Ctx), and [`Tx::commit`] is the one place that looks for it.

use std::sync::atomic::{AtomicU8, Ordering};

use serde_json::Value;
use shared::id::AccountId;

use super::{
    StoreError, Tx,
    idempotency::{self, OwnedKey},
};

const OPEN: u8 = 0;
const WRITTEN: u8 = 1;
const LOST: u8 = 2;

/// A key on its way into the store.
#[derive(Debug)]
pub struct Claim {
    /// The account that the key belongs to.
    pub account: AccountId,
    /// The key, 1 to 255 characters, in the hands of its actor.
    pub key: OwnedKey,
    /// Hash of the request of the key.
    pub request: [u8; 32],
    /// When it was claimed, in milliseconds since 1970.
    pub at_ms: i64,
    state: AtomicU8,
}

impl Claim {
    /// A claim that nothing has written yet.
    #[must_use]
    pub fn new(account: AccountId, key: OwnedKey, request: [u8; 32], at_ms: i64) -> Self {
        Self { account, key, request, at_ms, state: AtomicU8::new(OPEN) }
    }

    /// Whether a transaction that held it was about to commit.
    #[must_use]
    pub fn is_written(&self) -> bool {
        self.state.load(Ordering::Acquire) == WRITTEN
    }

    /// Whether another request had claimed the same key: then nothing of this one was written.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.state.load(Ordering::Acquire) == LOST
    }

    /// Writes the key into a transaction, once; its answer comes later.
    ///
    /// # Errors
    /// [`StoreError::Unique`] when the key is taken, or the database failed; the transaction is broken then.
    pub async fn write(&self, tx: &mut Tx) -> Result<(), StoreError> {
        if self.is_written() {
            return Ok(());
        }
        let written =
            idempotency::insert(tx, self.account, &self.key, &self.request, &Value::Null, self.at_ms).await;
        match &written {
            Ok(()) => self.state.store(WRITTEN, Ordering::Release),
            Err(StoreError::Unique(_)) => self.state.store(LOST, Ordering::Release),
            Err(_) => {}
        }
        written
    }
}
