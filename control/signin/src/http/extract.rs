//! Extractors: requests that passed the gate, and who is signed in.

use axum::{
    extract::{FromRef, FromRequestParts},
    http::{header, request::Parts},
};
use kernel::domain::access::hash_key;
use web::{
    access::{Access, Authenticated, SentKey},
    api_error::ApiError,
    request_info::RequestInfo,
};

use super::gate::Passed;
use crate::{
    error::SignInFault,
    service::{access::Caller, sign_in::Client},
};

/// A request that passed the gate, and where it comes from.
pub struct Visitor(pub Client);

impl<S: Send + Sync> FromRequestParts<S> for Visitor {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let Passed(token) = token_of(parts)?.clone();
        let info = parts.extensions.get::<RequestInfo>();
        let user_agent = parts.headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
        Ok(Self(Client {
            address: info.and_then(|info| info.client),
            limited_as: info.and_then(|info| info.limited_as),
            request: info.map(|info| info.id.to_string()),
            user_agent: user_agent.map(str::to_owned),
            token,
        }))
    }
}

/// Who is signed in, and the hash of the key of the session.
pub struct SignedIn {
    /// The operator, by the key of the session.
    pub caller: Caller,
    /// The hash of this key.
    pub hash: [u8; 32],
}

impl<S: Send + Sync> FromRequestParts<S> for SignedIn
where
    Access: FromRef<S>,
{
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        if token_of(parts)?.0.is_none() {
            return Err(SignInFault::NobodySignedIn.into());
        }
        let Authenticated(caller) = Authenticated::from_request_parts(parts, state).await?;
        let SentKey(key) = SentKey::from_request_parts(parts, state).await?;
        Ok(Self { caller, hash: hash_key(&key) })
    }
}

/// The gate opens sessions: a path that gets here by another way has none.
fn token_of(parts: &Parts) -> Result<&Passed, SignInFault> {
    parts.extensions.get::<Passed>().ok_or(SignInFault::OutsideConsole)
}
