//! HTTP: roles and their permissions, as the vendor's client of version 5 has them.

use std::sync::Arc;

use axum::{Json, extract::State, response::Response};
use serde::Serialize;
use serde_with_macros::skip_serializing_none;
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

use crate::{
    domain::{
        body::Purpose,
        common::{Common, Stamp},
        custom_role::{Role, RoleChange, RoleKind, parse_enabled, parse_paths},
        listing::ROLES,
        role::{GROUPS, Group},
    },
    service::{
        Core,
        roles::{self, AnyRole},
    },
};

/// A role: what operators or users of applications may do.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RoleDocument {
    /// Its id; of a role that every account has, its name.
    #[schema(read_only, example = "editor")]
    id: String,
    /// 1 to 256 characters; required on create.
    #[schema(example = "Press operators")]
    name: String,
    /// `operator` (if left out) or `userInApp`; set on create.
    #[serde(rename = "type")]
    #[schema(example = "operator")]
    kind: &'static str,
    /// Kept as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u32>,
    /// Whether every account has it: it cannot be changed.
    #[schema(read_only)]
    built_in: bool,
    #[serde(flatten)]
    common: CommonDocument,
}

impl From<AnyRole> for RoleDocument {
    fn from(role: AnyRole) -> Self {
        match role {
            AnyRole::BuiltIn(role) => Self {
                id: role.name.to_owned(),
                name: role.name.to_owned(),
                kind: RoleKind::Operator.as_str(),
                version: None,
                built_in: true,
                common: described(role.about),
            },
            AnyRole::Own(role) => (*role).into(),
        }
    }
}

impl From<Role> for RoleDocument {
    fn from(role: Role) -> Self {
        Self {
            id: role.id.to_string(),
            name: role.name,
            kind: role.kind.as_str(),
            version: role.details.version,
            built_in: false,
            common: CommonDocument::new(role.stamp, role.details.common, false),
        }
    }
}

/// The members of a role that every account has always had.
pub(super) fn described(about: &str) -> CommonDocument {
    let common = Common { description: Some(about.to_owned()), ..Common::default() };
    CommonDocument::new(Stamp::new(shared::time::UnixMillis(0)), common, false)
}

/// What a role allows: a group of permissions that is given or not, or for users the access to a path.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PermissionDocument {
    /// Name of the group.
    #[schema(read_only, example = "global_read")]
    name: Option<&'static str>,
    /// What one may do with it.
    #[schema(read_only)]
    description: Option<&'static str>,
    /// Whether the role gives the whole group.
    #[schema(example = true)]
    enabled: Option<bool>,
    /// A path.
    #[schema(example = "/thngs")]
    path: Option<String>,
    /// What users may do there: some of `c` (create), `r` (read), `u` (update) and `d` (delete).
    #[schema(example = "cr")]
    access: Option<String>,
}

impl PermissionDocument {
    fn of_group(group: &'static Group, role: &AnyRole) -> Self {
        let enabled = Some(role.permissions().cover(&group.permissions()));
        let (name, description) = (Some(group.name), Some(group.about));
        Self { name, description, enabled, path: None, access: None }
    }

    fn all(role: &AnyRole) -> Vec<Self> {
        match role {
            AnyRole::Own(own) if own.kind == RoleKind::User => {
                let paths = own.paths().into_iter().map(|path| Self {
                    name: None,
                    description: None,
                    enabled: None,
                    path: Some(path.path),
                    access: Some(path.access),
                });
                paths.collect()
            }
            _ => GROUPS.iter().map(|group| Self::of_group(group, role)).collect(),
        }
    }
}

/// Lists roles, newest first: those that the account made, then those that every account has.
#[utoipa::path(get, path = "/roles", tag = "Roles", operation_id = "listRoles", params(PageParams, ListParams),
    responses((status = 200, description = "One page", body = [RoleDocument])))]
pub(super) async fn list(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    query: Query,
) -> Result<Response, ApiError> {
    let listing = Listing::parse(&core, &caller, info, &query, &ROLES)?;
    let keep = |role: &AnyRole| match role {
        AnyRole::BuiltIn(role) => listing.admits_name(role.name),
        AnyRole::Own(role) => listing.admits_name(&role.name),
    };
    let page = roles::list(&core, &caller, listing.request.page, keep).await?;
    Ok(listing.answer(&core, page, RoleDocument::from))
}

/// Makes a role. One for operators reads (`global_read`) until more is given; one for users allows what every user may.
#[utoipa::path(post, path = "/roles", tag = "Roles", operation_id = "createRole",
    request_body = RoleDocument,
    responses((status = 201, description = "The role", body = RoleDocument)))]
pub(super) async fn create(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let change = RoleChange::parse(&body, Purpose::Create).map_err(ApiError::invalid)?;
    let role = roles::create(&core, &caller, change).await?;
    let id = role.id;
    Ok(created(&info, id.as_str(), RoleDocument::from(role)))
}

/// Reads a role.
#[utoipa::path(get, path = "/roles/{id}", tag = "Roles", operation_id = "readRole",
    params(("id" = String, Path, description = "Id of the role")),
    responses((status = 200, description = "The role", body = RoleDocument)))]
pub(super) async fn read(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Tagged<RoleDocument>, ApiError> {
    let role = roles::read(&core, &caller, &id, None).await?;
    Ok(Tagged(role.tag(), role.into()))
}

/// Changes the members given; the others stay.
#[utoipa::path(put, path = "/roles/{id}", tag = "Roles", operation_id = "updateRole",
    params(("id" = String, Path, description = "Id of the role")),
    request_body(content = RoleDocument, description = "The members to change; the others may be left out"),
    responses((status = 200, description = "The whole role", body = RoleDocument)))]
pub(super) async fn update(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    JsonBody(body): JsonBody,
) -> Result<Json<RoleDocument>, ApiError> {
    let change = RoleChange::parse(&body, Purpose::Update).map_err(ApiError::invalid)?;
    Ok(Json(roles::update(&core, &caller, &id, None, change).await?.into()))
}

/// Removes a role that nobody has.
#[utoipa::path(delete, path = "/roles/{id}", tag = "Roles", operation_id = "deleteRole",
    params(("id" = String, Path, description = "Id of the role")),
    responses((status = 200, description = "Removed; the body is empty")))]
pub(super) async fn delete(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<(), ApiError> {
    Ok(roles::delete(&core, &caller, &id, None).await?)
}

/// Lists what a role allows.
#[utoipa::path(get, path = "/roles/{id}/permissions", tag = "Roles", operation_id = "listPermissions",
    params(("id" = String, Path, description = "Id of the role")),
    responses((status = 200, description = "Every group or path", body = [PermissionDocument])))]
pub(super) async fn list_permissions(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Tagged<Vec<PermissionDocument>>, ApiError> {
    let role = roles::read(&core, &caller, &id, None).await?;
    Ok(Tagged(role.tag(), PermissionDocument::all(&role)))
}

/// Says what the users who have a role may do, path by path, in place of what they may now. What every user may do
/// stays.
#[utoipa::path(put, path = "/roles/{id}/permissions", tag = "Roles", operation_id = "updatePermissions",
    params(("id" = String, Path, description = "Id of a role for users")),
    request_body = [PermissionDocument],
    responses((status = 200, description = "Every path", body = [PermissionDocument])))]
pub(super) async fn update_permissions(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    JsonBody(body): JsonBody,
) -> Result<Json<Vec<PermissionDocument>>, ApiError> {
    let paths = parse_paths(&body).map_err(ApiError::invalid)?;
    let role = roles::set_paths(&core, &caller, &id, paths).await?;
    Ok(Json(PermissionDocument::all(&AnyRole::Own(Box::new(role)))))
}

/// Reads whether a role gives a group of permissions.
#[utoipa::path(get, path = "/roles/{id}/permissions/{name}", tag = "Roles", operation_id = "readPermission",
    params(("id" = String, Path, description = "Id of the role"),
        ("name" = String, Path, description = "Name of the group")),
    responses((status = 200, description = "The group", body = PermissionDocument)))]
pub(super) async fn read_permission(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path((id, name)): Path<(String, String)>,
) -> Result<Tagged<PermissionDocument>, ApiError> {
    let role = roles::read(&core, &caller, &id, None).await?;
    Ok(Tagged(role.tag(), PermissionDocument::of_group(roles::find_group(&name)?, &role)))
}

/// Gives a group of permissions to a role for operators, or takes it.
#[utoipa::path(put, path = "/roles/{id}/permissions/{name}", tag = "Roles", operation_id = "updatePermission",
    params(("id" = String, Path, description = "Id of the role"),
        ("name" = String, Path, description = "Name of the group")),
    request_body = PermissionDocument,
    responses((status = 200, description = "The group", body = PermissionDocument)))]
pub(super) async fn update_permission(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path((id, name)): Path<(String, String)>,
    JsonBody(body): JsonBody,
) -> Result<Json<PermissionDocument>, ApiError> {
    let is_enabled = parse_enabled(&body).map_err(ApiError::invalid)?;
    let (role, group) = roles::switch(&core, &caller, &id, &name, is_enabled).await?;
    Ok(Json(PermissionDocument::of_group(group, &AnyRole::Own(Box::new(role)))))
}
