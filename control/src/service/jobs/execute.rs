//! The second part of a job's life: its operations, step by step, each in one transaction (design: push, 7).
//!
//! A step writes the actions, their event, the log of what failed, and how far the job is,
//! or nothing of it: so every entry takes effect once, and the counters are those of the rows.

use std::time::{Duration, Instant};

use shared::problem::Code;

use super::{
    actor_of,
    load::{End, write},
    targets,
};
use crate::{
    domain::{
        event::Quiet,
        job::{JobEvent, JobStatus, action_id, action_key},
        job_input::{JobRequest, OptionType},
        job_lines::Entry,
    },
    error::ServiceError,
    service::{
        App,
        action_creation::{Circumstances, alike},
    },
    store::{
        Db, StoreError, Tx, job_chunks,
        job_chunks::Chunk,
        job_leases::{self, Claimed},
        job_logs::{self, NewLog},
        thngs::Target,
    },
};

/// Operations of the first step.
const FIRST_SIZE: usize = 500;
/// Fewest operations of a step.
const MIN_SIZE: usize = 20;

/// How many operations a step shall have: as many as fit its time.
#[derive(Debug, Clone)]
pub struct Pace {
    size: usize,
    /// How long a step should hold the database: on SQLite all others wait for it.
    time: Duration,
}

impl Pace {
    /// A pace for a database.
    #[must_use]
    pub fn new(db: &Db) -> Self {
        let time = match db {
            Db::Pg(_) => Duration::from_millis(300),
            Db::Sqlite { .. } => Duration::from_millis(60),
        };
        Self { size: FIRST_SIZE, time }
    }

    /// Learns from a step of so many operations.
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

/// A job in the hands of a worker, and the part of its input at hand.
pub struct Execution<'a> {
    app: &'a App,
    claimed: Claimed,
    chunk: Option<Chunk>,
}

impl<'a> Execution<'a> {
    /// Work on a job that was claimed for it.
    #[must_use]
    pub const fn new(app: &'a App, claimed: Claimed) -> Self {
        Self { app, claimed, chunk: None }
    }

    /// The claim.
    #[must_use]
    pub const fn claimed(&self) -> &Claimed {
        &self.claimed
    }

    /// One step; `None` when there are more.
    ///
    /// # Errors
    /// The database failed; nothing of the step was done, or all of it.
    pub async fn step(&mut self, pace: &mut Pace) -> Result<Option<End>, ServiceError> {
        if self.claimed.job.status == JobStatus::Cancelling {
            let job = self.claimed.job.clone().on(JobEvent::Stopped, self.app.clock.now())?;
            return Ok(Some(if write(self.app, &mut self.claimed, job).await? {
                End::Done
            } else {
                End::Lost
            }));
        }
        let Some(request) = self.claimed.job.request.clone() else {
            return Err(ServiceError::Internal("a job without its request".to_owned()));
        };
        let done = self.claimed.job.progress.done;
        let chunk = match self.chunk.take() {
            Some(chunk) if done < chunk.first + chunk.entries.len() as u64 => chunk,
            Some(_) | None => {
                let mut conn = self.app.db.read().await?;
                match job_chunks::find_next(&mut conn, self.claimed.job.seq).await? {
                    Some(chunk) => chunk,
                    // Somebody else has carried it out to the end.
                    None => return Ok(Some(End::Lost)),
                }
            }
        };
        let entries =
            usize::try_from(done.saturating_sub(chunk.first)).ok().and_then(|at| chunk.entries.get(at..));
        let entries = match entries {
            Some(entries) if done >= chunk.first && !entries.is_empty() => entries,
            Some(_) | None => return Ok(Some(End::Lost)),
        };
        let size = entries.len().min(pace.size);
        let begun = Instant::now();
        let end = self.carry_out(&request, entries.get(..size).unwrap_or(entries), &chunk).await?;
        pace.learn(size, begun.elapsed());
        self.chunk = Some(chunk);
        Ok(end)
    }

    async fn carry_out(
        &mut self,
        request: &JobRequest,
        entries: &[Entry],
        chunk: &Chunk,
    ) -> Result<Option<End>, ServiceError> {
        let (app, job) = (self.app, &self.claimed.job);
        let first = job.progress.done;
        // What takes time and changes nothing happens before the transaction: it may hold the only writer.
        let mut conn = app.db.read().await?;
        let found = targets::resolve(&mut conn, job.account, &request.input, entries).await?;
        drop(conn);
        let mut tx = app.db.begin().await?;
        if job_leases::hold(&mut tx, &self.claimed).await? != Some(first) {
            return Ok(Some(End::Lost));
        }
        let faults = self.create(&mut tx, request, found).await?;
        let payload = |place: usize| match entries.get(place) {
            Some(Entry::Id(text) | Entry::Bad { text, .. }) => request.input.payload(text),
            None => serde_json::Value::Null,
        };
        let now = app.clock.now();
        let logs: Vec<NewLog> = faults
            .into_iter()
            .map(|(place, message)| NewLog { entry: first + place as u64, payload: payload(place), message })
            .collect();
        if !logs.is_empty() {
            job_logs::insert(&mut tx, job.account, job.id, now, &logs).await?;
        }
        let done = entries.len() as u64;
        if first + done == chunk.first + chunk.entries.len() as u64 {
            job_chunks::delete(&mut tx, job.seq, chunk.first).await?;
        }
        let after = job.clone().on(JobEvent::Worked { done, failed: logs.len() as u64 }, now)?;
        if !job_leases::write(&mut tx, &self.claimed, &after).await? {
            return Ok(Some(End::Lost));
        }
        tx.commit().await?;
        app.feed.wake();
        let is_over = after.status.is_terminal();
        self.claimed.job = after;
        Ok(is_over.then_some(End::Done))
    }

    /// Creates the actions of a step; gives the entries that failed, by their place, in order.
    async fn create(
        &self,
        tx: &mut Tx,
        request: &JobRequest,
        found: Vec<Result<Target, String>>,
    ) -> Result<Vec<(usize, String)>, ServiceError> {
        let job = &self.claimed.job;
        let key = action_key(&self.app.secrets.scan_id, job.id);
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
        let actor = actor_of(job);
        let project = job.project.map(|id| id.to_string());
        let around = Circumstances { project: project.as_deref(), ..Circumstances::default() };
        let refused = match request.draft() {
            Ok(draft) => alike::create(self.app, tx, &actor, around, &draft, quiet(request), &thngs).await,
            Err(faults) => Err(ServiceError::Refused { code: Code::Invalid, errors: faults }),
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
}

/// Who is not told of the actions of a job.
fn quiet(request: &JobRequest) -> Quiet {
    Quiet {
        notifications: request.excludes(OptionType::SingleResourceNotification),
        reactions: request.excludes(OptionType::SingleResourceReactions),
    }
}

/// Ends a job that could not be worked on however often it was tried.
///
/// # Errors
/// The database failed.
pub async fn give_up(app: &App, claimed: &mut Claimed) -> Result<End, ServiceError> {
    let message =
        format!("It was tried {} times and never went on; the service's log says why.", claimed.failures);
    let event = match claimed.job.status {
        JobStatus::Cancelling => JobEvent::Stopped,
        JobStatus::Enqueued
        | JobStatus::Starting
        | JobStatus::Executing
        | JobStatus::Completed
        | JobStatus::CompletedWithFailures
        | JobStatus::Cancelled
        | JobStatus::Failed => JobEvent::Broken(message),
    };
    let job = claimed.job.clone().on(event, app.clock.now())?;
    Ok(if write(app, claimed, job).await? { End::Done } else { End::Lost })
}

/// Whether an error says that the database was too slow for the step.
#[must_use]
pub fn is_slow(error: &ServiceError) -> bool {
    matches!(error, ServiceError::Store(StoreError::Timeout))
}
