//! HTTP: keys of Thngs.

use axum::{Json, extract::State, response::Response};
use serde::Serialize;
use serde_json::Value;
use shared::id::ThngId;
use tenants::http::overlap;
use utoipa::ToSchema;
use web::{
    access::Authenticated,
    api_error::ApiError,
    extract::{JsonBody, Path},
    request_info::RequestInfo,
    wire::created_at,
};

use crate::{
    domain::members::Members,
    service::{Catalog, thng_keys},
};

/// A Thng and its key.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThngKeyDocument {
    /// Id of the Thng.
    #[schema(example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    thng_id: String,
    /// The key, 80 characters.
    #[schema(read_only)]
    thng_api_key: String,
}

/// Gives a Thng its key: the same one each time.
#[utoipa::path(post, path = "/auth/evrythng/thngs", tag = "Keys", operation_id = "createThngKey",
    request_body = ThngKeyDocument,
    responses((status = 201, description = "The key", body = ThngKeyDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn create(
    State(catalog): State<Catalog>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let id = parse(&body).map_err(ApiError::invalid)?;
    let thng_api_key = thng_keys::create(&catalog, &caller, id).await?;
    let document = ThngKeyDocument { thng_id: id.to_string(), thng_api_key };
    Ok(created_at(&info, &format!("/thngs/{id}"), document))
}

/// Reads the key of a Thng.
#[utoipa::path(get, path = "/auth/evrythng/thngs/{id}", tag = "Keys", operation_id = "readThngKey",
    params(("id" = String, Path, description = "Id of the Thng")),
    responses((status = 200, description = "The key", body = ThngKeyDocument),
        (status = 404, description = "There is no such Thng, or it has no key")),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn read(
    State(catalog): State<Catalog>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Json<ThngKeyDocument>, ApiError> {
    let (thng, thng_api_key) = thng_keys::read(&catalog, &caller, &id).await?;
    Ok(Json(ThngKeyDocument { thng_id: thng.to_string(), thng_api_key }))
}

/// Gives a Thng its next key.
///
/// The one before ends at once, or works beside it for `overlap` milliseconds.
#[utoipa::path(post, path = "/auth/evrythng/thngs/{id}/rotate", tag = "Keys", operation_id = "rotateThngKey",
    params(("id" = String, Path, description = "Id of the Thng")),
    request_body(content = Object, description = "How long the old key works on"),
    responses((status = 201, description = "The new key", body = ThngKeyDocument),
        (status = 404, description = "There is no such Thng, or it has no key")))]
pub(super) async fn rotate(
    State(catalog): State<Catalog>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    info: RequestInfo,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let overlap = overlap(&body)?;
    let (thng, thng_api_key) = thng_keys::rotate(&catalog, &caller, &id, overlap).await?;
    let document = ThngKeyDocument { thng_id: thng.to_string(), thng_api_key };
    Ok(created_at(&info, &format!("/auth/evrythng/thngs/{thng}"), document))
}

/// Revokes the key of a Thng; the next one that is created is another.
#[utoipa::path(delete, path = "/auth/evrythng/thngs/{id}", tag = "Keys", operation_id = "revokeThngKey",
    params(("id" = String, Path, description = "Id of the Thng")),
    responses((status = 200, description = "Revoked; the body is empty"),
        (status = 404, description = "There is no such Thng, or it has no key")),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn revoke(
    State(catalog): State<Catalog>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<(), ApiError> {
    Ok(thng_keys::revoke(&catalog, &caller, &id).await?)
}

fn parse(body: &Value) -> Result<ThngId, Vec<String>> {
    let mut members = Members::of(body)?;
    if members.raw("thngId").is_none() {
        members.fault("thngId is required.");
    }
    let id = members.parsed("thngId");
    members.finish(id)
}
