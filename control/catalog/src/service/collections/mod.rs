//! Collections.

use shared::id::CollectionId;
use tracing::instrument;

use super::{
    Core,
    access::{Caller, require},
    bulk::{self, AfterCommit, Bulk},
    named,
    operations::operations,
    scopes::scopes_for,
    user_rules,
};
use crate::{
    domain::{
        access::Actor,
        collection::{Collection, CollectionChange},
        common::Stamp,
        grant::Grant,
        listing::ListRequest,
        page::Page,
        permission::{Subject::Collections, Verb},
    },
    error::{CommonError, ServiceError},
    store::{Tx, collection_members, documents},
};

pub mod members;

/// Creates a collection, in a project if `project` names one.
///
/// # Errors
/// The key lacks the permission, the name is missing, or there is no such project.
#[instrument(skip_all)]
pub async fn create(
    core: &Core,
    caller: &Caller,
    mut change: CollectionChange,
    project: Option<&str>,
) -> Result<Collection, ServiceError> {
    let grant = require(caller, Verb::Create, Collections)?;
    let now = core.clock.now();
    let id = CollectionId::new(now.0, core.random16()?);
    let name = change.name.ok_or_else(super::name_required)?;
    let (_place, mut tx) = core.begin_write(caller).await?;
    user_rules::check_creation(&mut tx, caller).await?;
    user_rules::check_write::<Collection>(&mut tx, caller, None, &mut change.details.common).await?;
    let scopes = change.details.common.scopes.take();
    change.details.common.scopes = scopes_for(&mut tx, caller, &grant, scopes, project).await?;
    let new = Collection { id, stamp: Stamp::new(now), name, details: change.details };
    let collection = documents::insert(&mut tx, caller.account, new).await?;
    tx.commit().await?;
    Ok(collection)
}

operations!(Collection, CollectionChange, named);

impl Bulk<Core> for Collection {
    type Change = CollectionChange;

    async fn update_in(
        core: &Core,
        tx: &mut Tx,
        actor: &Actor,
        grant: &Grant,
        reference: &str,
        mut change: CollectionChange,
    ) -> Result<(Self, AfterCommit), ServiceError> {
        let scopes = change.details.common.scopes.take();
        change.details.common.scopes = grant.scopes_of_change(scopes);
        let stored: Self = named::find_locked(tx, actor, grant, reference).await?;
        user_rules::check_write(tx, actor, Some(&stored), &mut change.details.common).await?;
        let collection = stored.apply(change, core.clock.now());
        documents::update(tx, actor.account, &collection).await?;
        Ok((collection, AfterCommit::default()))
    }

    async fn delete_in(
        _: &Core,
        tx: &mut Tx,
        actor: &Actor,
        grant: &Grant,
        reference: &str,
    ) -> Result<AfterCommit, ServiceError> {
        let id = named::find_locked::<Self>(tx, actor, grant, reference).await?.id;
        documents::delete::<Self>(tx, actor.account, id).await?;
        collection_members::forget_collection(tx, actor.account, id).await?;
        Ok(AfterCommit::default())
    }
}

/// An error that names each absent id.
fn unknown(kind: &str, ids: impl IntoIterator<Item = String>) -> ServiceError {
    let faults = ids.into_iter().map(|id| format!("The {kind} {id} does not exist."));
    CommonError::Faults(faults.collect()).into()
}
