//! Removal of the users of a deleted application, in steps of bounded size.
//!
//! Keys of an application and of its users end with its row, and its users are no longer shown. So only the first step is
//! part of the deletion; a worker does the others, each in one transaction with the erasures that it asks for. What a killed
//! worker did not commit is done again.

use background::store::work::Claimed;
pub use background::worker::Stepped;
use shared::id::{AccountId, ApplicationId};
use tracing::instrument;

use super::Core;
use crate::{
    error::ServiceError,
    store::{
        Ctx, Tx, app_users, keys,
        removed_applications::{self, Removal},
    },
};

/// Rows that one transaction removes: users, then keys. It is two full erasures.
pub const STEP: u32 = 1_000;

/// Removes users of a deleted application, and its keys when no user is left, at most `room` rows, which it lessens. What is
/// left is noted for the worker.
pub(super) async fn begin(
    core: &Core,
    tx: &mut Tx,
    (account, app): (AccountId, ApplicationId),
    room: &mut u32,
) -> Result<(), ServiceError> {
    let (users, is_done) = remove_some(core, tx, (account, app), room).await?;
    if !is_done {
        removed_applications::insert(tx, account, app, users, core.clock.now()).await?;
    }
    Ok(())
}

/// Does the next step of a removal.
///
/// # Errors
/// The database failed: the step is done again.
#[instrument(skip_all)]
pub async fn step(core: &Core, claimed: &Claimed<Removal>) -> Result<Stepped, ServiceError> {
    let Removal { account, app, .. } = claimed.item;
    let mut tx = core.db.begin(&Ctx::default()).await?;
    if !removed_applications::hold(&mut tx, claimed).await? {
        return Ok(Stepped::Lost);
    }
    let mut room = STEP;
    let (users, is_done) = remove_some(core, &mut tx, (account, app), &mut room).await?;
    let users = removed_applications::count(&mut tx, account, app, users).await?;
    if is_done {
        removed_applications::delete(&mut tx, account, app).await?;
    }
    tx.commit().await?;
    if is_done {
        tracing::info!(application = %app, users, "the users of a deleted application are removed");
        return Ok(Stepped::Settled);
    }
    tracing::debug!(application = %app, users, "removing the users of a deleted application");
    Ok(Stepped::Moved)
}

/// How many users were removed, and whether nothing is left.
async fn remove_some(
    core: &Core,
    tx: &mut Tx,
    (account, app): (AccountId, ApplicationId),
    room: &mut u32,
) -> Result<(u32, bool), ServiceError> {
    // Codes for new passwords expire within an hour, and find no user until then.
    let users = app_users::delete_of_app(tx, account, app, *room).await?;
    let count = u32::try_from(users.len()).unwrap_or(u32::MAX);
    *room = room.saturating_sub(count);
    if !users.is_empty() {
        let at = (core.clock.now(), core.random16()?);
        core.dependents.users_removed(tx, account, users, at).await?;
    }
    // After the users: a login locks its user before it adds a key.
    let ended = keys::delete_of_app(tx, app, *room).await?;
    *room = room.saturating_sub(u32::try_from(ended).unwrap_or(u32::MAX));
    // Rows that somebody else removed meanwhile were counted in the limits of the statements, so what they removed does not
    // tell whether any are left.
    let is_left =
        app_users::are_left_of_app(tx, account, app).await? || keys::are_left_of_app(tx, app).await?;
    Ok((count, !is_left))
}
