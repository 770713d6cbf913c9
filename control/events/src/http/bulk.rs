//! Several resources in one request.

use std::sync::Arc;

use super::{
    reactions::{ReactionDocument, parse as parse_reaction},
    webhooks::{WebhookDocument, parse as parse_webhook},
};
use crate::{
    domain::{body::Purpose, reaction::Reaction, webhook::Webhook},
    service::EventState,
};

web::bulk!(
    Arc<EventState>,
    EventState,
    webhooks,
    Webhook,
    WebhookDocument,
    "/webhooks",
    "Events",
    "webhooks",
    "Beta",
    |state, body| { parse_webhook(state, body, Purpose::Update) }
);
web::bulk!(
    Arc<EventState>,
    EventState,
    reactions,
    Reaction,
    ReactionDocument,
    "/reactions",
    "Events",
    "reactions",
    "Beta",
    |_, body| { parse_reaction(body, Purpose::Update) }
);
