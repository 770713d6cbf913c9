//! HTTP: access policies: roles for operators, as the vendor's client of version 6 has them.

use std::sync::Arc;

use axum::{Json, extract::State, response::Response};
use serde::Serialize;
use utoipa::ToSchema;
use web::{
    access::Authenticated,
    api_error::ApiError,
    conditions::Tagged,
    extract::{JsonBody, Path, Query},
    listing::Listing,
    openapi::{ListParams, PageParams},
    request_info::RequestInfo,
    wire::{CommonDocument, created},
};

use super::roles::described;
use crate::{
    domain::{
        body::Purpose,
        custom_role::{Role, RoleChange, RoleKind},
        listing::ROLES,
    },
    service::{
        Core,
        roles::{self, AnyRole},
    },
};

/// Access policies are roles for operators; roles for users are not found here.
const OPERATORS: Option<RoleKind> = Some(RoleKind::Operator);

/// A role for operators, with each of its permissions.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PolicyDocument {
    /// Its id.
    #[schema(read_only, example = "admin")]
    id: String,
    /// 1 to 256 characters; required on create. Those of every account begin with `evt:`.
    #[schema(example = "Press operators")]
    name: String,
    /// A subject with verbs each, such as `products:create,read`, at most 100; required on create.
    #[schema(example = json!(["redirections:read,list", "encodings:create"]))]
    permissions: Vec<String>,
    /// Names of parts of an application, at most 100; kept as they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    ui_permissions: Option<Vec<String>>,
    /// The part that an application begins with; kept as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    homepage: Option<String>,
    #[serde(flatten)]
    common: CommonDocument,
}

impl From<AnyRole> for PolicyDocument {
    fn from(role: AnyRole) -> Self {
        let permissions = role.permissions().texts();
        match role {
            AnyRole::BuiltIn(role) => Self {
                id: role.name.to_owned(),
                name: role.policy.to_owned(),
                permissions,
                ui_permissions: None,
                homepage: None,
                common: described(role.about),
            },
            AnyRole::Own(role) => (*role).into(),
        }
    }
}

impl From<Role> for PolicyDocument {
    fn from(role: Role) -> Self {
        Self {
            id: role.id.to_string(),
            name: role.name,
            permissions: role.details.permissions,
            ui_permissions: role.details.ui_permissions,
            homepage: role.details.homepage,
            common: CommonDocument::new(role.stamp, role.details.common, false),
        }
    }
}

/// Lists access policies, newest first: those that the account made, then those that every account has.
#[utoipa::path(get, path = "/accessPolicies", tag = "Roles", operation_id = "listAccessPolicies",
    params(PageParams, ListParams),
    responses((status = 200, description = "One page", body = [PolicyDocument])))]
pub(super) async fn list(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    query: Query,
) -> Result<Response, ApiError> {
    let listing = Listing::parse(&core, &caller, info, &query, &ROLES)?;
    let keep = |role: &AnyRole| match role {
        AnyRole::BuiltIn(role) => listing.admits_name(role.policy),
        AnyRole::Own(role) => role.kind == RoleKind::Operator && listing.admits_name(&role.name),
    };
    let page = roles::list(&core, &caller, listing.request.page, keep).await?;
    Ok(listing.answer(&core, page, PolicyDocument::from))
}

/// Makes an access policy.
#[utoipa::path(post, path = "/accessPolicies", tag = "Roles", operation_id = "createAccessPolicy",
    request_body = PolicyDocument,
    responses((status = 201, description = "The policy", body = PolicyDocument)))]
pub(super) async fn create(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let change = RoleChange::parse_policy(&body, Purpose::Create).map_err(ApiError::invalid)?;
    let role = roles::create(&core, &caller, change).await?;
    let id = role.id;
    Ok(created(&info, id.as_str(), PolicyDocument::from(role)))
}

/// Reads an access policy.
#[utoipa::path(get, path = "/accessPolicies/{id}", tag = "Roles", operation_id = "readAccessPolicy",
    params(("id" = String, Path, description = "Id of the policy")),
    responses((status = 200, description = "The policy", body = PolicyDocument)))]
pub(super) async fn read(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Tagged<PolicyDocument>, ApiError> {
    let role = roles::read(&core, &caller, &id, OPERATORS).await?;
    Ok(Tagged(role.tag(), role.into()))
}

/// Changes the members given; the others stay. Whoever has it may do what it allows from then on.
#[utoipa::path(put, path = "/accessPolicies/{id}", tag = "Roles", operation_id = "updateAccessPolicy",
    params(("id" = String, Path, description = "Id of the policy")),
    request_body(content = PolicyDocument, description = "The members to change; the others may be left out"),
    responses((status = 200, description = "The whole policy", body = PolicyDocument)))]
pub(super) async fn update(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    JsonBody(body): JsonBody,
) -> Result<Json<PolicyDocument>, ApiError> {
    let change = RoleChange::parse_policy(&body, Purpose::Update).map_err(ApiError::invalid)?;
    Ok(Json(roles::update(&core, &caller, &id, OPERATORS, change).await?.into()))
}

/// Removes an access policy that nobody has.
#[utoipa::path(delete, path = "/accessPolicies/{id}", tag = "Roles", operation_id = "deleteAccessPolicy",
    params(("id" = String, Path, description = "Id of the policy")),
    responses((status = 200, description = "Removed; the body is empty")))]
pub(super) async fn delete(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<(), ApiError> {
    Ok(roles::delete(&core, &caller, &id, OPERATORS).await?)
}
