//! HTTP: the identities of the operator who is signed in, and of others for those who manage operators.

use axum::{Json, extract::State};
use serde::Serialize;
use signin::http::extract::SignedIn;
use utoipa::ToSchema;
use web::{access::Authenticated, api_error::ApiError, extract::Path};

use crate::{
    domain::identity::LinkedIdentity,
    service::{OidcState, identities},
};

/// An identity that is linked to an operator.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct IdentityDocument {
    /// Its id.
    #[schema(example = "9F86D081884C7D659A2FEAA0")]
    id: String,
    /// The provider.
    #[schema(example = "https://login.example.com")]
    issuer: String,
    /// Who it is there.
    #[schema(example = "248289761001")]
    subject: String,
    /// The address by which it was linked.
    #[schema(example = "ada@example.com")]
    email: String,
    /// When it was linked, in milliseconds since 1970.
    created_at: i64,
    /// When somebody last signed in with it.
    last_used_at: i64,
}

impl From<LinkedIdentity> for IdentityDocument {
    fn from(identity: LinkedIdentity) -> Self {
        Self {
            id: identity.id(),
            issuer: identity.issuer,
            subject: identity.subject,
            email: identity.email,
            created_at: identity.created_at.0,
            last_used_at: identity.last_used_at.0,
        }
    }
}

/// The identities that are linked to the operator who is signed in, oldest first; at most 20. For the console; takes the
/// cookie of a session.
#[utoipa::path(get, path = "/console/api/identities", tag = "Console", operation_id = "readIdentities",
    security(("session" = [])),
    responses((status = 200, description = "The identities", body = [IdentityDocument])))]
pub(super) async fn read_all(
    State(state): State<OidcState>,
    SignedIn { caller, .. }: SignedIn,
) -> Result<Json<Vec<IdentityDocument>>, ApiError> {
    let listed = identities::list(&state, &caller).await?;
    Ok(Json(listed.into_iter().map(Into::into).collect()))
}

/// Unlinks an identity from the operator who is signed in. Sessions that began with it stay. For the console; takes the
/// cookie of a session.
#[utoipa::path(delete, path = "/console/api/identities/{id}", tag = "Console", operation_id = "unlinkIdentity",
    params(("id" = String, Path, description = "Id of the identity")),
    security(("session" = [])),
    responses((status = 200, description = "Unlinked; the body is empty")))]
pub(super) async fn unlink(
    State(state): State<OidcState>,
    SignedIn { caller, .. }: SignedIn,
    Path(id): Path<String>,
) -> Result<(), ApiError> {
    Ok(identities::unlink(&state, &caller, &id).await?)
}

/// The identities that are linked to an operator, oldest first; at most 20.
#[utoipa::path(get, path = "/accounts/{id}/operatorAccess/{access}/identities", tag = "Accounts",
    operation_id = "readOperatorIdentities",
    params(("id" = String, Path, description = "Id of the account"),
        ("access" = String, Path, description = "Id of the access")),
    responses((status = 200, description = "The identities", body = [IdentityDocument])))]
pub(super) async fn read_of(
    State(state): State<OidcState>,
    Authenticated(caller): Authenticated,
    Path((id, access)): Path<(String, String)>,
) -> Result<Json<Vec<IdentityDocument>>, ApiError> {
    let listed = identities::list_of(&state, &caller, &id, &access).await?;
    Ok(Json(listed.into_iter().map(Into::into).collect()))
}

/// Unlinks an identity from an operator, whose sessions end. The next sign-in links it again if the provider still names the
/// operator's verified address: remove the identity there, or the operator here.
#[utoipa::path(delete, path = "/accounts/{id}/operatorAccess/{access}/identities/{identity}", tag = "Accounts",
    operation_id = "unlinkOperatorIdentity",
    params(("id" = String, Path, description = "Id of the account"),
        ("access" = String, Path, description = "Id of the access"),
        ("identity" = String, Path, description = "Id of the identity")),
    responses((status = 200, description = "Unlinked; the body is empty")))]
pub(super) async fn unlink_of(
    State(state): State<OidcState>,
    Authenticated(caller): Authenticated,
    Path((id, access, identity)): Path<(String, String, String)>,
) -> Result<(), ApiError> {
    Ok(identities::unlink_of(&state, &caller, (&id, &access), &identity).await?)
}
