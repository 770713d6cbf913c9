//! Removal of properties: the name goes at once, the points of a long history in steps.

use serde_json::json;
use shared::time::UnixMillis;
use tracing::instrument;

use super::{
    super::{
        Core,
        access::{Caller, require},
        bulk::AfterCommit,
    },
    KIND, held, refuse_system,
};
use crate::{
    domain::{
        permission::{Subject::Properties, Verb},
        property::{Owner, PropertyKey},
    },
    error::ServiceError,
    store::{
        Ctx, Db, StoreError,
        properties::{self, Removal},
        property_owners::Hold,
    },
};

/// Points that one transaction removes: about 50 ms of the one writer of SQLite.
const REMOVAL_STEP: u32 = 5_000;

/// Removes a property, or its values before a time; no such property is no error.
///
/// # Errors
/// The key lacks the permission, the property is the system's own, the owner does not exist, or the database
/// failed; a long history goes oldest first in steps, and a failure leaves the later steps undone.
#[instrument(skip_all)]
pub async fn delete(
    core: &Core,
    caller: &Caller,
    owner: (Owner, &str),
    key: &PropertyKey,
    before: Option<UnixMillis>,
) -> Result<(), ServiceError> {
    let grant = require(caller, Verb::Delete, Properties)?;
    refuse_system([key].into_iter())?;
    let (_place, mut tx) = core.begin_write(caller).await?;
    let id = held(&mut tx, caller, &grant, owner, Hold::Alone).await?;
    let removal = properties::remove(&mut tx, caller.account, &id, key, before).await?;
    if !matches!(removal, Removal::Nothing) {
        let what = || json!({"key": key.as_str(), "before": before.map(|at| at.0)});
        tx.note(caller.account, (KIND, &id), || (Some(what()), None));
    }
    tx.commit().await?;
    match removal {
        Removal::Nothing => {}
        Removal::Done => sweep_once(&core.db).await,
        Removal::Before(property, before) => loop {
            let (_place, mut tx) = core.begin_write(caller).await?;
            let gone = properties::remove_before(&mut tx, property, before, REMOVAL_STEP).await?;
            tx.commit().await?;
            if gone < u64::from(REMOVAL_STEP) {
                break;
            }
        },
    }
    Ok(())
}

/// Removes every property but the system's own.
///
/// # Errors
/// The key lacks the permission or the owner does not exist.
#[instrument(skip_all)]
pub async fn delete_all(core: &Core, caller: &Caller, owner: (Owner, &str)) -> Result<(), ServiceError> {
    let grant = require(caller, Verb::Delete, Properties)?;
    let (_place, mut tx) = core.begin_write(caller).await?;
    let id = held(&mut tx, caller, &grant, owner, Hold::Alone).await?;
    properties::remove_own(&mut tx, caller.account, &id).await?;
    tx.note(caller.account, (KIND, &id), || (Some(json!({"key": "*"})), None));
    tx.commit().await?;
    sweep_once(&core.db).await;
    Ok(())
}

/// Deletes the points of deleted properties, step by step; returns how many.
///
/// # Errors
/// The database failed; what was removed stays removed.
pub async fn sweep(core: &Core) -> Result<u64, StoreError> {
    let mut all = 0;
    loop {
        let gone = sweep_step(&core.db).await?;
        all += gone;
        if gone < u64::from(REMOVAL_STEP) {
            return Ok(all);
        }
    }
}

/// One step of [`sweep`] after a deletion, so that most are complete at once; the upkeep deletes the rest.
async fn sweep_once(db: &Db) {
    if let Err(error) = sweep_step(db).await {
        tracing::warn!(%error, "points of deleted properties are left for the upkeep");
    }
}

/// Deletes points of deleted properties after a commit; what is left then is deleted by the upkeep.
pub(crate) fn sweep_after(core: &Core, after: AfterCommit) -> AfterCommit {
    let db = core.db.clone();
    let task = async move {
        sweep_once(&db).await;
        Ok(())
    };
    after.then("sweep properties", Box::new(|| Box::pin(task)))
}

async fn sweep_step(db: &Db) -> Result<u64, StoreError> {
    let mut tx = db.begin(&Ctx::default()).await?;
    let gone = properties::sweep(&mut tx, REMOVAL_STEP).await?;
    tx.commit().await?;
    Ok(gone)
}
