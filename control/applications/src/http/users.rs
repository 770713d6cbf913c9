//! HTTP: users of applications.

use std::sync::Arc;

use axum::{Json, extract::State, response::Response};
use serde::Serialize;
use serde_json::{Map, Value};
use serde_with_macros::skip_serializing_none;
use utoipa::ToSchema;
use web::{
    access::Authenticated,
    api_error::ApiError,
    conditions::Tagged,
    extract::{JsonBody, Path, Query},
    listing::Listing,
    openapi::{NumberedParams, PageParams},
    request_info::RequestInfo,
    wire::CommonDocument,
};

use crate::{
    domain::{
        app_user::{AppUser, UserDetails},
        listing::USERS,
    },
    service::{Core, users},
};

/// A user of an application.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct UserDocument {
    /// Its id.
    #[schema(read_only, example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    id: String,
    #[serde(flatten)]
    common: CommonDocument,
    /// At most 256 characters.
    #[schema(example = "Ada")]
    first_name: Option<String>,
    /// At most 256 characters.
    last_name: Option<String>,
    /// Address by which the user logs in.
    #[schema(read_only)]
    email: Option<String>,
    /// At most 256 characters.
    gender: Option<String>,
    /// At most 256 characters.
    locale: Option<String>,
    /// At most 256 characters.
    timezone: Option<String>,
    /// URL of a photo.
    photo: Option<String>,
    /// Date of birth, in the client's own form.
    #[schema(value_type = Option<Object>)]
    birthday: Option<Map<String, Value>>,
    /// `inactive`, `active` or `anonymous`.
    #[schema(read_only, example = "active")]
    status: &'static str,
    /// Id of the project the user belongs to.
    #[schema(read_only, example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    project: String,
    /// Id of the application by which the user was made.
    #[schema(read_only, example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    app: String,
}

impl From<AppUser> for UserDocument {
    fn from(user: AppUser) -> Self {
        let details = user.details;
        Self {
            id: user.id.to_string(),
            common: CommonDocument::new(user.stamp, details.common, false),
            first_name: details.first_name,
            last_name: details.last_name,
            email: details.email,
            gender: details.gender,
            locale: details.locale,
            timezone: details.timezone,
            photo: details.photo,
            birthday: details.birthday,
            status: user.status.as_str(),
            project: user.project.to_string(),
            app: user.app.to_string(),
        }
    }
}

/// Lists users, newest first.
#[utoipa::path(get, path = "/users", tag = "Users", operation_id = "listUsers",
    params(PageParams, NumberedParams),
    responses((status = 200, description = "One page", body = [UserDocument])),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn list(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    query: Query,
) -> Result<Response, ApiError> {
    let listing = Listing::parse(&core, &caller, info, &query, &USERS)?;
    let page = users::list(&core, &caller, &listing.request).await?;
    Ok(listing.answer(&core, page, UserDocument::from))
}

/// Reads a user.
#[utoipa::path(get, path = "/users/{id}", tag = "Users", operation_id = "readUser",
    params(("id" = String, Path, description = "Id of the user")),
    responses((status = 200, description = "The user", body = UserDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn read(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Tagged<UserDocument>, ApiError> {
    let user = users::read(&core, &caller, &id).await?;
    Ok(Tagged(user.tag(), user.into()))
}

/// Changes the members given; the others stay.
#[utoipa::path(put, path = "/users/{id}", tag = "Users", operation_id = "updateUser",
    params(("id" = String, Path, description = "Id of the user")),
    request_body(content = UserDocument, description = "The members to change; the others may be left out"),
    responses((status = 200, description = "The whole user", body = UserDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn update(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    JsonBody(body): JsonBody,
) -> Result<Json<UserDocument>, ApiError> {
    let change = UserDetails::parse_change(&body).map_err(ApiError::invalid)?;
    Ok(Json(users::update(&core, &caller, &id, change).await?.into()))
}

/// Removes a user; none of its keys is valid from then on.
#[utoipa::path(delete, path = "/users/{id}", tag = "Users", operation_id = "deleteUser",
    params(("id" = String, Path, description = "Id of the user")),
    responses((status = 200, description = "Removed; the body is empty")),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn delete(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<(), ApiError> {
    Ok(users::delete(&core, &caller, &id).await?)
}
