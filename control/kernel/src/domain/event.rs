//! Events as the event log stores them: property values, actions, changes of redirections, ends of jobs.

mod position;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shared::{
    availability::Availability,
    id::{AccountId, ActionId, CaseId, JobId, ReactionId, ReportId, ThngId},
    redirect_status::RedirectStatus,
    time::UnixMillis,
};

pub use self::position::{InvalidPosition, Position};
use super::{
    property::{Owner, Point, PropertyKey},
    scopes::Scopes,
};

/// Something that was written.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Values of properties of one resource, as one request wrote them.
    Properties {
        /// Whose they are.
        owner: Owner,
        /// Id of the Thng or product.
        resource: String,
        /// The written values, in order.
        points: Vec<Point>,
    },
    /// An action was created. It never changes, so its members are read when a subscriber wants them.
    Action(ActionEvent),
    /// Actions of one type that a job created in one step.
    Actions {
        /// Their type.
        kind: String,
        /// Their ids, in order.
        ids: Vec<ActionId>,
    },
    /// Redirections were changed by one request.
    Redirections {
        /// How.
        change: RedirectionChange,
        /// Which.
        items: Vec<RedirectionEvent>,
    },
    /// A job has ended.
    Job {
        /// Its id.
        id: JobId,
        /// The state in which it ended.
        status: String,
        /// The project that it belongs to.
        project: Option<String>,
    },
    /// A print order has ended.
    PrintOrder {
        /// Its id.
        id: JobId,
        /// The state in which it ended.
        status: String,
    },
    /// The host of a short domain, and whether it is proven from now on.
    ShortDomain(String, bool),
    /// The host of a short domain that has a new certificate; or why it got none.
    Certificate(String, Option<String>),
    /// A change of many links, or its undoing, has ended.
    LinkChange {
        /// Its id.
        id: JobId,
        /// The state in which it ended.
        status: String,
    },
    /// Somebody wrote about a Thng that may be a copy: its case, it, and the report.
    Report(CaseId, ThngId, ReportId),
}

shared::words! {
    /// What became of a redirection.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum RedirectionChange {
        /// It is new.
        Created = "created",
        /// It leads elsewhere, or its Thng has changed.
        Updated = "updated",
        /// It is gone.
        Deleted = "deleted",
    }
}

/// A redirection that was changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RedirectionEvent {
    /// The host of its short domain.
    pub domain: String,
    /// Its short id.
    pub short_id: String,
    /// The resource that it belongs to.
    pub platform_id: String,
    /// Where it leads; nowhere when it is gone.
    pub target: Option<String>,
    /// What people call it. Its notes and custom fields, which may be long, are read where they are wanted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Its labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    /// The status code with which it leads to its target.
    #[serde(default, skip_serializing_if = "RedirectStatus::is_default")]
    pub status_code: RedirectStatus,
    /// When it leads to its target, and where it leads at other times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub availability: Option<Box<Availability>>,
    /// Who may see it besides operators.
    pub scopes: Scopes,
}

/// Kinds of subscribers that an event is not sent to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Quiet {
    /// Subscribers are not.
    pub notifications: bool,
    /// Reactions are not.
    pub reactions: bool,
}

impl Quiet {
    /// It as stored.
    #[must_use]
    pub const fn bits(self) -> i64 {
        self.notifications as i64 | (self.reactions as i64) << 1
    }

    /// Reads the stored form; bits of a newer release are skipped.
    #[must_use]
    pub const fn stored(bits: i64) -> Self {
        Self { notifications: bits & 1 != 0, reactions: bits & 2 != 0 }
    }
}

/// Most reactions in the chain of causes of an event; events with longer chains trigger none.
pub const MAX_DEPTH: usize = 5;

/// The chain of reactions that caused an event, first to last.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cause(Vec<ReactionId>);

impl Cause {
    /// The cause of what a reaction does about an event with this cause; `None` where a loop is cut: for a reaction
    /// that is already in the chain, and beyond [`MAX_DEPTH`].
    #[must_use]
    pub fn by(&self, reaction: ReactionId) -> Option<Self> {
        let may = !self.0.contains(&reaction) && self.0.len() < MAX_DEPTH;
        may.then(|| Self(self.0.iter().copied().chain([reaction]).collect()))
    }

    /// It as stored; `None` for what no reaction did.
    #[must_use]
    pub fn stored(&self) -> Option<String> {
        let ids: Vec<&str> = self.0.iter().map(ReactionId::as_str).collect();
        (!ids.is_empty()).then(|| ids.join(","))
    }

    /// Parses the stored form.
    ///
    /// # Errors
    /// The text is not one.
    pub fn read(text: Option<&str>) -> Result<Self, InvalidCause> {
        let ids = text.unwrap_or_default().split(',').filter(|id| !id.is_empty());
        ids.map(|id| id.parse().map_err(|_| InvalidCause)).collect::<Result<_, _>>().map(Self)
    }
}

/// A text that is no cause.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not the cause of an event")]
pub struct InvalidCause;

/// The members of an action that select its subscribers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ActionEvent {
    /// Its id.
    pub id: ActionId,
    /// Its type.
    pub kind: String,
    /// The Thng it is about.
    pub thng: Option<String>,
    /// The product it is about.
    pub product: Option<String>,
    /// The collection it is about.
    pub collection: Option<String>,
    /// Who may see it besides operators.
    pub scopes: Option<Scopes>,
}

/// An event in its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// Its number; those of one resource are in the order of their commits.
    pub seq: i64,
    /// When it was written.
    pub at: UnixMillis,
    /// The account.
    pub account: AccountId,
    /// The connection that wrote it, if that also subscribes.
    pub origin: Option<String>,
    /// Kinds of subscribers that it is not sent to.
    pub quiet: Quiet,
    /// The reactions by which it came about.
    pub cause: Cause,
    /// What happened.
    pub event: Event,
}

#[derive(Serialize, Deserialize)]
struct Body<T, V> {
    owner: T,
    resource: T,
    points: Vec<(T, V, i64, i64)>,
}

#[derive(Deserialize)]
struct ActionsBody {
    kind: String,
    ids: Vec<ActionId>,
}

#[derive(Deserialize)]
struct RedirectionsBody {
    change: RedirectionChange,
    items: Vec<RedirectionEvent>,
}

#[derive(Deserialize)]
struct JobBody {
    id: JobId,
    status: String,
    project: Option<String>,
}

impl Event {
    /// The name of its kind, as stored.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Properties { .. } => "properties",
            Self::Action(_) => "action",
            Self::Actions { .. } => "actions",
            Self::Redirections { .. } => "redirections",
            Self::Job { .. } => "job",
            Self::PrintOrder { .. } => "printOrder",
            Self::ShortDomain(..) => "shortDomain",
            Self::Certificate(..) => "certificate",
            Self::LinkChange { .. } => "linkChange",
            Self::Report(..) => "report",
        }
    }

    /// It as stored, in JSON.
    #[must_use]
    pub fn to_body(&self) -> String {
        match self {
            // Written directly, because a batch has thousands of them and a tree for each would be slow.
            Self::Properties { owner, resource, points } => {
                let rows = points.iter().map(|p| (p.key.as_str(), &p.value, p.timestamp.0, p.created_at.0));
                let body =
                    Body { owner: owner.as_str(), resource: resource.as_str(), points: rows.collect() };
                // Its keys are texts: it can always be written.
                serde_json::to_string(&body).unwrap_or_default()
            }
            Self::Action(action) => json!(action).to_string(),
            Self::Actions { kind, ids } => json!({"kind": kind, "ids": ids}).to_string(),
            Self::Redirections { change, items } => json!({"change": change, "items": items}).to_string(),
            Self::Job { id, status, project } => {
                json!({"id": id, "status": status, "project": project}).to_string()
            }
            Self::PrintOrder { id, status } | Self::LinkChange { id, status } => {
                json!({"id": id, "status": status}).to_string()
            }
            Self::ShortDomain(host, is_verified) => json!([host, is_verified]).to_string(),
            Self::Certificate(host, error) => json!([host, error]).to_string(),
            Self::Report(case, thng, report) => json!([case, thng, report]).to_string(),
        }
    }

    /// Parses the stored form; `None` when it is of another version.
    #[must_use]
    pub fn read(kind: &str, body: &str) -> Option<Self> {
        match kind {
            "properties" => {
                let body: Body<String, Value> = serde_json::from_str(body).ok()?;
                let owner = [Owner::Thng, Owner::Product].into_iter().find(|o| o.as_str() == body.owner)?;
                let point = |(key, value, timestamp, created_at)| Point {
                    key: PropertyKey::stored(key),
                    value,
                    timestamp: UnixMillis(timestamp),
                    created_at: UnixMillis(created_at),
                };
                let points = body.points.into_iter().map(point).collect();
                Some(Self::Properties { owner, resource: body.resource, points })
            }
            "action" => serde_json::from_str(body).ok().map(Self::Action),
            "actions" => {
                let ActionsBody { kind, ids } = serde_json::from_str(body).ok()?;
                Some(Self::Actions { kind, ids })
            }
            "redirections" => {
                let RedirectionsBody { change, items } = serde_json::from_str(body).ok()?;
                Some(Self::Redirections { change, items })
            }
            "job" | "printOrder" | "linkChange" => {
                let JobBody { id, status, project } = serde_json::from_str(body).ok()?;
                Some(match kind {
                    "job" => Self::Job { id, status, project },
                    "printOrder" => Self::PrintOrder { id, status },
                    _ => Self::LinkChange { id, status },
                })
            }
            "shortDomain" => {
                let (host, is_verified) = serde_json::from_str(body).ok()?;
                Some(Self::ShortDomain(host, is_verified))
            }
            "certificate" => {
                let (host, error) = serde_json::from_str(body).ok()?;
                Some(Self::Certificate(host, error))
            }
            "report" => {
                let (case, thng, report) = serde_json::from_str(body).ok()?;
                Some(Self::Report(case, thng, report))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
