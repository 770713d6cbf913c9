//! HTTP: accepts invitations of operators; the code stands for a key.

use std::sync::Arc;

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use shared::problem::Code;
use utoipa::ToSchema;
use web::{api_error::ApiError, extract::JsonBody, request_info::RequestInfo};

use super::operators::OperatorDocument;
use crate::{
    domain::operator::parse_acceptance,
    service::{Core, operators},
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
    responses((status = 200, description = "The operator, with the first key", body = AcceptedDocument)),
    extensions(("x-maturity" = json!("Beta"))))]
pub(super) async fn accept(
    State(core): State<Arc<Core>>,
    info: RequestInfo,
    JsonBody(body): JsonBody,
) -> Result<Json<AcceptedDocument>, ApiError> {
    let (code, change) = parse_acceptance(&body).map_err(|faults| ApiError::faults(Code::Invalid, faults))?;
    let shown = operators::accept(&core, &code, change, info.client).await?;
    Ok(Json(AcceptedDocument { operator: shown.operator.into(), api_key: shown.secret }))
}
