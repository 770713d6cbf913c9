//! HTTP: places.

use axum::{Json, extract::State, response::Response};
use countries::distance::MAX_DISTANCE_KM;
use serde::Serialize;
use serde_json::{Map, Value};
use shared::problem::Code;
use utoipa::ToSchema;
use web::{
    access::Authenticated,
    api_error::ApiError,
    extract::{JsonBody, Path, Query},
    listing::{Listing, flag},
    location::CoordinatesDocument,
    openapi::{ListParams, NumberedParams, PageParams},
    request_info::RequestInfo,
    wire::{CommonDocument, created},
};

use super::one::one;
use crate::{
    domain::{
        body::Purpose,
        listing::PLACES,
        location::Coordinates,
        place::{Place, PlaceChange},
    },
    service::{Catalog, places},
};

/// A place: somewhere that Thngs and actions may be.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PlaceDocument {
    /// Its id.
    #[schema(read_only, example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    id: String,
    #[serde(flatten)]
    common: CommonDocument,
    /// 1 to 256 characters; required on create.
    #[schema(example = "Warehouse 3")]
    name: String,
    /// A kind of the caller's choice, at most 256 characters.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    /// URL of a picture, at most 2,048 characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    icon: Option<String>,
    /// The address by its parts, as the caller calls them, at most 64 KiB; replaced as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>, example = json!({"street": "Kai 7", "city": "Hamburg", "countryCode": "DE"}))]
    address: Option<Map<String, Value>>,
    #[serde(flatten)]
    coordinates: Option<CoordinatesDocument>,
}

impl PlaceDocument {
    fn new(place: Place, with_scopes: bool) -> Self {
        let details = place.details;
        Self {
            id: place.id.to_string(),
            common: CommonDocument::new(place.stamp, details.common, with_scopes),
            name: place.name,
            kind: details.kind,
            icon: details.icon,
            address: details.address,
            coordinates: place.coordinates.map(CoordinatesDocument::from),
        }
    }
}

/// Lists places: newest first, or with `lat` and `lon` the nearest first.
#[utoipa::path(get, path = "/places", tag = "Places", operation_id = "listPlaces", params(PageParams, ListParams, NumberedParams,
        ("lat" = Option<f64>, Query, minimum = -90, maximum = 90, description = "Latitude of a point: the nearest places come first"),
        ("lon" = Option<f64>, Query, minimum = -180, maximum = 180, description = "Longitude of the point"),
        ("maxDist" = Option<f64>, Query, minimum = 0, description = "Leave out what is farther away, in kilometres")),
    responses((status = 200, description = "One page", body = [PlaceDocument])),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn list(
    State(catalog): State<Catalog>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    query: Query,
) -> Result<Response, ApiError> {
    let around = read_around(&query).map_err(|faults| ApiError::faults(Code::InvalidParameter, faults))?;
    let listing = Listing::parse(&catalog, &caller, info, &query, &PLACES)?;
    let page = match around {
        Some((center, max_km)) => {
            places::list_nearest(&catalog, &caller, center, max_km, listing.request.page).await?
        }
        None => places::list(&catalog, &caller, &listing.request).await?,
    };
    Ok(listing.answer(&catalog, page, |place| PlaceDocument::new(place, listing.with_scopes)))
}

/// Makes a place.
#[utoipa::path(post, path = "/places", tag = "Places", operation_id = "createPlace",
    params(("project" = Option<String>, Query, description = "Id of a project that it shall belong to")),
    request_body = PlaceDocument,
    responses((status = 201, description = "The place", body = PlaceDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn create(
    State(catalog): State<Catalog>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    query: Query,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let change = PlaceChange::parse(&body, Purpose::Create).map_err(ApiError::invalid)?;
    let place = places::create(&catalog, &caller, change, query.find("project")).await?;
    let id = place.id;
    Ok(created(&info, id.as_str(), PlaceDocument::new(place, false)))
}

one!(
    places,
    PlaceChange,
    PlaceDocument,
    "/places/{id}",
    "Places",
    "place",
    "Place",
    "Removes a place; what points at it stays."
);

// Spec gap: how far a search without maxDist goes is not shown; it goes around the world.
/// The point and the distance of a search, if one is asked for.
fn read_around(query: &Query) -> Result<Option<(Coordinates, f64)>, Vec<String>> {
    let mut faults = Vec::new();
    let mut number = |name: &str, min: f64, max: f64| {
        let text = query.find(name)?;
        let value = text.parse().ok().filter(|value: &f64| (min..=max).contains(value));
        if value.is_none() {
            let range = if max.is_finite() { format!("{min} to {max}") } else { format!("{min} on") };
            faults.push(format!("{name} must be a number from {range}."));
        }
        value
    };
    let latitude = number("lat", -90.0, 90.0);
    let longitude = number("lon", -180.0, 180.0);
    let max_km = number("maxDist", 0.0, f64::INFINITY).unwrap_or(MAX_DISTANCE_KM);
    let has = |name| query.find(name).is_some();
    if has("lat") != has("lon") || (has("maxDist") && !has("lat")) {
        faults.push("lat and lon must come together; maxDist needs them.".to_owned());
    }
    if has("lat") {
        let others = ["filter", "ids"].into_iter().filter(|name| has(name));
        faults.extend(others.map(|name| format!("{name} cannot be combined with lat and lon.")));
    }
    if !faults.is_empty() {
        return Err(faults);
    }
    let center =
        latitude.zip(longitude).and_then(|(latitude, longitude)| Coordinates::new(latitude, longitude));
    Ok(center.map(|center| (center, max_km)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearby_searches_are_parsed_or_refused() {
        for (query, expected) in [
            ("", Ok(None)),
            ("perPage=3", Ok(None)),
            ("lat=52&lon=-13.5&maxDist=10", Ok(Some((52.0, -13.5, 10.0)))),
            ("lat=-90&lon=180", Ok(Some((-90.0, 180.0, MAX_DISTANCE_KM)))),
            ("lat=1&lon=1&maxDist=0", Ok(Some((1.0, 1.0, 0.0)))),
            ("lat=1", Err(1)),
            ("lon=1", Err(1)),
            ("maxDist=1", Err(1)),
            ("lat=91&lon=181&maxDist=-1", Err(3)),
            ("lat=NaN&lon=x&maxDist=", Err(3)),
            ("lat=1&lon=1&filter=name%3Dx&ids=y", Err(2)),
        ] {
            let found = read_around(&Query::of(query))
                .map(|found| found.map(|(at, max_km)| (at.latitude(), at.longitude(), max_km)))
                .map_err(|faults| faults.len());
            assert_eq!(found, expected, "{query}");
        }
    }
}
