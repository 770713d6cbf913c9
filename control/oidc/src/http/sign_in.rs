//! HTTP: sign-in by the provider.

use axum::{
    Extension,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use kernel::error::ServiceError;
use shared::{contact::Contact, id::AccountId, problem::Code};
use signin::http::{extract::Visitor, gate::OtherCookies};
use web::{api_error::Refusal, extract::Query, request_info::RequestInfo};

use super::page;
use crate::{
    cookie::PendingCookies,
    error::SignInError,
    pending::Answer,
    return_path::ReturnPath,
    service::{
        OidcState,
        sign_in::{self, Begun, Ended, Failed},
    },
};

/// Where the browser goes when nobody says.
const HOME: &str = "/console/";

/// From which sites a sign-in is begun; `none` is an address that was typed. Another site begins none.
pub(super) const BEGIN_FROM: &[&str] = &["none", "same-origin", "same-site"];

/// From which sites it is ended: the provider sends the browser back from wherever it is, and a cookie and a secret in the
/// URL prove that this browser began.
pub(super) const FINISH_FROM: &[&str] = &["none", "same-origin", "same-site", "cross-site"];

/// Begins a sign-in by the provider of identities: sends the browser there. Opened as a page, also by a link of this site.
#[utoipa::path(get, path = "/console/api/oidc/begin", tag = "Console", operation_id = "beginProviderSignIn",
    security(()),
    params(("account" = Option<String>, Query, description = "Id of the account; needed only by who is an operator of \
            several", example = "UKXAGyEf8SQ5eTDmVgGpHqAa"),
        ("returnTo" = Option<String>, Query, description = "Path of this server that is opened after the sign-in; \
            `/console/` if there is none", example = "/console/")),
    responses((status = 303, description = "To the provider; `Set-Cookie` binds the sign-in to this browser, for 10 minutes"),
        (status = 404, description = "This server has no provider of identities"),
        (status = 503, description = "The provider does not answer, or too many wait for it")))]
pub(super) async fn begin(
    State(state): State<OidcState>,
    info: RequestInfo,
    headers: HeaderMap,
    query: Query,
) -> Response {
    let begun = async {
        let (account, return_path) = parse_begin(&query)?;
        sign_in::begin(&state, (&info.base, info.limited_as), return_path, account).await.map_err(refusal)
    };
    match begun.await {
        Ok(Begun { url, cookie }) => {
            let to = [(header::LOCATION, url.to_string()), (header::CACHE_CONTROL, "no-store".to_owned())];
            (StatusCode::SEE_OTHER, to, [(header::SET_COOKIE, cookie)]).into_response()
        }
        Err(refusal) => answer(&state, refusal, &headers),
    }
}

/// Ends a sign-in by the provider of identities, which sends the browser here: the answer sets the cookie of a session, and
/// leads on to the path that was named at the beginning. A second factor is not asked for: that is up to the provider.
#[utoipa::path(get, path = "/console/api/oidc/callback", tag = "Console", operation_id = "finishProviderSignIn",
    security(()),
    params(("state" = Option<String>, Query, description = "The state of the sign-in"),
        ("code" = Option<String>, Query, description = "The code of the provider"),
        ("iss" = Option<String>, Query, description = "The issuer that answers (RFC 9207)"),
        ("error" = Option<String>, Query, description = "Why there is no code"),
        ("error_description" = Option<String>, Query, description = "Not used"),
        ("session_state" = Option<String>, Query, description = "Not used")),
    responses((status = 200, description = "A page that leads on; `Set-Cookie` has the session",
            body = String, content_type = "text/html"),
        (status = 403, description = "The answer is not of a sign-in of this browser, was used, or cannot be trusted; no \
            operator has this identity, several have it and none is named, or the account lets nobody in so"),
        (status = 503, description = "The provider does not answer, or too many wait for it: load the page again")))]
pub(super) async fn finish(
    State(state): State<OidcState>,
    Visitor(client): Visitor,
    Extension(OtherCookies(cookies)): Extension<OtherCookies>,
    headers: HeaderMap,
    query: Query,
) -> Response {
    let cookies = cookies.iter().map(String::as_str);
    let ended = async {
        let pending = state.cookies.find(cookies).map_err(|error| refusal(error.into()))?;
        let answer = Answer {
            state: query.find("state"),
            code: query.find("code"),
            iss: query.find("iss"),
            error: query.find("error"),
        };
        sign_in::finish(&state, pending, answer, &client).await.map_err(refusal)
    };
    match ended.await {
        Ok(Ended { signed_in, return_path }) => {
            let mut response = page::leads_to(&return_path, contact(&state));
            set_cookie(&mut response, &signed_in.token.set_cookie());
            set_cookie(&mut response, &PendingCookies::clear());
            response
        }
        Err(refusal) => answer(&state, refusal, &headers),
    }
}

/// What begins a sign-in; every fault at once.
fn parse_begin(query: &Query) -> Result<(Option<AccountId>, ReturnPath), Refusal> {
    let account = query.find("account").map(str::parse::<AccountId>).transpose();
    let path = ReturnPath::parse(query.find("returnTo").unwrap_or(HOME));
    match (account, path) {
        (Ok(account), Ok(path)) => Ok((account, path)),
        (account, path) => {
            let account = account.err().map(|_| "account must be an id.".to_owned());
            let path = path.err().map(|fault| format!("returnTo {fault}."));
            let errors = account.into_iter().chain(path).collect();
            Err(Refusal { code: Code::InvalidParameter, errors, detail: None })
        }
    }
}

fn refusal(failed: Failed) -> Refusal {
    match failed {
        Failed::Service(error) => error.into(),
        Failed::SignIn(SignInError::Internal(text)) => ServiceError::Internal(text).into(),
        Failed::SignIn(error) => ServiceError::from(error).into(),
    }
}

fn answer(state: &OidcState, refusal: Refusal, headers: &HeaderMap) -> Response {
    if page::wants_page(headers) { page::refused(refusal, contact(state)) } else { refusal.into_response() }
}

fn contact(state: &OidcState) -> Option<&Contact> {
    state.core.key_lookups.contact.as_deref()
}

fn set_cookie(response: &mut Response, cookie: &str) {
    if let Ok(value) = HeaderValue::from_str(cookie) {
        response.headers_mut().append(header::SET_COOKIE, value);
    }
}
