//! Carries print orders out: any number of processes, each with one order at a time; some do only a [`Part`] of the work.

use std::sync::Arc;

use background::worker::{self, Stepped};
use kernel::store::{Ctx, Db, StoreError};
use tokio_util::sync::CancellationToken;

use crate::{
    domain::order::Order,
    error::ServiceError,
    service::{PrintState, steps},
    store::{
        leases::{self, Claimed},
        orders,
    },
};

/// What a process does of orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Everything: it has the writer of links, and edges.
    All,
    /// What needs neither: reading, drawing, joining and removing.
    Drawing,
}

struct Lane {
    state: Arc<PrintState>,
    part: Part,
}

impl worker::Lane for Lane {
    type Item = Order;
    const KIND: &'static str = "print order";

    fn db(&self) -> &Db {
        &self.state.db
    }

    async fn claim(&mut self) -> Result<Option<Claimed>, StoreError> {
        let mut tx = self.state.db.begin(&Ctx::default()).await?;
        let claimed = match self.part {
            Part::All => leases::claim(&mut tx).await,
            Part::Drawing => leases::claim_drawing(&mut tx).await,
        };
        // Also of an order that this release cannot read: with its lease it is in nobody's way for a while.
        tx.commit().await?;
        claimed
    }

    async fn step(
        &mut self,
        claimed: &mut Claimed,
        stop: &CancellationToken,
    ) -> Result<Stepped, ServiceError> {
        tokio::select! {
            stepped = steps::step(&self.state, claimed) => stepped,
            // It may take minutes; what it has not committed is done again.
            () = stop.cancelled() => Ok(Stepped::Moved),
        }
    }

    async fn fail(&mut self, claimed: &mut Claimed, message: String) -> Result<Stepped, ServiceError> {
        steps::fail(&self.state, claimed, message).await
    }

    fn is_ours(&self, order: &Order) -> bool {
        self.part == Part::All || order.status.is_terminal() || order.details.stage.is_drawing()
    }

    fn lost(&self) {
        self.state.metrics.leases_lost.inc();
    }

    fn failed(&self) {
        self.state.metrics.tries_failed.inc();
    }
}

/// Works on orders until `stop`, then releases the one in progress.
pub async fn run(state: Arc<PrintState>, stop: CancellationToken) {
    worker::take_over::<Lane>(&state.db).await;
    run_part(state, Part::All, stop).await;
}

/// Does a part of the work on orders until `stop`, then releases the one in progress.
pub async fn run_part(state: Arc<PrintState>, part: Part, stop: CancellationToken) {
    let lane = Lane { state: state.clone(), part };
    tokio::join!(
        worker::run(lane, &state.wake, &stop),
        worker::watch("print order", &stop, || stand(&state))
    );
}

async fn stand(state: &PrintState) -> Result<(), StoreError> {
    let standing = orders::standing(&mut state.db.read().await?).await?;
    state.metrics.stand(standing, state.clock.now());
    Ok(())
}

/// Claims an order and does a part of the work on it for a moment; returns whether there was one.
///
/// # Errors
/// The store failed. What fails of an order is logged, and tried again later.
pub async fn work(state: &Arc<PrintState>, part: Part, stop: &CancellationToken) -> Result<bool, StoreError> {
    worker::turn(&mut Lane { state: state.clone(), part }, stop).await
}
