//! Values of identifiers as they stand in a URI.

use std::borrow::Cow;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// What is encoded in a URI that we write: all but the unreserved characters of RFC 3986, [`Kinds::UNRESERVED`].
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What a byte may be, as bits.
static KINDS: [u8; 256] = {
    let mut kinds = [0; 256];
    let mut rest: &[u8] =
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:/[]@!$&'()*+,;=%";
    while let [byte, behind @ ..] = rest {
        kinds[*byte as usize] |= Kinds::PATH | Kinds::QUERY;
        rest = behind;
    }
    kinds[b'?' as usize] |= Kinds::QUERY;
    rest = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
    while let [byte, behind @ ..] = rest {
        kinds[*byte as usize] |= Kinds::UNRESERVED;
        rest = behind;
    }
    rest = b"!\"%&'()*+,-./0123456789:;<=>?ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";
    while let [byte, behind @ ..] = rest {
        kinds[*byte as usize] |= Kinds::CSET82 | if *byte == b'%' { 0 } else { Kinds::PLAIN };
        rest = behind;
    }
    kinds
};

/// What all bytes of a text are. One pass that does not stop early: texts are short, and nearly all are right.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kinds(u8);

impl Kinds {
    /// May stand in a path as it is.
    const PATH: u8 = 1;
    /// May stand in a query as it is.
    const QUERY: u8 = 2;
    /// Of the characters of GS1's serials and lots.
    const CSET82: u8 = 4;
    /// The same, and not a `%`.
    const PLAIN: u8 = 8;
    /// Never encoded.
    const UNRESERVED: u8 = 16;

    pub(crate) fn of(text: &[u8]) -> Self {
        Self(text.iter().fold(u8::MAX, |kinds, byte| kinds & Self::of_byte(*byte).0))
    }

    /// A `u8` is always within the table.
    pub(crate) fn of_byte(byte: u8) -> Self {
        Self(KINDS.get(usize::from(byte)).copied().unwrap_or_default())
    }

    pub(crate) const fn are_path(self) -> bool {
        self.0 & Self::PATH != 0
    }

    pub(crate) const fn are_query(self) -> bool {
        self.0 & Self::QUERY != 0
    }

    pub(crate) const fn are_cset82(self) -> bool {
        self.0 & Self::CSET82 != 0
    }

    /// Right as a value and with nothing to decode.
    pub(crate) const fn are_plain(self) -> bool {
        self.0 & Self::PLAIN != 0
    }
}

/// Decodes a value of a path; `None` if it is not UTF-8. A `%` that two hexadecimal digits do not follow is itself, as for
/// GS1's engine.
pub(crate) fn decode_path(raw: &str) -> Option<Cow<'_, str>> {
    if !raw.bytes().any(|byte| byte == b'%') {
        return Some(Cow::Borrowed(raw));
    }
    String::from_utf8(decoded(raw, false)).ok().map(Cow::Owned)
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

/// Appends a value, percent-encoded but for the unreserved characters of RFC 3986.
pub fn push_encoded(value: &str, out: &mut String) {
    if Kinds::of(value.as_bytes()).0 & Kinds::UNRESERVED == 0 {
        out.extend(utf8_percent_encode(value, RESERVED));
    } else {
        out.push_str(value);
    }
}
