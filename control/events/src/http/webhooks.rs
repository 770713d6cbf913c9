//! HTTP: webhooks.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Serialize;
use serde_json::Value;
use serde_with_macros::skip_serializing_none;
use shared::problem::Code;
use utoipa::ToSchema;
use web::{
    access::Authenticated,
    api_error::ApiError,
    conditions::Tagged,
    extract::{JsonBody, Path, Query},
    listing::Listing,
    openapi::{ListParams, PageParams},
    request_info::RequestInfo,
    wire::{CommonDocument, created},
};

use super::followers::{All, One};
use crate::{
    domain::{
        body::Purpose,
        limits::integer,
        listing::{DELIVERIES, WEBHOOKS},
        members::Members,
        property::MAX_TIME_MS,
        webhook::{Webhook, WebhookChange},
    },
    service::{EventState, webhooks as service, webhooks::Secret},
    store::webhook_messages::{Delivery, Range, tries},
};

/// A webhook: where events are sent, in the form of Standard Webhooks.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct WebhookDocument {
    /// Its id.
    #[schema(read_only, example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    id: String,
    #[serde(flatten)]
    common: CommonDocument,
    /// 1 to 256 characters; required on create.
    #[schema(example = "Warehouse")]
    name: String,
    /// Where to: `https`, a public host, no user name; required on create.
    #[schema(example = "https://example.com/hooks/waymark")]
    url: String,
    /// Types or families of events; none means all. `reaction` is what reactions send: a webhook that names it alone
    /// gets nothing else.
    #[schema(max_items = 50)]
    types: Vec<String>,
    /// What an event must meet, in the language of `filter`, as of `GET /events`; an empty text takes it away.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    #[schema(example = "context.countryCode=DE")]
    condition: Option<String>,
    /// Whether each event waits until the one before it was taken.
    ordered: bool,
    /// `active`; `paused`: nothing is sent, and what happens is kept for three days; `disabled`: nothing is kept. It
    /// is paused by itself when the receiver took nothing for a day or answered 410.
    #[schema(example = "active")]
    status: &'static str,
    /// Why it was paused by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(read_only)]
    reason: Option<String>,
    /// The project whose events it gets; without one, those of the account.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(read_only)]
    project: Option<String>,
    /// How many events are lost, as 100,000 waited already when they came.
    #[schema(read_only)]
    dropped: i64,
}

impl From<Webhook> for WebhookDocument {
    fn from(webhook: Webhook) -> Self {
        let details = webhook.details;
        Self {
            id: webhook.id.to_string(),
            common: CommonDocument::new(webhook.stamp, details.common, false),
            name: webhook.name,
            url: details.url,
            types: details.subscription.types,
            condition: details.subscription.condition,
            ordered: details.ordered,
            status: webhook.status.as_str(),
            reason: webhook.reason,
            dropped: webhook.dropped,
            project: webhook.project.map(|id| id.to_string()),
        }
    }
}

/// A secret that a webhook signs with.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct WebhookSecretDocument {
    /// Its number, greater for later ones.
    version: u32,
    /// What receivers verify with.
    #[schema(example = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")]
    secret: String,
    /// When it was made.
    created_at: i64,
    /// When it ceases to sign; absent for the newest.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<i64>,
}

impl From<Secret> for WebhookSecretDocument {
    fn from(secret: Secret) -> Self {
        Self {
            version: secret.version.version,
            secret: secret.value,
            created_at: secret.version.created_at.0,
            expires_at: secret.version.expires_at.map(|at| at.0),
        }
    }
}

/// What became of a test event.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct WebhookPingDocument {
    /// Whether the receiver took it: a status of 200 to 299.
    delivered: bool,
    /// The status of its answer.
    http_status: Option<u16>,
    /// The first 1,024 bytes of its answer.
    excerpt: Option<String>,
    /// Why there was no answer.
    error: Option<String>,
    /// How long it took, in milliseconds.
    took_ms: Option<u64>,
}

/// An event on its way to a receiver, or there.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct WebhookDeliveryDocument {
    /// Its `webhook-id`, the same at every try.
    id: String,
    /// The type of the event.
    #[serde(rename = "type")]
    #[schema(example = "action.scans")]
    kind: String,
    /// When it was put into the queue.
    created_at: i64,
    /// `pending`, `delivered` or `dead`: tried for 24 hours in vain.
    #[schema(example = "delivered")]
    status: String,
    /// How often it was tried.
    attempts: u64,
    /// When it was tried last.
    last_attempt_at: Option<i64>,
    /// When it is tried again.
    next_attempt_at: Option<i64>,
    /// The status of the last answer.
    http_status: Option<i64>,
    /// The first 1,024 bytes of the last answer.
    excerpt: Option<String>,
    /// Why there was no answer.
    error: Option<String>,
    /// What is sent.
    #[schema(value_type = Object)]
    payload: Value,
}

impl From<Delivery> for WebhookDeliveryDocument {
    fn from(delivery: Delivery) -> Self {
        let created_at = delivery.created_at();
        let waits = delivery.status == "pending" && delivery.next_at > 0;
        Self {
            id: delivery.message_id,
            kind: delivery.r#type,
            created_at,
            attempts: tries(delivery.attempts),
            last_attempt_at: delivery.last_at,
            next_attempt_at: waits.then_some(delivery.next_at),
            http_status: delivery.http_status,
            excerpt: delivery.excerpt,
            error: delivery.error,
            payload: serde_json::from_str(&delivery.body).unwrap_or_default(),
            status: delivery.status,
        }
    }
}

/// How many events are sent again.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct WebhookRedeliveryDocument {
    /// Their number.
    count: u64,
}

/// Lists webhooks, newest first.
#[utoipa::path(get, path = "/webhooks", tag = "Events", operation_id = "listWebhooks",
    params(PageParams, ListParams),
    responses((status = 200, description = "One page", body = [WebhookDocument])))]
pub(super) async fn list(all: All) -> Result<Response, ApiError> {
    all.list::<Webhook, WebhookDocument>(&WEBHOOKS).await
}

/// Makes a webhook, which gets what happens from now on.
#[utoipa::path(post, path = "/webhooks", tag = "Events", operation_id = "createWebhook",
    params(("project" = Option<String>, Query, description = "Project whose events it gets")),
    request_body = WebhookDocument,
    responses((status = 201, description = "The webhook", body = WebhookDocument)))]
pub(super) async fn create(all: All, JsonBody(body): JsonBody) -> Result<Response, ApiError> {
    let change = parse(&all.state, &body, Purpose::Create)?;
    let webhook = service::create(&all.state, &all.caller, change, all.query.find("project")).await?;
    let id = webhook.id;
    Ok(created(&all.info, id.as_str(), WebhookDocument::from(webhook)))
}

/// Reads a webhook.
#[utoipa::path(get, path = "/webhooks/{id}", tag = "Events", operation_id = "readWebhook",
    params(("id" = String, Path, description = "Id of the webhook")),
    responses((status = 200, description = "The webhook", body = WebhookDocument)))]
pub(super) async fn read(one: One) -> Result<Tagged<WebhookDocument>, ApiError> {
    one.read::<Webhook, _>().await
}

/// Changes the members given; the others stay. `status` `active` resumes one that is paused.
#[utoipa::path(put, path = "/webhooks/{id}", tag = "Events", operation_id = "updateWebhook",
    params(("id" = String, Path, description = "Id of the webhook")),
    request_body(content = WebhookDocument, description = "The members to change; the others may be left out"),
    responses((status = 200, description = "The whole webhook", body = WebhookDocument)))]
pub(super) async fn update(one: One, JsonBody(body): JsonBody) -> Result<Json<WebhookDocument>, ApiError> {
    let change = parse(&one.state, &body, Purpose::Update)?;
    Ok(Json(service::update(&one.state, &one.caller, &one.id, change).await?.into()))
}

pub(super) fn parse(state: &EventState, body: &Value, purpose: Purpose) -> Result<WebhookChange, ApiError> {
    WebhookChange::parse(body, purpose, state.egress.allows_loopback()).map_err(ApiError::invalid)
}

/// Removes a webhook with what it was still to be sent.
#[utoipa::path(delete, path = "/webhooks/{id}", tag = "Events", operation_id = "deleteWebhook",
    params(("id" = String, Path, description = "Id of the webhook")),
    responses((status = 200, description = "Removed; the body is empty")))]
pub(super) async fn delete(one: One) -> Result<(), ApiError> {
    one.delete::<Webhook>().await
}

/// Shows the secrets that sign now, newest first.
#[utoipa::path(get, path = "/webhooks/{id}/secrets", tag = "Events", operation_id = "listWebhookSecrets",
    params(("id" = String, Path, description = "Id of the webhook")),
    responses((status = 200, description = "The secrets", body = [WebhookSecretDocument])))]
pub(super) async fn list_secrets(one: One) -> Result<Json<Vec<WebhookSecretDocument>>, ApiError> {
    let secrets = service::list_secrets(&one.state, &one.caller, &one.id).await?;
    Ok(Json(secrets.into_iter().map(WebhookSecretDocument::from).collect()))
}

/// Puts a new secret into use; those before it sign beside it for a day, or as long as `overlap` says.
#[utoipa::path(post, path = "/webhooks/{id}/secrets", tag = "Events", operation_id = "rotateWebhookSecret",
    params(("id" = String, Path, description = "Id of the webhook")),
    request_body(content = Object, description = "How long the others sign on"),
    responses((status = 201, description = "The secrets, newest first", body = [WebhookSecretDocument])))]
pub(super) async fn rotate(one: One, JsonBody(body): JsonBody) -> Result<Response, ApiError> {
    let overlap =
        members(&body, |members| members.typed("overlap", "a whole number of milliseconds", integer))?;
    let secrets = service::rotate(&one.state, &one.caller, &one.id, overlap).await?;
    let secrets: Vec<_> = secrets.into_iter().map(WebhookSecretDocument::from).collect();
    Ok((StatusCode::CREATED, Json(secrets)).into_response())
}

/// Sends a test event of the type `ping` at once, and says what the receiver answers.
#[utoipa::path(post, path = "/webhooks/{id}/ping", tag = "Events", operation_id = "pingWebhook",
    params(("id" = String, Path, description = "Id of the webhook")),
    responses((status = 200, description = "What came of it", body = WebhookPingDocument)))]
pub(super) async fn ping(one: One) -> Result<Json<WebhookPingDocument>, ApiError> {
    Ok(Json(match service::ping(&one.state, &one.caller, &one.id).await? {
        Ok(answer) => WebhookPingDocument {
            delivered: (200..300).contains(&answer.status),
            http_status: Some(answer.status),
            excerpt: Some(answer.excerpt),
            error: None,
            took_ms: u64::try_from(answer.took.as_millis()).ok(),
        },
        Err(error) => WebhookPingDocument {
            delivered: false,
            http_status: None,
            excerpt: None,
            error: Some(error),
            took_ms: None,
        },
    }))
}

/// Lists what a webhook is to be sent and was within three days, newest first.
#[utoipa::path(get, path = "/webhooks/{id}/deliveries", tag = "Events", operation_id = "listWebhookDeliveries",
    params(("id" = String, Path, description = "Id of the webhook"), PageParams,
        ("filter" = Option<String>, Query, description = "By `status` and `type`")),
    responses((status = 200, description = "One page", body = [WebhookDeliveryDocument])))]
pub(super) async fn deliveries(
    State(state): State<Arc<EventState>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    info: RequestInfo,
    query: Query,
) -> Result<Response, ApiError> {
    let mut listing = Listing::parse(&state, &caller, info, &query, &DELIVERIES)?;
    // Their ids are those of events.
    listing.request.ids = None;
    let page = service::deliveries(&state, &caller, &id, &listing.request).await?;
    Ok(listing.answer(&state, page, WebhookDeliveryDocument::from))
}

/// Sends one event again.
#[utoipa::path(post, path = "/webhooks/{id}/deliveries/{delivery}", tag = "Events",
    operation_id = "redeliverWebhookEvent",
    params(("id" = String, Path, description = "Id of the webhook"),
        ("delivery" = String, Path, description = "Id of the delivery: its `webhook-id`")),
    responses((status = 202, description = "It is sent again; the body is empty")))]
pub(super) async fn send_again(
    State(state): State<Arc<EventState>>,
    Authenticated(caller): Authenticated,
    Path((id, delivery)): Path<(String, String)>,
) -> Result<StatusCode, ApiError> {
    service::send_again(&state, &caller, &id, &delivery).await?;
    Ok(StatusCode::ACCEPTED)
}

/// Sends the events of a range of time again that are delivered or dead, or only those of one state.
#[utoipa::path(post, path = "/webhooks/{id}/redeliveries", tag = "Events",
    operation_id = "redeliverWebhookEvents",
    params(("id" = String, Path, description = "Id of the webhook")),
    request_body(content = Object, description = "The range"),
    responses((status = 202, description = "They are sent again", body = WebhookRedeliveryDocument)))]
pub(super) async fn send_range_again(one: One, JsonBody(body): JsonBody) -> Result<Response, ApiError> {
    let range = members(&body, |members| {
        let mut time = |name: &str, otherwise: i64| {
            members
                .typed(name, "a time in milliseconds since 1970", |value| {
                    integer(value).filter(|at| *at >= 0)
                })
                .unwrap_or(otherwise)
        };
        let (from, to) = (time("from", 0), time("to", MAX_TIME_MS));
        let status = members.text("status").unwrap_or_default().to_owned();
        if !["", "dead", "delivered"].contains(&status.as_str()) {
            members.fault("status must be dead or delivered.");
        }
        Range { from, to, status }
    })?;
    let count = service::send_range_again(&one.state, &one.caller, &one.id, &range).await?;
    Ok((StatusCode::ACCEPTED, Json(WebhookRedeliveryDocument { count })).into_response())
}

/// Reads the members of a small body.
fn members<T>(body: &Value, read: impl FnOnce(&mut Members<'_>) -> T) -> Result<T, ApiError> {
    let refused = |faults| ApiError::faults(Code::Invalid, faults);
    let mut members = Members::of(body).map_err(refused)?;
    let value = read(&mut members);
    members.finish(Some(value)).map_err(refused)
}
