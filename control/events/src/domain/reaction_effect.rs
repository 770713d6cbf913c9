//! Effects of reactions: configured as an [`Effect`], resolved for each event into a [`ResolvedEffect`].

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use shared::id::{ReactionId, ResourceId, WebhookId};

use super::{
    action_draft::ActionDraft,
    event_filter,
    limits::{self, MAX_IDENTIFIER, MAX_KEY},
    members::Members,
    property::{Owner, PropertyKey},
    property_body::check_value,
    reference::Reference,
};

/// Longest path of a value in an event, in characters.
const MAX_PATH: usize = 512;

/// The effect of a reaction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum Effect {
    /// Sends the event to a webhook of the account.
    Webhook {
        /// Which.
        webhook: WebhookId,
    },
    /// Sets a property.
    Property {
        /// Its name.
        key: String,
        /// What to.
        #[serde(flatten)]
        source: Source,
        /// Of what.
        #[serde(flatten)]
        target: Target,
    },
    /// Creates an action.
    Action {
        /// As the body of a request that creates one; without a target it is about the target of the event.
        action: Map<String, Value>,
    },
}

/// Where the value of a property comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Source {
    /// It is this.
    Value(Value),
    /// The event's value at this path.
    From(String),
}

/// Whose property is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Target {
    /// Of the Thng or the product that the event is about.
    Of(Subject),
    /// Of this Thng.
    Thng(String),
    /// Of this product.
    Product(String),
}

shared::words! {
    /// What an event is about.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "camelCase")]
    pub enum Subject {
        /// Its Thng, or its product where it has no Thng.
        Either = "either",
        /// Its Thng.
        Thng = "thng",
        /// Its product.
        Product = "product",
    } else ()
}

/// An effect resolved for one event; stored until it is carried out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum ResolvedEffect {
    /// A message to a webhook.
    Webhook {
        /// Which.
        webhook: WebhookId,
        /// The body.
        body: String,
    },
    /// A value of a property of a Thng.
    #[serde(rename_all = "camelCase")]
    ThngProperty {
        /// Id of the Thng, or how it was named.
        thng: String,
        /// Name of the property.
        key: String,
        /// The value.
        value: Value,
    },
    /// A value of a property of a product.
    #[serde(rename_all = "camelCase")]
    ProductProperty {
        /// Id of the product, or how it was named.
        product: String,
        /// Name of the property.
        key: String,
        /// The value.
        value: Value,
    },
    /// An action.
    Action {
        /// As the body of a request that creates one.
        action: Map<String, Value>,
    },
    /// Nothing that can be done.
    Impossible {
        /// Why.
        fault: String,
    },
}

impl Effect {
    /// Reads the member `effect`.
    ///
    /// # Errors
    /// Every fault found, each naming its member.
    pub fn parse(value: &Value) -> Result<Self, Vec<String>> {
        let mut members = Members::within(value, "effect")?;
        let effect = match members.text("type") {
            Some("webhook") => {
                let webhook = members.parsed("webhook");
                if members.raw("webhook").is_none() {
                    members.fault("effect.webhook is required.");
                }
                webhook.map(|webhook| Self::Webhook { webhook })
            }
            Some("property") => property(&mut members),
            Some("action") => match members.raw("action") {
                Some(action) => match read_action(action) {
                    Ok(action) => Some(Self::Action { action }),
                    Err(faults) => {
                        faults.into_iter().for_each(|fault| members.fault(fault));
                        None
                    }
                },
                None => {
                    members.fault("effect.action is required.");
                    None
                }
            },
            Some(_) => {
                members.fault("effect.type must be webhook, property or action.");
                None
            }
            None => {
                if members.raw("type").is_none() {
                    members.fault("effect.type is required.");
                }
                None
            }
        };
        members.finish(effect)
    }

    /// Resolves the effect for an event: `facts` is what conditions test, `event` is what is sent.
    #[must_use]
    pub fn about(&self, reaction: ReactionId, name: &str, facts: &Value, event: &Value) -> ResolvedEffect {
        let about = |member: &str| facts.get(member).and_then(Value::as_str).map(str::to_owned);
        match self {
            Self::Webhook { webhook } => {
                let data = json!({"reaction": reaction, "name": name, "event": event});
                let timestamp = event.get("timestamp").cloned().unwrap_or_default();
                let body = json!({"type": event_filter::REACTION, "timestamp": timestamp, "data": data});
                ResolvedEffect::Webhook { webhook: *webhook, body: body.to_string() }
            }
            Self::Property { key, source, target } => {
                let value = match source {
                    Source::Value(value) => value.clone(),
                    Source::From(path) => match event_filter::find(facts, path) {
                        Some(value) => value.clone(),
                        None => return ResolvedEffect::impossible(format!("The event has no {path}.")),
                    },
                };
                if let Err(fault) = check_value(&value) {
                    return ResolvedEffect::impossible(format!("The value {fault}."));
                }
                let target = match target {
                    Target::Of(subject) => {
                        let thng = about("thng").filter(|_| *subject != Subject::Product).map(Target::Thng);
                        let product = || about("product").filter(|_| *subject != Subject::Thng);
                        thng.or_else(|| product().map(Target::Product))
                    }
                    Target::Thng(_) | Target::Product(_) => Some(target.clone()),
                };
                let key = key.clone();
                match target {
                    Some(Target::Thng(thng)) => ResolvedEffect::ThngProperty { thng, key, value },
                    Some(Target::Product(product)) => ResolvedEffect::ProductProperty { product, key, value },
                    Some(Target::Of(_)) | None => {
                        ResolvedEffect::impossible("The event is about nothing that has properties.")
                    }
                }
            }
            Self::Action { action } => {
                let mut action = action.clone();
                let is_named = SUBJECTS.iter().any(|name| action.contains_key(*name));
                let subject = SUBJECTS.iter().find_map(|name| Some((*name, about(name)?)));
                if let Some((name, id)) = subject.filter(|_| !is_named) {
                    action.insert(name.to_owned(), json!(id));
                }
                ResolvedEffect::Action { action }
            }
        }
    }
}

/// The possible targets of an action, in order of preference.
const SUBJECTS: [&str; 3] = ["thng", "product", "collection"];

/// The members of an action that a reaction gives; the others follow from the event and the reaction.
const ACTION_MEMBERS: [&str; 9] =
    ["type", "thng", "product", "collection", "identifiers", "location", "tags", "customFields", "scopes"];

impl ResolvedEffect {
    fn impossible(fault: impl Into<String>) -> Self {
        Self::Impossible { fault: fault.into() }
    }

    /// The draft of an action that it creates.
    ///
    /// # Errors
    /// Every fault found.
    pub fn draft(action: &Map<String, Value>) -> Result<ActionDraft, Vec<String>> {
        ActionDraft::read(Members::within(&Value::Object(action.clone()), "action")?)
    }
}

fn read_action(value: &Value) -> Result<Map<String, Value>, Vec<String>> {
    let mut members = Members::within(value, "effect.action")?;
    if members.raw("type").is_none() {
        members.fault("effect.action.type is required.");
    }
    let given =
        ACTION_MEMBERS.iter().filter_map(|name| Some(((*name).to_owned(), members.raw(name)?.clone())));
    let given: Map<String, Value> = given.collect();
    let faults = members.finish(Some(())).err().unwrap_or_default();
    let draft = ActionDraft::read(Members::within(value, "effect.action")?);
    let faults: Vec<String> = faults.into_iter().chain(draft.err().unwrap_or_default()).collect();
    if faults.is_empty() { Ok(given) } else { Err(faults) }
}

fn property(members: &mut Members<'_>) -> Option<Effect> {
    let key = match members.text("key").map(PropertyKey::parse) {
        Some(Ok(key)) if key.is_system() => {
            members.fault("effect.key must not begin with ~: such properties are read-only.");
            None
        }
        Some(Ok(key)) => Some(key),
        Some(Err(fault)) => {
            members.fault(format!("effect.key {fault}."));
            None
        }
        None => {
            if members.raw("key").is_none() {
                members.fault("effect.key is required.");
            }
            None
        }
    };
    let from = members.text("from");
    let source = match (members.raw("value"), from) {
        (Some(value), None) if members.raw("from").is_none() => match check_value(value) {
            Ok(()) => Some(Source::Value(value.clone())),
            Err(fault) => {
                members.fault(format!("effect.value {fault}."));
                None
            }
        },
        (None, Some(path)) if is_path(path) => Some(Source::From(path.to_owned())),
        (None, Some(path)) => {
            members.fault(format!("effect.from: {:?} is no field of events.", limits::shorten(path)));
            None
        }
        (None, None) if members.raw("from").is_some() => None,
        (Some(_) | None, _) => {
            members.fault("effect must have one of value and from.");
            None
        }
    };
    let target = target(members);
    Some(Effect::Property { key: key?.to_string(), source: source?, target: target? })
}

fn is_path(path: &str) -> bool {
    limits::check_text(path, 1, MAX_PATH).is_ok() && event_filter::is_field(path)
}

fn target(members: &mut Members<'_>) -> Option<Target> {
    let given = ["of", "thng", "product"].into_iter().filter(|name| members.raw(name).is_some());
    if given.count() > 1 {
        members.fault("effect must have at most one of of, thng and product.");
        return None;
    }
    if members.raw("of").is_some() {
        let found = members.text("of")?.parse::<Subject>().ok();
        if found.is_none() {
            members.fault("effect.of must be either, thng or product.");
        }
        return found.map(Target::Of);
    }
    if members.raw("thng").is_some() {
        return reference(members, "thng").map(Target::Thng);
    }
    if members.raw("product").is_some() {
        return reference(members, "product").map(Target::Product);
    }
    Some(Target::Of(Subject::Either))
}

fn reference(members: &mut Members<'_>, name: &str) -> Option<String> {
    let text = members.parsed::<Reference<ResourceId>>(name)?.to_string();
    if let Err(fault) = limits::check_text(&text, 1, MAX_KEY + 1 + MAX_IDENTIFIER) {
        members.fault(format!("effect.{name} {fault}."));
        return None;
    }
    Some(text)
}

impl Target {
    /// The Thng or product that it names, independent of the event.
    #[must_use]
    pub fn fixed(&self) -> Option<(Owner, &str)> {
        match self {
            Self::Of(_) => None,
            Self::Thng(thng) => Some((Owner::Thng, thng)),
            Self::Product(product) => Some((Owner::Product, product)),
        }
    }
}

#[cfg(test)]
mod tests;
