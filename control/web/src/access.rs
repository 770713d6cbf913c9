//! Authentication of requests by their key.

use std::sync::Arc;

use axum::{
    extract::{FromRef, FromRequestParts, MatchedPath},
    http::{Extensions, HeaderMap, header, request::Parts},
};
use kernel::{
    domain::{
        access::{Actor, hash_key},
        api_key::{KnownKey, is_of_key},
    },
    error::CommonError,
    service::{
        Core,
        access::{self, Caller},
    },
    store::{Ctx, audit::Principal, claim::Claim},
};
use shared::{problem::Code, time::UnixMillis};

use crate::{
    api_error::ApiError, conditions::condition, extract::pairs, fair_share, limiter::Limiter, permits,
    rate_limit, request_info::RequestInfo, routes::Policy,
};

/// The query parameter that may replace the header.
pub const TOKEN_PARAMETER: &str = "access_token";

/// What finding the caller takes: look-ups of keys, and how many requests each may make.
#[derive(Clone)]
pub struct Access {
    /// What every operation needs.
    pub core: Arc<Core>,
    /// How many requests keys and addresses may make.
    pub limiter: Arc<Limiter>,
}

/// Marks a request of the console: the gate has put the key of its session in.
#[derive(Debug, Clone, Copy)]
pub struct OfSession;

/// Whether a key may come with a request: that of a session counts only where the gate has put it in.
pub(crate) fn is_welcome(extensions: &Extensions, known: &KnownKey) -> bool {
    !known.is_session || extensions.get::<OfSession>().is_some()
}

/// The caller behind the key of a request.
#[derive(Debug, Clone)]
pub struct Authenticated(pub Caller);

impl<S: Send + Sync> FromRequestParts<S> for Authenticated
where
    Access: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Access { core, limiter } = Access::from_ref(state);
        let Some(key) = find_key(&parts.headers, parts.uri.query()) else {
            let refusal = CommonError::Key(Code::KeyMissing).into();
            return Err(rate_limit::count_refusal(&limiter, parts, refusal).into());
        };
        let client = parts.extensions.get::<RequestInfo>().and_then(|info| info.client);
        match access::identify_key(&core, &key, client).await {
            Ok(known) if !is_welcome(&parts.extensions, &known) => {
                let refusal = CommonError::Key(Code::KeyUnknown).into();
                Err(rate_limit::count_refusal(&limiter, parts, refusal).into())
            }
            Ok(KnownKey { actor, bounds, .. }) => {
                let hash = hash_key(&key);
                rate_limit::count(&limiter, parts, &actor, &hash)?;
                permits::prove(parts, &actor, hash)?;
                fair_share::arrive(parts, &actor).await?;
                let ctx = ctx_of(parts, &actor, hash, core.clock.now());
                let takes_tag = parts.extensions.get::<Policy>().is_some_and(|policy| policy.takes_tag);
                let ctx = if takes_tag { ctx.with_condition(condition(&parts.headers)?) } else { ctx };
                Ok(Self(Caller { actor, ctx, bounds }))
            }
            Err(error) if is_of_key(error.code()) => {
                Err(rate_limit::count_refusal(&limiter, parts, error).into())
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// What the writes of a request must know of it.
fn ctx_of(parts: &Parts, actor: &Actor, key: [u8; 32], at: UnixMillis) -> Ctx {
    let claim = parts.extensions.get::<Arc<Claim>>().cloned();
    let ctx = claim.map_or_else(Ctx::default, |claim| Ctx::default().with_claim(claim));
    let info = parts.extensions.get::<RequestInfo>();
    let route = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let client = info.and_then(|info| info.client);
    match Principal::of(actor, &key, client, format!("{} {route}", parts.method), at) {
        Some(principal) => {
            ctx.with_principal(Principal { request: info.map(|info| info.id.to_string()), ..principal })
        }
        None => ctx,
    }
}

/// The key that a request came with; never shown.
pub struct SentKey(pub String);

impl<S: Send + Sync> FromRequestParts<S> for SentKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        find_key(&parts.headers, parts.uri.query())
            .map(Self)
            .ok_or_else(|| CommonError::Key(Code::KeyMissing).into())
    }
}

/// The key that a request came with, as its answer may show it: `None` for a session, whose key nobody sees.
pub struct ShownKey(pub Option<String>);

impl<S: Send + Sync> FromRequestParts<S> for ShownKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        if parts.extensions.get::<OfSession>().is_some() {
            return Ok(Self(None));
        }
        let SentKey(key) = SentKey::from_request_parts(parts, state).await?;
        Ok(Self(Some(key)))
    }
}

/// Whether a request carries a key at all, be it known or not.
pub fn has_key(headers: &HeaderMap, query: Option<&str>) -> bool {
    find_key(headers, query).is_some()
}

/// The key in `Authorization: KEY | Token KEY | Bearer KEY`, else in `access_token`.
pub fn find_key(headers: &HeaderMap, query: Option<&str>) -> Option<String> {
    let value = headers.get(header::AUTHORIZATION).map(|value| value.to_str().unwrap_or("?").trim());
    let sent = value.filter(|value| !value.is_empty()).map(|value| {
        let key = match value.split_once(' ') {
            Some((scheme, key)) if ["token", "bearer"].contains(&scheme.to_ascii_lowercase().as_str()) => key,
            Some(_) | None => value,
        };
        key.trim().to_owned()
    });
    sent.or_else(|| {
        let mut pairs = pairs(query.unwrap_or_default());
        pairs.find(|(name, value)| name == TOKEN_PARAMETER && !value.is_empty()).map(|(_, value)| value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_found_where_clients_send_them() {
        for (authorization, query, expected) in [
            (Some("KEY"), None, Some("KEY")),
            (Some("Token KEY"), None, Some("KEY")),
            (Some("Bearer KEY"), None, Some("KEY")),
            (Some("bearer  KEY "), None, Some("KEY")),
            (Some("Basic KEY"), None, Some("Basic KEY")),
            (Some(""), Some("access_token=Q"), Some("Q")),
            (None, Some("a=b&access_token=Q%51"), Some("QQ")),
            (Some("KEY"), Some("access_token=Q"), Some("KEY")),
            (None, Some("access_token="), None),
            (None, Some("a=b"), None),
            (None, None, None),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(value) = authorization {
                headers.insert(header::AUTHORIZATION, value.parse().unwrap());
            }
            assert_eq!(find_key(&headers, query).as_deref(), expected, "{authorization:?} {query:?}");
        }
    }
}
