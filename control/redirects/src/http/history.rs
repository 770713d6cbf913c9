//! HTTP: the changes of a redirection, and the way back to an earlier state.

use axum::{
    extract::State,
    http::{HeaderMap, StatusCode},
    response::Response,
};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use web::{
    access::Authenticated,
    api_error::ApiError,
    extract::{JsonBody, Path, Query},
    listing::Listing,
    openapi::PageParams,
    request_info::RequestInfo,
};

use super::{
    conditions::{expected, tagged},
    redirection_answers::{RedirectionDocument, Wait, written},
    redirections::{choice, document},
};
use crate::{
    domain::{
        link_history::{LinkChange, MemberChange, parse_version},
        listing::PLAIN,
    },
    service::{Redirects, redirections as service},
};

/// A change of a redirection.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RedirectionChangeDocument {
    /// Names the state after the change, for `restore`.
    #[schema(example = "4711")]
    version: String,
    /// When the request came, in milliseconds since 1970.
    #[schema(example = 1_767_225_600_000_i64)]
    created_at: i64,
    /// The kind of key: `operator`, `projectOperator` or `trustedApp`; or `commandLine`.
    #[schema(example = "operator")]
    actor_type: String,
    /// Id of the operator or application. Only callers see it whose permission reaches the whole account.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    actor: Option<String>,
    /// Method and route, or a command.
    #[schema(example = "PUT /redirections/{shortId}")]
    operation: String,
    /// `created`, `updated` or `deleted`.
    #[schema(example = "updated")]
    change: &'static str,
    /// The members that it changed; absent if they took more than 16 KiB, which the audit trail does not keep.
    #[serde(skip_serializing_if = "Option::is_none")]
    members: Option<Vec<MemberChangeDocument>>,
}

/// A member that was set, replaced or removed.
#[derive(Debug, Serialize, ToSchema)]
struct MemberChangeDocument {
    /// Its name.
    #[schema(example = "defaultRedirectUrl")]
    member: String,
    /// Its value before; absent if it had none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>, example = json!("https://example.com/old"))]
    before: Option<Value>,
    /// Its value after; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>, example = json!("https://example.com/new"))]
    after: Option<Value>,
}

impl From<LinkChange> for RedirectionChangeDocument {
    fn from(change: LinkChange) -> Self {
        let members = change.members;
        Self {
            version: change.version.to_string(),
            created_at: change.at.0,
            actor_type: change.actor_type,
            actor: change.actor,
            operation: change.operation,
            change: change.kind.as_str(),
            members: members.map(|members| members.into_iter().map(MemberChangeDocument::from).collect()),
        }
    }
}

impl From<MemberChange> for MemberChangeDocument {
    fn from(change: MemberChange) -> Self {
        let MemberChange { member, before, after } = change;
        Self { member, before, after }
    }
}

/// Lists the changes of a redirection, newest first; also of a deleted one.
///
/// They come from the audit trail, which keeps entries for 400 days and has none of what public keys do.
#[utoipa::path(get, path = "/redirections/{shortId}/history", tag = "Redirections", operation_id = "listRedirectionChanges",
    params(PageParams, ("shortId" = String, Path, description = "Short id"),
        ("domain" = Option<String>, Query, description = "Short domain")),
    responses((status = 200, description = "One page", body = [RedirectionChangeDocument])))]
pub(super) async fn list(
    State(redirects): State<Redirects>,
    Authenticated(caller): Authenticated,
    Path(short_id): Path<String>,
    info: RequestInfo,
    query: Query,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let listing = Listing::parse(&redirects, &caller, info, &query, &PLAIN)?;
    let choice = choice(&query, &headers);
    let page = service::history(&redirects, &caller, choice, &short_id, &listing.request).await?;
    Ok(listing.answer(&redirects, page, RedirectionChangeDocument::from))
}

/// Brings the state of a redirection after a change back, as one new change; also of a deleted one.
#[utoipa::path(post, path = "/redirections/{shortId}/restore", tag = "Redirections", operation_id = "restoreRedirection",
    params(("shortId" = String, Path, description = "Short id"),
        ("domain" = Option<String>, Query, description = "Short domain"),
        ("wait" = Option<String>, Query, description = "`edges`: answer when every edge has the change"),
        ("timeout" = Option<String>, Query, description = "Longest wait, default `2s`")),
    request_body(content = Object, description = "`version`, from the history of the redirection",
        example = json!({"version": "4711"})),
    responses((status = 200, description = "The redirection", body = RedirectionDocument),
        (status = 202, description = "Changed; an edge had not confirmed it at the deadline", body = RedirectionDocument)))]
pub(super) async fn restore(
    State(redirects): State<Redirects>,
    Authenticated(caller): Authenticated,
    Path(short_id): Path<String>,
    query: Query,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let wait = Wait::parse(&query)?;
    let version = parse_version(&body).map_err(ApiError::invalid)?;
    let (choice, expected) = (choice(&query, &headers), expected(&headers)?);
    let done = service::restore(&redirects, &caller, (choice, &short_id), version, &expected).await?;
    let record = Some(document(&done.value));
    Ok(tagged(written(&redirects, wait, &done, StatusCode::OK, record).await, done.rev))
}
