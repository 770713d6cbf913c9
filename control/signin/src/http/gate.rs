//! The gate before everything below `/console/api/`: what may pass, and with which session.
//!
//! The cookie counts here and nowhere else, so a page of another origin must not get through: browsers say in
//! `Sec-Fetch-Site` where a request comes from, and pages cannot change that. Requests for the public API pass on without
//! the prefix and with the key of the session.

use std::net::IpAddr;

use axum::{
    extract::Request,
    http::{HeaderMap, HeaderName, HeaderValue, header},
};
use shared::problem::Code;
use url::Url;
use web::{access::has_key, api_error::Refusal};

use crate::{
    domain::token::Token,
    service::{SignInState, gate},
};

/// Where the cookie counts.
pub const PREFIX: &str = "/console/api/";

/// Paths below [`PREFIX`] that have operations of their own; and all that lies below them.
const OWN: [&str; 5] = ["session", "sessions", "passwordReset", "totp", "recoveryCodes"];

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// On which side of the gate the path of a request lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side<'a> {
    /// Outside: the cookie is ignored.
    Outside,
    /// An operation for the console.
    Console,
    /// An operation of the public API, by its path there.
    Api(&'a str),
}

/// The side of a path, without the version prefix and not decoded.
#[must_use]
pub fn side(path: &str) -> Side<'_> {
    let Some(rest) = path.strip_prefix(PREFIX) else { return Side::Outside };
    let first = rest.split('/').next().unwrap_or_default();
    if OWN.contains(&first) { Side::Console } else { Side::Api(&path[PREFIX.len() - 1..]) }
}

/// A request that passed the gate, with the token that it came with.
#[derive(Debug, Clone)]
pub struct Passed(pub Option<Token>);

/// The refusal of a request that does not come from a page of ours, or has a key. `base` is scheme and host by which the
/// client reached us.
#[must_use]
pub fn check(headers: &HeaderMap, query: Option<&str>, base: &str) -> Option<Refusal> {
    let fault = if !is_of_same_origin(headers, base) {
        "Requests below /console/api/ must come from a page of the same origin (Sec-Fetch-Site or Origin)."
    } else if has_key(headers, query) {
        "Below /console/api/ the session counts: send no API key."
    } else {
        return None;
    };
    Some(Refusal { code: Code::Forbidden, errors: vec![fault.to_owned()], detail: None })
}

fn is_of_same_origin(headers: &HeaderMap, base: &str) -> bool {
    let mut sites = headers.get_all(FETCH_SITE).iter();
    match (sites.next(), sites.next()) {
        (Some(site), None) => return site == "same-origin",
        (Some(_), Some(_)) => return false,
        (None, _) => {}
    }
    // A browser from before that header.
    let mut origins = headers.get_all(header::ORIGIN).iter().map(|value| value.to_str().ok());
    let (Some(Some(origin)), None) = (origins.next(), origins.next()) else { return false };
    let own = base.parse::<Url>().ok().map(|url| url.origin()).filter(url::Origin::is_tuple);
    own.is_some_and(|own| own.ascii_serialization() == origin)
}

/// Lets a request pass that [`check`] does not refuse: its session is opened, and the key behind it stands for it.
///
/// # Errors
/// The system's own fault.
pub async fn pass(state: &SignInState, request: &mut Request, client: Option<IpAddr>) -> Result<(), Refusal> {
    let cookies = request.headers().get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let token = Token::find(cookies);
    request.headers_mut().remove(header::COOKIE);
    if let Some(token) = &token {
        let key = gate::open(state, token, client).await.map_err(Refusal::from)?;
        if let Ok(mut value) = HeaderValue::try_from(key) {
            value.set_sensitive(true);
            request.headers_mut().insert(header::AUTHORIZATION, value);
        }
    }
    request.extensions_mut().insert(Passed(token));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lie_on_one_side() {
        for (path, expected) in [
            ("/thngs", Side::Outside),
            ("/console/api", Side::Outside),
            ("/console/apix/session", Side::Outside),
            ("/console/%61pi/session", Side::Outside),
            ("/console/api/", Side::Api("/")),
            ("/console/api/thngs", Side::Api("/thngs")),
            ("/console/api/thngs/gs1%3A21%3AX", Side::Api("/thngs/gs1%3A21%3AX")),
            ("/console/api/sessionx", Side::Api("/sessionx")),
            ("/console/api/session", Side::Console),
            ("/console/api/sessions/A", Side::Console),
            ("/console/api/totp/disable", Side::Console),
        ] {
            assert_eq!(side(path), expected, "{path}");
        }
    }

    #[test]
    fn only_pages_of_the_same_origin_pass() {
        const BASE: &str = "https://waymark.example";
        for (site, origin, expected) in [
            (Some("same-origin"), None, true),
            (Some("same-origin"), Some("https://evil.example"), true),
            (Some("same-site"), Some(BASE), false),
            (Some("cross-site"), Some(BASE), false),
            (Some("none"), None, false),
            (Some(""), Some(BASE), false),
            (None, Some(BASE), true),
            (None, Some("https://waymark.example:8443"), false),
            (None, Some("http://waymark.example"), false),
            (None, Some("https://waymark.example.evil.example"), false),
            (None, Some("null"), false),
            (None, None, false),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in [(FETCH_SITE, site), (header::ORIGIN, origin)] {
                if let Some(value) = value {
                    headers.insert(name, HeaderValue::from_static(value));
                }
            }
            let is_passed = check(&headers, None, BASE).is_none();
            assert_eq!(is_passed, expected, "{site:?} {origin:?}");
        }
        let mut headers = HeaderMap::new();
        headers.insert(FETCH_SITE, HeaderValue::from_static("same-origin"));
        assert!(check(&headers, Some("access_token=K"), BASE).is_some(), "a key in the query");
        headers.insert(header::AUTHORIZATION, HeaderValue::from_static("K"));
        assert!(check(&headers, None, BASE).is_some(), "a key in the header");
        headers.remove(header::AUTHORIZATION);
        headers.append(FETCH_SITE, HeaderValue::from_static("cross-site"));
        assert!(check(&headers, None, BASE).is_some(), "said twice");
    }
}
