//! Checks of the keys of open connections: one whose key or rights changed ends.

use std::{
    collections::{HashMap, HashSet},
    net::IpAddr,
    time::Duration,
};

use super::{super::EventState, Ended, Held};
use crate::{
    domain::access::Actor,
    error::ServiceError,
    store::{StoreError, keys},
};

/// Keys that one statement checks.
const KEYS: usize = 1_000;

/// Time between two checks of the keys of open connections: one that is revoked anywhere ends them within a second.
pub const KEY_CHECK: Duration = Duration::from_millis(400);

/// A connection as its key is checked.
struct Checked {
    id: String,
    key: [u8; 32],
    address: Option<IpAddr>,
    actor: Actor,
}

/// Ends connections whose key is not valid any more, and those whose owner may do something else than before.
///
/// # Errors
/// The database failed; the next check comes soon.
pub async fn check_keys(state: &EventState) -> Result<(), ServiceError> {
    let all: Vec<Checked> = {
        let table = state.connections.lock();
        let checked = |(id, held): (&String, &Held)| Checked {
            id: id.clone(),
            key: held.key,
            address: held.address,
            actor: held.actor.clone(),
        };
        table.held.iter().map(checked).collect()
    };
    let hashes: HashSet<[u8; 32]> = all.iter().map(|one| one.key).collect();
    let hashes: Vec<[u8; 32]> = hashes.into_iter().collect();
    let mut known = HashMap::with_capacity(hashes.len());
    for some in hashes.chunks(KEYS) {
        known.extend(keys::find_many(&mut state.db.read().await?, some).await?);
    }
    for one in all {
        let key = known.get(&one.key).filter(|key| key.check(|| state.clock.now(), one.address).is_ok());
        let why = match key {
            None => Ended::KeyRevoked,
            // Its subscriptions were authorised when it connected: it must reconnect to get the present rights of
            // users.
            Some(key) if one.actor != key.actor => Ended::Lost,
            Some(_) => continue,
        };
        state.connections.end(std::iter::once(one.id), why);
    }
    Ok(())
}

/// Whether a key is valid at this moment for a client with this address.
pub async fn is_valid(
    state: &EventState,
    key: &[u8; 32],
    address: Option<IpAddr>,
) -> Result<bool, StoreError> {
    let known = keys::find_many(&mut state.db.read().await?, &[*key]).await?;
    Ok(known.get(key).is_some_and(|key| key.check(|| state.clock.now(), address).is_ok()))
}
