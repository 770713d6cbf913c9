//! Keys of edges: created by an operator, cached in memory by each replica.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use shared::time::Clock;
use tokio_util::sync::CancellationToken;

use crate::{
    error::ServiceError,
    store::{Ctx, Db, StoreError, edge_keys},
};
use kernel::{
    domain::access::{EDGE_KEY_PREFIX, hash_key, is_key},
    service::{Random, access::new_key},
};

/// Poll interval: a revoked key is refused within a second.
const LOOK: Duration = Duration::from_millis(400);

/// SHA-256 of a key.
pub type KeyHash = [u8; 32];

/// The keys that are valid now.
#[derive(Debug, Default)]
pub struct EdgeKeys {
    /// Of the edge in this process, for as long as it runs.
    own: Option<(KeyHash, Arc<str>)>,
    valid: RwLock<Arc<HashMap<KeyHash, Arc<str>>>>,
}

impl EdgeKeys {
    /// No key, until they are read; besides those, `key` of the edge in the same process.
    #[must_use]
    pub fn with_own(key: &str, edge: &str) -> Self {
        Self { own: Some((hash_key(key), edge.into())), valid: RwLock::default() }
    }

    /// The edge of a key, from memory.
    #[must_use]
    pub fn edge_of(&self, key: &str) -> Option<Arc<str>> {
        self.edge_of_hash(&hash_key(key))
    }

    /// The edge of a key by its hash, so that timing reveals nothing about a stored key.
    #[must_use]
    pub fn edge_of_hash(&self, hash: &KeyHash) -> Option<Arc<str>> {
        match &self.own {
            Some((own, edge)) if own == hash => Some(edge.clone()),
            Some(_) | None => self.valid().get(hash).cloned(),
        }
    }

    /// The edge of a key; an unknown key is looked up in the database, because it may be new.
    pub async fn find(&self, db: &Db, key: &str) -> Result<Option<(KeyHash, Arc<str>)>, StoreError> {
        if !is_key(key) {
            return Ok(None);
        }
        let hash = hash_key(key);
        if let Some(edge) = self.edge_of_hash(&hash) {
            return Ok(Some((hash, edge)));
        }
        if edge_keys::find(&mut db.read().await?, &hash).await?.is_none() {
            return Ok(None);
        }
        self.read(db).await?;
        Ok(self.edge_of_hash(&hash).map(|edge| (hash, edge)))
    }

    /// Reads the keys.
    ///
    /// # Errors
    /// The database failed; those known before stay.
    pub async fn read(&self, db: &Db) -> Result<(), StoreError> {
        let rows = edge_keys::list_valid(&mut db.read().await?).await?;
        let fresh: HashMap<KeyHash, Arc<str>> =
            rows.into_iter().map(|(hash, edge)| (hash, edge.into())).collect();
        *self.valid.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(fresh);
        Ok(())
    }

    /// Keeps the keys as the database has them, until `shutdown`; while it is away those known last serve.
    pub async fn follow(self: Arc<Self>, db: Db, shutdown: CancellationToken) {
        let follow = async {
            let mut failed = false;
            loop {
                match self.read(&db).await {
                    Ok(()) => failed = false,
                    Err(error) if !failed => {
                        failed = true;
                        tracing::warn!(%error, "the keys of edges cannot be read; using those last read");
                    }
                    Err(_) => {}
                }
                tokio::time::sleep(LOOK).await;
            }
        };
        shutdown.run_until_cancelled(follow).await;
    }

    fn valid(&self) -> Arc<HashMap<KeyHash, Arc<str>>> {
        self.valid.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Creates a key of an edge; returns its number and the key, of which only the hash is stored.
///
/// # Errors
/// There are no random bits.
pub async fn create(
    db: &Db,
    clock: &dyn Clock,
    random: &dyn Random,
    edge: &str,
) -> Result<(i64, String), ServiceError> {
    let key = new_key(random, EDGE_KEY_PREFIX)?;
    let seq = add(db, clock, edge, &key).await?;
    Ok((seq, key))
}

/// Adds a key that was generated elsewhere; returns its number.
///
/// # Errors
/// The database failed; [`StoreError::Unique`] for an existing key, even if it is revoked.
pub async fn add(db: &Db, clock: &dyn Clock, edge: &str, key: &str) -> Result<i64, ServiceError> {
    let mut tx = db.begin(&Ctx::default()).await?;
    let seq = edge_keys::insert(&mut tx, edge, &hash_key(key), clock.now().0).await?;
    tx.commit().await?;
    Ok(seq)
}

/// Revokes a key by its number; returns whether it was valid until now.
pub async fn revoke(db: &Db, clock: &dyn Clock, seq: i64) -> Result<bool, StoreError> {
    let mut tx = db.begin(&Ctx::default()).await?;
    let revoked = edge_keys::revoke(&mut tx, seq, clock.now().0).await?;
    tx.commit().await?;
    Ok(revoked)
}

/// Revokes every key of an edge; returns how many there were.
pub async fn revoke_all(db: &Db, clock: &dyn Clock, edge: &str) -> Result<u64, StoreError> {
    let mut tx = db.begin(&Ctx::default()).await?;
    let revoked = edge_keys::revoke_all(&mut tx, edge, clock.now().0).await?;
    tx.commit().await?;
    Ok(revoked)
}
