//! Operations: one function each, called by HTTP handlers and workers alike.
//!
//! Functions fail when the database does; their docs list other errors only.

pub use ::actions::service::*;

pub mod jobs;

use std::{sync::Arc, time::Duration};

use tokio::sync::Notify;

use crate::{metrics::JobMetrics, store::blobs::Blobs};

/// What operations and workers of jobs need; one for each process.
pub struct JobState {
    /// What the operations on actions need.
    pub actions: ActionState,
    /// The bytes of files.
    pub blobs: Blobs,
    /// Notified when a job may be due, so that workers of this process need not poll.
    pub wake: Notify,
    /// What its workers counted.
    pub metrics: JobMetrics,
    /// How long jobs are kept once they have ended; `None` is for ever.
    pub kept: Option<Duration>,
}

impl JobState {
    /// With counters of its own; shared by handlers and workers.
    #[must_use]
    pub fn new(actions: ActionState, blobs: Blobs, kept: Option<Duration>) -> Arc<Self> {
        Arc::new(Self { actions, blobs, wake: Notify::new(), metrics: JobMetrics::default(), kept })
    }
}

kernel::has_core!(JobState, actions.core);
