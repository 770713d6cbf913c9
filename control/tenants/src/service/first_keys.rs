//! Keys of the first owner, directly in the database: for commands, which need no key.

use serde_json::json;
use shared::{
    id::{AccountId, OperatorId, ProjectId},
    networks::Networks,
    time::{Clock, UnixMillis},
};

use super::{
    Random,
    access::{KNOWN_FOR, end_of_overlap, new_key},
};
use crate::{
    domain::{
        access::{ActorKind, hash_key},
        api_key::KeyId,
        operator_key::{KeyStatus, OperatorKey},
    },
    error::{ServiceError, TenantsError},
    store::{Ctx, Db, StoreError, Tx, accounts, keys, operator_keys as store, projects},
};

/// What a new key is like.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewFirstKey {
    /// What it is called.
    pub label: String,
    /// When it ceases to work.
    pub expires_at: Option<UnixMillis>,
    /// From where it may be used; empty is everywhere.
    pub networks: Networks,
    /// The project that it is confined to.
    pub project: Option<ProjectId>,
    /// Id of the operator who made it; none where a command did.
    pub created_by: Option<String>,
}

/// How a key is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Named {
    /// By its id.
    Id(KeyId),
    /// By itself.
    Secret(String),
}

impl Named {
    fn id(&self) -> KeyId {
        match self {
            Self::Id(id) => *id,
            Self::Secret(secret) => KeyId::of(&hash_key(secret)),
        }
    }
}

/// Creates a key for an operator, or adds one that is `given`; returns a created one. Only its hash is stored.
///
/// # Errors
/// There are no random bits, or [`StoreError::Unique`] when the given key exists.
pub async fn add(
    tx: &mut Tx,
    random: &dyn Random,
    (account, operator): (AccountId, OperatorId),
    given: Option<&str>,
    new: NewFirstKey,
    now: UnixMillis,
) -> Result<Option<String>, ServiceError> {
    let fresh = match given {
        Some(_) => None,
        None => Some(new_key(random, ActorKind::Operator.key_prefix())?),
    };
    let hash = hash_key(fresh.as_deref().or(given).unwrap_or_default());
    let key = OperatorKey {
        hash,
        seq: 0,
        label: new.label,
        operator: operator.to_string(),
        project: new.project,
        created_by: new.created_by,
        created_at: now,
        updated_at: now,
        last_used_at: None,
        expires_at: new.expires_at,
        life_ms: new.expires_at.map(|at| at.0 - now.0),
        replaced_at: None,
        revoked_at: None,
        networks: new.networks,
    };
    store::insert(tx, account, &key).await?;
    Ok(fresh)
}

/// Creates a key for the first owner.
///
/// # Errors
/// There are no random bits, no owner yet, or no such project.
pub async fn create(
    db: &Db,
    clock: &dyn Clock,
    random: &dyn Random,
    new: NewFirstKey,
) -> Result<String, ServiceError> {
    let mut tx = db.begin(&Ctx::of_command("keys create", clock.now())).await?;
    let (operator, account) = first_owner(&mut tx).await?;
    if let Some(project) = new.project
        && !projects::hold(&mut tx, account, project).await?
    {
        return Err(ServiceError::not_found("project", project));
    }
    let key = add(&mut tx, random, (account, operator), None, new, clock.now()).await?;
    tx.commit().await?;
    Ok(key.unwrap_or_default())
}

/// Replaces a key of the first owner's account; returns the new one. The old one ends at once, or works beside it
/// for some seconds.
///
/// # Errors
/// There is no such key that works, or the overlap is too long.
pub async fn rotate(
    db: &Db,
    clock: &dyn Clock,
    random: &dyn Random,
    key: &Named,
    overlap_ms: u32,
) -> Result<String, ServiceError> {
    let now = clock.now();
    let ends_at = end_of_overlap(now, overlap_ms)?;
    let secret = new_key(random, ActorKind::Operator.key_prefix())?;
    let mut tx = db.begin(&Ctx::of_command("keys rotate", now)).await?;
    let (operator, account) = first_owner(&mut tx).await?;
    accounts::lock(&mut tx, account).await?;
    let old = find_valid(&mut tx, account, key, now).await?;
    let old = old.ok_or(TenantsError::NoValidKey)?;
    if old.replaced_at.is_some() {
        return Err(TenantsError::KeyReplaced.into());
    }
    let mut new = old.successor(hash_key(&secret), operator.to_string(), now);
    new.created_by = None;
    store::insert(&mut tx, account, &new).await?;
    store::update(&mut tx, account, &old.replaced(ends_at, now)).await?;
    tx.commit().await?;
    tokio::time::sleep(KNOWN_FOR).await;
    Ok(secret)
}

/// Revokes one key; returns whether it was valid until now, once no process takes it any more.
pub async fn revoke(db: &Db, clock: &dyn Clock, key: &Named) -> Result<bool, ServiceError> {
    let now = clock.now();
    let mut tx = db.begin(&Ctx::of_command("keys revoke", now)).await?;
    let revoked = match key {
        // Of whatever account and kind: whoever has the key may end it.
        Named::Secret(secret) => {
            let hash = hash_key(secret);
            let owner = keys::find_account(&mut tx, &hash).await?;
            let is_revoked = keys::revoke(&mut tx, &hash, now.0).await?;
            if let Some(account) = owner.filter(|_| is_revoked) {
                let id = KeyId::of(&hash).to_string();
                tx.note(account, ("operatorKey", &id), || (Some(json!({"status": "active"})), None));
            }
            is_revoked
        }
        Named::Id(_) => {
            let (_, account) = first_owner(&mut tx).await?;
            match find_valid(&mut tx, account, key, now).await? {
                Some(old) => {
                    store::update(&mut tx, account, &old.replaced(now, now)).await?;
                    true
                }
                None => false,
            }
        }
    };
    tx.commit().await?;
    tokio::time::sleep(KNOWN_FOR).await;
    Ok(revoked)
}

/// Revokes every key of the first owner; returns how many there were, once no process takes them any more.
///
/// # Errors
/// There is no owner yet.
pub async fn revoke_all(db: &Db, clock: &dyn Clock) -> Result<u64, ServiceError> {
    let mut tx = db.begin(&Ctx::of_command("keys revoke", clock.now())).await?;
    let (operator, account) = first_owner(&mut tx).await?;
    let revoked = keys::revoke_all(&mut tx, account, operator.as_str(), clock.now().0).await?;
    let what = || json!({"keys": "all", "revoked": revoked});
    tx.note(account, ("operator", operator.as_str()), || (None, Some(what())));
    tx.commit().await?;
    tokio::time::sleep(KNOWN_FOR).await;
    Ok(revoked)
}

/// The keys that the first owner has or had, oldest first.
///
/// # Errors
/// There is no owner yet.
pub async fn list(db: &Db) -> Result<Vec<OperatorKey>, ServiceError> {
    let mut tx = db.begin(&Ctx::default()).await?;
    let (operator, account) = first_owner(&mut tx).await?;
    let listed = store::list_of(&mut tx, account, operator.as_str()).await?;
    tx.commit().await?;
    Ok(listed)
}

async fn find_valid(
    tx: &mut Tx,
    account: AccountId,
    key: &Named,
    now: UnixMillis,
) -> Result<Option<OperatorKey>, StoreError> {
    let found = store::find_locked(tx, account, key.id()).await?;
    Ok(found.filter(|found| found.status(now) == KeyStatus::Active))
}

async fn first_owner(tx: &mut Tx) -> Result<(OperatorId, AccountId), ServiceError> {
    accounts::find_first_owner(tx)
        .await?
        .ok_or_else(|| StoreError::Row("there is no owner yet".to_owned()).into())
}
