//! The gate before everything below `/console/api/`: what may pass, and with which session.
//!
//! The cookie counts here and nowhere else, so a page of another origin must not get through: browsers say in
//! `Sec-Fetch-Site` where a request comes from, and pages cannot change that. Requests for the public API pass on without
//! the prefix and with the key of the session.

use std::{borrow::Cow, collections::BTreeSet, net::IpAddr};

use axum::{
    extract::Request,
    http::{HeaderMap, HeaderName, HeaderValue, Method, header},
};
use shared::problem::Code;
use url::Url;
use web::{
    access::{OfSession, has_key},
    api_error::Refusal,
};

use crate::{
    domain::token::{COOKIE_START, Token},
    service::{SignInState, gate},
};

/// Where the cookie counts.
pub const PREFIX: &str = "/console/api/";

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

/// What lies below [`PREFIX`] that is not of the public API: the first segments of the console's own operations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnSegments(BTreeSet<String>);

impl OwnSegments {
    /// Those of the operations with these paths; such as are not below the prefix do not count.
    pub fn of<'a>(paths: impl Iterator<Item = &'a str>) -> Self {
        Self(
            paths
                .filter_map(|path| path.strip_prefix(PREFIX))
                .map(|rest| first_of(rest).to_owned())
                .collect(),
        )
    }

    /// The side of a path, without the version prefix and not decoded.
    #[must_use]
    pub fn side<'a>(&self, path: &'a str) -> Side<'a> {
        let Some(rest) = path.strip_prefix(PREFIX) else { return Side::Outside };
        if self.0.contains(first_of(rest)) { Side::Console } else { Side::Api(&path[PREFIX.len() - 1..]) }
    }
}

fn first_of(rest: &str) -> &str {
    rest.split('/').next().unwrap_or_default()
}

/// A request that passed the gate, with the token that it came with.
#[derive(Debug, Clone)]
pub struct Passed(pub Option<Token>);

/// The cookies of a request that passed the gate, but for that of the session.
#[derive(Debug, Clone)]
pub struct OtherCookies(pub Vec<String>);

/// The refusal of a request that does not come from a page of ours, or has a key. `page_from` are the sites from which the
/// operation may be opened as a page, if it may; `base` is scheme and host by which the client reached us.
#[must_use]
pub fn check(
    method: &Method,
    page_from: &[&str],
    headers: &HeaderMap,
    query: Option<&str>,
    base: &str,
) -> Option<Refusal> {
    let is_page = *method == Method::GET && !page_from.is_empty();
    let is_welcome = if is_page { comes_from(headers, page_from) } else { is_of_same_origin(headers, base) };
    let fault = if !is_welcome && is_page {
        "This page is opened from this site (Sec-Fetch-Site)."
    } else if !is_welcome {
        "Requests below /console/api/ must come from a page of the same origin (Sec-Fetch-Site or Origin)."
    } else if has_key(headers, query) {
        "Below /console/api/ the session counts: send no API key."
    } else {
        return None;
    };
    Some(Refusal { code: Code::Forbidden, errors: vec![fault.to_owned()], detail: None })
}

/// Whether a page is opened from one of these sites. A browser from before the header opens it from any.
fn comes_from(headers: &HeaderMap, sites: &[&str]) -> bool {
    let mut said = headers.get_all(FETCH_SITE).iter();
    match (said.next(), said.next()) {
        (None, _) => true,
        (Some(site), None) => sites.iter().any(|allowed| site == allowed),
        (Some(_), Some(_)) => false,
    }
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

/// Lets a request pass that [`check`] does not refuse: its session is opened, and the key behind it stands for it. `enrols`:
/// the operation is reached by a session whose operator must turn a second factor on before anything else.
///
/// # Errors
/// The operator must turn a second factor on first; or the system's own fault.
pub async fn pass(
    state: &SignInState,
    request: &mut Request,
    enrols: bool,
    client: Option<IpAddr>,
) -> Result<(), Refusal> {
    // One of another application may hold any bytes, and browsers send all of them in one line.
    let cookies = request.headers().get_all(header::COOKIE).iter();
    let cookies: Vec<Cow<'_, str>> = cookies.map(|value| String::from_utf8_lossy(value.as_bytes())).collect();
    let token = Token::find(cookies.iter().map(|header| &**header));
    let pairs = cookies.iter().flat_map(|header| header.split(';')).map(str::trim);
    let others = pairs.filter(|pair| !pair.starts_with(COOKIE_START)).map(str::to_owned).collect();
    request.headers_mut().remove(header::COOKIE);
    request.extensions_mut().insert(OtherCookies(others));
    if let Some(token) = &token {
        let key = gate::open(state, token, client, enrols).await.map_err(Refusal::from)?;
        if let Ok(mut value) = HeaderValue::try_from(key) {
            value.set_sensitive(true);
            request.headers_mut().insert(header::AUTHORIZATION, value);
            request.extensions_mut().insert(OfSession);
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
        let rows =
            ["/thngs", "/console/api/session", "/console/api/sessions/{id}", "/console/api/oidc/begin"];
        let own = OwnSegments::of(rows.into_iter());
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
            ("/console/api/session/link", Side::Console),
            ("/console/api/oidc/begin", Side::Console),
            ("/console/api/identities", Side::Api("/identities")),
        ] {
            assert_eq!(own.side(path), expected, "{path}");
        }
    }

    const BASE: &str = "https://waymark.example";

    fn check_of(headers: &HeaderMap, query: Option<&str>) -> Option<Refusal> {
        check(&Method::GET, &[], headers, query, BASE)
    }

    #[test]
    fn a_page_is_opened_from_its_sites() {
        let check = |method: &Method, page_from: &[&str], site: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            if let Some(site) = site {
                headers.insert(FETCH_SITE, HeaderValue::from_static(site));
            }
            check(method, page_from, &headers, None, BASE).is_none()
        };
        let begin: &[&str] = &["none", "same-origin", "same-site"];
        let callback: &[&str] = &["none", "same-origin", "same-site", "cross-site"];
        for (page_from, site, expected) in [
            (begin, None, true),
            (begin, Some("none"), true),
            (begin, Some("same-origin"), true),
            (begin, Some("same-site"), true),
            (begin, Some("cross-site"), false),
            (begin, Some(""), false),
            (callback, None, true),
            (callback, Some("none"), true),
            (callback, Some("cross-site"), true),
            (callback, Some("odd"), false),
            (&[], Some("cross-site"), false),
            (&[], Some("none"), false),
        ] {
            assert_eq!(check(&Method::GET, page_from, site), expected, "{page_from:?} {site:?}");
            let is_own = site == Some("same-origin");
            assert_eq!(check(&Method::POST, page_from, site), is_own, "POST {page_from:?} {site:?}");
        }
    }

    #[test]
    fn only_pages_of_the_same_origin_pass() {
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
            let is_passed = check_of(&headers, None).is_none();
            assert_eq!(is_passed, expected, "{site:?} {origin:?}");
        }
        let mut headers = HeaderMap::new();
        headers.insert(FETCH_SITE, HeaderValue::from_static("same-origin"));
        assert!(check_of(&headers, Some("access_token=K")).is_some(), "a key in the query");
        headers.insert(header::AUTHORIZATION, HeaderValue::from_static("K"));
        assert!(check_of(&headers, None).is_some(), "a key in the header");
        headers.remove(header::AUTHORIZATION);
        headers.append(FETCH_SITE, HeaderValue::from_static("cross-site"));
        assert!(check_of(&headers, None).is_some(), "said twice");
    }
}
