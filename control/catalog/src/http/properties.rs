//! HTTP: properties of Thngs and products.

use axum::{Json, extract::State, response::Response};
use serde::Serialize;
use serde_json::Value;
use serde_with_macros::skip_serializing_none;
use shared::problem::Code;
use utoipa::ToSchema;
use web::{
    access::Authenticated,
    api_error::ApiError,
    extract::{JsonBody, Path, Query},
    listing::{Listing, number, time},
    openapi::PageParams,
    request_info::RequestInfo,
};

use crate::{
    domain::{
        listing::{PLAIN, PROPERTIES},
        permission::Verb,
        property::{Owner, Point, PropertyKey},
        property_body,
        series::{Bucket, DEFAULT_POINTS, MAX_POINTS, Series},
    },
    error::CatalogError,
    service::{Catalog, properties as service},
};

/// A value of a property at a point in time.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PropertyDocument {
    /// Its name, 1 to 128 characters, in lower case.
    #[schema(example = "temp_celsius")]
    key: String,
    /// A string, number, boolean, array or object of at most 16 KiB.
    #[schema(value_type = Value, example = json!(21.5))]
    value: Value,
    /// When it was so, in milliseconds since 1970; the time of the request when left out.
    #[schema(example = 1_767_225_600_000_i64)]
    timestamp: i64,
    /// When it was written, in milliseconds since 1970.
    #[schema(read_only, example = 1_767_225_600_000_i64)]
    created_at: i64,
}

impl From<Point> for PropertyDocument {
    fn from(point: Point) -> Self {
        Self {
            key: point.key.to_string(),
            value: point.value,
            timestamp: point.timestamp.0,
            created_at: point.created_at.0,
        }
    }
}

/// The numbers of a history, for a plot.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SeriesDocument {
    /// First millisecond that it covers; absent without numbers.
    #[schema(example = 1_767_225_600_000_i64)]
    from: Option<i64>,
    /// Last millisecond that it covers; absent without numbers.
    #[schema(example = 1_767_229_199_999_i64)]
    to: Option<i64>,
    /// Milliseconds of each bucket; absent without numbers.
    #[schema(example = 7_200)]
    width: Option<i64>,
    /// Those that hold numbers, by time.
    buckets: Vec<BucketDocument>,
}

/// The numbers of one part of a series.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct BucketDocument {
    /// Its first millisecond.
    #[schema(example = 1_767_225_600_000_i64)]
    timestamp: i64,
    /// The smallest.
    #[schema(example = 20.5)]
    min: f64,
    /// The largest.
    #[schema(example = 22.0)]
    max: f64,
    /// Their mean.
    #[schema(example = 21.25)]
    mean: f64,
    /// How many there are.
    #[schema(example = 12)]
    count: u64,
}

impl From<Series> for SeriesDocument {
    fn from(series: Series) -> Self {
        let bucket = |bucket: Bucket| BucketDocument {
            timestamp: bucket.timestamp.0,
            min: bucket.min,
            max: bucket.max,
            mean: bucket.mean,
            count: bucket.count,
        };
        Self {
            from: series.span.map(|span| span.from.0),
            to: series.span.map(|span| span.to.0),
            width: series.span.map(|span| span.width_ms),
            buckets: series.buckets.into_iter().map(bucket).collect(),
        }
    }
}

/// The operations of `/thngs/{id}/properties` and `/products/{id}/properties`.
macro_rules! properties {
    ($module:ident, $owner:expr, $path:literal, $one:literal, $series:literal, $name:literal) => {
        pub(super) mod $module {
            use super::*;

            #[doc = concat!("Lists the latest value of every property of a ", $name, ".")]
            #[utoipa::path(get, path = $path, summary = concat!("Lists the latest value of every property of a ", $name, "."),
                description = "The property that was made last comes first.",
                tag = "Properties", operation_id = concat!("list-", $name, "-properties"),
                params(("id" = String, Path, description = "Id or `<key>:<value>`"), PageParams),
                responses((status = 200, description = "One page", body = [PropertyDocument])),
                extensions(("x-maturity" = json!("General Availability"))))]
            pub(in crate::http) async fn list(
                State(catalog): State<Catalog>,
                Authenticated(caller): Authenticated,
                Path(id): Path<String>,
                info: RequestInfo,
                query: Query,
            ) -> Result<Response, ApiError> {
                let listing = Listing::parse(&catalog, &caller, info, &query, &PLAIN)?;
                let page = service::list(&catalog, &caller, ($owner, &id), listing.request.page).await?;
                Ok(listing.answer(&catalog, page, PropertyDocument::from))
            }

            #[doc = concat!("Writes properties of a ", $name, ".")]
            #[utoipa::path(post, path = $path, summary = concat!("Writes properties of a ", $name, "."),
                description = "The same as PUT.",
                tag = "Properties", operation_id = concat!("create-", $name, "-properties"),
                params(("id" = String, Path, description = "Id or `<key>:<value>`")),
                request_body(content = [PropertyDocument], description = "At most 10,000 values",
                    example = json!([{"key": "temp_celsius", "value": 21.5}])),
                responses((status = 200, description = "What was written", body = [PropertyDocument])),
                extensions(("x-maturity" = json!("General Availability"))))]
            pub(in crate::http) async fn create(
                State(catalog): State<Catalog>,
                Authenticated(caller): Authenticated,
                Path(id): Path<String>,
                JsonBody(body): JsonBody,
            ) -> Result<Json<Vec<PropertyDocument>>, ApiError> {
                let points = property_body::parse_many(&body).map_err(invalid)?;
                Ok(written(service::write(&catalog, &caller, Verb::Create, ($owner, &id), points).await?))
            }

            #[doc = concat!("Writes properties of a ", $name, "; those that are not there are made.")]
            #[utoipa::path(put, path = $path, summary = concat!("Writes properties of a ", $name, "; those that are not there are made."),
                description = "Of two values with one key and timestamp the later replaces the earlier.",
                tag = "Properties", operation_id = concat!("update-", $name, "-properties"),
                params(("id" = String, Path, description = "Id or `<key>:<value>`")),
                request_body(content = [PropertyDocument], description = "At most 10,000 values",
                    example = json!([{"key": "temp_celsius", "value": 21.5, "timestamp": 1_767_225_600_000_i64}])),
                responses((status = 200, description = "What was written", body = [PropertyDocument])),
                extensions(("x-maturity" = json!("General Availability"))))]
            pub(in crate::http) async fn update(
                State(catalog): State<Catalog>,
                Authenticated(caller): Authenticated,
                Path(id): Path<String>,
                JsonBody(body): JsonBody,
            ) -> Result<Json<Vec<PropertyDocument>>, ApiError> {
                let points = property_body::parse_many(&body).map_err(invalid)?;
                Ok(written(service::write(&catalog, &caller, Verb::Update, ($owner, &id), points).await?))
            }

            #[doc = concat!("Removes every property of a ", $name, " but those of the system.")]
            #[utoipa::path(delete, path = $path, summary = concat!("Removes every property of a ", $name, " but those of the system."),
                tag = "Properties", operation_id = concat!("delete-", $name, "-properties"),
                params(("id" = String, Path, description = "Id or `<key>:<value>`")),
                responses((status = 200, description = "Removed; the body is empty")),
                extensions(("x-maturity" = json!("General Availability"))))]
            pub(in crate::http) async fn delete(
                State(catalog): State<Catalog>,
                Authenticated(caller): Authenticated,
                Path(id): Path<String>,
            ) -> Result<(), ApiError> {
                Ok(service::delete_all(&catalog, &caller, ($owner, &id)).await?)
            }

            #[doc = concat!("Lists the history of a property of a ", $name, ".")]
            #[utoipa::path(get, path = $one, summary = concat!("Lists the history of a property of a ", $name, "."),
                description = "By timestamp, the latest first; empty when there is no such property.",
                tag = "Properties", operation_id = concat!("read-", $name, "-property"),
                params(("id" = String, Path, description = "Id or `<key>:<value>`"),
                    ("key" = String, Path, description = "Name of the property, in any case", example = "temp_celsius"),
                    ("from" = Option<i64>, Query, description = "Earliest timestamp, inclusive"),
                    ("to" = Option<i64>, Query, description = "Latest timestamp, inclusive"),
                    ("filter" = Option<String>, Query, description = "Conditions on `timestamp`"),
                    PageParams),
                responses((status = 200, description = "One page", body = [PropertyDocument])),
                extensions(("x-maturity" = json!("General Availability"))))]
            pub(in crate::http) async fn read_one(
                State(catalog): State<Catalog>,
                Authenticated(caller): Authenticated,
                Path((id, key)): Path<(String, String)>,
                info: RequestInfo,
                query: Query,
            ) -> Result<Response, ApiError> {
                let key = parse_key(&key)?;
                let listing = Listing::history(&catalog, &caller, info, &query, &PROPERTIES)?;
                let page = service::history(&catalog, &caller, ($owner, &id), &key, &listing.request).await?;
                Ok(listing.answer(&catalog, page, PropertyDocument::from))
            }

            #[doc = concat!("Gives the numbers of a property of a ", $name, " for a plot.")]
            #[utoipa::path(get, path = $series, summary = concat!("Gives the numbers of a property of a ", $name, " for a plot."),
                description = "The time from `from` to `to` is cut into buckets of one width; values that are no numbers \
                    do not count, and buckets without numbers are left out.",
                tag = "Properties", operation_id = concat!("read-", $name, "-property-series"),
                params(("id" = String, Path, description = "Id or `<key>:<value>`"),
                    ("key" = String, Path, description = "Name of the property, in any case", example = "temp_celsius"),
                    ("from" = Option<i64>, Query, description = "Earliest timestamp, inclusive; that of the first number if left out"),
                    ("to" = Option<i64>, Query, description = "Latest timestamp, inclusive; that of the last number if left out"),
                    ("points" = Option<u32>, Query, minimum = 1, maximum = 2000, description = "Most buckets; 500 if left out")),
                responses((status = 200, description = "The series", body = SeriesDocument)))]
            pub(in crate::http) async fn read_series(
                State(catalog): State<Catalog>,
                Authenticated(caller): Authenticated,
                Path((id, key)): Path<(String, String)>,
                query: Query,
            ) -> Result<Json<SeriesDocument>, ApiError> {
                let mut faults = Vec::new();
                let range = (time(&query, "from", &mut faults), time(&query, "to", &mut faults));
                let points = number(&query, "points", MAX_POINTS, DEFAULT_POINTS, &mut faults);
                ApiError::check_parameters(faults)?;
                let key = parse_key(&key)?;
                Ok(Json(service::series(&catalog, &caller, ($owner, &id), &key, range, points).await?.into()))
            }

            #[doc = concat!("Writes values of a property of a ", $name, ".")]
            #[utoipa::path(put, path = $one, summary = concat!("Writes values of a property of a ", $name, "."),
                description = "The body is an array of `{value, timestamp}`, one such object, or the value itself. \
                    An array always lists points: to write an array, send `{\"value\": […]}`. An object is the value \
                    itself unless it has a member `value`.",
                tag = "Properties", operation_id = concat!("update-", $name, "-property"),
                params(("id" = String, Path, description = "Id or `<key>:<value>`"),
                    ("key" = String, Path, description = "Name of the property, in any case", example = "temp_celsius")),
                request_body(content = Object, description = "At most 10,000 values",
                    example = json!([{"value": 21.5, "timestamp": 1_767_225_600_000_i64}])),
                responses((status = 200, description = "What was written", body = [PropertyDocument])),
                extensions(("x-maturity" = json!("General Availability"))))]
            pub(in crate::http) async fn update_one(
                State(catalog): State<Catalog>,
                Authenticated(caller): Authenticated,
                Path((id, key)): Path<(String, String)>,
                JsonBody(body): JsonBody,
            ) -> Result<Json<Vec<PropertyDocument>>, ApiError> {
                let points = property_body::parse_values(&parse_key(&key)?, &body).map_err(invalid)?;
                Ok(written(service::write(&catalog, &caller, Verb::Update, ($owner, &id), points).await?))
            }

            #[doc = concat!("Removes a property of a ", $name, ", or its values before a time.")]
            #[utoipa::path(delete, path = $one, summary = concat!("Removes a property of a ", $name, ", or its values before a time."),
                tag = "Properties", operation_id = concat!("delete-", $name, "-property"),
                params(("id" = String, Path, description = "Id or `<key>:<value>`"),
                    ("key" = String, Path, description = "Name of the property, in any case", example = "temp_celsius"),
                    ("to" = Option<i64>, Query, description = "Only values with an earlier timestamp")),
                responses((status = 200, description = "Removed, or not there; the body is empty")),
                extensions(("x-maturity" = json!("General Availability"))))]
            pub(in crate::http) async fn delete_one(
                State(catalog): State<Catalog>,
                Authenticated(caller): Authenticated,
                Path((id, key)): Path<(String, String)>,
                query: Query,
            ) -> Result<(), ApiError> {
                let mut faults = Vec::new();
                let before = time(&query, "to", &mut faults);
                ApiError::check_parameters(faults)?;
                Ok(service::delete(&catalog, &caller, ($owner, &id), &parse_key(&key)?, before).await?)
            }
        }
    };
}

properties!(
    of_thng,
    Owner::Thng,
    "/thngs/{id}/properties",
    "/thngs/{id}/properties/{key}",
    "/thngs/{id}/properties/{key}/series",
    "thng"
);
properties!(
    of_product,
    Owner::Product,
    "/products/{id}/properties",
    "/products/{id}/properties/{key}",
    "/products/{id}/properties/{key}/series",
    "product"
);

fn written(points: Vec<Point>) -> Json<Vec<PropertyDocument>> {
    Json(points.into_iter().map(PropertyDocument::from).collect())
}

fn invalid(faults: Vec<String>) -> ApiError {
    ApiError::faults(Code::Invalid, faults)
}

fn parse_key(text: &str) -> Result<PropertyKey, ApiError> {
    Ok(PropertyKey::parse(text).map_err(CatalogError::PropertyKey)?)
}
