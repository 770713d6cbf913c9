//! HTTP: another password, by a code from the mailbox or by the old one.

use axum::{Extension, Json, extract::State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use web::{
    access::{Authenticated, SentKey},
    api_error::ApiError,
    extract::{JsonBody, Path},
    rate_limit::Ledger,
    request_info::RequestInfo,
};

use tenants::http::throttled;

use super::logins::LoginDocument;
use crate::{
    domain::{
        password_body::{PasswordChange, Reset},
        user_codes::parse_reset_request,
    },
    service::{user_passwords, users::Users},
};

/// Whose password shall be reset.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "the fields describe the body, which the domain reads")]
pub(super) struct ResetRequestDocument {
    /// The address of the registration.
    #[schema(example = "ada@example.com")]
    email: String,
}

/// What a request for a reset answers.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResetRequestedDocument {
    /// `requested`: a user with this address gets a mail.
    #[schema(example = "requested")]
    password_reset: &'static str,
}

/// A password by the code of a mail.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "the fields describe the body, which the domain reads")]
pub(super) struct ResetDocument {
    /// The code from the mail; it works once, within an hour.
    code: String,
    /// The new password: 12 to 256 characters, and none that many people have.
    #[schema(example = "a long sentence is best")]
    password: String,
}

/// A change of the own password.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "the fields describe the body, which the domain reads")]
pub(super) struct PasswordChangeDocument {
    /// The password until now.
    #[schema(example = "a long sentence is best")]
    password: String,
    /// The new password: 12 to 256 characters, and none that many people have.
    #[schema(example = "a longer sentence is better")]
    new_password: String,
}

/// Sends a code for another password to the mailbox of a user; the answer is the same for an address that nobody has.
#[utoipa::path(post, path = "/users/passwordReset", tag = "Users", operation_id = "requestPasswordReset",
    request_body = ResetRequestDocument,
    responses((status = 200, description = "A user with this address gets a mail, at most three an hour",
        body = ResetRequestedDocument)))]
pub(super) async fn request_reset(
    State(users): State<Users>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    Extension(ledger): Extension<Ledger>,
    JsonBody(body): JsonBody,
) -> Result<Json<ResetRequestedDocument>, ApiError> {
    let email = parse_reset_request(&body).map_err(ApiError::invalid)?;
    let asked = user_passwords::request_reset(&users, &caller, &email, info.limited_as).await;
    asked.map_err(|error| throttled(error, &ledger))?;
    Ok(Json(ResetRequestedDocument { password_reset: "requested" }))
}

/// Sets another password by the code of a mail, ends every login of the user, and logs it in.
#[utoipa::path(put, path = "/users/passwordReset", tag = "Users", operation_id = "resetPassword",
    request_body = ResetDocument,
    responses((status = 200, description = "The user and the key of this login", body = LoginDocument)))]
pub(super) async fn reset(
    State(users): State<Users>,
    Authenticated(caller): Authenticated,
    JsonBody(body): JsonBody,
) -> Result<Json<LoginDocument>, ApiError> {
    let reset = Reset::parse(&body).map_err(ApiError::invalid)?;
    Ok(Json(user_passwords::reset(&users, &caller, reset).await?.into()))
}

/// Changes the password of the user whose key this is; every other login of the user ends.
#[utoipa::path(put, path = "/users/{id}/password", tag = "Users", operation_id = "changePassword",
    params(("id" = String, Path, description = "Id of the user")),
    request_body = PasswordChangeDocument,
    responses((status = 200, description = "Changed; the body is empty")))]
pub(super) async fn change(
    State(users): State<Users>,
    Authenticated(caller): Authenticated,
    SentKey(key): SentKey,
    Path(id): Path<String>,
    Extension(ledger): Extension<Ledger>,
    JsonBody(body): JsonBody,
) -> Result<(), ApiError> {
    let change = PasswordChange::parse(&body).map_err(ApiError::invalid)?;
    let changed = user_passwords::change(&users, &caller, &key, &id, change).await;
    changed.map_err(|error| throttled(error, &ledger))
}
