//! HTTP: reports of finders, without a key.

use axum::{
    Json,
    extract::{FromRequest as _, Request, State},
    http::header,
};
use serde::{Deserialize, Serialize};
use serde_with_macros::skip_serializing_none;
use utoipa::ToSchema;
use web::{
    api_error::ApiError,
    extract::{JsonBody, Path},
    request_info::RequestInfo,
};

use super::report_forms;
use crate::{
    domain::report::NewReport,
    service::{AssessmentState, report_photos, reports},
};

/// What a finder writes.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "the fields describe the body, which the domain reads")]
pub(super) struct NewReportDocument {
    /// From the answer to an empty object; good for one report within an hour.
    token: Option<String>,
    /// 1 to 2,000 characters, not only blanks.
    text: Option<String>,
    /// Where the finder may be asked.
    mail: Option<String>,
}

/// What a finder gets.
#[skip_serializing_none]
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ReportStateDocument {
    /// `form`: send the token with the report. `received`: the report is with the account.
    #[schema(example = "received")]
    report: &'static str,
    /// Goes with the report.
    token: Option<String>,
    /// Whether `mail` may be given, which an account without personal data refuses.
    takes_mail: Option<bool>,
    /// Whether `photo` may be given: `photos` of the pages is set, and the account has room for one.
    takes_photo: Option<bool>,
}

/// Tells the account of an item that may be a copy where it was found, without a key: an empty object gives a token, which goes
/// with the report. The page of copies does it, if `reports` of the pages is set. The short domain is the host of the request. With a
/// photo it is a form (`multipart/form-data`) of at most 5 MiB; of the photo only the picture is kept, without what a phone writes into
/// it.
#[utoipa::path(post, path = "/redirections/{shortId}/reports", tag = "Redirections", operation_id = "reportItem",
    security(()), params(("shortId" = String, Path, description = "Short id, with `%2F` for a slash in it")),
    request_body = NewReportDocument,
    responses((status = 200, description = "The token of a form, or the report was received", body = ReportStateDocument),
        (status = 404, description = "Nobody may write about this short id, be there one or not"),
        (status = 413, description = "The form has more than 5 MiB"),
        (status = 429, description = "Too many of the address, or within a day about the item or to the account")))]
pub(super) async fn send(
    State(state): State<AssessmentState>,
    Path(short_id): Path<String>,
    info: RequestInfo,
    request: Request,
) -> Result<Json<ReportStateDocument>, ApiError> {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let host = host.unwrap_or_default().to_owned();
    let (_slot, (report, photo)) = if report_forms::is_form(request.headers()) {
        // Before it is read: it is large.
        let slot = report_photos::admit(&state, &host, &short_id, info.client).await?;
        (Some(slot), report_forms::read(request).await?)
    } else {
        let JsonBody(body) = JsonBody::from_request(request, &state).await?;
        (None, (NewReport::parse(&body).map_err(ApiError::invalid)?, None))
    };
    Ok(Json(match report {
        None => {
            let form = reports::begin(&state, &host, &short_id).await?;
            let (token, takes_mail) = (Some(form.token), Some(form.takes_mail));
            ReportStateDocument { report: "form", token, takes_mail, takes_photo: Some(form.takes_photo) }
        }
        Some(new) => {
            reports::send(&state, &host, &short_id, (new, photo)).await?;
            ReportStateDocument { report: "received", token: None, takes_mail: None, takes_photo: None }
        }
    }))
}
