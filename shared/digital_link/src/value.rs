//! Values of identifiers as they stand in a URI.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What is encoded in a URI that we write: all but the unreserved characters of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Whether a byte may stand in a path or in a query of a URI as it is; a path has no `?` besides.
pub(crate) const fn is_uri_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'-' | b'.'
                | b'_'
                | b'~'
                | b':'
                | b'/'
                | b'?'
                | b'['
                | b']'
                | b'@'
                | b'!'
                | b'$'
                | b'&'
                | b'\''
                | b'('
                | b')'
                | b'*'
                | b'+'
                | b','
                | b';'
                | b'='
                | b'%'
        )
}

/// Decodes a value of a path. A `%` that two hexadecimal digits do not follow is itself, as for GS1's engine.
pub(crate) fn decode_path(raw: &str) -> Cow<'_, [u8]> {
    if raw.bytes().any(|byte| byte == b'%') {
        Cow::Owned(decoded(raw, false))
    } else {
        Cow::Borrowed(raw.as_bytes())
    }
}

/// Decodes a value of a query, where `+` is a space.
pub(crate) fn decode_query(raw: &str) -> Cow<'_, [u8]> {
    if raw.bytes().any(|byte| matches!(byte, b'%' | b'+')) {
        Cow::Owned(decoded(raw, true))
    } else {
        Cow::Borrowed(raw.as_bytes())
    }
}

fn decoded(raw: &str, plus_is_space: bool) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.len());
    let mut rest = raw.as_bytes();
    while let [byte, behind @ ..] = rest {
        rest = behind;
        out.push(match (byte, behind) {
            (b'%', [high, low, behind @ ..]) => match (nibble(*high), nibble(*low)) {
                (Some(high), Some(low)) => {
                    rest = behind;
                    (high << 4) | low
                }
                _ => b'%',
            },
            (b'+', _) if plus_is_space => b' ',
            (byte, _) => *byte,
        });
    }
    out
}

fn nibble(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

/// Appends a value, percent-encoded.
pub(crate) fn push_encoded(value: &str, out: &mut String) {
    out.extend(utf8_percent_encode(value, RESERVED));
}

/// The value as text, if it is UTF-8.
pub(crate) fn into_text(bytes: Cow<'_, [u8]>) -> Option<Cow<'_, str>> {
    match bytes {
        Cow::Borrowed(bytes) => std::str::from_utf8(bytes).ok().map(Cow::Borrowed),
        Cow::Owned(bytes) => String::from_utf8(bytes).ok().map(Cow::Owned),
    }
}
