//! HTTP: reactions.

use axum::{Json, response::Response};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;
use web::{
    api_error::ApiError,
    conditions::Tagged,
    extract::JsonBody,
    openapi::{ListParams, PageParams},
    wire::{CommonDocument, created},
};

use super::followers::{All, One};
use crate::{
    domain::{
        body::Purpose,
        listing::REACTIONS,
        reaction::{Outcome, Reaction, ReactionChange},
    },
    service::reactions as service,
};

/// A reaction: what is done when something happens.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReactionDocument {
    /// Its id.
    #[schema(read_only, example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    id: String,
    #[serde(flatten)]
    common: CommonDocument,
    /// 1 to 256 characters; required on create.
    #[schema(example = "Note the city")]
    name: String,
    /// Types or families of events; none means all.
    #[schema(max_items = 50)]
    types: Vec<String>,
    /// What an event must meet, in the language of `filter`, as of `GET /events`; an empty text takes it away.
    #[serde(rename = "match", skip_serializing_if = "Option::is_none")]
    #[schema(example = "context.countryCode=DE")]
    condition: Option<String>,
    /// What is done; required on create. By its `type`: `webhook` sends the event to the webhook that `webhook`
    /// names, whatever that one hears otherwise; `property` sets the property `key` to `value`, or to what the event
    /// has at the path `from`, of what the event is about (`of`: `either`, `thng` or `product`) or of a `thng` or
    /// `product` that is named; `action` creates the `action` described, which is about the same as the event
    /// unless it names something.
    #[schema(value_type = Object, example = json!({"type": "property", "key": "last_city", "from": "context.city"}))]
    effect: Value,
    /// `active`, or `disabled`: nothing is done and nothing is kept.
    #[schema(example = "active")]
    status: &'static str,
    /// The project to whose events it reacts, and in which it may do something; without one, the account.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(read_only)]
    project: Option<String>,
    /// What came of it so far.
    #[schema(read_only)]
    outcome: ReactionOutcome,
}

/// What came of a reaction.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ReactionOutcome {
    /// How often it was carried out.
    done: i64,
    /// How often it could not be, as what it names was not there any more or refused it.
    failed: i64,
    /// How many events are lost, as a million waited already when they came.
    dropped: i64,
    /// When it was carried out last, or could not be.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_at: Option<i64>,
    /// The last time that it could not be carried out.
    #[serde(skip_serializing_if = "Option::is_none")]
    last_failure: Option<ReactionFailure>,
}

/// Why a reaction could not be carried out.
#[derive(Debug, Serialize, ToSchema)]
struct ReactionFailure {
    /// When.
    timestamp: i64,
    /// The id of the event: that of the action, for one.
    event: String,
    /// Why.
    reason: String,
}

impl From<Outcome> for ReactionOutcome {
    fn from(outcome: Outcome) -> Self {
        Self {
            done: outcome.done,
            failed: outcome.failed,
            dropped: outcome.dropped,
            last_at: outcome.last_at.map(|at| at.0),
            last_failure: outcome.failure.map(|failure| ReactionFailure {
                timestamp: failure.at.0,
                event: failure.event,
                reason: failure.reason,
            }),
        }
    }
}

impl From<Reaction> for ReactionDocument {
    fn from(reaction: Reaction) -> Self {
        let details = reaction.details;
        Self {
            id: reaction.id.to_string(),
            common: CommonDocument::new(reaction.stamp, details.common, false),
            name: reaction.name,
            types: details.subscription.types,
            condition: details.subscription.condition,
            effect: json!(details.effect),
            status: reaction.status.as_str(),
            project: reaction.project.map(|id| id.to_string()),
            outcome: reaction.outcome.into(),
        }
    }
}

/// Lists reactions, newest first.
#[utoipa::path(get, path = "/reactions", tag = "Events", operation_id = "listReactions",
    params(PageParams, ListParams),
    responses((status = 200, description = "One page", body = [ReactionDocument])))]
pub(super) async fn list(all: All) -> Result<Response, ApiError> {
    all.list::<Reaction, ReactionDocument>(&REACTIONS).await
}

/// Makes a reaction, which reacts to what happens from now on.
///
/// What it does is done once for each event, soon after it; what it causes carries by which reactions it came about,
/// and no reaction reacts to what it had its part in, nor to what lies five reactions deep.
#[utoipa::path(post, path = "/reactions", tag = "Events", operation_id = "createReaction",
    params(("project" = Option<String>, Query,
        description = "Project to whose events it reacts, and in which alone it may do something")),
    request_body = ReactionDocument,
    responses((status = 201, description = "The reaction", body = ReactionDocument)))]
pub(super) async fn create(all: All, JsonBody(body): JsonBody) -> Result<Response, ApiError> {
    let change = parse(&body, Purpose::Create)?;
    let reaction = service::create(&all.state, &all.caller, change, all.query.find("project")).await?;
    let id = reaction.id;
    Ok(created(&all.info, id.as_str(), ReactionDocument::from(reaction)))
}

/// Reads a reaction, with what came of it.
#[utoipa::path(get, path = "/reactions/{id}", tag = "Events", operation_id = "readReaction",
    params(("id" = String, Path, description = "Id of the reaction")),
    responses((status = 200, description = "The reaction", body = ReactionDocument)))]
pub(super) async fn read(one: One) -> Result<Tagged<ReactionDocument>, ApiError> {
    one.read::<Reaction, _>().await
}

/// Changes the members given; the others stay. `effect` is replaced as a whole.
#[utoipa::path(put, path = "/reactions/{id}", tag = "Events", operation_id = "updateReaction",
    params(("id" = String, Path, description = "Id of the reaction")),
    request_body(content = ReactionDocument, description = "The members to change; the others may be left out"),
    responses((status = 200, description = "The whole reaction", body = ReactionDocument)))]
pub(super) async fn update(one: One, JsonBody(body): JsonBody) -> Result<Json<ReactionDocument>, ApiError> {
    let change = parse(&body, Purpose::Update)?;
    Ok(Json(service::update(&one.state, &one.caller, &one.id, change).await?.into()))
}

pub(super) fn parse(body: &Value, purpose: Purpose) -> Result<ReactionChange, ApiError> {
    ReactionChange::parse(body, purpose).map_err(ApiError::invalid)
}

/// Removes a reaction with what it had still to do.
#[utoipa::path(delete, path = "/reactions/{id}", tag = "Events", operation_id = "deleteReaction",
    params(("id" = String, Path, description = "Id of the reaction")),
    responses((status = 200, description = "Removed; the body is empty")))]
pub(super) async fn delete(one: One) -> Result<(), ApiError> {
    one.delete::<Reaction>().await
}
