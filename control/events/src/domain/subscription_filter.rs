//! The subscription filter of a webhook or a reaction: event types and an optional condition.

use serde::{Deserialize, Serialize};

use super::{
    event_filter::{Condition, Types},
    members::Members,
};

/// The filter, stored in the document of the subscriber.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SubscriptionFilter {
    /// Types of events; none for all.
    pub types: Vec<String>,
    /// What an event must meet.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
}

/// Its members in a create or update; `None` means not given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubscriptionFilterChange {
    /// Types of events.
    pub types: Option<Vec<String>>,
    /// What an event must meet; an empty text takes it away.
    pub condition: Option<String>,
}

impl SubscriptionFilterChange {
    /// Takes `types` and `match` out of a body; `check` validates the types.
    pub fn of(members: &mut Members<'_>, check: fn(Vec<String>) -> Result<Types, String>) -> Self {
        let types = members.texts("types").map(|types| types.into_iter().map(str::to_owned).collect());
        let types = types.and_then(|types: Vec<String>| match check(types.clone()) {
            Ok(_) => Some(types),
            Err(fault) => {
                members.fault(format!("types: {fault}."));
                None
            }
        });
        let condition = members.text("match").map(str::to_owned);
        if let Some(text) = condition.as_deref().filter(|text| !text.is_empty())
            && let Err(fault) = Condition::parse(text)
        {
            members.fault(fault);
        }
        Self { types, condition }
    }
}

impl SubscriptionFilter {
    /// The filter after an update.
    #[must_use]
    pub fn merge(self, change: SubscriptionFilterChange) -> Self {
        Self {
            types: change.types.unwrap_or(self.types),
            condition: match change.condition {
                None => self.condition,
                Some(text) => Some(text).filter(|text| !text.is_empty()),
            },
        }
    }
}
