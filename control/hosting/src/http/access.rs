//! Authentication by a key of the platform: it is for these operations alone, and no other key is.

use axum::{
    extract::{FromRef, FromRequestParts, MatchedPath},
    http::request::Parts,
};
use shared::problem::Code;
use web::{
    access::{Access, find_key},
    api_error::ApiError,
    permits, rate_limit,
    request_info::RequestInfo,
};

use crate::{
    domain::{
        access::{hash_key, is_key},
        api_key::is_of_key,
        platform_key::PLATFORM_KEY_PREFIX,
    },
    error::{CommonError, HostingError, ServiceError},
    service::{By, access},
    store::{Ctx, audit::Principal, platform_keys},
};

/// Who runs the platform, by the key of a request.
pub(super) struct PlatformCaller(pub(super) By);

impl<S: Send + Sync> FromRequestParts<S> for PlatformCaller
where
    Access: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Access { core, limiter } = Access::from_ref(state);
        let refused =
            |refusal: ServiceError| ApiError::from(rate_limit::count_refusal(&limiter, parts, refusal));
        // Keys in the query are not accepted, because URLs are logged.
        let Some(key) = find_key(&parts.headers, None) else {
            return Err(refused(HostingError::KeyMissing.into()));
        };
        let hash = hash_key(&key);
        // Others cost what they cost elsewhere: a look-up in batches.
        let found = if is_key(&key) && key.starts_with(PLATFORM_KEY_PREFIX) {
            platform_keys::find(&mut core.db.read().await?, &hash).await.map_err(ServiceError::from)?
        } else {
            None
        };
        let info = parts.extensions.get::<RequestInfo>();
        let client = info.and_then(|info| info.client);
        let now = core.clock.now();
        let Some(found) = found else {
            return Err(match access::identify(&core, &key, client).await {
                Ok(actor) => {
                    rate_limit::count(&limiter, parts, &actor, &hash)?;
                    HostingError::NoPlatformKey.into()
                }
                Err(error) if is_of_key(error.code()) => refused(error),
                Err(error) => error.into(),
            });
        };
        if found.is_expired(now) {
            return Err(refused(CommonError::Key(Code::KeyExpired).into()));
        }
        rate_limit::count_platform(&limiter, parts, &hash)?;
        permits::prove_platform(parts, hash)?;
        let route = parts.extensions.get::<MatchedPath>().map_or("", MatchedPath::as_str);
        let principal = Principal {
            at: now,
            kind: "platform",
            id: None,
            key: Some(found.id().to_string()),
            // The owner of the account reads it: where the platform is run from is not told.
            network: None,
            request: info.map(|info| info.id.to_string()),
            operation: format!("{} {route}", parts.method),
        };
        let author = format!("key {}", found.label);
        Ok(Self(By { ctx: Ctx::default().with_principal(principal), author, now }))
    }
}
