//! Checks of a request before it is routed: exactly one host, unambiguous framing, a bounded number of headers.

use http::{
    HeaderMap, Request, Version,
    header::{ACCEPT, ACCEPT_LANGUAGE, AUTHORIZATION, HOST, REFERER, TRANSFER_ENCODING, USER_AGENT},
};

use crate::config::Limits;

/// The headers that decide anything, found in one pass over all.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Sent<'a> {
    /// `Host`.
    pub(crate) host: Option<&'a [u8]>,
    hosts: usize,
    coding: Option<&'a [u8]>,
    codings: usize,
    lines: usize,
    /// `Accept`.
    pub(crate) accept: Option<&'a [u8]>,
    /// `User-Agent`.
    pub(crate) agent: Option<&'a [u8]>,
    /// `Referer`.
    pub(crate) referer: Option<&'a [u8]>,
    /// `Accept-Language`.
    pub(crate) language: Option<&'a [u8]>,
    /// Whether there is `Authorization`.
    pub(crate) has_authorization: bool,
    has_two_keys: bool,
}

impl<'a> Sent<'a> {
    /// Reads the headers of a request; of each name that comes again the first counts.
    pub(crate) fn read(headers: &'a HeaderMap) -> Self {
        let mut sent = Self { lines: headers.len(), ..Self::default() };
        for (name, value) in headers {
            let value = value.as_bytes();
            if *name == HOST {
                sent.host.get_or_insert(value);
                sent.hosts += 1;
            } else if *name == USER_AGENT {
                sent.agent.get_or_insert(value);
            } else if *name == ACCEPT {
                sent.accept.get_or_insert(value);
            } else if *name == ACCEPT_LANGUAGE {
                sent.language.get_or_insert(value);
            } else if *name == REFERER {
                sent.referer.get_or_insert(value);
            } else if *name == AUTHORIZATION {
                sent.has_two_keys = sent.has_authorization;
                sent.has_authorization = true;
            } else if *name == TRANSFER_ENCODING {
                sent.coding.get_or_insert(value);
                sent.codings += 1;
            }
        }
        sent
    }

    /// The value of `Host`; empty when there is none, or one that is no text.
    pub(crate) fn host(&self) -> &'a str {
        self.host.and_then(|host| str::from_utf8(host).ok()).unwrap_or_default()
    }

    /// Whether there is a coding of the body.
    pub(crate) fn has_coding(&self) -> bool {
        self.codings > 0
    }

    /// Whether the body has one unambiguous framing; hyper only checks the last coding.
    fn has_one_coding(&self) -> bool {
        let is_chunked = |coding: &[u8]| coding.trim_ascii().eq_ignore_ascii_case(b"chunked");
        self.codings == 0 || (self.codings == 1 && self.coding.is_some_and(is_chunked))
    }
}

/// A fault of a request, whatever it asks for, if there is one (RFC 9110, 7.2; RFC 9112, 3.2 and 6.1).
///
/// hyper refuses most malformed requests before they come here; these are those that it accepts.
pub(crate) fn fault<B>(request: &Request<B>, sent: &Sent<'_>, limits: &Limits) -> Option<String> {
    // HTTP/2 has no limit on the number of its own, only on the bytes.
    if sent.lines > limits.headers {
        return Some(format!("headers: at most {} lines", limits.headers));
    }
    if !sent.has_one_coding() {
        return Some("transfer-encoding: must be chunked, once".to_owned());
    }
    if sent.hosts > 1 || (sent.hosts == 0 && request.version() == Version::HTTP_11) {
        return Some("host: must be given exactly once".to_owned());
    }
    if sent.has_two_keys {
        return Some("authorization: must be given at most once".to_owned());
    }
    let authority = request.uri().authority().filter(|_| request.version() == Version::HTTP_2);
    if let (Some(host), Some(authority)) = (sent.host, authority)
        && !host.eq_ignore_ascii_case(authority.as_str().as_bytes())
    {
        return Some("host: must not differ from :authority".to_owned());
    }
    None
}

/// The host a request is for: of its target if that is absolute or HTTP/2, else its `Host`.
///
/// Empty when it has none, or one that is no text; no domain has such a name.
pub(crate) fn host<'a, B>(request: &'a Request<B>, sent: &Sent<'a>) -> &'a str {
    match request.uri().authority() {
        Some(authority) => authority.as_str(),
        None => sent.host(),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn check(version: Version, uri: &str, headers: &[(&str, &str)]) -> Option<String> {
        let mut request = Request::builder().version(version).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(()).unwrap();
        fault(&request, &Sent::read(request.headers()), &Limits { headers: 3, ..Limits::default() })
    }

    #[test]
    fn one_host_and_one_framing_are_required() {
        let host = "host: must be given exactly once";
        let coding = "transfer-encoding: must be chunked, once";
        let differs = "host: must not differ from :authority";
        let lines = "headers: at most 3 lines";
        for (version, uri, headers, expected) in [
            (Version::HTTP_11, "/A", &[("host", "tn.gg")][..], None),
            (Version::HTTP_11, "/A", &[], Some(host)),
            (Version::HTTP_10, "/A", &[], None),
            (Version::HTTP_11, "/A", &[("host", "tn.gg"), ("host", "tn.gg")], Some(host)),
            (Version::HTTP_11, "http://tn.gg/A", &[], Some(host)),
            (Version::HTTP_11, "http://tn.gg/A", &[("host", "other.gg")], None),
            (Version::HTTP_2, "http://tn.gg/A", &[], None),
            (Version::HTTP_2, "http://tn.gg/A", &[("host", "TN.gg")], None),
            (Version::HTTP_2, "http://tn.gg/A", &[("host", "other.gg")], Some(differs)),
            (Version::HTTP_2, "http://tn.gg/A", &[("host", "tn.gg"), ("host", "tn.gg")], Some(host)),
            (Version::HTTP_11, "/A", &[("host", "a"), ("transfer-encoding", " Chunked")], None),
            (Version::HTTP_11, "/A", &[("host", "a"), ("transfer-encoding", "gzip, chunked")], Some(coding)),
            (
                Version::HTTP_11,
                "/A",
                &[("host", "a"), ("transfer-encoding", "chunked, chunked")],
                Some(coding),
            ),
            (
                Version::HTTP_11,
                "/A",
                &[("host", "a"), ("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")],
                Some(coding),
            ),
            (Version::HTTP_11, "/A", &[("host", "a"), ("authorization", "K")], None),
            (
                Version::HTTP_11,
                "/A",
                &[("host", "a"), ("authorization", "K"), ("authorization", "K")],
                Some("authorization: must be given at most once"),
            ),
            (Version::HTTP_2, "http://a/A", &[("x", "1"), ("x", "2"), ("x", "3")], None),
            (Version::HTTP_2, "http://a/A", &[("x", "1"), ("x", "2"), ("x", "3"), ("x", "4")], Some(lines)),
        ] {
            assert_eq!(check(version, uri, headers).as_deref(), expected, "{version:?} {uri} {headers:?}");
        }
    }

    #[test]
    fn the_target_names_the_host_first() {
        for (uri, header, expected) in [
            ("/A", Some(&b"tn.gg"[..]), "tn.gg"),
            ("/A", None, ""),
            ("/A", Some(b"\xff"), ""),
            ("http://tn.gg/A", Some(b"other.gg"), "tn.gg"),
            ("http://x@tn.gg/A", None, "x@tn.gg"),
        ] {
            let mut request = Request::builder().uri(uri);
            if let Some(header) = header {
                request = request.header(HOST, HeaderValue::from_bytes(header).unwrap());
            }
            let request = request.body(()).unwrap();
            assert_eq!(host(&request, &Sent::read(request.headers())), expected, "{uri} {header:?}");
        }
    }
}
