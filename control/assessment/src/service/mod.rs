//! Operations: one function each, called by HTTP handlers and workers alike.
//!
//! Functions fail when the database does; their docs list other errors only.

pub use ::commissioning::service::*;

pub mod assessment;
pub mod cases;
pub mod observer;
pub mod report_photos;
pub mod reports;

use self::assessment::{groups::AssessmentGroups, observe::ScanSources};
use crate::{domain::device::DeviceKey, store::blobs::Blobs};

/// What the operations of assessment need.
#[derive(Clone)]
pub struct AssessmentState {
    /// What the operations on actions need.
    pub actions: ActionState,
    /// The bytes of photos.
    pub blobs: Blobs,
    /// Results, written with those that come at the same time.
    pub groups: AssessmentGroups,
    /// What tells the devices of scans apart.
    pub devices: DeviceKey,
}

impl AssessmentState {
    /// With a batcher of its own.
    #[must_use]
    pub fn new(actions: ActionState, blobs: Blobs) -> Self {
        let groups = AssessmentGroups::new(actions.core.clone());
        let devices = actions.core.secrets.device_key();
        Self { actions, blobs, groups, devices }
    }

    /// Where the scans of items come from, for callers that hold a connection.
    #[must_use]
    pub fn sources(&self) -> ScanSources<'_> {
        ScanSources { scans: &*self.actions.scans.reserved, devices: &self.devices }
    }
}

kernel::has_core!(AssessmentState, actions.core);
