//! Operations on many named resources in one request: bulk `PUT` and `DELETE` with `?ids=`, and arrays on `POST`.
//!
//! Spec gap: the platform API does not show the responses. The vendor's Java client insists on 204 for the `PUT`, on
//! 200 for the `DELETE`, and reads the number of resources from `x-result-count`.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    http::StatusCode,
    response::{IntoResponse, Response},
};
use serde_json::Value;
use shared::problem::Code;

use super::{
    access::Authenticated,
    api_error::ApiError,
    batches::BatchDocument,
    collections::CollectionDocument,
    extract::{JsonBody, Query},
    files::FileDocument,
    listing::{RESULT_COUNT, parse_ids},
    places::PlaceDocument,
    products::ProductDocument,
    projects::ProjectDocument,
    reactions::{ReactionDocument, parse as parse_reaction},
    thngs::ThngDocument,
    webhooks::{WebhookDocument, parse as parse_webhook},
};
use crate::{
    domain::{
        batch::{Batch, BatchChange},
        body::Purpose,
        collection::{Collection, CollectionChange},
        file::{File, FileChange},
        place::{Place, PlaceChange},
        project::{Project, ProjectChange},
        reaction::Reaction,
        resource::{Product, ProductChange, Thng, ThngChange},
        webhook::Webhook,
    },
    service::{
        App, Catalog, Core, EventState,
        access::Caller,
        bulk::{self as service, Bulk, CreateEach},
    },
};

/// The bulk operations of one kind of resource: in a module, as those of another kind have the same names.
///
/// The long form is for a kind that is not generally available, or whose body is read by a function of its own.
macro_rules! bulk {
    ($state:ty, $module:ident, $resource:ident, $change:ident, $document:ident, $path:literal, $tag:literal, $name:literal) => {
        bulk!($state, $module, $resource, $document, $path, $tag, $name, "General Availability", |_, body| {
            $change::parse(body, Purpose::Update).map_err(|faults| ApiError::faults(Code::Invalid, faults))
        });
    };
    (
        $state:ty,
        $module:ident,
        $resource:ident,
        $document:ident,
        $path:literal,
        $tag:literal,
        $name:literal,
        $maturity:literal,
        $parse:expr
    ) => {
        pub(super) mod $module {
            use super::*;

            #[doc = concat!("Changes the members given of several ", $name, ": of all of them, or none.")]
            #[utoipa::path(put, path = $path, tag = $tag, operation_id = concat!("update-", $name),
                summary = concat!("Changes the members given of several ", $name, ": of all of them, or none."),
                params(("ids" = String, Query, description = "Ids, comma-separated, at most 100")),
                request_body(content = $document, description = "The members to change; the others may be left out"),
                responses((status = 204, description = "Changed; `x-result-count` says how many")),
                extensions(("x-maturity" = json!($maturity))))]
            pub(in crate::http) async fn update(
                State(app): State<Arc<App>>,
                Authenticated(caller): Authenticated,
                query: Query,
                JsonBody(body): JsonBody,
            ) -> Result<Response, ApiError> {
                let ids = ids(&query)?;
                let parse: fn(&App, &Value) -> Result<<$resource as Bulk<$state>>::Change, ApiError> = $parse;
                let change = parse(&app, &body)?;
                service::update::<$state, $resource>((*app).as_ref(), &caller, &ids, change).await?;
                Ok((StatusCode::NO_CONTENT, [(RESULT_COUNT, ids.len())]).into_response())
            }

            #[doc = concat!("Removes several ", $name, ": all of them, or none.")]
            #[utoipa::path(delete, path = $path, tag = $tag, operation_id = concat!("delete-", $name),
                summary = concat!("Removes several ", $name, ": all of them, or none."),
                params(("ids" = String, Query, description = "Ids, comma-separated, at most 100")),
                responses((status = 200, description = "Removed; the body is empty, `x-result-count` says how many")),
                extensions(("x-maturity" = json!($maturity))))]
            pub(in crate::http) async fn delete(
                State(app): State<Arc<App>>,
                Authenticated(caller): Authenticated,
                query: Query,
            ) -> Result<Response, ApiError> {
                let ids = ids(&query)?;
                service::delete::<$state, $resource>((*app).as_ref(), &caller, &ids).await?;
                Ok([(RESULT_COUNT, ids.len())].into_response())
            }
        }
    };
}

bulk!(Core, thngs, Thng, ThngChange, ThngDocument, "/thngs", "Thngs", "thngs");
bulk!(Core, products, Product, ProductChange, ProductDocument, "/products", "Products", "products");
bulk!(Core, places, Place, PlaceChange, PlaceDocument, "/places", "Places", "places");
bulk!(
    Core,
    collections,
    Collection,
    CollectionChange,
    CollectionDocument,
    "/collections",
    "Collections",
    "collections"
);
bulk!(Catalog, files, File, FileChange, FileDocument, "/files", "Files", "files");
bulk!(Core, projects, Project, ProjectChange, ProjectDocument, "/projects", "Projects", "projects");
bulk!(Core, batches, Batch, BatchChange, BatchDocument, "/batches", "Batches", "batches");

bulk!(
    EventState,
    webhooks,
    Webhook,
    WebhookDocument,
    "/webhooks",
    "Events",
    "webhooks",
    "Beta",
    |app, body| { parse_webhook(app, body, Purpose::Update) }
);
bulk!(
    EventState,
    reactions,
    Reaction,
    ReactionDocument,
    "/reactions",
    "Events",
    "reactions",
    "Beta",
    |_, body| { parse_reaction(body, Purpose::Update) }
);

/// The ids of a bulk operation; without any it would be about everything.
pub(super) fn ids(query: &Query) -> Result<Vec<String>, ApiError> {
    let text = query.find("ids").filter(|text| !text.trim().is_empty());
    let refuse = |fault: String| ApiError::refused(Code::InvalidParameter, fault);
    let text = text.ok_or_else(|| refuse("ids must name what is meant, comma-separated.".to_owned()))?;
    parse_ids(text).map_err(refuse)
}

/// Creates what an array holds: one result for each item, in its order.
pub(super) async fn create_each<S: AsRef<Core> + Sync, D: CreateEach<S>>(
    state: &S,
    caller: &Caller,
    items: &[Value],
    project: Option<&str>,
    parse: impl Fn(&Value) -> Result<D::Change, Vec<String>>,
) -> Result<Response, ApiError> {
    if items.len() > service::MAX_CREATED {
        let fault = format!("The array must hold 1 to {} items, not {}.", service::MAX_CREATED, items.len());
        return Err(ApiError::refused(Code::Invalid, fault));
    }
    let items = items.iter().map(parse).collect();
    Ok(Json(service::create_each::<S, D>(state, caller, items, project).await?).into_response())
}
