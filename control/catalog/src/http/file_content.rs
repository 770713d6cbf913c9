//! HTTP: upload and download of file content, streamed and never whole in memory.

use std::time::Duration;

use axum::{
    body::Body,
    extract::{FromRequestParts, Request, State},
    http::{
        HeaderMap, HeaderName, HeaderValue, StatusCode,
        header::{
            CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
            IF_NONE_MATCH, X_CONTENT_TYPE_OPTIONS,
        },
        request::Parts,
    },
    response::{IntoResponse, Response},
};
use shared::time::UnixMillis;
use web::{
    access::{Access, Authenticated, has_key},
    api_error::ApiError,
    extract::{Path, Query},
    request_info::RequestInfo,
};

use crate::{
    domain::file::{Purport, disposition, is_media_type, is_signed},
    error::CatalogError,
    service::{
        Catalog, Core,
        files::{self, Download, UploadHead, Visitor},
    },
};

/// Longest upload: a gigabyte in it is 0.3 MB/s.
pub(super) const UPLOAD_TIME_LIMIT: Duration = Duration::from_secs(60 * 60);

/// Uploads the content of a file; a second upload replaces it once it is there whole.
#[utoipa::path(put, path = "/files/{id}/content", tag = "Files", operation_id = "uploadFile",
    params(("id" = String, Path, description = "Id"),
        ("expires" = Option<i64>, Query, description = "Part of `uploadUrl`"),
        ("signature" = Option<String>, Query, description = "Part of `uploadUrl`; stands in for a key")),
    request_body(content = String, content_type = "application/octet-stream", description = "At most 1 GiB"),
    responses((status = 200, description = "Stored; the body is empty")),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn upload(
    State(catalog): State<Catalog>,
    State(access): State<Access>,
    Path(id): Path<String>,
    request: Request,
) -> Result<(), ApiError> {
    let (mut parts, body) = request.into_parts();
    let visitor = visitor(&catalog, &access, &mut parts, &id, Purport::Upload).await?;
    let text = |name| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let head = UploadHead {
        media_type: text(CONTENT_TYPE).filter(|text| is_media_type(text)).map(str::to_owned),
        size_bytes: text(CONTENT_LENGTH).and_then(|text| text.parse().ok()),
        client: parts.extensions.get::<RequestInfo>().and_then(|info| info.client),
    };
    Ok(files::upload(&catalog, visitor, &id, head, body.into_data_stream()).await?)
}

/// Downloads the content of a file.
#[utoipa::path(get, path = "/files/{id}/content", tag = "Files", operation_id = "downloadFile",
    params(("id" = String, Path, description = "Id"),
        ("expires" = Option<i64>, Query, description = "Part of the `contentUrl` of a private file"),
        ("signature" = Option<String>, Query, description = "Stands in for a key")),
    responses((status = 200, description = "The bytes, as the file's `type`", body = String,
        content_type = "application/octet-stream"),
        (status = 304, description = "They are those that the client has")),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn download(
    State(catalog): State<Catalog>,
    State(access): State<Access>,
    Path(id): Path<String>,
    mut parts: Parts,
) -> Result<Response, ApiError> {
    let visitor = visitor(&catalog, &access, &mut parts, &id, Purport::Download).await?;
    let Download { file, content, bytes } = files::download(&catalog, visitor, &id).await?;
    let etag = format!("\"{}\"", content.etag);
    let caching = if file.is_private() { "private, no-cache" } else { "no-cache" };
    let media_type = file.media_type();
    let mut headers = HeaderMap::new();
    for (name, value) in [
        (ETAG, etag.as_str()),
        (CACHE_CONTROL, caching),
        (CONTENT_TYPE, media_type),
        (CONTENT_DISPOSITION, &disposition(&file.name, media_type)),
        // Nothing that was uploaded may run in our origin.
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
        (HeaderName::from_static("cross-origin-resource-policy"), "cross-origin"),
    ] {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
    if is_known(&parts.headers, &etag) {
        return Ok((StatusCode::NOT_MODIFIED, headers).into_response());
    }
    headers.insert(CONTENT_LENGTH, content.size_bytes.into());
    Ok((headers, Body::from_stream(bytes)).into_response())
}

/// Authenticates: by a signature in the URL, else by a key, else anonymous.
async fn visitor(
    core: &Core,
    access: &Access,
    parts: &mut Parts,
    id: &str,
    purport: Purport,
) -> Result<Visitor, ApiError> {
    // Parsed as it was sent: an invalid signature opens nothing.
    let query = Query::of(parts.uri.query().unwrap_or_default());
    if let Some(signature) = query.find("signature") {
        let expires = query.find("expires").and_then(|text| text.parse().ok()).map(UnixMillis);
        let is_good = id.parse().ok().zip(expires).is_some_and(|(id, expires)| {
            is_signed(&core.secrets.file_url, id, purport, expires, signature, core.clock.now())
        });
        return if is_good { Ok(Visitor::Signed) } else { Err(CatalogError::WrongSignature.into()) };
    }
    if !has_key(&parts.headers, parts.uri.query()) {
        return Ok(Visitor::Nobody);
    }
    let Authenticated(caller) = Authenticated::from_request_parts(parts, access).await?;
    Ok(Visitor::Actor(Box::new(caller)))
}

fn is_known(headers: &HeaderMap, etag: &str) -> bool {
    let sent = headers.get_all(IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    sent.flat_map(|text| text.split(','))
        .map(str::trim)
        .any(|one| one == "*" || one.trim_start_matches("W/") == etag)
}
