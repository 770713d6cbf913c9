//! Jobs: states, transitions and counters.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::{
    id::{AccountId, ActionId, JobId, ProjectId},
    time::UnixMillis,
};

use super::{job_input::JobRequest, page::Position};

/// The one type of job that there is.
pub const ACTION_CREATION: &str = "ACTION_CREATION";

/// The one type of entry in a job's log.
pub const ERROR: &str = "ERROR";

// Spec gap: how many operations one job may hold is not shown.
/// Most operations of a job: more lines than the largest file has ids.
pub const MAX_OPERATIONS: u64 = 100_000_000;

shared::words! {
    /// The states of a job.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "SCREAMING_SNAKE_CASE")]
    pub enum JobStatus {
        /// Accepted, and waiting for a worker.
        Enqueued = "ENQUEUED",
        /// A worker reads the input.
        Starting = "STARTING",
        /// Operations are carried out.
        Executing = "EXECUTING",
        /// A cancel was asked for, and a worker may still be at it.
        Cancelling = "CANCELLING",
        /// Every operation succeeded.
        Completed = "COMPLETED",
        /// The job ran to its end, and at least one operation failed.
        CompletedWithFailures = "COMPLETED_WITH_FAILURES",
        /// It was stopped; what was created stays.
        Cancelled = "CANCELLED",
        /// The job as a whole could not run.
        Failed = "FAILED",
    } else ()
}

impl JobStatus {
    /// Whether nothing comes after it.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Enqueued | Self::Starting | Self::Executing | Self::Cancelling => false,
            Self::Completed | Self::CompletedWithFailures | Self::Cancelled | Self::Failed => true,
        }
    }
}

/// What happens to a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobEvent {
    /// A worker takes it up for the first time.
    Taken,
    /// Its input was read completely, and holds this many operations.
    Loaded(u64),
    /// This many operations were executed since, and this many of them failed.
    Worked {
        /// Operations that were carried out.
        done: u64,
        /// Those of them that failed.
        failed: u64,
    },
    /// Somebody asks to stop it.
    CancelAsked,
    /// The worker has released it after a cancel.
    Stopped,
    /// It cannot run, for this reason.
    Broken(String),
}

/// The event does not fit the job's state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a job that is {0} does not take this")]
pub struct Unfit(pub &'static str);

/// A state that a job came into, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// The state.
    pub status: JobStatus,
    /// When it was reached.
    pub timestamp: UnixMillis,
}

/// The counters of a job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    /// Operations to carry out; known once the input is read.
    pub requested: u64,
    /// Operations carried out so far, failed ones among them.
    pub done: u64,
    /// Operations that failed.
    pub failed: u64,
}

impl Progress {
    /// How much of the job is done, from 0 to 100; a job without operations is done once it has ended.
    #[must_use]
    pub fn percentage(self, status: JobStatus) -> f64 {
        if self.requested == 0 {
            return if status == JobStatus::Completed { 100.0 } else { 0.0 };
        }
        // Both are below 2^53.
        (self.done as f64 * 100.0 / self.requested as f64).min(100.0)
    }
}

/// A job.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// Order of insertion.
    pub seq: i64,
    /// Its account.
    pub account: AccountId,
    /// The project that it was created in.
    pub project: Option<ProjectId>,
    /// Its state.
    pub status: JobStatus,
    /// The states that it was in, oldest first; the last one is `status`.
    pub history: Vec<Step>,
    /// Its counters.
    pub progress: Progress,
    /// Why it failed as a whole.
    pub message: Option<String>,
    /// When it was accepted.
    pub created_at: UnixMillis,
    /// When it last moved on.
    pub updated_at: UnixMillis,
    /// When it reached its last state.
    pub completed_at: Option<UnixMillis>,
    /// The request; lists leave it out.
    pub request: Option<JobRequest>,
    /// Where the content of its file is, until that is read.
    pub blob: Option<String>,
}

/// An entry in the log of a job: an operation that failed.
#[derive(Debug, Clone, PartialEq)]
pub struct JobLog {
    /// The job.
    pub job: JobId,
    /// Its place in the list.
    pub position: Position,
    /// The Thng against which no action could be created, by the kind of id that was given.
    pub payload: Value,
    /// Why.
    pub message: String,
}

/// The jobs of all accounts by state, from the database.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Standing {
    /// Jobs that have not ended, by their state; a state without any may be absent.
    pub open: Vec<(JobStatus, u64)>,
    /// How long the job has waited that was served longest ago; 0 when none waits.
    pub waiting_seconds: f64,
}

impl Job {
    /// A job that was accepted at `now`.
    #[must_use]
    pub fn new(
        id: JobId,
        account: AccountId,
        project: Option<ProjectId>,
        request: JobRequest,
        blob: Option<String>,
        now: UnixMillis,
    ) -> Self {
        let progress = Progress { requested: request.input.listed().unwrap_or(0), done: 0, failed: 0 };
        let status = JobStatus::Enqueued;
        Self {
            id,
            seq: 0,
            account,
            project,
            status,
            history: vec![Step { status, timestamp: now }],
            progress,
            message: None,
            created_at: now,
            updated_at: now,
            completed_at: None,
            request: Some(request),
            blob,
        }
    }

    /// Its place in a list.
    #[must_use]
    pub const fn position(&self) -> Position {
        Position { at: self.created_at, seq: self.seq }
    }

    /// The job after something happened at `now`.
    ///
    /// # Errors
    /// [`Unfit`], and the job stays as it was.
    pub fn on(mut self, event: JobEvent, now: UnixMillis) -> Result<Self, Unfit> {
        use JobStatus::{
            Cancelled, Cancelling, Completed, CompletedWithFailures, Enqueued, Executing, Failed, Starting,
        };
        let unfit = Unfit(self.status.as_str());
        let next = match (self.status, event) {
            (Enqueued, JobEvent::Taken) => Starting,
            // Another worker continues where one was lost.
            (Starting, JobEvent::Taken) => Starting,
            (Starting, JobEvent::Loaded(requested)) => {
                self.progress = Progress { requested, done: 0, failed: 0 };
                if requested > 0 { Executing } else { Completed }
            }
            (Executing, JobEvent::Worked { done, failed }) => {
                let all = Progress {
                    requested: self.progress.requested,
                    done: self.progress.done.saturating_add(done),
                    failed: self.progress.failed.saturating_add(failed),
                };
                if failed > done || all.done > all.requested {
                    return Err(unfit);
                }
                self.progress = all;
                match (all.done == all.requested, all.failed) {
                    (false, _) => Executing,
                    (true, 0) => Completed,
                    (true, _) => CompletedWithFailures,
                }
            }
            (Enqueued | Starting | Executing, JobEvent::CancelAsked) => Cancelling,
            // Spec gap: a second cancel is not mentioned; it asks for what is under way.
            (Cancelling, JobEvent::CancelAsked) => Cancelling,
            (Cancelling, JobEvent::Stopped) => Cancelled,
            (Enqueued | Starting | Executing, JobEvent::Broken(message)) => {
                self.message = Some(message);
                Failed
            }
            (
                Enqueued
                | Starting
                | Executing
                | Cancelling
                | Completed
                | CompletedWithFailures
                | Cancelled
                | Failed,
                _,
            ) => return Err(unfit),
        };
        // The history stays in order even if the clock goes back.
        let now = self.history.last().map_or(now, |last| now.max(last.timestamp)).max(self.updated_at);
        self.updated_at = now;
        if next == Completed && self.status == Starting {
            // The transition table of the platform API has no direct way.
            self.history.push(Step { status: Executing, timestamp: now });
        }
        if next != self.status {
            self.history.push(Step { status: next, timestamp: now });
        }
        self.status = next;
        if next.is_terminal() {
            // The input is no longer read, so it may be deleted with its file.
            self.blob = None;
            self.completed_at = Some(now);
        }
        Ok(self)
    }
}

/// The key from which the ids of all actions of one job are derived.
#[must_use]
pub fn action_key(secret: &[u8; 32], job: JobId) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("waymark 2026-11 actions of jobs");
    hasher.update(secret).update(job.as_str().as_bytes());
    *hasher.finalize().as_bytes()
}

/// The id of the action of one entry. Its time is that of the job, a millisecond later for each entry, so that rows
/// are in the index in the order of the entries; 90 bits of it are unguessable; it is the same on a repeat.
#[must_use]
pub fn action_id(key: &[u8; 32], created_at: UnixMillis, index: u64) -> ActionId {
    let hash = blake3::keyed_hash(key, &index.to_be_bytes());
    let mut random = [0; 16];
    random.copy_from_slice(&hash.as_bytes()[..16]);
    ActionId::new(created_at.0.saturating_add_unsigned(index), random)
}

#[cfg(test)]
mod tests;
