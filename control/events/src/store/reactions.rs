//! The table of reactions.

use shared::{id::ReactionId, time::UnixMillis};

use super::{
    StoreError, Tx,
    documents::{Base, Cell, Document, Statements, statements},
    execute,
    followers::{Follower, Follows, follows},
    listing::{Column, Table},
    parse,
};
use crate::domain::{
    common::Stamp,
    event_filter::Types,
    reaction::{Failure, Outcome, Reaction, ReactionDetails, Status},
    subscription_filter::SubscriptionFilter,
};

macro_rules! columns {
    () => {
        "SELECT t.id, t.seq, t.project_id, t.name, t.doc, t.status, t.done, t.failed, t.dropped, t.last_at, \
         t.failure, t.failure_event, t.failure_at, t.created_at, t.updated_at"
    };
}

const STATEMENTS: Statements = statements!(
    "reactions",
    columns!(),
    ", project_id, status",
    ", $6, $7",
    ", project_id = $6, status = $7",
    LIST
);
const LIST: Table = Table {
    select: concat!(columns!(), " FROM reactions t"),
    order: ("t.created_at", "t.seq"),
    columns: &[
        ("name", Column::Text("t.name")),
        ("status", Column::Text("t.status")),
        ("scopes.projects", Column::Text("t.project_id")),
    ],
    identifiers: None,
    faceted: false,
    itself: "t.id",
};

const FOLLOWS: Follows = follows!("reactions", "reaction_tasks", "reaction");
const CAME_OF: &str = "UPDATE reactions SET done = done + $2, failed = failed + $3, last_at = $4, \
    failure = COALESCE($5, failure), failure_event = COALESCE($6, failure_event), \
    failure_at = CASE WHEN $5 IS NULL THEN failure_at ELSE $4 END WHERE seq = $1";

/// The columns that only reactions have.
#[derive(sqlx::FromRow)]
pub struct Own {
    project_id: Option<String>,
    status: String,
    done: i64,
    failed: i64,
    dropped: i64,
    last_at: Option<i64>,
    failure: Option<String>,
    failure_event: Option<String>,
    failure_at: Option<i64>,
}

impl Document for Reaction {
    type Own = Own;

    const TABLE: &'static Statements = &STATEMENTS;

    fn build(id: ReactionId, stamp: Stamp, row: Base<Self>, own: Own) -> Result<Self, StoreError> {
        let project = own.project_id.as_deref().map(|id| parse("project_id", id)).transpose()?;
        let status = own.status.parse::<Status>().map_err(|()| StoreError::Row(own.status.clone()))?;
        let failure = own.failure_at.zip(own.failure).map(|(at, reason)| Failure {
            at: UnixMillis(at),
            event: own.failure_event.unwrap_or_default(),
            reason,
        });
        let outcome = Outcome {
            done: own.done,
            failed: own.failed,
            dropped: own.dropped,
            last_at: own.last_at.map(UnixMillis),
            failure,
        };
        Ok(Self { id, stamp, name: row.name, project, status, outcome, details: row.details })
    }

    fn own(&self) -> Vec<Cell> {
        vec![
            Cell::Text(self.project.map(|id| id.to_string())),
            Cell::Text(Some(self.status.as_str().to_owned())),
        ]
    }
}

impl Follower for Reaction {
    const FOLLOWS: &'static Follows = &FOLLOWS;

    fn subscription(details: &ReactionDetails) -> &SubscriptionFilter {
        &details.subscription
    }

    fn types(names: Vec<String>) -> Result<Types, String> {
        Types::new(names)
    }

    fn is_disabled(&self) -> bool {
        self.status == Status::Disabled
    }
}

/// The results of one reaction in a batch.
#[derive(Debug, Clone, Default)]
pub struct CameOf {
    /// How often it was carried out.
    pub done: i64,
    /// How often it could not be.
    pub failed: i64,
    /// The event and the reason of the last time that it could not be.
    pub failure: Option<(String, String)>,
}

/// Notes what came of a reaction.
pub async fn note(tx: &mut Tx, seq: i64, at_ms: i64, came: &CameOf) -> Result<(), StoreError> {
    let (event, reason) = came.failure.as_ref().map(|(event, reason)| (event, reason)).unzip();
    execute!(&mut **tx, CAME_OF, seq, came.done, came.failed, at_ms, reason, event)?;
    Ok(())
}
