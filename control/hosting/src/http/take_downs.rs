//! HTTP: take-downs of links and hosts.

use axum::{Json, extract::State, http::StatusCode, response::Response};
use redirects::http::{Wait, written};
use serde::Serialize;
use serde_json::Value;
use serde_with_macros::skip_serializing_none;
use shared::withheld::Withheld;
use utoipa::ToSchema;
use web::{
    api_error::ApiError, extract::Query, listing::Listing, openapi::PageParams, request_info::RequestInfo,
};

use super::{access::PlatformCaller, accounts::OWNER};
use crate::{
    domain::{
        listing::PLAIN,
        platform_take_down::{PlatformTakeDown, parse_take_down},
    },
    service::{
        By, Redirects,
        redirections::Written,
        take_downs::{self as service, Named},
    },
};

/// A link, or every link that leads to a host, that shows a page instead of a redirect.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct TakeDownDocument {
    /// Short domain of the link.
    #[schema(example = "tn.gg")]
    short_domain: Option<String>,
    /// Short id of the link, in upper case unless its domain tells upper from lower case.
    #[schema(example = "K7Q2M4XA9R")]
    short_id: Option<String>,
    /// Id of the account of the link.
    #[schema(example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    account: Option<String>,
    /// The host; links that lead to hosts below it are meant, too.
    host: Option<String>,
    /// Why. The owner of a link sees it.
    #[schema(example = "Reported as phishing")]
    reason: String,
    /// Who did it: `command line`, or `key` with the label of a key of the platform.
    #[schema(example = "key trust and safety")]
    by: String,
    /// Since when, in milliseconds since 1970.
    #[schema(example = 1_767_225_600_000_i64)]
    created_at: i64,
    /// When it ends by itself, in milliseconds since 1970.
    until: Option<i64>,
}

impl From<PlatformTakeDown> for TakeDownDocument {
    fn from(one: PlatformTakeDown) -> Self {
        let (short_domain, short_id, host) = match one.what {
            Withheld::Link(key) => (Some(key.domain.to_string()), Some(key.folded.to_string()), None),
            Withheld::Host(host) => (None, None, Some(host.into())),
            Withheld::Account(_) => (None, None, None),
        };
        Self {
            short_domain,
            short_id,
            account: one.account.map(|id| id.to_string()),
            host,
            reason: one.reason,
            by: one.author,
            created_at: one.created_at.0,
            until: one.until.map(|at| at.0),
        }
    }
}

/// Lists the take-downs of links and hosts, newest first.
#[utoipa::path(get, path = "/platform/takedowns", tag = "Platform", security(("key" = [])), operation_id = "listTakeDowns",
    params(PageParams),
    responses((status = 200, description = "One page", body = [TakeDownDocument])))]
pub(super) async fn list(
    State(redirects): State<Redirects>,
    _by: PlatformCaller,
    info: RequestInfo,
    query: Query,
) -> Result<Response, ApiError> {
    let listing = Listing::parse_of(&redirects, OWNER, info, &query, &PLAIN)?;
    let page = service::list(&redirects.db, listing.request.page).await?;
    Ok(listing.answer(&redirects, page, TakeDownDocument::from))
}

async fn read(redirects: &Redirects, named: Named) -> Result<Json<TakeDownDocument>, ApiError> {
    Ok(Json(service::read(&redirects.db, &named).await?.into()))
}

async fn take_down(
    redirects: &Redirects,
    by: &By,
    named: Named,
    query: &Query,
    body: &Value,
) -> Result<Response, ApiError> {
    let wait = Wait::parse(query)?;
    let new = parse_take_down(body, by.now).map_err(ApiError::invalid)?;
    let done = service::take_down(&redirects.db, by, &named, new).await?;
    redirects.readers.wake_edges();
    let body = serde_json::to_value(TakeDownDocument::from(done.value.clone())).unwrap_or_default();
    Ok(written(redirects, wait, &done, StatusCode::OK, Some(body)).await)
}

async fn release(redirects: &Redirects, by: &By, named: Named, query: &Query) -> Result<Response, ApiError> {
    let wait = Wait::parse(query)?;
    let rev = service::release(&redirects.db, by, &named).await?;
    redirects.readers.wake_edges();
    Ok(written(redirects, wait, &Written { value: (), rev }, StatusCode::OK, None).await)
}

/// Of one link.
pub(super) mod of_link {
    use axum::{Json, extract::State, response::Response};
    use web::{
        api_error::ApiError,
        extract::{JsonBody, Path, Query},
    };

    use super::{Named, PlatformCaller, Redirects, TakeDownDocument};

    fn named((domain, short_id): (String, String)) -> Named {
        Named::Link { domain, short_id }
    }

    /// Reads the take-down of a link.
    #[utoipa::path(get, path = "/platform/takedowns/links/{domain}/{shortId}", tag = "Platform", security(("key" = [])),
        operation_id = "readLinkTakeDown",
        params(("domain" = String, Path, description = "Host of the short domain"),
            ("shortId" = String, Path, description = "Short id")),
        responses((status = 200, description = "The take-down", body = TakeDownDocument)))]
    pub(in super::super) async fn read(
        State(redirects): State<Redirects>,
        _by: PlatformCaller,
        Path(path): Path<(String, String)>,
    ) -> Result<Json<TakeDownDocument>, ApiError> {
        super::read(&redirects, named(path)).await
    }

    /// Takes a link down, or changes why and until when it is: whoever scans its code gets a page (451), and its owner
    /// cannot change it. 409 when 100,000 links and hosts are taken down.
    #[utoipa::path(put, path = "/platform/takedowns/links/{domain}/{shortId}", tag = "Platform", security(("key" = [])),
        operation_id = "takeLinkDown",
        params(("domain" = String, Path, description = "Host of the short domain"),
            ("shortId" = String, Path, description = "Short id"),
            ("wait" = Option<String>, Query, description = "`edges`: answer when every edge has the change"),
            ("timeout" = Option<String>, Query, description = "Longest wait, default `2s`")),
        request_body(content = Object, description = "Why, and until when"),
        responses((status = 200, description = "The take-down", body = TakeDownDocument),
            (status = 202, description = "Taken down; an edge had not confirmed it at the deadline", body = TakeDownDocument)))]
    pub(in super::super) async fn take_down(
        State(redirects): State<Redirects>,
        PlatformCaller(by): PlatformCaller,
        Path(path): Path<(String, String)>,
        query: Query,
        JsonBody(body): JsonBody,
    ) -> Result<Response, ApiError> {
        super::take_down(&redirects, &by, named(path), &query, &body).await
    }

    /// Releases a link that was taken down.
    #[utoipa::path(delete, path = "/platform/takedowns/links/{domain}/{shortId}", tag = "Platform", security(("key" = [])),
        operation_id = "releaseLink",
        params(("domain" = String, Path, description = "Host of the short domain"),
            ("shortId" = String, Path, description = "Short id"),
            ("wait" = Option<String>, Query, description = "`edges`: answer when every edge has the change"),
            ("timeout" = Option<String>, Query, description = "Longest wait, default `2s`")),
        responses((status = 200, description = "Released; the body is empty without `wait`")))]
    pub(in super::super) async fn release(
        State(redirects): State<Redirects>,
        PlatformCaller(by): PlatformCaller,
        Path(path): Path<(String, String)>,
        query: Query,
    ) -> Result<Response, ApiError> {
        super::release(&redirects, &by, named(path), &query).await
    }
}

/// Of every link that leads to a host.
pub(super) mod of_host {
    use axum::{Json, extract::State, response::Response};
    use web::{
        api_error::ApiError,
        extract::{JsonBody, Path, Query},
    };

    use super::{Named, PlatformCaller, Redirects, TakeDownDocument};

    /// Reads the take-down of a host.
    #[utoipa::path(get, path = "/platform/takedowns/hosts/{host}", tag = "Platform", security(("key" = [])),
        operation_id = "readHostTakeDown",
        params(("host" = String, Path, description = "The host")),
        responses((status = 200, description = "The take-down", body = TakeDownDocument)))]
    pub(in super::super) async fn read(
        State(redirects): State<Redirects>,
        _by: PlatformCaller,
        Path(host): Path<String>,
    ) -> Result<Json<TakeDownDocument>, ApiError> {
        super::read(&redirects, Named::Host(host)).await
    }

    /// Takes down every link and every rule that leads to a host or to one below it, or changes why and until when they
    /// are. New links and rules must not lead there. 409 when 100,000 links and hosts are taken down.
    #[utoipa::path(put, path = "/platform/takedowns/hosts/{host}", tag = "Platform", security(("key" = [])),
        operation_id = "takeHostDown",
        params(("host" = String, Path, description = "The host, such as `evil.example`"),
            ("wait" = Option<String>, Query, description = "`edges`: answer when every edge has the change"),
            ("timeout" = Option<String>, Query, description = "Longest wait, default `2s`")),
        request_body(content = Object, description = "Why, and until when"),
        responses((status = 200, description = "The take-down", body = TakeDownDocument),
            (status = 202, description = "Taken down; an edge had not confirmed it at the deadline", body = TakeDownDocument)))]
    pub(in super::super) async fn take_down(
        State(redirects): State<Redirects>,
        PlatformCaller(by): PlatformCaller,
        Path(host): Path<String>,
        query: Query,
        JsonBody(body): JsonBody,
    ) -> Result<Response, ApiError> {
        super::take_down(&redirects, &by, Named::Host(host), &query, &body).await
    }

    /// Releases a host that was taken down.
    #[utoipa::path(delete, path = "/platform/takedowns/hosts/{host}", tag = "Platform", security(("key" = [])),
        operation_id = "releaseHost",
        params(("host" = String, Path, description = "The host"),
            ("wait" = Option<String>, Query, description = "`edges`: answer when every edge has the change"),
            ("timeout" = Option<String>, Query, description = "Longest wait, default `2s`")),
        responses((status = 200, description = "Released; the body is empty without `wait`")))]
    pub(in super::super) async fn release(
        State(redirects): State<Redirects>,
        PlatformCaller(by): PlatformCaller,
        Path(host): Path<String>,
        query: Query,
    ) -> Result<Response, ApiError> {
        super::release(&redirects, &by, Named::Host(host), &query).await
    }
}
