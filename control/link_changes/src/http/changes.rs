//! HTTP: changes of many links.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use kernel::domain::listing::{PLAIN, TASKS};
use web::{
    access::Authenticated,
    api_error::ApiError,
    extract::{JsonBody, Path, Query},
    listing::Listing,
    openapi::{ListParams, PageParams},
    request_info::RequestInfo,
};

use super::documents::{LinkChangeDocument, LinkConflictDocument, LinkDryRunDocument};
use crate::{
    domain::draft::{ChangeDraft, parse_undo},
    service::{LinkChangeState, accept, changes},
};

/// Lists changes of many links and their undoing, newest first.
///
/// Operators who are confined to projects see their own.
#[utoipa::path(get, path = "/jobs/redirections", tag = "Changes of links", operation_id = "listLinkChanges",
    params(PageParams, ListParams),
    responses((status = 200, description = "One page", body = [LinkChangeDocument])))]
pub(super) async fn list(
    State(state): State<Arc<LinkChangeState>>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    query: Query,
) -> Result<Response, ApiError> {
    let listing = Listing::parse(&state, &caller, info, &query, &TASKS)?;
    let page = changes::list(&state, &caller, &listing.request).await?;
    Ok(listing.answer(&state, page, LinkChangeDocument::from))
}

/// Changes many links at once, in the background.
///
/// The links are those of a list; the change has the members of a `PUT` of one link, and each link is written as by one. The
/// answer says how many links there are and shows the first ten before and after. Links that come later are left out. Those of
/// an operator who is confined to projects are the links of these.
#[utoipa::path(post, path = "/jobs/redirections", tag = "Changes of links", operation_id = "createLinkChange",
    request_body(content = Object, description = "Which links, and what is changed of them"),
    responses((status = 201, description = "Accepted; `Location` is the job's", body = LinkChangeDocument),
        (status = 200, description = "With `dryRun`: what it would do", body = LinkDryRunDocument),
        (status = 409, description = "Another number of links is found than `expect` says, or too many former values are kept")))]
pub(super) async fn create(
    State(state): State<Arc<LinkChangeState>>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let draft = ChangeDraft::parse(&body).map_err(ApiError::invalid)?;
    let mut accepted = accept::create(&state, &caller, draft).await?;
    let Some(change) = accepted.change.take() else {
        return Ok(Json(LinkDryRunDocument::from(&accepted)).into_response());
    };
    let location = format!("{}{}/{}", info.base, info.original_path, change.id);
    let document = Json(LinkChangeDocument::accepted(change, &accepted.sample));
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], document).into_response())
}

/// Reads a change of many links: how far it is, and what became of it.
#[utoipa::path(get, path = "/jobs/redirections/{changeId}", tag = "Changes of links", operation_id = "readLinkChange",
    params(("changeId" = String, Path, description = "Id of the change")),
    responses((status = 200, description = "The change", body = LinkChangeDocument)))]
pub(super) async fn read(
    State(state): State<Arc<LinkChangeState>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Json<LinkChangeDocument>, ApiError> {
    Ok(Json(changes::read(&state, &caller, &id).await?.into()))
}

/// Lists the links that a change, or an undo, left as they are, each with the reason: the first 10,000. `progress` of the change
/// says how many there are (`conflicts`), and how many are listed (`conflictsListed`).
#[utoipa::path(get, path = "/jobs/redirections/{changeId}/conflicts", tag = "Changes of links", operation_id = "listLinkConflicts",
    params(("changeId" = String, Path, description = "Id of the change, or of the undo"), PageParams),
    responses((status = 200, description = "One page", body = [LinkConflictDocument])))]
pub(super) async fn list_conflicts(
    State(state): State<Arc<LinkChangeState>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    info: RequestInfo,
    query: Query,
) -> Result<Response, ApiError> {
    let listing = Listing::parse(&state, &caller, info, &query, &PLAIN)?;
    let page = changes::list_conflicts(&state, &caller, &id, &listing.request).await?;
    Ok(listing.answer(&state, page, LinkConflictDocument::from))
}

/// Lets a change begin that waits for a second operator, where the account has `approveBulkChanges`.
#[utoipa::path(post, path = "/jobs/redirections/{changeId}/approve", tag = "Changes of links", operation_id = "approveLinkChange",
    params(("changeId" = String, Path, description = "Id of the change")),
    responses((status = 202, description = "It begins; the body is empty"),
        (status = 403, description = "It is the caller's own change"),
        (status = 409, description = "It waits for no approval, or is not what it was asked for any more")))]
pub(super) async fn approve(
    State(state): State<Arc<LinkChangeState>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    changes::approve(&state, &caller, &id).await?;
    Ok(StatusCode::ACCEPTED)
}

/// Ends a change; what it has changed stays, and can be undone.
#[utoipa::path(post, path = "/jobs/redirections/{changeId}/cancel", tag = "Changes of links", operation_id = "cancelLinkChange",
    params(("changeId" = String, Path, description = "Id of the change")),
    responses((status = 202, description = "It is cancelled; the body is empty"),
        (status = 409, description = "The change has ended")))]
pub(super) async fn cancel(
    State(state): State<Arc<LinkChangeState>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    changes::cancel(&state, &caller, &id).await?;
    Ok(StatusCode::ACCEPTED)
}

/// Undoes a change of many links within 30 days of its end, in the background.
///
/// Each link gets back what it had, `updatedAt` and `updatedBy`, too; its `ETag` is another one. A link that was changed since is
/// left as it is, counted and listed.
#[utoipa::path(post, path = "/jobs/redirections/{changeId}/undo", tag = "Changes of links", operation_id = "undoLinkChange",
    params(("changeId" = String, Path, description = "Id of the change")),
    request_body(content = Object, description = "Whether links that were changed since refuse it"),
    responses((status = 201, description = "Accepted; `Location` is the job's", body = LinkChangeDocument),
        (status = 409, description = "It has not ended, is being undone or is an undo; with `strict`, a link was changed since")))]
pub(super) async fn undo(
    State(state): State<Arc<LinkChangeState>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    info: RequestInfo,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let is_strict = parse_undo(&body).map_err(ApiError::invalid)?;
    let change = accept::undo(&state, &caller, &id, is_strict).await?;
    let jobs = info.original_path.strip_suffix(&format!("/{id}/undo")).unwrap_or("/jobs/redirections");
    let location = format!("{}{jobs}/{}", info.base, change.id);
    let document = Json(LinkChangeDocument::from(change));
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], document).into_response())
}
