//! Publishes to the other replicas which edges are here and how far they are.

use std::{
    convert::Infallible,
    time::{Duration, Instant},
};

use tokio::sync::mpsc;

use super::{super::hub::Hub, HELD, Replica, call::Call, ticks};
use crate::store::{Ctx, StoreError, calls::call, edge_leases};

/// How long acknowledgements are published immediately after a call of a replica that waits.
const ANNOUNCE_AT_ONCE: Duration = Duration::from_secs(3);

/// Least time between two batches while somebody waits: 500 small transactions a second at most.
const GAP: Duration = Duration::from_millis(2);

/// Intervals between two clean-ups of old leases, and the age at which they are deleted.
const FORGET_EVERY: u64 = 600;
const FORGET_AFTER: Duration = Duration::from_secs(3_600);

impl Replica {
    /// Publishes to the other replicas: each second, and immediately while somebody waits there.
    pub(super) async fn keep_announcing(
        &self,
        hub: &Hub,
        mut asked: mpsc::Receiver<()>,
    ) -> Result<Infallible, StoreError> {
        let mut ticks = ticks();
        let (mut count, mut announce_until) = (0_u64, None::<Instant>);
        loop {
            let announces_at_once = announce_until.is_some_and(|until| until > Instant::now());
            // Random order, so that a frequently ready branch does not starve the others.
            tokio::select! {
                _ = ticks.tick() => {
                    self.hold(hub, count).await?;
                    count += 1;
                }
                Some(()) = asked.recv() => {
                    announce_until = Some(Instant::now() + ANNOUNCE_AT_ONCE);
                    self.tell(hub, true).await?;
                }
                () = self.committed.notified(), if self.replicas() > 1 => self.call(hub, Call::Log).await?,
                () = hub.0.members.changed.notified(), if announces_at_once => {
                    tokio::time::sleep(GAP).await;
                    self.tell(hub, true).await?;
                }
            }
        }
    }

    /// Renews the lease of this replica and publishes what is due.
    async fn hold(&self, hub: &Hub, count: u64) -> Result<(), StoreError> {
        let mut tx = self.db(hub).begin(&Ctx::default()).await?;
        edge_leases::relax(&mut tx).await?;
        edge_leases::hold(&mut tx, &self.id, HELD).await?;
        if count.is_multiple_of(FORGET_EVERY) {
            edge_leases::forget(&mut tx, FORGET_AFTER).await?;
        }
        tx.commit().await?;
        self.tell(hub, false).await
    }

    /// Publishes leases that the others do not have yet; `calls` notifies those that wait for them.
    pub(super) async fn tell(&self, hub: &Hub, calls: bool) -> Result<(), StoreError> {
        let leases = hub.0.members.take_untold(calls || self.replicas() > 1);
        if leases.is_empty() && !calls {
            return Ok(());
        }
        let mut tx = self.db(hub).begin(&Ctx::default()).await?;
        edge_leases::relax(&mut tx).await?;
        if !leases.is_empty() {
            edge_leases::renew(&mut tx, &self.id, &leases).await?;
        }
        if calls {
            call(&mut tx, &self.text(Call::Told)).await?;
        }
        tx.commit().await
    }
}
