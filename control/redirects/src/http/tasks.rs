//! HTTP: tasks of batches.

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
    openapi::{ListParams, PageParams},
    request_info::RequestInfo,
};

use crate::{
    domain::{
        listing::TASKS,
        task::{self, Task},
    },
    service::{Redirects, tasks},
};

/// How far a task is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct TaskProgressDocument {
    /// Thngs to make.
    amount_requested: u32,
    /// Thngs that are made.
    amount_completed: u32,
}

/// A task of a batch.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskDocument {
    /// Its id.
    #[schema(read_only, example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    id: String,
    /// When it was accepted, in milliseconds since 1970.
    #[schema(read_only, example = 1_767_225_600_000_i64)]
    created_at: i64,
    /// When it last moved on.
    #[schema(read_only, example = 1_767_225_600_000_i64)]
    updated_at: i64,
    /// When it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(read_only)]
    completed_at: Option<i64>,
    /// Id of its batch.
    #[schema(read_only, example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    batch: String,
    /// `POPULATING`.
    #[serde(rename = "type")]
    #[schema(example = "POPULATING")]
    kind: String,
    /// `EXECUTING`, `COMPLETED` or `FAILED`.
    #[schema(read_only, example = "COMPLETED")]
    status: &'static str,
    /// How far it is.
    #[schema(read_only)]
    progress: TaskProgressDocument,
    /// Why it failed; what was made until then stays.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(read_only)]
    message: Option<String>,
    /// What it was asked for with, as it was sent.
    #[schema(value_type = Object)]
    input_parameters: Map<String, Value>,
}

impl From<Task> for TaskDocument {
    fn from(task: Task) -> Self {
        let details = task.details;
        Self {
            id: task.id.to_string(),
            created_at: task.stamp.created_at.0,
            updated_at: task.stamp.updated_at.0,
            completed_at: details.completed_at.map(|at| at.0),
            batch: task.batch.to_string(),
            kind: task.kind,
            status: task.status.as_str(),
            progress: TaskProgressDocument {
                amount_requested: details.quantity,
                amount_completed: details.done,
            },
            message: details.message,
            input_parameters: details.input_parameters,
        }
    }
}

/// What went wrong in a task.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TaskLogEntryDocument {
    /// The task.
    #[schema(read_only, example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    job_id: String,
    /// When it happened, in milliseconds since 1970.
    #[schema(read_only, example = 1_767_225_600_000_i64)]
    created_at: i64,
    /// `ERROR`.
    #[serde(rename = "type")]
    #[schema(read_only, example = "ERROR")]
    kind: &'static str,
    /// What went wrong.
    #[schema(read_only)]
    message: String,
}

/// Lists the tasks of a batch, newest first.
#[utoipa::path(get, path = "/batches/{id}/tasks", tag = "Batches", operation_id = "listTasks",
    params(PageParams, ListParams, ("id" = String, Path, description = "Id of the batch, or `<key>:<value>`")),
    responses((status = 200, description = "One page", body = [TaskDocument])))]
pub(super) async fn list(
    State(redirects): State<Redirects>,
    Authenticated(caller): Authenticated,
    Path(batch): Path<String>,
    info: RequestInfo,
    query: Query,
) -> Result<Response, ApiError> {
    let listing = Listing::parse(&redirects, &caller, info, &query, &TASKS)?;
    let page = tasks::list(&redirects, &caller, &batch, &listing.request).await?;
    Ok(listing.answer(&redirects, page, TaskDocument::from))
}

/// Makes Thngs, and short URLs for them, in the background.
#[utoipa::path(post, path = "/batches/{id}/tasks", tag = "Batches", operation_id = "createTask",
    params(("id" = String, Path, description = "Id of the batch, or `<key>:<value>`")),
    request_body = TaskDocument,
    responses((status = 202, description = "Accepted; the body is empty, `Location` is the task's")))]
pub(super) async fn create(
    State(redirects): State<Redirects>,
    Authenticated(caller): Authenticated,
    Path(batch): Path<String>,
    info: RequestInfo,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let (population, sent) = task::parse(&body).map_err(ApiError::invalid)?;
    let task = tasks::create(&redirects, &caller, &batch, &population, sent).await?;
    let location = format!("{}{}/{}", info.base, info.original_path, task.id);
    tokio::spawn(tasks::run(redirects.clone(), caller.account, task.id));
    Ok((StatusCode::ACCEPTED, [(header::LOCATION, location)]).into_response())
}

/// Reads a task of a batch.
#[utoipa::path(get, path = "/batches/{id}/tasks/{taskId}", tag = "Batches", operation_id = "readTask",
    params(("id" = String, Path, description = "Id of the batch, or `<key>:<value>`"),
        ("taskId" = String, Path, description = "Id of the task")),
    responses((status = 200, description = "The task", body = TaskDocument)))]
pub(super) async fn read(
    State(redirects): State<Redirects>,
    Authenticated(caller): Authenticated,
    Path((batch, id)): Path<(String, String)>,
) -> Result<Json<TaskDocument>, ApiError> {
    Ok(Json(tasks::read(&redirects, &caller, &batch, &id).await?.into()))
}

/// Reads what went wrong in a task: nothing, or the one error that ended it.
#[utoipa::path(get, path = "/batches/{id}/tasks/{taskId}/logs", tag = "Batches", operation_id = "listTaskLogs",
    params(("id" = String, Path, description = "Id of the batch, or `<key>:<value>`"),
        ("taskId" = String, Path, description = "Id of the task")),
    responses((status = 200, description = "Every entry", body = [TaskLogEntryDocument])))]
pub(super) async fn list_logs(
    State(redirects): State<Redirects>,
    Authenticated(caller): Authenticated,
    Path((batch, id)): Path<(String, String)>,
) -> Result<Json<Vec<TaskLogEntryDocument>>, ApiError> {
    let Task { id, stamp, details, .. } = tasks::read(&redirects, &caller, &batch, &id).await?;
    let created_at = details.completed_at.unwrap_or(stamp.updated_at).0;
    let entry = details.message.map(|message| TaskLogEntryDocument {
        job_id: id.to_string(),
        created_at,
        kind: "ERROR",
        message,
    });
    Ok(Json(entry.into_iter().collect()))
}
