//! Publish and subscribe for connections, with the permissions and errors of HTTP.

use std::borrow::Cow;

use serde_json::Value;
use shared::time::UnixMillis;
use tracing::instrument;

use super::{
    EventState,
    access::{Caller, require},
    action_creation::{self, Circumstances},
    actions::{self, Scope},
    properties,
};
use crate::{
    channels::Channel,
    domain::{
        access::Actor,
        action_draft::Drafts,
        context::Origin,
        grant::Limit,
        permission::{
            Subject::{Actions, Jobs, PersonalData, Properties, Redirections},
            Verb,
        },
        property_body,
        topic::{ActionScope, Topic, TopicFault},
    },
    error::{CommonError, EventsError, ServiceError},
    store::audit::Principal,
};

/// Options of a published message.
#[derive(Debug, Clone, Copy)]
pub struct Sender<'a> {
    /// Who writes, and by which connection, if it may ask not to receive its own writes.
    pub caller: &'a Caller,
    /// The hash of its key.
    pub key: &'a [u8; 32],
    /// Where it comes from.
    pub origin: Origin<'a>,
}

impl Sender<'_> {
    /// Its caller, whose writes the audit trail notes unless the key is public.
    fn audited(&self, at: UnixMillis) -> Cow<'_, Caller> {
        match Principal::of(self.caller, self.key, self.origin.ip, "PUBLISH".to_owned(), at) {
            Some(principal) => Cow::Owned(Caller {
                ctx: self.caller.ctx.clone().with_principal(principal),
                ..self.caller.clone()
            }),
            None => Cow::Borrowed(self.caller),
        }
    }
}

/// Reads a message that was published.
///
/// # Errors
/// It is not JSON.
pub fn read(payload: &[u8]) -> Result<Value, EventsError> {
    serde_json::from_slice(payload)
        .map_err(|error| EventsError::MalformedMessage { line: error.line(), column: error.column() })
}

/// Writes a message that was published to a topic: the same as the HTTP request to the path.
///
/// # Errors
/// As those of the HTTP API: the key may not, something does not exist, or the message is wrong.
#[instrument(skip_all)]
pub async fn publish(
    state: &EventState,
    sender: &Sender<'_>,
    topic: &Topic,
    body: &Value,
) -> Result<(), ServiceError> {
    let caller = &*sender.audited(state.clock.now());
    match topic {
        Topic::Properties(owner, id) => {
            let points = property_body::parse_many(body).map_err(CommonError::Faults)?;
            properties::write(&state.catalog, caller, Verb::Update, (*owner, id), points).await?;
        }
        Topic::Property(owner, id, key) => {
            let key = key.as_ref().ok_or(EventsError::Topic(TopicFault::Wildcard))?;
            let points = property_body::parse_values(key, body).map_err(CommonError::Faults)?;
            properties::write(&state.catalog, caller, Verb::Update, (*owner, id), points).await?;
        }
        Topic::Actions(scope, kind) => {
            let drafts = match Drafts::parse(body).map_err(CommonError::Faults)? {
                Drafts::One(draft) => vec![*draft],
                Drafts::Many(drafts) => drafts,
            };
            let around = Circumstances { origin: sender.origin, project: None };
            action_creation::create(&state.actions, caller, of(scope), kind, &drafts, around).await?;
        }
        Topic::Redirections(_) | Topic::Jobs(_) => {
            return Err(EventsError::SubscriptionOnly.into());
        }
    }
    Ok(())
}

/// Authorises a subscription: the channel, and the limit on what is delivered.
///
/// # Errors
/// The key may not read it, or the resource does not exist.
#[instrument(skip_all)]
pub async fn channel(
    state: &EventState,
    actor: &Actor,
    topic: &Topic,
) -> Result<(Channel, Limit), ServiceError> {
    match topic {
        Topic::Properties(owner, reference) => {
            let grant = require(actor, Verb::Read, Properties)?;
            let id = properties::find_owner(state, actor, (*owner, reference)).await?;
            Ok((Channel::Properties(*owner, id), grant.limit().clone()))
        }
        Topic::Property(owner, reference, key) => {
            let grant = require(actor, Verb::Read, Properties)?;
            let id = properties::find_owner(state, actor, (*owner, reference)).await?;
            let channel = match key {
                Some(key) => Channel::Property(*owner, id, key.to_string()),
                None => Channel::EachProperty(*owner, id),
            };
            Ok((channel, grant.limit().clone()))
        }
        Topic::Actions(scope, kind) => {
            let grant = require(actor, Verb::Read, Actions)?;
            // All subscribers get the same message, and it holds the exact location of the scan.
            if actor.kind.is_operator() {
                let _ = require(actor, Verb::Read, PersonalData)?;
            }
            let (about, kind) = actions::find_channel(&state.actions, actor, &grant, of(scope), kind).await?;
            Ok((Channel::Actions(about.into(), kind), grant.limit().clone()))
        }
        // Withheld events reveal no more than absent ones.
        Topic::Redirections(short_id) => {
            let grant = require(actor, Verb::Read, Redirections)?;
            Ok((Channel::Redirections(short_id.clone()), grant.limit().clone()))
        }
        Topic::Jobs(id) => {
            let grant = require(actor, Verb::Read, Jobs)?;
            Ok((Channel::Jobs(id.clone()), grant.limit().clone()))
        }
    }
}

/// Whether a kind of key may subscribe to anything; checked before public keys connect.
#[must_use]
pub fn may_connect(actor: &Actor) -> bool {
    require(actor, Verb::Read, Properties).is_ok()
        || require(actor, Verb::Read, Actions).is_ok()
        || require(actor, Verb::Create, Actions).is_ok()
}

fn of(scope: &ActionScope) -> Scope<'_> {
    match scope {
        ActionScope::Account => Scope::Account,
        ActionScope::Thng(id) => Scope::Thng(id),
        ActionScope::Product(id) => Scope::Product(id),
        ActionScope::Collection(id) => Scope::Collection(id),
    }
}
