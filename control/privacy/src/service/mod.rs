//! Operations: one function each, called by HTTP handlers and workers alike.
//!
//! Functions fail when the database does; their docs list other errors only.

pub mod ages;
pub mod erasures;
mod results;
pub mod steps;

use std::sync::Arc;

use actions::service::ActionState;
use assessment::service::AssessmentState;
use tokio::sync::Notify;

use crate::metrics::ErasureMetrics;

/// What operations and workers of erasures need; one for each process.
pub struct PrivacyState {
    /// What the operations on actions need, with the scans by edges.
    pub actions: ActionState,
    /// What makes profiles again.
    pub assessment: AssessmentState,
    /// Wakes the worker.
    pub wake: Notify,
    /// How erasures stand.
    pub metrics: ErasureMetrics,
}

impl PrivacyState {
    /// The state of a process.
    #[must_use]
    pub fn new(assessment: AssessmentState) -> Arc<Self> {
        let actions = assessment.actions.clone();
        Arc::new(Self { actions, assessment, wake: Notify::new(), metrics: ErasureMetrics::default() })
    }
}

kernel::has_core!(PrivacyState, actions.core);
