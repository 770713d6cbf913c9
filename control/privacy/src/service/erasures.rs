//! Erasures: asked for by operators, or when users are removed, and read as receipts.

use kernel::{
    domain::{
        access::Actor,
        common::Stamp,
        grant::Limit,
        limits::shorten,
        listing::ListRequest,
        page::Page,
        permission::{Subject::Accounts, Verb},
    },
    service::access::{Caller, require},
    store::{StoreError, Tx, listing::Selection},
};
use serde_json::json;
use shared::{
    id::{AccountId, ErasureId, UserId},
    time::UnixMillis,
};
use tenants::store::accounts;
use tracing::instrument;

use super::PrivacyState;
use crate::{
    domain::erasure::{Details, Erasure, MAX_USERS, Status, Target},
    error::{PrivacyError, ServiceError},
    store::erasures,
};

/// What the audit trail calls them.
const KIND: &str = "erasure";

/// Most erasures of an account that have not ended.
const MAX_OPEN: u64 = 20;

/// Asks for an erasure; the worker carries it out. Who may change how much an account keeps may ask.
///
/// # Errors
/// The key lacks the permission, or too many are under way.
#[instrument(skip_all)]
pub async fn create(state: &PrivacyState, caller: &Caller, target: Target) -> Result<Erasure, ServiceError> {
    let _ = require(caller, Verb::Update, Accounts)?;
    let now = state.clock.now();
    let id = ErasureId::new(now.0, state.random16()?);
    let details = Details::new(target, Some(caller.id.clone()));
    let new =
        Erasure { id, account: caller.account, stamp: Stamp::new(now), status: Status::Enqueued, details };
    let (_place, mut tx) = state.begin_write(caller).await?;
    accounts::lock(&mut tx, caller.account).await?;
    if erasures::count_open(&mut tx, caller.account).await? >= MAX_OPEN {
        return Err(PrivacyError::TooManyErasures { most: MAX_OPEN }.into());
    }
    erasures::insert(&mut tx, &new).await?;
    // The trail stays for long: it does not say whose data it is. The receipt does.
    tx.note(caller.account, (KIND, id.as_str()), || (None, Some(json!({"type": new.details.target.kind()}))));
    tx.commit().await?;
    state.wake.notify_one();
    Ok(new)
}

/// Asks for the erasure of users that are removed in this transaction, of [`MAX_USERS`] in one. `random`: 128 random bits. One
/// that waits takes them, too, so that many deletions one by one are few erasures.
pub async fn users_removed(
    tx: &mut Tx,
    account: AccountId,
    users: Vec<UserId>,
    (now, random): (UnixMillis, [u8; 16]),
) -> Result<(), StoreError> {
    let mut random = u128::from_be_bytes(random);
    for portion in users.chunks(MAX_USERS) {
        let most = MAX_USERS.saturating_sub(portion.len());
        // A full portion has room in none, and a look reads the users of each that waits.
        let mut waiting = if most > 0 { erasures::find_waiting(tx, account, most).await? } else { None };
        if let Some(erasure) = &mut waiting
            && let Target::Users(named) = &mut erasure.details.target
        {
            named.extend_from_slice(portion);
            erasure.stamp = erasure.stamp.touch(now);
            erasures::join(tx, erasure).await?;
            continue;
        }
        let id = ErasureId::new(now.0, random.to_be_bytes());
        random = random.wrapping_add(1);
        let details = Details::new(Target::Users(portion.to_vec()), None);
        let new = Erasure { id, account, stamp: Stamp::new(now), status: Status::Enqueued, details };
        erasures::insert(tx, &new).await?;
    }
    Ok(())
}

/// Lists the erasures of the account.
///
/// # Errors
/// The key lacks the permission.
#[instrument(skip_all)]
pub async fn list(
    state: &PrivacyState,
    actor: &Actor,
    request: &ListRequest,
) -> Result<Page<Erasure>, ServiceError> {
    let _ = require(actor, Verb::Update, Accounts)?;
    let selection = Selection { account: actor.account, limit: &Limit::Account, request, within: &[] };
    let mut conn = state.db.read().await?;
    Ok(erasures::list(&mut conn, &selection).await?)
}

/// Reads an erasure.
///
/// # Errors
/// There is none.
#[instrument(skip_all)]
pub async fn read(state: &PrivacyState, actor: &Actor, id: &str) -> Result<Erasure, ServiceError> {
    let _ = require(actor, Verb::Update, Accounts)?;
    let not_found = || ServiceError::not_found(KIND, shorten(id));
    let parsed: ErasureId = id.parse().map_err(|_| not_found())?;
    let mut conn = state.db.read().await?;
    erasures::find(&mut conn, actor.account, parsed).await?.ok_or_else(not_found)
}
