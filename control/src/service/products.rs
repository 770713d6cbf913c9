//! Products (decisions 4).

use shared::id::ProductId;
use tracing::instrument;

use super::{App, access::require, listing::ListRequest, references::resolve_product};
use crate::{
    domain::{
        access::Actor,
        page::Page,
        permission::{Subject::Products, Verb},
        resource::{Product, ProductChange},
    },
    error::ServiceError,
    store::products,
};

/// Makes a product.
///
/// # Errors
/// The key may not, the name is missing, or the database failed.
#[instrument(skip_all)]
pub async fn create(app: &App, actor: &Actor, change: ProductChange) -> Result<Product, ServiceError> {
    let _ = require(actor, Verb::Create, Products)?;
    let now = app.clock.now();
    let id = ProductId::new(now.0, app.random16()?);
    let name = change.name.ok_or_else(super::name_required)?;
    let mut tx = app.db.begin().await?;
    let product = products::insert(&mut tx, actor.account, id, name, change.details, now).await?;
    tx.commit().await?;
    Ok(product)
}

/// Reads a product by id or `<key>:<value>`.
///
/// # Errors
/// It is not there, the identifier is ambiguous, or the database failed.
#[instrument(skip_all)]
pub async fn read(app: &App, actor: &Actor, reference: &str) -> Result<Product, ServiceError> {
    let _ = require(actor, Verb::Read, Products)?;
    let mut conn = app.db.read().await?;
    let id = resolve_product(&mut conn, actor.account, reference).await?;
    products::find(&mut conn, actor.account, id)
        .await?
        .ok_or_else(|| ServiceError::not_found("product", reference))
}

/// Lists products.
///
/// # Errors
/// The key may not, or the database failed.
#[instrument(skip_all)]
pub async fn list(app: &App, actor: &Actor, request: &ListRequest) -> Result<Page<Product>, ServiceError> {
    let _ = require(actor, Verb::Read, Products)?;
    let mut conn = app.db.read().await?;
    let rows = products::list(&mut conn, actor.account, request.selection(), request.page).await?;
    Ok(request.cut(rows, |product| product.stamp, Product::matches))
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
    change: ProductChange,
) -> Result<Product, ServiceError> {
    let _ = require(actor, Verb::Update, Products)?;
    let mut tx = app.db.begin().await?;
    let id = resolve_product(&mut tx, actor.account, reference).await?;
    let product = products::find_locked(&mut tx, actor.account, id)
        .await?
        .ok_or_else(|| ServiceError::not_found("product", reference))?
        .apply(change, app.clock.now());
    products::update(&mut tx, actor.account, &product).await?;
    tx.commit().await?;
    Ok(product)
}

/// Removes a product; what points at it stays.
///
/// # Errors
/// It is not there, the identifier is ambiguous, or the database failed.
#[instrument(skip_all)]
pub async fn delete(app: &App, actor: &Actor, reference: &str) -> Result<(), ServiceError> {
    let _ = require(actor, Verb::Delete, Products)?;
    let mut tx = app.db.begin().await?;
    let id = resolve_product(&mut tx, actor.account, reference).await?;
    if !products::delete(&mut tx, actor.account, id).await? {
        return Err(ServiceError::not_found("product", reference));
    }
    Ok(tx.commit().await?)
}
