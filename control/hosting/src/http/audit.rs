//! HTTP: the audit trail of the platform.

use axum::{extract::State, response::Response};
use tenants::http::audit::AuditEntryDocument;
use web::{
    api_error::ApiError, extract::Query, listing::Listing, openapi::PageParams, request_info::RequestInfo,
};

use super::{access::PlatformCaller, accounts::OWNER};
use crate::{
    domain::listing::AUDIT,
    service::{Redirects, audit as service},
};

/// Lists what was done to the platform and to no single account, such as take-downs of hosts and keys of the platform,
/// newest first.
///
/// What concerns an account is in its own trail.
#[utoipa::path(get, path = "/platform/audit", tag = "Platform", security(("key" = [])), operation_id = "listPlatformAuditEntries",
    params(PageParams,
        ("filter" = Option<String>, Query, description = "By `createdAt`, `actor`, `key`, `operation`, `resource`, `resourceId` and `requestId`")),
    responses((status = 200, description = "One page", body = [AuditEntryDocument])))]
pub(super) async fn list(
    State(redirects): State<Redirects>,
    _by: PlatformCaller,
    info: RequestInfo,
    query: Query,
) -> Result<Response, ApiError> {
    let listing = Listing::parse_of(&redirects, OWNER, info, &query, &AUDIT)?;
    let page = service::list(&redirects, &listing.request).await?;
    Ok(listing.answer(&redirects, page, AuditEntryDocument::from))
}
