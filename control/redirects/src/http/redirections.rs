//! HTTP: redirections, at `/redirections…` and at the first-generation paths `/thngs/:id/redirector`.

mod by_resource;

use axum::{
    Json,
    extract::{RawQuery, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use shared::{
    id::{ProductId, ResourceId},
    problem::Code,
};
use web::{
    access::Authenticated,
    api_error::ApiError,
    extract::{JsonBody, Path, Query, pairs},
    listing::{Listing, RESULT_COUNT},
    once::{IDEMPOTENCY_KEY, parse as parse_key},
    request_info::RequestInfo,
};

pub(super) use self::by_resource::{of_product, of_thng};
use super::{
    conditions::{expected, tagged},
    redirection_answers::{RedirectionDocument, Wait, locate, written},
    redirection_codes::{Payload, check_image, code, code_request, image, image_request},
};
use crate::{
    domain::{
        listing::REDIRECTIONS,
        redirection::{Draft, MAX_BULK, Redirection, Writable},
        words::WordQuery,
    },
    error::RedirectsError,
    service::{
        Redirects,
        idempotency::IdempotencyKey,
        redirections as service,
        redirections::{DomainChoice, Written},
    },
};

/// Creates a redirection, or up to 1,000 from an array.
#[utoipa::path(post, path = "/redirections", tag = "Redirections", operation_id = "createRedirection",
    params(
        ("domain" = Option<String>, Query, description = "Short domain; else the body's, the host's, or the account's first"),
        ("project" = Option<String>, Query, description = "Scope what is made to this project"),
        ("wait" = Option<String>, Query, description = "`edges`: answer when every edge has the change"),
        ("timeout" = Option<String>, Query, description = "Longest wait, such as `500ms` or `2s` (default), at most `20s`"),
        ("Idempotency-Key" = Option<String>, Header, description = "A repeat within a day gets the first answer"),
    ),
    request_body(content = Object, description = "`platformId` and `defaultRedirectUrl`; optionally `shortId`, `type`, `forwardQuery`, `scopes`, `shortDomain`, `title`, `tags`, `notes`, `customFields`",
        example = json!({"platformId": "UKXAGyEf8SQ5eTDmVgGpHqAa", "defaultRedirectUrl": "https://example.com/?item={shortId}"})),
    responses(
        (status = 201, description = "Created; when `Accept` names JSON", body = RedirectionDocument),
        (status = 200, description = "Created: the code as an image; or, for an array, one result for each item"),
        (status = 202, description = "Created; an edge had not confirmed it at the deadline", body = RedirectionDocument),
    ),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn create(
    State(redirects): State<Redirects>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    query: Query,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let wait = Wait::parse(&query)?;
    let choice = choice(&query, &headers);
    let key = idempotency_key("redirections", &headers, &query, &body)?;
    if let Value::Array(items) = &body {
        let drafts = items.iter().map(|item| Draft::parse(item, None)).collect();
        let done =
            service::create_many(&redirects, &caller, drafts, choice, query.find("project"), key).await?;
        let body = serde_json::to_value(&done.value).unwrap_or_default();
        return Ok(written(&redirects, wait, &done, StatusCode::OK, Some(body)).await);
    }
    let draft = Draft::parse(&body, None).map_err(ApiError::invalid)?;
    let request = image_request(&headers, &query)?;
    let done = service::create(&redirects, &caller, draft, choice, query.find("project"), key).await?;
    Ok(created(&redirects, &info, wait, &done, request.as_ref()).await)
}

/// The record, or the code where an image was asked for and can be drawn.
async fn created(
    redirects: &Redirects,
    info: &RequestInfo,
    wait: Wait,
    done: &Written<Redirection>,
    request: Option<&qr::QrRequest>,
) -> Response {
    let drawn = match request {
        Some(request) => image(redirects, &done.value, request, &wait.slot).await.ok(),
        None => None,
    };
    let response = match drawn {
        // For an image, the state of the edges is only in the status.
        Some(mut response) => {
            if wait.run(&*redirects.edges, done.rev).await.is_some_and(|report| !report.lagging.is_empty()) {
                *response.status_mut() = StatusCode::ACCEPTED;
            }
            response
        }
        None => written(redirects, wait, done, StatusCode::CREATED, Some(document(&done.value))).await,
    };
    locate(response, info, &done.value)
}

/// Lists redirections of a resource, or of the account.
#[utoipa::path(get, path = "/redirections", tag = "Redirections", operation_id = "listRedirections",
    params(
        ("platformId" = Option<String>, Query, description = "The resource; `evrythngId` is the same"),
        ("domain" = Option<String>, Query, description = "Only those of this short domain"),
        ("product" = Option<String>, Query, description = "Only those of this product and of its Thngs"),
        ("project" = Option<String>, Query, description = "Only those scoped to this project"),
        ("q" = Option<String>, Query, min_length = 1, max_length = 200, description = "Words, of which each must begin a word of the short id, title, tags, target or Thng's name, or an id of resource, Thng or product; without regard to accents and case"),
        ("filter" = Option<String>, Query, description = "By `createdAt`, `updatedAt`, `title`, `tags`, `customFields.*`, `shortId`, `shortDomain`, `type`, `platformId`, `product`, `thng`, `defaultRedirectUrl`, `status`, `statusCode`, `validFrom`, `validUntil` and `maxScans`"),
        ("perPage" = Option<u32>, Query, minimum = 1, maximum = 100, description = "Rows of a page, default 30"),
        ("sortOrder" = Option<String>, Query, description = "`DESCENDING` (default) or `ASCENDING`"),
        ("nextPageToken" = Option<String>, Query, description = "From the `Link` of the page before"),
    ),
    responses((status = 200, description = "Newest first", body = [RedirectionDocument])),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn list(
    State(redirects): State<Redirects>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    query: Query,
    RawQuery(raw): RawQuery,
) -> Result<Response, ApiError> {
    if pairs(raw.as_deref().unwrap_or_default()).any(|(name, _)| name == "ids") {
        return Err(RedirectsError::IdsOfList.into());
    }
    let listing = Listing::parse(&redirects, &caller, info, &query, &REDIRECTIONS)?;
    let wanted = ["platformId", "evrythngId"].into_iter().find_map(|name| Some((name, query.find(name)?)));
    let platform_id = wanted
        .map(|(name, text)| text.parse::<ResourceId>().map_err(|fault| RedirectsError::NoId { name, fault }))
        .transpose()?;
    let domain = query.find("domain").map(str::to_owned);
    let product = query
        .find("product")
        .map(|text| {
            text.parse::<ProductId>().map_err(|fault| RedirectsError::NoId { name: "product", fault })
        })
        .transpose()?;
    let words = query.find("q").map(WordQuery::parse).transpose();
    let words = words.map_err(|fault| ApiError::faults(Code::InvalidParameter, vec![fault]))?;
    let request = service::Listing {
        platform_id,
        domain,
        product,
        words: words.unwrap_or_default(),
        request: listing.request.clone(),
    };
    let page = service::list(&redirects, &caller, &request).await?;
    Ok(listing.answer(&redirects, page, |item| RedirectionDocument::from(&item)))
}

/// Reads a redirection; with `.qr` behind the short id, its code.
#[utoipa::path(get, path = "/redirections/{shortId}", tag = "Redirections", operation_id = "readRedirection",
    params(("shortId" = String, Path, description = "Short id, with `%2F` for a slash in it; `.qr` behind it asks for the code"),
        ("domain" = Option<String>, Query, description = "Short domain")),
    responses((status = 200, description = "The redirection", body = RedirectionDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn read(
    State(redirects): State<Redirects>,
    Authenticated(caller): Authenticated,
    Path(short_id): Path<String>,
    query: Query,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let (short_id, as_image) = match short_id.strip_suffix(".qr") {
        Some(stem) => (stem, true),
        None => (short_id.as_str(), false),
    };
    let request = if as_image {
        code_request(&headers, &query)?
    } else {
        check_image(&query)?;
        None
    };
    let found = service::find(&redirects, &caller, choice(&query, &headers), short_id).await?;
    match request {
        Some(request) => {
            code(&redirects, &caller, &found, (&request, Payload::read(&query)), &query.slot).await
        }
        None => Ok(tagged(Json(RedirectionDocument::from(&found)).into_response(), found.rev)),
    }
}

/// Replaces what a redirection leads to.
#[utoipa::path(put, path = "/redirections/{shortId}", tag = "Redirections", operation_id = "replaceRedirection",
    params(("shortId" = String, Path, description = "Short id"),
        ("domain" = Option<String>, Query, description = "Short domain"),
        ("wait" = Option<String>, Query, description = "`edges`: answer when every edge has the change"),
        ("timeout" = Option<String>, Query, description = "Longest wait, default `2s`")),
    request_body(content = Object, description = "`defaultRedirectUrl`, and what else is to be kept; `title`, `tags`, `notes` and `customFields` stay when they are left out",
        example = json!({"defaultRedirectUrl": "https://example.com/recall"})),
    responses((status = 200, description = "The redirection", body = RedirectionDocument),
        (status = 202, description = "Changed; an edge had not confirmed it at the deadline", body = RedirectionDocument)),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn replace(
    State(redirects): State<Redirects>,
    Authenticated(caller): Authenticated,
    Path(short_id): Path<String>,
    query: Query,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let wait = Wait::parse(&query)?;
    let writable = writable(&body)?;
    let (choice, expected) = (choice(&query, &headers), expected(&headers)?);
    let done = service::replace_if(&redirects, &caller, (choice, vec![short_id]), expected, writable).await?;
    let record = done.value.first().map(document);
    Ok(tagged(written(&redirects, wait, &done, StatusCode::OK, record).await, done.rev))
}

/// Deletes a redirection; its short id is never given out again.
#[utoipa::path(delete, path = "/redirections/{shortId}", tag = "Redirections", operation_id = "deleteRedirection",
    params(("shortId" = String, Path, description = "Short id"),
        ("domain" = Option<String>, Query, description = "Short domain"),
        ("wait" = Option<String>, Query, description = "`edges`: answer when every edge has the change"),
        ("timeout" = Option<String>, Query, description = "Longest wait, default `2s`")),
    responses((status = 200, description = "Deleted; the body is empty without `wait`")),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn delete(
    State(redirects): State<Redirects>,
    Authenticated(caller): Authenticated,
    Path(short_id): Path<String>,
    query: Query,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let (wait, expected) = (Wait::parse(&query)?, expected(&headers)?);
    let which = (choice(&query, &headers), vec![short_id]);
    let done = service::delete_if(&redirects, &caller, which, expected).await?;
    Ok(written(&redirects, wait, &done, StatusCode::OK, None).await)
}

/// Replaces what several redirections lead to, all of them or none.
#[utoipa::path(put, path = "/redirections", tag = "Redirections", operation_id = "replaceRedirections",
    params(("ids" = String, Query, description = "Short ids, comma-separated, at most 1,000"),
        ("domain" = Option<String>, Query, description = "Short domain"),
        ("wait" = Option<String>, Query, description = "`edges`: answer when every edge has the change")),
    request_body(content = Object, example = json!({"defaultRedirectUrl": "https://example.com/recall"})),
    responses((status = 204, description = "Changed; `x-result-count` says how many")),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn replace_many(
    State(redirects): State<Redirects>,
    Authenticated(caller): Authenticated,
    query: Query,
    headers: HeaderMap,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let (wait, ids) = (Wait::parse(&query)?, ids(&query)?);
    let done = service::replace(&redirects, &caller, choice(&query, &headers), ids, writable(&body)?).await?;
    let count = [(RESULT_COUNT, done.value.len())];
    Ok((count, written(&redirects, wait, &done, StatusCode::NO_CONTENT, None).await).into_response())
}

/// Deletes several redirections, all of them or none.
#[utoipa::path(delete, path = "/redirections", tag = "Redirections", operation_id = "deleteRedirections",
    params(("ids" = String, Query, description = "Short ids, comma-separated, at most 1,000"),
        ("domain" = Option<String>, Query, description = "Short domain"),
        ("wait" = Option<String>, Query, description = "`edges`: answer when every edge has the change"),
        ("timeout" = Option<String>, Query, description = "Longest wait, default `2s`")),
    responses((status = 200, description = "Deleted; `x-result-count` says how many; the body is empty without `wait`")),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn delete_many(
    State(redirects): State<Redirects>,
    Authenticated(caller): Authenticated,
    query: Query,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let (wait, ids) = (Wait::parse(&query)?, ids(&query)?);
    let done = service::delete(&redirects, &caller, choice(&query, &headers), ids).await?;
    let count = [(RESULT_COUNT, done.value)];
    Ok((count, written(&redirects, wait, &done, StatusCode::OK, None).await).into_response())
}

pub(super) fn document(item: &Redirection) -> Value {
    serde_json::to_value(RedirectionDocument::from(item)).unwrap_or_default()
}

fn writable(body: &Value) -> Result<Writable, ApiError> {
    Writable::parse(body).map_err(ApiError::invalid)
}

fn named(query: &Query) -> DomainChoice {
    DomainChoice { named: query.find("domain").map(str::to_owned), host: None }
}

pub(super) fn choice(query: &Query, headers: &HeaderMap) -> DomainChoice {
    let host = headers.get(header::HOST).and_then(|value| value.to_str().ok());
    DomainChoice { host: host.map(str::to_ascii_lowercase), ..named(query) }
}

fn ids(query: &Query) -> Result<Vec<String>, RedirectsError> {
    let text = query.find("ids").unwrap_or_default();
    let ids: Vec<String> =
        text.split(',').map(str::trim).filter(|id| !id.is_empty()).map(str::to_owned).collect();
    if ids.is_empty() || ids.len() > MAX_BULK {
        return Err(RedirectsError::IdCount { most: MAX_BULK });
    }
    Ok(ids)
}

/// The request's `Idempotency-Key`, bound to the operation and the content of the request.
fn idempotency_key(
    operation: &str,
    headers: &HeaderMap,
    query: &Query,
    body: &Value,
) -> Result<Option<IdempotencyKey>, ApiError> {
    if !headers.contains_key(&IDEMPOTENCY_KEY) {
        return Ok(None);
    }
    let key = parse_key(headers)?;
    let host = headers.get(header::HOST).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let content = json!([operation, host, query.find("domain"), body]).to_string();
    Ok(Some(IdempotencyKey { key, request: Sha256::digest(content.as_bytes()).into() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idempotency_key_is_bound_to_one_request() {
        let hash = |operation: &str, host: &str, query: &[(&str, &str)], body: Value| {
            let mut headers = HeaderMap::new();
            headers.insert("idempotency-key", "order-1".parse().unwrap());
            headers.insert(header::HOST, host.parse().unwrap());
            let query: Vec<String> = query.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let query = Query::of(&query.join("&"));
            idempotency_key(operation, &headers, &query, &body).unwrap().unwrap().request
        };
        let body = || json!(["X", {"defaultRedirectUrl": "https://e.com"}]);
        let first = hash("redirections", "tn.gg", &[], body());
        assert_eq!(first, hash("redirections", "tn.gg", &[("wait", "edges")], body()), "waiting is no part");
        for (other, why) in [
            (hash("/thngs/{id}/redirector", "tn.gg", &[], body()), "another operation of the same body"),
            (hash("redirections", "other.example", &[], body()), "another host"),
            (hash("redirections", "tn.gg", &[("domain", "other.example")], body()), "another domain"),
            (hash("redirections", "tn.gg", &[], json!([])), "another body"),
        ] {
            assert_ne!(first, other, "{why}");
        }
    }
}
