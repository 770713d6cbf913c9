//! Entries of the audit trail: noted by what writes, stored by the commit of its transaction.

use std::{collections::HashMap, net::IpAddr, sync::Arc};

use serde::Serialize;
use serde_json::{Map, Value, json};
use shared::{id::AccountId, networks, time::UnixMillis};
use sqlx::AssertSqlSafe;

use super::{Conn, StoreError, Tx, dialect, savepoints::Marked};
use crate::domain::{access::Actor, api_key::KeyId};

const PG_INSERT: &str = "INSERT INTO audit_queue (entry) \
    SELECT entry FROM UNNEST($1::text[]) WITH ORDINALITY AS t (entry, n) ORDER BY n";
// With one more value for each row: cheaper than a list that SQLite has to read as JSON.
const SQLITE_INSERT: &str = "INSERT INTO audit_queue (entry) VALUES (?)";
/// Rows of one statement of SQLite.
const SQLITE_ROWS: usize = 16;

/// Longest text of what was before or after, in bytes; of a longer one only the size is kept.
const MAX_STATE: usize = 16 * 1024;

/// Who asks for what, as the trail keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// When.
    pub at: UnixMillis,
    /// The kind of key, or `commandLine`.
    pub kind: &'static str,
    /// Id of the operator or application.
    pub id: Option<String>,
    /// Id of the key.
    pub key: Option<String>,
    /// The client's network.
    pub network: Option<String>,
    /// Id of the request.
    pub request: Option<String>,
    /// Method and route, such as `PUT /places/{id}`, or a command.
    pub operation: String,
}

impl Principal {
    /// A caller who does this at this time; `None` for a public key: what these do is data, which has its own place and
    /// would crowd out what the trail is for.
    #[must_use]
    pub fn of(
        actor: &Actor,
        key: &[u8; 32],
        client: Option<IpAddr>,
        operation: String,
        at: UnixMillis,
    ) -> Option<Self> {
        (!actor.kind.is_public()).then(|| Self {
            at,
            kind: actor.kind.as_str(),
            id: Some(actor.id.clone()),
            key: Some(KeyId::of(key).to_string()),
            network: client.map(network_of),
            request: None,
            operation,
        })
    }
}

/// The network of a client as a text, which is kept and not the address.
#[must_use]
pub fn network_of(client: IpAddr) -> String {
    networks::network_of(client).to_string()
}

/// Whose trail holds what concerns no single account: that of the platform. No account has this id, whose time is before
/// that of all others.
#[must_use]
pub fn platform_trail() -> AccountId {
    AccountId::new(0, [0; 16])
}

/// A change that is noted and not stored yet.
#[derive(Debug, Clone)]
pub struct Entry {
    principal: Arc<Principal>,
    account: AccountId,
    resource: &'static str,
    id: String,
    before: Option<String>,
    after: Option<String>,
}

impl Entry {
    /// A change of a resource: what was before, and what is now. Of objects only members that differ are kept.
    #[must_use]
    pub fn new(
        principal: Arc<Principal>,
        account: AccountId,
        (resource, id): (&'static str, &str),
        (before, after): (Option<Value>, Option<Value>),
    ) -> Self {
        let (before, after) = difference(before, after);
        Self {
            principal,
            account,
            resource,
            id: id.to_owned(),
            before: before.map(bounded),
            after: after.map(bounded),
        }
    }

    /// The text that waits in `audit_queue`: a JSON array of its columns, from the account to what is now. Releases beside this
    /// one read it, so the order stays.
    #[must_use]
    pub fn row(&self) -> String {
        let principal = &self.principal;
        let columns = (
            self.account.as_str(),
            principal.at.0,
            principal.kind,
            &principal.id,
            &principal.key,
            &principal.network,
            &principal.request,
            &principal.operation,
            self.resource,
            &self.id,
            &self.before,
            &self.after,
        );
        // Texts and numbers always are JSON.
        serde_json::to_string(&columns).unwrap_or_default()
    }
}

/// What a transaction noted, and the states of what it read in order to change it.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) entries: Marked<Entry>,
    found: HashMap<(&'static str, String), Value>,
}

/// What the trail shows of a resource. One that cannot be written as JSON cannot be stored either.
pub fn state_of(state: &impl Serialize) -> Value {
    serde_json::to_value(state).unwrap_or(Value::Null)
}

impl Tx {
    /// Whether changes are noted: those of operators and of programs that act for them.
    #[must_use]
    pub fn is_audited(&self) -> bool {
        self.ctx().principal().is_some()
    }

    /// Remembers a resource that was read in order to be changed.
    pub fn remember(&mut self, resource: &'static str, id: &str, state: impl FnOnce() -> Value) {
        if self.is_audited() {
            self.notes.found.insert((resource, id.to_owned()), state());
        }
    }

    /// Whether [`Tx::remember`] was called for it.
    #[must_use]
    pub fn has_remembered(&self, resource: &'static str, id: &str) -> bool {
        self.notes.found.contains_key(&(resource, id.to_owned()))
    }

    /// The last state that [`Tx::remember`] got; it is forgotten with this.
    pub fn remembered(&mut self, resource: &'static str, id: &str) -> Option<Value> {
        self.notes.found.remove(&(resource, id.to_owned()))
    }

    /// Notes a change for the trail: what was before, and what is now; one of them is missing where something was made
    /// or removed. `states` runs only if the trail wants it.
    pub fn note(
        &mut self,
        account: AccountId,
        of: (&'static str, &str),
        states: impl FnOnce() -> (Option<Value>, Option<Value>),
    ) {
        if let Some(principal) = self.ctx().principal() {
            self.notes.entries.extend([Entry::new(principal, account, of, states())]);
        }
    }

    /// Adds entries of others, for whom this transaction writes.
    pub fn add_entries(&mut self, entries: impl IntoIterator<Item = Entry>) {
        self.notes.entries.extend(entries);
    }
}

/// Stores what a transaction noted.
pub(super) async fn insert(tx: &mut Tx, entries: &[Entry]) -> Result<(), StoreError> {
    let rows: Vec<String> = entries.iter().map(Entry::row).collect();
    match &mut **tx {
        Conn::PgTx(c) => {
            sqlx::query(PG_INSERT).bind(rows).execute(&mut **c).await?;
        }
        Conn::SqliteTx(c) => {
            for rows in rows.chunks(SQLITE_ROWS) {
                let more = ", (?)".repeat(rows.len() - 1);
                let sql = AssertSqlSafe(format!("{SQLITE_INSERT}{more}"));
                let query = sqlx::query::<sqlx::Sqlite>(sql);
                rows.iter().fold(query, |query, row| query.bind(row.as_str())).execute(&mut **c).await?;
            }
        }
        Conn::Pg(_) | Conn::Sqlite(_) => return Err(dialect::outside_transaction()),
    }
    Ok(())
}

fn difference(before: Option<Value>, after: Option<Value>) -> (Option<Value>, Option<Value>) {
    let (Some(Value::Object(before)), Some(Value::Object(after))) = (&before, &after) else {
        return (before, after);
    };
    let other = |one: &Map<String, Value>, two: &Map<String, Value>| {
        let differ = one.iter().filter(|(name, value)| two.get(*name) != Some(value));
        Value::Object(differ.map(|(name, value)| (name.clone(), value.clone())).collect())
    };
    (Some(other(before, after)), Some(other(after, before)))
}

fn bounded(state: Value) -> String {
    let text = state.to_string();
    if text.len() <= MAX_STATE { text } else { json!({ "bytes": text.len() }).to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::savepoints::Marks as _;

    #[test]
    fn only_what_differs_is_kept() {
        for (before, after, expected) in [
            (json!({"a": 1, "b": 2}), json!({"a": 1, "b": 3}), (json!({"b": 2}), json!({"b": 3}))),
            (json!({"a": 1}), json!({"a": 1, "c": null}), (json!({}), json!({"c": null}))),
            (
                json!({"a": {"x": 1}}),
                json!({"a": {"x": 2}}),
                (json!({"a": {"x": 1}}), json!({"a": {"x": 2}})),
            ),
            (json!([1]), json!([1]), (json!([1]), json!([1]))),
        ] {
            let found = difference(Some(before), Some(after));
            assert_eq!(found, (Some(expected.0), Some(expected.1)));
        }
        let new = Some(json!({"a": 1}));
        assert_eq!(difference(None, new.clone()), (None, new.clone()));
        assert_eq!(difference(new.clone(), None), (new, None));
    }

    #[test]
    fn of_a_client_only_the_network_is_kept() {
        for (client, network) in [
            ("192.0.2.77", "192.0.2.0/24"),
            ("::ffff:192.0.2.77", "192.0.2.0/24"),
            ("2001:db8:12:34::5", "2001:db8:12::/48"),
        ] {
            assert_eq!(network_of(client.parse().unwrap()), network);
        }
    }

    #[test]
    fn what_a_savepoint_took_back_is_not_noted() {
        let principal = Arc::new(Principal {
            at: UnixMillis(1),
            kind: "operator",
            id: None,
            key: None,
            network: None,
            request: None,
            operation: "PUT /places/{id}".to_owned(),
        });
        let account: AccountId = "UKXAGyEf8SQ5eTDmVgGpHqAa".parse().unwrap();
        let entry = |id| Entry::new(principal.clone(), account, ("place", id), (None, None));
        let mut notes = Marked::default();
        notes.extend([entry("before")]);
        notes.mark();
        notes.extend([entry("outer")]);
        notes.mark();
        notes.extend([entry("inner")]);
        notes.rewind();
        notes.release();
        notes.extend([entry("after inner")]);
        let ids =
            |notes: &Marked<Entry>| notes.items().iter().map(|entry| entry.id.clone()).collect::<Vec<_>>();
        assert_eq!(ids(&notes), ["before", "outer", "after inner"]);
        notes.rewind();
        notes.release();
        assert_eq!(ids(&notes), ["before"]);
    }

    #[test]
    fn of_a_long_state_only_the_size_is_kept() {
        let long = bounded(json!({"text": "x".repeat(MAX_STATE)}));
        assert_eq!(long, json!({"bytes": MAX_STATE + 11}).to_string());
    }
}
