//! HTTP: redirections at the first-generation paths `/thngs/:id/redirector` and `/products/:id/redirector`.

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use serde_json::json;
use shared::redirect::ResourceType;
use web::{
    access::Authenticated,
    api_error::ApiError,
    extract::{JsonBody, Path, Query},
    request_info::RequestInfo,
};

use super::{choice, created, document, idempotency_key, named, writable};
use crate::{
    domain::{
        permission::Verb,
        redirection::{Draft, Redirection},
    },
    http::{
        conditions::{expected, tagged},
        redirection_answers::{RedirectionDocument, Wait, written},
        redirection_codes::{Payload, code, code_request, named_image_request},
    },
    service::{Redirects, redirections as service, redirections::DomainChoice},
};

/// The operations of `/thngs/{id}/redirector` and `/products/{id}/redirector`.
macro_rules! redirector {
    ($module:ident, $kind:expr, $path:literal, $qr:literal, $name:literal) => {
        pub(in crate::http) mod $module {
            use super::*;

            #[doc = concat!("Reads the newest redirection of a ", $name, ".")]
            #[utoipa::path(get, path = $path, summary = concat!("Reads the newest redirection of a ", $name, "."), tag = "Redirections", operation_id = concat!("read-", $name, "-redirector"),
                params(("id" = String, Path, description = "Id or `<key>:<value>`")),
                responses((status = 200, description = "The redirection", body = RedirectionDocument)),
                extensions(("x-maturity" = json!("General Availability"))))]
            pub(in crate::http) async fn read(
                State(redirects): State<Redirects>,
                Authenticated(caller): Authenticated,
                Path(id): Path<String>,
                query: Query,
            ) -> Result<Response, ApiError> {
                let owner = service::owner(&redirects, &caller, Verb::Read, $kind, &id).await?;
                let found = service::newest(&redirects, &caller, owner, &named(&query)).await?;
                Ok(tagged(Json(RedirectionDocument::from(&found)).into_response(), found.rev))
            }

            #[doc = concat!("The code of the newest redirection of a ", $name, ".")]
            #[utoipa::path(get, path = $qr, summary = concat!("The code of the newest redirection of a ", $name, "."), tag = "Redirections", operation_id = concat!("read-", $name, "-redirector-qr"),
                params(("id" = String, Path, description = "Id or `<key>:<value>`")),
                responses((status = 200, description = "The code, by `Accept`")),
                extensions(("x-maturity" = json!("General Availability"))))]
            pub(in crate::http) async fn read_qr(
                State(redirects): State<Redirects>,
                Authenticated(caller): Authenticated,
                Path(id): Path<String>,
                query: Query,
                headers: HeaderMap,
            ) -> Result<Response, ApiError> {
                let request = code_request(&headers, &query)?;
                let owner = service::owner(&redirects, &caller, Verb::Read, $kind, &id).await?;
                let found = service::newest(&redirects, &caller, owner, &named(&query)).await?;
                match request {
                    Some(request) => {
                        code(&redirects, &caller, &found, (&request, Payload::read(&query)), &query.slot).await
                    }
                    None => Ok(Json(RedirectionDocument::from(&found)).into_response()),
                }
            }

            #[doc = concat!("Creates a redirection of a ", $name, ".")]
            #[utoipa::path(post, path = $path, summary = concat!("Creates a redirection of a ", $name, "."), tag = "Redirections", operation_id = concat!("create-", $name, "-redirector"),
                params(("id" = String, Path, description = "Id or `<key>:<value>`")),
                request_body(content = Object, example = json!({"defaultRedirectUrl": "https://example.com/"})),
                responses((status = 201, description = "Created", body = RedirectionDocument),
                    (status = 200, description = "Created: the code, when `Accept` names an image type")),
                extensions(("x-maturity" = json!("General Availability"))))]
            pub(in crate::http) async fn create(
                State(redirects): State<Redirects>,
                Authenticated(caller): Authenticated,
                Path(id): Path<String>,
                info: RequestInfo,
                query: Query,
                headers: HeaderMap,
                JsonBody(body): JsonBody,
            ) -> Result<Response, ApiError> {
                let (wait, request) = (Wait::parse(&query)?, named_image_request(&headers, &query)?);
                let key = idempotency_key($path, &headers, &query, &json!([id, body]))?;
                let owner = service::owner(&redirects, &caller, Verb::Create, $kind, &id).await?;
                let draft = Draft::parse(&body, Some((owner, $kind)))
                    .map_err(ApiError::invalid)?;
                let done = service::create(&redirects, &caller, draft, choice(&query, &headers), query.find("project"), key).await?;
                Ok(created(&redirects, &info, wait, &done, request.as_ref()).await)
            }

            #[doc = concat!("Replaces what the newest redirection of a ", $name, " leads to.")]
            #[utoipa::path(put, path = $path, summary = concat!("Replaces what the newest redirection of a ", $name, " leads to."), tag = "Redirections", operation_id = concat!("replace-", $name, "-redirector"),
                params(("id" = String, Path, description = "Id or `<key>:<value>`")),
                request_body(content = Object, example = json!({"defaultRedirectUrl": "https://example.com/"})),
                responses((status = 200, description = "The redirection", body = RedirectionDocument)),
                extensions(("x-maturity" = json!("General Availability"))))]
            pub(in crate::http) async fn replace(
                State(redirects): State<Redirects>,
                Authenticated(caller): Authenticated,
                Path(id): Path<String>,
                query: Query,
                headers: HeaderMap,
                JsonBody(body): JsonBody,
            ) -> Result<Response, ApiError> {
                let (wait, expected, writable) = (Wait::parse(&query)?, expected(&headers)?, writable(&body)?);
                let owner = service::owner(&redirects, &caller, Verb::Update, $kind, &id).await?;
                let which = target_of(&service::newest(&redirects, &caller, owner, &named(&query)).await?);
                let done = service::replace_if(&redirects, &caller, which, expected, writable).await?;
                let record = done.value.first().map(document);
                Ok(tagged(written(&redirects, wait, &done, StatusCode::OK, record).await, done.rev))
            }

            #[doc = concat!("Deletes the newest redirection of a ", $name, ".")]
            #[utoipa::path(delete, path = $path, summary = concat!("Deletes the newest redirection of a ", $name, "."), tag = "Redirections", operation_id = concat!("delete-", $name, "-redirector"),
                params(("id" = String, Path, description = "Id or `<key>:<value>`"),
                    ("domain" = Option<String>, Query, description = "Short domain"),
                    ("wait" = Option<String>, Query, description = "`edges`: answer when every edge has the change"),
                    ("timeout" = Option<String>, Query, description = "Longest wait, default `2s`")),
                responses((status = 200, description = "Deleted")),
                extensions(("x-maturity" = json!("General Availability"))))]
            pub(in crate::http) async fn delete(
                State(redirects): State<Redirects>,
                Authenticated(caller): Authenticated,
                Path(id): Path<String>,
                query: Query,
                headers: HeaderMap,
            ) -> Result<Response, ApiError> {
                let (wait, expected) = (Wait::parse(&query)?, expected(&headers)?);
                let owner = service::owner(&redirects, &caller, Verb::Delete, $kind, &id).await?;
                let which = target_of(&service::newest(&redirects, &caller, owner, &named(&query)).await?);
                let done = service::delete_if(&redirects, &caller, which, expected).await?;
                Ok(written(&redirects, wait, &done, StatusCode::OK, None).await)
            }
        }
    };
}

redirector!(of_thng, ResourceType::Thng, "/thngs/{id}/redirector", "/thngs/{id}/redirector/qr", "thng");
redirector!(
    of_product,
    ResourceType::Product,
    "/products/{id}/redirector",
    "/products/{id}/redirector/qr",
    "product"
);

fn target_of(item: &Redirection) -> (DomainChoice, Vec<String>) {
    let named = Some(item.redirect.domain.to_string());
    (DomainChoice { named, host: None }, vec![item.redirect.short_id.to_string()])
}
