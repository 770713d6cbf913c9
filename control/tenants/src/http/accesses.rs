//! HTTP: operators' accesses to an account, under their old and new paths, and those of programs.

use std::sync::Arc;

use axum::{Extension, Json, extract::State, response::Response};
use mail::Outbox;
use serde::Serialize;
use serde_with_macros::skip_serializing_none;
use utoipa::ToSchema;
use web::{
    access::{Authenticated, ShownKey},
    api_error::ApiError,
    conditions::Tagged,
    extract::{JsonBody, Path, Query},
    listing::Listing,
    openapi::PageParams,
    rate_limit::Ledger,
    request_info::RequestInfo,
    wire::{CommonDocument, created, created_at},
};

use super::throttled;

use crate::{
    domain::{
        body::Purpose,
        common::Stamp,
        listing::PLAIN,
        operator::{AccessChange, Operator, OperatorKind, conditions},
    },
    service::{
        Core,
        invitations::{self, Invited},
        operators::{self, Shown},
    },
};

/// What an operator may do in an account.
#[skip_serializing_none]
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct OperatorAccessDocument {
    /// Id of the access: the operator's.
    #[schema(read_only, example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    id: String,
    /// Id of the account.
    #[schema(read_only, example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    account: String,
    /// Id of the operator.
    #[schema(read_only, example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    operator: String,
    /// `person` or `machine`.
    #[serde(rename = "type")]
    #[schema(read_only, example = "person")]
    kind: &'static str,
    /// `active`, or `invited` until the invitation is accepted.
    #[schema(read_only, example = "active")]
    status: &'static str,
    /// When the invitation ends, in milliseconds since 1970.
    #[schema(read_only)]
    invited_until: Option<i64>,
    /// Address of a person; given on create.
    #[schema(example = "ada@example.com")]
    email: String,
    /// Name of a program, 1 to 256 characters.
    #[schema(example = "printing line 3")]
    name: Option<String>,
    /// First name of a person, at most 256 characters.
    first_name: String,
    /// Last name of a person, at most 256 characters.
    last_name: String,
    /// Id of its first role. Given alone, it becomes the only one.
    #[schema(example = "editor")]
    role: String,
    /// Ids of its roles, at most 20; it may do what any of them allows.
    #[schema(example = json!(["editor"]))]
    policies: Vec<String>,
    /// The projects that it is confined to, each as `project=<id>`, at most 20; the whole account if there is none.
    /// Confined, it may do in its projects what the secret key of an application may, as far as its roles allow that.
    #[schema(example = json!(["project=UKXAGyEf8SQ5eTDmVgGpHqAa"]))]
    conditions: Vec<String>,
    /// The key of the request, in the caller's own access; keys of others are not stored, and that of a session of the
    /// console is not shown.
    #[schema(read_only)]
    api_key: Option<String>,
    #[serde(flatten)]
    common: CommonDocument,
}

impl OperatorAccessDocument {
    fn new(operator: Operator) -> Self {
        let id = operator.id.to_string();
        let stamp = Stamp { seq: 0, created_at: operator.created_at, updated_at: operator.updated_at };
        Self {
            operator: id.clone(),
            id,
            account: operator.account.to_string(),
            kind: operator.kind.as_str(),
            status: if operator.invitation.is_some() { "invited" } else { "active" },
            invited_until: operator.invitation.map(|invitation| invitation.until.0),
            email: operator.email,
            name: operator.details.name,
            first_name: operator.first_name,
            last_name: operator.last_name,
            role: operator.roles.first().cloned().unwrap_or_default(),
            policies: operator.roles,
            conditions: conditions(operator.projects.as_deref()),
            api_key: None,
            common: CommonDocument::new(stamp, operator.details.common, false),
        }
    }

    /// The document of an operator; `caller` is the caller's id, with the key of the request if it may be shown.
    fn seen_by(operator: Operator, caller: (&str, Option<&str>)) -> Self {
        let document = Self::new(operator);
        let api_key = caller.1.filter(|_| document.id == caller.0).map(str::to_owned);
        Self { api_key, ..document }
    }
}

/// An invitation.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct InvitationDocument {
    #[serde(flatten)]
    access: OperatorAccessDocument,
    /// The code with which `POST /invitations` accepts it. It is not stored and cannot be read again. Where this server
    /// sends mail it is absent: it goes to the mailbox, and to nobody else.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(read_only)]
    invitation_code: Option<String>,
}

fn invited(invited: Invited) -> InvitationDocument {
    let access = OperatorAccessDocument::new(invited.operator);
    InvitationDocument { access, invitation_code: invited.code }
}

/// The operations below one name of the accesses.
macro_rules! accesses {
    ($module:ident, $list:literal, $one:literal, $ids:literal) => {
        /// Accesses of an account by this name.
        pub(super) mod $module {
            use super::*;

            /// Lists the accesses of operators to an account.
            #[utoipa::path(get, path = $list, tag = "Accounts", operation_id = concat!("list", $ids),
                params(("id" = String, Path, description = "Id of the account"), PageParams),
                responses((status = 200, description = "One page", body = [OperatorAccessDocument])),
                extensions(("x-maturity" = json!("General Availability"))))]
            pub(in crate::http) async fn list(
                State(core): State<Arc<Core>>,
                Authenticated(caller): Authenticated,
                ShownKey(key): ShownKey,
                Path(id): Path<String>,
                info: RequestInfo,
                query: Query,
            ) -> Result<Response, ApiError> {
                let listing = Listing::parse(&core, &caller, info, &query, &PLAIN)?;
                let page = operators::list(&core, &caller, &id, None, listing.request.page).await?;
                let caller = (caller.id.as_str(), key.as_deref());
                Ok(listing.answer(&core, page, |operator| OperatorAccessDocument::seen_by(operator, caller)))
            }

            /// Reads the access of an operator to an account.
            #[utoipa::path(get, path = $one, tag = "Accounts", operation_id = concat!("read", $ids),
                params(("id" = String, Path, description = "Id of the account"),
                    ("access" = String, Path, description = "Id of the access")),
                responses((status = 200, description = "The access", body = OperatorAccessDocument)),
                extensions(("x-maturity" = json!("General Availability"))))]
            pub(in crate::http) async fn read(
                State(core): State<Arc<Core>>,
                Authenticated(caller): Authenticated,
                ShownKey(key): ShownKey,
                Path((id, access)): Path<(String, String)>,
            ) -> Result<Tagged<OperatorAccessDocument>, ApiError> {
                let operator = operators::read_access(&core, &caller, &id, &access).await?;
                let tag = operator.tag();
                Ok(Tagged(tag, OperatorAccessDocument::seen_by(operator, (&caller.id, key.as_deref()))))
            }

            /// Changes an access. The keys of the operator can do what its roles allow from then on.
            #[utoipa::path(put, path = $one, tag = "Accounts", operation_id = concat!("update", $ids),
                params(("id" = String, Path, description = "Id of the account"),
                    ("access" = String, Path, description = "Id of the access")),
                request_body(content = OperatorAccessDocument,
                    description = "The members to change; the others may be left out"),
                responses((status = 200, description = "The whole access", body = OperatorAccessDocument)),
                extensions(("x-maturity" = json!("General Availability"))))]
            pub(in crate::http) async fn update(
                State(core): State<Arc<Core>>,
                Authenticated(caller): Authenticated,
                ShownKey(key): ShownKey,
                Path((id, access)): Path<(String, String)>,
                JsonBody(body): JsonBody,
            ) -> Result<Json<OperatorAccessDocument>, ApiError> {
                let change = AccessChange::parse(&body, Purpose::Update)
                    .map_err(ApiError::invalid)?;
                let operator = operators::update_access(&core, &caller, &id, &access, change).await?;
                Ok(Json(OperatorAccessDocument::seen_by(operator, (&caller.id, key.as_deref()))))
            }
        }
    };
}

accesses!(by_older_name, "/accounts/{id}/accesses", "/accounts/{id}/accesses/{access}", "Accesses");
accesses!(
    by_newer_name,
    "/accounts/{id}/operatorAccess",
    "/accounts/{id}/operatorAccess/{access}",
    "OperatorAccesses"
);

/// Invites somebody to an account. The code goes to the mailbox; where this server sends no mail, this answer alone holds it.
#[utoipa::path(post, path = "/accounts/{id}/operatorAccess", tag = "Accounts", operation_id = "inviteOperator",
    params(("id" = String, Path, description = "Id of the account")),
    request_body = OperatorAccessDocument,
    responses((status = 201, description = "The access, with the code of the invitation where no mail is sent", body = InvitationDocument)))]
pub(super) async fn invite(
    State(core): State<Arc<Core>>,
    State(outbox): State<Arc<Outbox>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    info: RequestInfo,
    Extension(ledger): Extension<Ledger>,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let change = AccessChange::parse(&body, Purpose::Create).map_err(ApiError::invalid)?;
    let made = invitations::invite(&core, &outbox, &caller, &id, change).await;
    let document = invited(made.map_err(|error| throttled(error, &ledger))?);
    let id = document.access.id.clone();
    Ok(created(&info, &id, document))
}

/// Invites somebody again who has not accepted; the code of before ends.
#[utoipa::path(post, path = "/accounts/{id}/operatorAccess/{access}/invitation", tag = "Accounts",
    operation_id = "inviteOperatorAgain",
    params(("id" = String, Path, description = "Id of the account"),
        ("access" = String, Path, description = "Id of the access")),
    responses((status = 201, description = "The access, with the code of the invitation where no mail is sent", body = InvitationDocument)))]
pub(super) async fn invite_again(
    State(core): State<Arc<Core>>,
    State(outbox): State<Arc<Outbox>>,
    Authenticated(caller): Authenticated,
    Path((id, access)): Path<(String, String)>,
    info: RequestInfo,
    Extension(ledger): Extension<Ledger>,
) -> Result<Response, ApiError> {
    let made = invitations::invite_again(&core, &outbox, &caller, &id, &access).await;
    let document = invited(made.map_err(|error| throttled(error, &ledger))?);
    Ok(created_at(&info, &format!("/accounts/{id}/operatorAccess/{access}"), document))
}

/// Removes an operator from an account, with its keys. What it made stays.
#[utoipa::path(delete, path = "/accounts/{id}/operatorAccess/{access}", tag = "Accounts",
    operation_id = "removeOperator",
    params(("id" = String, Path, description = "Id of the account"),
        ("access" = String, Path, description = "Id of the access")),
    responses((status = 200, description = "Removed; the body is empty")))]
pub(super) async fn remove(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    Path((id, access)): Path<(String, String)>,
) -> Result<(), ApiError> {
    Ok(operators::remove(&core, &caller, &id, &access).await?)
}

/// Lists the programs that have access to the account.
#[utoipa::path(get, path = "/accessTokens", tag = "Accounts", operation_id = "listAccessTokens",
    params(PageParams),
    responses((status = 200, description = "One page", body = [OperatorAccessDocument])))]
pub(super) async fn list_tokens(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    ShownKey(key): ShownKey,
    info: RequestInfo,
    query: Query,
) -> Result<Response, ApiError> {
    let listing = Listing::parse(&core, &caller, info, &query, &PLAIN)?;
    let account = caller.account.to_string();
    let machines = Some(OperatorKind::Machine);
    let page = operators::list(&core, &caller, &account, machines, listing.request.page).await?;
    let caller = (caller.id.as_str(), key.as_deref());
    Ok(listing.answer(&core, page, |operator| OperatorAccessDocument::seen_by(operator, caller)))
}

/// Makes a program that works in the account, with its first key. The answer is the only one that holds the key.
#[utoipa::path(post, path = "/accessTokens", tag = "Accounts", operation_id = "createAccessToken",
    request_body = OperatorAccessDocument,
    responses((status = 201, description = "The access, with the key", body = OperatorAccessDocument)))]
pub(super) async fn create_token(
    State(core): State<Arc<Core>>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let change = AccessChange::parse_token(&body).map_err(ApiError::invalid)?;
    let Shown { operator, secret } = operators::create_machine(&core, &caller, change).await?;
    let account = operator.account;
    let document = OperatorAccessDocument { api_key: Some(secret), ..OperatorAccessDocument::new(operator) };
    let path = format!("/accounts/{account}/operatorAccess/{}", document.id);
    Ok(created_at(&info, &path, document))
}
