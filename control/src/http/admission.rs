//! The layer right behind the router, around all others: applies the policy of the row that a request belongs to.
//!
//! The router has decided by now which row that is; a request without one has the policy that holds by default.

use std::{
    panic::AssertUnwindSafe,
    sync::{Arc, OnceLock},
    time::Duration,
};

use axum::{
    extract::{Extension, MatchedPath, Request, State},
    http::{HeaderMap, header},
    middleware::Next,
    response::{IntoResponse, Response},
};
use futures_util::FutureExt;
use kernel::error::DomainError;
use opentelemetry::trace::TraceContextExt as _;
use shared::problem::Code;
use signin::http::gate;
use tracing_opentelemetry::OpenTelemetrySpanExt as _;
use web::{
    api_error::{Failure, Refusal},
    conditions::condition,
    fair_share::Slot,
    rate_limit::{self, Ledger},
    request_error::RequestError,
    request_info::RequestInfo,
    routes::Policies,
};

use crate::state::ApiState;

/// What the outermost layer and this one tell each other of a request.
#[derive(Debug, Clone)]
pub(super) struct Arrival {
    /// Whether it came below the prefix of the console, where the cookie counts.
    pub(super) is_gated: bool,
    /// Which row took it: filled in here, read for metrics.
    pub(super) route: Arc<OnceLock<MatchedPath>>,
}

/// What the layer needs.
#[derive(Clone)]
pub(super) struct Admission {
    pub(super) app: Arc<ApiState>,
    pub(super) policies: &'static Policies,
}

/// The layer.
pub(super) async fn admit(
    State(Admission { app, policies }): State<Admission>,
    Extension(arrival): Extension<Arrival>,
    Extension(ledger): Extension<Ledger>,
    info: RequestInfo,
    mut request: Request,
    next: Next,
) -> Response {
    let policy = match request.extensions().get::<MatchedPath>() {
        Some(path) => {
            note_route(&request, path);
            let _ = arrival.route.set(path.clone());
            policies.find(request.method(), path.as_str())
        }
        None => Default::default(),
    };
    let refused =
        two_keys(request.headers()).or_else(|| unseen_condition(&request, policies)).or_else(|| {
            let check = || {
                let query = request.uri().query();
                gate::check(request.method(), policy.page_from, request.headers(), query, &info.base)
            };
            arrival.is_gated.then(check).flatten()
        });
    // Before anything is read or looked up, and what is refused counts, too.
    let limited = rate_limit::count_by_row(&app.limiter, policy.rate_limit, info.limited_as, &ledger);
    if let Some(refusal) = refused.or(limited) {
        return refusal.into_response();
    }
    request.extensions_mut().insert(policy);
    let slot = Slot::new(app.fair_share.clone());
    request.extensions_mut().insert(slot.clone());
    let run = async {
        if arrival.is_gated
            && let Err(refusal) = gate::pass(&app.sign_in, &mut request, policy.enrols, info.client).await
        {
            return refusal.into_response();
        }
        let response = next.run(request).await;
        slot.give_back();
        response
    };
    guard(run, policy.time_limit).await
}

/// Names the span of a request by its row.
fn note_route(request: &Request, path: &MatchedPath) {
    let span = tracing::Span::current();
    span.record("http.route", path.as_str());
    // A span that has begun takes another name by this way alone.
    span.context().span().update_name(format!("{} {}", request.method(), path.as_str()));
}

/// The refusal of a request with two keys: which of them counts would be anybody's guess.
fn two_keys(headers: &HeaderMap) -> Option<Refusal> {
    let count = headers.get_all(header::AUTHORIZATION).iter().count();
    let errors = vec!["Authorization must be given at most once.".to_owned()];
    (count > 1).then_some(Refusal { code: Code::Invalid, errors, detail: None })
}

/// The refusal of tags in `If-Match` where nobody looks at them: their sender would believe that nothing is written over.
/// `*` is any state, so it changes nothing, and some clients send it with every change. A method that the path does not have is
/// refused as such.
fn unseen_condition(request: &Request, policies: &Policies) -> Option<Refusal> {
    if request.method().is_safe() || !request.headers().contains_key(header::IF_MATCH) {
        return None;
    }
    let path = request.extensions().get::<MatchedPath>()?.as_str();
    let (_, _, policy) =
        policies.iter().find(|(method, of, _)| *method == request.method() && *of == path)?;
    let admits_all = condition(request.headers()).is_ok_and(|asked| asked.into_numbers().is_none());
    let errors = vec![RequestError::NoCondition.to_string()];
    let is_seen = policy.takes_tag || admits_all;
    (!is_seen).then_some(Refusal { code: RequestError::NoCondition.code(), errors, detail: None })
}

/// Runs a request for at most `limit`; a panic stays its own.
async fn guard(run: impl Future<Output = Response>, limit: Duration) -> Response {
    match tokio::time::timeout(limit, AssertUnwindSafe(run).catch_unwind()).await {
        Ok(Ok(response)) => response,
        Ok(Err(_)) => failure(Code::Internal, Failure::Panic, "panic").into_response(),
        Err(_) => failure(Code::Timeout, Failure::RequestTimeout, "request timeout").into_response(),
    }
}

fn failure(code: Code, kind: Failure, detail: &str) -> Refusal {
    Refusal { code, errors: Vec::new(), detail: Some((kind, detail.to_owned())) }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use shared::time::UnixMillis;

    use super::*;
    use crate::{http::middleware::complete, metrics::Metrics};

    #[tokio::test]
    async fn panics_and_timeouts_become_error_responses() {
        async fn broken() -> Response {
            panic!("secret")
        }
        let limit = Duration::from_millis(1);
        for (response, status, code) in [
            (guard(broken(), Duration::from_secs(30)).await, 500, Code::Internal),
            (guard(std::future::pending(), limit).await, 503, Code::Timeout),
        ] {
            let response = complete(response, "https://x/docs", &Metrics::default(), UnixMillis(0));
            assert_eq!(response.status().as_u16(), status);
            assert_eq!(response.headers().contains_key(header::RETRY_AFTER), status == 503);
            let bytes = axum::body::to_bytes(response.into_body(), 4_096).await.unwrap();
            let problem: shared::problem::Problem = serde_json::from_slice(&bytes).unwrap();
            assert_eq!((problem.code, problem.errors), (code as u32, vec![code.text().to_owned()]));
        }
    }

    #[test]
    fn one_key_suffices() {
        let mut headers = HeaderMap::new();
        headers.append(header::AUTHORIZATION, HeaderValue::from_static("ONE"));
        assert!(two_keys(&headers).is_none());
        headers.append(header::AUTHORIZATION, HeaderValue::from_static("ONE"));
        assert_eq!(two_keys(&headers).map(|refusal| refusal.code), Some(Code::Invalid));
    }
}
