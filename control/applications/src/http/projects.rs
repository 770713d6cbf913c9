//! HTTP: projects.

use std::sync::Arc;

use axum::{Json, extract::State, response::Response};
use serde::Serialize;
use utoipa::ToSchema;
use web::{
    access::Authenticated,
    api_error::ApiError,
    extract::{JsonBody, Path, Query},
    listing::Listing,
    openapi::{ListParams, NumberedParams, PageParams},
    request_info::RequestInfo,
    wire::{CommonDocument, created},
};

use crate::{
    domain::{
        body::Purpose,
        listing::PROJECTS,
        project::{Project, ProjectChange},
    },
    service::{Core, projects},
};

/// A project: a named part of an account, which keys may be confined to.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProjectDocument {
    /// Its id.
    #[schema(read_only, example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    id: String,
    #[serde(flatten)]
    common: CommonDocument,
    /// 1 to 256 characters; required on create.
    #[schema(example = "Summer campaign")]
    name: String,
    /// When it begins, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    starts_at: Option<i64>,
    /// When it ends, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    ends_at: Option<i64>,
}

impl From<Project> for ProjectDocument {
    fn from(project: Project) -> Self {
        let details = project.details;
        Self {
            id: project.id.to_string(),
            common: CommonDocument::new(project.stamp, details.common, false),
            name: project.name,
            starts_at: details.starts_at.map(|at| at.0),
            ends_at: details.ends_at.map(|at| at.0),
        }
    }
}

/// Lists projects, newest first.
#[utoipa::path(get, path = "/projects", tag = "Projects", operation_id = "listProjects",
    params(PageParams, ListParams, NumberedParams),
    responses((status = 200, description = "One page", body = [ProjectDocument])),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn list(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    query: Query,
) -> Result<Response, ApiError> {
    let listing = Listing::parse(&core, &caller, info, &query, &PROJECTS)?;
    let found = projects::list(&core, &caller, &listing.request).await?;
    Ok(listing.answer(&core, found, ProjectDocument::from))
}

/// Makes a project.
#[utoipa::path(post, path = "/projects", tag = "Projects", operation_id = "createProject",
    request_body = ProjectDocument,
    responses((status = 201, description = "The project", body = ProjectDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn create(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let change = ProjectChange::parse(&body, Purpose::Create).map_err(ApiError::invalid)?;
    let project = projects::create(&core, &caller, change).await?;
    let id = project.id;
    Ok(created(&info, id.as_str(), ProjectDocument::from(project)))
}

/// Reads a project.
#[utoipa::path(get, path = "/projects/{id}", tag = "Projects", operation_id = "readProject",
    params(("id" = String, Path, description = "Id of the project")),
    responses((status = 200, description = "The project", body = ProjectDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn read(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Json<ProjectDocument>, ApiError> {
    Ok(Json(projects::read(&core, &caller, &id).await?.into()))
}

/// Changes the members given; the others stay.
#[utoipa::path(put, path = "/projects/{id}", tag = "Projects", operation_id = "updateProject",
    params(("id" = String, Path, description = "Id of the project")),
    request_body(content = ProjectDocument, description = "The members to change; the others may be left out"),
    responses((status = 200, description = "The whole project", body = ProjectDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn update(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    JsonBody(body): JsonBody,
) -> Result<Json<ProjectDocument>, ApiError> {
    let change = ProjectChange::parse(&body, Purpose::Update).map_err(ApiError::invalid)?;
    Ok(Json(projects::update(&core, &caller, &id, change).await?.into()))
}

/// Removes a project with its applications, their users and keys.
#[utoipa::path(delete, path = "/projects/{id}", tag = "Projects", operation_id = "deleteProject",
    params(("id" = String, Path, description = "Id of the project")),
    responses((status = 200, description = "Removed; the body is empty")),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn delete(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<(), ApiError> {
    Ok(projects::delete(&core, &caller, &id).await?)
}
