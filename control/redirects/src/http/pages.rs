//! HTTP: pages that people see where a code leads nowhere.

use std::collections::BTreeMap;

use axum::{extract::State, http::StatusCode, response::Response};
use serde::Serialize;
use serde_json::Value;
use serde_with_macros::skip_serializing_none;
use shared::{
    entity_tag::EntityTag,
    pages::{PageText, PageTexts, Pages},
    standing::Risk,
};
use utoipa::ToSchema;
use web::{
    access::Authenticated,
    api_error::ApiError,
    conditions::Tagged,
    extract::{JsonBody, Path, Query},
};

use super::redirection_answers::{Wait, written};
use crate::service::{Redirects, pages as service, redirections::Written};

/// Name, logo, colours and texts of the pages that people see where a code leads nowhere. Programs that ask for JSON get the
/// error as before.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PagesDocument {
    /// Shown above the text; 1 to 80 characters.
    #[schema(example = "Acme", min_length = 1, max_length = 80)]
    name: Option<String>,
    /// Shown above the name: `data:image/png;base64,…` with at most 512 x 512 pixels and 64 KiB, or
    /// `data:image/svg+xml;base64,…` with at most 32 KiB. An SVG may hold shapes, gradients and clips only: no script, no
    /// style, no text, and nothing that refers to something outside of it.
    logo: Option<String>,
    /// The colours.
    colors: Option<PageColorsDocument>,
    /// A button below the text.
    link: Option<PageLinkDocument>,
    /// `suspected` or `confirmed`: from this `counterfeitStatus` of the item on, whoever scans its code gets the page `copy` (403,
    /// code 40305), unless a rule leads the scan somewhere. Absent: everybody is led on.
    #[schema(value_type = Option<String>, example = "confirmed")]
    copies: Option<&'static str>,
    /// Whether the page `copy` lets whoever found the item write to the account. Absent: it does not.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    reports: bool,
    /// Whether a photo may come with it, at most 5 MiB. Absent: none is taken.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    photos: bool,
    /// Texts by language tag, such as `de` or `pt-BR`; at most 40 languages. What is missing has a text of the product, which
    /// speaks 15 languages. The visitor's `Accept-Language` decides.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(required = false)]
    texts: BTreeMap<String, PageTextsDocument>,
}

/// Colours as `#rrggbb`. In the dark, background and text change places if the background is the lighter one.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PageColorsDocument {
    /// Behind the text.
    #[schema(example = "#ffffff")]
    background: String,
    /// Of the text; its contrast with the background is at least 4.5.
    #[schema(example = "#1a1a1a")]
    text: String,
    /// Of the button, whose text has the colour of the background; the contrast is at least 4.5.
    #[schema(example = "#0b57d0")]
    accent: String,
}

/// A button.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PageLinkDocument {
    /// An `https` URL without user and password; at most 400 bytes. Its host must be one that links of the account may lead to.
    #[schema(example = "https://example.com/help")]
    url: String,
    /// Text of the button; 1 to 40 characters.
    #[schema(example = "Help", min_length = 1, max_length = 40)]
    label: String,
}

/// Texts of one language by the reason why a code leads nowhere.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PageTextsDocument {
    /// No link has the short id, or the path can have none.
    unknown: Option<PageTextDocument>,
    /// The link has ended.
    ended: Option<PageTextDocument>,
    /// The link is paused. What the platform operator takes out of service has the words of the product, and shows nothing of
    /// the account.
    suspended: Option<PageTextDocument>,
    /// The item may be a copy: see `copies`.
    copy: Option<PageTextDocument>,
    /// The domain without a short id.
    root: Option<PageTextDocument>,
}

/// Heading and text of a page; both are shown as they are, without markup.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PageTextDocument {
    /// 1 to 80 characters.
    #[schema(example = "We do not know this code", min_length = 1, max_length = 80)]
    title: String,
    /// 1 to 500 characters.
    #[schema(example = "Ask in the shop where you bought it.", min_length = 1, max_length = 500)]
    text: String,
}

impl From<&PageText> for PageTextDocument {
    fn from(text: &PageText) -> Self {
        Self { title: text.title.to_string(), text: text.text.to_string() }
    }
}

impl From<&PageTexts> for PageTextsDocument {
    fn from(texts: &PageTexts) -> Self {
        let PageTexts { unknown, ended, suspended, copy, root } = texts;
        let [unknown, ended, suspended, copy, root] =
            [unknown, ended, suspended, copy, root].map(|text| text.as_ref().map(PageTextDocument::from));
        Self { unknown, ended, suspended, copy, root }
    }
}

impl From<&Pages> for PagesDocument {
    fn from(pages: &Pages) -> Self {
        let colors = pages.colors.map(|colors| PageColorsDocument {
            background: colors.background.to_string(),
            text: colors.text.to_string(),
            accent: colors.accent.to_string(),
        });
        let link = pages
            .link
            .as_ref()
            .map(|link| PageLinkDocument { url: link.url.to_string(), label: link.label.to_string() });
        Self {
            name: pages.name.as_deref().map(str::to_owned),
            logo: pages.logo.as_deref().map(str::to_owned),
            colors,
            link,
            copies: pages.copies.map(Risk::as_str),
            reports: pages.reports,
            photos: pages.photos,
            texts: pages.texts.iter().map(|(tag, texts)| (tag.to_string(), texts.into())).collect(),
        }
    }
}

/// Reads the pages of all domains of an account that have none of their own; an empty object if nothing was chosen.
#[utoipa::path(get, path = "/accounts/{id}/pages", tag = "Accounts", operation_id = "readPages",
    params(("id" = String, Path, description = "Id of the account")),
    responses((status = 200, description = "The pages", body = PagesDocument)))]
pub(super) async fn read(
    State(redirects): State<Redirects>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Tagged<PagesDocument>, ApiError> {
    Ok(shown(&service::read(&redirects, &caller, &id, None).await?))
}

/// Replaces the pages of an account as a whole; an empty object removes them.
#[utoipa::path(put, path = "/accounts/{id}/pages", tag = "Accounts", operation_id = "replacePages",
    params(("id" = String, Path, description = "Id of the account"),
        ("wait" = Option<String>, Query, description = "`edges`: answer when every edge has the change"),
        ("timeout" = Option<String>, Query, description = "Longest wait, default `2s`")),
    request_body(content = PagesDocument, description = "The pages as a whole"),
    responses((status = 200, description = "The pages", body = PagesDocument),
        (status = 202, description = "Changed; an edge had not confirmed it at the deadline", body = PagesDocument)))]
pub(super) async fn replace(
    State(redirects): State<Redirects>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    query: Query,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let wait = Wait::parse(&query)?;
    let done = service::replace(&redirects, &caller, &id, None, body).await?;
    Ok(answer(&redirects, wait, &done).await)
}

/// Reads the pages of a short domain; an empty object if it has none of its own, and those of the account are shown.
#[utoipa::path(get, path = "/accounts/{id}/shortDomains/{domain}/pages", tag = "Accounts",
    operation_id = "readDomainPages",
    params(("id" = String, Path, description = "Id of the account"),
        ("domain" = String, Path, description = "A short domain of the account")),
    responses((status = 200, description = "The pages", body = PagesDocument)))]
pub(super) async fn read_of_domain(
    State(redirects): State<Redirects>,
    Authenticated(caller): Authenticated,
    Path((id, domain)): Path<(String, String)>,
) -> Result<Tagged<PagesDocument>, ApiError> {
    Ok(shown(&service::read(&redirects, &caller, &id, Some(&domain)).await?))
}

/// Replaces the pages of a short domain as a whole, in place of those of the account; an empty object removes them.
#[utoipa::path(put, path = "/accounts/{id}/shortDomains/{domain}/pages", tag = "Accounts",
    operation_id = "replaceDomainPages",
    params(("id" = String, Path, description = "Id of the account"),
        ("domain" = String, Path, description = "A short domain of the account"),
        ("wait" = Option<String>, Query, description = "`edges`: answer when every edge has the change"),
        ("timeout" = Option<String>, Query, description = "Longest wait, default `2s`")),
    request_body(content = PagesDocument, description = "The pages as a whole"),
    responses((status = 200, description = "The pages", body = PagesDocument),
        (status = 202, description = "Changed; an edge had not confirmed it at the deadline", body = PagesDocument)))]
pub(super) async fn replace_of_domain(
    State(redirects): State<Redirects>,
    Authenticated(caller): Authenticated,
    Path((id, domain)): Path<(String, String)>,
    query: Query,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    let wait = Wait::parse(&query)?;
    let done = service::replace(&redirects, &caller, &id, Some(&domain), body).await?;
    Ok(answer(&redirects, wait, &done).await)
}

fn shown(pages: &Pages) -> Tagged<PagesDocument> {
    Tagged(EntityTag::of(pages), pages.into())
}

async fn answer(redirects: &Redirects, wait: Wait, done: &Written<Pages>) -> Response {
    let body: Value = serde_json::to_value(PagesDocument::from(&done.value)).unwrap_or_default();
    written(redirects, wait, done, StatusCode::OK, Some(body)).await
}
