//! HTTP: batches. Their tasks are in `tasks`.

use axum::{Json, extract::State, response::Response};
use serde::Serialize;
use utoipa::ToSchema;
use web::{
    access::Authenticated,
    api_error::ApiError,
    extract::{JsonBody, Path, Query},
    listing::{Listing, flag},
    openapi::{ListParams, NumberedParams, PageParams},
    request_info::RequestInfo,
    wire::{CommonDocument, created},
};

use super::one::one;
use crate::{
    domain::{
        batch::{Batch, BatchChange},
        body::Purpose,
        listing::BATCHES,
    },
    service::{Catalog, batches},
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
    let change = BatchChange::parse(&body, Purpose::Create).map_err(ApiError::invalid)?;
    let batch = batches::create(&catalog, &caller, change, query.find("project")).await?;
    let id = batch.id;
    Ok(created(&info, id.as_str(), BatchDocument::new(batch, false)))
}

one!(
    batches,
    BatchChange,
    BatchDocument,
    "/batches/{id}",
    "Batches",
    "batch",
    "Batch",
    "Removes a batch with its tasks; what they made stays."
);
