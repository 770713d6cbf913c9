//! Removes the users of deleted applications: any number of processes, each with one lane.

use std::{sync::Arc, time::Duration};

use background::{
    store::work::Claimed,
    worker::{self, Stepped},
};
use prometheus_client::metrics::counter::Counter;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{
    error::ServiceError,
    service::{Core, removal},
    store::{
        Ctx, Db, StoreError,
        removed_applications::{self, Removal},
    },
};

struct Lane {
    core: Arc<Core>,
    given_up: Counter,
}

impl worker::Lane for Lane {
    type Item = Removal;
    const KIND: &'static str = "removal of users";
    const LOOK: Duration = Duration::from_secs(5);
    const BREATH: Duration = Duration::from_millis(20);

    fn db(&self) -> &Db {
        &self.core.db
    }

    async fn claim(&mut self) -> Result<Option<Claimed<Removal>>, StoreError> {
        let mut tx = self.core.db.begin(&Ctx::default()).await?;
        let claimed = removed_applications::claim(&mut tx).await?;
        tx.commit().await?;
        Ok(claimed)
    }

    async fn step(
        &mut self,
        claimed: &mut Claimed<Removal>,
        _stop: &CancellationToken,
    ) -> Result<Stepped, ServiceError> {
        removal::step(&self.core, claimed).await
    }

    /// Users must go some day, so no removal fails for good.
    async fn fail(
        &mut self,
        claimed: &mut Claimed<Removal>,
        message: String,
    ) -> Result<Stepped, ServiceError> {
        tracing::warn!(application = %claimed.item.app, reason = %message, "users could not be removed");
        self.given_up.inc();
        Ok(Stepped::Rests)
    }
}

/// Works until `stop`, then releases the removal in progress. `given_up` counts removals that failed too often.
pub async fn run(core: Arc<Core>, given_up: Counter, stop: CancellationToken) {
    worker::take_over::<Lane>(&core.db).await;
    // Nobody waits for it.
    worker::run(Lane { core, given_up }, &Notify::new(), &stop).await;
}

/// Claims a removal and works on it for a moment; returns whether there was one.
///
/// # Errors
/// The store failed. What fails of a removal is logged, and tried again later.
pub async fn work(core: &Arc<Core>, given_up: &Counter) -> Result<bool, StoreError> {
    let mut lane = Lane { core: core.clone(), given_up: given_up.clone() };
    worker::turn(&mut lane, &CancellationToken::new()).await
}
