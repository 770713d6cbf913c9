//! QR codes of redirections as images.

use axum::{
    http::{HeaderMap, HeaderName, HeaderValue, header},
    response::{IntoResponse, Response},
};
use qr::{Format, QrRequest};
use shared::{negotiate::Representation, problem::Code};
use web::{api_error::ApiError, extract::Query, fair_share::Slot};

use crate::{
    domain::{access::Actor, redirection::Redirection},
    error::{RedirectsError, ServiceError},
    service::{
        Redirects,
        redirections::{digital_link, logo},
    },
};

/// Marks a code that leads to this machine or into a local network: it is not for print.
pub(super) const DEVELOPMENT: HeaderName = HeaderName::from_static("x-waymark-development");

/// What a code says: `payload=gs1dl` asks for the Digital Link of its resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Payload {
    /// The short URL.
    Short,
    /// `https://HOST/01/…/21/…`.
    DigitalLink,
}

impl Payload {
    /// Reads `payload`; what is neither is left to the other parameters of a code.
    pub(super) fn read(query: &Query) -> Self {
        if query.find("payload") == Some(DIGITAL_LINK) { Self::DigitalLink } else { Self::Short }
    }
}

const DIGITAL_LINK: &str = "gs1dl";

/// Which image a read asks for: its code may say something else than the short URL.
pub(super) fn code_request(headers: &HeaderMap, query: &Query) -> Result<Option<QrRequest>, ApiError> {
    let mut others = query.clone();
    // One that says something else as well is a fault.
    if others.all.iter().all(|(name, value)| name != "payload" || value == DIGITAL_LINK) {
        others.all.retain(|(name, _)| name != "payload");
    }
    image_request(headers, &others)
}

/// The response to a create: JSON if `Accept` names it, else the code as an image.
pub(super) fn image_request(headers: &HeaderMap, query: &Query) -> Result<Option<QrRequest>, ApiError> {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    if accept.is_some_and(is_postscript) {
        return parse_image(Format::Eps, query).map(Some);
    }
    let format = match Representation::negotiate(accept) {
        Representation::Json => return check_image(query).map(|()| None),
        // For `*/*` the default is a PNG.
        Representation::Redirect | Representation::Png => Format::Png,
        Representation::Svg => Format::Svg,
        Representation::Pdf => Format::Pdf,
        Representation::Eps => Format::Eps,
    };
    parse_image(format, query).map(Some)
}

/// Whether `Accept` names PostScript and nothing else. Edges give it by the suffix `.eps`, which paths of the API have not.
fn is_postscript(accept: &str) -> bool {
    let media_type = accept.split(';').next().unwrap_or_default();
    media_type.trim().eq_ignore_ascii_case("application/postscript")
}

/// Refuses wrong parameters of a code where the answer has none.
pub(super) fn check_image(query: &Query) -> Result<(), ApiError> {
    parse_image(Format::Png, query).map(|_| ())
}

fn parse_image(format: Format, query: &Query) -> Result<QrRequest, ApiError> {
    QrRequest::parse(format, query.known()).map_err(|faults| {
        ApiError::faults(Code::InvalidParameter, faults.iter().map(ToString::to_string).collect())
    })
}

/// The response to a create of the first generation. Its clients send `*/*` and parse JSON, so it is an image only if
/// `Accept` names an image type or `image/*`.
pub(super) fn named_image_request(headers: &HeaderMap, query: &Query) -> Result<Option<QrRequest>, ApiError> {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let names_image = accept.split(',').any(|range| {
        let name = range.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        matches!(name.as_str(), "image/*" | "image/png" | "image/svg+xml" | "application/pdf")
    });
    if names_image { image_request(headers, query) } else { check_image(query).map(|()| None) }
}

/// The code of a redirection.
pub(super) async fn image(
    redirects: &Redirects,
    item: &Redirection,
    request: &QrRequest,
    slot: &Slot,
) -> Result<Response, ApiError> {
    image_of(redirects, item, item.domain.qr_payload(&item.redirect.short_id), request, slot).await
}

/// The code of a redirection that a read asks for.
pub(super) async fn code(
    redirects: &Redirects,
    actor: &Actor,
    item: &Redirection,
    (request, payload): (&QrRequest, Payload),
    slot: &Slot,
) -> Result<Response, ApiError> {
    let payload = match payload {
        Payload::Short => item.domain.qr_payload(&item.redirect.short_id),
        Payload::DigitalLink => digital_link(redirects, actor, item).await?,
    };
    image_of(redirects, item, payload, request, slot).await
}

/// A code with a style is read back, which takes milliseconds. It waits for other drawings without the place of the request.
async fn image_of(
    redirects: &Redirects,
    item: &Redirection,
    payload: String,
    request: &QrRequest,
    slot: &Slot,
) -> Result<Response, ApiError> {
    let (request, short_id) = (*request, item.redirect.short_id.clone());
    let logo = if request.wants_logo() { logo(redirects, item).await? } else { None };
    let draw = move || qr::render_with(&payload, short_id.as_str(), &request, logo.as_deref());
    let drawn = if request.is_styled() {
        let failed = |error: String| ServiceError::Internal(format!("a code was not drawn: {error}"));
        slot.give_back();
        let permit = redirects.drawings.clone().acquire_owned().await;
        let permit = permit.map_err(|error| failed(error.to_string()))?;
        let done = tokio::task::spawn_blocking(move || {
            // It goes with the work: a caller that hangs up does not free its place.
            let _permit = permit;
            draw()
        });
        done.await.map_err(|error| failed(error.to_string()))?
    } else {
        draw()
    };
    let image = drawn.map_err(RedirectsError::CannotRender)?;
    let mut headers = HeaderMap::new();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(image.content_type));
    headers.insert("x-qr-version", HeaderValue::from(u16::from(image.version)));
    headers.insert("x-qr-modules", HeaderValue::from(image.modules));
    headers.insert("x-qr-ecl", HeaderValue::from_static(image.ecl.as_str()));
    if let Some(value) = image.x_dimension().and_then(|mm| HeaderValue::try_from(mm).ok()) {
        headers.insert("x-qr-x-dimension-mm", value);
    }
    headers.insert(header::VARY, HeaderValue::from_static("Accept"));
    if item.domain.is_development() {
        headers.insert(DEVELOPMENT, HeaderValue::from_static("true"));
    }
    Ok((headers, image.bytes).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn postscript_is_given_to_who_asks_for_nothing_else() {
        for (accept, expected) in [
            ("application/postscript", true),
            (" Application/PostScript; q=0.5", true),
            ("image/png, application/postscript", false),
            ("*/*", false),
        ] {
            assert_eq!(is_postscript(accept), expected, "{accept}");
        }
    }
}
