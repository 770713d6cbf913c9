//! HTTP: reading actions.

use axum::{Json, extract::State, response::Response};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use web::{
    access::Authenticated,
    api_error::ApiError,
    extract::{Path, Query},
    listing::{Listing, flag},
    openapi::{ListParams, PageParams},
    request_info::RequestInfo,
    wire::ScopesDocument,
};

use crate::{
    domain::{access::Actor, action::Action, action_names::RESULTS, device, listing::ACTIONS},
    service::{
        ActionState,
        actions::{self, Scope},
    },
};

/// What happened to a Thng or product.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ActionDocument {
    /// Its id.
    #[schema(example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    id: String,
    /// When it was recorded, in milliseconds since 1970.
    created_at: i64,
    /// When it happened, in milliseconds since 1970.
    timestamp: i64,
    /// Its type.
    #[serde(rename = "type")]
    #[schema(example = "implicitScans")]
    kind: String,
    /// The Thng it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    thng: Option<String>,
    /// The product it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    product: Option<String>,
    /// Shown with `withScopes=true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    scopes: Option<ScopesDocument>,
    /// `collection`, `customFields`, `tags`, `identifiers`, `location`, `locationSource`, `user`,
    /// `createdByProject`, `createdByApp`, `createdByReaction`, `reactions`, of scans `scanSource` (`edge`, `server` or
    /// `public`), of scans of a GS1 Digital Link `serial`; `context` with `context=true`.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    members: Map<String, Value>,
}

/// What is shown of an action beside the rest.
#[derive(Debug, Clone, Copy, Default)]
pub struct Shown {
    /// `context`.
    pub context: bool,
    /// `scopes`.
    pub scopes: bool,
}

impl ActionDocument {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// An action as far as it is shown.
    #[must_use]
    pub fn new(action: Action, shown: Shown) -> Self {
        let scopes = shown.scopes.then(|| action.scopes().unwrap_or_default().into());
        let mut members = action.members;
        members.remove("scopes");
        if !shown.context {
            members.remove("context");
        }
        members.get_mut("context").map(device::hide);
        // For an unknown item, a result repeats what was requested.
        let asked = members.get("thng").and_then(Value::as_str).map(str::to_owned);
        let asked = asked.filter(|_| action.kind == RESULTS);
        // The columns override members of the document with the same name.
        for name in ["id", "createdAt", "timestamp", "type", "thng", "product"] {
            members.remove(name);
        }
        Self {
            id: action.id.to_string(),
            created_at: action.created_at.0,
            timestamp: action.timestamp.0,
            kind: action.kind,
            thng: action.thng.map(|id| id.to_string()).or(asked),
            product: action.product.map(|id| id.to_string()),
            scopes,
            members,
        }
    }
}

/// Lists actions of one type, or of `all`.
#[utoipa::path(get, path = "/actions/{type}", tag = "Actions", operation_id = "listActions",
    params(PageParams, ListParams, ("type" = String, Path, description = "Name of a type, or `all`"),
        ("context" = Option<bool>, Query, description = "Show `context`, as far as the key may see it")),
    responses((status = 200, description = "One page", body = [ActionDocument])),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn list(
    State(state): State<ActionState>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    Path(kind): Path<String>,
    query: Query,
) -> Result<Response, ApiError> {
    list_in(&state, &caller, info, &query, Scope::Account, &kind).await
}

/// Reads an action.
#[utoipa::path(get, path = "/actions/{type}/{action}", tag = "Actions", operation_id = "readAction",
    params(("type" = String, Path, description = "Name of its type, or `all`"),
        ("action" = String, Path, description = "Id of the action"),
        ("withScopes" = Option<bool>, Query, description = "Show `scopes`"),
        ("context" = Option<bool>, Query, description = "Show `context`, as far as the key may see it")),
    responses((status = 200, description = "The action", body = ActionDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn read(
    State(state): State<ActionState>,
    Authenticated(caller): Authenticated,
    Path((kind, id)): Path<(String, String)>,
    query: Query,
) -> Result<Json<ActionDocument>, ApiError> {
    read_in(&state, &caller, &query, Scope::Account, &kind, &id).await
}

/// A page of the actions of a scope.
///
/// # Errors
/// A parameter is wrong, or the service refuses.
pub async fn list_in(
    state: &ActionState,
    actor: &Actor,
    info: RequestInfo,
    query: &Query,
    scope: Scope<'_>,
    kind: &str,
) -> Result<Response, ApiError> {
    let listing = Listing::parse(state, actor, info, query, &ACTIONS)?;
    let page = actions::list(state, actor, scope, kind, &listing.request).await?;
    let shown = Shown { context: listing.with_context, scopes: listing.with_scopes };
    Ok(listing.answer(state, page, |action| ActionDocument::new(action, shown)))
}

pub(super) async fn read_in(
    state: &ActionState,
    actor: &Actor,
    query: &Query,
    scope: Scope<'_>,
    kind: &str,
    id: &str,
) -> Result<Json<ActionDocument>, ApiError> {
    let mut faults = Vec::new();
    let shown = Shown {
        context: flag(query, "context", &mut faults),
        scopes: flag(query, "withScopes", &mut faults),
    };
    ApiError::check_parameters(faults)?;
    let action = actions::read(state, actor, scope, kind, id).await?;
    Ok(Json(ActionDocument::new(action, shown)))
}
