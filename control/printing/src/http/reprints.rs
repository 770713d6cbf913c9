//! HTTP: codes of a print order once more.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use web::{
    access::Authenticated,
    api_error::ApiError,
    extract::{JsonBody, Path},
    request_info::RequestInfo,
};

use super::documents::PrintOrderDocument;
use crate::{
    domain::reprint::ReprintDraft,
    service::{PrintState, reprint},
};

/// Prints codes of an order that is complete once more, as an order of their own.
///
/// Layout, links and settings are those of the order; no Things, links or serials are made. `reprintOf` names the order.
#[utoipa::path(post, path = "/jobs/qr/{id}/reprint", tag = "Print orders", operation_id = "reprintPrintOrder",
    params(("id" = String, Path, description = "Id of the order whose codes are printed again")),
    request_body = PrintOrderDocument,
    responses((status = 201, description = "Accepted; `Location` is the new order's", body = PrintOrderDocument),
        (status = 409, description = "The order is not complete, or its files were removed")))]
pub(super) async fn create(
    State(state): State<Arc<PrintState>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    info: RequestInfo,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let draft = ReprintDraft::parse(&body).map_err(ApiError::invalid)?;
    let order = reprint::create(&state, &caller, &id, draft).await?;
    // Beside the order that it is of.
    let path = info.original_path.trim_end_matches('/');
    let orders =
        path.strip_suffix("/reprint").and_then(|path| Some(path.rsplit_once('/')?.0)).unwrap_or(path);
    let location = format!("{}{orders}/{}", info.base, order.id);
    let document = Json(PrintOrderDocument::from(order));
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], document).into_response())
}
