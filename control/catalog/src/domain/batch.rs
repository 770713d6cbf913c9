//! Batches: group the Thngs of one production run. Tasks belong to a batch.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::{id::BatchId, time::UnixMillis};

use super::{
    body::{self, Purpose},
    common::{Common, Stamp},
    members::Members,
    named::named,
};

/// The members of a batch beside its name; stored as one document.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct BatchDetails {
    /// What products and Thngs have too.
    #[serde(flatten)]
    pub common: Common,
}

/// A batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// Its id.
    pub id: BatchId,
    /// Order and times.
    pub stamp: Stamp,
    /// Its name.
    pub name: String,
    /// Everything else.
    pub details: BatchDetails,
}

/// The members of a create or update of a batch; `None` means not given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BatchChange {
    /// Its name, required on create.
    pub name: Option<String>,
    /// Everything else.
    pub details: BatchDetails,
}

impl Batch {
    /// The batch after a change at `now`.
    #[must_use]
    pub fn apply(self, change: BatchChange, now: UnixMillis) -> Self {
        let details = BatchDetails { common: self.details.common.merge(change.details.common) };
        Self { id: self.id, stamp: self.stamp.touch(now), name: change.name.unwrap_or(self.name), details }
    }
}

impl BatchChange {
    /// Reads the body of `POST /batches` and `PUT /batches/:id`.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value, purpose: Purpose) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let name = body::name(&mut members, purpose);
        let details = BatchDetails { common: body::common(&mut members) };
        members.finish(Some(Self { name, details }))
    }
}

named! {
    Batch: BatchId, BatchDetails, "batch", Batches;
}
