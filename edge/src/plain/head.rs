//! Writes answers to plain requests, byte for byte as hyper does.

use std::{
    cell::Cell,
    time::{Duration, SystemTime},
};

use http::HeaderValue;
use shared::time::UnixMillis;

use crate::{
    redirect_head::RedirectHead,
    response::{PAGE_POLICY, VARY_OF_PAGES},
};

/// Bytes of a date, as in `Thu, 26 Nov 2026 10:00:00 GMT`.
const DATE_BYTES: usize = 29;

thread_local! {
    /// The second that was written last, and its text.
    static DATE: Cell<(i64, [u8; DATE_BYTES])> = const { Cell::new((i64::MIN, [0; DATE_BYTES])) };
}

/// What all answers to a request have in common.
pub(super) struct Common {
    /// The answer has no body, whatever its length says.
    pub(super) is_head: bool,
    /// The value of `X-Request-Id`.
    pub(super) id: [u8; 16],
    /// The value of `Strict-Transport-Security`.
    pub(super) strict: Option<&'static str>,
    pub(super) now: UnixMillis,
}

/// Appends a redirect to `location`.
pub(super) fn redirect(out: &mut Vec<u8>, common: &Common, location: &HeaderValue, head: RedirectHead) {
    if head != RedirectHead::default() {
        return chosen(out, common, location, head);
    }
    out.extend_from_slice(b"HTTP/1.1 307 Temporary Redirect\r\nlocation: ");
    out.extend_from_slice(location.as_bytes());
    end(out, common, &[]);
}

/// A redirect with a status code or an age that somebody chose. Apart, so that the others are written as constants.
#[cold]
fn chosen(out: &mut Vec<u8>, common: &Common, location: &HeaderValue, head: RedirectHead) {
    begin(out, head, location.as_bytes());
    out.extend_from_slice(b"\r\ncache-control: ");
    out.extend_from_slice(head.cache_control().as_bytes());
    out.extend_from_slice(b"\r\nvary: Accept\r\n");
    rest(out, common, &[]);
}

/// Appends a redirect of a Digital Link with this value of `Link`, as `resolver::redirected` makes one.
pub(super) fn linked(out: &mut Vec<u8>, common: &Common, (location, link): (&str, &str), head: RedirectHead) {
    begin(out, head, location.as_bytes());
    out.extend_from_slice(b"\r\ncache-control: no-store\r\nvary: Accept, Accept-Language\r\nlink: ");
    out.extend_from_slice(link.as_bytes());
    out.extend_from_slice(
        b"\r\naccess-control-allow-origin: *\r\naccess-control-expose-headers: Link, Location\r\n",
    );
    rest(out, common, &[]);
}

/// Appends a head up to its location.
fn begin(out: &mut Vec<u8>, head: RedirectHead, location: &[u8]) {
    let status = head.status_code();
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(status.canonical_reason().unwrap_or_default().as_bytes());
    out.extend_from_slice(b"\r\nlocation: ");
    out.extend_from_slice(location);
}

/// Appends 404 with a body of this type.
pub(super) fn unknown(out: &mut Vec<u8>, common: &Common, (kind, body): (&str, &[u8])) {
    out.extend_from_slice(b"HTTP/1.1 404 Not Found\r\ncontent-type: ");
    out.extend_from_slice(kind.as_bytes());
    if !body.starts_with(b"<") {
        return end(out, common, body);
    }
    out.extend_from_slice(b"\r\ncache-control: no-store\r\nvary: ");
    out.extend_from_slice(VARY_OF_PAGES.as_bytes());
    out.extend_from_slice(b"\r\n");
    rest(out, common, body);
}

/// Appends the headers that every answer has, and the body.
fn end(out: &mut Vec<u8>, common: &Common, body: &[u8]) {
    out.extend_from_slice(b"\r\ncache-control: no-store\r\nvary: Accept\r\n");
    rest(out, common, body);
}

/// Appends what follows on `Vary`.
#[inline]
fn rest(out: &mut Vec<u8>, common: &Common, body: &[u8]) {
    let length = |out: &mut Vec<u8>| {
        out.extend_from_slice(b"content-length: ");
        if body.is_empty() {
            out.push(b'0');
        } else {
            put_number(out, body.len());
        }
        out.extend_from_slice(b"\r\n");
    };
    if body.starts_with(b"<") {
        out.extend_from_slice(b"content-security-policy: ");
        out.extend_from_slice(PAGE_POLICY.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    if common.is_head {
        length(out);
    }
    out.extend_from_slice(b"x-request-id: ");
    out.extend_from_slice(&common.id);
    out.extend_from_slice(
        b"\r\nx-content-type-options: nosniff\r\nreferrer-policy: strict-origin-when-cross-origin\r\n",
    );
    if let Some(strict) = common.strict {
        out.extend_from_slice(b"strict-transport-security: ");
        out.extend_from_slice(strict.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    if !common.is_head {
        length(out);
    }
    out.extend_from_slice(b"date: ");
    out.extend_from_slice(&date(common.now));
    out.extend_from_slice(b"\r\n\r\n");
    if !common.is_head {
        out.extend_from_slice(body);
    }
}

/// Appends a number without allocating.
fn put_number(out: &mut Vec<u8>, mut number: usize) {
    let start = out.len();
    loop {
        // One digit.
        out.push(b'0' + (number % 10) as u8);
        number /= 10;
        if number == 0 {
            break;
        }
    }
    if let Some(digits) = out.get_mut(start..) {
        digits.reverse();
    }
}

fn date(now: UnixMillis) -> [u8; DATE_BYTES] {
    let second = now.0.div_euclid(1_000);
    let (known, text) = DATE.get();
    if known == second {
        return text;
    }
    let since = Duration::from_secs(u64::try_from(second).unwrap_or_default());
    let text = httpdate::fmt_http_date(SystemTime::UNIX_EPOCH + since);
    let text = text.as_bytes().try_into().unwrap_or([b' '; DATE_BYTES]);
    DATE.set((second, text));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_digits() {
        for number in [0, 7, 10, 2_048, 65_535, usize::MAX] {
            let mut out = b"x".to_vec();
            put_number(&mut out, number);
            assert_eq!(out, format!("x{number}").as_bytes());
        }
    }

    #[test]
    fn a_date_follows_its_second() {
        for (millis, expected) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (999, "Thu, 01 Jan 1970 00:00:00 GMT"),
            // date -u -d @1793786400 '+%a, %d %b %Y %T GMT'
            (1_793_786_400_001, "Wed, 04 Nov 2026 10:00:00 GMT"),
            (1_793_786_401_000, "Wed, 04 Nov 2026 10:00:01 GMT"),
        ] {
            assert_eq!(str::from_utf8(&date(UnixMillis(millis))).unwrap(), expected);
        }
    }
}
