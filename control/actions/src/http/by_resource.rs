//! HTTP: actions of a Thng, a product or a collection.

use axum::{Json, extract::State, response::Response};
use web::{
    access::Authenticated,
    api_error::ApiError,
    extract::{JsonBody, Path, Query},
    openapi::{ListParams, PageParams},
    request_info::RequestInfo,
};

use super::{
    actions::{ActionDocument, list_in, read_in},
    new_actions::{NewActionDocument, Sender, create_in},
};
use crate::service::{
    ActionState,
    actions::{self as service, Scope},
};

/// The operations below `/thngs/{id}/actions` and the like.
macro_rules! actions {
    ($module:ident, $scope:ident, $path:literal, $one:literal, $name:literal, $kind:literal) => {
        pub(super) mod $module {
            use super::*;

            #[doc = concat!("Lists actions of a ", $name, ", of one type or of `all`.")]
            #[utoipa::path(get, path = $path, tag = "Actions", operation_id = concat!("list", $kind, "Actions"),
                summary = concat!("Lists actions of a ", $name, ", of one type or of `all`."),
                params(PageParams, ListParams, ("id" = String, Path, description = "Id, or `<key>:<value>`"),
                    ("type" = String, Path, description = "Name of a type, or `all`"),
                    ("context" = Option<bool>, Query, description = "Show `context`, as far as the key may see it")),
                responses((status = 200, description = "One page", body = [ActionDocument])),
                extensions(("x-maturity" = json!("General Availability"))))]
            pub(in super::super) async fn list(
                State(state): State<ActionState>,
                Authenticated(caller): Authenticated,
                info: RequestInfo,
                Path((reference, kind)): Path<(String, String)>,
                query: Query,
            ) -> Result<Response, ApiError> {
                list_in(&state, &caller, info, &query, Scope::$scope(&reference), &kind).await
            }

            #[doc = concat!("Makes an action of a ", $name, ", or several at once.")]
            #[utoipa::path(post, path = $path, tag = "Actions", operation_id = concat!("create", $kind, "Action"),
                summary = concat!("Makes an action of a ", $name, ", or several at once."),
                params(("id" = String, Path, description = "Id, or `<key>:<value>`"),
                    ("type" = String, Path, description = "Name of a type, or `all` where each action says its own"),
                    ("project" = Option<String>, Query, description = "Project that the action is scoped to")),
                request_body(content = NewActionDocument, description = "One action, or an array of 1 to 1,000"),
                responses((status = 201, description = "The action with its `context`, or an array in the order sent",
                    body = ActionDocument)),
                extensions(("x-maturity" = json!("General Availability"))))]
            pub(in super::super) async fn create(
                State(state): State<ActionState>,
                Authenticated(caller): Authenticated,
                Path((reference, kind)): Path<(String, String)>,
                sender: Sender,
                query: Query,
                JsonBody(body): JsonBody,
            ) -> Result<Response, ApiError> {
                create_in(&state, &caller, &sender, &query, Scope::$scope(&reference), &kind, &body).await
            }

            #[doc = concat!("Reads an action of a ", $name, ".")]
            #[utoipa::path(get, path = $one, tag = "Actions", operation_id = concat!("read", $kind, "Action"),
                summary = concat!("Reads an action of a ", $name, "."),
                params(("id" = String, Path, description = "Id, or `<key>:<value>`"),
                    ("type" = String, Path, description = "Name of its type, or `all`"),
                    ("action" = String, Path, description = "Id of the action"),
                    ("withScopes" = Option<bool>, Query, description = "Show `scopes`"),
                    ("context" = Option<bool>, Query, description = "Show `context`, as far as the key may see it")),
                responses((status = 200, description = "The action", body = ActionDocument)),
                extensions(("x-maturity" = json!("General Availability"))))]
            pub(in super::super) async fn read(
                State(state): State<ActionState>,
                Authenticated(caller): Authenticated,
                Path((reference, kind, id)): Path<(String, String, String)>,
                query: Query,
            ) -> Result<Json<ActionDocument>, ApiError> {
                read_in(&state, &caller, &query, Scope::$scope(&reference), &kind, &id).await
            }

            #[doc = concat!("Removes an action of a ", $name, ".")]
            #[utoipa::path(delete, path = $one, tag = "Actions", operation_id = concat!("delete", $kind, "Action"),
                summary = concat!("Removes an action of a ", $name, "."),
                params(("id" = String, Path, description = "Id, or `<key>:<value>`"),
                    ("type" = String, Path, description = "Name of its type, or `all`"),
                    ("action" = String, Path, description = "Id of the action")),
                responses((status = 200, description = "Removed; the body is empty")),
                extensions(("x-maturity" = json!("General Availability"))))]
            pub(in super::super) async fn delete(
                State(state): State<ActionState>,
                Authenticated(caller): Authenticated,
                Path((reference, kind, id)): Path<(String, String, String)>,
            ) -> Result<(), ApiError> {
                Ok(service::delete(&state, &caller, Scope::$scope(&reference), &kind, &id).await?)
            }
        }
    };
}

actions!(of_thng, Thng, "/thngs/{id}/actions/{type}", "/thngs/{id}/actions/{type}/{action}", "Thng", "Thng");
actions!(
    of_product,
    Product,
    "/products/{id}/actions/{type}",
    "/products/{id}/actions/{type}/{action}",
    "product",
    "Product"
);
actions!(
    of_collection,
    Collection,
    "/collections/{id}/actions/{type}",
    "/collections/{id}/actions/{type}/{action}",
    "collection",
    "Collection"
);
