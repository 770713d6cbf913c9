//! Operations: one function each, called by HTTP handlers and workers alike.
//!
//! Functions fail when the database does; their docs list other errors only.

pub use ::commissioning::service::*;

pub mod assessment;
pub mod cases;
pub mod observer;

use std::ops::Deref;

use self::assessment::groups::AssessmentGroups;

/// What the operations of assessment need.
#[derive(Debug, Clone)]
pub struct AssessmentState {
    /// What the operations on actions need.
    pub actions: ActionState,
    /// Results, written with those that come at the same time.
    pub groups: AssessmentGroups,
}

impl AssessmentState {
    /// With a batcher of its own.
    #[must_use]
    pub fn new(actions: ActionState) -> Self {
        let groups = AssessmentGroups::new(actions.core.clone());
        Self { actions, groups }
    }
}

impl Deref for AssessmentState {
    type Target = Core;

    fn deref(&self) -> &Core {
        &self.actions.core
    }
}

impl AsRef<Core> for AssessmentState {
    fn as_ref(&self) -> &Core {
        self
    }
}
