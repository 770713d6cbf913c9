//! Operations on many named resources in one request: bulk `PUT` and `DELETE` with `?ids=`, and arrays on `POST`.
//!
//! Spec gap: the platform API does not show the responses. The vendor's Java client insists on 204 for the `PUT`, on
//! 200 for the `DELETE`, and reads the number of resources from `x-result-count`.

use axum::{
    Json,
    response::{IntoResponse, Response},
};
use kernel::{
    error::CommonError,
    service::{
        Core,
        access::Caller,
        bulk::{self as service, CreateEach},
    },
};
use serde_json::Value;
use shared::problem::Code;

use crate::{api_error::ApiError, extract::Query, listing::parse_ids, request_error::RequestError};

/// The bulk operations of one kind of resource: in a module, as those of another kind have the same names.
///
/// The long form is for a kind that is not generally available, or whose body is read by a function of its own.
/// `$held` is the state of the router that gives `$state`.
#[macro_export]
macro_rules! bulk {
    ($held:ty, $state:ty, $module:ident, $resource:ident, $change:ident, $document:ident, $path:literal, $tag:literal, $name:literal) => {
        $crate::bulk!($held, $state, $module, $resource, $document, $path, $tag, $name, "General Availability", |_, body| {
            $change::parse(body, ::kernel::domain::body::Purpose::Update).map_err($crate::api_error::ApiError::invalid)
        });
    };
    (
        $held:ty,
        $state:ty,
        $module:ident,
        $resource:ident,
        $document:ident,
        $path:literal,
        $tag:literal,
        $name:literal,
        $maturity:literal,
        $parse:expr
    ) => {
        pub(super) mod $module {
            use super::*;

            #[doc = concat!("Changes the members given of several ", $name, ": of all of them, or none.")]
            #[utoipa::path(put, path = $path, tag = $tag, operation_id = concat!("update-", $name),
                summary = concat!("Changes the members given of several ", $name, ": of all of them, or none."),
                params(("ids" = String, Query, description = "Ids, comma-separated, at most 100")),
                request_body(content = $document, description = "The members to change; the others may be left out"),
                responses((status = 204, description = "Changed; `x-result-count` says how many")),
                extensions(("x-maturity" = json!($maturity))))]
            pub(in super::super) async fn update(
                ::axum::extract::State(state): ::axum::extract::State<$held>,
                $crate::access::Authenticated(caller): $crate::access::Authenticated,
                query: $crate::extract::Query,
                $crate::extract::JsonBody(body): $crate::extract::JsonBody,
            ) -> Result<::axum::response::Response, $crate::api_error::ApiError> {
                let ids = $crate::bulk::ids(&query)?;
                let parse: fn(&$state, &::serde_json::Value) -> Result<<$resource as ::kernel::service::bulk::Bulk<$state>>::Change, $crate::api_error::ApiError> = $parse;
                let change = parse(&state, &body)?;
                ::kernel::service::bulk::update::<$state, $resource>(&state, &caller, &ids, change).await?;
                let count = [($crate::listing::RESULT_COUNT, ids.len())];
                Ok(::axum::response::IntoResponse::into_response((::axum::http::StatusCode::NO_CONTENT, count)))
            }

            #[doc = concat!("Removes several ", $name, ": all of them, or none.")]
            #[utoipa::path(delete, path = $path, tag = $tag, operation_id = concat!("delete-", $name),
                summary = concat!("Removes several ", $name, ": all of them, or none."),
                params(("ids" = String, Query, description = "Ids, comma-separated, at most 100")),
                responses((status = 200, description = "Removed; the body is empty, `x-result-count` says how many")),
                extensions(("x-maturity" = json!($maturity))))]
            pub(in super::super) async fn delete(
                ::axum::extract::State(state): ::axum::extract::State<$held>,
                $crate::access::Authenticated(caller): $crate::access::Authenticated,
                query: $crate::extract::Query,
            ) -> Result<::axum::response::Response, $crate::api_error::ApiError> {
                let ids = $crate::bulk::ids(&query)?;
                ::kernel::service::bulk::delete::<$state, $resource>(&state, &caller, &ids).await?;
                let count = [($crate::listing::RESULT_COUNT, ids.len())];
                Ok(::axum::response::IntoResponse::into_response(count))
            }
        }
    };
}

/// The ids of a bulk operation; without any it would be about everything.
pub fn ids(query: &Query) -> Result<Vec<String>, ApiError> {
    let text = query.find("ids").filter(|text| !text.trim().is_empty());
    parse_ids(text.ok_or(RequestError::IdsMissing)?)
        .map_err(|fault| ApiError::faults(Code::InvalidParameter, vec![fault]))
}

/// Creates what an array holds: one result for each item, in its order.
pub async fn create_each<S: AsRef<Core> + Sync, D: CreateEach<S>>(
    state: &S,
    caller: &Caller,
    items: &[Value],
    project: Option<&str>,
    parse: impl Fn(&Value) -> Result<D::Change, Vec<String>>,
) -> Result<Response, ApiError> {
    if items.len() > service::MAX_CREATED {
        return Err(CommonError::ItemCount { most: service::MAX_CREATED, found: items.len() }.into());
    }
    let items = items.iter().map(parse).collect();
    Ok(Json(service::create_each::<S, D>(state, caller, items, project).await?).into_response())
}
