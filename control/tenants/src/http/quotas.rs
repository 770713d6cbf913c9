//! HTTP: the quotas of an account, and their use.

use std::sync::Arc;

use axum::{Json, extract::State};
use serde::Serialize;
use serde_with_macros::skip_serializing_none;
use shared::time::UnixMillis;
use utoipa::ToSchema;
use web::{access::Authenticated, api_error::ApiError, extract::Path};

use crate::{
    domain::quota::{Nature, Quota, Usage, next_day},
    service::{Core, tenants},
};

/// The limit of an account for a quota, and its use.
#[skip_serializing_none]
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuotaDocument {
    /// How much the account may have; absent is any amount.
    #[schema(example = 1_000_000)]
    limit: Option<u64>,
    /// Whether it was set for this account and not for all.
    #[schema(example = false)]
    own: bool,
    /// How much the account has: by now, or today. Absent while it is counted for the first time, and for `eventsPerDay`
    /// without a limit.
    #[schema(example = 41_230)]
    used: Option<u64>,
    /// Without a limit at most 100,000 are counted: there are more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    more: bool,
    /// Scans above the quota today: they were redirected and are in `hits`, and were not stored.
    not_stored: Option<u64>,
    /// When the day is over, in milliseconds since 1970: quotas of a day begin again at midnight in UTC.
    #[schema(example = 1_767_225_600_000_i64)]
    resets_at: Option<i64>,
}

impl QuotaDocument {
    fn new(usage: Usage, now: UnixMillis) -> Self {
        let is_daily = usage.quota.nature() == Nature::Daily;
        Self {
            limit: usage.limit,
            own: usage.is_own,
            used: usage.used,
            more: usage.is_at_least,
            not_stored: (usage.quota == Quota::ScansPerDay).then_some(usage.over),
            resets_at: is_daily.then(|| next_day(now).0),
        }
    }
}

/// The quotas of an account.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QuotasDocument {
    /// Things.
    things: QuotaDocument,
    /// Redirections.
    links: QuotaDocument,
    /// Bytes of files.
    storage_bytes: QuotaDocument,
    /// Users of applications.
    users: QuotaDocument,
    /// Short domains that the account has claimed itself.
    short_domains: QuotaDocument,
    /// Scans that are stored in a day: those of edges, and `scans` that a key writes.
    scans_per_day: QuotaDocument,
    /// Values of properties, and actions other than scans, in a day.
    events_per_day: QuotaDocument,
    /// Open event streams, exports, WebSockets and MQTT connections.
    streams: QuotaDocument,
    /// Uploads of files at one time.
    uploads: QuotaDocument,
}

impl QuotasDocument {
    /// How an account stands.
    #[must_use]
    pub fn new(usages: Vec<Usage>, now: UnixMillis) -> Self {
        let mut all = Self::default();
        for usage in usages {
            let one = match usage.quota {
                Quota::Things => &mut all.things,
                Quota::Links => &mut all.links,
                Quota::StorageBytes => &mut all.storage_bytes,
                Quota::Users => &mut all.users,
                Quota::ShortDomains => &mut all.short_domains,
                Quota::ScansPerDay => &mut all.scans_per_day,
                Quota::EventsPerDay => &mut all.events_per_day,
                Quota::Streams => &mut all.streams,
                Quota::Uploads => &mut all.uploads,
            };
            *one = QuotaDocument::new(usage, now);
        }
        all
    }
}

// Spec gap: the platform API shows no quotas.
/// Says how much an account may have, and how much it has.
///
/// Limits are set by the platform operator. What would exceed one is refused by an error that names the quota, its
/// limit and its use: 403 for what an account holds, 429 with `Retry-After` for what it writes in a day or has open.
#[utoipa::path(get, path = "/accounts/{id}/quotas", tag = "Accounts", operation_id = "readAccountQuotas",
    params(("id" = String, Path, description = "Id of the account")),
    responses((status = 200, description = "Each quota, with its use", body = QuotasDocument)))]
pub(super) async fn read(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Json<QuotasDocument>, ApiError> {
    let usages = tenants::list_quotas(&core, &caller, &id).await?;
    Ok(Json(QuotasDocument::new(usages, core.clock.now())))
}
