//! HTTP: who a key belongs to.

use axum::Json;
use serde::Serialize;
use utoipa::ToSchema;
use web::{access::Authenticated, api_error::ApiError};

use crate::{
    domain::permission::{Subject, Verb},
    service::access,
};

/// Who a key belongs to.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AccessDocument {
    /// Id of the account.
    #[schema(example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    account: String,
    /// Id of the project that the key is confined to.
    #[serde(skip_serializing_if = "Option::is_none")]
    project: Option<String>,
    actor: ActorDocument,
}

/// Who acts with a key.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ActorDocument {
    /// `operator`, `app`, `userInApp` or `thng`.
    #[serde(rename = "type")]
    #[schema(example = "operator")]
    kind: &'static str,
    /// Id of the operator, application, user or Thng.
    #[schema(example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    id: String,
}

/// Says who the key belongs to.
#[utoipa::path(get, path = "/access", tag = "Access", operation_id = "readAccess",
    responses((status = 200, description = "The account and the actor", body = AccessDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn read(Authenticated(caller): Authenticated) -> Result<Json<AccessDocument>, ApiError> {
    let _ = access::require(&caller, Verb::Read, Subject::Access)?;
    let document = AccessDocument {
        account: caller.account.to_string(),
        project: caller.project.map(|id| id.to_string()),
        actor: ActorDocument { kind: caller.kind.as_actor_type(), id: caller.actor.id },
    };
    Ok(Json(document))
}
