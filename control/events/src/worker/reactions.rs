//! Workers of reactions: any number of processes, each with a few lanes.
//!
//! A lane takes the next account and carries out some of its queued reactions in one transaction.

use std::{sync::Arc, time::Duration};

use tokio::{task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    error::ServiceError,
    service::{EventState, reactions::carry_out},
    store::{Db, reaction_tasks},
};

/// Lanes of one process on Postgres; SQLite has one writer anyhow.
const PG_LANES: usize = 2;

/// Poll interval without a wake-up.
const LOOK: Duration = Duration::from_millis(250);

/// Pause after a failure of the database.
const FAILURE_PAUSE: Duration = Duration::from_millis(500);

/// Works until `stop`; unfinished work is rolled back, and redone by the next worker.
pub async fn run(state: Arc<EventState>, stop: CancellationToken) {
    let lanes = match state.db {
        Db::Pg(_) => PG_LANES,
        Db::Sqlite { .. } => 1,
    };
    let mut all = JoinSet::new();
    for _ in 0..lanes {
        let (state, stop) = (state.clone(), stop.clone());
        all.spawn(async move { stop.run_until_cancelled(lane(&state)).await });
    }
    while let Some(ended) = all.join_next().await {
        if let Err(error) = ended {
            tracing::error!(%error, "a lane of reaction workers ended");
        }
    }
}

async fn lane(state: &EventState) {
    loop {
        match run_once(state).await {
            Ok(true) => {}
            Ok(false) => {
                let _ = timeout(LOOK, state.reactions.wake.notified()).await;
            }
            Err(error) => {
                tracing::warn!(%error, "reactions were not carried out; retried");
                tokio::time::sleep(FAILURE_PAUSE).await;
            }
        }
    }
}

async fn run_once(state: &EventState) -> Result<bool, ServiceError> {
    let is_due = reaction_tasks::is_due(&mut state.db.read().await?).await?;
    if is_due { carry_out::run_batch(state).await } else { Ok(false) }
}
