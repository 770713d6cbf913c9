//! Workers of jobs: any number of processes, each with a few lanes.
//!
//! Jobs of all accounts progress side by side, and a small new job is not delayed by one of millions.

use std::{sync::Arc, time::Duration};

use background::worker::{self, Stepped};
use platform::{Share, Shares};
use shared::id::AccountId;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    domain::job::{Job, JobStatus},
    error::ServiceError,
    service::{
        JobState,
        jobs::{
            execute::{self, Execution, StepSize},
            load,
        },
    },
    store::{
        Ctx, Db, StoreError,
        job_leases::{self, Claimed, Phase},
    },
};

/// Lanes that carry operations out: one works while the other waits for the database. They take four of its
/// connections, so that the API has the others.
const EXECUTORS: usize = 2;

/// Lanes that read inputs: this many large files may be read before a small one has to wait.
const LOADERS: usize = 4;

/// Of these, lanes that read inputs of one account.
const ACCOUNT_LOADERS: usize = LOADERS / 2;

/// How long, and how often, a lane yields when every database connection is in use.
const YIELD: Duration = Duration::from_millis(20);
const MAX_YIELDS: u32 = 5;

struct Lane {
    state: Arc<JobState>,
    phase: Phase,
    /// Lanes that read inputs, by account.
    loading: Shares<AccountId>,
    /// The place of the job in progress among these.
    place: Option<Share<AccountId>>,
    execution: Execution,
    step_size: StepSize,
}

impl worker::Lane for Lane {
    type Item = Job;
    const KIND: &'static str = "job";
    const LOOK: Duration = Duration::from_millis(250);
    const TURN: Duration = Duration::from_millis(250);
    const BREATH: Duration = Duration::ZERO;

    fn db(&self) -> &Db {
        &self.state.db
    }

    /// Reading an input lasts as long as it is large, so that an account may not take all lanes for it.
    async fn claim(&mut self) -> Result<Option<Claimed>, StoreError> {
        (self.place, self.execution) = (None, Execution::default());
        let full: Vec<String> = match self.phase {
            Phase::Load => self.loading.list_full(ACCOUNT_LOADERS).iter().map(AccountId::to_string).collect(),
            Phase::Execute => Vec::new(),
        };
        let mut conn = self.state.db.read().await?;
        let is_ready = job_leases::is_ready(&mut conn, self.phase, &full).await?;
        drop(conn);
        if !is_ready {
            return Ok(None);
        }
        let mut tx = self.state.db.begin(&Ctx::default()).await?;
        let claimed = match job_leases::claim(&mut tx, self.phase, &full).await {
            Ok(Some(claimed)) => claimed,
            Ok(None) => return Ok(None),
            Err(error) => {
                // A job that this release cannot read: with its lease it is in nobody's way for a while.
                tx.commit().await?;
                return Err(error);
            }
        };
        if self.phase == Phase::Load {
            match self.loading.take([(claimed.item.account, ACCOUNT_LOADERS)]) {
                Ok(place) => self.place = Some(place),
                // Another lane was faster: the claim is rolled back.
                Err(_) => return Ok(None),
            }
        }
        tx.commit().await?;
        Ok(Some(claimed))
    }

    async fn step(
        &mut self,
        claimed: &mut Claimed,
        stop: &CancellationToken,
    ) -> Result<Stepped, ServiceError> {
        match self.phase {
            Phase::Load => load::load(&self.state, claimed, stop).await,
            Phase::Execute => {
                yield_to_others(&self.state).await;
                let stepped = self.execution.step(&self.state, claimed, &mut self.step_size).await;
                if stepped.as_ref().is_err_and(execute::is_slow) {
                    self.step_size.slow_down();
                }
                stepped
            }
        }
    }

    async fn fail(&mut self, claimed: &mut Claimed, message: String) -> Result<Stepped, ServiceError> {
        execute::fail(&self.state, claimed, message).await
    }

    fn is_ours(&self, job: &Job) -> bool {
        self.phase == Phase::Execute || matches!(job.status, JobStatus::Enqueued | JobStatus::Starting)
    }

    async fn is_wanted(&mut self) -> Result<bool, StoreError> {
        job_leases::is_ready(&mut self.state.db.read().await?, self.phase, &[]).await
    }

    fn lost(&self) {
        self.state.metrics.leases_lost.inc();
    }

    fn failed(&self) {
        self.state.metrics.tries_failed.inc();
    }
}

/// Works on jobs until `stop`, then releases the jobs in progress.
pub async fn run(state: Arc<JobState>, stop: CancellationToken) {
    worker::take_over::<Lane>(&state.db).await;
    let mut lanes = JoinSet::new();
    let loading = Shares::new(LOADERS);
    for phase in [[Phase::Execute].repeat(EXECUTORS), [Phase::Load].repeat(LOADERS)].concat() {
        let (state, stop) = (state.clone(), stop.clone());
        let lane = Lane {
            state: state.clone(),
            phase,
            loading: loading.clone(),
            place: None,
            execution: Execution::default(),
            step_size: StepSize::new(&state.db),
        };
        lanes.spawn(async move { worker::run(lane, &state.wake, &stop).await });
    }
    lanes.spawn(async move { worker::watch("job", &stop, || stand(&state)).await });
    while let Some(ended) = lanes.join_next().await {
        if let Err(error) = ended {
            tracing::error!(%error, "a lane of job workers ended");
        }
    }
}

/// Shows how the jobs of all accounts stand.
async fn stand(state: &JobState) -> Result<(), StoreError> {
    let standing = job_leases::standing(&mut state.db.read().await?).await?;
    state.metrics.stand(&standing);
    state.metrics.looked();
    Ok(())
}

/// Back-pressure: requests of the API have the first right to a connection.
async fn yield_to_others(state: &JobState) {
    for _ in 0..MAX_YIELDS {
        let is_full =
            state.db.pools().iter().any(|pool| pool.most > 1 && pool.idle == 0 && pool.open >= pool.most);
        if !is_full {
            return;
        }
        tokio::time::sleep(YIELD).await;
    }
}
