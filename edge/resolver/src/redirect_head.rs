//! Status code and `Cache-Control` of redirects.

use http::{HeaderValue, StatusCode};
use shared::{redirect_status::RedirectStatus, time::UnixMillis};

/// What stands in the head of a redirect besides its location.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RedirectHead {
    /// Its status code.
    pub status: RedirectStatus,
    /// Seconds for which browsers and shared caches may keep it; `None`: they must not.
    pub max_age: Option<u32>,
}

impl RedirectHead {
    /// The head while the link ends at some moment: nobody keeps its redirect beyond it.
    pub fn until(self, end: Option<UnixMillis>, now: UnixMillis) -> Self {
        let Some(end) = end else { return self };
        let left = end.0.saturating_sub(now.0).max(0) / 1_000;
        let left = u32::try_from(left).unwrap_or(u32::MAX);
        Self { max_age: self.max_age.map(|max_age| max_age.min(left)).filter(|_| left > 0), ..self }
    }

    /// The status code.
    pub const fn status_code(self) -> StatusCode {
        match self.status {
            RedirectStatus::TemporaryRedirect => StatusCode::TEMPORARY_REDIRECT,
            RedirectStatus::MovedPermanently => StatusCode::MOVED_PERMANENTLY,
            RedirectStatus::Found => StatusCode::FOUND,
            RedirectStatus::PermanentRedirect => StatusCode::PERMANENT_REDIRECT,
        }
    }

    /// The value of `Cache-Control`.
    pub fn cache_control(self) -> HeaderValue {
        const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
        match self.max_age {
            None => NO_STORE,
            // Without the last word a cache may serve it for longer while the edge is away. It is always a header value.
            Some(seconds) => HeaderValue::try_from(format!("public, max-age={seconds}, must-revalidate"))
                .unwrap_or(NO_STORE),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_say_status_and_age() {
        for (status, code) in RedirectStatus::ALL.into_iter().zip([307, 301, 302, 308]) {
            for (max_age, expected) in [
                (None, "no-store"),
                (Some(0), "public, max-age=0, must-revalidate"),
                (Some(86_400), "public, max-age=86400, must-revalidate"),
            ] {
                let head = RedirectHead { status, max_age };
                assert_eq!(
                    (head.status_code().as_u16(), head.cache_control()),
                    (code, expected.parse().unwrap())
                );
            }
        }
    }

    #[test]
    fn nothing_is_kept_beyond_the_end_of_its_link() {
        let end = |at| Some(UnixMillis(at));
        for (max_age, end, now, expected) in [
            (Some(60), None, 0, Some(60)),
            (Some(60), end(60_000), 0, Some(60)),
            (Some(60), end(59_999), 0, Some(59)),
            (Some(60), end(1_001), 1_000, None),
            (Some(60), end(i64::MAX), 0, Some(60)),
            (Some(60), end(i64::MAX), i64::MIN, Some(60)),
            (None, end(60_000), 0, None),
        ] {
            let head = RedirectHead { max_age, ..RedirectHead::default() };
            assert_eq!(head.until(end, UnixMillis(now)).max_age, expected, "{max_age:?} {end:?} at {now}");
        }
    }
}
