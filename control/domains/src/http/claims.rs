//! HTTP: claims on hosts.

use std::sync::Arc;

use axum::{Json, extract::State, response::Response};
use web::{
    access::Authenticated,
    api_error::ApiError,
    extract::{JsonBody, Path},
    request_info::RequestInfo,
    wire::created,
};

use super::documents::DomainDocument;
use crate::{
    domain::claim_body,
    service::{DomainState, checks, claims},
};

/// Claims a host as a short domain of the account.
///
/// The answer says which TXT record proves that the host is the account's, and which file does so instead. Either is looked for
/// by itself, first after a minute and then after longer and longer pauses; `POST …/verify` looks at once. Links can be made
/// on the domain when the proof was found. Several accounts may claim one host: the first proof wins. A claim that is not
/// proven ends after 7 days (`endsAt`). A host whose account has lost its proof 30 days ago can be claimed, if no links are on it.
#[utoipa::path(post, path = "/accounts/{id}/shortDomains", tag = "Accounts", operation_id = "createShortDomain",
    params(("id" = String, Path, description = "Id of the account")),
    request_body(content = Object, description = "The host"),
    responses((status = 201, description = "The claim; `Location` is its own", body = DomainDocument),
        (status = 409, description = "The account has it already, or too many, or another account has proven it")))]
pub(super) async fn create(
    State(state): State<Arc<DomainState>>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    Path(id): Path<String>,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let host = claim_body::parse(&body).map_err(ApiError::invalid)?;
    let own = claims::create(&state, &caller, &id, host).await?;
    let host = own.domain.host.to_string();
    Ok(created(&info, &host, DomainDocument::from(own)))
}

/// Looks for the proof of a claim now. The answer is the domain as it is then: `state` says whether the proof was found, and
/// `fault` why not.
///
/// An account can ask for a check of a host every 10 seconds, and of 10 hosts within a minute. A claim counts as a check: the first
/// one can be asked for 10 seconds after it.
#[utoipa::path(post, path = "/accounts/{id}/shortDomains/{domain}/verify", tag = "Accounts", operation_id = "verifyShortDomain",
    params(("id" = String, Path, description = "Id of the account"),
        ("domain" = String, Path, description = "A host that the account has claimed")),
    responses((status = 200, description = "The domain after the check", body = DomainDocument),
        (status = 409, description = "Another account has proven it first, or it was given by whoever runs this service")))]
pub(super) async fn verify(
    State(state): State<Arc<DomainState>>,
    Authenticated(caller): Authenticated,
    Path((id, host)): Path<(String, String)>,
) -> Result<Json<DomainDocument>, ApiError> {
    Ok(Json(checks::verify(&state, &caller, &id, &host).await?.into()))
}

/// Removes a short domain that the account has claimed, or the claim alone if it was not proven.
///
/// A domain that has or had links stays, because their codes may be printed.
#[utoipa::path(delete, path = "/accounts/{id}/shortDomains/{domain}", tag = "Accounts", operation_id = "deleteShortDomain",
    params(("id" = String, Path, description = "Id of the account"),
        ("domain" = String, Path, description = "A short domain of the account, or a host that it has claimed")),
    responses((status = 200, description = "Removed; the body is empty"),
        (status = 409, description = "It has or had links, or was given by whoever runs this service")))]
pub(super) async fn delete(
    State(state): State<Arc<DomainState>>,
    Authenticated(caller): Authenticated,
    Path((id, host)): Path<(String, String)>,
) -> Result<(), ApiError> {
    Ok(claims::delete(&state, &caller, &id, &host).await?)
}
