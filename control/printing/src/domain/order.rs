//! Print orders: how far they are, and what became of them.

use kernel::domain::{common::Stamp, page::Position};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with_macros::skip_serializing_none;
use shared::{
    id::{AccountId, JobId},
    time::UnixMillis,
};

use super::{input::Input, order_draft::WaitForEdges, reprint::Reprint, serials::Serials};

shared::words! {
    /// How an order stands.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Status {
        /// Nobody has begun.
        Waiting = "waiting",
        /// Its codes are collected, or made.
        Making = "making",
        /// Its codes are drawn.
        Rendering = "rendering",
        /// Edges are waited for, and the files are written.
        Publishing = "publishing",
        /// The files are there.
        Complete = "complete",
        /// It cannot be carried out; what was made stays.
        Failed = "failed",
        /// Somebody stopped it; what was made stays.
        Cancelled = "cancelled",
    } else UnknownStatus
}

impl Status {
    /// Whether nothing comes after it.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::Waiting | Self::Making | Self::Rendering | Self::Publishing => false,
            Self::Complete | Self::Failed | Self::Cancelled => true,
        }
    }
}

/// A text that is no status of an order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no status of a print order")]
pub struct UnknownStatus;

/// What a worker does next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Stage {
    /// Notes the codes that a filter finds.
    Collect,
    /// Reads the codes of a file.
    Read,
    /// Makes Things and links.
    Make,
    /// Draws a chunk.
    Render,
    /// Waits for edges.
    Publish,
    /// Joins the chunks.
    Assemble,
    /// Removes chunks and notes.
    Clear,
}

impl Stage {
    /// Whether a process without the writer of links and without edges can do it.
    #[must_use]
    pub const fn is_drawing(self) -> bool {
        match self {
            Self::Collect | Self::Read | Self::Render | Self::Assemble | Self::Clear => true,
            Self::Make | Self::Publish => false,
        }
    }
}

/// How far the edges were when an order was released.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct EdgeReport {
    /// The revision waited for.
    pub rev: u64,
    /// Edges that held the links.
    pub acked: usize,
    /// Edges that there were.
    pub members: usize,
    /// Edges that did not hold them.
    pub lagging: Vec<String>,
    /// Edges that are known, but had not reported for a while.
    pub unreachable: Vec<String>,
    /// Whether more may lag than are named.
    pub incomplete: bool,
}

/// A file of an order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredFile {
    /// Its name.
    pub name: String,
    /// Its media type.
    pub content_type: String,
    /// Where its bytes are.
    pub blob: String,
    /// How many.
    pub size_bytes: u64,
    /// The start of their BLAKE3 hash.
    pub etag: String,
}

/// Everything else; stored as one document.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Details {
    /// `source` as it was sent.
    pub source: Value,
    /// What is drawn, with every default filled in.
    pub spec: Map<String, Value>,
    /// Whether edges are waited for.
    pub wait: WaitForEdges,
    /// Id of the operator who asked.
    pub operator: String,
    /// What serials are made, with the number of the first one.
    pub serials: Option<Serials>,
    /// The file that names its codes, until it was read.
    pub input: Option<Input>,
    /// Of which order it prints codes again.
    pub reprint: Option<Reprint>,
    /// What comes next.
    pub stage: Stage,
    /// Codes of the order; for a filter those that it found first, until all are noted.
    pub codes: u64,
    /// Codes that were noted so far.
    pub made: u64,
    /// Codes that were drawn so far.
    pub rendered: u64,
    /// Where a filter goes on.
    pub after: Option<(i64, i64)>,
    /// Chunks that were drawn.
    #[serde(default)]
    pub chunks: u64,
    /// Bytes of these chunks, which count for the quota of stored bytes until they are joined.
    #[serde(default)]
    pub chunk_bytes: u64,
    /// When the wait for edges began.
    pub waits_since: Option<UnixMillis>,
    /// How far the edges are.
    pub edges: Option<EdgeReport>,
    /// Why it failed.
    pub message: Option<String>,
    /// Its files; none after they were removed.
    #[serde(default)]
    pub files: Vec<StoredFile>,
    /// When they were removed.
    pub files_removed_at: Option<UnixMillis>,
}

impl Details {
    /// Bytes of its files, which count for the quota of stored bytes.
    #[must_use]
    pub fn file_bytes(&self) -> u64 {
        self.files.iter().fold(0, |sum, file| sum.saturating_add(file.size_bytes))
    }

    /// Bytes that it keeps now: of its files, and of chunks that are not joined.
    #[must_use]
    pub fn stored_bytes(&self) -> u64 {
        self.file_bytes().saturating_add(self.chunk_bytes)
    }
}

/// A print order.
#[derive(Debug, Clone, PartialEq)]
pub struct Order {
    /// Its id.
    pub id: JobId,
    /// The account.
    pub account: AccountId,
    /// What people call it; may be empty.
    pub name: String,
    /// Order and times.
    pub stamp: Stamp,
    /// How it stands.
    pub status: Status,
    /// When it ended.
    pub completed_at: Option<UnixMillis>,
    /// Until when its files are kept, if they are removed some day.
    pub files_until: Option<UnixMillis>,
    /// Everything else.
    pub details: Details,
}

impl Order {
    /// Its place in a list.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.stamp.position()
    }

    /// It, as it is in another stage.
    #[must_use]
    pub fn at(mut self, stage: Stage, now: UnixMillis) -> Self {
        self.details.stage = stage;
        self.status = match stage {
            Stage::Collect | Stage::Read | Stage::Make => Status::Making,
            Stage::Render => Status::Rendering,
            Stage::Publish | Stage::Assemble | Stage::Clear => Status::Publishing,
        };
        self.touched(now)
    }

    /// It, as it has moved on.
    #[must_use]
    pub fn touched(mut self, now: UnixMillis) -> Self {
        self.stamp = self.stamp.touch(now);
        self
    }

    /// It, as it has ended.
    #[must_use]
    pub fn ended(mut self, status: Status, message: Option<String>, now: UnixMillis) -> Self {
        self.details.message = message;
        self.status = status;
        let ended = self.touched(now);
        Self { completed_at: Some(ended.stamp.updated_at), ..ended }
    }

    /// How much is done, from 0 to 100. Making and drawing count half each where Things are made.
    #[must_use]
    pub fn percentage(&self) -> f64 {
        if self.status == Status::Complete {
            return 100.0;
        }
        let share = |done: u64| done as f64 / self.details.codes.max(1) as f64;
        let done = match self.details.serials {
            Some(_) => (share(self.details.made) + share(self.details.rendered)) / 2.0,
            None => share(self.details.rendered),
        };
        // The files are still to be written.
        (done * 99.0).clamp(0.0, 99.0)
    }
}

/// How the orders of all accounts stand.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Standing {
    /// Orders that have not ended.
    pub open: u64,
    /// When the oldest of them was asked for.
    pub oldest: UnixMillis,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn order() -> Order {
        let details = json!({"source": {"filter": "tags=a"}, "spec": {}, "wait": "report", "operator": "o",
            "stage": "render", "codes": 10, "made": 10, "rendered": 5});
        Order {
            id: JobId::new(1, [1; 16]),
            account: AccountId::new(1, [2; 16]),
            name: String::new(),
            stamp: Stamp::new(UnixMillis(5)),
            status: Status::Rendering,
            completed_at: None,
            files_until: None,
            details: serde_json::from_value(details).unwrap(),
        }
    }

    #[test]
    fn a_status_has_its_name_and_a_stage_its_status() {
        for status in Status::ALL {
            assert_eq!(status.as_str().parse(), Ok(status));
        }
        assert_eq!("done".parse::<Status>(), Err(UnknownStatus));
        for (stage, status) in [
            (Stage::Collect, Status::Making),
            (Stage::Read, Status::Making),
            (Stage::Make, Status::Making),
            (Stage::Render, Status::Rendering),
            (Stage::Publish, Status::Publishing),
            (Stage::Assemble, Status::Publishing),
            (Stage::Clear, Status::Publishing),
        ] {
            let order = order().at(stage, UnixMillis(9));
            assert_eq!((order.status, order.stamp.updated_at), (status, UnixMillis(9)), "{stage:?}");
        }
        let ended = order().ended(Status::Failed, Some("why".to_owned()), UnixMillis(7));
        assert_eq!(ended.completed_at, Some(UnixMillis(7)));
        assert!(ended.status.is_terminal() && ended.details.message.as_deref() == Some("why"));
    }

    #[test]
    fn progress_is_complete_only_with_the_files() {
        let mut order = order();
        assert_eq!(order.percentage(), 49.5);
        order.details.rendered = 10;
        assert_eq!(order.percentage(), 99.0);
        assert_eq!(order.clone().ended(Status::Complete, None, UnixMillis(9)).percentage(), 100.0);
        order.details.codes = 0;
        assert_eq!(order.percentage(), 99.0);
    }
}
