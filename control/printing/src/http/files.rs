//! HTTP: the files of print orders, streamed and never whole in memory.

use std::sync::Arc;

use axum::{
    Json,
    body::Body,
    extract::State,
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{
            CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_NONE_MATCH,
            X_CONTENT_TYPE_OPTIONS,
        },
    },
    response::{IntoResponse, Response},
};
use web::{access::Authenticated, api_error::ApiError, extract::Path, request_info::RequestInfo};

use super::documents::PrintFileDocument;
use crate::service::{
    PrintState,
    files::{self, Download},
};

/// Lists the files of a print order that is complete: the codes, a manifest and a receipt.
///
/// The list is empty after the files were removed.
#[utoipa::path(get, path = "/jobs/qr/{id}/files", tag = "Print orders", operation_id = "readPrintFiles",
    params(("id" = String, Path, description = "Id of the order")),
    responses((status = 200, description = "The files", body = [PrintFileDocument]),
        (status = 409, description = "The order is not complete")),
    extensions(("x-maturity" = json!("Beta"))))]
pub(super) async fn list(
    State(state): State<Arc<PrintState>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    info: RequestInfo,
) -> Result<Json<Vec<PrintFileDocument>>, ApiError> {
    let order = files::list(&state, &caller, &id).await?;
    let base = format!("{}{}", info.base, info.original_path.trim_end_matches('/'));
    let files = order.details.files.into_iter();
    Ok(Json(files.map(|file| PrintFileDocument::new(file, &base)).collect()))
}

/// Downloads a file of a print order.
#[utoipa::path(get, path = "/jobs/qr/{id}/files/{file}", tag = "Print orders", operation_id = "downloadPrintFile",
    params(("id" = String, Path, description = "Id of the order"),
        ("file" = String, Path, description = "Name of the file, such as `codes.pdf`")),
    responses((status = 200, description = "The bytes", body = String, content_type = "application/octet-stream"),
        (status = 304, description = "They are those that the client has"),
        (status = 409, description = "The order is not complete")),
    extensions(("x-maturity" = json!("Beta"))))]
pub(super) async fn download(
    State(state): State<Arc<PrintState>>,
    Authenticated(caller): Authenticated,
    Path((id, name)): Path<(String, String)>,
    sent: HeaderMap,
) -> Result<Response, ApiError> {
    let Download { file, bytes } = files::download(&state, &caller, &id, &name).await?;
    let etag = format!("\"{}\"", file.etag);
    let mut headers = HeaderMap::new();
    for (name, value) in [
        (ETAG, etag.as_str()),
        (CACHE_CONTROL, "private, no-cache"),
        (CONTENT_TYPE, &file.content_type),
        (CONTENT_DISPOSITION, &format!("attachment; filename=\"{}\"", file.name)),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ] {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
    let known = sent.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    if known.flat_map(|text| text.split(',')).any(|one| one.trim().trim_start_matches("W/") == etag) {
        return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
    }
    headers.insert(CONTENT_LENGTH, file.size_bytes.into());
    Ok((headers, Body::from_stream(bytes)).into_response())
}
