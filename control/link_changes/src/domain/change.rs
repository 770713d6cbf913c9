//! Changes of many links and their undoing: how far they are, and what became of them.

use kernel::domain::{
    access::{Actor, ActorKind},
    common::Stamp,
    page::Position,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with_macros::skip_serializing_none;
use shared::{
    id::{AccountId, JobId, ProjectId},
    time::UnixMillis,
};

/// How long the former values of a change are kept: 30 days.
pub const UNDO_MS: i64 = 30 * 24 * 60 * 60 * 1_000;

/// How long a change waits for an approval: 30 days, since an undo that waits keeps the former values of its change.
pub const APPROVAL_MS: i64 = UNDO_MS;

/// Conflicts of a change that are kept, each with its reason; all are counted. It is about 2 MB, and more than anybody reads: a
/// million links of a change may be conflicts.
pub const MAX_LISTED: u64 = 10_000;

/// A text that names no state and no type of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no state or type of a change of links")]
pub struct Unknown;

shared::words! {
    /// How a change stands.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Status {
        /// A second operator must approve it.
        AwaitingApproval = "awaitingApproval",
        /// Nobody has begun.
        Waiting = "waiting",
        /// Links are changed.
        Running = "running",
        /// All links were looked at.
        Complete = "complete",
        /// It cannot be carried out; what was changed stays.
        Failed = "failed",
        /// Somebody stopped it; what was changed stays.
        Cancelled = "cancelled",
    } else Unknown
}

impl Status {
    /// Whether nothing comes after it.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        match self {
            Self::AwaitingApproval | Self::Waiting | Self::Running => false,
            Self::Complete | Self::Failed | Self::Cancelled => true,
        }
    }
}

shared::words! {
    /// What a job does with links.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum Kind {
        /// It changes them.
        Change = "change",
        /// It gives them back what a change replaced.
        Undo = "undo",
    } else Unknown
}

/// The operator who asked for a change, and by which request.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Maker {
    /// The kind of key.
    pub kind: String,
    /// Id of the operator.
    pub id: String,
    /// The projects that the key reaches; empty is all of the account.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub projects: Vec<ProjectId>,
    /// Id of the key, for the audit trail, as what follows.
    pub key: Option<String>,
    /// The client's network.
    pub network: Option<String>,
    /// Id of the request.
    pub request: Option<String>,
    /// Method and route of the request.
    #[serde(default)]
    pub operation: String,
}

impl Maker {
    /// Who asks now; the audit trail adds the rest.
    #[must_use]
    pub fn of(actor: &Actor) -> Self {
        let projects = match actor.kind {
            ActorKind::ProjectOperator => actor.projects().unwrap_or_default(),
            ActorKind::Operator
            | ActorKind::TrustedApp
            | ActorKind::App
            | ActorKind::User
            | ActorKind::Thng => Vec::new(),
        };
        Self {
            kind: actor.kind.as_str().to_owned(),
            id: actor.id.clone(),
            projects,
            key: None,
            network: None,
            request: None,
            operation: String::new(),
        }
    }

    /// The kind of key; an operator's, since no other may ask.
    #[must_use]
    pub fn actor_kind(&self) -> ActorKind {
        // One that this release does not know reaches nothing: no projects are named.
        self.kind.parse().unwrap_or(ActorKind::ProjectOperator)
    }

    /// Who acts in the job: it was accepted from an operator, and goes on with the reach that it had.
    #[must_use]
    pub fn actor(&self, account: AccountId) -> Actor {
        let operator = Actor::operator(account, self.id.clone());
        Actor { kind: self.actor_kind(), confined_to: self.projects.clone(), ..operator }
    }
}

/// Everything else; stored as one document.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Details {
    /// Who asked.
    pub maker: Maker,
    /// Which links, as it was sent; empty for an undo.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub selection: Map<String, Value>,
    /// What is changed, as it was sent.
    pub patch: Option<Value>,
    /// How many links were expected.
    pub expect: Option<u64>,
    /// Place of what an undo takes back.
    pub of_seq: Option<i64>,
    /// Whether an undo was refused where a link was changed since.
    #[serde(default)]
    pub strict: bool,
    /// Links that it is about, as counted when it was accepted.
    pub links: u64,
    /// Links that were looked at.
    #[serde(default)]
    pub done: u64,
    /// Links that were written.
    #[serde(default)]
    pub changed: u64,
    /// Links of which nothing would have differed.
    #[serde(default)]
    pub unchanged: u64,
    /// Links that were left as they are, each with its reason.
    #[serde(default)]
    pub conflicts: u64,
    /// The last link that was looked at: its creation and its place.
    pub after: Option<(i64, i64)>,
    /// Whether looking for its links among all of them took too long.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_parts: bool,
    /// The operator who approved it.
    pub approved_by: Option<String>,
    /// Why it failed.
    pub message: Option<String>,
    /// When its former values were removed.
    pub former_removed_at: Option<UnixMillis>,
}

impl Details {
    /// Of a job that begins, about so many links.
    #[must_use]
    pub fn new(maker: Maker, links: u64) -> Self {
        Self {
            maker,
            selection: Map::new(),
            patch: None,
            expect: None,
            of_seq: None,
            strict: false,
            links,
            done: 0,
            changed: 0,
            unchanged: 0,
            conflicts: 0,
            after: None,
            in_parts: false,
            approved_by: None,
            message: None,
            former_removed_at: None,
        }
    }
}

/// A change of many links, or the undoing of one.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkChange {
    /// Its id.
    pub id: JobId,
    /// The account.
    pub account: AccountId,
    /// What it does.
    pub kind: Kind,
    /// What an undo takes back.
    pub of: Option<JobId>,
    /// Who asked, by the name among those of its kind: confined operators see their own.
    pub made_by: String,
    /// Order and times.
    pub stamp: Stamp,
    /// How it stands.
    pub status: Status,
    /// When it ended.
    pub completed_at: Option<UnixMillis>,
    /// Until when it can be undone.
    pub undo_until: Option<UnixMillis>,
    /// Everything else.
    pub details: Details,
}

impl LinkChange {
    /// Its place in a list.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.stamp.position()
    }

    /// It, as it goes on.
    #[must_use]
    pub fn running(self, now: UnixMillis) -> Self {
        Self { status: Status::Running, stamp: self.stamp.touch(now), ..self }
    }

    /// It, as it has ended.
    #[must_use]
    pub fn ended(mut self, status: Status, message: Option<String>, now: UnixMillis) -> Self {
        self.stamp = self.stamp.touch(now);
        self.status = status;
        self.details.message = message;
        self.completed_at = Some(self.stamp.updated_at);
        self.undo_until = self.undo_end(self.stamp.updated_at);
        self
    }

    /// Until when it can be undone if it ends at `at`.
    #[must_use]
    pub fn undo_end(&self, at: UnixMillis) -> Option<UnixMillis> {
        match self.kind {
            Kind::Change => Some(UnixMillis(at.0.saturating_add(UNDO_MS))),
            Kind::Undo => None,
        }
    }

    /// Conflicts that are kept.
    #[must_use]
    pub fn listed(&self) -> u64 {
        self.details.conflicts.min(MAX_LISTED)
    }

    /// How much is done, from 0 to 100.
    #[must_use]
    pub fn percentage(&self) -> f64 {
        if self.status == Status::Complete {
            return 100.0;
        }
        (self.details.done as f64 * 100.0 / self.details.links.max(1) as f64).clamp(0.0, 99.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(kind: Kind) -> LinkChange {
        let maker = Maker {
            kind: "operator".to_owned(),
            id: "o".to_owned(),
            projects: Vec::new(),
            key: None,
            network: None,
            request: None,
            operation: String::new(),
        };
        LinkChange {
            id: JobId::new(1, [1; 16]),
            account: AccountId::new(1, [2; 16]),
            kind,
            of: None,
            made_by: "o".to_owned(),
            stamp: Stamp::new(UnixMillis(5)),
            status: Status::Waiting,
            completed_at: None,
            undo_until: None,
            details: Details::new(maker, 4),
        }
    }

    #[test]
    fn names_are_read_back() {
        for status in Status::ALL {
            assert_eq!(status.as_str().parse(), Ok(status));
        }
        for kind in [Kind::Change, Kind::Undo] {
            assert_eq!(kind.as_str().parse(), Ok(kind));
        }
        assert_eq!("done".parse::<Status>(), Err(Unknown));
        let stored = serde_json::to_value(change(Kind::Change).details).unwrap();
        assert_eq!(serde_json::from_value::<Details>(stored).unwrap(), change(Kind::Change).details);
    }

    #[test]
    fn only_a_change_can_be_undone_and_only_its_end_is_100() {
        let ended = change(Kind::Change).ended(Status::Complete, None, UnixMillis(7));
        assert_eq!(
            (ended.completed_at, ended.undo_until),
            (Some(UnixMillis(7)), Some(UnixMillis(7 + UNDO_MS)))
        );
        assert_eq!(ended.percentage(), 100.0);
        assert_eq!(change(Kind::Undo).ended(Status::Complete, None, UnixMillis(7)).undo_until, None);
        let mut running = change(Kind::Change).running(UnixMillis(9));
        running.details.done = 1;
        assert_eq!(running.percentage(), 25.0);
        running.details.done = 4;
        assert_eq!(running.percentage(), 99.0);
        assert_eq!(change(Kind::Change).details.maker.actor(running.account).kind, ActorKind::Operator);
    }
}
