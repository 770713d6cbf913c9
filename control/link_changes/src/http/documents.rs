//! Changes of many links as answers show them.

use redirects::{
    http::RedirectionDocument,
    service::redirections::{Outcome, PlannedChange},
};
use serde::Serialize;
use serde_json::{Map, Value};
use serde_with_macros::skip_serializing_none;
use utoipa::ToSchema;

use crate::{domain::change::LinkChange, service::accept::Accepted, store::conflicts::Conflict};

/// How far a change is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct LinkChangeProgressDocument {
    /// From 0 to 100; 100 when all links were looked at.
    #[schema(minimum = 0, maximum = 100)]
    percentage: f64,
    /// Links that it is about, as counted when it was accepted.
    links: u64,
    /// Links that were looked at.
    done: u64,
    /// Links that were changed, or restored.
    changed: u64,
    /// Links of which nothing would have differed; they were not written.
    unchanged: u64,
    /// Links that were left as they are: `conflicts` lists them.
    conflicts: u64,
    /// How many of these are listed with their reason: 10,000 at most.
    #[schema(maximum = 10_000)]
    conflicts_listed: u64,
}

/// A change of many links, or the undoing of one.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct LinkChangeDocument {
    /// Its id.
    #[schema(example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    id: String,
    /// When it was asked for, in milliseconds since 1970.
    #[schema(example = 1_767_225_600_000_i64)]
    created_at: i64,
    /// When it last moved on.
    #[schema(example = 1_767_225_600_000_i64)]
    updated_at: i64,
    /// When it ended.
    completed_at: Option<i64>,
    /// `change` or `undo`.
    #[serde(rename = "type")]
    #[schema(example = "change")]
    kind: &'static str,
    /// `awaitingApproval`, `waiting`, `running`, `complete`, `failed` or `cancelled`.
    #[schema(example = "running")]
    status: &'static str,
    /// The change that an undo takes back.
    of: Option<String>,
    /// Which links, as it was sent.
    #[schema(value_type = Option<Object>, example = json!({"filter": "tags=summer"}))]
    selection: Option<Map<String, Value>>,
    /// What is changed of them, as it was sent.
    #[schema(value_type = Option<Object>, example = json!({"title": "Autumn"}))]
    patch: Option<Value>,
    /// How many links were expected.
    expect: Option<u64>,
    /// Of an undo: whether it was refused where any link was changed since.
    strict: Option<bool>,
    /// How far it is.
    progress: LinkChangeProgressDocument,
    /// Id of the operator who asked for it.
    created_by: String,
    /// The projects that it is confined to; links of others are not changed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    projects: Vec<String>,
    /// Id of the operator who approved it.
    approved_by: Option<String>,
    /// Why it failed.
    message: Option<String>,
    /// Until when it can be undone.
    undo_until: Option<i64>,
    /// When the former values of its links were removed.
    former_removed_at: Option<i64>,
    /// The first links, and what becomes of them: only in the answer to the request for the change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    sample: Vec<LinkSampleDocument>,
}

impl From<LinkChange> for LinkChangeDocument {
    fn from(change: LinkChange) -> Self {
        let percentage = change.percentage();
        let conflicts_listed = change.listed();
        let details = change.details;
        let progress = LinkChangeProgressDocument {
            percentage,
            links: details.links,
            done: details.done,
            changed: details.changed,
            unchanged: details.unchanged,
            conflicts: details.conflicts,
            conflicts_listed,
        };
        Self {
            id: change.id.to_string(),
            created_at: change.stamp.created_at.0,
            updated_at: change.stamp.updated_at.0,
            completed_at: change.completed_at.map(|at| at.0),
            kind: change.kind.as_str(),
            status: change.status.as_str(),
            strict: change.of.is_some().then_some(details.strict),
            of: change.of.map(|id| id.to_string()),
            selection: (!details.selection.is_empty()).then_some(details.selection),
            patch: details.patch,
            expect: details.expect,
            progress,
            created_by: details.maker.id,
            projects: details.maker.projects.iter().map(ToString::to_string).collect(),
            approved_by: details.approved_by,
            message: details.message,
            undo_until: change.undo_until.map(|at| at.0),
            former_removed_at: details.former_removed_at.map(|at| at.0),
            sample: Vec::new(),
        }
    }
}

impl LinkChangeDocument {
    /// A job that was accepted just now.
    pub(super) fn accepted(change: LinkChange, sample: &[PlannedChange]) -> Self {
        Self { sample: sample.iter().map(LinkSampleDocument::from).collect(), ..Self::from(change) }
    }
}

/// What a change would do.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct LinkDryRunDocument {
    /// Always true: nothing was changed, and no job was made.
    dry_run: bool,
    /// Links that it finds.
    links: u64,
    /// The projects that the caller is confined to; links of others were not counted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    projects: Vec<String>,
    /// The first ten links, and what would become of them.
    sample: Vec<LinkSampleDocument>,
}

impl From<&Accepted> for LinkDryRunDocument {
    fn from(accepted: &Accepted) -> Self {
        Self {
            dry_run: true,
            links: accepted.links,
            projects: accepted.projects.iter().map(ToString::to_string).collect(),
            sample: accepted.sample.iter().map(LinkSampleDocument::from).collect(),
        }
    }
}

/// A link before and after a change.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct LinkSampleDocument {
    /// The link as it is.
    before: RedirectionDocument,
    /// The link as it would be; the same where nothing differs. None where it would be left as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    after: Option<RedirectionDocument>,
    /// Why it would be left as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl From<&PlannedChange> for LinkSampleDocument {
    fn from(planned: &PlannedChange) -> Self {
        let before = RedirectionDocument::from(&planned.before);
        match &planned.outcome {
            Outcome::Changed(after) => {
                Self { before, after: Some(RedirectionDocument::from(&**after)), reason: None }
            }
            Outcome::Same => {
                Self { before, after: Some(RedirectionDocument::from(&planned.before)), reason: None }
            }
            Outcome::Refused(reason) => Self { before, after: None, reason: Some(reason.clone()) },
        }
    }
}

/// A link that a change, or its undoing, left as it is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct LinkConflictDocument {
    /// Host of its short domain.
    #[schema(example = "tn.gg")]
    short_domain: String,
    /// Its short id.
    #[schema(example = "K7Q2M4XA9R")]
    short_id: String,
    /// Why.
    #[schema(example = "It was changed since.")]
    reason: String,
    /// When it was looked at, in milliseconds since 1970.
    #[schema(example = 1_767_225_600_000_i64)]
    created_at: i64,
}

impl From<Conflict> for LinkConflictDocument {
    fn from(conflict: Conflict) -> Self {
        let Conflict { domain, short_id, reason, at, seq: _ } = conflict;
        Self { short_domain: domain, short_id, reason, created_at: at.0 }
    }
}
