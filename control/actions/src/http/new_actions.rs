//! HTTP: creating and deleting actions.

use std::convert::Infallible;

use axum::{
    Json,
    extract::{FromRequestParts, State},
    http::{StatusCode, header, request::Parts},
    response::{IntoResponse, Response},
};
use serde::Deserialize;
use serde_json::{Map, Value};
use shared::{
    access_token::url_without_access_token,
    wire::scan::{MAX_REFERER, MAX_USER_AGENT, cut, preferred_language},
};
use utoipa::ToSchema;
use web::{
    access::Authenticated,
    api_error::ApiError,
    extract::{JsonBody, Path, Query},
    request_info::RequestInfo,
    wire::created,
};

use super::actions::{ActionDocument, Shown};
use crate::{
    domain::{action_draft::Drafts, context::Origin},
    service::{
        ActionState,
        access::Caller,
        action_creation::{self, Circumstances},
        actions::{self, Scope},
    },
};

/// An action to be made: an object, or an array of up to 1,000 of them, of which all are made or none.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "the fields describe the body, which the domain reads")]
pub(super) struct NewActionDocument {
    /// Its type, where the path says `all`; else the path's.
    #[serde(rename = "type")]
    #[schema(example = "scans")]
    kind: Option<String>,
    /// The Thng it is about, by id or `<key>:<value>`.
    #[schema(example = "gs1:21:A1B2")]
    thng: Option<String>,
    /// The product it is about, by id or `<key>:<value>`; that of the Thng if left out.
    product: Option<String>,
    /// The collection it is about, by id or `<key>:<value>`.
    collection: Option<String>,
    /// Names outside of the platform; they say what it is about where nothing else does.
    #[schema(value_type = Option<Object>)]
    identifiers: Option<Map<String, Value>>,
    /// When it happened, in milliseconds since 1970; now if left out.
    timestamp: Option<i64>,
    /// `position`, or `latitude` and `longitude`, or `place`; that of the client's address if left out.
    #[schema(value_type = Option<Object>, example = json!({"latitude": 51.5, "longitude": -0.1}))]
    location: Option<Map<String, Value>>,
    /// `ipAddress` and `userAgent` of the customer whose scan a server reports, one of them or both, and beside them
    /// `language`, the first tag of `Accept-Language`: taken from the secret key of an application with
    /// `reportsContext`; from all others it is ignored.
    #[schema(value_type = Option<Object>,
        example = json!({"ipAddress": "203.0.113.7", "userAgent": "Mozilla/5.0", "language": "de-CH"}))]
    context: Option<Map<String, Value>>,
    /// At most 100 labels of 1 to 128 characters.
    tags: Option<Vec<String>>,
    /// The caller's own members, at most 64 KiB.
    #[schema(value_type = Option<Object>)]
    custom_fields: Option<Map<String, Value>>,
}

/// Where a request came from, by its own account and that of its connection.
pub struct Sender {
    /// The request as a whole.
    pub info: RequestInfo,
    user_agent: Option<String>,
    referer: Option<String>,
    language: Option<String>,
}

impl<S: Send + Sync> FromRequestParts<S> for Sender {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let text = |name| {
            let bytes =
                parts.headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
            // Postgres takes no U+0000; a header cannot hold it, and what replaces broken bytes is none.
            bytes.filter(|text| !text.is_empty())
        };
        let user_agent = text(header::USER_AGENT).map(|agent| cut(&agent, MAX_USER_AGENT).to_owned());
        let referer = text(header::REFERER);
        let referer = referer.map(|url| cut(&url_without_access_token(&url), MAX_REFERER).to_owned());
        let accepted = parts.headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok());
        let language = accepted.and_then(preferred_language).map(str::to_owned);
        let info = RequestInfo::from_request_parts(parts, state).await?;
        Ok(Self { info, user_agent, referer, language })
    }
}

impl Sender {
    /// The same, as the service takes it.
    #[must_use]
    pub fn origin(&self) -> Origin<'_> {
        Origin {
            ip: self.info.client,
            user_agent: self.user_agent.as_deref(),
            referer: self.referer.as_deref(),
            language: self.language.as_deref(),
        }
    }
}

/// Makes an action, or several at once.
#[utoipa::path(post, path = "/actions/{type}", tag = "Actions", operation_id = "createAction",
    params(("type" = String, Path, description = "Name of a type, or `all` where each action says its own"),
        ("project" = Option<String>, Query, description = "Project that the action is scoped to")),
    request_body(content = NewActionDocument, description = "One action, or an array of 1 to 1,000"),
    responses((status = 201, description = "The action with its `context`, or an array in the order sent",
        body = ActionDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn create(
    State(state): State<ActionState>,
    Authenticated(caller): Authenticated,
    Path(kind): Path<String>,
    sender: Sender,
    query: Query,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    create_in(&state, &caller, &sender, &query, Scope::Account, &kind, &body).await
}

pub(super) async fn create_in(
    state: &ActionState,
    caller: &Caller,
    sender: &Sender,
    query: &Query,
    scope: Scope<'_>,
    kind: &str,
    body: &Value,
) -> Result<Response, ApiError> {
    let drafts = Drafts::parse(body).map_err(ApiError::invalid)?;
    let around = Circumstances { origin: sender.origin(), project: query.find("project") };
    let (drafts, is_array) = match drafts {
        Drafts::One(draft) => (vec![*draft], false),
        Drafts::Many(drafts) => (drafts, true),
    };
    let made = action_creation::create(state, caller, scope, kind, &drafts, around).await?;
    let mut documents: Vec<ActionDocument> = made
        .into_iter()
        .map(|action| ActionDocument::new(action, Shown { context: true, scopes: false }))
        .collect();
    match documents.pop() {
        Some(document) if !is_array => {
            let id = document.id().to_owned();
            Ok(created(&sender.info, &id, document))
        }
        last => {
            documents.extend(last);
            Ok((StatusCode::CREATED, Json(documents)).into_response())
        }
    }
}

/// Removes an action.
#[utoipa::path(delete, path = "/actions/{type}/{action}", tag = "Actions", operation_id = "deleteAction",
    params(("type" = String, Path, description = "Name of its type, or `all`"),
        ("action" = String, Path, description = "Id of the action")),
    responses((status = 200, description = "Removed; the body is empty")),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn delete(
    State(state): State<ActionState>,
    Authenticated(caller): Authenticated,
    Path((kind, id)): Path<(String, String)>,
) -> Result<(), ApiError> {
    Ok(actions::delete(&state, &caller, Scope::Account, &kind, &id).await?)
}
