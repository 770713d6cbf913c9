//! HTTP: the second factor of the operator who is signed in.

use axum::{Extension, Json, extract::State};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use web::{api_error::ApiError, extract::JsonBody, rate_limit::Ledger};

use super::{extract::SignedIn, throttled::throttled};
use crate::{
    domain::sign_in_body::{Confirmation, parse_code},
    service::{SignInState, second_factor},
};

/// The password again.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "the fields describe the body, which the domain reads")]
pub(super) struct PasswordDocument {
    /// The password.
    password: String,
}

/// A code of the authenticator.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "the fields describe the body, which the domain reads")]
pub(super) struct CodeDocument {
    /// Six digits; each code works once.
    code: String,
}

/// The password and the second factor again.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "the fields describe the body, which the domain reads")]
pub(super) struct BothFactorsDocument {
    /// The password.
    password: String,
    /// A code of the authenticator.
    code: Option<String>,
    /// A recovery code in its place.
    recovery_code: Option<String>,
}

/// An authenticator that begins.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EnrolmentDocument {
    /// The secret in base32. It cannot be read again.
    #[schema(read_only)]
    secret: String,
    /// What a QR code for authenticator apps holds.
    #[schema(
        read_only,
        example = "otpauth://totp/Waymark:ada@example.com?secret=GEZDGNBVGY3TQOJQ&issuer=Waymark"
    )]
    otpauth_url: String,
}

/// Recovery codes.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RecoveryCodesDocument {
    /// Ten codes, each of which works once. They cannot be read again.
    #[schema(read_only, example = json!(["abcd-efgh-jkmn-pqrs"]))]
    recovery_codes: Vec<String>,
}

/// What turning it off answers.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SecondFactorDocument {
    /// `false`: it is off.
    second_factor: bool,
}

/// Begins a second factor: gives the secret for an authenticator app. It is on once `PUT` confirms it by a code. For the
/// console; takes the cookie of a session.
#[utoipa::path(post, path = "/console/api/totp", tag = "Console", operation_id = "beginSecondFactor",
    security(("session" = [])), request_body = PasswordDocument,
    responses((status = 200, description = "The secret, which is shown this once", body = EnrolmentDocument)))]
pub(super) async fn begin(
    State(state): State<SignInState>,
    SignedIn { caller, .. }: SignedIn,
    Extension(ledger): Extension<Ledger>,
    JsonBody(body): JsonBody,
) -> Result<Json<EnrolmentDocument>, ApiError> {
    let read = Confirmation::of_password(&body).map_err(ApiError::invalid)?;
    let begun = second_factor::enrol(&state, &caller, read).await;
    let begun = begun.map_err(|error| throttled(error, &ledger))?;
    Ok(Json(EnrolmentDocument { secret: begun.secret, otpauth_url: begun.url }))
}

/// Turns the second factor on by a code of the authenticator, and ends the other sessions of the operator. For the console;
/// takes the cookie of a session.
#[utoipa::path(put, path = "/console/api/totp", tag = "Console", operation_id = "confirmSecondFactor",
    security(("session" = [])), request_body = CodeDocument,
    responses((status = 200, description = "Recovery codes, which are shown this once", body = RecoveryCodesDocument)))]
pub(super) async fn confirm(
    State(state): State<SignInState>,
    SignedIn { caller, hash }: SignedIn,
    Extension(ledger): Extension<Ledger>,
    JsonBody(body): JsonBody,
) -> Result<Json<RecoveryCodesDocument>, ApiError> {
    let code = parse_code(&body).map_err(ApiError::invalid)?;
    let codes = second_factor::confirm(&state, &caller, &hash, &code).await;
    let recovery_codes = codes.map_err(|error| throttled(error, &ledger))?;
    Ok(Json(RecoveryCodesDocument { recovery_codes }))
}

/// Turns the second factor off. For the console; takes the cookie of a session.
#[utoipa::path(post, path = "/console/api/totp/disable", tag = "Console", operation_id = "disableSecondFactor",
    security(("session" = [])), request_body = BothFactorsDocument,
    responses((status = 200, description = "It is off", body = SecondFactorDocument)))]
pub(super) async fn disable(
    State(state): State<SignInState>,
    SignedIn { caller, .. }: SignedIn,
    Extension(ledger): Extension<Ledger>,
    JsonBody(body): JsonBody,
) -> Result<Json<SecondFactorDocument>, ApiError> {
    let read = Confirmation::of_both(&body).map_err(ApiError::invalid)?;
    let done = second_factor::disable(&state, &caller, read).await;
    done.map_err(|error| throttled(error, &ledger))?;
    Ok(Json(SecondFactorDocument { second_factor: false }))
}

/// Replaces the recovery codes. For the console; takes the cookie of a session.
#[utoipa::path(post, path = "/console/api/recoveryCodes", tag = "Console", operation_id = "renewRecoveryCodes",
    security(("session" = [])), request_body = BothFactorsDocument,
    responses((status = 200, description = "Recovery codes, which are shown this once", body = RecoveryCodesDocument)))]
pub(super) async fn renew(
    State(state): State<SignInState>,
    SignedIn { caller, .. }: SignedIn,
    Extension(ledger): Extension<Ledger>,
    JsonBody(body): JsonBody,
) -> Result<Json<RecoveryCodesDocument>, ApiError> {
    let read = Confirmation::of_both(&body).map_err(ApiError::invalid)?;
    let codes = second_factor::renew_codes(&state, &caller, read).await;
    let recovery_codes = codes.map_err(|error| throttled(error, &ledger))?;
    Ok(Json(RecoveryCodesDocument { recovery_codes }))
}
