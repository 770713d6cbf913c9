//! Writes the answer of a plain redirect, byte for byte as hyper does.

use std::{
    cell::Cell,
    time::{Duration, SystemTime},
};

use http::HeaderValue;
use shared::time::UnixMillis;

/// Bytes of a date, as in `Thu, 26 Nov 2026 10:00:00 GMT`.
const DATE_BYTES: usize = 29;

thread_local! {
    /// The second that was written last, and its text.
    static DATE: Cell<(i64, [u8; DATE_BYTES])> = const { Cell::new((i64::MIN, [0; DATE_BYTES])) };
}

/// Appends 307 to `location`, answered at `now` to the request with this id; `strict` is the value of
/// `Strict-Transport-Security`.
pub(super) fn write(
    out: &mut Vec<u8>,
    is_head: bool,
    location: &HeaderValue,
    id: &[u8; 16],
    strict: Option<&'static str>,
    now: UnixMillis,
) {
    let mut put = |part: &[u8]| out.extend_from_slice(part);
    put(b"HTTP/1.1 307 Temporary Redirect\r\nlocation: ");
    put(location.as_bytes());
    put(b"\r\ncache-control: no-store\r\nvary: Accept\r\n");
    if is_head {
        put(b"content-length: 0\r\n");
    }
    put(b"x-request-id: ");
    put(id);
    put(b"\r\nx-content-type-options: nosniff\r\nreferrer-policy: strict-origin-when-cross-origin\r\n");
    if let Some(strict) = strict {
        put(b"strict-transport-security: ");
        put(strict.as_bytes());
        put(b"\r\n");
    }
    if !is_head {
        put(b"content-length: 0\r\n");
    }
    put(b"date: ");
    put(&date(now));
    put(b"\r\n\r\n");
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
