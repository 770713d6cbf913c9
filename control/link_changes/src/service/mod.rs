//! Operations: one function each, called by HTTP handlers and workers alike.
//!
//! Functions fail when the database does; their docs list other errors only.

pub mod accept;
pub mod changes;
mod links;
pub mod purge;
pub mod steps;

use std::{sync::Arc, time::Duration};

use kernel::{
    batch_size::AdaptiveBatchSize,
    domain::{
        access::Actor,
        grant::Grant,
        subject::{Subject::Redirections, Verb},
    },
    error::CommonError,
    service::access::require,
};
use redirects::service::Redirects;
use tokio::sync::Notify;

use crate::error::ServiceError;

/// What operations and workers of changes need; one for each process.
pub struct LinkChangeState {
    /// What the operations on links need.
    pub redirects: Redirects,
    /// How long jobs are kept once they have ended; `None` is for ever.
    pub kept: Option<Duration>,
    /// How many links one step takes.
    pub batch_size: AdaptiveBatchSize,
    /// Wakes the worker.
    pub wake: Notify,
}

impl LinkChangeState {
    /// The state of a process.
    #[must_use]
    pub fn new(redirects: Redirects, kept: Option<Duration>) -> Arc<Self> {
        Arc::new(Self { redirects, kept, batch_size: AdaptiveBatchSize::default(), wake: Notify::new() })
    }
}

kernel::has_core!(LinkChangeState, redirects.core);

/// The grant of an operator for redirections: what a change of many needs, and no other key may.
///
/// # Errors
/// The key is no operator's, or its role lacks the permission.
fn require_operator(actor: &Actor, verb: Verb) -> Result<Grant, ServiceError> {
    if !actor.kind.is_operator() {
        return Err(CommonError::KeyKind(actor.kind).into());
    }
    require(actor, verb, Redirections)
}
