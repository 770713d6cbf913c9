//! HTTP: keys of operators.
//!
//! Spec gap: the platform API shows no operations on keys of operators.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{HeaderValue, header},
    response::Response,
};
use serde::Serialize;
use serde_json::Value;
use serde_with_macros::skip_serializing_none;
use shared::time::UnixMillis;
use utoipa::ToSchema;
use web::{
    access::Authenticated,
    api_error::ApiError,
    conditions::Tagged,
    extract::{JsonBody, Path, Query},
    listing::Listing,
    openapi::PageParams,
    request_info::RequestInfo,
    wire::created_at,
};

use crate::{
    domain::{
        body::Purpose,
        listing::PLAIN,
        operator_key::{KeyChange, OperatorKey, parse_overlap},
    },
    service::{
        Core,
        keys::{self, NewKey},
    },
};

/// A key of an operator, without the key itself.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct OperatorKeyDocument {
    /// Its id: the first 24 hexadecimal digits of the SHA-256 of the key.
    #[schema(read_only, example = "9F86D081884C7D659A2FEAA0")]
    id: String,
    /// What it is called, 1 to 256 characters; required on create.
    #[schema(example = "Printing line 3")]
    label: String,
    /// `active`, `expired` or `revoked`.
    #[schema(read_only, example = "active")]
    status: &'static str,
    /// Id of the operator that it acts for.
    #[schema(read_only, example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    operator: String,
    /// Id of the project that it is confined to. It may do there what the secret key of an application may, and manage
    /// keys that are confined to the same project.
    #[schema(example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    project: Option<String>,
    /// The addresses and networks (CIDR) from which it may be used, at most 100; everywhere if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false, example = json!(["192.0.2.0/24"]))]
    networks: Vec<String>,
    /// Id of the operator who made it, unless a command did.
    #[schema(read_only, example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    created_by: Option<String>,
    /// When it was created, in milliseconds since 1970.
    #[schema(read_only, example = 1_767_225_600_000_i64)]
    created_at: i64,
    /// When it was last changed.
    #[schema(read_only, example = 1_767_225_600_000_i64)]
    updated_at: i64,
    /// The hour in which it was last used, in milliseconds since 1970; up to a minute late.
    #[schema(read_only, example = 1_767_225_600_000_i64)]
    last_used_at: Option<i64>,
    /// When it ceases to work, in milliseconds since 1970. In a change 0 stands for never.
    #[schema(example = 4_102_444_800_000_i64)]
    expires_at: Option<i64>,
    /// When it was revoked.
    #[schema(read_only)]
    revoked_at: Option<i64>,
}

impl OperatorKeyDocument {
    fn new(key: OperatorKey, now: UnixMillis) -> Self {
        Self {
            id: key.id().to_string(),
            status: key.status(now).as_str(),
            networks: key.networks.texts().collect(),
            label: key.label,
            operator: key.operator,
            project: key.project.map(|id| id.to_string()),
            created_by: key.created_by,
            created_at: key.created_at.0,
            updated_at: key.updated_at.0,
            last_used_at: key.last_used_at.map(|at| at.0),
            expires_at: key.expires_at.map(|at| at.0),
            revoked_at: key.revoked_at.map(|at| at.0),
        }
    }
}

/// A new key of an operator, which is shown this once.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct NewOperatorKeyDocument {
    #[serde(flatten)]
    key: OperatorKeyDocument,
    /// The key itself, 80 characters. It is not stored and cannot be read again.
    #[schema(read_only)]
    api_key: String,
}

/// Lists the keys of operators, newest first, also those that do not work any more.
#[utoipa::path(get, path = "/keys", tag = "Keys", operation_id = "listKeys",
    params(PageParams),
    responses((status = 200, description = "One page", body = [OperatorKeyDocument])))]
pub(super) async fn list(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    query: Query,
) -> Result<Response, ApiError> {
    let listing = Listing::parse(&core, &caller, info, &query, &PLAIN)?;
    let page = keys::list(&core, &caller, &listing.request).await?;
    let now = core.clock.now();
    Ok(listing.answer(&core, page, |key| OperatorKeyDocument::new(key, now)))
}

/// Makes a key for the operator who asks. The answer is the only one that holds the key itself.
#[utoipa::path(post, path = "/keys", tag = "Keys", operation_id = "createKey",
    request_body = OperatorKeyDocument,
    responses((status = 201, description = "The key, shown this once", body = NewOperatorKeyDocument)))]
pub(super) async fn create(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let change = KeyChange::parse(&body, Purpose::Create, core.clock.now()).map_err(ApiError::invalid)?;
    Ok(shown_once(&core, &info, keys::create(&core, &caller, change).await?))
}

/// Reads a key of an operator, without the key itself.
#[utoipa::path(get, path = "/keys/{id}", tag = "Keys", operation_id = "readKey",
    params(("id" = String, Path, description = "Id of the key")),
    responses((status = 200, description = "The key", body = OperatorKeyDocument)))]
pub(super) async fn read(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Tagged<OperatorKeyDocument>, ApiError> {
    let key = keys::read(&core, &caller, &id).await?;
    Ok(Tagged(key.tag(), OperatorKeyDocument::new(key, core.clock.now())))
}

/// Changes the members given of a key: label, expiry, networks. What it may no longer do is refused within a second.
#[utoipa::path(put, path = "/keys/{id}", tag = "Keys", operation_id = "updateKey",
    params(("id" = String, Path, description = "Id of the key")),
    request_body(content = OperatorKeyDocument, description = "The members to change; the others may be left out"),
    responses((status = 200, description = "The whole key", body = OperatorKeyDocument),
        (status = 409, description = "The key was revoked, or no other would reach the account")))]
pub(super) async fn update(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    info: RequestInfo,
    JsonBody(body): JsonBody,
) -> Result<Json<OperatorKeyDocument>, ApiError> {
    let change = KeyChange::parse(&body, Purpose::Update, core.clock.now()).map_err(ApiError::invalid)?;
    let key = keys::update(&core, &caller, &id, change, info.client).await?;
    Ok(Json(OperatorKeyDocument::new(key, core.clock.now())))
}

/// Replaces a key by a new one with the same label, networks, project and length of life.
///
/// The old one ends at once, or works beside the new one for `overlap` milliseconds. The answer is the only one that holds
/// the new key.
#[utoipa::path(post, path = "/keys/{id}/rotate", tag = "Keys", operation_id = "rotateKey",
    params(("id" = String, Path, description = "Id of the key")),
    request_body(content = Object, description = "How long the old key works on"),
    responses((status = 201, description = "The new key, shown this once", body = NewOperatorKeyDocument),
        (status = 409, description = "The key does not work any more")))]
pub(super) async fn rotate(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    info: RequestInfo,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let overlap = overlap(&body)?;
    Ok(shown_once(&core, &info, keys::rotate(&core, &caller, &id, overlap).await?))
}

/// Revokes a key: it is refused within a second on every replica, and its open streams end.
#[utoipa::path(delete, path = "/keys/{id}", tag = "Keys", operation_id = "revokeKey",
    params(("id" = String, Path, description = "Id of the key")),
    responses((status = 200, description = "Revoked; the body is empty"),
        (status = 409, description = "The key was revoked before, or no other reaches the account")))]
pub(super) async fn revoke(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    info: RequestInfo,
) -> Result<(), ApiError> {
    Ok(keys::revoke(&core, &caller, &id, info.client).await?)
}

/// How long a key shall work beside the one that replaces it, in milliseconds.
///
/// # Errors
/// The body names none that is allowed.
pub fn overlap(body: &Value) -> Result<u32, ApiError> {
    parse_overlap(body).map_err(ApiError::invalid)
}

fn shown_once(core: &Core, info: &RequestInfo, NewKey { key, secret }: NewKey) -> Response {
    let path = format!("/keys/{}", key.id());
    let document =
        NewOperatorKeyDocument { key: OperatorKeyDocument::new(key, core.clock.now()), api_key: secret };
    let mut response = created_at(info, &path, document);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
