//! HTTP: members of collections, which are Thngs and other collections.

use axum::{Json, extract::State, http::StatusCode, response::Response};
use web::{
    access::Authenticated,
    api_error::ApiError,
    extract::{JsonBody, Path, Query},
    listing::Listing,
    openapi::{ListParams, NumberedParams, PageParams},
    request_info::RequestInfo,
};

use super::{collections::CollectionDocument, thngs::ThngDocument};
use crate::{
    domain::{
        collection::{MemberKind, parse_ids},
        listing::{COLLECTIONS, THNGS},
    },
    service::{Catalog, collections::members},
};

/// Lists the Thngs of a collection, newest first.
#[utoipa::path(get, path = "/collections/{id}/thngs", tag = "Collections", operation_id = "listCollectionThngs",
    params(PageParams, ListParams, ("id" = String, Path, description = "Id, or `<key>:<value>`")),
    responses((status = 200, description = "One page", body = [ThngDocument])),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn list_thngs(
    State(catalog): State<Catalog>,
    Authenticated(caller): Authenticated,
    Path(reference): Path<String>,
    info: RequestInfo,
    query: Query,
) -> Result<Response, ApiError> {
    let listing = Listing::parse(&catalog, &caller, info, &query, &THNGS)?;
    let page = members::list_thngs(&catalog, &caller, &reference, &listing.request).await?;
    Ok(listing.answer(&catalog, page, |thng| ThngDocument::new(thng, listing.with_scopes)))
}

/// Adds Thngs to a collection: all of them, or none; those that are in stay.
#[utoipa::path(put, path = "/collections/{id}/thngs", tag = "Collections", operation_id = "addCollectionThngs",
    params(("id" = String, Path, description = "Id, or `<key>:<value>`")),
    request_body(content = Vec<String>, description = "At most 1,000 ids",
        example = json!(["UKXAGyEf8SQ5eTDmVgGpHqAa"])),
    responses((status = 204, description = "They are in")),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn add_thngs(
    State(catalog): State<Catalog>,
    Authenticated(caller): Authenticated,
    Path(reference): Path<String>,
    JsonBody(body): JsonBody,
) -> Result<StatusCode, ApiError> {
    let ids = parse_ids(&body).map_err(ApiError::invalid)?;
    members::add_thngs(&catalog, &caller, &reference, &ids).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Takes every Thng out of a collection.
#[utoipa::path(delete, path = "/collections/{id}/thngs", tag = "Collections",
    operation_id = "removeCollectionThngs",
    params(("id" = String, Path, description = "Id, or `<key>:<value>`")),
    responses((status = 200, description = "Taken out; the body is empty")),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn remove_thngs(
    State(catalog): State<Catalog>,
    Authenticated(caller): Authenticated,
    Path(reference): Path<String>,
) -> Result<(), ApiError> {
    Ok(members::remove_all(&catalog, &caller, &reference, MemberKind::Thngs).await?)
}

/// Takes one Thng out of a collection.
#[utoipa::path(delete, path = "/collections/{id}/thngs/{thngId}", tag = "Collections",
    operation_id = "removeCollectionThng",
    params(("id" = String, Path, description = "Id, or `<key>:<value>`"),
        ("thngId" = String, Path, description = "Id of a Thng that is in")),
    responses((status = 200, description = "Taken out; the body is empty")),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn remove_thng(
    State(catalog): State<Catalog>,
    Authenticated(caller): Authenticated,
    Path((reference, thng)): Path<(String, String)>,
) -> Result<(), ApiError> {
    Ok(members::remove_one(&catalog, &caller, &reference, MemberKind::Thngs, &thng).await?)
}

/// Lists the collections in a collection, newest first.
#[utoipa::path(get, path = "/collections/{id}/collections", tag = "Collections",
    operation_id = "listCollectionCollections",
    params(PageParams, NumberedParams, ListParams,
        ("id" = String, Path, description = "Id, or `<key>:<value>`")),
    responses((status = 200, description = "One page", body = [CollectionDocument])),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn list_collections(
    State(catalog): State<Catalog>,
    Authenticated(caller): Authenticated,
    Path(reference): Path<String>,
    info: RequestInfo,
    query: Query,
) -> Result<Response, ApiError> {
    let listing = Listing::parse(&catalog, &caller, info, &query, &COLLECTIONS)?;
    let page = members::list_collections(&catalog, &caller, &reference, &listing.request).await?;
    Ok(listing.answer(&catalog, page, |found| CollectionDocument::new(found, listing.with_scopes)))
}

/// Puts collections into a collection: all of them, or none; those that are in stay.
#[utoipa::path(put, path = "/collections/{id}/collections", tag = "Collections",
    operation_id = "addCollectionCollections",
    params(("id" = String, Path, description = "Id, or `<key>:<value>`")),
    request_body(content = Vec<String>, description = "At most 1,000 ids",
        example = json!(["UKXAGyEf8SQ5eTDmVgGpHqAa"])),
    responses((status = 204, description = "They are in"),
        (status = 409, description = "One would be inside of itself, or more than ten deep")),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn add_collections(
    State(catalog): State<Catalog>,
    Authenticated(caller): Authenticated,
    Path(reference): Path<String>,
    JsonBody(body): JsonBody,
) -> Result<StatusCode, ApiError> {
    let ids = parse_ids(&body).map_err(ApiError::invalid)?;
    members::add_collections(&catalog, &caller, &reference, &ids).await?;
    Ok(StatusCode::NO_CONTENT)
}

// Spec gap: the vendor's Java client insists on 200 for this POST, and others read JSON from what is not 204.
/// Puts collections into a collection, as PUT does; answers their ids.
#[utoipa::path(post, path = "/collections/{id}/collections", tag = "Collections",
    operation_id = "postCollectionCollections",
    params(("id" = String, Path, description = "Id, or `<key>:<value>`")),
    request_body(content = Vec<String>, description = "At most 1,000 ids",
        example = json!(["UKXAGyEf8SQ5eTDmVgGpHqAa"])),
    responses((status = 200, description = "They are in; their ids", body = Vec<String>),
        (status = 409, description = "One would be inside of itself, or more than ten deep")),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn post_collections(
    State(catalog): State<Catalog>,
    Authenticated(caller): Authenticated,
    Path(reference): Path<String>,
    JsonBody(body): JsonBody,
) -> Result<Json<Vec<String>>, ApiError> {
    let ids = parse_ids(&body).map_err(ApiError::invalid)?;
    members::add_collections(&catalog, &caller, &reference, &ids).await?;
    Ok(Json(ids))
}

/// Takes every collection out of a collection.
#[utoipa::path(delete, path = "/collections/{id}/collections", tag = "Collections",
    operation_id = "removeCollectionCollections",
    params(("id" = String, Path, description = "Id, or `<key>:<value>`")),
    responses((status = 200, description = "Taken out; the body is empty")),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn remove_collections(
    State(catalog): State<Catalog>,
    Authenticated(caller): Authenticated,
    Path(reference): Path<String>,
) -> Result<(), ApiError> {
    Ok(members::remove_all(&catalog, &caller, &reference, MemberKind::Collections).await?)
}

/// Takes one collection out of another.
#[utoipa::path(delete, path = "/collections/{id}/collections/{collectionId}", tag = "Collections",
    operation_id = "removeCollectionCollection",
    params(("id" = String, Path, description = "Id, or `<key>:<value>`"),
        ("collectionId" = String, Path, description = "Id of a collection that is in")),
    responses((status = 200, description = "Taken out; the body is empty")),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn remove_collection(
    State(catalog): State<Catalog>,
    Authenticated(caller): Authenticated,
    Path((reference, member)): Path<(String, String)>,
) -> Result<(), ApiError> {
    Ok(members::remove_one(&catalog, &caller, &reference, MemberKind::Collections, &member).await?)
}
