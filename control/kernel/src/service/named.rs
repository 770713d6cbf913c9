//! Operations that all named resources share, addressed by id or `<key>:<value>`.

use shared::entity_tag::EntityTag;

use super::{access::require, references::resolve, state::Core};
use crate::{
    domain::{
        access::Actor, grant::Grant, limits::shorten, listing::ListRequest, named::Named, page::Page,
        permission::Verb,
    },
    error::{CommonError, ServiceError},
    store::{
        Conn, Tx,
        documents::{self, Document},
        listing::Selection,
    },
};

/// Reads a resource, without its properties.
pub async fn read<D: Document>(core: &Core, actor: &Actor, reference: &str) -> Result<D, ServiceError> {
    let grant = require(actor, Verb::Read, D::SUBJECT)?;
    let mut conn = core.db.read().await?;
    find(&mut conn, actor, &grant, reference).await
}

/// Lists resources, without their properties.
pub async fn list<D: Document>(
    core: &Core,
    actor: &Actor,
    request: &ListRequest,
) -> Result<Page<D>, ServiceError> {
    let grant = require(actor, Verb::List, D::SUBJECT)?;
    let mut conn = core.db.read().await?;
    let selection = Selection { account: actor.account, limit: grant.limit(), request, within: &[] };
    Ok(documents::list(&mut conn, &selection).await?)
}

/// The resource that a path names, as far as it exists for the caller.
pub async fn find<D: Document>(
    conn: &mut Conn,
    actor: &Actor,
    grant: &Grant,
    reference: &str,
) -> Result<D, ServiceError> {
    let id = resolve(conn, actor.account, D::KIND, reference).await?;
    admitted(documents::find(conn, actor.account, id).await?, grant, reference)
}

/// [`find`], with a lock until the transaction ends.
pub async fn find_locked<D: Document>(
    tx: &mut Tx,
    actor: &Actor,
    grant: &Grant,
    reference: &str,
) -> Result<D, ServiceError> {
    let id = resolve(tx, actor.account, D::KIND, reference).await?;
    let found = admitted(documents::find_locked(tx, actor.account, id).await?, grant, reference)?;
    checked(tx, found)
}

/// The `ETag` of a resource: of all that is stored of it.
pub fn tag_of<D: Document>(found: &D) -> EntityTag {
    let own: Vec<serde_json::Value> = found.own().into_iter().map(Into::into).collect();
    EntityTag::of(&(found.name(), found.details(), own, found.stamp().updated_at))
}

/// The resource that a request changes, if it is as `If-Match` says; 412 otherwise.
pub fn checked<D: Document>(tx: &Tx, found: D) -> Result<D, ServiceError> {
    check(tx, || tag_of(&found))?;
    Ok(found)
}

/// Refuses a change of what is not as `If-Match` of the request says: 412.
pub fn check(tx: &Tx, tag: impl FnOnce() -> EntityTag) -> Result<(), CommonError> {
    if tx.ctx().admits(tag) { Ok(()) } else { Err(CommonError::ChangedMeanwhile) }
}

/// The resource, if it is visible to the caller.
pub fn admitted<D: Named>(found: Option<D>, grant: &Grant, reference: &str) -> Result<D, ServiceError> {
    found
        .filter(|found| is_seen(found, grant))
        .ok_or_else(|| ServiceError::not_found(D::KIND, shorten(reference)))
}

/// Whether a resource exists for the caller.
pub fn is_seen<D: Named>(found: &D, grant: &Grant) -> bool {
    grant.admits(&found.id().to_string(), found.scopes().as_deref())
}
