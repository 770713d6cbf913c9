//! HTTP: the accounts of the platform, and their suspension.

use axum::{Json, extract::State, http::StatusCode, response::Response};
use redirects::http::{Wait, written};
use serde::Serialize;
use utoipa::ToSchema;
use web::{
    api_error::ApiError,
    extract::{JsonBody, Path, Query},
    listing::Listing,
    openapi::PageParams,
    request_info::RequestInfo,
};

use super::access::PlatformCaller;
use crate::{
    domain::{
        hosted_account::{HostedAccount, parse_suspension},
        listing::PLAIN,
    },
    service::{Redirects, accounts as service, redirections::Written},
};

/// Whose pages of lists these are: tokens of other lists do not fit.
pub(super) const OWNER: &str = "platform";

/// An account of the platform.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct HostedAccountDocument {
    /// Its id.
    #[schema(example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    id: String,
    /// Its name.
    #[schema(example = "Acme")]
    name: String,
    /// When it was made, in milliseconds since 1970.
    #[schema(example = 1_767_225_600_000_i64)]
    created_at: i64,
    /// `active` or `suspended`.
    #[schema(example = "active")]
    status: &'static str,
    /// Why it is out of service.
    #[serde(skip_serializing_if = "Option::is_none")]
    suspension: Option<SuspensionDocument>,
}

/// Why an account is out of service.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SuspensionDocument {
    /// The reason.
    #[schema(example = "Its links lead to counterfeit shops")]
    reason: String,
    /// Who suspended it: `command line`, or `key` with the label of a key of the platform.
    #[schema(example = "key trust and safety")]
    by: String,
    /// Since when, in milliseconds since 1970.
    #[schema(example = 1_767_225_600_000_i64)]
    since: i64,
}

impl From<HostedAccount> for HostedAccountDocument {
    fn from(account: HostedAccount) -> Self {
        let suspension = account.suspension.map(|suspension| SuspensionDocument {
            reason: suspension.reason,
            by: suspension.author,
            since: suspension.since.0,
        });
        Self {
            id: account.id.to_string(),
            name: account.name,
            created_at: account.created_at.0,
            status: if suspension.is_some() { "suspended" } else { "active" },
            suspension,
        }
    }
}

/// Lists every account of the platform, newest first.
#[utoipa::path(get, path = "/platform/accounts", tag = "Platform", security(("key" = [])), operation_id = "listHostedAccounts",
    params(PageParams),
    responses((status = 200, description = "One page", body = [HostedAccountDocument])))]
pub(super) async fn list(
    State(redirects): State<Redirects>,
    _by: PlatformCaller,
    info: RequestInfo,
    query: Query,
) -> Result<Response, ApiError> {
    let listing = Listing::parse_of(&redirects, OWNER, info, &query, &PLAIN)?;
    let page = service::list(&redirects.db, listing.request.page).await?;
    Ok(listing.answer(&redirects, page, HostedAccountDocument::from))
}

/// Reads an account of the platform.
#[utoipa::path(get, path = "/platform/accounts/{id}", tag = "Platform", security(("key" = [])), operation_id = "readHostedAccount",
    params(("id" = String, Path, description = "Id of the account")),
    responses((status = 200, description = "The account", body = HostedAccountDocument)))]
pub(super) async fn read(
    State(redirects): State<Redirects>,
    _by: PlatformCaller,
    Path(id): Path<String>,
) -> Result<Json<HostedAccountDocument>, ApiError> {
    Ok(Json(service::read(&redirects.db, &id).await?.into()))
}

/// Takes an account out of service, or changes why it is.
///
/// Within a second its keys are refused (403, code 40303) and its open connections end: other replicas may know a key for
/// 0.8 s, which `?wait=edges` does not wait for. Its links show a page on every edge; its webhooks, reactions, jobs and tasks
/// of batches wait. All of it comes back with `DELETE`.
#[utoipa::path(put, path = "/platform/accounts/{id}/suspension", tag = "Platform", security(("key" = [])), operation_id = "suspendAccount",
    params(("id" = String, Path, description = "Id of the account"),
        ("wait" = Option<String>, Query, description = "`edges`: answer when every edge has the change"),
        ("timeout" = Option<String>, Query, description = "Longest wait, default `2s`")),
    request_body(content = Object, description = "Why"),
    responses((status = 200, description = "The account", body = HostedAccountDocument),
        (status = 202, description = "Suspended; an edge had not confirmed it at the deadline", body = HostedAccountDocument)))]
pub(super) async fn suspend(
    State(redirects): State<Redirects>,
    PlatformCaller(by): PlatformCaller,
    Path(id): Path<String>,
    query: Query,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let wait = Wait::parse(&query)?;
    let reason = parse_suspension(&body).map_err(ApiError::invalid)?;
    let done = service::suspend(&redirects.db, &by, &id, &reason).await?;
    Ok(changed(&redirects, wait, done).await)
}

/// Puts a suspended account into service again.
#[utoipa::path(delete, path = "/platform/accounts/{id}/suspension", tag = "Platform", security(("key" = [])), operation_id = "resumeAccount",
    params(("id" = String, Path, description = "Id of the account"),
        ("wait" = Option<String>, Query, description = "`edges`: answer when every edge has the change"),
        ("timeout" = Option<String>, Query, description = "Longest wait, default `2s`")),
    responses((status = 200, description = "The account", body = HostedAccountDocument),
        (status = 202, description = "In service; an edge had not confirmed it at the deadline", body = HostedAccountDocument)))]
pub(super) async fn resume(
    State(redirects): State<Redirects>,
    PlatformCaller(by): PlatformCaller,
    Path(id): Path<String>,
    query: Query,
) -> Result<Response, ApiError> {
    let wait = Wait::parse(&query)?;
    let done = service::resume(&redirects.db, &by, &id).await?;
    Ok(changed(&redirects, wait, done).await)
}

/// What waits for the change learns of it; then the account.
async fn changed(redirects: &Redirects, wait: Wait, done: Written<HostedAccount>) -> Response {
    redirects.key_lookups.revoked();
    redirects.readers.wake_edges();
    let document = HostedAccountDocument::from(done.value.clone());
    let body = serde_json::to_value(document).unwrap_or_default();
    written(redirects, wait, &done, StatusCode::OK, Some(body)).await
}
