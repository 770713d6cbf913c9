//! Operations that webhooks and reactions, both subscribers of the event log, share.

use shared::id::{AccountId, ProjectId};
use tracing::instrument;

use super::{Core, EventState, bulk::AfterCommit, named, scopes::project_in_reach};
use crate::{
    domain::{access::Actor, grant::Grant, listing::ListRequest, page::Page},
    error::{EventsError, ServiceError},
    store::{
        Ctx, Db, Tx, accounts, documents, event_log,
        followers::{self, Follower, Follows},
    },
};

/// Most of a kind that an account has.
const MOST: u64 = 100;

/// What one transaction changes in a queue, or removes from it.
pub(super) const STEP: u32 = 2_000;

/// Reads one.
///
/// # Errors
/// It does not exist.
#[instrument(skip_all)]
pub async fn read<F: Follower>(
    state: &EventState,
    actor: &Actor,
    reference: &str,
) -> Result<F, ServiceError> {
    named::read(state, actor, reference).await
}

/// Lists them.
///
/// # Errors
/// The key lacks the permission.
#[instrument(skip_all)]
pub async fn list<F: Follower>(
    state: &EventState,
    actor: &Actor,
    request: &ListRequest,
) -> Result<Page<F>, ServiceError> {
    named::list(state, actor, request).await
}

/// The project that `?project=` names for a new one, if it does.
pub(super) async fn project_of_new(
    tx: &mut Tx,
    actor: &Actor,
    grant: &Grant,
    project: Option<&str>,
) -> Result<Option<ProjectId>, ServiceError> {
    match project {
        Some(text) => project_in_reach(tx, actor, grant, text).await.map(Some),
        None => Ok(None),
    }
}

/// Adds a subscriber to an account; it receives events from now on.
pub(super) async fn add<F: Follower>(tx: &mut Tx, account: AccountId, new: F) -> Result<F, ServiceError> {
    accounts::lock(tx, account).await?;
    if followers::count::<F>(tx, account).await? >= MOST {
        return Err(EventsError::TooManyFollowers { kind: F::KIND, most: MOST }.into());
    }
    let added = documents::insert(tx, account, new).await?;
    begin::<F>(tx, &added).await?;
    Ok(added)
}

/// Saves an updated subscriber; if it was disabled and now is not, it receives events from now on.
pub(super) async fn save<F: Follower>(
    tx: &mut Tx,
    account: AccountId,
    was_disabled: bool,
    changed: &F,
) -> Result<(), ServiceError> {
    documents::update(tx, account, changed).await?;
    if was_disabled && !changed.is_disabled() {
        begin(tx, changed).await?;
    }
    Ok(())
}

/// Removes one within a transaction; what waits in its queue is left for after it.
pub(super) async fn delete_in<F: Follower>(
    core: &Core,
    tx: &mut Tx,
    actor: &Actor,
    grant: &Grant,
    reference: &str,
) -> Result<AfterCommit, ServiceError> {
    let gone: F = named::find_locked(tx, actor, grant, reference).await?;
    documents::delete::<F>(tx, actor.account, gone.id()).await?;
    let (db, owner) = (core.db.clone(), gone.stamp().seq);
    let name = format!("clear the queue of {} {owner}", F::KIND);
    let task = async move { clear_queue(&db, F::FOLLOWS, owner).await };
    Ok(AfterCommit::default().then(name, Box::new(move || Box::pin(task))))
}

/// Empties the queue of a deleted subscriber, in steps. What a crash leaves is skipped by the workers, and expires.
async fn clear_queue(db: &Db, queue: &Follows, owner: i64) -> Result<(), ServiceError> {
    loop {
        let mut tx = db.begin(&Ctx::default()).await?;
        let cleared = followers::clear(&mut tx, queue, owner, STEP).await?;
        tx.commit().await?;
        if cleared == 0 {
            return Ok(());
        }
    }
}

async fn begin<F: Follower>(tx: &mut Tx, follower: &F) -> Result<(), ServiceError> {
    let now = event_log::find_now(tx).await?;
    Ok(followers::begin_at::<F>(tx, follower.stamp().seq, now).await?)
}
