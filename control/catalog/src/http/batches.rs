//! HTTP: batches. Their tasks are in `tasks`.

use axum::{Json, extract::State, response::Response};
use serde::Serialize;
use shared::problem::Code;
use utoipa::ToSchema;
use web::{
    access::Authenticated,
    api_error::ApiError,
    conditions::Tagged,
    extract::{JsonBody, Path, Query},
    listing::{Listing, flag},
    openapi::{ListParams, NumberedParams, PageParams},
    request_info::RequestInfo,
    wire::{CommonDocument, created},
};

use crate::{
    domain::{
        batch::{Batch, BatchChange},
        body::Purpose,
        listing::BATCHES,
    },
    service::{Catalog, batches, named::tag_of},
};

/// A batch, for which tasks make Thngs.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct BatchDocument {
    /// Its id.
    #[schema(read_only, example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    id: String,
    #[serde(flatten)]
    common: CommonDocument,
    /// 1 to 256 characters; required on create.
    #[schema(example = "Autumn 2026")]
    name: String,
}

impl BatchDocument {
    pub(super) fn new(batch: Batch, with_scopes: bool) -> Self {
        Self {
            id: batch.id.to_string(),
            common: CommonDocument::new(batch.stamp, batch.details.common, with_scopes),
            name: batch.name,
        }
    }
}

/// Lists batches, newest first.
#[utoipa::path(get, path = "/batches", tag = "Batches", operation_id = "listBatches",
    params(PageParams, NumberedParams, ListParams),
    responses((status = 200, description = "One page", body = [BatchDocument])),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn list(
    State(catalog): State<Catalog>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    query: Query,
) -> Result<Response, ApiError> {
    let listing = Listing::parse(&catalog, &caller, info, &query, &BATCHES)?;
    let page = batches::list(&catalog, &caller, &listing.request).await?;
    Ok(listing.answer(&catalog, page, |batch| BatchDocument::new(batch, listing.with_scopes)))
}

/// Makes a batch.
#[utoipa::path(post, path = "/batches", tag = "Batches", operation_id = "createBatch",
    params(("project" = Option<String>, Query, description = "Id of a project that it shall belong to")),
    request_body = BatchDocument,
    responses((status = 201, description = "The batch", body = BatchDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn create(
    State(catalog): State<Catalog>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    query: Query,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let change = BatchChange::parse(&body, Purpose::Create)
        .map_err(|faults| ApiError::faults(Code::Invalid, faults))?;
    let batch = batches::create(&catalog, &caller, change, query.find("project")).await?;
    let id = batch.id;
    Ok(created(&info, id.as_str(), BatchDocument::new(batch, false)))
}

/// Reads a batch.
#[utoipa::path(get, path = "/batches/{id}", tag = "Batches", operation_id = "readBatch",
    params(("id" = String, Path, description = "Id, or `<key>:<value>`"),
        ("withScopes" = Option<bool>, Query, description = "Show `scopes`")),
    responses((status = 200, description = "The batch", body = BatchDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn read(
    State(catalog): State<Catalog>,
    Authenticated(caller): Authenticated,
    Path(reference): Path<String>,
    query: Query,
) -> Result<Tagged<BatchDocument>, ApiError> {
    let mut faults = Vec::new();
    let with_scopes = flag(&query, "withScopes", &mut faults);
    if !faults.is_empty() {
        return Err(ApiError::faults(Code::InvalidParameter, faults));
    }
    let batch = batches::read(&catalog, &caller, &reference).await?;
    Ok(Tagged(tag_of(&batch), BatchDocument::new(batch, with_scopes)))
}

/// Changes the members given; the others stay.
#[utoipa::path(put, path = "/batches/{id}", tag = "Batches", operation_id = "updateBatch",
    params(("id" = String, Path, description = "Id, or `<key>:<value>`")),
    request_body(content = BatchDocument, description = "The members to change; the others may be left out"),
    responses((status = 200, description = "The whole batch", body = BatchDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn update(
    State(catalog): State<Catalog>,
    Authenticated(caller): Authenticated,
    Path(reference): Path<String>,
    JsonBody(body): JsonBody,
) -> Result<Json<BatchDocument>, ApiError> {
    let change = BatchChange::parse(&body, Purpose::Update)
        .map_err(|faults| ApiError::faults(Code::Invalid, faults))?;
    let batch = batches::update(&catalog, &caller, &reference, change).await?;
    Ok(Json(BatchDocument::new(batch, false)))
}

/// Removes a batch with its tasks; what they made stays.
#[utoipa::path(delete, path = "/batches/{id}", tag = "Batches", operation_id = "deleteBatch",
    params(("id" = String, Path, description = "Id, or `<key>:<value>`")),
    responses((status = 200, description = "Removed; the body is empty")),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn delete(
    State(catalog): State<Catalog>,
    Authenticated(caller): Authenticated,
    Path(reference): Path<String>,
) -> Result<(), ApiError> {
    Ok(batches::delete(&catalog, &caller, &reference).await?)
}
