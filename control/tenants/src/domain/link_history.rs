//! The changes of a link and its earlier states, as its entries in the audit trail tell them.

use serde_json::{Map, Value};
use shared::time::UnixMillis;

use super::{audit::Entry, members::Members};

/// Members that a `PUT` keeps where it leaves them out, and removes where they are null.
const KEPT: [&str; 6] = ["statusCode", "validFrom", "validUntil", "maxScans", "status", "endedUrl"];

shared::words! {
    /// What a change did with the link.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ChangeKind {
        /// It was made.
        Created = "created",
        /// It was changed.
        Updated = "updated",
        /// It was deleted.
        Deleted = "deleted",
    }
}

/// A member that a change set, replaced or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberChange {
    /// Its name.
    pub member: String,
    /// Its value before; `None` where it had none.
    pub before: Option<Value>,
    /// Its value since then; `None` where it has none.
    pub after: Option<Value>,
}

/// A change of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkChange {
    /// Names the state of the link after it.
    pub version: i64,
    /// When the request came.
    pub at: UnixMillis,
    /// The kind of key, or `commandLine`.
    pub actor_type: String,
    /// Id of the operator or application; `None` also where the caller may not see it.
    pub actor: Option<String>,
    /// Method and route, or a command.
    pub operation: String,
    /// What it did.
    pub kind: ChangeKind,
    /// What it changed, by the name of the member; `None` where the trail keeps only the size.
    pub members: Option<Vec<MemberChange>>,
}

impl LinkChange {
    /// What an entry of the trail tells of a link. Whoever does not read the whole account does not see who it was.
    #[must_use]
    pub fn of(entry: Entry, shows_actor: bool) -> Self {
        let (before, after) = (State::read(entry.before.as_deref()), State::read(entry.after.as_deref()));
        let kind = match (&before, &after) {
            (State::Nothing, _) => ChangeKind::Created,
            (_, State::Nothing) => ChangeKind::Deleted,
            (State::Members(_) | State::Unknown, State::Members(_) | State::Unknown) => ChangeKind::Updated,
        };
        Self {
            version: entry.seq,
            at: entry.at,
            actor_type: entry.actor_kind,
            actor: entry.actor_id.filter(|_| shows_actor),
            operation: entry.operation,
            kind,
            members: before.members().zip(after.members()).map(|(before, after)| differences(before, after)),
        }
    }
}

fn differences(mut before: Map<String, Value>, after: Map<String, Value>) -> Vec<MemberChange> {
    let mut found: Vec<MemberChange> = after
        .into_iter()
        .map(|(member, value)| MemberChange { before: before.remove(&member), after: Some(value), member })
        .collect();
    found.extend(before.into_iter().map(|(member, value)| MemberChange {
        member,
        before: Some(value),
        after: None,
    }));
    found.sort_by(|one, two| one.member.cmp(&two.member));
    found
}

/// What is known of a link at some time.
#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// It was not there.
    Nothing,
    /// All its members; in an entry those that a change is about.
    Members(Map<String, Value>),
    /// The trail does not tell.
    Unknown,
}

impl State {
    /// What an entry says. Of a long state it has the size alone: `{"bytes": 20000}`.
    fn read(text: Option<&str>) -> Self {
        let Some(text) = text else { return Self::Nothing };
        match serde_json::from_str(text) {
            Ok(Value::Object(members)) if !is_size(&members) => Self::Members(members),
            Ok(_) | Err(_) => Self::Unknown,
        }
    }

    /// The members; none of what is not there.
    fn members(self) -> Option<Map<String, Value>> {
        match self {
            Self::Nothing => Some(Map::new()),
            Self::Members(members) => Some(members),
            Self::Unknown => None,
        }
    }
}

fn is_size(members: &Map<String, Value>) -> bool {
    members.len() == 1 && members.get("bytes").is_some_and(Value::is_u64)
}

/// Why there is no state to go back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoState {
    /// The change was the deletion.
    #[error("version: the link was deleted by this change; name an earlier one")]
    Deleted,
    /// The trail keeps only the size of a state that is needed.
    #[error("version: a change from there on was too large for the audit trail to keep what it was about")]
    TooLarge,
}

/// The way back from what a link is now, change by change.
///
/// It begins at the link and not at the oldest entry: entries are removed with time, and changes by public keys leave none.
#[derive(Debug)]
pub struct Rewind(State);

impl Rewind {
    /// Begins at the members that the trail would keep of the link; `None` for a deleted one.
    #[must_use]
    pub fn new(now: Option<Value>) -> Self {
        Self(match now {
            None => State::Nothing,
            Some(Value::Object(members)) => State::Members(members),
            Some(_) => State::Unknown,
        })
    }

    /// Takes back the newest change that was not taken back yet.
    #[must_use]
    pub fn undo(self, entry: &Entry) -> Self {
        let (before, after) = (State::read(entry.before.as_deref()), State::read(entry.after.as_deref()));
        Self(match (before, after, self.0) {
            (State::Nothing, ..) => State::Nothing,
            // A deletion has every member.
            (State::Members(before), State::Nothing, _) => State::Members(before),
            (State::Members(before), State::Members(after), State::Members(mut now)) => {
                now.retain(|name, _| !after.contains_key(name));
                now.extend(before);
                State::Members(now)
            }
            (State::Members(_) | State::Unknown, ..) => State::Unknown,
        })
    }

    /// The members after a change of which everything newer was taken back, as a body that brings them back.
    ///
    /// # Errors
    /// There is no such state, or it is not known.
    pub fn after(self, entry: &Entry) -> Result<Value, NoState> {
        let (before, after) = (State::read(entry.before.as_deref()), State::read(entry.after.as_deref()));
        let members = match (before, after, self.0) {
            (_, State::Nothing, _) => return Err(NoState::Deleted),
            (State::Nothing, State::Members(made), _) => made,
            // What a public key did since then left no entry: what this one says counts more.
            (State::Members(before), State::Members(after), State::Members(mut members)) => {
                members.retain(|name, _| !before.contains_key(name));
                members.extend(after);
                members
            }
            (_, _, State::Members(members)) => members,
            (_, _, State::Nothing | State::Unknown) => return Err(NoState::TooLarge),
        };
        Ok(body_of(members))
    }
}

/// The body of a `PUT` that leaves nothing else of these members.
fn body_of(mut members: Map<String, Value>) -> Value {
    for name in KEPT {
        members.entry(name).or_insert(Value::Null);
    }
    Value::Object(members)
}

/// Reads `{"version": "4711"}`.
///
/// # Errors
/// It is missing or no version.
pub fn parse_version(body: &Value) -> Result<i64, Vec<String>> {
    let mut members = Members::of(body)?;
    let version = match (members.raw("version").is_some(), members.text("version")) {
        (false, _) => {
            members.fault("version is required.");
            None
        }
        (true, None) => None,
        (true, Some(text)) => {
            let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            let version = text.parse().ok().filter(|_| is_plain);
            if version.is_none() {
                members.fault("version must be a version from the history of the link.");
            }
            version
        }
    };
    members.finish(version)
}

#[cfg(test)]
mod tests;
