//! Workers of jobs: any number of processes, each with a few lanes.
//!
//! A lane takes the next job, works on it for a moment, and releases it. Jobs of all accounts progress side by side,
//! and a small new job is not delayed by one of millions. Jobs of a process that died are taken over as soon as the
//! lease has run out.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use platform::{Share, Shares};
use shared::id::AccountId;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    error::ServiceError,
    service::{
        JobState,
        jobs::{
            execute::{self, Execution, StepSize},
            load::{self, End},
        },
    },
    store::{
        Ctx, StoreError,
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

/// How long a lane works on a job while others wait.
const TURN: Duration = Duration::from_millis(250);

/// Poll interval without a wake-up.
const LOOK: Duration = Duration::from_millis(250);

/// Tries of a job that does not move on, each after a longer pause: some ten minutes together.
const MAX_FAILURES: u64 = 25;

/// Shortest and longest pause before a job that failed is tried again.
const MIN_PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Time between attempts to release a job.
const RELEASE: Duration = Duration::from_millis(250);

/// Time between two counts of jobs by state.
const STANDING: Duration = Duration::from_secs(5);

/// How long, and how often, a lane yields when every database connection is in use.
const YIELD: Duration = Duration::from_millis(20);
const MAX_YIELDS: u32 = 5;

/// Works on jobs until `stop`, then releases the jobs in progress.
pub async fn run(state: Arc<JobState>, stop: CancellationToken) {
    if let Err(error) = job_leases::free_all(&state.db).await {
        tracing::warn!(%error, "jobs of the previous process stay claimed until their leases expire");
    }
    let mut lanes = JoinSet::new();
    let loading = Shares::new(LOADERS);
    for phase in [[Phase::Execute].repeat(EXECUTORS), [Phase::Load].repeat(LOADERS)].concat() {
        lanes.spawn(lane(state.clone(), phase, loading.clone(), stop.clone()));
    }
    lanes.spawn(watch(state, stop));
    while let Some(ended) = lanes.join_next().await {
        if let Err(error) = ended {
            tracing::error!(%error, "a lane of job workers ended");
        }
    }
}

/// Shows how the jobs of all accounts stand.
async fn watch(state: Arc<JobState>, stop: CancellationToken) {
    loop {
        let standing = async { job_leases::standing(&mut state.db.read().await?).await };
        match standing.await {
            Ok(standing) => {
                state.metrics.stand(&standing);
                state.metrics.looked();
            }
            Err(error) => tracing::warn!(%error, "the jobs by state cannot be counted"),
        }
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(STANDING) => {}
        }
    }
}

async fn lane(state: Arc<JobState>, phase: Phase, loading: Shares<AccountId>, stop: CancellationToken) {
    let mut step_size = StepSize::new(&state.db);
    let mut failures = 0_u64;
    while !stop.is_cancelled() {
        // Registered before the query, so that a job that arrives in between is noticed.
        let woken = state.wake.notified();
        let wait = match run_once(&state, (phase, &loading), &mut step_size, &stop).await {
            Ok(true) => {
                failures = 0;
                continue;
            }
            Ok(false) => {
                failures = 0;
                LOOK
            }
            Err(error) => {
                failures += 1;
                tracing::warn!(%error, "jobs cannot be claimed");
                pause(failures)
            }
        };
        tokio::select! {
            () = stop.cancelled() => return,
            () = woken, if failures == 0 => {}
            () = tokio::time::sleep(wait) => {}
        }
    }
}

/// Claims a job and works on it for a time slice; returns whether there was one.
async fn run_once(
    state: &JobState,
    (phase, loading): (Phase, &Shares<AccountId>),
    step_size: &mut StepSize,
    stop: &CancellationToken,
) -> Result<bool, StoreError> {
    let Some((mut claimed, _place)) = claim(state, phase, loading).await? else { return Ok(false) };
    let ended = if claimed.failures > MAX_FAILURES {
        execute::give_up(state, &mut claimed).await
    } else {
        match phase {
            Phase::Load => load::load(state, &mut claimed, stop).await,
            Phase::Execute => work(state, &mut claimed, step_size, stop).await,
        }
    };
    let (id, status) = (claimed.job.id, claimed.job.status.as_str());
    let pause = match ended {
        Ok(End::Done) => {
            tracing::info!(job = %id, status, "a job has moved on");
            state.wake.notify_waiters();
            Duration::ZERO
        }
        Ok(End::Paused) => Duration::ZERO,
        // The new holder decides; if the job is only cancelled, or its account suspended, it is free at once.
        Ok(End::Lost) => Duration::ZERO,
        Err(error) => {
            if execute::is_slow(&error) {
                step_size.slow_down();
            }
            tracing::warn!(%error, job = %id, failures = claimed.failures, "a job could not go on");
            state.metrics.tries_failed.inc();
            pause(claimed.failures)
        }
    };
    if !let_go(state, &claimed, pause, stop).await? {
        tracing::info!(job = %id, "a job was taken by another worker");
        state.metrics.leases_lost.inc();
    }
    Ok(true)
}

/// Releases a job; returns whether it was still held. Retries until the lease runs out if the database is down, for
/// example during its restart, because the job would otherwise stand still until then.
async fn let_go(
    state: &JobState,
    claimed: &Claimed,
    pause: Duration,
    stop: &CancellationToken,
) -> Result<bool, StoreError> {
    let begun = Instant::now();
    loop {
        let released = async {
            let mut tx = state.db.begin(&Ctx::default()).await?;
            let released = job_leases::release(&mut tx, claimed, pause).await?;
            tx.commit().await?;
            Ok(released)
        };
        match released.await {
            Err(error) if begun.elapsed() < job_leases::LEASE && !stop.is_cancelled() => {
                tracing::debug!(%error, job = %claimed.job.id, "a job is still held");
                tokio::time::sleep(RELEASE).await;
            }
            ended => return ended,
        }
    }
}

/// Claims a job. Reading an input lasts as long as it is large, so that an account may not take all lanes for it.
async fn claim(
    state: &JobState,
    phase: Phase,
    loading: &Shares<AccountId>,
) -> Result<Option<(Claimed, Option<Share<AccountId>>)>, StoreError> {
    let full: Vec<String> = match phase {
        Phase::Load => loading.list_full(ACCOUNT_LOADERS).iter().map(AccountId::to_string).collect(),
        Phase::Execute => Vec::new(),
    };
    let mut conn = state.db.read().await?;
    let is_ready = job_leases::is_ready(&mut conn, phase, &full).await?;
    drop(conn);
    if !is_ready {
        return Ok(None);
    }
    let mut tx = state.db.begin(&Ctx::default()).await?;
    let Some(claimed) = job_leases::claim(&mut tx, phase, &full).await? else { return Ok(None) };
    let place = match phase {
        Phase::Execute => None,
        Phase::Load => match loading.take([(claimed.job.account, ACCOUNT_LOADERS)]) {
            Ok(place) => Some(place),
            // Another lane was faster: the claim is rolled back.
            Err(_) => return Ok(None),
        },
    };
    tx.commit().await?;
    Ok(Some((claimed, place)))
}

/// Executes operations until the job ends, the time slice is over and another job waits, or `stop`.
async fn work(
    state: &JobState,
    claimed: &mut Claimed,
    step_size: &mut StepSize,
    stop: &CancellationToken,
) -> Result<End, ServiceError> {
    let mut execution = Execution::new(state, claimed.clone());
    let mut begun = Instant::now();
    let ended = loop {
        if stop.is_cancelled() {
            break Ok(End::Paused);
        }
        yield_to_others(state).await;
        match execution.step(step_size).await {
            Ok(None) => {}
            Ok(Some(end)) => break Ok(end),
            Err(error) => break Err(error),
        }
        if begun.elapsed() >= TURN {
            if job_leases::is_ready(&mut state.db.read().await?, Phase::Execute, &[]).await? {
                break Ok(End::Paused);
            }
            begun = Instant::now();
        }
    };
    claimed.clone_from(execution.claimed());
    ended
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

fn pause(failures: u64) -> Duration {
    let doublings = u32::try_from(failures.saturating_sub(1)).unwrap_or(u32::MAX).min(16);
    (MIN_PAUSE * 2_u32.pow(doublings)).min(MAX_PAUSE)
}
