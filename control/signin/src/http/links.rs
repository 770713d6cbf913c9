//! HTTP: signs in by the link that a start prints.

use axum::{
    Json,
    extract::State,
    http::{HeaderName, header},
};
use serde::Deserialize;
use utoipa::ToSchema;
use web::{api_error::ApiError, extract::JsonBody};

use super::{extract::Visitor, session::BegunDocument};
use crate::{
    domain::sign_in_body::parse_code,
    service::{SignInState, links},
};

/// The code of a link.
#[derive(Deserialize, ToSchema)]
#[expect(dead_code, reason = "the field describes the body, which the domain reads")]
pub(super) struct LinkDocument {
    /// The code: what stands behind `#sign-in=` in the link.
    code: String,
}

/// Signs the first owner in by the link that `waymark up` prints, for the console. It works once, within 15 minutes, and
/// while no second factor is on; the answer sets the cookie of a session.
#[utoipa::path(post, path = "/console/api/session/link", tag = "Console", operation_id = "signInByLink", security(()),
    request_body = LinkDocument,
    responses((status = 200, description = "The operator; `Set-Cookie` has the session", body = BegunDocument),
        (status = 401, description = "The link was used or has expired (40103)")))]
pub(super) async fn sign_in(
    State(state): State<SignInState>,
    Visitor(client): Visitor,
    JsonBody(body): JsonBody,
) -> Result<([(HeaderName, String); 1], Json<BegunDocument>), ApiError> {
    let code = parse_code(&body).map_err(ApiError::invalid)?;
    let begun = links::sign_in(&state, &code, &client).await?;
    let cookie = begun.token.set_cookie();
    Ok(([(header::SET_COOKIE, cookie)], Json(begun.into())))
}
