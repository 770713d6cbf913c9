//! HTTP: another password by a code from the mailbox.

use axum::{Extension, Json, extract::State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use web::{api_error::ApiError, extract::JsonBody, rate_limit::Ledger};

use super::{extract::Visitor, throttled::throttled};
use crate::{
    domain::{password_body::Reset, sign_in_body::ResetRequest},
    service::{SignInState, resets},
};

/// Whose password shall be reset.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "the fields describe the body, which the domain reads")]
pub(super) struct OperatorResetRequestDocument {
    /// The address of the operator.
    email: String,
    /// Id of the account; left out, each account gets a code in which the address has a password, at most five.
    account: Option<String>,
}

/// A password by the code of a mail.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "the fields describe the body, which the domain reads")]
pub(super) struct OperatorResetDocument {
    /// The code from the mail; it works once, within an hour.
    code: String,
    /// The new password: 12 to 256 characters, and none that many people have.
    password: String,
}

/// What a reset answers.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct OperatorResetStateDocument {
    /// `requested`: an operator with this address gets a mail. `done`: the password is set.
    #[schema(example = "requested")]
    password_reset: &'static str,
}

/// Sends a code for another password to the mailbox of an operator, for the console; the answer is the same for an address
/// that nobody has.
#[utoipa::path(post, path = "/console/api/passwordReset", tag = "Console", operation_id = "requestOperatorPasswordReset",
    security(()), request_body = OperatorResetRequestDocument,
    responses((status = 200, description = "An operator with this address gets a mail, at most three an hour",
        body = OperatorResetStateDocument)))]
pub(super) async fn request(
    State(state): State<SignInState>,
    Visitor(client): Visitor,
    Extension(ledger): Extension<Ledger>,
    JsonBody(body): JsonBody,
) -> Result<Json<OperatorResetStateDocument>, ApiError> {
    let asked = ResetRequest::parse(&body).map_err(ApiError::invalid)?;
    let done = resets::request(&state, asked, &client).await;
    done.map_err(|error| throttled(error, &ledger))?;
    Ok(Json(OperatorResetStateDocument { password_reset: "requested" }))
}

/// Sets another password by the code of a mail, for the console. Every session of the operator ends, and every pause after
/// wrong passwords; a second factor stays on.
#[utoipa::path(put, path = "/console/api/passwordReset", tag = "Console", operation_id = "resetOperatorPassword",
    security(()), request_body = OperatorResetDocument,
    responses((status = 200, description = "Set: sign in with it", body = OperatorResetStateDocument)))]
pub(super) async fn reset(
    State(state): State<SignInState>,
    Visitor(client): Visitor,
    JsonBody(body): JsonBody,
) -> Result<Json<OperatorResetStateDocument>, ApiError> {
    let reset = Reset::parse(&body).map_err(ApiError::invalid)?;
    resets::reset(&state, reset, &client).await?;
    Ok(Json(OperatorResetStateDocument { password_reset: "done" }))
}
