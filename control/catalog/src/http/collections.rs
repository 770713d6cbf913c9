//! HTTP: collections. Their members are in `collection_members`.

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
        body::Purpose,
        collection::{Collection, CollectionChange},
        listing::COLLECTIONS,
    },
    service::{Catalog, collections},
};

/// A collection: Thngs, and collections of them.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct CollectionDocument {
    /// Its id.
    #[schema(read_only, example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    id: String,
    #[serde(flatten)]
    common: CommonDocument,
    /// 1 to 256 characters; required on create.
    #[schema(example = "Autumn 2026")]
    name: String,
    /// A kind of the caller's choice, at most 256 characters.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
}

impl CollectionDocument {
    pub(super) fn new(collection: Collection, with_scopes: bool) -> Self {
        let details = collection.details;
        Self {
            id: collection.id.to_string(),
            common: CommonDocument::new(collection.stamp, details.common, with_scopes),
            name: collection.name,
            kind: details.kind,
        }
    }
}

/// Lists collections, newest first.
#[utoipa::path(get, path = "/collections", tag = "Collections", operation_id = "listCollections",
    params(PageParams, NumberedParams, ListParams),
    responses((status = 200, description = "One page", body = [CollectionDocument])),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn list(
    State(catalog): State<Catalog>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    query: Query,
) -> Result<Response, ApiError> {
    let listing = Listing::parse(&catalog, &caller, info, &query, &COLLECTIONS)?;
    let page = collections::list(&catalog, &caller, &listing.request).await?;
    Ok(listing.answer(&catalog, page, |collection| CollectionDocument::new(collection, listing.with_scopes)))
}

/// Makes a collection.
#[utoipa::path(post, path = "/collections", tag = "Collections", operation_id = "createCollection",
    params(("project" = Option<String>, Query, description = "Id of a project that it shall belong to")),
    request_body = CollectionDocument,
    responses((status = 201, description = "The collection", body = CollectionDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn create(
    State(catalog): State<Catalog>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    query: Query,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let change = CollectionChange::parse(&body, Purpose::Create).map_err(ApiError::invalid)?;
    let collection = collections::create(&catalog, &caller, change, query.find("project")).await?;
    let id = collection.id;
    Ok(created(&info, id.as_str(), CollectionDocument::new(collection, false)))
}

one!(
    collections,
    CollectionChange,
    CollectionDocument,
    "/collections/{id}",
    "Collections",
    "collection",
    "Collection",
    "Removes a collection; what is in it stays."
);
