//! Carries changes of many links out: any number of processes, each with one lane.

use std::sync::Arc;

use background::worker::{self, Stepped};
use kernel::store::{Ctx, Db, StoreError};
use tokio_util::sync::CancellationToken;

use crate::{
    domain::change::LinkChange,
    error::ServiceError,
    service::{LinkChangeState, steps},
    store::change_leases::{self as leases, Claimed},
};

struct Lane(Arc<LinkChangeState>);

impl worker::Lane for Lane {
    type Item = LinkChange;
    const KIND: &'static str = "change of links";

    fn db(&self) -> &Db {
        &self.0.db
    }

    async fn claim(&mut self) -> Result<Option<Claimed>, StoreError> {
        let mut tx = self.0.db.begin(&Ctx::default()).await?;
        let claimed = leases::claim(&mut tx).await;
        // Also of a change that this release cannot read: with its lease it is in nobody's way for a while.
        tx.commit().await?;
        claimed
    }

    async fn step(
        &mut self,
        claimed: &mut Claimed,
        _stop: &CancellationToken,
    ) -> Result<Stepped, ServiceError> {
        steps::step(&self.0, claimed).await
    }

    async fn fail(&mut self, claimed: &mut Claimed, message: String) -> Result<Stepped, ServiceError> {
        steps::fail(&self.0, claimed, message).await
    }
}

/// Works on changes until `stop`, then releases the one in progress.
pub async fn run(state: Arc<LinkChangeState>, stop: CancellationToken) {
    worker::take_over::<Lane>(&state.db).await;
    worker::run(Lane(state.clone()), &state.wake, &stop).await;
}

/// Claims a change and works on it for a moment; returns whether there was one.
///
/// # Errors
/// The store failed. What fails of a change is logged, and tried again later.
pub async fn work(state: &Arc<LinkChangeState>, stop: &CancellationToken) -> Result<bool, StoreError> {
    worker::turn(&mut Lane(state.clone()), stop).await
}
