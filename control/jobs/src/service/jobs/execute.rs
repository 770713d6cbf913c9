//! Second phase of a job: its operations, in steps of one transaction each.
//!
//! A step writes the actions, their event, the log of failures, and the progress, or nothing. So every entry takes
//! effect once, and the counters match the rows.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use shared::id::AccountId;

use super::{
    load::{Stepped, write},
    targets,
};
use crate::{
    domain::{
        access::Actor,
        event::Quiet,
        job::{Job, JobEvent, JobStatus, action_id, action_key},
        job_input::{JobRequest, OptionType},
        job_lines::Entry,
    },
    error::{CommonError, ServiceError},
    service::{
        JobState,
        action_creation::{Circumstances, alike},
    },
    store::{
        Ctx, Db, StoreError, Tx, job_chunks,
        job_chunks::Chunk,
        job_leases::{self, Claimed},
        job_logs::{self, NewLog},
        thngs::Target,
    },
};

/// Operations of the first step; doubled three times it is a whole part of the input.
const FIRST_SIZE: usize = super::load::CHUNK_ENTRIES / 8;
/// Fewest operations of a step.
const MIN_SIZE: usize = 20;

/// Adaptive number of operations per step: as many as fit its time.
#[derive(Debug, Clone)]
pub struct StepSize {
    size: usize,
    /// How long a step should hold the database: on SQLite all others wait for it.
    time: Duration,
}

impl StepSize {
    /// The initial size for a database.
    #[must_use]
    pub fn new(db: &Db) -> Self {
        let time = match db {
            // Each has its round trips and one fsync: short ones would cost a tenth of all the time.
            Db::Pg(_) => Duration::from_millis(500),
            Db::Sqlite { .. } => Duration::from_millis(60),
        };
        Self { size: FIRST_SIZE, time }
    }

    /// Adapts to the duration of a step with this many operations.
    fn learn(&mut self, size: usize, took: Duration) {
        if took > self.time {
            self.size = (self.size / 2).max(MIN_SIZE);
        } else if took * 2 < self.time && size >= self.size {
            self.size = (self.size * 2).min(super::load::CHUNK_ENTRIES);
        }
    }

    /// Learns that a step took too long for the database.
    pub fn slow_down(&mut self) {
        self.size = (self.size / 4).max(MIN_SIZE);
    }
}

/// What is at hand of the input of a claimed job; nothing at first.
#[derive(Default)]
pub struct Execution {
    chunk: Option<Arc<Chunk>>,
    ahead: Option<Ahead>,
}

/// A step whose Thngs are found, while the one before it was written.
struct Ahead {
    chunk: Arc<Chunk>,
    /// Place of its first entry in the whole input.
    first: u64,
    found: Vec<Result<Target, String>>,
}

impl Execution {
    /// One step.
    ///
    /// # Errors
    /// The database failed; nothing of the step was done, or all of it.
    pub async fn step(
        &mut self,
        state: &JobState,
        claimed: &mut Claimed,
        step_size: &mut StepSize,
    ) -> Result<Stepped, ServiceError> {
        if claimed.item.status == JobStatus::Cancelling {
            let job = claimed.item.clone().on(JobEvent::Stopped, state.clock.now())?;
            return write(state, claimed, job).await;
        }
        let Some(request) = claimed.item.request.clone() else {
            return Err(ServiceError::Internal("a job without its request".to_owned()));
        };
        let job = &claimed.item;
        let (account, seq, first) = (job.account, job.seq, job.progress.done);
        let ready = match self.ahead.take().filter(|ahead| ahead.first == first) {
            Some(ahead) => Some(ahead),
            None => find(state, account, seq, &request, (self.chunk.take(), first, step_size.size)).await?,
        };
        // Without any, somebody else has carried it out to the end.
        let Some(Ahead { chunk, found, .. }) = ready else { return Ok(Stepped::Lost) };
        let (size, next) = (found.len(), first + found.len() as u64);
        let begun = Instant::now();
        // Reading is done beside writing: on Postgres by another connection and core.
        let (end, ahead) = tokio::join!(
            async {
                let end = carry_out(state, claimed, &request, &chunk, found).await;
                (end, begun.elapsed())
            },
            find(state, account, seq, &request, (Some(chunk.clone()), next, step_size.size)),
        );
        let (end, took) = end;
        step_size.learn(size, took);
        self.chunk = Some(chunk);
        // A prefetch that failed is repeated, and reported, when its step comes.
        self.ahead = ahead.ok().flatten();
        end
    }
}

async fn carry_out(
    state: &JobState,
    claimed: &mut Claimed,
    request: &JobRequest,
    chunk: &Chunk,
    found: Vec<Result<Target, String>>,
) -> Result<Stepped, ServiceError> {
    let job = &claimed.item;
    let (first, done) = (job.progress.done, found.len() as u64);
    let entry = |place: usize| {
        let place = (first - chunk.first).saturating_add(place as u64);
        usize::try_from(place).ok().and_then(|place| chunk.entries.get(place))
    };
    let mut tx = state.db.begin(&Ctx::default()).await?;
    if job_leases::hold(&mut tx, claimed).await? != Some(first) {
        return Ok(Stepped::Lost);
    }
    let faults = create(state, job, &mut tx, request, found).await?;
    let payload = |place: usize| match entry(place) {
        Some(Entry::Id(text) | Entry::Bad { text, .. }) => {
            request.input.payload(text, request.default_domain.as_deref())
        }
        None => serde_json::Value::Null,
    };
    let now = state.clock.now();
    let logs: Vec<NewLog> = faults
        .into_iter()
        .map(|(place, message)| NewLog { entry: first + place as u64, payload: payload(place), message })
        .collect();
    if !logs.is_empty() {
        job_logs::insert(&mut tx, job.account, job.id, now, &logs).await?;
    }
    if first + done == chunk.first + chunk.entries.len() as u64 {
        job_chunks::delete(&mut tx, job.seq, chunk.first).await?;
    }
    let after = job.clone().on(JobEvent::Worked { done, failed: logs.len() as u64 }, now)?;
    if !job_leases::write(&mut tx, claimed, &after).await? {
        return Ok(Stepped::Lost);
    }
    tx.commit().await?;
    state.readers.wake_events();
    state.metrics.moved(job, &after);
    claimed.item = after;
    Ok(if claimed.item.status.is_terminal() { Stepped::Settled } else { Stepped::Moved })
}

/// Creates the actions of a step; returns the entries that failed, by their place, in order.
async fn create(
    state: &JobState,
    job: &Job,
    tx: &mut Tx,
    request: &JobRequest,
    found: Vec<Result<Target, String>>,
) -> Result<Vec<(usize, String)>, ServiceError> {
    let key = action_key(&state.secrets.scan_id, job.id);
    let (mut faults, mut places, mut thngs) = (Vec::new(), Vec::new(), Vec::new());
    for (place, target) in found.into_iter().enumerate() {
        match target {
            Ok(target) => {
                let index = job.progress.done + place as u64;
                places.push(place);
                thngs.push((action_id(&key, job.created_at, index), target));
            }
            Err(fault) => faults.push((place, fault)),
        }
    }
    let actor = Actor::operator(job.account, request.operator.clone());
    let project = job.project.map(|id| id.to_string());
    let around = Circumstances { project: project.as_deref(), ..Circumstances::default() };
    let refused = match request.draft() {
        Ok(draft) => alike::create(&state.actions, tx, &actor, around, &draft, quiet(request), &thngs).await,
        Err(faults) => Err(CommonError::Faults(faults).into()),
    };
    match refused {
        Ok(refused) => {
            let place = |at: usize| places.get(at).copied().unwrap_or_default();
            faults.extend(refused.into_iter().map(|(at, fault)| (place(at), fault)));
        }
        // The type or a place went while the job ran: no entry can be carried out any more.
        Err(ServiceError::Refused { errors, .. }) => {
            let fault = errors.join(" ");
            faults.extend(places.into_iter().map(|place| (place, fault.clone())));
        }
        Err(error) => return Err(error),
    }
    faults.sort_unstable_by_key(|(place, _)| *place);
    Ok(faults)
}

/// The entries of a job from `first` on, at most `size` of one part, with the Thngs that they name; `None` when
/// none are left. `chunk` is the part that was at hand before.
///
/// It takes time and changes nothing, so it happens outside of the transaction, which may hold the only writer.
async fn find(
    state: &JobState,
    account: AccountId,
    job: i64,
    request: &JobRequest,
    (chunk, first, size): (Option<Arc<Chunk>>, u64, usize),
) -> Result<Option<Ahead>, ServiceError> {
    let end = |chunk: &Chunk| chunk.first + chunk.entries.len() as u64;
    let mut conn = state.db.read().await?;
    let chunk = match chunk.filter(|chunk| (chunk.first..end(chunk)).contains(&first)) {
        Some(chunk) => chunk,
        None => {
            // It begins at `first`, or before it: within a part that was carried out in steps.
            let from = first.saturating_sub(super::load::CHUNK_ENTRIES as u64 - 1);
            let mut found = job_chunks::find_next(&mut conn, job, from).await?;
            while let Some(before) = found.take_if(|chunk| end(chunk) <= first) {
                found = job_chunks::find_next(&mut conn, job, end(&before)).await?;
            }
            match found {
                Some(chunk) => Arc::new(chunk),
                None => return Ok(None),
            }
        }
    };
    let entries =
        first.checked_sub(chunk.first).and_then(|at| chunk.entries.get(usize::try_from(at).ok()?..));
    let Some(entries) = entries.filter(|entries| !entries.is_empty()) else { return Ok(None) };
    let entries = entries.get(..size).unwrap_or(entries);
    let found = targets::resolve(&mut conn, account, request, entries).await?;
    Ok(Some(Ahead { chunk, first, found }))
}

/// The kinds of subscribers that do not receive the actions of a job.
fn quiet(request: &JobRequest) -> Quiet {
    Quiet {
        notifications: request.excludes(OptionType::SingleResourceNotification),
        reactions: request.excludes(OptionType::SingleResourceReactions),
    }
}

/// Ends a job that cannot be carried out.
pub async fn fail(state: &JobState, claimed: &mut Claimed, message: String) -> Result<Stepped, ServiceError> {
    let event = match claimed.item.status {
        JobStatus::Cancelling => JobEvent::Stopped,
        JobStatus::Enqueued
        | JobStatus::Starting
        | JobStatus::Executing
        | JobStatus::Completed
        | JobStatus::CompletedWithFailures
        | JobStatus::Cancelled
        | JobStatus::Failed => JobEvent::Broken(message),
    };
    let job = claimed.item.clone().on(event, state.clock.now())?;
    write(state, claimed, job).await
}

/// Whether an error means that the database was too slow for the step.
#[must_use]
pub fn is_slow(error: &ServiceError) -> bool {
    matches!(error, ServiceError::Store(StoreError::Timeout))
}
