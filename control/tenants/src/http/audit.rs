//! HTTP: the audit trail.
//!
//! Spec gap: the platform API shows no operations on it.

use std::sync::Arc;

use axum::{
    body::{Body, Bytes},
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_with_macros::skip_serializing_none;
use utoipa::ToSchema;

use web::{
    access::{Authenticated, SentKey},
    api_error::ApiError,
    extract::Query,
    listing::{Listing, time},
    openapi::PageParams,
    request_info::RequestInfo,
};

use crate::{
    domain::{
        audit::Entry,
        filter::Filter,
        listing::{AUDIT, ListRequest},
        page::{PageRequest, SortOrder},
    },
    error::ServiceError,
    service::{Core, access, audit},
};

/// Entries that an export reads at a time.
const LINES: u32 = 100;

/// An entry of the audit trail: one change, and who made it.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuditEntryDocument {
    /// Its place in the chain of the account, from 1. It gets one within seconds.
    #[schema(example = 4711)]
    number: Option<i64>,
    /// When the request came, in milliseconds since 1970.
    #[schema(example = 1_767_225_600_000_i64)]
    created_at: i64,
    /// The kind of key: `operator`, `projectOperator` or `trustedApp`; or `commandLine`, or `platform` for whoever runs
    /// the service.
    #[schema(example = "operator")]
    actor_type: String,
    /// Id of the operator or application; a command and a key of the platform have none.
    #[schema(example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    actor: Option<String>,
    /// Id of the key.
    #[schema(example = "9F86D081884C7D659A2FEAA0")]
    key: Option<String>,
    /// The network of the client: the first 24 bits of an IPv4 address, the first 48 of IPv6.
    #[schema(example = "192.0.2.0/24")]
    network: Option<String>,
    /// The `X-Request-Id` of the answer.
    request_id: Option<String>,
    /// Method and route, `PUBLISH` for a message of MQTT or a WebSocket, or a command.
    #[schema(example = "PUT /redirections/{shortId}")]
    operation: String,
    /// What was changed.
    #[schema(example = "redirection")]
    resource: String,
    /// Its id.
    #[schema(example = "tn.gg/K7Q2M4XA9R")]
    resource_id: String,
    /// What was before, as far as it differs; missing where something was made.
    #[schema(value_type = Option<Object>, example = json!({"defaultRedirectUrl": "https://example.com/old"}))]
    before: Option<Box<RawValue>>,
    /// What is now, as far as it differs; missing where something was removed.
    #[schema(value_type = Option<Object>, example = json!({"defaultRedirectUrl": "https://example.com/new"}))]
    after: Option<Box<RawValue>>,
}

impl From<Entry> for AuditEntryDocument {
    fn from(entry: Entry) -> Self {
        // What is stored is JSON that we wrote.
        let raw = |text: Option<String>| text.and_then(|text| RawValue::from_string(text).ok());
        Self {
            number: entry.place.map(|(number, _)| number),
            created_at: entry.at.0,
            actor_type: entry.actor_kind,
            actor: entry.actor_id,
            key: entry.key_id,
            network: entry.network,
            request_id: entry.request_id,
            operation: entry.operation,
            resource: entry.resource,
            resource_id: entry.resource_id,
            before: raw(entry.before),
            after: raw(entry.after),
        }
    }
}

/// Lists the entries of the audit trail, newest first.
#[utoipa::path(get, path = "/audit", tag = "Audit", operation_id = "listAuditEntries",
    params(PageParams,
        ("filter" = Option<String>, Query, description = "By `createdAt`, `actor`, `key`, `operation`, `resource`, `resourceId` and `requestId`")),
    responses((status = 200, description = "One page", body = [AuditEntryDocument])))]
pub(super) async fn list(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    query: Query,
) -> Result<Response, ApiError> {
    let listing = Listing::parse(&core, &caller, info, &query, &AUDIT)?;
    let page = audit::list(&core, &caller, &listing.request).await?;
    Ok(listing.answer(&core, page, AuditEntryDocument::from))
}

/// Exports the audit trail: a line of JSON for each entry, oldest first.
///
/// When its key is revoked, the response breaks off and is incomplete for the client.
#[utoipa::path(get, path = "/audit/export", tag = "Audit", operation_id = "exportAuditEntries",
    params(("from" = Option<i64>, Query, description = "Only entries made then or later: `createdAt`"),
        ("to" = Option<i64>, Query, description = "Only entries made until then")),
    responses((status = 200, description = "The lines", content_type = "application/x-ndjson",
        body = AuditEntryDocument)))]
pub(super) async fn export(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    SentKey(key): SentKey,
    info: RequestInfo,
    query: Query,
) -> Result<Response, ApiError> {
    let mut faults = Vec::new();
    let (from, to) = (time(&query, "from", &mut faults), time(&query, "to", &mut faults));
    ApiError::check_parameters(faults)?;
    let page = PageRequest { per_page: LINES, sort: SortOrder::Ascending, ..PageRequest::default() };
    let filter = Filter::between("createdAt", from, to);
    let first = ListRequest { page, filter, ..ListRequest::default() };
    // Faults of the key are answers; later ones break the lines off.
    let probe = ListRequest { page: PageRequest { per_page: 1, ..page }, ..first.clone() };
    audit::list(&core, &caller, &probe).await?;
    let lines = futures_util::stream::try_unfold(Some(first), move |next| {
        let (core, key, client) = (core.clone(), key.clone(), info.client);
        async move {
            let Some(mut request) = next else { return Ok(None) };
            let actor = access::identify(&core, &key, client).await?;
            let page = audit::list(&core, &actor, &request).await?;
            request.page.after = page.next;
            let mut lines = Vec::new();
            for entry in page.items {
                let written = serde_json::to_writer(&mut lines, &AuditEntryDocument::from(entry));
                written.map_err(|error| ServiceError::Internal(error.to_string()))?;
                lines.push(b'\n');
            }
            let next = page.next.map(|_| request);
            Ok::<_, ServiceError>(Some((Bytes::from(lines), next)))
        }
    });
    let headers = [(header::CONTENT_TYPE, "application/x-ndjson"), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, Body::from_stream(lines)).into_response())
}
