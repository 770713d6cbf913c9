//! Routing: what a request asks for, decided from its request line and two headers alone (README, "Routing").

use std::{borrow::Cow, sync::Arc};

use digital_link::{DigitalLink, Qualifier};
use http::Method;
use shared::{
    access_token::has_access_token,
    domain_files::{JsonFile, Robots},
    negotiate::Representation,
    short_id,
    short_url::ShortDomain,
};

use crate::{
    cache::KeyRef,
    domains::{self, Table},
};

/// Where a certificate authority asks (RFC 8555, 8.3), without the first slash; a token follows.
pub(crate) const CHALLENGES: &str = ".well-known/acme-challenge/";

/// The parts of a request that its route depends on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ask<'a> {
    /// The method.
    pub(crate) method: &'a Method,
    /// Host with port as the client named it; empty when it named none.
    pub(crate) host: &'a str,
    /// The path as sent.
    pub(crate) path: &'a str,
    /// The query as sent.
    pub(crate) query: Option<&'a str>,
    /// `Accept`, if it was sent.
    pub(crate) accept: Option<&'a [u8]>,
    /// Whether `Authorization` was sent.
    pub(crate) has_authorization: bool,
}

/// A short URL as asked for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Link<'a> {
    /// The domain.
    pub(crate) domain: &'a Arc<ShortDomain>,
    /// The short id, folded according to the domain.
    pub(crate) folded: Cow<'a, str>,
    /// What to answer with.
    pub(crate) representation: Representation,
}

impl Link<'_> {
    /// The key to look up.
    pub(crate) fn key(&self) -> KeyRef<'_> {
        KeyRef { domain: self.domain.host.as_str(), folded: &self.folded }
    }
}

/// The result of routing.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Route<'a> {
    /// A redirect, a record or an image; GET and HEAD.
    Link(Link<'a>),
    /// The path of a GS1 Digital Link, or none that this domain knows; GET, HEAD and OPTIONS.
    DigitalLink(&'a Arc<ShortDomain>),
    /// `/.well-known/gs1resolver`; GET, HEAD and OPTIONS.
    Resolver(&'a Arc<ShortDomain>),
    /// A management path, passed on unchanged.
    Proxy,
    /// A record with a key: control's `GET /redirections/:shortId`.
    ProxyRecord(&'a str),
    /// A report about the item of a short id, if pages of the domain take some.
    Report(&'a Arc<ShortDomain>, Cow<'a, str>),
    /// `/robots.txt`.
    Robots(Robots),
    /// A file for apps that the domain has.
    File(&'a JsonFile),
    /// `/favicon.ico`.
    Favicon,
    /// `/.well-known/security.txt`.
    Security,
    /// `/`.
    Root,
    /// A path that no short id can have.
    NoSuchPath,
    /// Something that only GET and HEAD may ask for.
    MethodNotAllowed,
    /// The host is none of the short domains.
    Misdirected,
}

/// Routes a request.
pub(crate) fn route<'a>(table: &'a Table, ask: &Ask<'a>) -> Route<'a> {
    let Some(domain) = domains::find(table, ask.host) else { return Route::Misdirected };
    let Some(path) = ask.path.strip_prefix('/') else { return Route::NoSuchPath };
    if is_management(path) {
        return Route::Proxy;
    }
    let takes_reports = || domain.pages.as_ref().is_some_and(|pages| pages.reports);
    if *ask.method == Method::POST
        && takes_reports()
        && let Some(short_id) = reported(domain, ask.path, path)
    {
        return Route::Report(domain, short_id);
    }
    if *ask.method != Method::GET && *ask.method != Method::HEAD {
        let found = if *ask.method == Method::OPTIONS { of_resolver(domain, path) } else { None };
        return found.unwrap_or(Route::MethodNotAllowed);
    }
    match path {
        "" => return Route::Root,
        "robots.txt" => {
            return Route::Robots(domain.files.as_ref().map(|files| files.robots).unwrap_or_default());
        }
        "favicon.ico" => return Route::Favicon,
        ".well-known/security.txt" => return Route::Security,
        ".well-known/assetlinks.json" | ".well-known/apple-app-site-association" => {
            return app_file(domain, path).map_or(Route::NoSuchPath, Route::File);
        }
        _ => {}
    }
    // Before short ids of several segments: none of them means what a Digital Link does. A lot may end in `.png`, too.
    if domain.digital_links
        && path.contains('/')
        && short_id::reads_as_digital_link(path)
        && let Some(route) = of_resolver(domain, path)
    {
        return route;
    }
    let (rest, suffix) = Representation::split_suffix(path);
    let Some(short_id) = short_id_of(domain, rest) else {
        return of_resolver(domain, path).unwrap_or(Route::NoSuchPath);
    };
    let representation = suffix.unwrap_or_else(|| negotiate(ask.accept));
    if representation == Representation::Json
        && (ask.has_authorization || ask.query.is_some_and(has_access_token))
    {
        return Route::ProxyRecord(short_id);
    }
    let folded = if !domain.case_sensitive && short_id.bytes().any(|b| b.is_ascii_lowercase()) {
        Cow::Owned(short_id.to_ascii_uppercase())
    } else {
        Cow::Borrowed(short_id)
    };
    Route::Link(Link { domain, folded, representation })
}

/// The short id about which a path takes reports. That of its item, where it is a Digital Link with a serial.
fn reported<'a>(domain: &ShortDomain, whole: &'a str, path: &'a str) -> Option<Cow<'a, str>> {
    if !domain.digital_links || !short_id::reads_as_digital_link(path) {
        return short_id_of(domain, path).map(Cow::Borrowed);
    }
    let link = DigitalLink::parse(whole, None).ok()?;
    link.get(Qualifier::Serial)?;
    Some(Cow::Owned(link.level(&[Qualifier::Serial])))
}

/// The short id of a path without its first slash and without a suffix. Only what is no plain short id asks the domain.
fn short_id_of<'a>(domain: &ShortDomain, path: &'a str) -> Option<&'a str> {
    if is_short_id(path) { Some(path) } else { domain.paths.short_id_in(path, domain.case_sensitive) }
}

fn is_short_id(text: &str) -> bool {
    (1..=short_id::MAX_LEN).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

/// What a domain has beside short ids if Digital Links are resolved on it: paths of two segments and more, but those on which
/// the handler looks for a challenge.
fn of_resolver<'a>(domain: &'a Arc<ShortDomain>, path: &str) -> Option<Route<'a>> {
    if !domain.digital_links || !path.contains('/') || path.starts_with(CHALLENGES) {
        return None;
    }
    let is_description = path == ".well-known/gs1resolver";
    Some(if is_description { Route::Resolver(domain) } else { Route::DigitalLink(domain) })
}

fn app_file<'a>(domain: &'a ShortDomain, path: &str) -> Option<&'a JsonFile> {
    let files = domain.files.as_ref()?;
    let is_android = path == ".well-known/assetlinks.json";
    if is_android { files.asset_links.as_ref() } else { files.apple_app_site_association.as_ref() }
}

/// Chooses by the bytes of an `Accept`, which count as none where they are no text.
pub(crate) fn negotiate(accept: Option<&[u8]>) -> Representation {
    match accept {
        // Fast path for nearly every scan; the general rule returns the same result.
        None | Some(b"*/*") => Representation::Redirect,
        Some(accept) if accept.starts_with(b"text/html,") => Representation::Redirect,
        Some(accept) => {
            Representation::negotiate(str::from_utf8(accept).ok().filter(|accept| accept.is_ascii()))
        }
    }
}

/// Whether control serves a path under the short domain: `/redirections…`, and `…/redirector` of a resource.
///
/// The path comes without its first slash. These are the rows that control's route table gives to edges.
#[must_use]
pub fn is_management(path: &str) -> bool {
    // Most short ids differ from these paths in their first character.
    if !matches!(path.as_bytes().first(), Some(b'v' | b'r' | b't' | b'p')) {
        return false;
    }
    let path = path.strip_prefix("v2/").unwrap_or(path);
    let mut segments = path.split('/');
    match segments.next() {
        Some("redirections") => true,
        Some("thngs" | "products") => segments.nth(1) == Some("redirector"),
        Some(_) | None => false,
    }
}

#[cfg(test)]
mod tests {
    use shared::{
        access_token::url_without_access_token, domain_files::DomainFiles, pages::Pages, short_url::Scheme,
    };

    use super::*;
    use crate::domains::Domains;

    fn check(method: &str, host: &str, target: &str, accept: &str, authorization: bool) -> String {
        let domains = Domains::default();
        let files = DomainFiles {
            robots: Robots::All,
            asset_links: Some(JsonFile::new(&serde_json::json!([]))),
            ..DomainFiles::default()
        };
        let exact = ShortDomain {
            case_sensitive: true,
            digital_links: true,
            files: Some(files.into()),
            pages: Some(Pages { reports: true, ..Pages::default() }.into()),
            ..ShortDomain::new(Scheme::Https, "exact.gg").unwrap()
        };
        let mut below = ShortDomain::new(Scheme::Https, "below.gg").unwrap();
        (below.paths.path_prefix, below.paths.multi_segment) = ("shop/go".parse().ok(), true);
        below.pages.clone_from(&exact.pages);
        let gs1 = "gs1.gg".parse().unwrap();
        let mut both = ShortDomain { host: gs1, digital_links: true, ..below.clone() };
        both.paths.path_prefix = "shop/01".parse().ok();
        domains.replace(0, &[ShortDomain::new(Scheme::Https, "tn.gg").unwrap(), exact, below, both], None);
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        let ask = Ask {
            method: &method.parse().unwrap(),
            host,
            path,
            query,
            accept: Some(accept.as_bytes()).filter(|accept| !accept.is_empty()),
            has_authorization: authorization,
        };
        match route(&domains.load(), &ask) {
            Route::Link(link) => format!("{:?} {}/{}", link.representation, link.key().domain, link.folded),
            Route::Report(domain, short_id) => format!("Report {}/{short_id}", domain.host),
            Route::DigitalLink(domain) => format!("DigitalLink {}", domain.host),
            Route::Resolver(domain) => format!("Resolver {}", domain.host),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn requests_find_their_route() {
        let (json, html) = ("application/json", "text/html,*/*;q=0.8");
        for (method, host, target, accept, key, expected) in [
            ("GET", "tn.gg", "/K7Q2M4XA9R", "", false, "Redirect tn.gg/K7Q2M4XA9R"),
            ("HEAD", "tn.gg", "/K7Q2M4XA9R", "", false, "Redirect tn.gg/K7Q2M4XA9R"),
            ("GET", "TN.GG:443", "/k7q2m4xa9r", html, false, "Redirect tn.gg/K7Q2M4XA9R"),
            ("GET", "exact.gg", "/aBc", "", false, "Redirect exact.gg/aBc"),
            ("GET", "tn.gg", "/ABC?access_token=x", "", false, "Redirect tn.gg/ABC"),
            ("GET", "tn.gg", "/ABC", "", true, "Redirect tn.gg/ABC"),
            ("GET", "tn.gg", "/ABC", json, false, "Json tn.gg/ABC"),
            ("GET", "tn.gg", "/abc", json, true, "ProxyRecord(\"abc\")"),
            ("GET", "tn.gg", "/ABC?access%5Ftoken=x", json, false, "ProxyRecord(\"ABC\")"),
            ("GET", "tn.gg", "/ABC", "image/png", true, "Png tn.gg/ABC"),
            ("GET", "tn.gg", "/ABC.png", html, false, "Png tn.gg/ABC"),
            ("GET", "tn.gg", "/abc.SVG", json, true, "Svg tn.gg/ABC"),
            ("GET", "tn.gg", "/ABC.pdf?w=100", "", false, "Pdf tn.gg/ABC"),
            ("GET", "tn.gg", "/ABC.gif", "", false, "NoSuchPath"),
            ("GET", "tn.gg", "/.png", "", false, "NoSuchPath"),
            ("GET", "tn.gg", "/a/b", "", false, "NoSuchPath"),
            ("GET", "tn.gg", "/ABC/", "", false, "NoSuchPath"),
            ("GET", "tn.gg", "/%00", "", false, "NoSuchPath"),
            ("GET", "tn.gg", "/.well-known/x", "", false, "NoSuchPath"),
            // Where the handler looks for a challenge, on every domain.
            ("GET", "exact.gg", "/.well-known/acme-challenge/ABC", "", true, "NoSuchPath"),
            ("GET", "tn.gg", "*", "", false, "NoSuchPath"),
            ("GET", "tn.gg", "/", "", false, "Root"),
            ("GET", "tn.gg", "/robots.txt", "", false, "Robots(None)"),
            ("HEAD", "exact.gg", "/robots.txt", "", false, "Robots(All)"),
            ("GET", "exact.gg", "/.well-known/assetlinks.json", "", false, "File(JsonFile(2 bytes))"),
            ("POST", "exact.gg", "/.well-known/assetlinks.json", "", false, "MethodNotAllowed"),
            ("GET", "exact.gg", "/.well-known/apple-app-site-association", "", false, "NoSuchPath"),
            ("GET", "tn.gg", "/.well-known/assetlinks.json", "", false, "NoSuchPath"),
            ("GET", "exact.gg", "/01/09528765123457", json, true, "DigitalLink exact.gg"),
            ("HEAD", "exact.gg", "/a/b", "", false, "DigitalLink exact.gg"),
            ("OPTIONS", "exact.gg", "/01/09528765123457/21/%2F", "", false, "DigitalLink exact.gg"),
            ("POST", "exact.gg", "/01/09528765123457", "", false, "MethodNotAllowed"),
            ("GET", "exact.gg", "/.well-known/gs1resolver", "", false, "Resolver exact.gg"),
            ("OPTIONS", "exact.gg", "/.well-known/gs1resolver", "", false, "Resolver exact.gg"),
            ("OPTIONS", "exact.gg", "/abc", "", false, "MethodNotAllowed"),
            ("GET", "tn.gg", "/01/09528765123457", "", false, "NoSuchPath"),
            ("GET", "tn.gg", "/.well-known/gs1resolver", "", false, "NoSuchPath"),
            ("GET", "tn.gg", "/favicon.ico", "", false, "Favicon"),
            ("POST", "tn.gg", "/ABC", "", false, "MethodNotAllowed"),
            ("POST", "exact.gg", "/aBc?x=1", html, false, "Report exact.gg/aBc"),
            ("POST", "exact.gg", "/aBc.png", html, false, "MethodNotAllowed"),
            ("PUT", "exact.gg", "/aBc", html, false, "MethodNotAllowed"),
            ("POST", "exact.gg", "/redirections", json, false, "Proxy"),
            ("DELETE", "tn.gg", "/ABC", "", true, "MethodNotAllowed"),
            ("OPTIONS", "tn.gg", "/ABC", "", false, "MethodNotAllowed"),
            ("POST", "tn.gg", "/redirections", json, true, "Proxy"),
            ("PUT", "tn.gg", "/v2/redirections?ids=A,B", json, true, "Proxy"),
            ("GET", "tn.gg", "/redirections/ABC.qr", "", false, "Proxy"),
            ("POST", "tn.gg", "/thngs/U1/redirector", "", true, "Proxy"),
            ("GET", "tn.gg", "/v2/products/U1/redirector/qr", "", true, "Proxy"),
            ("GET", "tn.gg", "/thngs/U1", "", true, "NoSuchPath"),
            ("GET", "tn.gg", "/redirectionsX", "", false, "Redirect tn.gg/REDIRECTIONSX"),
            ("GET", "below.gg", "/abc", "", false, "Redirect below.gg/ABC"),
            ("GET", "below.gg", "/Shop/go/abc", "", false, "Redirect below.gg/ABC"),
            ("GET", "below.gg", "/shop/go/abc.png", "", false, "Png below.gg/ABC"),
            ("GET", "below.gg", "/sale/2026/shoes", "", false, "Redirect below.gg/SALE/2026/SHOES"),
            ("GET", "below.gg", "/sale/2026", json, true, "ProxyRecord(\"sale/2026\")"),
            ("POST", "below.gg", "/shop/go/abc", "", true, "Report below.gg/abc"),
            ("POST", "below.gg", "/sale/2026", "", false, "Report below.gg/sale/2026"),
            ("POST", "below.gg", "/shop/go/", "", true, "MethodNotAllowed"),
            ("PUT", "below.gg", "/shop/go/abc", "", true, "MethodNotAllowed"),
            ("GET", "below.gg", "/redirections/a/b", "", true, "Proxy"),
            ("GET", "below.gg", "/shop/go/redirections", "", true, "Redirect below.gg/REDIRECTIONS"),
            ("GET", "below.gg", "/.well-known/assetlinks.json", "", false, "NoSuchPath"),
            ("GET", "below.gg", "/robots.txt", "", false, "Robots(None)"),
            ("GET", "below.gg", "/shop/go/", "", false, "NoSuchPath"),
            ("GET", "below.gg", "/a/b/c/d/e", "", false, "NoSuchPath"),
            ("GET", "gs1.gg", "/01/09528765123457/10/a.png", json, true, "DigitalLink gs1.gg"),
            ("GET", "gs1.gg", "/some/01/09528765123457", "", false, "DigitalLink gs1.gg"),
            ("GET", "gs1.gg", "/shop/01/09528765123457", "", false, "DigitalLink gs1.gg"),
            ("GET", "gs1.gg", "/shop/01/abc", "", false, "Redirect gs1.gg/ABC"),
            ("GET", "gs1.gg", "/sale/2026/shoes.svg", "", false, "Svg gs1.gg/SALE/2026/SHOES"),
            ("GET", "gs1.gg", "/sale/2026/a%20b", "", false, "DigitalLink gs1.gg"),
            ("GET", "gs1.gg", "/.well-known/acme-challenge/01/0952", "", false, "NoSuchPath"),
            ("POST", "gs1.gg", "/shop/01/abc", html, false, "Report gs1.gg/abc"),
            (
                "POST",
                "gs1.gg",
                "/01/09528765123457/10/L/21/a%2Fb",
                html,
                false,
                "Report gs1.gg/01/09528765123457/21/a%2Fb",
            ),
            ("POST", "gs1.gg", "/01/09528765123457/10/L", html, false, "MethodNotAllowed"),
            ("GET", "other.gg", "/ABC", "", false, "Misdirected"),
            ("GET", "tn.gg:8080", "/ABC", "", false, "Misdirected"),
            ("GET", "", "/ABC", "", false, "Misdirected"),
            ("POST", "other.gg", "/redirections", "", true, "Misdirected"),
        ] {
            let found = check(method, host, target, accept, key);
            assert_eq!(found, expected, "{method} {host} {target} {accept} key={key}");
        }
        let long = format!("/{}", "A".repeat(65));
        assert_eq!(check("GET", "tn.gg", &long, "", false), "NoSuchPath");
        assert_eq!(check("GET", "tn.gg", &long[..65], "", false), format!("Redirect tn.gg/{}", &long[1..65]));
    }

    #[test]
    fn bytes_of_accept_are_read_as_text() {
        for accept in ["*/*", "text/html,x", "text/html;q=0.2,image/png", "image/png", "application/json", ""]
        {
            let expected = Representation::negotiate(Some(accept));
            assert_eq!(negotiate(Some(accept.as_bytes())), expected, "{accept}");
        }
        assert_eq!(negotiate(Some(b"image/png,\xff")), Representation::Redirect, "no text");
        assert_eq!(negotiate(None), Representation::Redirect);
    }

    #[test]
    fn urls_lose_the_key_and_nothing_else() {
        for (url, expected) in [
            ("https://a.example/?access_token=k", "https://a.example/"),
            ("https://a.example/?a=1&access_token=k", "https://a.example/?a=1"),
            ("https://a.example/?a=1", "https://a.example/?a=1"),
            ("https://a.example/", "https://a.example/"),
            ("", ""),
        ] {
            assert_eq!(url_without_access_token(url), expected);
        }
    }
}
