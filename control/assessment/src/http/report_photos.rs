//! HTTP: photos of reports.

use axum::{
    body::Body,
    extract::State,
    http::{
        HeaderMap, HeaderValue,
        header::{
            CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE,
            X_CONTENT_TYPE_OPTIONS,
        },
    },
    response::{IntoResponse, Response},
};
use web::{access::Authenticated, api_error::ApiError, extract::Path};

use crate::service::{AssessmentState, report_photos};

/// Downloads the photo of a report: a JPEG, a PNG or a WebP of a stranger, of which the picture alone was kept. Needs the permission
/// `personalData:read`, too.
#[utoipa::path(get, path = "/authentication/cases/{id}/reports/{report}/photo", tag = "Authentication",
    operation_id = "readReportPhoto",
    params(("id" = String, Path, description = "Id of the case"),
        ("report" = String, Path, description = "Id of the report")),
    responses((status = 200, description = "The bytes, as `image/jpeg`, `image/png` or `image/webp`", body = String,
        content_type = "*/*")))]
pub(super) async fn read(
    State(state): State<AssessmentState>,
    Authenticated(caller): Authenticated,
    Path((id, report)): Path<(String, String)>,
) -> Result<Response, ApiError> {
    let (photo, bytes) = report_photos::read(&state, &caller, &id, &report).await?;
    let disposition = format!("attachment; filename=\"report-{report}.{}\"", photo.kind.extension());
    let mut headers = HeaderMap::new();
    for (name, value) in [
        (CONTENT_TYPE, photo.kind.media_type()),
        (CONTENT_DISPOSITION, disposition.as_str()),
        // Nothing that a stranger sent may run in our origin, or stay on a machine that several people use.
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CONTENT_SECURITY_POLICY, "default-src 'none'; sandbox"),
        (CACHE_CONTROL, "private, no-store"),
    ] {
        if let Ok(value) = HeaderValue::from_str(value) {
            headers.insert(name, value);
        }
    }
    headers.insert(CONTENT_LENGTH, photo.size_bytes.into());
    Ok((headers, Body::from_stream(bytes)).into_response())
}
