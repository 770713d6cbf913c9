//! HTTP: Thngs.

use std::collections::BTreeMap;

use axum::{Json, extract::State, response::Response};
use serde::Serialize;
use serde_json::Value;
use serde_with_macros::skip_serializing_none;
use shared::id::CollectionId;
use utoipa::ToSchema;
use web::{
    access::Authenticated,
    api_error::ApiError,
    bulk::create_each,
    conditions::Tagged,
    extract::{JsonBody, Path, Query},
    listing::{Listing, flag},
    location::LocationDocument,
    openapi::{ListParams, PageParams},
    request_info::RequestInfo,
    wire::{CommonDocument, created},
};

use super::{link_documents::TypedLinkDocument, one::one};
use crate::{
    domain::{
        body::Purpose,
        listing::THNGS,
        resource::{Thng, ThngChange},
    },
    service::{Catalog, Core, named::tag_of, thngs},
};

/// A Thng: one tracked item.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ThngDocument {
    /// Its id.
    #[schema(read_only, example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    id: String,
    #[serde(flatten)]
    common: CommonDocument,
    /// 1 to 256 characters; required on create.
    #[schema(example = "Red shoe, left, number 17")]
    name: String,
    /// Id of the product it is an instance of, which must exist.
    #[schema(example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    product: Option<String>,
    /// A kind of the caller's choice, at most 256 characters.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    /// Ids of the collections it is in, which must exist; replaced as a whole.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    collections: Vec<String>,
    /// Where it was last; written on create, and by `/thngs/{id}/location` after that.
    location: Option<LocationDocument>,
    /// Where the Digital Link of its serial leads, if the `serialMode` of its product is `overrides` or `known`: at most 64 links,
    /// exactly one of them the default.
    links: Option<Vec<TypedLinkDocument>>,
    /// Latest values of its newest 100 properties, as far as they fit 64 KiB; taken on create only.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = Option<Object>, example = json!({"temp_celsius": 21.5}))]
    properties: BTreeMap<String, Value>,
}

impl ThngDocument {
    pub(super) fn new(thng: Thng, with_scopes: bool) -> Self {
        let details = thng.details;
        Self {
            id: thng.id.to_string(),
            common: CommonDocument::new(thng.stamp, details.common, with_scopes),
            name: thng.name,
            product: thng.product.map(|id| id.to_string()),
            kind: details.kind,
            collections: thng.collections.iter().map(CollectionId::to_string).collect(),
            location: details.location.map(LocationDocument::from),
            links: details.links.map(TypedLinkDocument::all),
            properties: thng.properties,
        }
    }
}

/// Lists Thngs, newest first.
#[utoipa::path(get, path = "/thngs", tag = "Thngs", operation_id = "listThngs", params(PageParams, ListParams),
    responses((status = 200, description = "One page", body = [ThngDocument])),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn list(
    State(catalog): State<Catalog>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    query: Query,
) -> Result<Response, ApiError> {
    let listing = Listing::parse(&catalog, &caller, info, &query, &THNGS)?;
    let page = thngs::list(&catalog, &caller, &listing.request).await?;
    Ok(listing.answer(&catalog, page, |thng| ThngDocument::new(thng, listing.with_scopes)))
}

/// Makes a Thng, or up to 1,000 from an array.
#[utoipa::path(post, path = "/thngs", tag = "Thngs", operation_id = "createThng",
    params(("project" = Option<String>, Query, description = "Scope what is made to this project")),
    request_body = ThngDocument,
    responses((status = 201, description = "The Thng", body = ThngDocument),
        (status = 200, description = "Of an array: one result for each item, in its order")),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn create(
    State(catalog): State<Catalog>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    query: Query,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    if let Value::Array(items) = &body {
        let parse = |item: &Value| ThngChange::parse(item, Purpose::Create);
        return create_each::<Core, Thng>(&catalog, &caller, items, query.find("project"), parse).await;
    }
    let change = ThngChange::parse(&body, Purpose::Create).map_err(ApiError::invalid)?;
    let thng = thngs::create(&catalog, &caller, change, query.find("project")).await?;
    let id = thng.id;
    Ok(created(&info, id.as_str(), ThngDocument::new(thng, false)))
}

one!(
    thngs,
    ThngChange,
    ThngDocument,
    "/thngs/{id}",
    "Thngs",
    "Thng",
    "Thng",
    "Removes a Thng; what points at it stays."
);
