//! HTTP: the location history of Thngs.

use axum::{Json, extract::State, response::Response};
use serde_json::Value;
use web::{
    access::Authenticated,
    api_error::ApiError,
    extract::{JsonBody, Path, Query},
    listing::{Listing, time},
    location::LocationDocument,
    openapi::PageParams,
    request_info::RequestInfo,
};

use crate::{
    domain::{
        listing::LOCATIONS,
        location::{Form, Location},
    },
    service::{Catalog, locations},
};

/// Most locations in one request.
const MAX_LOCATIONS: usize = 1_000;

/// Adds where a Thng was; gives what was written.
#[utoipa::path(put, path = "/thngs/{id}/location", tag = "Thngs", operation_id = "addThngLocations",
    params(("id" = String, Path, description = "Id, or `<key>:<value>`")),
    request_body(content = Vec<LocationDocument>, description = "At most 1,000 locations, or a single one; \
        each has a position or a place", example = json!([{"position": {"type": "Point", "coordinates": [-17.3, 36]}}])),
    responses((status = 200, description = "What was written, in the same order", body = [LocationDocument])),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn add(
    State(catalog): State<Catalog>,
    Authenticated(caller): Authenticated,
    Path(reference): Path<String>,
    JsonBody(body): JsonBody,
) -> Result<Json<Vec<LocationDocument>>, ApiError> {
    let locations = parse(&body).map_err(ApiError::invalid)?;
    let written = locations::add(&catalog, &caller, &reference, locations).await?;
    Ok(Json(written.into_iter().map(LocationDocument::from).collect()))
}

/// Where a Thng was, latest first.
#[utoipa::path(get, path = "/thngs/{id}/location", tag = "Thngs", operation_id = "listThngLocations",
    params(PageParams, ("id" = String, Path, description = "Id, or `<key>:<value>`"),
        ("from" = Option<i64>, Query, description = "Earliest timestamp, inclusive"),
        ("to" = Option<i64>, Query, description = "Latest timestamp, inclusive"),
        ("filter" = Option<String>, Query, description = "Conditions on `timestamp`")),
    responses((status = 200, description = "One page", body = [LocationDocument])),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn list(
    State(catalog): State<Catalog>,
    Authenticated(caller): Authenticated,
    Path(reference): Path<String>,
    info: RequestInfo,
    query: Query,
) -> Result<Response, ApiError> {
    let listing = Listing::history(&catalog, &caller, info, &query, &LOCATIONS)?;
    let page = locations::list(&catalog, &caller, &reference, &listing.request).await?;
    Ok(listing.answer(&catalog, page, LocationDocument::from))
}

/// Removes where a Thng was: before a time, or everything.
#[utoipa::path(delete, path = "/thngs/{id}/location", tag = "Thngs", operation_id = "deleteThngLocations",
    params(("id" = String, Path, description = "Id, or `<key>:<value>`"),
        ("to" = Option<i64>, Query, description = "Remove what was before this timestamp only")),
    responses((status = 200, description = "Removed; the body is empty")),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn delete(
    State(catalog): State<Catalog>,
    Authenticated(caller): Authenticated,
    Path(reference): Path<String>,
    query: Query,
) -> Result<(), ApiError> {
    let mut faults = Vec::new();
    let to = time(&query, "to", &mut faults);
    ApiError::check_parameters(faults)?;
    Ok(locations::delete(&catalog, &caller, &reference, to).await?)
}

/// Each location with the name by which faults call it.
fn parse(body: &Value) -> Result<Vec<(String, Location)>, Vec<String>> {
    let named: Vec<(String, &Value)> = match body {
        Value::Array(items) if items.len() > MAX_LOCATIONS => {
            return Err(vec![format!(
                "The body must hold at most {MAX_LOCATIONS} locations, not {}.",
                items.len()
            )]);
        }
        Value::Array(items) => items.iter().enumerate().map(|(n, item)| (format!("[{n}]"), item)).collect(),
        Value::Object(_) => vec![("location".to_owned(), body)],
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            return Err(vec!["The body must be an array of locations.".to_owned()]);
        }
    };
    let (mut locations, mut faults) = (Vec::with_capacity(named.len()), Vec::new());
    for (name, value) in named {
        match Location::parse(value, &name, Form::Open) {
            Ok(location) => locations.push((name, location)),
            Err(found) => faults.extend(found),
        }
    }
    if faults.is_empty() { Ok(locations) } else { Err(faults) }
}
