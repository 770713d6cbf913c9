//! HTTP: redirect rules, `/redirector` of the account and of applications.

use std::collections::HashMap;

use axum::{
    extract::{FromRequestParts, State},
    http::{StatusCode, request::Parts},
    response::Response,
};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;
use web::{
    access::Authenticated,
    api_error::ApiError,
    conditions::Tagged,
    extract::{JsonBody, Path, Query},
};

use super::redirection_answers::{Wait, written};
use crate::{
    domain::rules::{StoredRules, parse},
    service::{Redirects, rules as service, rules::Whose},
};

/// A rule of redirection.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RuleDocument {
    /// What people call it; 1 to 128 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "Germany", min_length = 1, max_length = 128)]
    name: Option<String>,
    /// When it holds, in the language of `filter`, over `thng`, `thng.name`, `product`, `commissionState`
    /// (`commissioned`, `decommissioned`, `not_commissioned`), `assessment`,
    /// `assessment.counterfeitStatus`, `assessment.grayMarketStatus` (of the last one), `project`, `type`,
    /// `country`, `region`, `city`, `network`, `asNumber`, `userAgentName`, `operatingSystemName`, `device` (`phone`, `tablet`, `desktop`,
    /// `robot`), `language`, `languages`, `languages.TAG` (a quality from 0 to 1), `refererHost`, `query.NAME`, `percentage`,
    /// `percentage.NAME`, `timestamp`, `hour`, `weekday`, `hour.ZONE`, `weekday.ZONE`, `shortDomain` and `shortId`.
    #[serde(rename = "match")]
    #[schema(example = "country=DE&language=de", min_length = 1, max_length = 4096)]
    condition: String,
    /// Where it leads, with the tags of a redirection; without it the redirection's own target holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "https://example.com/de/{shortId}", max_length = 2048)]
    redirect_url: Option<String>,
}

/// Rules of redirection in the order in which they are tried; the first that matches wins.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RulesDocument {
    /// At most 100 rules.
    #[schema(max_items = 100)]
    rules: Vec<RuleDocument>,
    /// When the list was made; absent when there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(read_only)]
    created_at: Option<i64>,
    /// When it was last replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(read_only)]
    updated_at: Option<i64>,
}

impl From<StoredRules> for RulesDocument {
    fn from(stored: StoredRules) -> Self {
        let is_there = stored.updated_at.0 > 0;
        let rule = |rule: shared::rules::Rule| RuleDocument {
            name: rule.name.map(Into::into),
            condition: rule.condition.into(),
            redirect_url: rule.redirect_url.map(Into::into),
        };
        Self {
            rules: stored.rules.into_iter().map(rule).collect(),
            created_at: is_there.then_some(stored.created_at.0),
            updated_at: is_there.then_some(stored.updated_at.0),
        }
    }
}

/// The three operations on the rules of the account, or of an application.
macro_rules! redirector {
    ($module:ident, $path:literal, $name:literal, $id:literal, ($($param:tt)*)) => {
        pub(super) mod $module {
            use super::*;

            #[doc = concat!("Reads the rules of ", $name, "; an empty list when there are none.")]
            #[utoipa::path(get, path = $path, tag = "Redirections", operation_id = concat!("read", $id),
                summary = concat!("Reads the rules of ", $name, "; an empty list when there are none."),
                params($($param)*),
                responses((status = 200, description = "The rules", body = RulesDocument)),
                extensions(("x-maturity" = json!("General Availability"))))]
            pub(in crate::http) async fn read(
                State(redirects): State<Redirects>,
                Authenticated(caller): Authenticated,
                named: Named,
            ) -> Result<Tagged<RulesDocument>, ApiError> {
                let stored = service::read(&redirects, &caller, named.whose()).await?;
                Ok(Tagged(stored.tag(), stored.into()))
            }

            #[doc = concat!("Replaces the rules of ", $name, " as a whole.")]
            #[utoipa::path(put, path = $path, tag = "Redirections", operation_id = concat!("replace", $id),
                summary = concat!("Replaces the rules of ", $name, " as a whole."),
                params($($param)*
                    ("wait" = Option<String>, Query, description = "`edges`: answer when every edge has the change"),
                    ("timeout" = Option<String>, Query, description = "Longest wait, default `2s`")),
                request_body(content = RulesDocument, description = "The whole list",
                    example = json!({"rules": [{"name": "Germany", "match": "country=DE",
                        "redirectUrl": "https://example.com/de/{shortId}"}]})),
                responses((status = 200, description = "The rules", body = RulesDocument),
                    (status = 202, description = "Changed; an edge had not confirmed it at the deadline",
                        body = RulesDocument)),
                extensions(("x-maturity" = json!("General Availability"))))]
            pub(in crate::http) async fn replace(
                State(redirects): State<Redirects>,
                Authenticated(caller): Authenticated,
                named: Named,
                query: Query,
                JsonBody(body): JsonBody,
            ) -> Result<Response, ApiError> {
                let (wait, rules) = (Wait::parse(&query)?, rules(&body)?);
                let done = service::replace(&redirects, &caller, named.whose(), rules).await?;
                Ok(written(&redirects, wait, &done, StatusCode::OK, Some(document(&done.value))).await)
            }

            #[doc = concat!("Removes the rules of ", $name, ".")]
            #[utoipa::path(delete, path = $path, tag = "Redirections", operation_id = concat!("delete", $id),
                summary = concat!("Removes the rules of ", $name, "."),
                params($($param)*
                    ("wait" = Option<String>, Query, description = "`edges`: answer when every edge has the change"),
                    ("timeout" = Option<String>, Query, description = "Longest wait, default `2s`")),
                responses((status = 204, description = "Removed"),
                    (status = 200, description = "Removed; how far the edges are, with `wait`")),
                extensions(("x-maturity" = json!("General Availability"))))]
            pub(in crate::http) async fn delete(
                State(redirects): State<Redirects>,
                Authenticated(caller): Authenticated,
                named: Named,
                query: Query,
            ) -> Result<Response, ApiError> {
                let wait = Wait::parse(&query)?;
                let done = service::delete(&redirects, &caller, named.whose()).await?;
                Ok(written(&redirects, wait, &done, StatusCode::NO_CONTENT, None).await)
            }
        }
    };
}

redirector!(of_account, "/redirector", "the account", "Redirector", ());
redirector!(
    of_application,
    "/projects/{project}/applications/{id}/redirector",
    "an application",
    "ApplicationRedirector",
    (
        ("project" = String, Path, description = "Id of the project"),
        ("id" = String, Path, description = "Id of the application"),
    )
);

/// The project and application that a path names, if it names some.
pub(super) struct Named(Option<(String, String)>);

impl Named {
    fn whose(&self) -> Whose<'_> {
        match &self.0 {
            None => Whose::Account,
            Some((project, id)) => Whose::Application { project, id },
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Named {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Path(mut captures) = Path::<HashMap<String, String>>::from_request_parts(parts, state).await?;
        Ok(Self(captures.remove("project").zip(captures.remove("id"))))
    }
}

fn rules(body: &Value) -> Result<Vec<shared::rules::Rule>, ApiError> {
    parse(body).map_err(ApiError::invalid)
}

fn document(stored: &StoredRules) -> Value {
    serde_json::to_value(RulesDocument::from(stored.clone())).unwrap_or_default()
}
