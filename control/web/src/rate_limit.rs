//! Response headers of rate limits: `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset` as in
//! draft-ietf-httpapi-ratelimit-headers-06, the last with three fields, and `Retry-After`.

use std::{
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};

use axum::http::{HeaderName, HeaderValue, header, request::Parts, response::Response};
use kernel::{domain::access::Actor, error::ServiceError};

use crate::{
    api_error::Refusal,
    limiter::{Limiter, Verdict},
    request_error::RequestError,
    request_info::RequestInfo,
    routes::RateLimit,
};

/// What the limits said of a request, from wherever they are asked to the layer that answers.
#[derive(Debug, Clone, Default)]
pub struct Ledger(Arc<Mutex<Option<Verdict>>>);

impl Ledger {
    /// Keeps a verdict; of several the tightest one.
    fn note(&self, verdict: Verdict) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.is_none_or(|kept| (verdict.is_allowed, verdict.remaining) < (kept.is_allowed, kept.remaining))
        {
            *kept = Some(verdict);
        }
    }

    /// Nothing is allowed for so many seconds, whatever other limits say.
    pub fn pause(&self, seconds: u64) {
        self.note(Verdict { is_allowed: false, limit: 0, remaining: 0, reset_seconds: seconds });
    }

    /// Adds the fields to an answer.
    pub fn write<B>(&self, response: &mut Response<B>) {
        let Some(verdict) = *self.0.lock().unwrap_or_else(PoisonError::into_inner) else { return };
        let headers = response.headers_mut();
        headers.insert(HeaderName::from_static("ratelimit-limit"), verdict.limit.into());
        headers.insert(HeaderName::from_static("ratelimit-remaining"), verdict.remaining.into());
        headers.insert(HeaderName::from_static("ratelimit-reset"), verdict.reset_seconds.into());
        if !verdict.is_allowed {
            // The draft has both name the same moment.
            headers.insert(header::RETRY_AFTER, HeaderValue::from(verdict.reset_seconds.max(1)));
        }
    }
}

/// Counts a request with a known key; a public one counts for its account, too.
pub fn count(limiter: &Limiter, parts: &Parts, actor: &Actor, key: &[u8; 32]) -> Result<(), ServiceError> {
    check(limiter.request(key), parts.extensions.get(), "with this key")?;
    if !actor.kind.is_public() {
        return Ok(());
    }
    let verdict = limiter.public_request(actor.account);
    check(verdict, parts.extensions.get(), "with public keys of this account")
}

/// Counts a request with a key of the platform, which is of no account.
pub fn count_platform(limiter: &Limiter, parts: &Parts, key: &[u8; 32]) -> Result<(), ServiceError> {
    check(limiter.request(key), parts.extensions.get(), "with this key")
}

/// Counts a request that is refused because of its key; returns the refusal to send.
pub fn count_refusal(limiter: &Limiter, parts: &Parts, refusal: ServiceError) -> ServiceError {
    let client = parts.extensions.get::<RequestInfo>().and_then(|info| info.limited_as);
    match check(limiter.refusal(client), parts.extensions.get(), "without a key that is known") {
        Ok(()) => refusal,
        Err(limited) => limited,
    }
}

/// Counts a request as its row of the route table says, before anything is done for it; gives the refusal when there were
/// too many.
pub fn count_by_row(
    limiter: &Limiter,
    limit: RateLimit,
    client: Option<IpAddr>,
    ledger: &Ledger,
) -> Option<Refusal> {
    match limit {
        RateLimit::OfKey => None,
        RateLimit::Login => check(limiter.login(client), Some(ledger), "to log in").err().map(Refusal::from),
        RateLimit::Report => {
            check(limiter.report(client), Some(ledger), "from this address").err().map(Refusal::from)
        }
    }
}

fn check(verdict: Option<Verdict>, ledger: Option<&Ledger>, what: &'static str) -> Result<(), ServiceError> {
    let Some(verdict) = verdict else { return Ok(()) };
    if let Some(ledger) = ledger {
        ledger.note(verdict);
    }
    if verdict.is_allowed {
        return Ok(());
    }
    let seconds = verdict.reset_seconds.max(1);
    Err(RequestError::TooManyRequests { what, seconds }.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_limit_is_reported() {
        let verdict = |is_allowed, remaining| Verdict { is_allowed, limit: 10, remaining, reset_seconds: 3 };
        let ledger = Ledger::default();
        let mut response = Response::new(());
        ledger.write(&mut response);
        assert!(response.headers().is_empty());
        for next in [verdict(true, 5), verdict(false, 0), verdict(true, 7)] {
            ledger.note(next);
        }
        ledger.write(&mut response);
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok());
        assert_eq!(header("ratelimit-limit"), Some("10"));
        assert_eq!(header("ratelimit-remaining"), Some("0"));
        assert_eq!(header("ratelimit-reset"), Some("3"));
        assert_eq!(header("retry-after"), Some("3"));
    }
}
