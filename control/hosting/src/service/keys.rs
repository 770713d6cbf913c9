//! Keys of the platform: made, listed and revoked by commands, directly in the database.

use serde_json::json;
use shared::time::UnixMillis;

use super::{By, Random, access::new_key, note};
use crate::{
    domain::{
        access::hash_key,
        api_key::KeyId,
        platform_key::{PLATFORM_KEY_PREFIX, PlatformKey},
    },
    error::{HostingError, ServiceError},
    store::{Db, platform_keys as store},
};

/// What the audit trail calls them.
const KIND: &str = "platformKey";

/// Makes a key and returns it; only its hash is stored.
///
/// # Errors
/// There are no random bits.
pub async fn create(
    db: &Db,
    random: &dyn Random,
    by: &By,
    label: String,
    expires_at: Option<UnixMillis>,
) -> Result<String, ServiceError> {
    let secret = new_key(random, PLATFORM_KEY_PREFIX)?;
    let key =
        PlatformKey { hash: hash_key(&secret), label, created_at: by.now, expires_at, revoked_at: None };
    let mut tx = db.begin(&by.ctx).await?;
    store::insert(&mut tx, &key).await?;
    let state = json!({"label": key.label, "expiresAt": key.expires_at.map(|at| at.0)});
    note(&mut tx, None, (KIND, &key.id().to_string()), (None, Some(state)));
    tx.commit().await?;
    Ok(secret)
}

/// Every key, oldest first.
pub async fn list(db: &Db) -> Result<Vec<PlatformKey>, ServiceError> {
    Ok(store::list(&mut db.read().await?).await?)
}

/// Revokes a key; it is refused from now on.
///
/// # Errors
/// 404 when there is no such key that is valid.
pub async fn revoke(db: &Db, by: &By, id: KeyId) -> Result<(), ServiceError> {
    let mut tx = db.begin(&by.ctx).await?;
    if !store::revoke(&mut tx, id, by.now).await? {
        return Err(HostingError::NoValidKey.into());
    }
    note(&mut tx, None, (KIND, &id.to_string()), (Some(json!({"status": "active"})), None));
    tx.commit().await?;
    Ok(())
}
