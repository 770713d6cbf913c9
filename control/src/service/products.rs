//! Products (decisions 4).

use std::collections::BTreeMap;

use shared::{id::ProductId, problem::Code};
use tracing::instrument;

use super::{App, access::require, named, properties, scopes::scopes_for, user_rules};
use crate::{
    domain::{
        access::Actor,
        gtin,
        limits::shorten,
        listing::ListRequest,
        page::Page,
        permission::{Subject::Products, Verb},
        resource::{Common, Product, ProductChange, Stamp},
    },
    error::ServiceError,
    store::{self, documents},
};

/// Makes a product; `project` is what `?project=` names.
///
/// # Errors
/// The key may not, the name is missing, the GTIN is wrong or another product's, or the database failed.
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
    keep_gtin(None, &mut change.details.common)?;
    user_rules::check_write::<Product>(&mut tx, actor, None, &mut change.details.common).await?;
    let asked = change.details.common.scopes.take();
    change.details.common.scopes = scopes_for(&mut tx, actor, &grant, asked, project).await?;
    let new =
        Product { id, stamp: Stamp::new(now), name, details: change.details, properties: BTreeMap::new() };
    let mut product = documents::insert(&mut tx, actor.account, new).await?;
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
    named::read(app, actor, reference).await
}

/// Lists products.
///
/// # Errors
/// The key may not, or the database failed.
#[instrument(skip_all)]
pub async fn list(app: &App, actor: &Actor, request: &ListRequest) -> Result<Page<Product>, ServiceError> {
    named::list(app, actor, request).await
}

/// Merges the members given into a product.
///
/// # Errors
/// It is not there, the identifier is ambiguous, another product has its GTIN, or the database failed.
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
    let stored: Product = named::find_locked(&mut tx, actor, &grant, reference).await?;
    keep_gtin(Some(&stored), &mut change.details.common)?;
    user_rules::check_write(&mut tx, actor, Some(&stored), &mut change.details.common).await?;
    let mut product = stored.apply(change, app.clock.now());
    documents::update(&mut tx, actor.account, &product).await?;
    product.properties = properties::shown(&mut tx, actor, product.id.as_str()).await?;
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
    let id = named::find_locked::<Product>(&mut tx, actor, &grant, reference).await?.id;
    documents::delete::<Product>(&mut tx, actor.account, id).await?;
    store::properties::remove_all(&mut tx, actor.account, id.as_str()).await?;
    tx.commit().await?;
    properties::sweep_once(app).await;
    Ok(())
}

/// Brings a new `gs1:01` into the form in which it is kept, and refuses one that is no GTIN; what is stored stays.
fn keep_gtin(stored: Option<&Product>, change: &mut Common) -> Result<(), ServiceError> {
    let known = stored.and_then(|stored| stored.details.common.identifiers.as_ref()?.get("gs1:01"));
    let Some(given) = change.identifiers.as_mut().and_then(|all| all.get_mut("gs1:01")) else {
        return Ok(());
    };
    if gtin::is_valid(given) {
        *given = gtin::canonical(given);
    } else if known != Some(&*given) {
        let fault = format!(
            "identifiers.gs1:01 must be a GTIN of 8, 12, 13 or 14 digits with its check digit, not {:?}.",
            shorten(given)
        );
        return Err(ServiceError::refused(Code::Invalid, fault));
    }
    Ok(())
}
