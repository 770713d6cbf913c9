//! Products (decisions 4).

use shared::id::ProductId;
use tracing::instrument;

use super::{App, access::require, properties, references::resolve_product, scopes::scopes_for};
use crate::{
    domain::{
        access::Actor,
        limits::shorten,
        listing::ListRequest,
        page::Page,
        permission::{Subject::Products, Verb},
        resource::{Product, ProductChange},
    },
    error::ServiceError,
    store::{listing::Selection, products},
};

/// Makes a product; `project` is what `?project=` names.
///
/// # Errors
/// The key may not, the name is missing, or the database failed.
#[instrument(skip_all)]
pub async fn create(
    app: &App,
    actor: &Actor,
    mut change: ProductChange,
    project: Option<&str>,
) -> Result<Product, ServiceError> {
    let grant = require(actor, Verb::Create, Products)?;
    let now = app.clock.now();
    let id = ProductId::new(now.0, app.random16()?);
    let name = change.name.ok_or_else(super::name_required)?;
    let mut tx = app.db.begin().await?;
    let asked = change.details.common.scopes.take();
    change.details.common.scopes = scopes_for(&mut tx, actor, &grant, asked, project).await?;
    let mut product = products::insert(&mut tx, actor.account, id, name, change.details, now).await?;
    properties::write_initial(&mut tx, actor, id.as_str(), change.properties, now).await?;
    product.properties = properties::shown(&mut tx, actor, id.as_str()).await?;
    tx.commit().await?;
    Ok(product)
}

/// Reads a product by id or `<key>:<value>`.
///
/// # Errors
/// It is not there, the identifier is ambiguous, or the database failed.
#[instrument(skip_all)]
pub async fn read(app: &App, actor: &Actor, reference: &str) -> Result<Product, ServiceError> {
    let grant = require(actor, Verb::Read, Products)?;
    let mut conn = app.db.read().await?;
    let id = resolve_product(&mut conn, actor.account, reference).await?;
    let found = products::find(&mut conn, actor.account, id).await?;
    let seen = found.filter(|row| grant.admits(id.as_str(), row.details.common.scopes.as_ref()));
    let mut product = seen.ok_or_else(|| ServiceError::not_found("product", shorten(reference)))?;
    product.properties = properties::shown(&mut conn, actor, id.as_str()).await?;
    Ok(product)
}

/// Lists products.
///
/// # Errors
/// The key may not, or the database failed.
#[instrument(skip_all)]
pub async fn list(app: &App, actor: &Actor, request: &ListRequest) -> Result<Page<Product>, ServiceError> {
    let grant = require(actor, Verb::Read, Products)?;
    let mut conn = app.db.read().await?;
    let selection = Selection { account: actor.account, limit: grant.limit(), request, within: &[] };
    let mut page = products::list(&mut conn, &selection).await?;
    let ids: Vec<String> = page.items.iter().map(|product| product.id.to_string()).collect();
    let mut shown = properties::shown_of(&mut conn, actor, &ids).await?;
    for product in &mut page.items {
        product.properties = shown.remove(product.id.as_str()).unwrap_or_default();
    }
    Ok(page)
}

/// Merges the members given into a product.
///
/// # Errors
/// It is not there, the identifier is ambiguous, or the database failed.
#[instrument(skip_all)]
pub async fn update(
    app: &App,
    actor: &Actor,
    reference: &str,
    mut change: ProductChange,
) -> Result<Product, ServiceError> {
    let grant = require(actor, Verb::Update, Products)?;
    change.details.common.scopes = grant.scopes_of_change(change.details.common.scopes.take());
    let mut tx = app.db.begin().await?;
    let id = resolve_product(&mut tx, actor.account, reference).await?;
    let mut product = products::find_locked(&mut tx, actor.account, id)
        .await?
        .filter(|row| grant.admits(id.as_str(), row.details.common.scopes.as_ref()))
        .ok_or_else(|| ServiceError::not_found("product", shorten(reference)))?
        .apply(change, app.clock.now());
    products::update(&mut tx, actor.account, &product).await?;
    product.properties = properties::shown(&mut tx, actor, id.as_str()).await?;
    tx.commit().await?;
    Ok(product)
}

/// Removes a product; what points at it stays.
///
/// # Errors
/// It is not there, the identifier is ambiguous, or the database failed.
#[instrument(skip_all)]
pub async fn delete(app: &App, actor: &Actor, reference: &str) -> Result<(), ServiceError> {
    let grant = require(actor, Verb::Delete, Products)?;
    let mut tx = app.db.begin().await?;
    let id = resolve_product(&mut tx, actor.account, reference).await?;
    products::find_locked(&mut tx, actor.account, id)
        .await?
        .filter(|row| grant.admits(id.as_str(), row.details.common.scopes.as_ref()))
        .ok_or_else(|| ServiceError::not_found("product", shorten(reference)))?;
    products::delete(&mut tx, actor.account, id).await?;
    tx.commit().await?;
    properties::sweep_once(app).await;
    Ok(())
}
