//! Makes and removes Digital Links that follow from a setting, in steps of bounded size.
//!
//! A step is one transaction with its new place, so what a killed worker did not commit is done again, and changes nothing that
//! was done. A task that fails is put behind all others.
//!
//! A Thing is written without the lock of the log where its product gives it no rows, as most do. Such a write may have read the
//! product of before, and commit behind a step: so where a product changed, the first step of its Things waits for all writes of
//! before. Where a domain begins to resolve Digital Links none does: Things of a product that has items take the lock
//! before their commit, and read the domains behind it.

use std::time::Duration;

use catalog::domain::resource::Product;
use kernel::{
    domain::page::Position,
    error::ServiceError,
    service::Core,
    store::{Ctx, Tx, documents},
};
use redirects::store::log;
use shared::{id::ProductId, time::UnixMillis};
use tenants::store::writers;
use tracing::instrument;

use super::follow::{domains, sync_product, sync_thng};
use crate::store::tasks::{self, Task};

/// Most products of a step: some 50 ms, for which all changes of links wait.
const PRODUCTS: u32 = 20;
/// Most Things of a step. Most of them have no row.
const THNGS: u32 = 100;
/// Rows after which a step ends. Its last product may have more of them: one for each of its GTINs and levels on each domain.
const ROWS: usize = 200;

/// Longest wait for writes of before; then other tasks come first.
const WRITES: Duration = Duration::from_secs(5);

/// Does the next step; `false` when there is none, or none that can begin.
///
/// # Errors
/// The database failed, or another resource has a Digital Link: the step is done again.
#[instrument(skip_all)]
pub async fn step(core: &Core) -> Result<bool, ServiceError> {
    // A look costs no lock.
    let Some(next) = tasks::find_next(&mut core.db.read().await?).await? else { return Ok(false) };
    let waits = |task: &Task| task.product.is_some() && task.is_new();
    if waits(&next) && !writers::wait_for_all(&core.db, WRITES).await? {
        tracing::warn!(account = %next.account, "a transaction has been open for long: the Digital Links of a product wait for it");
        postpone(core, &next).await?;
        return Ok(false);
    }
    let mut tx = core.db.begin(&Ctx::default()).await?;
    log::lock(&mut tx).await?;
    // Of several replicas, another one may have done it.
    let Some(task) = tasks::find_next(&mut tx).await? else { return Ok(false) };
    // It was asked for meanwhile.
    if waits(&task) && task != next {
        return Ok(true);
    }
    let now = core.clock.now();
    if let Err(error) = advance(&mut tx, &task, now).await {
        drop(tx);
        postpone(core, &task).await?;
        return Err(error);
    }
    tx.commit().await?;
    core.readers.wake_edges();
    Ok(true)
}

/// Puts a task behind all others, so that it keeps none waiting.
async fn postpone(core: &Core, task: &Task) -> Result<(), ServiceError> {
    let mut tx = core.db.begin(&Ctx::default()).await?;
    tasks::postpone(&mut tx, task, core.clock.now()).await?;
    tx.commit().await?;
    Ok(())
}

/// Does the next part of a task, and notes how far it is.
async fn advance(tx: &mut Tx, task: &Task, now: UnixMillis) -> Result<(), ServiceError> {
    let (is_done, last) = match task.product {
        None => products(tx, task, now).await?,
        Some(product) => things(tx, task, product, now).await?,
    };
    if is_done {
        tasks::delete(tx, task).await?;
    } else {
        tasks::set_after(tx, task, last).await?;
    }
    tracing::debug!(account = %task.account, is_done, "Digital Links were brought up to date");
    Ok(())
}

/// Products of an account: whether they were the last ones, and the place of the last one. Their Things are other tasks, where
/// they have rows of their own.
async fn products(tx: &mut Tx, task: &Task, now: UnixMillis) -> Result<(bool, Position), ServiceError> {
    let found = tasks::list_products(tx, task.account, task.after, PRODUCTS).await?;
    let domains = domains(tx, task.account).await?;
    let (mut last, mut rows) = (task.after, 0);
    for (id, place) in &found {
        tx.savepoint().await?;
        let synced = sync_product(tx, task.account, *id, &domains, now, false).await;
        rows += settled(tx, task, id.as_str(), synced).await?;
        if tasks::has_items(tx, task.account, *id).await? {
            tasks::put_unchanged(tx, task.account, *id, now).await?;
        }
        last = *place;
        if rows >= ROWS {
            break;
        }
    }
    Ok((is_over(&found, PRODUCTS, last), last))
}

/// The same of the Things of a product.
async fn things(
    tx: &mut Tx,
    task: &Task,
    product: ProductId,
    now: UnixMillis,
) -> Result<(bool, Position), ServiceError> {
    let found = tasks::list_thngs(tx, task.account, product, task.after, THNGS).await?;
    let domains = domains(tx, task.account).await?;
    // Its links and GTINs change behind the lock only.
    let product: Option<Product> = documents::find(tx, task.account, product).await?;
    let (mut last, mut rows) = (task.after, 0);
    for (id, place) in &found {
        let known = (product.as_ref(), &*domains);
        tx.savepoint().await?;
        let synced = sync_thng(tx, task.account, *id, known, now, false).await;
        rows += settled(tx, task, id.as_str(), synced).await?;
        last = *place;
        if rows >= ROWS {
            break;
        }
    }
    Ok((is_over(&found, THNGS, last), last))
}

/// Leaves a resource as it was where another one has a Digital Link of it: both may be older than the look for that.
///
/// # Errors
/// The other one may be an item whose product is another task of the account: then that is done before.
async fn settled(
    tx: &mut Tx,
    task: &Task,
    id: &str,
    synced: Result<usize, ServiceError>,
) -> Result<usize, ServiceError> {
    let errors = match synced {
        Ok(count) => {
            tx.release_savepoint().await?;
            return Ok(count);
        }
        Err(ServiceError::Refused { code, errors }) => {
            if task.product.is_some() && tasks::has_others(tx, task).await? {
                return Err(ServiceError::Refused { code, errors });
            }
            errors
        }
        Err(error) => return Err(error),
    };
    tx.rewind_to_savepoint().await?;
    tx.release_savepoint().await?;
    tracing::warn!(account = %task.account, resource = id, ?errors, "a resource is left without some Digital Links");
    Ok(0)
}

/// Whether nothing comes behind a place, of a list that was asked for so many.
fn is_over<Id>(found: &[(Id, Position)], asked: u32, last: Position) -> bool {
    found.len() < asked as usize && found.last().is_none_or(|(_, place)| *place == last)
}
