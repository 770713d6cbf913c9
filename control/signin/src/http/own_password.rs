//! HTTP: the password of the operator who asks.

use axum::{Extension, extract::State};
use serde::Deserialize;
use utoipa::ToSchema;
use web::{
    access::{Authenticated, SentKey},
    api_error::ApiError,
    extract::JsonBody,
    rate_limit::Ledger,
};

use super::throttled::throttled;
use crate::{
    domain::password_body::PasswordChange,
    service::{SignInState, own_passwords},
};

/// The password of the caller.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "the fields describe the body, which the domain reads")]
pub(super) struct OwnPasswordDocument {
    /// The password until now.
    password: String,
    /// The new password: 12 to 256 characters, and none that many people have.
    new_password: String,
}

/// Changes the password with which the operator whose key it is signs in. Its sessions end, but for that by which the request
/// comes. The first password comes with an invitation, or by a code from the platform operator: no key sets one.
#[utoipa::path(put, path = "/me/password", tag = "Accounts", operation_id = "setMyPassword",
    request_body = OwnPasswordDocument,
    responses((status = 200, description = "Changed; the body is empty"),
        (status = 409, description = "The operator has no password to change, or is a program")))]
pub(super) async fn change(
    State(state): State<SignInState>,
    Authenticated(caller): Authenticated,
    SentKey(key): SentKey,
    Extension(ledger): Extension<Ledger>,
    JsonBody(body): JsonBody,
) -> Result<(), ApiError> {
    let change = PasswordChange::parse(&body).map_err(ApiError::invalid)?;
    let changed = own_passwords::change(&state, &caller, &key, change).await;
    changed.map_err(|error| throttled(error, &ledger))
}
