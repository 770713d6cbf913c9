//! HTTP: the sessions of the operator who is signed in.

use axum::{Json, extract::State};
use kernel::domain::api_key::KeyId;
use serde::Serialize;
use utoipa::ToSchema;
use web::{api_error::ApiError, extract::Path};

use super::extract::SignedIn;
use crate::{
    domain::session::Session,
    service::{SignInState, sessions},
};

/// A session.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SessionDocument {
    /// Its id.
    #[schema(example = "9F86D081884C7D659A2FEAA0")]
    id: String,
    /// When it began, in milliseconds since 1970.
    created_at: i64,
    /// When it was last used, to five minutes.
    last_used_at: i64,
    /// When it ends unless it is used.
    expires_at: i64,
    /// The network from which it began.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "192.0.2.0/24")]
    network: Option<String>,
    /// The family of the browser, and its system.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "Firefox, Linux")]
    agent: Option<String>,
    /// Whether it is the one by which the request came.
    current: bool,
}

impl SessionDocument {
    fn new(session: Session, current: &[u8; 32]) -> Self {
        Self {
            id: KeyId::of(&session.hash).to_string(),
            created_at: session.created_at.0,
            last_used_at: session.last_used_at.0,
            expires_at: session.expires_at.0,
            current: session.hash == *current,
            network: session.network,
            agent: session.agent,
        }
    }
}

/// The sessions of the operator who is signed in, oldest first; at most 20. For the console; takes the cookie of a session.
#[utoipa::path(get, path = "/console/api/sessions", tag = "Console", operation_id = "readSessions",
    security(("session" = [])),
    responses((status = 200, description = "The sessions that work", body = [SessionDocument])))]
pub(super) async fn read_all(
    State(state): State<SignInState>,
    SignedIn { caller, hash }: SignedIn,
) -> Result<Json<Vec<SessionDocument>>, ApiError> {
    let listed = sessions::list(&state, &caller).await?;
    Ok(Json(listed.into_iter().map(|session| SessionDocument::new(session, &hash)).collect()))
}

/// Ends a session of the operator who is signed in. For the console; takes the cookie of a session.
#[utoipa::path(delete, path = "/console/api/sessions/{id}", tag = "Console", operation_id = "endSession",
    params(("id" = String, Path, description = "Id of the session")),
    security(("session" = [])),
    responses((status = 200, description = "Ended; the body is empty")))]
pub(super) async fn end(
    State(state): State<SignInState>,
    SignedIn { caller, .. }: SignedIn,
    Path(id): Path<String>,
) -> Result<(), ApiError> {
    Ok(sessions::end(&state, &caller, &id).await?)
}
