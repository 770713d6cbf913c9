//! HTTP: operators, by their own paths.

use std::sync::Arc;

use axum::{Json, extract::State};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;
use web::{
    access::Authenticated,
    api_error::ApiError,
    extract::{JsonBody, Path},
};

use crate::{
    domain::operator::{Operator, OperatorChange, conditions},
    service::{Core, operators},
};

/// A person or program that works in an account.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperatorDocument {
    /// Its id.
    #[schema(read_only, example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    id: String,
    /// Its account.
    #[schema(read_only, example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    account: String,
    /// Address it is known by; empty for a program.
    #[schema(read_only, example = "ada@example.com")]
    email: String,
    /// First name, at most 256 characters.
    first_name: String,
    /// Last name, at most 256 characters.
    last_name: String,
    /// Ids of its roles.
    #[schema(read_only, example = json!(["editor"]))]
    policies: Vec<String>,
    /// What its roles are confined to, such as `project=<id>`; the whole account if there is none.
    #[schema(read_only, example = json!(["project=UKXAGyEf8SQ5eTDmVgGpHqAa"]))]
    conditions: Vec<String>,
    /// The caller's own members; replaced as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    custom_fields: Option<Map<String, Value>>,
    /// When it was created, in milliseconds since 1970.
    #[schema(read_only)]
    created_at: i64,
    /// When it was last changed.
    #[schema(read_only)]
    updated_at: i64,
}

impl From<Operator> for OperatorDocument {
    fn from(operator: Operator) -> Self {
        Self {
            id: operator.id.to_string(),
            account: operator.account.to_string(),
            email: operator.email,
            first_name: operator.first_name,
            last_name: operator.last_name,
            conditions: conditions(operator.projects.as_deref()),
            policies: operator.roles,
            custom_fields: operator.details.common.custom_fields,
            created_at: operator.created_at.0,
            updated_at: operator.updated_at.0,
        }
    }
}

/// Reads an operator. Whoever may not read operators reads itself.
#[utoipa::path(get, path = "/operators/{id}", tag = "Accounts", operation_id = "readOperator",
    params(("id" = String, Path, description = "Id of the operator")),
    responses((status = 200, description = "The operator", body = OperatorDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn read(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Json<OperatorDocument>, ApiError> {
    Ok(Json(operators::read(&core, &caller, &id).await?.into()))
}

/// Reads the operator whose key it is.
#[utoipa::path(get, path = "/me", tag = "Accounts", operation_id = "readMe",
    responses((status = 200, description = "The operator", body = OperatorDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn read_me(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
) -> Result<Json<OperatorDocument>, ApiError> {
    Ok(Json(operators::read(&core, &caller, &caller.id).await?.into()))
}

/// Changes the members given; the others stay. Whoever may not change operators changes itself.
#[utoipa::path(put, path = "/operators/{id}", tag = "Accounts", operation_id = "updateOperator",
    params(("id" = String, Path, description = "Id of the operator")),
    request_body(content = OperatorDocument, description = "The members to change; the others may be left out"),
    responses((status = 200, description = "The whole operator", body = OperatorDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn update(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    JsonBody(body): JsonBody,
) -> Result<Json<OperatorDocument>, ApiError> {
    let change = OperatorChange::parse(&body).map_err(ApiError::invalid)?;
    Ok(Json(operators::update(&core, &caller, &id, change).await?.into()))
}
