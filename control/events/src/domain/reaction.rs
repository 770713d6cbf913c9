//! Reactions: actions that an account wants performed when an event occurs.
//!
//! What an event leads to is decided when it is queued, as a [`ResolvedEffect`] that no longer needs the event. A reaction that
//! is changed later does for earlier events what it would have done then.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use shared::{
    id::{ProjectId, ReactionId},
    time::UnixMillis,
};

pub use super::reaction_effect::{Effect, ResolvedEffect};
use super::{
    body::{Purpose, common, name},
    common::{Common, Stamp},
    event_filter::Types,
    members::Members,
    named::named,
    subscription_filter::{SubscriptionFilter, SubscriptionFilterChange},
};

shared::words! {
    /// Whether a reaction does something.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Status {
        /// Yes.
        Active = "active",
        /// No, and nothing is kept for it.
        Disabled = "disabled",
    } else ()
}

/// The members of a reaction beside its name; stored as one document.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReactionDetails {
    /// What all resources have.
    #[serde(flatten)]
    pub common: Common,
    /// To which events it reacts.
    #[serde(flatten)]
    pub subscription: SubscriptionFilter,
    /// Its effect.
    pub effect: Effect,
}

/// What became of a reaction so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Outcome {
    /// How often it was carried out.
    pub done: i64,
    /// How often it could not be.
    pub failed: i64,
    /// Number of events that were dropped because its queue was full.
    pub dropped: i64,
    /// When it was carried out, or could not be, last.
    pub last_at: Option<UnixMillis>,
    /// The last time that it could not be.
    pub failure: Option<Failure>,
}

/// Why a reaction was not carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// When.
    pub at: UnixMillis,
    /// The id of the event.
    pub event: String,
    /// Why.
    pub reason: String,
}

/// A reaction.
#[derive(Debug, Clone, PartialEq)]
pub struct Reaction {
    /// Its id.
    pub id: ReactionId,
    /// Order and times.
    pub stamp: Stamp,
    /// Its name.
    pub name: String,
    /// The project to whose events it reacts, and in which it may do something; without one, the account.
    pub project: Option<ProjectId>,
    /// Whether it does something.
    pub status: Status,
    /// What became of it.
    pub outcome: Outcome,
    /// Everything else.
    pub details: ReactionDetails,
}

/// The members of a create or update of a reaction; `None` means not given.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ReactionChange {
    /// Its name, required on create.
    pub name: Option<String>,
    /// What all resources have.
    pub common: Common,
    /// To which events it reacts.
    pub subscription: SubscriptionFilterChange,
    /// Its effect; required on create.
    pub effect: Option<Effect>,
    /// Whether it does something.
    pub status: Option<Status>,
}

impl ReactionChange {
    /// Reads the body of `POST /reactions` and `PUT /reactions/:id`.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(body: &Value, purpose: Purpose) -> Result<Self, Vec<String>> {
        let mut members = Members::of(body)?;
        let name = name(&mut members, purpose);
        let mut common = common(&mut members);
        // The visibility of a reaction follows from its project.
        common.scopes = None;
        let subscription = SubscriptionFilterChange::of(&mut members, Types::new);
        let effect = match members.raw("effect").map(Effect::parse) {
            Some(Ok(effect)) => Some(effect),
            Some(Err(faults)) => {
                faults.into_iter().for_each(|fault| members.fault(fault));
                None
            }
            None => {
                if purpose == Purpose::Create {
                    members.fault("effect is required.");
                }
                None
            }
        };
        let status = members.text("status").and_then(|text| {
            text.parse::<Status>().map_err(|()| members.fault("status must be active or disabled.")).ok()
        });
        members.finish(Some(Self { name, common, subscription, effect, status }))
    }
}

impl Reaction {
    /// The reaction after a change at `now`.
    #[must_use]
    pub fn apply(self, change: ReactionChange, now: UnixMillis) -> Self {
        let old = self.details;
        let details = ReactionDetails {
            common: old.common.merge(change.common),
            subscription: old.subscription.merge(change.subscription),
            effect: change.effect.unwrap_or(old.effect),
        };
        let (name, status) = (change.name.unwrap_or(self.name), change.status.unwrap_or(self.status));
        Self { stamp: self.stamp.touch(now), name, status, details, ..self }
    }
}

named! {
    Reaction: ReactionId, ReactionDetails, "reaction", Reactions of project;
}

#[cfg(test)]
mod tests {
    use kernel::domain::body::assert_faults;
    use serde_json::json;

    use super::*;

    const ID: &str = "UKXAGyEf8SQ5eTDmVgGpHqAa";

    #[test]
    fn each_fault_is_named() {
        let sets = json!({"type": "property", "key": "Seen", "value": 1});
        let long = "x".repeat(20_000);
        for (body, purpose, faults) in [
            (json!({"name": "x", "effect": sets}), Purpose::Create, vec![]),
            (json!({}), Purpose::Create, vec!["name is required", "effect is required"]),
            (json!({}), Purpose::Update, vec![]),
            (json!([]), Purpose::Update, vec!["must be a JSON object"]),
            (json!({"types": ["reaction"]}), Purpose::Update, vec!["types: \"reaction\" is no type"]),
            (
                json!({"types": 1, "status": "paused"}),
                Purpose::Update,
                vec!["types", "status must be active"],
            ),
            (json!({"match": "color=red"}), Purpose::Update, vec!["match: \"color\" is not"]),
            (json!({"effect": 1}), Purpose::Update, vec!["effect must be an object"]),
            (json!({"effect": {}}), Purpose::Update, vec!["effect.type is required"]),
            (
                json!({"effect": {"type": "mail"}}),
                Purpose::Update,
                vec!["effect.type must be webhook, property"],
            ),
            (json!({"effect": {"type": "webhook"}}), Purpose::Update, vec!["effect.webhook is required"]),
            (
                json!({"effect": {"type": "webhook", "webhook": "x"}}),
                Purpose::Update,
                vec!["effect.webhook:"],
            ),
            (
                json!({"effect": {"type": "property"}}),
                Purpose::Update,
                vec!["effect.key is required", "effect must have one of value and from"],
            ),
            (
                json!({"effect": {"type": "property", "key": "~connected", "value": long}}),
                Purpose::Update,
                vec!["effect.key must not begin with ~", "effect.value must have at most"],
            ),
            (
                json!({"effect": {"type": "property", "key": 1, "value": 1, "from": "type"}}),
                Purpose::Update,
                vec!["effect.key must be a string", "effect must have one of"],
            ),
            (
                json!({"effect": {"type": "property", "key": "a", "from": "color"}}),
                Purpose::Update,
                vec!["effect.from: \"color\" is no field"],
            ),
            (
                json!({"effect": {"type": "property", "key": "a", "from": "customFields.\u{0}"}}),
                Purpose::Update,
                vec!["effect.from"],
            ),
            (
                json!({"effect": {"type": "property", "key": "a", "value": 1, "of": "x"}}),
                Purpose::Update,
                vec!["effect.of must be either, thng or product"],
            ),
            (
                json!({"effect": {"type": "property", "key": "a", "value": 1, "thng": "x"}}),
                Purpose::Update,
                vec!["effect.thng: neither an id"],
            ),
            (
                json!({"effect": {"type": "property", "key": "a", "value": 1, "thng": ID, "of": "thng"}}),
                Purpose::Update,
                vec!["effect must have at most one of of, thng and product"],
            ),
            (json!({"effect": {"type": "action"}}), Purpose::Update, vec!["effect.action is required"]),
            (
                json!({"effect": {"type": "action", "action": {"tags": [1], "location": {}}}}),
                Purpose::Update,
                vec!["effect.action.type is required", "effect.action.location must", "effect.action.tags"],
            ),
        ] {
            assert_faults(&body, |body| ReactionChange::parse(body, purpose), &faults);
        }
    }
}
