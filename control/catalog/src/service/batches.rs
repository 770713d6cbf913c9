//! Batches.

use shared::id::BatchId;
use tracing::instrument;

use super::{
    Core,
    access::{Caller, require},
    bulk::{self, AfterCommit, Bulk},
    named,
    operations::operations,
    scopes::scopes_for,
};
use crate::{
    domain::{
        access::Actor,
        batch::{Batch, BatchChange},
        common::Stamp,
        grant::Grant,
        listing::ListRequest,
        page::Page,
        permission::{Subject::Batches, Verb},
    },
    error::ServiceError,
    store::{Tx, documents},
};

/// Creates a batch, in a project if `project` names one.
///
/// # Errors
/// The key lacks the permission, the name is missing, or there is no such project.
#[instrument(skip_all)]
pub async fn create(
    core: &Core,
    caller: &Caller,
    mut change: BatchChange,
    project: Option<&str>,
) -> Result<Batch, ServiceError> {
    let grant = require(caller, Verb::Create, Batches)?;
    let now = core.clock.now();
    let id = BatchId::new(now.0, core.random16()?);
    let name = change.name.ok_or_else(super::name_required)?;
    let (_place, mut tx) = core.begin_write(caller).await?;
    let scopes = change.details.common.scopes.take();
    change.details.common.scopes = scopes_for(&mut tx, caller, &grant, scopes, project).await?;
    let new = Batch { id, stamp: Stamp::new(now), name, details: change.details };
    let batch = documents::insert(&mut tx, caller.account, new).await?;
    tx.commit().await?;
    Ok(batch)
}

operations!(Batch, BatchChange, named);

impl Bulk<Core> for Batch {
    type Change = BatchChange;

    async fn update_in(
        core: &Core,
        tx: &mut Tx,
        actor: &Actor,
        grant: &Grant,
        reference: &str,
        mut change: BatchChange,
    ) -> Result<(Self, AfterCommit), ServiceError> {
        let scopes = change.details.common.scopes.take();
        change.details.common.scopes = grant.scopes_of_change(scopes);
        let stored: Self = named::find_locked(tx, actor, grant, reference).await?;
        let batch = stored.apply(change, core.clock.now());
        documents::update(tx, actor.account, &batch).await?;
        Ok((batch, AfterCommit::default()))
    }

    async fn delete_in(
        core: &Core,
        tx: &mut Tx,
        actor: &Actor,
        grant: &Grant,
        reference: &str,
    ) -> Result<AfterCommit, ServiceError> {
        let id = named::find_locked::<Self>(tx, actor, grant, reference).await?.id;
        documents::delete::<Self>(tx, actor.account, id).await?;
        core.dependents.batch_removed(tx, actor.account, id).await?;
        Ok(AfterCommit::default())
    }
}
