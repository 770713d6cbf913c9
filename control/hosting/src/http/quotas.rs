//! HTTP: quotas of accounts, set by the platform operator.

use std::collections::HashMap;

use axum::{Json, extract::State};
use serde::Serialize;
use serde_json::Value;
use serde_with_macros::skip_serializing_none;
use tenants::http::quotas::QuotasDocument;
use utoipa::ToSchema;
use web::{
    api_error::ApiError,
    extract::{JsonBody, Path},
};

use super::access::PlatformCaller;
use crate::{
    domain::{
        quota::{Quota, Setting},
        quota_change::parse_quotas,
    },
    service::{Redirects, quotas as service, quotas_of_accounts},
};

/// What all accounts may have for which nothing else was set; what is absent has no limit.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct DefaultQuotasDocument {
    /// Things.
    #[schema(example = 1_000_000)]
    things: Option<u64>,
    /// Redirections.
    links: Option<u64>,
    /// Bytes of files.
    storage_bytes: Option<u64>,
    /// Users of applications.
    users: Option<u64>,
    /// Short domains that the account has claimed itself.
    short_domains: Option<u64>,
    /// Scans that are stored in a day.
    scans_per_day: Option<u64>,
    /// Values of properties, and actions other than scans, in a day.
    events_per_day: Option<u64>,
    /// Open event streams, exports, WebSockets and MQTT connections.
    streams: Option<u64>,
    /// Uploads of files at one time.
    uploads: Option<u64>,
}

impl From<HashMap<Quota, u64>> for DefaultQuotasDocument {
    fn from(limits: HashMap<Quota, u64>) -> Self {
        let limit = |quota: Quota| limits.get(&quota).copied();
        Self {
            things: limit(Quota::Things),
            links: limit(Quota::Links),
            storage_bytes: limit(Quota::StorageBytes),
            users: limit(Quota::Users),
            short_domains: limit(Quota::ShortDomains),
            scans_per_day: limit(Quota::ScansPerDay),
            events_per_day: limit(Quota::EventsPerDay),
            streams: limit(Quota::Streams),
            uploads: limit(Quota::Uploads),
        }
    }
}

/// Reads the quotas of an account, with their use.
#[utoipa::path(get, path = "/platform/accounts/{id}/quotas", tag = "Platform", security(("key" = [])), operation_id = "readHostedAccountQuotas",
    params(("id" = String, Path, description = "Id of the account")),
    responses((status = 200, description = "Each quota, with its use", body = QuotasDocument)))]
pub(super) async fn read(
    State(redirects): State<Redirects>,
    _by: PlatformCaller,
    Path(id): Path<String>,
) -> Result<Json<QuotasDocument>, ApiError> {
    let account = service::find_account(&redirects.db, &id).await?;
    let usages = quotas_of_accounts::list(&redirects, account).await?;
    Ok(Json(QuotasDocument::new(usages, redirects.clock.now())))
}

/// Sets quotas of an account; those that are not named stay.
///
/// A limit below the use forbids what is new and removes nothing. `unlimited` lifts a limit, whatever all accounts have, and
/// `default` gives the account what all accounts have.
#[utoipa::path(put, path = "/platform/accounts/{id}/quotas", tag = "Platform", security(("key" = [])), operation_id = "setAccountQuotas",
    params(("id" = String, Path, description = "Id of the account")),
    request_body(content = Object, description = "The quotas to change"),
    responses((status = 200, description = "Each quota, with its use", body = QuotasDocument)))]
pub(super) async fn set(
    State(redirects): State<Redirects>,
    PlatformCaller(by): PlatformCaller,
    Path(id): Path<String>,
    JsonBody(body): JsonBody,
) -> Result<Json<QuotasDocument>, ApiError> {
    let changes = parse(&body)?;
    let account = service::set(&redirects.db, &by, &id, &changes).await?;
    let usages = quotas_of_accounts::list(&redirects, account).await?;
    Ok(Json(QuotasDocument::new(usages, redirects.clock.now())))
}

/// Reads the quotas of all accounts for which nothing else was set.
#[utoipa::path(get, path = "/platform/quotas", tag = "Platform", security(("key" = [])), operation_id = "readDefaultQuotas",
    responses((status = 200, description = "The limits", body = DefaultQuotasDocument)))]
pub(super) async fn read_defaults(
    State(redirects): State<Redirects>,
    _by: PlatformCaller,
) -> Result<Json<DefaultQuotasDocument>, ApiError> {
    Ok(Json(service::list_defaults(&redirects.db).await?.into()))
}

/// Sets quotas of all accounts for which nothing else was set; those that are not named stay.
///
/// What the accounts hold is counted in the background, and nothing is refused until then.
#[utoipa::path(put, path = "/platform/quotas", tag = "Platform", security(("key" = [])), operation_id = "setDefaultQuotas",
    request_body(content = Object, description = "The quotas to change"),
    responses((status = 200, description = "The limits", body = DefaultQuotasDocument)))]
pub(super) async fn set_defaults(
    State(redirects): State<Redirects>,
    PlatformCaller(by): PlatformCaller,
    JsonBody(body): JsonBody,
) -> Result<Json<DefaultQuotasDocument>, ApiError> {
    service::set_defaults(&redirects.db, &by, &parse(&body)?).await?;
    Ok(Json(service::list_defaults(&redirects.db).await?.into()))
}

fn parse(body: &Value) -> Result<Vec<(Quota, Setting)>, ApiError> {
    parse_quotas(body).map_err(ApiError::invalid)
}
