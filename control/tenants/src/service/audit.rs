//! The audit trail: entries get their place in the chain of their account, are verified, and removed after a time.
//!
//! The transaction of a change leaves its entries in a queue, where they cost it a row and nothing to look up. They go from there
//! into the table of entries once, many at a time, with their number and hash: by the worker each second, and before a list.

use std::{collections::HashMap, time::Duration};

use shared::{id::AccountId, time::UnixMillis};
use tokio::time::timeout;
use tracing::instrument;

use super::{Core, access::require};
use crate::{
    domain::{
        access::Actor,
        audit::{Broken, Chain, Entry, Verifier},
        listing::ListRequest,
        page::Page,
        permission::{Subject::Audit, Verb},
    },
    error::ServiceError,
    store::{
        Conn, Ctx, Db, StoreError,
        audit_trail::{self as store, Sealed},
        listing::Selection,
    },
};

/// Entries that one transaction chains; twice as many if a server of the release before left some.
const STEP: usize = 500;

/// Transactions at once: a list waits for 10,000 entries at most, and the worker looks that often whether it is to stop.
const STEPS: usize = 20;

/// Entries that are read at once for a check.
const PAGE: i64 = 1_000;

/// How long a list waits for the newest entries. SQLite has one writer, and a statement of it may take longer.
const LIST_WAIT: Duration = Duration::from_secs(1);

/// How long entries are kept: 400 days, so that a year can be compared with the one before.
pub const KEPT_MS: i64 = 400 * 24 * 60 * 60 * 1_000;

/// Lists the entries of the account.
///
/// # Errors
/// The key lacks the permission.
#[instrument(skip_all)]
pub async fn list(core: &Core, actor: &Actor, request: &ListRequest) -> Result<Page<Entry>, ServiceError> {
    let grant = require(actor, Verb::List, Audit)?;
    chain_if_possible(core).await;
    let mut conn = core.db.read().await?;
    let selection = Selection { account: actor.account, limit: grant.limit(), request, within: &[] };
    Ok(store::list(&mut conn, &selection).await?)
}

/// Gives entries that are committed their place, oldest first; returns whether these were all.
///
/// # Errors
/// The database takes no writes.
pub async fn chain_some(core: &Core) -> Result<bool, StoreError> {
    for _ in 0..STEPS {
        // Fewer than a whole step were all that there were.
        if chain_new(core).await? < STEP {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Gives all entries that are committed their place, so that a list behind this has them.
///
/// # Errors
/// The database takes no writes; [`StoreError::Busy`] when more wait than [`chain_some`] moves, as after an outage.
pub async fn chain_all(core: &Core) -> Result<(), StoreError> {
    if chain_some(core).await? { Ok(()) } else { Err(StoreError::Busy) }
}

/// [`chain_all`] for a list that is of use also without the newest entries: they are missing while the database takes no writes,
/// is busy for a second, or too many wait.
pub async fn chain_if_possible(core: &Core) {
    match timeout(LIST_WAIT, chain_some(core)).await {
        Ok(Ok(true)) => {}
        Ok(Ok(false)) => tracing::warn!("a list lacks the newest entries of the audit trail: too many wait"),
        Ok(Err(error)) => tracing::warn!(%error, "a list lacks the newest entries of the audit trail"),
        Err(_) => tracing::warn!("a list lacks the newest entries of the audit trail: the database is busy"),
    }
}

/// Gives new entries their place in the chain of their account, and sets those aside that cannot be read; returns how many there
/// were.
///
/// A chain whose ends were changed by somebody else goes on without a valid seal: [`verify`] reports it.
///
/// # Errors
/// The database failed; the entries are chained later.
pub async fn chain_new(core: &Core) -> Result<usize, StoreError> {
    let is_waiting = store::is_waiting(&mut core.db.read().await?).await?;
    if !is_waiting {
        return Ok(0);
    }
    let key = &core.secrets.audit;
    let mut tx = core.db.begin(&Ctx::default()).await?;
    // First, as they are the older ones: the last of the release before.
    let mut entries = store::take_unplaced(&mut tx, STEP as i64).await?;
    let (taken, faults) = store::take(&mut tx, STEP as i64).await?;
    entries.extend(taken);
    let count = entries.len() + faults.len();
    if count == 0 {
        return Ok(0);
    }
    // Each as it was found, and as it goes on.
    let mut chains: HashMap<AccountId, (Sealed, Chain)> = HashMap::new();
    // In the order of accounts, so that two replicas do not wait for each other in a circle.
    let mut accounts: Vec<AccountId> = entries.iter().map(|entry| entry.account).collect();
    accounts.sort_unstable();
    accounts.dedup();
    for account in accounts {
        let found = store::find_chain_locked(&mut tx, account).await?;
        if found.is_none() {
            // Once in the life of an account: a second time somebody has removed its chain.
            tracing::info!(%account, "the audit trail of the account begins");
        }
        let sealed = found.unwrap_or((Chain::EMPTY, Chain::EMPTY.seal(key, account)));
        chains.insert(account, (sealed, sealed.0));
    }
    for entry in &mut entries {
        let Some((_, chain)) = chains.get_mut(&entry.account) else { continue };
        let (number, before) = (chain.last.0 + 1, chain.last.1);
        let place = (number, entry.hash(key, number, &before));
        (entry.place, chain.last) = (Some(place), place);
    }
    store::add(&mut tx, &entries).await?;
    for (account, (sealed, chain)) in chains {
        let sealed = changed(key, account, sealed, |old| *old = chain);
        store::put_chain(&mut tx, account, &sealed).await?;
    }
    tx.commit().await?;
    if let Some(fault) = faults.first() {
        let rejects = faults.len();
        tracing::warn!(
            rejects,
            fault,
            "entries of the audit trail cannot be read: they are in `audit_rejects`"
        );
    }
    Ok(count)
}

/// A chain after a change, sealed again if its seal was valid before.
fn changed(
    key: &[u8; 32],
    account: AccountId,
    (mut chain, seal): Sealed,
    change: impl FnOnce(&mut Chain),
) -> Sealed {
    let is_valid = chain.seal(key, account) == seal;
    change(&mut chain);
    (chain, if is_valid { chain.seal(key, account) } else { seal })
}

/// Checks the trail of an account; returns the number of its entries, or what is wrong with it.
pub async fn verify(db: &Db, key: &[u8; 32], account: AccountId) -> Result<Result<i64, Broken>, StoreError> {
    let mut conn = db.read().await?;
    loop {
        let before = store::find_chain(&mut conn, account).await?;
        let found = verify_once(&mut conn, key, account, before).await?;
        let now = store::find_chain(&mut conn, account).await?;
        let base = |chain: &Option<Sealed>| chain.map_or(0, |(chain, _)| chain.base.0);
        // The retention may have removed entries meanwhile.
        if found.is_ok() || base(&before) == base(&now) {
            return Ok(found);
        }
    }
}

async fn verify_once(
    conn: &mut Conn,
    key: &[u8; 32],
    account: AccountId,
    sealed: Option<Sealed>,
) -> Result<Result<i64, Broken>, StoreError> {
    let chain = match sealed {
        Some((chain, seal)) if chain.seal(key, account) != seal => return Ok(Err(Broken::Ends)),
        Some((chain, _)) => chain,
        None => Chain::EMPTY,
    };
    let mut verifier = Verifier::new(key, chain);
    let mut after = chain.base.0;
    while after < chain.last.0 {
        let entries = store::list_chained(conn, account, after, PAGE).await?;
        let Some((last, _)) = entries.last().and_then(|entry| entry.place) else { break };
        after = last;
        // Newer ones may have come since the chain was read.
        let is_known = |entry: &&Entry| entry.place.is_some_and(|(number, _)| number <= chain.last.0);
        if let Err(broken) = entries.iter().filter(is_known).try_for_each(|entry| verifier.next(entry)) {
            return Ok(Err(broken));
        }
    }
    let checked = verifier.finish();
    // Read before the chain, so that one which is chained meanwhile is not taken for a foreign one.
    let newest = store::find_newest(conn, account).await?;
    let ends_at = store::find_chain(conn, account).await?.map_or(0, |(chain, _)| chain.last.0);
    Ok(match newest {
        Some(number) if number > ends_at => Err(Broken::Beyond(number)),
        _ => checked,
    })
}

/// Entries of any account that are in no chain, because they cannot be read: where they are kept, and what is wrong.
pub async fn rejects(db: &Db) -> Result<Vec<(i64, String)>, StoreError> {
    store::list_rejects(&mut db.read().await?, PAGE).await
}

/// Removes entries whose time is over, oldest first; returns how many. Entries that fail the check stay.
///
/// # Errors
/// The database failed; what is left is removed later.
pub async fn purge(core: &Core) -> Result<u64, StoreError> {
    let before = UnixMillis(core.clock.now().0.saturating_sub(KEPT_MS));
    let accounts = store::list_accounts(&mut core.db.read().await?).await?;
    let mut gone = 0;
    for account in accounts {
        loop {
            let step = purge_step(core, account, before).await?;
            gone += step;
            if step < STEP as u64 {
                break;
            }
        }
    }
    Ok(gone)
}

/// Removes the oldest entries of an account as long as each is older than `before` and follows the one before it.
async fn purge_step(core: &Core, account: AccountId, before: UnixMillis) -> Result<u64, StoreError> {
    let key = &core.secrets.audit;
    let mut tx = core.db.begin(&Ctx::default()).await?;
    let Some(sealed) = store::find_chain_locked(&mut tx, account).await? else { return Ok(0) };
    if sealed.0.seal(key, account) != sealed.1 {
        return Ok(0);
    }
    let entries = store::list_chained(&mut tx, account, sealed.0.base.0, STEP as i64).await?;
    let mut verifier = Verifier::new(key, sealed.0);
    let is_over = |entry: &&Entry| entry.at < before && verifier.next(entry).is_ok();
    let Some(base) = entries.iter().take_while(is_over).last().and_then(|entry| entry.place) else {
        return Ok(0);
    };
    let sealed = changed(key, account, sealed, |chain| chain.base = base);
    store::put_chain(&mut tx, account, &sealed).await?;
    let gone = store::delete_up_to(&mut tx, account, base.0).await?;
    tx.commit().await?;
    Ok(gone)
}
