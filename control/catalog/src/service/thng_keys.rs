//! Keys of Thngs.

use serde_json::json;
use shared::id::ThngId;
use tracing::instrument;

use super::{
    Core,
    access::{Caller, derived_key, end_of_overlap, require},
    named::{self, admitted},
};
use crate::{
    domain::{
        access::{Actor, ActorKind, Generation, hash_key},
        permission::{Subject::Keys, Verb},
        resource::Thng,
        subject::Permissions,
    },
    error::ServiceError,
    store::{Conn, Tx, documents, keys},
};

/// What the audit trail calls the key of a Thng; its id is that of the Thng.
const KIND: &str = "thngKey";

/// Most keys without a prefix that a Thng may have had.
const MAX_WITHOUT_PREFIX: u32 = 100;

/// The key of a Thng: the same one on each request, until it is revoked.
///
/// # Errors
/// The key lacks the permission or the Thng does not exist.
#[instrument(skip_all)]
pub async fn create(core: &Core, caller: &Caller, id: ThngId) -> Result<String, ServiceError> {
    let grant = require(caller, Verb::Create, Keys)?;
    let (_place, mut tx) = core.begin_write(caller).await?;
    let found: Option<Thng> = documents::find_locked(&mut tx, caller.account, id).await?;
    admitted(found, &grant, id.as_str())?;
    if let Some(key) = find_valid(core, &mut tx, caller, id).await? {
        return Ok(key);
    }
    let key = add(core, &mut tx, caller, id).await?;
    tx.commit().await?;
    Ok(key)
}

/// Adds the next key of a Thng.
async fn add(core: &Core, tx: &mut Tx, actor: &Actor, id: ThngId) -> Result<String, ServiceError> {
    let owner = Actor {
        account: actor.account,
        kind: ActorKind::Thng,
        id: id.to_string(),
        project: None,
        app: None,
        enterprise: actor.enterprise,
        user_rights: actor.user_rights,
        permissions: Permissions::ALL,
        confined_to: Vec::new(),
    };
    let (newest, _) = keys::find_generations(tx, actor.account, id.as_str(), core.clock.now()).await?;
    let next = newest.saturating_add(1);
    let key = derived_key(core, ActorKind::Thng, id.as_str(), Generation::WithPrefix(next))?;
    keys::insert_of(tx, &hash_key(&key), &owner, Some(next), core.clock.now().0).await?;
    tx.note(actor.account, (KIND, id.as_str()), || (None, Some(json!({"generation": next}))));
    Ok(key)
}

/// The key of a Thng that has one, with the Thng's id.
///
/// # Errors
/// The key lacks the permission, or the Thng does not exist or has no key.
#[instrument(skip_all)]
pub async fn read(core: &Core, actor: &Actor, reference: &str) -> Result<(ThngId, String), ServiceError> {
    let grant = require(actor, Verb::Read, Keys)?;
    let mut conn = core.db.read().await?;
    let id = named::find::<Thng>(&mut conn, actor, &grant, reference).await?.id;
    Ok((id, find_valid(core, &mut conn, actor, id).await?.ok_or_else(|| no_key(id))?))
}

/// Gives a Thng its next key. The one before ends at once, or works beside it for some seconds.
///
/// # Errors
/// The key lacks the permission, the Thng does not exist or has no key, or the overlap is too long.
#[instrument(skip_all)]
pub async fn rotate(
    core: &Core,
    caller: &Caller,
    reference: &str,
    overlap_ms: u32,
) -> Result<(ThngId, String), ServiceError> {
    let grant = require(caller, Verb::Update, Keys)?;
    let now = core.clock.now();
    let ends_at = end_of_overlap(now, overlap_ms)?;
    let (_place, mut tx) = core.begin_write(caller).await?;
    let id = named::find_locked::<Thng>(&mut tx, caller, &grant, reference).await?.id;
    find_valid(core, &mut tx, caller, id).await?.ok_or_else(|| no_key(id))?;
    keys::end_all(&mut tx, caller.account, ActorKind::Thng, id.as_str(), ends_at, now).await?;
    let key = add(core, &mut tx, caller, id).await?;
    tx.commit().await?;
    core.key_lookups.revoked();
    Ok((id, key))
}

/// Revokes the key of a Thng; requests and connections with it are refused from then on.
///
/// # Errors
/// The key lacks the permission, or the Thng does not exist or has no key.
#[instrument(skip_all)]
pub async fn revoke(core: &Core, caller: &Caller, reference: &str) -> Result<(), ServiceError> {
    let grant = require(caller, Verb::Delete, Keys)?;
    let (_place, mut tx) = core.begin_write(caller).await?;
    let id = named::find_locked::<Thng>(&mut tx, caller, &grant, reference).await?.id;
    find_valid(core, &mut tx, caller, id).await?.ok_or_else(|| no_key(id))?;
    keys::revoke_all(&mut tx, caller.account, id.as_str(), core.clock.now().0).await?;
    tx.note(caller.account, (KIND, id.as_str()), || (Some(json!({"status": "active"})), None));
    tx.commit().await?;
    core.key_lookups.revoked();
    Ok(())
}

/// The newest key of a Thng that works.
async fn find_valid(
    core: &Core,
    conn: &mut Conn,
    actor: &Actor,
    id: ThngId,
) -> Result<Option<String>, ServiceError> {
    let derive = |generation| derived_key(core, ActorKind::Thng, id.as_str(), generation);
    let (_, valid) = keys::find_generations(conn, actor.account, id.as_str(), core.clock.now()).await?;
    if valid > 0 {
        return derive(Generation::WithPrefix(valid)).map(Some);
    }
    for number in 0..MAX_WITHOUT_PREFIX {
        let key = derive(Generation::WithoutPrefix(number))?;
        match keys::is_over(conn, &hash_key(&key), core.clock.now()).await? {
            Some(true) => {}
            Some(false) => return Ok(Some(key)),
            None => break,
        }
    }
    Ok(None)
}

fn no_key(id: ThngId) -> ServiceError {
    ServiceError::not_found("key of the thng", id)
}
