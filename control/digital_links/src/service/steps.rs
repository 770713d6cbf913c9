//! Makes and removes Digital Links that follow from a setting, in steps of bounded size.
//!
//! A step is one transaction with its new place, so what a killed worker did not commit is done again, and changes nothing that
//! was done.

use kernel::{
    domain::page::Position,
    error::ServiceError,
    service::Core,
    store::{Ctx, Tx},
};
use redirects::store::log;
use shared::time::UnixMillis;
use tracing::instrument;

use super::follow::{sync_product, sync_thng};
use crate::store::tasks::{self, Task};

/// Products or Things of one step: some 50 ms, for which all changes of links wait.
const STEP: u32 = 20;

/// Does the next step; `false` when there is none.
///
/// # Errors
/// The database failed: the step is done again.
#[instrument(skip_all)]
pub async fn step(core: &Core) -> Result<bool, ServiceError> {
    // A look costs no lock.
    if tasks::find_next(&mut core.db.read().await?).await?.is_none() {
        return Ok(false);
    }
    let mut tx = core.db.begin(&Ctx::default()).await?;
    log::lock(&mut tx).await?;
    // Of several replicas, another one may have done it.
    let Some(task) = tasks::find_next(&mut tx).await? else { return Ok(false) };
    let now = core.clock.now();
    let (count, last) = match task.product {
        None => products(&mut tx, &task, now).await?,
        Some(product) => {
            let (account, mut last) = (task.account, task.after);
            let found = tasks::list_thngs(&mut tx, account, product, task.after, STEP).await?;
            for (id, place) in &found {
                sync_thng(&mut tx, account, *id, now, false).await?;
                last = *place;
            }
            (found.len(), last)
        }
    };
    let is_done = count < STEP as usize;
    if is_done {
        tasks::delete(&mut tx, &task).await?;
    } else {
        tasks::set_after(&mut tx, &task, last).await?;
    }
    tx.commit().await?;
    core.readers.wake_edges();
    tracing::debug!(account = %task.account, count, is_done, "Digital Links were brought up to date");
    Ok(true)
}

/// Products of an account. Their Things are other tasks, where they have rows of their own.
async fn products(tx: &mut Tx, task: &Task, now: UnixMillis) -> Result<(usize, Position), ServiceError> {
    let found = tasks::list_products(tx, task.account, task.after, STEP).await?;
    let mut last = task.after;
    for (id, place) in &found {
        sync_product(tx, task.account, *id, now, false).await?;
        if tasks::has_items(tx, task.account, *id).await? {
            tasks::put(tx, task.account, Some(*id), now).await?;
        }
        last = *place;
    }
    Ok((found.len(), last))
}
