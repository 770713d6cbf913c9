//! HTTP: products.

use std::collections::BTreeMap;

use axum::{Json, extract::State, response::Response};
use serde::Serialize;
use serde_json::Value;
use serde_with_macros::skip_serializing_none;
use shared::digital_link::SerialMode;
use utoipa::ToSchema;
use web::{
    access::Authenticated,
    api_error::ApiError,
    bulk::create_each,
    conditions::Tagged,
    extract::{JsonBody, Path, Query},
    listing::{Listing, flag},
    openapi::{ListParams, PageParams},
    request_info::RequestInfo,
    wire::{CommonDocument, created},
};

use super::{
    link_documents::{LinkLevelDocument, TypedLinkDocument},
    one::one,
};
use crate::{
    domain::{
        body::Purpose,
        listing::PRODUCTS,
        resource::{Product, ProductChange},
    },
    service::{Catalog, Core, named::tag_of, products},
};

/// A product: what Thngs are instances of.
#[skip_serializing_none]
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProductDocument {
    /// Its id.
    #[schema(read_only, example = "UKXAGyEf8SQ5eTDmVgGpHqAa")]
    id: String,
    #[serde(flatten)]
    common: CommonDocument,
    /// 1 to 256 characters; required on create.
    #[schema(example = "Red shoe")]
    name: String,
    /// The same as `name`.
    #[serde(rename = "fn")]
    #[schema(read_only)]
    fn_: String,
    /// Brand, at most 256 characters.
    brand: Option<String>,
    /// At most 100 categories of 1 to 128 characters.
    categories: Option<Vec<String>>,
    /// At most 100 URLs of 1 to 2,048 characters.
    photos: Option<Vec<String>>,
    /// URL of its page, at most 2,048 characters.
    url: Option<String>,
    /// Where Digital Links of its GTIN lead: at most 64 links, exactly one of them the default.
    links: Option<Vec<TypedLinkDocument>>,
    /// Lots and variants with links of their own, at most 100. All links of a product take at most 64 KiB. Each of its GTINs, former
    /// ones too, has a record at each level: at most 300 on a short domain.
    levels: Option<Vec<LinkLevelDocument>>,
    /// What its serials are. `none`: a serial leads where the product does. `template`: the same, and `{21}` in `href` is the
    /// serial. `overrides`: Things with `links` lead there, other serials where the product does. `known`: the same, and scans say
    /// of a serial without a Thng that it was never issued.
    #[schema(value_type = Option<String>, example = "template")]
    serial_mode: Option<&'static str>,
    /// GTINs that it had before and that still lead to it, at most 10 of 14 digits. When its `gs1:01` changes, the former one is
    /// added, unless the change gives `gtinAliases`.
    #[schema(example = json!(["09521234543213"]))]
    gtin_aliases: Option<Vec<String>>,
    /// Latest values of its newest 100 properties, as far as they fit 64 KiB; taken on create only.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = Option<Object>, example = json!({"temp_celsius": 21.5}))]
    properties: BTreeMap<String, Value>,
}

impl ProductDocument {
    fn new(product: Product, with_scopes: bool) -> Self {
        let details = product.details;
        Self {
            id: product.id.to_string(),
            common: CommonDocument::new(product.stamp, details.common, with_scopes),
            fn_: product.name.clone(),
            name: product.name,
            brand: details.brand,
            categories: details.categories,
            photos: details.photos,
            url: details.url,
            links: details.digital.links.map(TypedLinkDocument::all),
            levels: details
                .digital
                .levels
                .map(|levels| levels.into_iter().map(LinkLevelDocument::from).collect()),
            serial_mode: details.digital.serial_mode.map(SerialMode::as_str),
            gtin_aliases: details.digital.gtin_aliases,
            properties: product.properties,
        }
    }
}

/// Lists products, newest first.
#[utoipa::path(get, path = "/products", tag = "Products", operation_id = "listProducts", params(PageParams, ListParams),
    responses((status = 200, description = "One page", body = [ProductDocument])),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn list(
    State(catalog): State<Catalog>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    query: Query,
) -> Result<Response, ApiError> {
    let listing = Listing::parse(&catalog, &caller, info, &query, &PRODUCTS)?;
    let page = products::list(&catalog, &caller, &listing.request).await?;
    Ok(listing.answer(&catalog, page, |product| ProductDocument::new(product, listing.with_scopes)))
}

/// Makes a product, or up to 1,000 from an array.
#[utoipa::path(post, path = "/products", tag = "Products", operation_id = "createProduct",
    params(("project" = Option<String>, Query, description = "Scope what is made to this project")),
    request_body = ProductDocument,
    responses((status = 201, description = "The product", body = ProductDocument),
        (status = 200, description = "Of an array: one result for each item, in its order")),
    extensions(("x-maturity" = json!("General Availability"))))]
pub(super) async fn create(
    State(catalog): State<Catalog>,
    Authenticated(caller): Authenticated,
    info: RequestInfo,
    query: Query,
    JsonBody(body): JsonBody,
) -> Result<Response, ApiError> {
    if let Value::Array(items) = &body {
        let parse = |item: &Value| ProductChange::parse(item, Purpose::Create);
        return create_each::<Core, Product>(&catalog, &caller, items, query.find("project"), parse).await;
    }
    let change = ProductChange::parse(&body, Purpose::Create).map_err(ApiError::invalid)?;
    let product = products::create(&catalog, &caller, change, query.find("project")).await?;
    let id = product.id;
    Ok(created(&info, id.as_str(), ProductDocument::new(product, false)))
}

one!(
    products,
    ProductChange,
    ProductDocument,
    "/products/{id}",
    "Products",
    "product",
    "Product",
    "Removes a product; what points at it stays."
);
