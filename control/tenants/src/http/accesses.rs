//! HTTP: operators' accesses to an account, under their old and new paths.

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::tenant::Operator;

/// What an operator may do in an account.
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
    /// Address the operator is known by.
    #[schema(read_only, example = "ada@example.com")]
    email: String,
    /// A role of 1 to 256 characters; kept as it is, every operator may do the same.
    #[schema(example = "admin")]
    role: String,
    /// The key of the request, in the caller's own access; keys of others are not stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(read_only)]
    api_key: Option<String>,
    /// When it was created, in milliseconds since 1970.
    #[schema(read_only)]
    created_at: i64,
    /// When it was last changed.
    #[schema(read_only)]
    updated_at: i64,
}

impl OperatorAccessDocument {
    /// The document of an operator; `caller` is the caller's id, with the key of the request.
    fn new(operator: Operator, caller: (&str, &str)) -> Self {
        let id = operator.id.to_string();
        Self {
            api_key: (id == caller.0).then(|| caller.1.to_owned()),
            operator: id.clone(),
            id,
            account: operator.account.to_string(),
            email: operator.email,
            role: operator.role,
            created_at: operator.created_at.0,
            updated_at: operator.updated_at.0,
        }
    }
}

/// The operations below one name of the accesses.
macro_rules! accesses {
    ($module:ident, $list:literal, $one:literal, $ids:literal) => {
        /// Accesses of an account by this name.
        pub(super) mod $module {
            use std::sync::Arc;

            use axum::{Json, extract::State, response::Response};
            use shared::problem::Code;
            use web::{
                access::{Authenticated, SentKey},
                api_error::ApiError,
                extract::{JsonBody, Path, Query},
                listing::Listing,
                openapi::PageParams,
                request_info::RequestInfo,
            };

            use super::OperatorAccessDocument;
            use crate::{
                domain::{listing::PLAIN, tenant::AccessChange},
                service::{Core, tenants},
            };

            /// Lists the accesses of operators to an account.
            #[utoipa::path(get, path = $list, tag = "Accounts", operation_id = concat!("list", $ids),
                params(("id" = String, Path, description = "Id of the account"), PageParams),
                responses((status = 200, description = "One page", body = [OperatorAccessDocument])),
                extensions(("x-maturity" = json!("General Availability"))))]
            pub(in crate::http) async fn list(
                State(core): State<Arc<Core>>,
                Authenticated(caller): Authenticated,
                SentKey(key): SentKey,
                Path(id): Path<String>,
                info: RequestInfo,
                query: Query,
            ) -> Result<Response, ApiError> {
                let listing = Listing::parse(&core, &caller, info, &query, &PLAIN)?;
                let page = tenants::list_accesses(&core, &caller, &id, listing.request.page).await?;
                let caller = (caller.id.as_str(), key.as_str());
                Ok(listing.answer(&core, page, |operator| OperatorAccessDocument::new(operator, caller)))
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
                SentKey(key): SentKey,
                Path((id, access)): Path<(String, String)>,
            ) -> Result<Json<OperatorAccessDocument>, ApiError> {
                let operator = tenants::read_access(&core, &caller, &id, &access).await?;
                Ok(Json(OperatorAccessDocument::new(operator, (&caller.id, &key))))
            }

            /// Changes the role of an access.
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
                SentKey(key): SentKey,
                Path((id, access)): Path<(String, String)>,
                JsonBody(body): JsonBody,
            ) -> Result<Json<OperatorAccessDocument>, ApiError> {
                let change =
                    AccessChange::parse(&body).map_err(|faults| ApiError::faults(Code::Invalid, faults))?;
                let operator = tenants::update_access(&core, &caller, &id, &access, change).await?;
                Ok(Json(OperatorAccessDocument::new(operator, (&caller.id, &key))))
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
