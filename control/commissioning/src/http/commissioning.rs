//! HTTP: commissioning.

use actions::http::{ActionDocument, Sender, Shown, list_in};
use axum::{Json, extract::State, response::Response};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use web::{
    access::Authenticated,
    api_error::ApiError,
    extract::{JsonBody, Path, Query},
    openapi::{ListParams, PageParams},
    request_info::RequestInfo,
    wire::created,
};

use crate::{
    domain::commissioning_body::{CommissionDraft, PRODUCT_KEY, StepDraft, THNG_KEY, parse_pairs},
    service::{ActionState, actions::Scope, commissioning as service, commissioning::Stands},
};

/// What a commission says; `product` is left out of a decommission.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "the fields describe the body, which the domain reads")]
pub(super) struct StepDocument {
    /// The product, by `<key>:<value>` or id.
    #[schema(example = "gs1:01:09521234543213")]
    product: Option<String>,
    /// `position` or `place`.
    #[schema(value_type = Object)]
    location: Map<String, Value>,
    /// Date and time with an offset.
    occurred_at: String,
}

/// Whether a Thng is commissioned.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CommissionStateDocument {
    /// `commissioned`, `decommissioned` or `not_commissioned`.
    #[schema(example = "commissioned")]
    state: &'static str,
    /// When that happened, as the factory wrote it; absent for `not_commissioned`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "2026-11-22T08:15:30+01:00")]
    occurred_at: Option<String>,
}

impl From<Stands> for CommissionStateDocument {
    fn from(stands: Stands) -> Self {
        Self { state: stands.state.as_str(), occurred_at: stands.occurred_at }
    }
}

/// The state of a pair.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PairStateDocument {
    /// As it was asked for.
    #[schema(example = "gs1:21:A1B2")]
    thng_identifier: String,
    /// As it was asked for.
    #[schema(example = "gs1:01:09521234543213")]
    product_identifier: String,
    #[serde(flatten)]
    state: CommissionStateDocument,
}

/// Commissions a Thng: it becomes an instance of a product.
#[utoipa::path(post, path = "/thngs/{id}/actions/commissions", tag = "Commissioning",
    operation_id = "commissionThng",
    params(("id" = String, Path, description = "Id, or `<key>:<value>`; of several Thngs that of the product")),
    request_body = StepDocument,
    responses((status = 201, description = "The action of the type `commissions`, with its `context`",
        body = ActionDocument)))]
pub(super) async fn commission(
    State(state): State<ActionState>,
    Authenticated(caller): Authenticated,
    Path(thng): Path<String>,
    sender: Sender,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let draft = CommissionDraft::parse(&body).map_err(ApiError::invalid)?;
    let action = service::commission(&state, &caller, &thng, &draft, sender.origin()).await?;
    let document = ActionDocument::new(action, Shown { context: true, scopes: false });
    let id = document.id().to_owned();
    Ok(created(&sender.info, &id, document))
}

/// Decommissions a Thng: it is withdrawn, and is no instance of its product any more.
#[utoipa::path(post, path = "/thngs/{id}/actions/decommissions", tag = "Commissioning",
    operation_id = "decommissionThng", params(("id" = String, Path, description = "Id, or `<key>:<value>`")),
    request_body = StepDocument,
    responses((status = 200, description = "The action of the type `decommissions`, with its `context`",
        body = ActionDocument)))]
pub(super) async fn decommission(
    State(state): State<ActionState>,
    Authenticated(caller): Authenticated,
    Path(thng): Path<String>,
    sender: Sender,
    JsonBody(body): JsonBody,
) -> Result<Json<ActionDocument>, ApiError> {
    let draft = StepDraft::parse(&body).map_err(ApiError::invalid)?;
    let action = service::decommission(&state, &caller, &thng, &draft, sender.origin()).await?;
    Ok(Json(ActionDocument::new(action, Shown { context: true, scopes: false })))
}

/// Reads whether a Thng is commissioned.
#[utoipa::path(get, path = "/thngs/{id}/commissionState", tag = "Commissioning",
    operation_id = "readCommissionState", params(("id" = String, Path, description = "Id, or `<key>:<value>`")),
    responses((status = 200, description = "The state", body = CommissionStateDocument)))]
pub(super) async fn read_state(
    State(state): State<ActionState>,
    Authenticated(caller): Authenticated,
    Path(thng): Path<String>,
) -> Result<Json<CommissionStateDocument>, ApiError> {
    Ok(Json(service::read_state(&state, &caller, &thng).await?.into()))
}

/// Reads the states of up to 1,000 pairs of a Thng and a product, in the order in which they are asked for.
#[utoipa::path(post, path = "/thngs/commissionStateList", tag = "Commissioning",
    operation_id = "readCommissionStates", request_body = [PairStateDocument],
    responses((status = 200, description = "One state for each pair; a pair that does not fit is \
        `not_commissioned`", body = [PairStateDocument])),
    extensions(("x-maturity" = json!("Stable"))))]
pub(super) async fn list_states(
    State(state): State<ActionState>,
    Authenticated(caller): Authenticated,
    JsonBody(body): JsonBody,
) -> Result<Json<Vec<PairStateDocument>>, ApiError> {
    let pairs = parse_pairs(&body).map_err(ApiError::invalid)?;
    let states = service::list_states(&state, &caller, &pairs).await?;
    let documents = pairs.into_iter().zip(states).map(|(pair, stands)| PairStateDocument {
        thng_identifier: format!("{THNG_KEY}:{}", pair.thng),
        product_identifier: format!("{PRODUCT_KEY}:{}", pair.product),
        state: stands.into(),
    });
    Ok(Json(documents.collect()))
}

/// Lists the commissions of a Thng.
#[utoipa::path(get, path = "/thngs/{id}/actions/commissions", tag = "Commissioning",
    operation_id = "listThngCommissions",
    params(PageParams, ListParams, ("id" = String, Path, description = "Id, or `<key>:<value>`"),
        ("context" = Option<bool>, Query, description = "Show `context`")),
    responses((status = 200, description = "One page", body = [ActionDocument])))]
pub(super) async fn list_commissions(
    State(state): State<ActionState>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    Path(thng): Path<String>,
    query: Query,
) -> Result<Response, ApiError> {
    list_in(&state, &caller, info, &query, Scope::Thng(&thng), "commissions").await
}

/// Lists the decommissions of a Thng.
#[utoipa::path(get, path = "/thngs/{id}/actions/decommissions", tag = "Commissioning",
    operation_id = "listThngDecommissions",
    params(PageParams, ListParams, ("id" = String, Path, description = "Id, or `<key>:<value>`"),
        ("context" = Option<bool>, Query, description = "Show `context`")),
    responses((status = 200, description = "One page", body = [ActionDocument])))]
pub(super) async fn list_decommissions(
    State(state): State<ActionState>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    Path(thng): Path<String>,
    query: Query,
) -> Result<Response, ApiError> {
    list_in(&state, &caller, info, &query, Scope::Thng(&thng), "decommissions").await
}
