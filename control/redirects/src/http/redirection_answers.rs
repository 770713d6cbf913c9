//! Responses of redirections: records, and how many edges have a change.

use axum::{
    http::{HeaderValue, StatusCode, header},
    response::Response,
};
use qr::Ecl;
use serde::Serialize;
use serde_json::{Map, Value, json};
use serde_with_macros::skip_serializing_none;
use shared::{
    availability::{ACTIVE, PAUSED},
    redirect::Redirect,
    redirect_status::RedirectStatus,
    withheld::Withheld,
};
use utoipa::{
    ToSchema,
    openapi::schema::{Object, ObjectBuilder, Type},
};
pub use web::edges::Wait;
use web::request_info::RequestInfo;

use super::{bodies::STATUS_CODE, redirection_codes::DEVELOPMENT};
use crate::{
    domain::{link_details::Author, redirection::Redirection, withheld::TakeDown},
    service::{Redirects, redirections::Written},
};

/// A redirection.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedirectionDocument {
    created_at: i64,
    updated_at: i64,
    /// Host of the short domain.
    #[schema(example = "tn.gg")]
    short_domain: String,
    #[schema(example = "K7Q2M4XA9R")]
    short_id: String,
    /// `thng`, `product`, `collection` or `place`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The resource behind.
    platform_id: String,
    /// The same under its older name.
    evrythng_id: String,
    /// The target as stored, tags not expanded.
    #[schema(example = "https://example.com/welcome?item={shortId}")]
    default_redirect_url: String,
    /// Whether the request's query is appended to the target.
    forward_query: bool,
    #[schema(schema_with = status_code)]
    status_code: u16,
    /// When it begins to lead to the target, in milliseconds since 1970.
    #[schema(example = 1_767_225_600_000_i64)]
    valid_from: Option<i64>,
    /// When it no longer does.
    valid_until: Option<i64>,
    /// Scans after which it no longer does.
    max_scans: Option<u32>,
    /// Scans that count towards `maxScans`, as far as edges have reported them; where it is set.
    counted_scans: Option<u64>,
    #[schema(schema_with = status)]
    status: &'static str,
    /// Where it leads before `validFrom`, once it has ended, and while it is paused; else these scans get a page.
    #[schema(example = "https://example.com/ended")]
    ended_url: Option<String>,
    /// Scans of people that were redirected, or found the link closed.
    hits: i64,
    #[schema(example = "https://tn.gg/K7Q2M4XA9R")]
    short_url: String,
    #[schema(value_type = Object)]
    scopes: Value,
    /// What people call it, at most 200 characters.
    #[schema(example = "Summer campaign, posters")]
    title: Option<String>,
    /// At most 100, each of at most 128 characters.
    tags: Option<Vec<String>>,
    /// At most 4,096 characters.
    notes: Option<String>,
    /// The caller's own members, at most 64 KiB of JSON.
    #[schema(value_type = Option<Object>)]
    custom_fields: Option<Map<String, Value>>,
    /// Who created it. Only callers see it whose permission reaches the whole account; nothing is known of links from before
    /// this member.
    #[schema(read_only)]
    created_by: Option<AuthorDocument>,
    /// Who changed it last by a request about it, for the same callers.
    #[schema(read_only)]
    updated_by: Option<AuthorDocument>,
    /// Only for development, not for print: the short URL leads to an address of this machine or of a local network.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false, read_only)]
    development: bool,
    /// The platform operator took down the link, or every link that leads to a host of it. Whoever would be redirected there
    /// gets a page (451).
    #[schema(read_only)]
    taken_down: Option<TakenDownDocument>,
    qr: QrDocument,
}

fn status() -> Object {
    let text = "`paused`: it does not lead to the target, whatever the time. Else `active`.";
    ObjectBuilder::new()
        .schema_type(Type::String)
        .enum_values(Some([ACTIVE, PAUSED]))
        .description(Some(text))
        .build()
}

fn status_code() -> Object {
    ObjectBuilder::new()
        .schema_type(Type::Integer)
        .enum_values(Some(RedirectStatus::ALL.map(RedirectStatus::as_u16)))
        .description(Some(STATUS_CODE))
        .build()
}

/// Who wrote a link, as the audit trail names them.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct AuthorDocument {
    /// The kind of key: `operator`, `projectOperator`, `trustedApp`, `app`, `user` or `thng`.
    #[schema(example = "operator")]
    actor_type: String,
    /// Id of the operator, application, user or Thng.
    #[schema(example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    actor: String,
}

impl From<&Author> for AuthorDocument {
    fn from(author: &Author) -> Self {
        Self { actor_type: author.actor_type.clone(), actor: author.actor.clone() }
    }
}

/// Why a link was taken down.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TakenDownDocument {
    /// The reason.
    #[schema(example = "Reported as phishing")]
    reason: String,
    /// The host that no link leads to, where it is not the link alone.
    #[schema(example = "evil.example")]
    host: Option<String>,
    /// The member of the link that leads to this host: `defaultRedirectUrl`, or `endedUrl` if that alone does. Then the link
    /// leads to its target while it is open.
    #[schema(example = "defaultRedirectUrl")]
    member: Option<&'static str>,
    /// Since when, in milliseconds since 1970.
    #[schema(example = 1_767_225_600_000_i64)]
    since: i64,
    /// When it ends by itself.
    until: Option<i64>,
}

impl TakenDownDocument {
    fn of(take_down: &TakeDown, redirect: &Redirect) -> Self {
        let host = match &take_down.what {
            Withheld::Host(host) => Some(host.to_string()),
            Withheld::Link(_) | Withheld::Account(_) => None,
        };
        let (since, until) = (take_down.since.0, take_down.until.map(|at| at.0));
        let member = host.is_some().then(|| {
            if take_down.is_of_target(&redirect.target) { "defaultRedirectUrl" } else { "endedUrl" }
        });
        Self { reason: take_down.reason.clone(), host, member, since, until }
    }
}

/// What the QR code of a short URL is like at the default level.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct QrDocument {
    /// The text in the code.
    #[schema(example = "HTTPS://TN.GG/K7Q2M4XA9R")]
    payload: String,
    /// 1 to 40; absent when the text fits no symbol.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u8>,
    /// Modules along a side.
    #[serde(skip_serializing_if = "Option::is_none")]
    modules: Option<u32>,
    ecl: &'static str,
}

impl From<&Redirection> for RedirectionDocument {
    fn from(item: &Redirection) -> Self {
        let (redirect, described) = (&item.redirect, &item.details.described);
        let payload = item.domain.qr_payload(&redirect.short_id);
        let facts = qr::describe(&payload, Ecl::default()).ok();
        let availability = redirect.availability.as_deref().cloned().unwrap_or_default();
        Self {
            created_at: redirect.created_at.0,
            updated_at: redirect.updated_at.0,
            short_domain: redirect.domain.to_string(),
            short_id: redirect.short_id.to_string(),
            kind: redirect.resource_type.as_str(),
            platform_id: redirect.platform_id.to_string(),
            evrythng_id: redirect.platform_id.to_string(),
            default_redirect_url: redirect.target.to_string(),
            forward_query: redirect.forward_query,
            status_code: redirect.status_code.as_u16(),
            valid_from: availability.valid_from.map(|at| at.0),
            valid_until: availability.valid_until.map(|at| at.0),
            max_scans: availability.max_scans,
            counted_scans: availability.max_scans.map(|_| availability.counted()),
            status: availability.status(),
            ended_url: availability.ended_url.map(Into::into),
            hits: item.hits,
            short_url: item.short_url(),
            scopes: json!({"users": item.scopes.users, "projects": item.scopes.projects}),
            title: described.title.clone(),
            tags: described.tags.clone(),
            notes: described.notes.clone(),
            custom_fields: described.custom_fields.clone(),
            created_by: item.details.created_by.as_ref().map(AuthorDocument::from),
            updated_by: item.details.updated_by.as_ref().map(AuthorDocument::from),
            development: item.domain.is_development(),
            taken_down: item.taken_down.as_ref().map(|one| TakenDownDocument::of(one, redirect)),
            qr: QrDocument {
                payload,
                version: facts.map(|facts| facts.version),
                modules: facts.map(|facts| facts.modules),
                ecl: Ecl::default().as_str(),
            },
        }
    }
}

/// Answers a write with a body and the edges' state merged into it; 202 when an edge lags at the deadline.
pub async fn written<T>(
    redirects: &Redirects,
    wait: Wait,
    done: &Written<T>,
    status: StatusCode,
    body: Option<Value>,
) -> Response {
    web::edges::written(&*redirects.edges, wait, done.rev, status, body).await
}

/// Adds the address of a new redirection.
pub(super) fn locate(mut response: Response, info: &RequestInfo, item: &Redirection) -> Response {
    let (base, id, domain) = (&info.base, item.redirect.short_id.as_segment(), &item.domain);
    let own_host =
        base.split_once("://").is_some_and(|(_, host)| host.eq_ignore_ascii_case(domain.host.as_str()));
    let url = if own_host {
        format!("{base}/redirections/{id}")
    } else {
        format!("{base}/redirections/{id}?domain={}", domain.host)
    };
    if let Ok(value) = HeaderValue::from_str(&url) {
        response.headers_mut().insert(header::LOCATION, value);
    }
    if domain.is_development() {
        response.headers_mut().insert(DEVELOPMENT, HeaderValue::from_static("true"));
    }
    response
}
