//! Authentication of requests by their key, and `GET /access`.

use std::sync::Arc;

use axum::{
    Json,
    extract::FromRequestParts,
    http::{HeaderMap, header, request::Parts},
};
use serde::Serialize;
use shared::problem::Code;
use utoipa::ToSchema;

use super::{api_error::ApiError, extract::pairs, middleware::RequestInfo, permits, rate_limit};
use crate::{
    domain::{
        access::hash_key,
        api_key::{KnownKey, is_of_key},
        permission::{Subject, Verb},
    },
    error::ServiceError,
    service::{
        App,
        access::{self, Caller},
    },
    store::{Ctx, claim::Claim},
};

/// The query parameter that may replace the header.
pub(super) const TOKEN_PARAMETER: &str = "access_token";

/// The caller behind the key of a request.
#[derive(Debug, Clone)]
pub(super) struct Authenticated(pub(super) Caller);

impl FromRequestParts<Arc<App>> for Authenticated {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, ApiError> {
        let Some(key) = find_key(&parts.headers, parts.uri.query()) else {
            let refusal = ServiceError::refused(Code::KeyMissing, "No API key was sent.");
            return Err(rate_limit::count_refusal(app, parts, refusal).into());
        };
        let client = parts.extensions.get::<RequestInfo>().and_then(|info| info.client);
        match access::identify_key(app, &key, client).await {
            Ok(KnownKey { actor, bounds }) => {
                let hash = hash_key(&key);
                rate_limit::count(app, parts, &actor, &hash)?;
                permits::prove(parts, &actor, hash)?;
                let claim = parts.extensions.get::<Arc<Claim>>().cloned();
                let ctx = claim.map_or_else(Ctx::default, |claim| Ctx::default().with_claim(claim));
                Ok(Self(Caller { actor, ctx, bounds }))
            }
            Err(error) if is_of_key(error.code()) => Err(rate_limit::count_refusal(app, parts, error).into()),
            Err(error) => Err(error.into()),
        }
    }
}

/// The key that a request came with; never shown.
pub(super) struct SentKey(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for SentKey {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        find_key(&parts.headers, parts.uri.query())
            .map(Self)
            .ok_or_else(|| ApiError::refused(Code::KeyMissing, "No API key was sent."))
    }
}

/// Whether a request carries a key at all, be it known or not.
pub(super) fn has_key(headers: &HeaderMap, query: Option<&str>) -> bool {
    find_key(headers, query).is_some()
}

/// The key in `Authorization: KEY | Token KEY | Bearer KEY`, else in `access_token`.
pub(super) fn find_key(headers: &HeaderMap, query: Option<&str>) -> Option<String> {
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

/// Who a key belongs to.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AccessDocument {
    /// Id of the account.
    #[schema(example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    account: String,
    /// Id of the project that the key is confined to.
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    actor: ActorDocument,
}

/// Who acts with a key.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ActorDocument {
    /// `operator`, `app`, `userInApp` or `thng`.
    #[serde(rename = "type")]
    #[schema(example = "operator")]
    kind: &'static str,
    /// Id of the operator, application, user or Thng.
    #[schema(example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    id: String,
}

/// Says who the key belongs to.
#[utoipa::path(get, path = "/access", tag = "Access", operation_id = "readAccess",
    responses((status = 200, description = "The account and the actor", body = AccessDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn read(Authenticated(caller): Authenticated) -> Result<Json<AccessDocument>, ApiError> {
    let _ = access::require(&caller, Verb::Read, Subject::Access)?;
    let document = AccessDocument {
        account: caller.account.to_string(),
        project: caller.project.map(|id| id.to_string()),
        actor: ActorDocument { kind: caller.kind.as_actor_type(), id: caller.actor.id },
    };
    Ok(Json(document))
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
