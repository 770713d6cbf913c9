//! HTTP: applications.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde::Serialize;
use serde_json::{Map, Value};
use serde_with_macros::skip_serializing_none;
use utoipa::ToSchema;
use web::{
    access::Authenticated,
    api_error::ApiError,
    bulk,
    conditions::Tagged,
    extract::{JsonBody, Path, Query},
    listing::{Listing, RESULT_COUNT},
    openapi::{ListParams, NumberedParams, PageParams},
    request_info::RequestInfo,
    wire::{CommonDocument, created, created_at},
};

use tenants::http::overlap;

use crate::{
    domain::{
        application::{AppKey, Application, ApplicationChange},
        body::Purpose,
        listing::APPLICATIONS,
    },
    error::ServiceError,
    service::{Core, applications, named::tag_of},
};

/// An application of a project: what has a public and a secret key.
#[skip_serializing_none]
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ApplicationDocument {
    /// Its id.
    #[schema(read_only, example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    id: String,
    #[serde(flatten)]
    common: CommonDocument,
    /// 1 to 256 characters; required on create.
    #[schema(example = "Loyalty app")]
    name: String,
    /// Id of its project.
    #[schema(read_only, example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    project: String,
    /// Its public key, 80 characters.
    #[schema(read_only)]
    app_api_key: String,
    /// Settings of social networks, at most 64 KiB; kept as they are.
    #[schema(value_type = Option<Object>)]
    social_networks: Option<Map<String, Value>>,
    /// Address of the application.
    default_url: Option<String>,
    /// A template of URLs to it; kept as it is.
    redirection_template: Option<String>,
    /// Whether its users may make Things and collections, without `identifiers`, where the account's `userRights` are
    /// `own`; false if left out.
    users_may_create: Option<bool>,
    /// The hosts that redirections of its users may lead to where the account's `userRights` are `own`, each with its
    /// port unless it is the default one, at most 100; without any they make none.
    #[schema(example = json!(["shop.example"]))]
    redirect_hosts: Option<Vec<String>>,
    /// The types of actions that its users may create where the account's `userRights` are `own`: `scans`, `checkins`,
    /// `shares` and custom types if left out.
    #[schema(example = json!(["scans", "_opened"]))]
    user_action_types: Option<Vec<String>>,
    /// The types of triggers that it and its users may submit for assessment: `scans` and `implicitScans` if left out.
    #[schema(example = json!(["scans", "implicitScans"]))]
    trigger_types: Option<Vec<String>>,
    /// Whether its server may report scans of its customers: with the secret key, `context` of a new action is then
    /// taken as `{"ipAddress", "userAgent", "language"}` of the customer; false if left out.
    reports_context: Option<bool>,
    /// Id of a role of the type `userInApp` that its users have: they may do only what it allows, too. Empty restricts
    /// them no further.
    user_role: Option<String>,
    /// The page of users: mails with codes link to it, with the code behind a `#`. An https URL; empty is none.
    #[schema(example = "https://shop.example/account")]
    user_page: Option<String>,
}

impl ApplicationDocument {
    fn new(core: &Core, application: Application) -> Result<Self, ServiceError> {
        let app_api_key = applications::key(core, &application, AppKey::Public)?;
        let details = application.details;
        Ok(Self {
            id: application.id.to_string(),
            common: CommonDocument::new(application.stamp, details.common, false),
            name: application.name,
            project: application.project.to_string(),
            app_api_key,
            social_networks: details.social_networks,
            default_url: details.default_url,
            redirection_template: details.redirection_template,
            users_may_create: details.users_may_create,
            redirect_hosts: details.redirect_hosts,
            user_action_types: details.user_action_types,
            trigger_types: details.trigger_types,
            reports_context: details.reports_context,
            user_role: details.user_role,
            user_page: details.user_page,
        })
    }
}

/// The secret key of an application.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct SecretKeyDocument {
    /// The key, 80 characters: whoever has it acts as a trusted application.
    secret_api_key: String,
}

/// Lists the applications of a project, newest first.
#[utoipa::path(get, path = "/projects/{project}/applications", tag = "Projects", operation_id = "listApplications",
    params(("project" = String, Path, description = "Id of the project"), PageParams, ListParams, NumberedParams),
    responses((status = 200, description = "One page", body = [ApplicationDocument])),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn list(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path(project): Path<String>,
    info: RequestInfo,
    query: Query,
) -> Result<Response, ApiError> {
    let listing = Listing::parse(&core, &caller, info, &query, &APPLICATIONS)?;
    let found = applications::list(&core, &caller, &project, &listing.request).await?;
    let documents = found.try_map(|item| ApplicationDocument::new(&core, item))?;
    Ok(listing.answer(&core, documents, |item| item))
}

/// Makes an application and its keys.
#[utoipa::path(post, path = "/projects/{project}/applications", tag = "Projects", operation_id = "createApplication",
    params(("project" = String, Path, description = "Id of the project")),
    request_body = ApplicationDocument,
    responses((status = 201, description = "The application", body = ApplicationDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn create(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path(project): Path<String>,
    info: RequestInfo,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let change = ApplicationChange::parse(&body, Purpose::Create).map_err(ApiError::invalid)?;
    let application = applications::create(&core, &caller, &project, change).await?;
    let id = application.id;
    Ok(created(&info, id.as_str(), ApplicationDocument::new(&core, application)?))
}

/// Reads an application.
#[utoipa::path(get, path = "/projects/{project}/applications/{id}", tag = "Projects", operation_id = "readApplication",
    params(("project" = String, Path, description = "Id of the project"),
        ("id" = String, Path, description = "Id of the application")),
    responses((status = 200, description = "The application", body = ApplicationDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn read(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path((project, id)): Path<(String, String)>,
) -> Result<Tagged<ApplicationDocument>, ApiError> {
    let application = applications::read(&core, &caller, &project, &id).await?;
    Ok(Tagged(tag_of(&application), ApplicationDocument::new(&core, application)?))
}

/// Changes the members given; the others stay.
#[utoipa::path(put, path = "/projects/{project}/applications/{id}", tag = "Projects",
    operation_id = "updateApplication",
    params(("project" = String, Path, description = "Id of the project"),
        ("id" = String, Path, description = "Id of the application")),
    request_body(content = ApplicationDocument,
        description = "The members to change; the others may be left out"),
    responses((status = 200, description = "The whole application", body = ApplicationDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn update(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path((project, id)): Path<(String, String)>,
    JsonBody(body): JsonBody,
) -> Result<Json<ApplicationDocument>, ApiError> {
    let change = ApplicationChange::parse(&body, Purpose::Update).map_err(ApiError::invalid)?;
    let application = applications::update(&core, &caller, &project, &id, change).await?;
    Ok(Json(ApplicationDocument::new(&core, application)?))
}

/// Removes an application with its users; none of their keys is valid from then on.
#[utoipa::path(delete, path = "/projects/{project}/applications/{id}", tag = "Projects",
    operation_id = "deleteApplication",
    params(("project" = String, Path, description = "Id of the project"),
        ("id" = String, Path, description = "Id of the application")),
    responses((status = 200, description = "Removed; the body is empty")),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn delete(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path((project, id)): Path<(String, String)>,
) -> Result<(), ApiError> {
    Ok(applications::delete(&core, &caller, &project, &id).await?)
}

/// Changes the members given of several applications of a project: of all of them, or none.
#[utoipa::path(put, path = "/projects/{project}/applications", tag = "Projects",
    operation_id = "update-applications",
    params(("project" = String, Path, description = "Id of the project"),
        ("ids" = String, Query, description = "Ids, comma-separated, at most 100")),
    request_body(content = ApplicationDocument,
        description = "The members to change; the others may be left out"),
    responses((status = 204, description = "Changed; `x-result-count` says how many")),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn update_many(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path(project): Path<String>,
    query: Query,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let ids = bulk::ids(&query)?;
    let change = ApplicationChange::parse(&body, Purpose::Update).map_err(ApiError::invalid)?;
    applications::update_many(&core, &caller, &project, &ids, change).await?;
    Ok((StatusCode::NO_CONTENT, [(RESULT_COUNT, ids.len())]).into_response())
}

/// Removes several applications of a project with their users: all of them, or none.
#[utoipa::path(delete, path = "/projects/{project}/applications", tag = "Projects",
    operation_id = "delete-applications",
    params(("project" = String, Path, description = "Id of the project"),
        ("ids" = String, Query, description = "Ids, comma-separated, at most 100")),
    responses((status = 200, description = "Removed; the body is empty, `x-result-count` says how many")),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn delete_many(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path(project): Path<String>,
    query: Query,
) -> Result<Response, ApiError> {
    let ids = bulk::ids(&query)?;
    applications::delete_many(&core, &caller, &project, &ids).await?;
    Ok([(RESULT_COUNT, ids.len())].into_response())
}

/// Reads the secret key of an application, the same one each time until it is rotated.
#[utoipa::path(get, path = "/projects/{project}/applications/{id}/secretKey", tag = "Keys",
    operation_id = "readSecretKey",
    params(("project" = String, Path, description = "Id of the project"),
        ("id" = String, Path, description = "Id of the application")),
    responses((status = 200, description = "The key", body = SecretKeyDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn read_secret_key(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path((project, id)): Path<(String, String)>,
) -> Result<Json<SecretKeyDocument>, ApiError> {
    let secret_api_key = applications::read_secret_key(&core, &caller, &project, &id).await?;
    Ok(Json(SecretKeyDocument { secret_api_key }))
}

/// Gives an application its next secret key.
///
/// The one before ends at once, or works beside it for `overlap` milliseconds.
#[utoipa::path(post, path = "/projects/{project}/applications/{id}/secretKey/rotate", tag = "Keys",
    operation_id = "rotateSecretKey",
    params(("project" = String, Path, description = "Id of the project"),
        ("id" = String, Path, description = "Id of the application")),
    request_body(content = Object, description = "How long the old key works on"),
    responses((status = 201, description = "The new key", body = SecretKeyDocument)))]
pub(super) async fn rotate_secret_key(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path((project, id)): Path<(String, String)>,
    info: RequestInfo,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let overlap = overlap(&body)?;
    let (_, secret_api_key) =
        applications::rotate_key(&core, &caller, (&project, &id), AppKey::Secret, overlap).await?;
    let path = format!("/projects/{project}/applications/{id}/secretKey");
    Ok(created_at(&info, &path, SecretKeyDocument { secret_api_key }))
}

/// Gives an application its next public key.
///
/// The one before ends at once, or works beside it for `overlap` milliseconds. The keys of its users stay.
#[utoipa::path(post, path = "/projects/{project}/applications/{id}/appApiKey/rotate", tag = "Keys",
    operation_id = "rotateAppApiKey",
    params(("project" = String, Path, description = "Id of the project"),
        ("id" = String, Path, description = "Id of the application")),
    request_body(content = Object, description = "How long the old key works on"),
    responses((status = 201, description = "The application with its new key", body = ApplicationDocument)))]
pub(super) async fn rotate_public_key(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path((project, id)): Path<(String, String)>,
    info: RequestInfo,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let overlap = overlap(&body)?;
    let (application, _) =
        applications::rotate_key(&core, &caller, (&project, &id), AppKey::Public, overlap).await?;
    let path = format!("/projects/{project}/applications/{id}");
    Ok(created_at(&info, &path, ApplicationDocument::new(&core, application)?))
}

/// Reads the application that the key belongs to.
#[utoipa::path(get, path = "/applications/me", tag = "Projects", operation_id = "readOwnApplication",
    responses((status = 200, description = "The application", body = ApplicationDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn read_own(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
) -> Result<Json<ApplicationDocument>, ApiError> {
    let application = applications::read_own(&core, &caller).await?;
    Ok(Json(ApplicationDocument::new(&core, application)?))
}
