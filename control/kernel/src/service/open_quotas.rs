//! What accounts have open, over all processes: streams and uploads, bounded by their quotas.
//!
//! A process counts what it holds itself, and says so in the database: at once where a limit holds, for whoever asks next,
//! and every second for the rest. What a process held that died counts until its lease is over.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use shared::{id::AccountId, time::UnixMillis};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    domain::quota::{Exceeded, Quota},
    error::ServiceError,
    store::{Ctx, Db, StoreError, quota_holders as store, quotas},
};

/// Time between two looks at what changed.
const LOOK: Duration = Duration::from_secs(1);

/// Time between two renewals of everything: a third of a lease.
const RENEW: Duration = Duration::from_secs(10);

/// What one statement writes.
const STEP: usize = 1_000;

#[derive(Debug, Default, Clone, Copy)]
struct Held {
    count: u64,
    /// Whether the database has another number.
    is_changed: bool,
}

#[derive(Debug, Default)]
struct Table(Mutex<HashMap<(AccountId, Quota), Held>>);

impl Table {
    fn lock(&self) -> MutexGuard<'_, HashMap<(AccountId, Quota), Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the database does not know, or everything.
    fn list(&self, everything: bool) -> Vec<(AccountId, Quota, u64)> {
        let mut table = self.lock();
        let due = table.iter_mut().filter(|(_, held)| everything || held.is_changed);
        let mut due: Vec<_> = due
            .map(|((account, quota), held)| {
                held.is_changed = false;
                (*account, *quota, held.count)
            })
            .collect();
        table.retain(|_, held| held.count > 0);
        // All processes lock rows in one order.
        due.sort_unstable();
        due
    }

    /// The database was not told after all.
    fn note_unwritten(&self, due: &[(AccountId, Quota, u64)]) {
        let mut table = self.lock();
        for (account, quota, _) in due {
            table.entry((*account, *quota)).or_default().is_changed = true;
        }
    }
}

/// What accounts have open; one for each process.
#[derive(Debug)]
pub struct OpenQuotas {
    holder: String,
    table: Arc<Table>,
}

/// Something that is open, until it is dropped.
pub struct OpenPlace {
    table: Arc<Table>,
    of: (AccountId, Quota),
}

shared::opaque!(OpenPlace);

impl Drop for OpenPlace {
    fn drop(&mut self) {
        let mut table = self.table.lock();
        if let Some(held) = table.get_mut(&self.of) {
            *held = Held { count: held.count.saturating_sub(1), is_changed: true };
        }
    }
}

impl OpenQuotas {
    /// For a process with a name that no other has.
    #[must_use]
    pub fn new(holder: String) -> Self {
        Self { holder, table: Arc::default() }
    }

    /// Opens something of an account.
    ///
    /// # Errors
    /// As many are open as the account may have.
    pub async fn take(
        &self,
        db: &Db,
        account: AccountId,
        quota: Quota,
        now: UnixMillis,
    ) -> Result<OpenPlace, ServiceError> {
        if quotas::find(&mut db.read().await?, account, quota, now).await?.is_none() {
            let (place, _) = self.add(account, quota, u64::MAX).ok_or_else(too_many)?;
            return Ok(place);
        }
        let mut tx = db.begin(&Ctx::default()).await?;
        // Whoever opens something of this account elsewhere waits here.
        let limit = quotas::lock(&mut tx, account, quota, now).await?.map_or(u64::MAX, |found| found.limit);
        let others = store::count_others(&mut tx, account, quota, &self.holder).await?;
        let Some((place, count)) = self.add(account, quota, limit.saturating_sub(others)) else {
            let used = others.saturating_add(self.count(account, quota));
            return Err(StoreError::Exceeded(Exceeded { quota, limit, used, wanted: 1 }).into());
        };
        store::put(&mut tx, &self.holder, &[(account, quota, count)]).await?;
        tx.commit().await?;
        Ok(place)
    }

    /// Refuses what would not be opened by now.
    ///
    /// # Errors
    /// As many are open as the account may have.
    pub async fn require_room(
        &self,
        db: &Db,
        account: AccountId,
        quota: Quota,
        now: UnixMillis,
    ) -> Result<(), ServiceError> {
        let Some(found) = quotas::find(&mut db.read().await?, account, quota, now).await? else {
            return Ok(());
        };
        let used = self.count_all(db, account, quota).await?;
        if used < found.limit {
            return Ok(());
        }
        Err(StoreError::Exceeded(Exceeded { quota, limit: found.limit, used, wanted: 1 }).into())
    }

    /// One more, if there are fewer than `most`.
    fn add(&self, account: AccountId, quota: Quota, most: u64) -> Option<(OpenPlace, u64)> {
        let of = (account, quota);
        let mut table = self.table.lock();
        let count = table.get(&of).map_or(0, |held| held.count);
        if count >= most {
            return None;
        }
        table.insert(of, Held { count: count + 1, is_changed: true });
        Some((OpenPlace { table: self.table.clone(), of }, count + 1))
    }

    fn count(&self, account: AccountId, quota: Quota) -> u64 {
        self.table.lock().get(&(account, quota)).map_or(0, |held| held.count)
    }

    /// How much of an account is open in all processes.
    pub async fn count_all(&self, db: &Db, account: AccountId, quota: Quota) -> Result<u64, StoreError> {
        let others = store::count_others(&mut db.read().await?, account, quota, &self.holder).await?;
        Ok(others.saturating_add(self.count(account, quota)))
    }

    async fn write(&self, db: &Db, everything: bool) -> Result<(), StoreError> {
        let due = self.table.list(everything);
        for (index, some) in due.chunks(STEP).enumerate() {
            let written = async {
                let mut tx = db.begin(&Ctx::default()).await?;
                store::put(&mut tx, &self.holder, some).await?;
                tx.commit().await
            };
            if let Err(error) = written.await {
                self.table.note_unwritten(due.get(index * STEP..).unwrap_or_default());
                return Err(error);
            }
        }
        Ok(())
    }

    /// Tells the database what changed, and renews the leases, until `shutdown`.
    pub async fn run(&self, db: &Db, shutdown: CancellationToken) {
        if let Err(error) = store::free_all(db).await {
            tracing::warn!(%error, "what the previous process had open counts until its leases are over");
        }
        let mut renewed = Instant::now();
        while shutdown.run_until_cancelled(tokio::time::sleep(LOOK)).await.is_some() {
            let everything = renewed.elapsed() >= RENEW;
            if everything {
                renewed = Instant::now();
            }
            let written = async {
                self.write(db, everything).await?;
                if everything {
                    let mut tx = db.begin(&Ctx::default()).await?;
                    store::delete_dead(&mut tx).await?;
                    tx.commit().await?;
                }
                Ok::<(), StoreError>(())
            };
            if let Err(error) = written.await {
                tracing::warn!(%error, "what accounts have open was not written; retried");
            }
        }
        let left = async {
            let mut tx = db.begin(&Ctx::default()).await?;
            store::leave(&mut tx, &self.holder).await?;
            tx.commit().await
        };
        if let Err(error) = left.await {
            tracing::debug!(%error, "what this process had open counts until its leases are over");
        }
    }
}

fn too_many() -> ServiceError {
    ServiceError::Full("what an account has open")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_open_is_counted_until_it_is_dropped() {
        let (one, other) = (AccountId::new(1, [1; 16]), AccountId::new(1, [2; 16]));
        let open = OpenQuotas::new("a".to_owned());
        let (first, count) = open.add(one, Quota::Streams, 2).unwrap();
        let second = open.add(one, Quota::Streams, 2).unwrap();
        assert_eq!((count, second.1), (1, 2));
        assert!(open.add(one, Quota::Streams, 2).is_none());
        assert!(open.add(one, Quota::Uploads, 2).is_some() && open.add(other, Quota::Streams, 2).is_some());
        assert_eq!(open.table.list(false).len(), 3, "what was dropped is written as well");
        assert_eq!(open.table.list(false), [], "nothing changed");
        assert_eq!(open.table.list(true), [(one, Quota::Streams, 2)]);
        drop(first);
        let due = open.table.list(false);
        assert_eq!(due, [(one, Quota::Streams, 1)]);
        open.table.note_unwritten(&due);
        assert_eq!(open.table.list(false), due);
        drop(second);
        assert_eq!(open.table.list(false), [(one, Quota::Streams, 0)]);
        assert!(open.table.lock().is_empty(), "nothing is kept");
    }
}
