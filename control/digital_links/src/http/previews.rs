//! HTTP: where the Digital Links of a product lead.

use axum::{Json, extract::State};
use redirects::{
    http::{PreviewTakeDownDocument, TriedRuleDocument},
    service::{Redirects, redirections::ShownRule},
};
use serde::Serialize;
use utoipa::ToSchema;
use web::{
    access::Authenticated,
    api_error::ApiError,
    extract::{JsonBody, Path, Query},
};

use crate::{
    domain::assumed_request::AssumedRequest,
    service::preview::{self, LinkPreview, ShownLink},
};

/// What an edge answers to a request for a Digital Link, and why.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct LinkPreviewDocument {
    /// The Digital Link that is asked for, with its query.
    #[schema(example = "https://brand.example/01/09506000134352/10/L1/21/A1?context=DE")]
    url: String,
    /// Status of the answer: 307; 200 and 300 with a list of links; 403, 404 or 451.
    #[schema(example = 307)]
    status: u16,
    /// Where the request is led, with its query; only with 307.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "https://example.com/product/09506000134352?context=DE")]
    location: Option<String>,
    /// Code of the answer where it is an error: 40305, 40402, 40403 or 45101.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<u32>,
    /// What decides. Among the links: `default`, or the member of the request that ruled the last other one out: `linkType`, `accept`,
    /// `acceptLanguage` or `context`. As for short ids: `rule`, `copy` or `takeDown`. Otherwise: `several` (300), `all` (200: they are
    /// asked for), `noLink` (none of the type), `unknown` (the GTIN leads nowhere), `domain` (it does not resolve Digital Links).
    #[schema(example = "acceptLanguage")]
    decided_by: &'static str,
    /// The link that was chosen. A rule may lead elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    link: Option<PreviewedLinkDocument>,
    /// The links that the answer lists: with 300 those that fit, with 200 those of all levels, from the item to the product.
    links: Vec<PreviewedLinkDocument>,
    /// Short id of the redirection for which a scan would count: the item where it has one, else the level of the link. Absent
    /// where no scan is recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "01/09506000134352/10/L1")]
    counts_for: Option<String>,
    /// Whether the serial was issued, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    known: Option<bool>,
    /// The rule that decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<TriedRuleDocument>,
    /// The rules that were tried before and do not hold, in their order. None is tried where a `linkType` is asked for.
    tried: Vec<TriedRuleDocument>,
    /// Who is led there gets a page instead (451).
    #[serde(skip_serializing_if = "Option::is_none")]
    taken_down: Option<PreviewTakeDownDocument>,
}

/// A link of a level.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct PreviewedLinkDocument {
    /// Short id of the level that has it: the item, a lot, a variant, or the product.
    #[schema(example = "01/09506000134352/10/L1")]
    level: String,
    /// Its type.
    #[schema(example = "gs1:pip")]
    link_type: String,
    /// Its target, the tags replaced.
    #[schema(example = "https://example.com/product/09506000134352")]
    href: String,
    /// What people read of it.
    #[schema(example = "Product page")]
    title: String,
    /// Media type of the target.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schema(example = "text/html")]
    media_type: Option<String>,
    /// Language tags of the target.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false, example = json!(["de"]))]
    hreflang: Vec<String>,
    /// Contexts in which it holds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    context: Vec<String>,
    /// Whether it is the default link of its level.
    default: bool,
}

impl From<LinkPreview> for LinkPreviewDocument {
    fn from(preview: LinkPreview) -> Self {
        let mut tried: Vec<ShownRule> = preview.tried;
        // Rules are tried until one holds.
        let rule = tried.pop_if(|last| last.holds);
        Self {
            url: preview.url,
            status: preview.status,
            location: preview.location,
            code: preview.code.map(|code| code as u32),
            decided_by: preview.by.as_str(),
            link: preview.link.map(PreviewedLinkDocument::from),
            links: preview.links.into_iter().map(PreviewedLinkDocument::from).collect(),
            counts_for: preview.counts_for,
            known: preview.known,
            rule: rule.map(TriedRuleDocument::from),
            tried: tried.into_iter().map(TriedRuleDocument::from).collect(),
            taken_down: preview.taken_down.map(PreviewTakeDownDocument::from),
        }
    }
}

impl From<ShownLink> for PreviewedLinkDocument {
    fn from(ShownLink { level, link, href }: ShownLink) -> Self {
        let texts = |all: Vec<std::sync::Arc<str>>| all.iter().map(|text| text.to_string()).collect();
        Self {
            level,
            link_type: link.link_type.to_string(),
            href,
            title: link.title.to_string(),
            media_type: link.media_type.map(|text| text.to_string()),
            hreflang: texts(link.hreflang),
            context: texts(link.context),
            default: link.default,
        }
    }
}

/// Says where a scan of a Digital Link of a product would lead, and why, as edges decide it: by variant, lot and serial, type of
/// link, languages, context, `Accept` and time, and by rules. Nothing is written, and no scan is counted.
#[utoipa::path(post, path = "/products/{id}/links/preview", tag = "Products", operation_id = "previewProductLinks",
    params(("id" = String, Path, description = "Id, or `<key>:<value>`"),
        ("domain" = Option<String>, Query, description = "Short domain; without it the first one that resolves Digital Links")),
    request_body(content = Object, description = "What is known of the request",
        example = json!({"lot": "L1", "acceptLanguage": "de-AT,de;q=0.9"})),
    responses((status = 200, description = "What an edge would answer, and why", body = LinkPreviewDocument)))]
pub(super) async fn preview(
    State(redirects): State<Redirects>,
    Authenticated(caller): Authenticated,
    Path(reference): Path<String>,
    query: Query,
    JsonBody(body): JsonBody,
) -> Result<Json<LinkPreviewDocument>, ApiError> {
    let request = AssumedRequest::parse(&body).map_err(ApiError::invalid)?;
    let found = preview::preview(&redirects, &caller, &reference, query.find("domain"), &request).await?;
    Ok(Json(found.into()))
}
