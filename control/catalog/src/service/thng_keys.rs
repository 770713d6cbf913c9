//! Keys of Thngs.

use shared::{id::ThngId, problem::Code};
use tracing::instrument;

use super::{
    Core,
    access::{derived_key, require},
    named::{self, admitted},
};
use crate::{
    domain::{
        access::{Actor, ActorKind, hash_key},
        permission::{Subject::Keys, Verb},
        resource::Thng,
    },
    error::ServiceError,
    store::{Conn, documents, keys},
};

/// Most keys of one Thng that may have been revoked.
const MAX_GENERATIONS: u32 = 100;

/// The key of a Thng: the same one on each request, until it is revoked.
///
/// # Errors
/// The key lacks the permission or the Thng does not exist.
#[instrument(skip_all)]
pub async fn create(core: &Core, actor: &Actor, id: ThngId) -> Result<String, ServiceError> {
    let grant = require(actor, Verb::Create, Keys)?;
    let _place = core.capacity.write(actor)?;
    let mut tx = core.db.begin().await?;
    let found: Option<Thng> = documents::find_locked(&mut tx, actor.account, id).await?;
    admitted(found, &grant, id.as_str())?;
    let owner = Actor {
        account: actor.account,
        kind: ActorKind::Thng,
        id: id.to_string(),
        project: None,
        app: None,
        enterprise: actor.enterprise,
        user_rights: actor.user_rights,
    };
    for generation in 0..MAX_GENERATIONS {
        let key = derived_key(core, ActorKind::Thng, id.as_str(), generation)?;
        match keys::is_revoked(&mut tx, &hash_key(&key)).await? {
            Some(true) => continue,
            Some(false) => return Ok(key),
            None => {}
        }
        keys::insert_of(&mut tx, &hash_key(&key), &owner, core.clock.now().0).await?;
        tx.commit().await?;
        return Ok(key);
    }
    Err(ServiceError::refused(Code::Conflict, "Too many keys of this Thng were revoked."))
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
    Ok((id, find_valid(core, &mut conn, id).await?))
}

/// Revokes the key of a Thng; requests and connections with it are refused from then on.
///
/// # Errors
/// The key lacks the permission, or the Thng does not exist or has no key.
#[instrument(skip_all)]
pub async fn revoke(core: &Core, actor: &Actor, reference: &str) -> Result<(), ServiceError> {
    let grant = require(actor, Verb::Delete, Keys)?;
    let _place = core.capacity.write(actor)?;
    let mut tx = core.db.begin().await?;
    let id = named::find_locked::<Thng>(&mut tx, actor, &grant, reference).await?.id;
    find_valid(core, &mut tx, id).await?;
    keys::revoke_all(&mut tx, actor.account, id.as_str(), core.clock.now().0).await?;
    tx.commit().await?;
    core.key_lookups.revoked();
    Ok(())
}

/// The key of a Thng that was created and not revoked.
async fn find_valid(core: &Core, conn: &mut Conn, id: ThngId) -> Result<String, ServiceError> {
    for generation in 0..MAX_GENERATIONS {
        let key = derived_key(core, ActorKind::Thng, id.as_str(), generation)?;
        match keys::is_revoked(conn, &hash_key(&key)).await? {
            Some(true) => {}
            Some(false) => return Ok(key),
            None => break,
        }
    }
    Err(ServiceError::not_found("key of the thng", id))
}
