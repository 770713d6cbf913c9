//! HTTP: jobs.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use web::{
    access::Authenticated,
    api_error::ApiError,
    extract::{JsonBody, Path, Query},
    listing::Listing,
    openapi::{ListParams, NumberedParams, PageParams},
    request_info::RequestInfo,
    wire::ScopesDocument,
};

use crate::{
    domain::{
        job::{ACTION_CREATION, ERROR, Job, JobLog, Step},
        job_input::JobDraft,
        listing::{JOB_LOGS, JOBS},
        scopes::Scopes,
    },
    service::{JobState, jobs},
};

/// A state that a job came into.
#[derive(Debug, Serialize, ToSchema)]
struct JobStatusDocument {
    /// The state.
    #[schema(example = "EXECUTING")]
    status: &'static str,
    /// When it was reached, in milliseconds since 1970.
    #[schema(example = 1_767_225_600_000_i64)]
    timestamp: i64,
    /// Whether nothing comes after it.
    terminal: bool,
}

impl From<Step> for JobStatusDocument {
    fn from(step: Step) -> Self {
        Self {
            status: step.status.as_str(),
            timestamp: step.timestamp.0,
            terminal: step.status.is_terminal(),
        }
    }
}

/// How far a job is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct JobProgressDocument {
    /// From 0 to 100.
    #[schema(minimum = 0, maximum = 100)]
    percentage: f64,
    /// Operations to carry out; 0 until a file is read.
    amount_requested: u64,
    /// Operations carried out so far, failed ones among them.
    amount_completed: u64,
}

/// A job that creates actions.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ActionJobDocument {
    /// Its id.
    #[schema(read_only, example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    id: String,
    /// When it was accepted, in milliseconds since 1970.
    #[schema(read_only, example = 1_767_225_600_000_i64)]
    created_at: i64,
    /// When it last moved on.
    #[schema(read_only, example = 1_767_225_600_000_i64)]
    updated_at: i64,
    /// When it reached its last state.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(read_only)]
    completed_at: Option<i64>,
    /// `ACTION_CREATION`; in a request it may be left out.
    #[serde(rename = "type")]
    #[schema(read_only, example = "ACTION_CREATION")]
    kind: &'static str,
    /// `ENQUEUED`, `STARTING`, `EXECUTING`, `CANCELLING`, `COMPLETED`, `COMPLETED_WITH_FAILURES`, `CANCELLED` or
    /// `FAILED`.
    #[schema(read_only, example = "EXECUTING")]
    status: &'static str,
    /// Its states, oldest first.
    #[schema(read_only)]
    history: Vec<JobStatusDocument>,
    /// How far it is.
    #[schema(read_only)]
    progress: JobProgressDocument,
    /// Operations that failed; each has an entry in the log.
    #[schema(read_only)]
    failed_operations_amount: u64,
    /// Why it failed as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(read_only)]
    message: Option<String>,
    /// The template of its actions; in lists it is left out, as are the next three.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    payload: Option<Map<String, Value>>,
    /// `THNGS`.
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<&'static str>,
    /// Where the Thngs are named.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    input: Option<Value>,
    /// What its actions are kept from; empty when nothing was said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    options: Option<Value>,
    /// Shown with `withScopes=true`.
    #[serde(skip_serializing_if = "Option::is_none")]
    scopes: Option<ScopesDocument>,
}

impl ActionJobDocument {
    fn new(job: Job, with_scopes: bool) -> Result<Self, serde_json::Error> {
        let progress = JobProgressDocument {
            percentage: job.progress.percentage(job.status),
            amount_requested: job.progress.requested,
            amount_completed: job.progress.done,
        };
        let target = job.request.as_ref().map(|request| request.target());
        let (payload, input, options) = match job.request {
            None => (None, None, None),
            Some(request) => (
                Some(request.payload),
                Some(serde_json::to_value(request.input)?),
                Some(serde_json::to_value(request.options.unwrap_or_default())?),
            ),
        };
        let projects = job.project.map(|id| id.to_string()).into_iter().collect();
        Ok(Self {
            id: job.id.to_string(),
            created_at: job.created_at.0,
            updated_at: job.updated_at.0,
            completed_at: job.completed_at.map(|at| at.0),
            kind: ACTION_CREATION,
            status: job.status.as_str(),
            history: job.history.into_iter().map(JobStatusDocument::from).collect(),
            progress,
            failed_operations_amount: job.progress.failed,
            message: job.message,
            payload,
            target,
            input,
            options,
            scopes: with_scopes.then(|| Scopes { users: Vec::new(), projects }.into()),
        })
    }
}

/// An operation of a job that failed.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct JobLogEntryDocument {
    /// The job.
    #[schema(read_only, example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    job_id: String,
    /// `ERROR`.
    #[serde(rename = "type")]
    #[schema(read_only, example = "ERROR")]
    kind: &'static str,
    /// The Thng as the input names it: `type` and `id`, `key` and `value`, or `shortDomain` and `shortId`.
    #[schema(read_only, value_type = Object)]
    payload: Value,
    /// What went wrong; for a line of a file, with its number.
    #[schema(read_only)]
    message: String,
}

impl From<JobLog> for JobLogEntryDocument {
    fn from(log: JobLog) -> Self {
        Self { job_id: log.job.to_string(), kind: ERROR, payload: log.payload, message: log.message }
    }
}

/// Lists jobs, newest first, without what they were asked for with.
#[utoipa::path(get, path = "/jobs/actions", tag = "Jobs", operation_id = "listActionJobs",
    params(PageParams, NumberedParams, ListParams),
    responses((status = 200, description = "One page", body = [ActionJobDocument])),
    extensions(("x-maturity" = json!("Stable"))))]
pub(super) async fn list(
    State(state): State<Arc<JobState>>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    query: Query,
) -> Result<Response, ApiError> {
    let listing = Listing::parse(&state, &caller, info, &query, &JOBS)?;
    let page = jobs::list(&state, &caller, &listing.request).await?;
    let page = page.try_map(|job| document(job, listing.with_scopes))?;
    Ok(listing.answer(&state, page, |document| document))
}

/// Creates actions on many Thngs, in the background.
#[utoipa::path(post, path = "/jobs/actions", tag = "Jobs", operation_id = "createActionJob",
    params(("project" = Option<String>, Query, description = "Project that its actions are scoped to")),
    request_body = ActionJobDocument,
    responses((status = 202, description = "Accepted; the body is empty, `Location` is the job's")),
    extensions(("x-maturity" = json!("Stable"))))]
pub(super) async fn create(
    State(state): State<Arc<JobState>>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    query: Query,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let draft = JobDraft::parse(&body).map_err(ApiError::invalid)?;
    let id = jobs::submit(&state, &caller, draft, &info.base, query.find("project")).await?;
    let location = format!("{}{}/{id}", info.base, info.original_path);
    Ok((StatusCode::ACCEPTED, [(header::LOCATION, location)]).into_response())
}

/// Reads a job with what it was asked for with.
#[utoipa::path(get, path = "/jobs/actions/{id}", tag = "Jobs", operation_id = "readActionJob",
    params(("id" = String, Path, description = "Id")),
    responses((status = 200, description = "The job", body = ActionJobDocument)),
    extensions(("x-maturity" = json!("Stable"))))]
pub(super) async fn read(
    State(state): State<Arc<JobState>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Json<ActionJobDocument>, ApiError> {
    Ok(Json(document(jobs::read(&state, &caller, &id).await?, false)?))
}

/// Lists the operations of a job that failed, newest first.
#[utoipa::path(get, path = "/jobs/actions/{id}/logs", tag = "Jobs", operation_id = "listActionJobLogs",
    params(("id" = String, Path, description = "Id of the job"), PageParams,
        ("filter" = Option<String>, Query, description = "By `jobId` and `type`"),
        ("project" = Option<String>, Query, description = "Those of this project")),
    responses((status = 200, description = "One page", body = [JobLogEntryDocument])),
    extensions(("x-maturity" = json!("Stable"))))]
pub(super) async fn logs(
    State(state): State<Arc<JobState>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    info: RequestInfo,
    query: Query,
) -> Result<Response, ApiError> {
    let mut listing = Listing::parse(&state, &caller, info, &query, &JOB_LOGS)?;
    // Entries have no ids.
    listing.request.ids = None;
    let page = jobs::logs(&state, &caller, &id, &listing.request).await?;
    Ok(listing.answer(&state, page, JobLogEntryDocument::from))
}

/// Asks for the end of a job; what it created stays.
#[utoipa::path(post, path = "/jobs/actions/{id}/cancel", tag = "Jobs", operation_id = "cancelActionJob",
    params(("id" = String, Path, description = "Id of the job")),
    responses((status = 202, description = "It is being cancelled; the body is empty"),
        (status = 409, description = "The job has ended")),
    extensions(("x-maturity" = json!("Stable"))))]
pub(super) async fn cancel(
    State(state): State<Arc<JobState>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<StatusCode, ApiError> {
    jobs::cancel(&state, &caller, &id).await?;
    Ok(StatusCode::ACCEPTED)
}

/// Removes a job that has ended, with its log; what it created stays.
#[utoipa::path(delete, path = "/jobs/actions/{id}", tag = "Jobs", operation_id = "deleteActionJob",
    params(("id" = String, Path, description = "Id of the job")),
    responses((status = 200, description = "Removed; the body is empty"),
        (status = 409, description = "The job has not ended")))]
pub(super) async fn delete(
    State(state): State<Arc<JobState>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<(), ApiError> {
    Ok(jobs::delete(&state, &caller, &id).await?)
}

fn document(job: Job, with_scopes: bool) -> Result<ActionJobDocument, ApiError> {
    ActionJobDocument::new(job, with_scopes)
        .map_err(|error| crate::error::ServiceError::Internal(format!("a job: {error}")).into())
}
