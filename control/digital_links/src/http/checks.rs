//! HTTP: checks of the links of a product.

use std::sync::Arc;

use axum::{Json, extract::State};
use digital_link::Qualifier;
use serde::Serialize;
use shared::problem::Code;
use utoipa::ToSchema;
use web::{
    access::Authenticated,
    api_error::ApiError,
    extract::{Path, Query},
};

use crate::service::check::{self, CheckedPage, LinkChecks};

/// What the pages answered that the links of a product lead to.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct LinkChecksDocument {
    /// The first 50 links: those of the GTIN, then those of its levels.
    links: Vec<LinkCheckDocument>,
    /// How many links beyond them were not checked.
    left_out: usize,
}

/// What the page of a link answered. A page without a `fault` and with a status below 400 is there.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct LinkCheckDocument {
    /// The link, as a member of the product.
    #[schema(example = "levels[0].links[1]")]
    path: String,
    /// Its target with the tags replaced; `{thngId}` is empty.
    #[schema(example = "https://example.com/product/09506000134352")]
    url: String,
    /// The status of the answer, behind redirects.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = 200)]
    status: Option<u16>,
    /// Where redirects led.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "https://www.example.com/product/09506000134352")]
    final_url: Option<String>,
    /// Why there is no status.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "no answer in time")]
    fault: Option<String>,
}

impl From<CheckedPage> for LinkCheckDocument {
    fn from(CheckedPage { page, found }: CheckedPage) -> Self {
        let (status, final_url, fault) = match found {
            Ok(found) => (Some(found.status), Some(found.url), None),
            Err(fault) => (None, None, Some(fault)),
        };
        Self { path: page.path, url: page.url, status, final_url, fault }
    }
}

/// Looks whether the pages are there that the links of a product lead to. Nothing is changed, and no scan is counted.
///
/// A page is asked for by `HEAD`, and by `GET` where that finds none, for 5 seconds with at most 5 redirects; four pages are asked for
/// at once, and no private address is, and no port but 80 and 443. The first 50 links are checked, within 25 seconds. An account may
/// check 10 products a minute, two of them at once, in each process.
#[utoipa::path(post, path = "/products/{id}/links/check", tag = "Products", operation_id = "checkProductLinks",
    params(("id" = String, Path, description = "Id, or `<key>:<value>`"),
        ("serial" = Option<String>, Query, min_length = 1, max_length = 20, description = "What `{21}` in a target stands for, of GS1's set of 82 characters; empty without it")),
    responses((status = 200, description = "What each page answered", body = LinkChecksDocument)))]
pub(super) async fn check(
    State(checks): State<Arc<LinkChecks>>,
    Authenticated(caller): Authenticated,
    Path(reference): Path<String>,
    query: Query,
) -> Result<Json<LinkChecksDocument>, ApiError> {
    let serial = query.find("serial");
    if let Some(Err(fault)) = serial.map(|serial| Qualifier::Serial.check(serial)) {
        return Err(ApiError::faults(Code::InvalidParameter, vec![format!("serial: {fault}.")]));
    }
    let (links, left_out) = check::check(&checks, &caller, &reference, serial).await?;
    Ok(Json(LinkChecksDocument { links: links.into_iter().map(LinkCheckDocument::from).collect(), left_out }))
}
