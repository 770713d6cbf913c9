//! Expands rows of the event log into messages for external systems: one per event, with its data.

mod data;

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use shared::{
    id::{AccountId, ActionId},
    time::UnixMillis,
};

pub use self::data::{action_message, job_message, point_message, print_order_message, redirection_message};
use crate::{
    domain::{
        action::Action,
        device,
        event::{Event, Position, Recorded},
        grant::Limit,
        property::Owner,
        scopes::Scopes,
    },
    store::{Conn, StoreError, property_owners},
};
use ::actions::service::{Observers, lists};

/// Items of a row per read.
pub const SLICE: usize = 500;

/// One event.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// Its position in the log.
    pub position: Position,
    /// Its id for receivers: the same however often it is sent.
    pub id: String,
    /// Its type, such as `action.scans`.
    pub kind: String,
    /// The account.
    pub account: AccountId,
    /// When it was recorded.
    pub at: UnixMillis,
    /// The data of the message.
    pub data: Value,
    /// The facts for conditions: the data, and the context of an action.
    pub facts: Value,
    /// Who may receive it, besides the account itself.
    pub reach: Reach,
}

/// Who may receive an event, besides the account itself.
#[derive(Debug, Clone, PartialEq)]
pub enum Reach {
    /// Only the account.
    Account,
    /// Actors named by these scopes, and this Thng.
    Scoped {
        /// The Thng that it is about, or nothing.
        thng: String,
        /// Its scopes.
        scopes: Option<Scopes>,
    },
}

impl Message {
    /// The body that is sent, in the form of Standard Webhooks.
    #[must_use]
    pub fn body(&self) -> Value {
        json!({"type": self.kind, "timestamp": self.at.0, "data": self.data})
    }

    /// Whether it is about a case, which the permission `cases:read` shows.
    #[must_use]
    pub fn is_of_case(&self) -> bool {
        self.kind.starts_with("case.")
    }

    /// Whether a caller may receive it.
    #[must_use]
    pub fn is_admitted(&self, limit: &Limit) -> bool {
        match (limit, &self.reach) {
            (Limit::Account, _) => true,
            (_, Reach::Account) => false,
            (limit, Reach::Scoped { thng, scopes }) => limit.admits(thng, scopes.as_ref()),
        }
    }
}

/// Expands a row into events, starting at an item, up to [`SLICE`] items; also returns the next item if there are
/// more. Actions that were deleted meanwhile are omitted.
pub async fn expand(
    observers: &dyn Observers,
    conn: &mut Conn,
    place: Position,
    recorded: &Recorded,
    from: usize,
) -> Result<(Vec<Message>, Option<usize>), StoreError> {
    let one = |item: usize| Position { item: i64::try_from(item).unwrap_or(i64::MAX - 1), ..place };
    let message = |position, id: String, kind: String, data: Value, facts: Option<Value>, reach| Message {
        position,
        id,
        kind,
        account: recorded.account,
        at: recorded.at,
        facts: facts.unwrap_or_else(|| data.clone()),
        data,
        reach,
    };
    let numbered = |item: usize| format!("evt_{}_{}_{item}", place.xid, place.seq);
    Ok(match &recorded.event {
        Event::Action(event) => {
            let found = lists::find(observers, conn, recorded.account, event.id).await?;
            (found.iter().map(|action| of_action(place, recorded, action)).collect(), None)
        }
        Event::Actions { ids, .. } => {
            let wanted: Vec<ActionId> = ids.iter().copied().skip(from).take(SLICE).collect();
            let items: HashMap<ActionId, usize> = wanted.iter().copied().zip(from..).collect();
            let end = from + wanted.len();
            let found = lists::find_many(observers, conn, recorded.account, &wanted).await?;
            let mut found: Vec<Message> = found
                .iter()
                .filter_map(|action| Some(of_action(one(*items.get(&action.id)?), recorded, action)))
                .collect();
            found.sort_unstable_by_key(|message| message.position);
            (found, (end < ids.len()).then_some(end))
        }
        Event::Properties { owner, resource, points } => {
            let properties: Vec<Value> = points.iter().map(point_message).collect();
            let name = match owner {
                Owner::Thng => "thng",
                Owner::Product => "product",
            };
            let data = json!({name: resource, "properties": properties});
            let values: Map<String, Value> =
                points.iter().map(|point| (point.key.to_string(), point.value.clone())).collect();
            let facts = json!({name: resource, "timestamp": recorded.at.0, "properties": values});
            let kind = "properties.updated".to_owned();
            // Visible to those who can see the owner. If the owner is deleted, only to the account.
            let scopes = property_owners::find_scopes(conn, recorded.account, *owner, resource).await?;
            let thng = if *owner == Owner::Thng { resource.clone() } else { String::new() };
            let reach = scopes.map_or(Reach::Account, |scopes| Reach::Scoped { thng, scopes });
            (vec![message(place, numbered(0), kind, data, Some(facts), reach)], None)
        }
        Event::Redirections { change, items } => {
            let all = items.iter().enumerate().skip(from).take(SLICE);
            let messages = all.map(|(item, changed)| {
                let data = Value::Object(redirection_message(changed));
                let reach = Reach::Scoped { thng: String::new(), scopes: Some(changed.scopes.clone()) };
                let kind = format!("redirection.{}", change.as_str());
                message(one(item), numbered(item), kind, data, None, reach)
            });
            let end = from + SLICE;
            (messages.collect(), (end < items.len()).then_some(end))
        }
        Event::Job { id, status, project } => {
            let data = job_message(*id, status);
            let scopes = project.clone().map(|project| Scopes { users: Vec::new(), projects: vec![project] });
            let reach = Reach::Scoped { thng: String::new(), scopes };
            (vec![message(place, numbered(0), "job.completed".to_owned(), data, None, reach)], None)
        }
        Event::PrintOrder { id, status } | Event::LinkChange { id, status } => {
            let kind = format!("{}.completed", recorded.event.kind());
            let data = print_order_message(*id, status);
            // It belongs to no project.
            (vec![message(place, numbered(0), kind, data, None, Reach::Account)], None)
        }
        Event::ShortDomain(host, is_verified) => {
            let status = if *is_verified { "verified" } else { "unproven" };
            let data = json!({"shortDomain": host, "status": status});
            let kind = format!("shortDomain.{status}");
            (vec![message(place, numbered(0), kind, data, None, Reach::Account)], None)
        }
        Event::Certificate(host, error) => {
            let (status, data) = match error {
                None => ("certificateIssued", json!({"shortDomain": host, "status": "certificateIssued"})),
                Some(error) => {
                    let status = "certificateFailed";
                    (status, json!({"shortDomain": host, "status": status, "error": error}))
                }
            };
            let kind = format!("shortDomain.{status}");
            (vec![message(place, numbered(0), kind, data, None, Reach::Account)], None)
        }
        Event::Report(case, thng, report) => {
            let data = json!({"id": case, "thng": thng, "report": report});
            // A case is read by operators of the account alone: whom a project admits may not read any.
            (vec![message(place, numbered(0), "case.reported".to_owned(), data, None, Reach::Account)], None)
        }
    })
}

/// The event of an action that a row is about.
#[must_use]
pub fn of_action(position: Position, recorded: &Recorded, action: &Action) -> Message {
    Message {
        position,
        id: action.id.to_string(),
        kind: format!("action.{}", action.kind),
        account: recorded.account,
        at: recorded.at,
        data: action_message(action),
        facts: facts(action),
        reach: reach(action),
    }
}

fn reach(action: &Action) -> Reach {
    let thng = action.thng.map(|id| id.to_string()).unwrap_or_default();
    Reach::Scoped { thng, scopes: action.scopes() }
}

/// An action with its context, as conditions see it.
fn facts(action: &Action) -> Value {
    let mut facts = action_message(action);
    if let (Value::Object(members), Some(context)) = (&mut facts, action.members.get("context")) {
        let mut context = context.clone();
        device::hide(&mut context);
        members.insert("context".to_owned(), context);
    }
    facts
}
