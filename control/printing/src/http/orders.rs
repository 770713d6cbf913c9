//! HTTP: print orders.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use kernel::domain::listing::PRINT_ORDERS;
use web::{
    access::Authenticated,
    api_error::ApiError,
    extract::{JsonBody, Path, Query},
    listing::Listing,
    openapi::{ListParams, PageParams},
    request_info::RequestInfo,
};

use super::documents::PrintOrderDocument;
use crate::{
    domain::order_draft::OrderDraft,
    service::{PrintState, orders},
};

/// Lists print orders, newest first.
#[utoipa::path(get, path = "/jobs/qr", tag = "Print orders", operation_id = "listPrintOrders",
    params(PageParams, ListParams),
    responses((status = 200, description = "One page", body = [PrintOrderDocument])))]
pub(super) async fn list(
    State(state): State<Arc<PrintState>>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    query: Query,
) -> Result<Response, ApiError> {
    let listing = Listing::parse(&state, &caller, info, &query, &PRINT_ORDERS)?;
    let page = orders::list(&state, &caller, &listing.request).await?;
    Ok(listing.answer(&state, page, PrintOrderDocument::from))
}

/// Orders many codes as one file, in the background.
///
/// The codes are those of a list, those that meet a filter, those of the lines of an uploaded file, or those of Things that
/// the order makes. Every code is read back from what was drawn. Of a file every line is checked before a code is drawn: bad
/// lines fail the order, and its `message` names the first hundred.
#[utoipa::path(post, path = "/jobs/qr", tag = "Print orders", operation_id = "createPrintOrder",
    request_body = PrintOrderDocument,
    responses((status = 201, description = "Accepted; `Location` is the order's", body = PrintOrderDocument),
        (status = 409, description = "Serials of these numbers were given out"),
        (status = 422, description = "The first code cannot be drawn as asked: it does not fit its label, for example")))]
pub(super) async fn create(
    State(state): State<Arc<PrintState>>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let draft = OrderDraft::parse(&body, state.limits.max_codes).map_err(ApiError::invalid)?;
    let order = orders::create(&state, &caller, draft, &info.base).await?;
    let location = format!("{}{}/{}", info.base, info.original_path, order.id);
    let document = Json(PrintOrderDocument::from(order));
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], document).into_response())
}

/// Reads a print order: how far it is, and what became of it.
#[utoipa::path(get, path = "/jobs/qr/{id}", tag = "Print orders", operation_id = "readPrintOrder",
    params(("id" = String, Path, description = "Id of the order")),
    responses((status = 200, description = "The order", body = PrintOrderDocument)))]
pub(super) async fn read(
    State(state): State<Arc<PrintState>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Json<PrintOrderDocument>, ApiError> {
    Ok(Json(orders::read(&state, &caller, &id).await?.into()))
}

/// Ends a print order; the Things and links that it made stay.
#[utoipa::path(post, path = "/jobs/qr/{id}/cancel", tag = "Print orders", operation_id = "cancelPrintOrder",
    params(("id" = String, Path, description = "Id of the order")),
    responses((status = 202, description = "It is cancelled; the body is empty"),
        (status = 409, description = "The order has ended")))]
pub(super) async fn cancel(
    State(state): State<Arc<PrintState>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    orders::cancel(&state, &caller, &id).await?;
    Ok(StatusCode::ACCEPTED)
}

/// Removes a print order that has ended, with its files; the Things and links that it made stay.
#[utoipa::path(delete, path = "/jobs/qr/{id}", tag = "Print orders", operation_id = "deletePrintOrder",
    params(("id" = String, Path, description = "Id of the order")),
    responses((status = 200, description = "Removed; the body is empty"),
        (status = 409, description = "The order has not ended")))]
pub(super) async fn delete(
    State(state): State<Arc<PrintState>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<(), ApiError> {
    Ok(orders::delete(&state, &caller, &id).await?)
}
