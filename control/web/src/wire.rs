//! JSON members that several documents share.

use std::collections::BTreeMap;

use axum::{
    Json,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use kernel::domain::{
    common::{Common, Stamp},
    scopes::Scopes,
};
use serde::Serialize;
use serde_json::{Map, Value};
use serde_with_macros::skip_serializing_none;
use utoipa::ToSchema;

use crate::request_info::RequestInfo;

/// Who may see a resource beside operators; shown with `withScopes=true`.
#[derive(Debug, Serialize, ToSchema)]
pub struct ScopesDocument {
    /// Ids of application users, or the word `all`.
    users: Vec<String>,
    /// Ids of projects.
    projects: Vec<String>,
}

impl From<Scopes> for ScopesDocument {
    fn from(scopes: Scopes) -> Self {
        Self { users: scopes.users, projects: scopes.projects }
    }
}

/// The members that products and Thngs share.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommonDocument {
    /// When it was created, in milliseconds since 1970.
    #[schema(read_only, example = 1_767_225_600_000_i64)]
    created_at: i64,
    /// When it was last changed; later than `createdAt` after an update.
    #[schema(read_only, example = 1_767_225_600_000_i64)]
    updated_at: i64,
    /// Free text, at most 4,096 characters.
    description: Option<String>,
    /// At most 100 labels of 1 to 128 characters.
    tags: Option<Vec<String>>,
    /// The caller's own members, at most 64 KiB; replaced as a whole.
    #[schema(value_type = Option<Object>, example = json!({"color": "red"}))]
    custom_fields: Option<Map<String, Value>>,
    /// At most 50 names outside of the platform; replaced as a whole.
    #[schema(example = json!({"gs1:21": "A1B2"}))]
    identifiers: Option<BTreeMap<String, String>>,
    /// When it was activated, in milliseconds since 1970.
    activated_at: Option<i64>,
    /// Shown with `withScopes=true`.
    scopes: Option<ScopesDocument>,
}

impl CommonDocument {
    /// Those of a resource, its scopes only where they were asked for.
    #[must_use]
    pub fn new(stamp: Stamp, common: Common, with_scopes: bool) -> Self {
        Self {
            created_at: stamp.created_at.0,
            updated_at: stamp.updated_at.0,
            description: common.description,
            tags: common.tags,
            custom_fields: common.custom_fields,
            identifiers: common.identifiers,
            activated_at: common.activated_at.map(|at| at.0),
            scopes: with_scopes.then(|| common.scopes.unwrap_or_default().into()),
        }
    }
}

/// 201 with a given `Location`: `path` is that of the new resource, without the version prefix.
pub fn created_at<B: Serialize>(info: &RequestInfo, path: &str, body: B) -> Response {
    let prefix = info.original_path.strip_suffix(&*info.path).unwrap_or_default();
    let location = format!("{}{prefix}{path}", info.base);
    (StatusCode::CREATED, [(header::LOCATION, location)], Json(body)).into_response()
}

/// 201 with the `Location` of the new resource: below the path of the POST.
pub fn created<B: Serialize>(info: &RequestInfo, id: &str, body: B) -> Response {
    let location = format!("{}{}/{id}", info.base, info.original_path);
    (StatusCode::CREATED, [(header::LOCATION, location)], Json(body)).into_response()
}
