//! The small pages of a sign-in. They need no script, style or other file.

use axum::{
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{Html, IntoResponse, Response},
};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use shared::contact::Contact;
use web::api_error::Refusal;

use crate::return_path::ReturnPath;

/// Whether a client shows pages.
pub(super) fn wants_page(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|one| one.trim().starts_with("text/html"))
}

/// Leads on to a path of this server.
///
/// No redirect: its request would still count as one of another site, without the cookie of the session. What a page of
/// ours opens is a request of the same site.
pub(super) fn leads_to(path: &ReturnPath, contact: Option<&Contact>) -> Response {
    let refresh = format!("0;url={path}");
    let head = html! { meta http-equiv="refresh" content=(refresh); };
    let body = html! { p { "You are signed in. " a href=(path) { "Go on" } } };
    answer(StatusCode::OK, "Signed in", &head, &body, contact)
}

/// Says why nobody is signed in. What failed inside stays an error for the log.
pub(super) fn refused(refusal: Refusal, contact: Option<&Contact>) -> Response {
    if refusal.detail.is_some() {
        return refusal.into_response();
    }
    let status = StatusCode::from_u16(refusal.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let body = html! {
        h1 { "You are not signed in" }
        @for error in &refusal.errors { p { (error) } }
    };
    tracing::info!(error.code = refusal.code as u32, "a sign-in failed");
    let mut response = answer(status, "Not signed in", &html! {}, &body, contact);
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

fn answer(
    status: StatusCode,
    title: &str,
    head: &Markup,
    body: &Markup,
    contact: Option<&Contact>,
) -> Response {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) " - Waymark" }
                (head)
            }
            body {
                (body)
                @if let Some(contact) = contact { (PreEscaped(contact.html())) }
            }
        }
    };
    let headers = [
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (
            header::CONTENT_SECURITY_POLICY,
            HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'; base-uri 'none'"),
        ),
    ];
    (status, headers, Html(page.into_string())).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browsers_get_pages() {
        for (accept, expected) in [
            (Some("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"), true),
            (Some("application/json, text/html;q=0.5"), true),
            (Some("application/json"), false),
            (Some("*/*"), false),
            (None, false),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(accept) = accept {
                headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
            }
            assert_eq!(wants_page(&headers), expected, "{accept:?}");
        }
    }
}
