//! HTTP: erasures of personal data.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use kernel::domain::listing::ERASURES;
use serde::Serialize;
use serde_with_macros::skip_serializing_none;
use utoipa::ToSchema;
use web::{
    access::Authenticated,
    api_error::ApiError,
    extract::{JsonBody, Path, Query},
    listing::Listing,
    openapi::{ListParams, PageParams},
    request_info::RequestInfo,
};

use crate::{
    domain::erasure::{Counts, Erasure, Target},
    service::{PrivacyState, erasures},
};

/// Rows that an erasure changed, by where they are.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ErasedRowsDocument {
    /// Actions that requests, commissioning and assessments made.
    #[schema(example = 3)]
    actions: u64,
    /// Scans by edges.
    #[schema(example = 120)]
    scans: u64,
    /// Messages of webhooks that were still stored, sent or not.
    #[schema(example = 0)]
    webhook_messages: u64,
    /// What reactions were still to do.
    #[schema(example = 0)]
    reaction_tasks: u64,
    /// Counts of requests for unknown short ids, which were removed.
    #[schema(example = 0)]
    unknown_scans: u64,
    /// Profiles of items that assessments made again from what is left.
    #[schema(example = 17)]
    profiles: u64,
    /// Items whose verdict remembered when, where and by what its last scan was; the verdict stays.
    #[schema(example = 2)]
    standings: u64,
    /// Reports of finders about the item, which were removed.
    #[schema(example = 0)]
    reports: u64,
}

impl From<Counts> for ErasedRowsDocument {
    fn from(counts: Counts) -> Self {
        let Counts {
            actions,
            scans,
            webhook_messages,
            reaction_tasks,
            unknown_scans,
            profiles,
            standings,
            reports,
        } = counts;
        Self { actions, scans, webhook_messages, reaction_tasks, unknown_scans, profiles, standings, reports }
    }
}

/// A request to erase personal data, and its receipt.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ErasureDocument {
    /// Its id.
    #[schema(read_only, example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    id: String,
    /// When it was asked for, in milliseconds since 1970; where users were removed, when the first one was.
    #[schema(read_only, example = 1_767_225_600_000_i64)]
    created_at: i64,
    /// When it last moved on.
    #[schema(read_only, example = 1_767_225_600_000_i64)]
    updated_at: i64,
    /// When it was begun.
    #[schema(read_only)]
    begun_at: Option<i64>,
    /// When everything was erased.
    #[schema(read_only)]
    completed_at: Option<i64>,
    /// `user`, `thng` or `network`.
    #[serde(rename = "type")]
    #[schema(read_only, example = "user")]
    kind: &'static str,
    /// `ENQUEUED`, `EXECUTING` or `COMPLETED`.
    #[schema(read_only, example = "COMPLETED")]
    status: &'static str,
    /// Id of the operator who asked; absent where the users were removed.
    #[schema(read_only)]
    requested_by: Option<String>,
    /// The user, where it is one.
    user: Option<String>,
    /// The users, where several were removed, at most 500: together, or one after the other while the erasure waited.
    #[schema(read_only)]
    users: Option<Vec<String>>,
    /// The Thng.
    thng: Option<String>,
    /// The network, without the bits of a host.
    #[schema(example = "203.0.113.0/24")]
    network: Option<String>,
    /// The begin of the time, in milliseconds since 1970.
    from: Option<i64>,
    /// Its end, which does not belong to it.
    to: Option<i64>,
    /// Rows that were changed so far.
    #[schema(read_only)]
    rows: ErasedRowsDocument,
    /// Profiles of items that could not be made again in the last try, because what is stored of an item cannot be read. They are
    /// tried again each minute, and the erasure does not end before. Absent where there are none.
    #[schema(read_only, example = 1)]
    profiles_failed: Option<u64>,
}

impl From<Erasure> for ErasureDocument {
    fn from(erasure: Erasure) -> Self {
        let details = erasure.details;
        let kind = details.target.kind();
        let mut document = Self {
            id: erasure.id.to_string(),
            created_at: erasure.stamp.created_at.0,
            updated_at: erasure.stamp.updated_at.0,
            begun_at: details.begun_at.map(|at| at.0),
            completed_at: details.completed_at.map(|at| at.0),
            kind,
            status: erasure.status.as_str(),
            requested_by: details.requested_by,
            user: None,
            users: None,
            thng: None,
            network: None,
            from: None,
            to: None,
            rows: details.counts.into(),
            profiles_failed: Some(details.profiles_failed).filter(|failed| *failed > 0),
        };
        match details.target {
            Target::Users(users) => {
                let mut users: Vec<String> = users.iter().map(ToString::to_string).collect();
                if users.len() == 1 {
                    document.user = users.pop();
                } else {
                    document.users = Some(users);
                }
            }
            Target::Thng(thng) => document.thng = Some(thng.to_string()),
            Target::Network { network, from, to } => {
                document.network = Some(network.to_string());
                (document.from, document.to) = (Some(from.0), Some(to.0));
            }
            Target::Age { from, to } => (document.from, document.to) = (Some(from.0), Some(to.0)),
        }
        document
    }
}

/// Lists erasures, newest first.
#[utoipa::path(get, path = "/privacy/erasures", tag = "Privacy", operation_id = "listErasures",
    params(PageParams, ListParams),
    responses((status = 200, description = "One page", body = [ErasureDocument])))]
pub(super) async fn list(
    State(state): State<Arc<PrivacyState>>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    query: Query,
) -> Result<Response, ApiError> {
    let listing = Listing::parse(&state, &caller, info, &query, &ERASURES)?;
    let page = erasures::list(&state, &caller, &listing.request).await?;
    Ok(listing.answer(&state, page, ErasureDocument::from))
}

/// Erases what is stored of the people behind actions and scans, in the background.
#[utoipa::path(post, path = "/privacy/erasures", tag = "Privacy", operation_id = "createErasure",
    request_body = ErasureDocument,
    responses((status = 202, description = "Accepted; `Location` is that of the receipt", body = ErasureDocument)))]
pub(super) async fn create(
    State(state): State<Arc<PrivacyState>>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let target = Target::parse(&body).map_err(ApiError::invalid)?;
    let erasure = erasures::create(&state, &caller, target).await?;
    let location = format!("{}{}/{}", info.base, info.original_path, erasure.id);
    let document = Json(ErasureDocument::from(erasure));
    Ok((StatusCode::ACCEPTED, [(header::LOCATION, location)], document).into_response())
}

/// Reads an erasure: how far it is, and what was changed.
#[utoipa::path(get, path = "/privacy/erasures/{id}", tag = "Privacy", operation_id = "readErasure",
    params(("id" = String, Path, description = "Id of the erasure")),
    responses((status = 200, description = "The receipt", body = ErasureDocument)))]
pub(super) async fn read(
    State(state): State<Arc<PrivacyState>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Json<ErasureDocument>, ApiError> {
    Ok(Json(erasures::read(&state, &caller, &id).await?.into()))
}
