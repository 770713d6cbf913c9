//! The ids of requests, `X-Request-Id`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use http::HeaderValue;

/// Numbers the requests: unique within a boot.
#[derive(Debug)]
pub(crate) struct RequestIds {
    next: AtomicU64,
}

impl RequestIds {
    /// Begins somewhere at random.
    pub(crate) fn new() -> Self {
        Self { next: AtomicU64::new(getrandom::u64().unwrap_or_default()) }
    }

    /// Where the numbers of a connection begin: 2^32 of its own, so that its requests share nothing.
    pub(crate) fn next(&self) -> u64 {
        self.next.fetch_add(1 << 32, Relaxed)
    }
}

/// The value of `X-Request-Id`: 16 hexadecimal digits that do not look like a sequence.
pub(super) fn header_value(number: u64) -> HeaderValue {
    HeaderValue::from_bytes(&digits(number)).unwrap_or(HeaderValue::from_static("0"))
}

/// The digits of that value.
pub(crate) fn digits(number: u64) -> [u8; 16] {
    // An odd factor maps numbers one to one onto such that look random.
    let id = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    std::array::from_fn(|i| b"0123456789abcdef"[(id >> (60 - 4 * i) & 15) as usize])
}
