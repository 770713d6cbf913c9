//! HTTP: the form of a report with a photo, as browsers send it (`multipart/form-data`).

use axum::{
    body::Body,
    extract::{DefaultBodyLimit, FromRequest as _, Multipart, Request},
    http::{HeaderMap, header},
};
use bytes::Bytes;
use serde_json::{Map, Value};
use tokio::task::spawn_blocking;
use web::{api_error::ApiError, extract::read_up_to};

use crate::{
    domain::{
        limits::shorten,
        photo::{MAX_FORM_BYTES, Photo},
        report::NewReport,
    },
    error::ServiceError,
};

/// Most fields, so that faults stay few: ours, and as many others.
const MAX_FIELDS: usize = 8;

/// The texts and the photo of a form, and what is wrong with its fields.
type Fields = (Map<String, Value>, Option<Bytes>, Vec<String>);

/// Whether a request has such a form.
pub(super) fn is_form(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("multipart/form-data")
}

/// Reads a form; nothing for one of which every field is empty. Only the picture of a photo is left.
///
/// # Errors
/// 413 for more than [`MAX_FORM_BYTES`]; 400 with every fault, each naming its field.
pub(super) async fn read(request: Request) -> Result<(Option<NewReport>, Option<Photo>), ApiError> {
    let (parts, body) = request.into_parts();
    // As a whole: the parser looks at all that it holds with each piece that comes, and a stranger may send small ones.
    let bytes = read_up_to(Request::from_parts(parts.clone(), body), MAX_FORM_BYTES).await?;
    let mut request = Request::from_parts(parts, Body::from(bytes));
    DefaultBodyLimit::max(MAX_FORM_BYTES).apply(&mut request);
    let form = Multipart::from_request(request, &()).await.map_err(|_| {
        ApiError::invalid(vec!["Content-Type must name the boundary of the form.".to_owned()])
    })?;
    let (texts, sent, mut faults) = fields(form).await?;
    let has_photo = sent.is_some();
    let photo = match sent {
        None => None,
        Some(sent) => {
            // Copying it takes some milliseconds.
            let read = spawn_blocking(move || Photo::read(&sent)).await;
            match read.map_err(|error| ServiceError::Internal(error.to_string()))? {
                Ok(photo) => Some(photo),
                Err(error) => {
                    faults.push(format!("photo {error}."));
                    None
                }
            }
        }
    };
    let report = NewReport::parse(&Value::Object(texts)).unwrap_or_else(|more| {
        faults.extend(more);
        None
    });
    if faults.is_empty() && has_photo && report.is_none() {
        faults.push("token and text are required with a photo.".to_owned());
    }
    if faults.is_empty() { Ok((report, photo)) } else { Err(ApiError::invalid(faults)) }
}

/// Reads the fields that are not empty.
async fn fields(mut form: Multipart) -> Result<Fields, ApiError> {
    let (mut texts, mut photo, mut faults) = (Map::new(), None, Vec::new());
    let mut count = 0;
    while let Some(field) = form.next_field().await.map_err(|_| broken())? {
        count += 1;
        if count > MAX_FIELDS {
            return Err(ApiError::invalid(vec![format!("The form must have at most {MAX_FIELDS} fields.")]));
        }
        let name = field.name().unwrap_or_default().to_owned();
        let bytes = field.bytes().await.map_err(|_| broken())?;
        let is_first = match name.as_str() {
            "token" | "text" | "mail" | "photo" if bytes.is_empty() => true,
            "photo" => photo.replace(bytes).is_none(),
            "token" | "text" | "mail" => match str::from_utf8(&bytes) {
                Ok(text) if text.trim().is_empty() => true,
                // A browser ends lines by two letters, and counts one.
                Ok(text) => texts.insert(name.clone(), text.replace("\r\n", "\n").into()).is_none(),
                Err(_) => {
                    faults.push(format!("{name} must be UTF-8."));
                    true
                }
            },
            _ => {
                faults.push(format!("{:?} is not known here.", shorten(&name)));
                true
            }
        };
        if !is_first {
            faults.push(format!("{name} must come once."));
        }
    }
    Ok((texts, photo, faults))
}

fn broken() -> ApiError {
    ApiError::invalid(vec!["The form broke off, or is none of multipart/form-data.".to_owned()])
}
