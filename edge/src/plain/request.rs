//! Recognises a plain request for a redirect in the bytes of a connection.

use crate::framing::Sent;

/// Most header lines: real clients send under 25, and each takes room on the stack.
const MAX_HEADERS: usize = 32;

/// What the bytes of a connection begin with.
#[derive(Debug)]
pub(super) enum Begun<'a> {
    /// A plain request.
    Request(Plain<'a>),
    /// The start of what may become one.
    Part,
    /// Anything else.
    Other,
}

/// A request whose answer depends on nothing but these.
#[derive(Debug)]
pub(super) struct Plain<'a> {
    /// HEAD, else GET.
    pub(super) is_head: bool,
    /// The path; it has no query, and only characters that a short URL has.
    pub(super) path: &'a str,
    /// Its headers.
    pub(super) sent: Sent<'a>,
    /// Bytes of it.
    pub(super) length: usize,
}

/// Reads the first request of some bytes, which may have up to `lines` header lines.
pub(super) fn read(bytes: &[u8], lines: usize) -> Begun<'_> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Begun::Part,
        Err(_) => return Begun::Other,
    };
    let is_head = match request.method {
        Some("GET") => false,
        Some("HEAD") => true,
        Some(_) | None => return Begun::Other,
    };
    let Some(path) = request.path.filter(|path| is_plain(path)) else { return Begun::Other };
    if request.version != Some(1) || request.headers.len() > lines {
        return Begun::Other;
    }
    match headers_of(request.headers) {
        Some(sent) => Begun::Request(Plain { is_head, path, sent, length }),
        None => Begun::Other,
    }
}

/// Whether a byte may stand in a path that is answered here.
static PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte = 0;
    while byte < 128_u8 {
        // `-`, `.` and `/` follow each other.
        plain[byte as usize] = byte.is_ascii_alphanumeric() || matches!(byte, b'-'..=b'/' | b'_');
        byte += 1;
    }
    plain
};

/// Whether a target is a path of letters, digits, `.`, `_`, `-` and `/`, as every short URL is.
fn is_plain(target: &str) -> bool {
    // A `u8` is always within the table.
    let is_plain = |byte: u8| PLAIN.get(usize::from(byte)).copied().unwrap_or_default();
    target.strip_prefix('/').is_some_and(|rest| rest.bytes().all(is_plain))
}

/// The headers that decide anything; `None` when one asks for more than an answer.
fn headers_of<'a>(headers: &[httparse::Header<'a>]) -> Option<Sent<'a>> {
    let (mut sent, mut hosts) = (Sent::default(), 0);
    for header in headers {
        let (name, value) = (header.name, header.value);
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        // By length first: a name of another length is none of these.
        match name.len() {
            2 if is("te") => return None,
            4 if is("host") => {
                hosts += 1;
                sent.host = Some(value);
            }
            6 if is("accept") => drop(sent.accept.get_or_insert(value)),
            6 if is("expect") => return None,
            7 if is("referer") => drop(sent.referer.get_or_insert(value)),
            7 if is("upgrade") || is("trailer") => return None,
            10 if is("user-agent") => drop(sent.agent.get_or_insert(value)),
            10 if is("connection") && !value.eq_ignore_ascii_case(b"keep-alive") => return None,
            13 if is("authorization") => return None,
            14 if is("content-length") => return None,
            14 if is("http2-settings") => return None,
            15 if is("accept-language") => drop(sent.language.get_or_insert(value)),
            17 if is("transfer-encoding") => return None,
            _ => {}
        }
    }
    (hosts == 1).then_some(sent)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(bytes: &str) -> String {
        match read(bytes.as_bytes(), 4) {
            Begun::Request(plain) => {
                let method = if plain.is_head { "HEAD" } else { "GET" };
                format!("{method} {} {} {:?}", plain.sent.host(), plain.path, &bytes[plain.length..])
            }
            Begun::Part => "part".to_owned(),
            Begun::Other => "other".to_owned(),
        }
    }

    #[test]
    fn only_plain_requests_are_recognised() {
        for (bytes, expected) in [
            ("GET /A HTTP/1.1\r\nHost: tn.gg\r\n\r\n", "GET tn.gg /A \"\""),
            ("GET /A HTTP/1.1\r\nhOST:tn.gg  \r\n\r\nGET", "GET tn.gg /A \"GET\""),
            ("HEAD /A.png HTTP/1.1\nHost: a\n\n", "HEAD a /A.png \"\""),
            ("GET /A HTTP/1.1\r\nHost: a\r\nConnection: Keep-Alive\r\n\r\n", "GET a /A \"\""),
            ("", "part"),
            ("G", "part"),
            ("GET /A HTTP/1.1\r\nHost: a\r\n", "part"),
            ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "other"),
            ("POST /A HTTP/1.1\r\nHost: a\r\n\r\n", "other"),
            ("GET /A HTTP/1.0\r\nHost: a\r\n\r\n", "other"),
            ("GET /A?b HTTP/1.1\r\nHost: a\r\n\r\n", "other"),
            ("GET /%41 HTTP/1.1\r\nHost: a\r\n\r\n", "other"),
            ("GET /a/b HTTP/1.1\r\nHost: a\r\n\r\n", "GET a /a/b \"\""),
            (
                "GET /.well-known/acme-challenge/A HTTP/1.1\r\nHost: a\r\n\r\n",
                "GET a /.well-known/acme-challenge/A \"\"",
            ),
            ("GET http://a/A HTTP/1.1\r\nHost: a\r\n\r\n", "other"),
            ("GET * HTTP/1.1\r\nHost: a\r\n\r\n", "other"),
            ("GET /A HTTP/1.1\r\n\r\n", "other"),
            ("GET /A HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", "other"),
            ("GET /A HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", "other"),
            ("GET /A HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, x\r\n\r\n", "other"),
            ("GET /A HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", "other"),
            ("GET /A HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", "other"),
            ("GET /A HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n", "other"),
            ("GET /A HTTP/1.1\r\nHost: a\r\nUpgrade: h2c\r\n\r\n", "other"),
            ("GET /A HTTP/1.1\r\nHost: a\r\nAuthorization: k\r\n\r\n", "other"),
            ("GET /A HTTP/1.1\r\nHost: a\r\nTE: trailers\r\n\r\n", "other"),
            ("GET /A HTTP/1.1\r\nHost : a\r\n\r\n", "other"),
            ("GET /A HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", "other"),
            ("GET /A HTTP/1.1\r\nHost: a\r\nA: 1\r\nB: 2\r\nC: 3\r\nD: 4\r\n\r\n", "other"),
        ] {
            assert_eq!(kind(bytes), expected, "{bytes:?}");
        }
    }
}
