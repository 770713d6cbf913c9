//! HTTP: the files of print orders, streamed and never whole in memory.

use std::sync::Arc;

use axum::{
    Json,
    body::Body,
    extract::State,
    http::{
        HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
        header::{
            ACCEPT_RANGES, CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE,
            ETAG, IF_NONE_MATCH, IF_RANGE, RANGE, X_CONTENT_TYPE_OPTIONS,
        },
    },
    response::{IntoResponse, Response},
};
use shared::problem::Code;
use web::{access::Authenticated, api_error::ApiError, extract::Path, request_info::RequestInfo};

use super::{documents::PrintFileDocument, ranges::Part};
use crate::service::{PrintState, files};

/// Lists the files of a print order that is complete: the codes, a manifest and a receipt.
///
/// The list is empty after the files were removed.
#[utoipa::path(get, path = "/jobs/qr/{id}/files", tag = "Print orders", operation_id = "readPrintFiles",
    params(("id" = String, Path, description = "Id of the order")),
    responses((status = 200, description = "The files", body = [PrintFileDocument]),
        (status = 409, description = "The order is not complete")))]
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

/// Downloads a file of a print order; with `Range` a part of it, so that a download that broke off can be continued.
#[utoipa::path(get, path = "/jobs/qr/{id}/files/{file}", tag = "Print orders", operation_id = "downloadPrintFile",
    params(("id" = String, Path, description = "Id of the order"),
        ("file" = String, Path, description = "Name of the file, such as `codes.pdf`")),
    responses((status = 200, description = "The bytes; the list of files says their type", body = String,
            content_type = "*/*"),
        (status = 206, description = "Those of the range; `Content-Range` says which", body = String,
            content_type = "*/*"),
        (status = 304, description = "They are those that the client has"),
        (status = 409, description = "The order is not complete"),
        (status = 416, description = "The range begins behind the end; `Content-Range` says how many bytes there are")))]
pub(super) async fn download(
    State(state): State<Arc<PrintState>>,
    Authenticated(caller): Authenticated,
    Path((id, name)): Path<(String, String)>,
    method: Method,
    sent: HeaderMap,
) -> Result<Response, ApiError> {
    let file = files::find(&state, &caller, &id, &name).await?;
    let (etag, size) = (format!("\"{}\"", file.etag), file.size_bytes);
    let mut headers = HeaderMap::new();
    set(&mut headers, ETAG, &etag);
    set(&mut headers, ACCEPT_RANGES, "bytes");
    set(&mut headers, CACHE_CONTROL, "private, no-cache");
    set(&mut headers, CONTENT_TYPE, &file.content_type);
    set(&mut headers, CONTENT_DISPOSITION, &format!("attachment; filename=\"{}\"", file.name));
    set(&mut headers, X_CONTENT_TYPE_OPTIONS, "nosniff");
    let known = sent.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    if known.flat_map(|text| text.split(',')).any(|one| one.trim().trim_start_matches("W/") == etag) {
        return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
    }
    // One that cannot be read is sent all the same, and matches nothing.
    let value = |name: HeaderName| sent.get(name).map(|value| value.to_str().unwrap_or_default());
    // Ranges are for GET alone.
    let range = value(RANGE).filter(|_| method == Method::GET);
    match Part::of(range, value(IF_RANGE), &etag, size) {
        Part::Whole => {
            let bytes = files::open(&state, &file, None).await?;
            headers.insert(CONTENT_LENGTH, size.into());
            Ok((headers, Body::from_stream(bytes)).into_response())
        }
        Part::Bytes(range) => {
            set(&mut headers, CONTENT_RANGE, &format!("bytes {}-{}/{size}", range.start, range.end - 1));
            headers.insert(CONTENT_LENGTH, (range.end - range.start).into());
            let bytes = files::open(&state, &file, Some(range)).await?;
            Ok((StatusCode::PARTIAL_CONTENT, headers, Body::from_stream(bytes)).into_response())
        }
        Part::Unsatisfiable => {
            let fault = format!("Range: the file {} has {size} bytes.", file.name);
            let mut refused = ApiError::faults(Code::RangeUnsatisfiable, vec![fault]).into_response();
            set(refused.headers_mut(), CONTENT_RANGE, &format!("bytes */{size}"));
            Ok(refused)
        }
    }
}

fn set(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    // The names and types of files are our own.
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.insert(name, value);
    }
}
