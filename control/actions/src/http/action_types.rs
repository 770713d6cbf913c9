//! HTTP: action types.

use axum::{Json, extract::State, response::Response};
use serde::Serialize;
use utoipa::ToSchema;
use web::{
    access::Authenticated,
    api_error::ApiError,
    extract::{JsonBody, Path, Query},
    listing::Listing,
    openapi::PageParams,
    request_info::RequestInfo,
    wire::{CommonDocument, created},
};

use crate::{
    domain::{
        action_type::{self, CustomType, NewType},
        listing::ACTION_TYPES,
    },
    service::{
        ActionState,
        action_types::{self, KnownType},
    },
};

/// A type of action.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ActionTypeDocument {
    /// Its name; those that accounts make begin with `_`, at most 128 letters, digits, `_`, `.` and `-`.
    #[schema(example = "_inspections")]
    name: String,
    /// What a type has that is not built in.
    #[serde(flatten)]
    common: Option<CommonDocument>,
}

impl ActionTypeDocument {
    fn new(known: KnownType, with_scopes: bool) -> Self {
        match known {
            KnownType::BuiltIn(name) => Self { name: name.to_owned(), common: None },
            KnownType::Custom(custom) => Self {
                name: custom.name,
                common: Some(CommonDocument::new(custom.stamp, custom.details, with_scopes)),
            },
        }
    }
}

impl From<CustomType> for ActionTypeDocument {
    fn from(custom: CustomType) -> Self {
        Self::new(KnownType::Custom(Box::new(custom)), false)
    }
}

/// Lists the types of actions: those of the account and, as the oldest, those that are built in.
#[utoipa::path(get, path = "/actions", tag = "Actions", operation_id = "listActionTypes",
    params(PageParams, ("filter" = Option<String>, Query, description = "By `name`; see `/thngs` for the language"),
        ("withScopes" = Option<bool>, Query, description = "Show `scopes`")),
    responses((status = 200, description = "One page", body = [ActionTypeDocument])),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn list(
    State(state): State<ActionState>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    query: Query,
) -> Result<Response, ApiError> {
    let listing = Listing::parse(&state, &caller, info, &query, &ACTION_TYPES)?;
    let page = action_types::list(&state, &caller, &listing.request).await?;
    Ok(listing.answer(&state, page, |known| ActionTypeDocument::new(known, listing.with_scopes)))
}

/// Makes a type of action.
#[utoipa::path(post, path = "/actions", tag = "Actions", operation_id = "createActionType",
    request_body = ActionTypeDocument,
    responses((status = 201, description = "The type", body = ActionTypeDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn create(
    State(state): State<ActionState>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let new = NewType::parse(&body).map_err(ApiError::invalid)?;
    let made = action_types::create(&state, &caller, new).await?;
    let name = made.name.clone();
    Ok(created(&info, &name, ActionTypeDocument::from(made)))
}

/// Changes the members given of a type that the account made; its name stays.
#[utoipa::path(put, path = "/actions/{type}", tag = "Actions", operation_id = "updateActionType",
    params(("type" = String, Path, description = "Name of the type")),
    request_body(content = ActionTypeDocument, description = "The members to change; the others may be left out"),
    responses((status = 200, description = "The whole type", body = ActionTypeDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn update(
    State(state): State<ActionState>,
    Authenticated(caller): Authenticated,
    Path(name): Path<String>,
    JsonBody(body): JsonBody,
) -> Result<Json<ActionTypeDocument>, ApiError> {
    let change = action_type::parse_change(&body).map_err(ApiError::invalid)?;
    Ok(Json(action_types::update(&state, &caller, &name, change).await?.into()))
}

/// Removes a type that the account made; its actions stay.
#[utoipa::path(delete, path = "/actions/{type}", tag = "Actions", operation_id = "deleteActionType",
    params(("type" = String, Path, description = "Name of the type")),
    responses((status = 200, description = "Removed; the body is empty")),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn delete(
    State(state): State<ActionState>,
    Authenticated(caller): Authenticated,
    Path(name): Path<String>,
) -> Result<(), ApiError> {
    Ok(action_types::delete(&state, &caller, &name).await?)
}
