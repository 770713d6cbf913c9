//! HTTP: accepts invitations of operators; the code stands for a key.

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use tenants::http::operators::OperatorDocument;
use utoipa::ToSchema;
use web::{api_error::ApiError, extract::JsonBody, request_info::RequestInfo};

use crate::{
    domain::sign_in_body::Acceptance,
    service::{SignInState, invitations},
};

/// What accepts an invitation.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "the fields describe the body, which the domain reads")]
pub(super) struct AcceptanceDocument {
    /// The code of the invitation.
    code: String,
    /// First name, at most 256 characters.
    first_name: Option<String>,
    /// Last name, at most 256 characters.
    last_name: Option<String>,
    /// A password to sign in with: 12 to 256 characters, and none that many people have.
    password: Option<String>,
}

/// An operator who has accepted, with the first key.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AcceptedDocument {
    #[serde(flatten)]
    operator: OperatorDocument,
    /// The first key of the operator, 80 characters. It is not stored and cannot be read again.
    #[schema(read_only)]
    api_key: String,
}

/// Accepts an invitation. Needs no key; the code works once.
#[utoipa::path(post, path = "/invitations", tag = "Accounts", operation_id = "acceptInvitation", security(()),
    request_body = AcceptanceDocument,
    responses((status = 200, description = "The operator, with the first key", body = AcceptedDocument)))]
pub(super) async fn accept(
    State(state): State<SignInState>,
    info: RequestInfo,
    JsonBody(body): JsonBody,
) -> Result<Json<AcceptedDocument>, ApiError> {
    let acceptance = Acceptance::parse(&body).map_err(ApiError::invalid)?;
    let shown = invitations::accept(&state, acceptance, info.client, Some(info.id.to_string())).await?;
    Ok(Json(AcceptedDocument { operator: shown.operator.into(), api_key: shown.secret }))
}
