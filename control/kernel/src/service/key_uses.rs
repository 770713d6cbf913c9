//! When keys were last used: noted in memory by requests, written to the hour in the background.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use shared::time::UnixMillis;

use super::state::Core;
use crate::store::{Ctx, StoreError, keys};

const HOUR_MS: i64 = 60 * 60 * 1_000;

/// Most keys that are noted at a time; the use of others is noted in a later hour.
const MOST: usize = 100_000;

/// Keys that one statement writes.
const STEP: usize = 1_000;

/// The keys that were used in this hour, each with whether that is written.
#[derive(Debug, Default)]
pub struct KeyUses(Mutex<Noted>);

#[derive(Debug, Default)]
struct Noted {
    hour: i64,
    keys: HashMap<[u8; 32], bool>,
}

impl KeyUses {
    /// Notes that a key is used.
    pub(super) fn note(&self, hash: [u8; 32]) {
        let mut noted = self.lock();
        if noted.keys.len() < MOST {
            noted.keys.entry(hash).or_insert(false);
        }
    }

    /// Those that are not written yet. With a new hour, all that were written may be noted again.
    fn pending(&self, hour: i64) -> Vec<[u8; 32]> {
        let mut noted = self.lock();
        if noted.hour != hour {
            noted.hour = hour;
            noted.keys.retain(|_, is_written| !*is_written);
        }
        noted.keys.iter().filter(|(_, is_written)| !**is_written).map(|(hash, _)| *hash).collect()
    }

    fn written(&self, hashes: &[[u8; 32]]) {
        let mut noted = self.lock();
        for hash in hashes {
            if let Some(is_written) = noted.keys.get_mut(hash) {
                *is_written = true;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Noted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes which keys were used since the last call, each at most once an hour; returns how many.
pub async fn write(core: &Core) -> Result<usize, StoreError> {
    let uses = &core.key_lookups.uses;
    let hour = core.clock.now().0.div_euclid(HOUR_MS);
    let mut pending = uses.pending(hour);
    pending.sort_unstable();
    for some in pending.chunks(STEP) {
        let mut tx = core.db.begin(&Ctx::default()).await?;
        keys::note_use(&mut tx, some, UnixMillis(hour * HOUR_MS)).await?;
        tx.commit().await?;
        uses.written(some);
    }
    Ok(pending.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_use_is_pending_once_an_hour() {
        let uses = KeyUses::default();
        let keys = [[1; 32], [2; 32]];
        keys.iter().for_each(|key| uses.note(*key));
        let mut pending = uses.pending(5);
        pending.sort_unstable();
        assert_eq!(pending, keys);
        // One could not be written: it stays.
        uses.written(&keys[..1]);
        keys.iter().for_each(|key| uses.note(*key));
        assert_eq!(uses.pending(5), [keys[1]]);
        uses.written(&keys[1..]);
        assert_eq!(uses.pending(6), [[0; 32]; 0], "nobody used them in this hour");
        uses.note(keys[0]);
        assert_eq!(uses.pending(6), [keys[0]]);
    }
}
