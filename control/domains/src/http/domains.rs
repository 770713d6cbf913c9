//! HTTP: short domains of an account and their settings.

use std::sync::Arc;

use axum::{Json, extract::State};
use kernel::service::access::Caller;
use serde_json::Value;
use shared::problem::Code;
use web::{
    access::Authenticated,
    api_error::ApiError,
    conditions::Tagged,
    extract::{JsonBody, Path, Query},
};

use super::documents::{DomainDocument, Wanted, is_shown};
use crate::{
    domain::change::ShortDomainChange,
    service::{DomainState, OwnDomain, claims, settings},
};

/// Lists the short domains of an account on which links may be, its first one first.
#[utoipa::path(get, path = "/accounts/{id}/shortDomains", tag = "Accounts", operation_id = "listShortDomains",
    params(("id" = String, Path, description = "Id of the account")),
    responses((status = 200, description = "Hosts", body = [String], example = json!(["tn.gg"]))),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn list_hosts(
    State(state): State<Arc<DomainState>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Json<Vec<String>>, ApiError> {
    let all = claims::list(&state, &caller, &id).await?;
    let held = all.into_iter().filter(|own| own.is_held);
    Ok(Json(held.map(|own| own.domain.host.to_string()).collect()))
}

/// Lists the domains of an account: those that it has short URLs on.
///
/// With `state` it lists the domains of a state, or with `all` all of them: also those that were claimed and are not proven.
/// The files of a domain are in no list.
#[utoipa::path(get, path = "/accounts/{id}/domains", tag = "Accounts", operation_id = "listDomains",
    params(("id" = String, Path, description = "Id of the account")),
    responses((status = 200, description = "Domains", body = [DomainDocument])),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn list(
    State(state): State<Arc<DomainState>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    query: Query,
) -> Result<Json<Vec<DomainDocument>>, ApiError> {
    let wanted = match query.find("state") {
        None => None,
        Some(text) => Some(Wanted::parse(text).ok_or_else(|| {
            let fault = "state must be pending, verified, unproven, refused or all.";
            ApiError::faults(Code::InvalidParameter, vec![fault.to_owned()])
        })?),
    };
    let all = claims::list(&state, &caller, &id).await?;
    let shown = all.into_iter().filter(|own| is_shown(own, wanted));
    Ok(Json(shown.map(DomainDocument::listed).collect()))
}

/// Reads a short domain of an account, or a host that it has claimed: its state, its settings, and what proves it. The `ETag` is
/// that of its settings: a check of its proof does not change it.
#[utoipa::path(get, path = "/accounts/{id}/shortDomains/{domain}", tag = "Accounts", operation_id = "readShortDomain",
    params(("id" = String, Path, description = "Id of the account"),
        ("domain" = String, Path, description = "A short domain of the account, or a host that it has claimed")),
    responses((status = 200, description = "The domain", body = DomainDocument)))]
pub(super) async fn read(
    State(state): State<Arc<DomainState>>,
    Authenticated(caller): Authenticated,
    Path((id, host)): Path<(String, String)>,
) -> Result<Tagged<DomainDocument>, ApiError> {
    Ok(tagged(claims::read(&state, &caller, &id, &host).await?))
}

/// Changes settings of a short domain; `null` gives a member its default. Edges serve them within a moment.
#[utoipa::path(put, path = "/accounts/{id}/shortDomains/{domain}", tag = "Accounts", operation_id = "updateShortDomain",
    params(("id" = String, Path, description = "Id of the account"),
        ("domain" = String, Path, description = "A short domain of the account")),
    request_body(content = Object, description = "The members to change; the others stay"),
    responses((status = 200, description = "The domain", body = DomainDocument),
        (status = 409, description = "Its files would take more than the account may have, or all accounts together; or its paths must stay, because codes may be printed")))]
pub(super) async fn update(
    State(state): State<Arc<DomainState>>,
    Authenticated(caller): Authenticated,
    Path((id, host)): Path<(String, String)>,
    JsonBody(body): JsonBody,
) -> Result<Tagged<DomainDocument>, ApiError> {
    change(&state, &caller, (id.as_str(), host.as_str()), &body).await
}

/// Changes settings of a short domain, as `PUT /accounts/{id}/shortDomains/{domain}` does.
#[utoipa::path(put, path = "/accounts/{id}/domains/{domain}", tag = "Accounts", operation_id = "updateDomain",
    params(("id" = String, Path, description = "Id of the account"),
        ("domain" = String, Path, description = "A short domain of the account")),
    request_body(content = Object, description = "The members to change; the others stay"),
    responses((status = 200, description = "The domain", body = DomainDocument),
        (status = 409, description = "Its files would take more than the account may have, or all accounts together; or its paths must stay, because codes may be printed")),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn update_by_older_name(
    State(state): State<Arc<DomainState>>,
    Authenticated(caller): Authenticated,
    Path((id, domain)): Path<(String, String)>,
    JsonBody(body): JsonBody,
) -> Result<Tagged<DomainDocument>, ApiError> {
    change(&state, &caller, (id.as_str(), domain.as_str()), &body).await
}

async fn change(
    state: &DomainState,
    caller: &Caller,
    (id, host): (&str, &str),
    body: &Value,
) -> Result<Tagged<DomainDocument>, ApiError> {
    let change = ShortDomainChange::parse(body).map_err(ApiError::invalid)?;
    Ok(tagged(settings::update(state, caller, (id, host), change).await?))
}

fn tagged(own: OwnDomain) -> Tagged<DomainDocument> {
    Tagged(own.tag(), own.into())
}
