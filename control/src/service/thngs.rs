//! Thngs (decisions 4).

use shared::{
    id::{ProductId, ThngId},
    problem::Code,
};
use tracing::instrument;

use super::{
    App, access::require, collections::members::set_collections_of, locations, properties,
    redirections::follow_thng, references::resolve_thng, scopes::scopes_for,
};
use crate::{
    domain::{
        access::Actor,
        limits::shorten,
        listing::ListRequest,
        page::Page,
        permission::{
            Subject::{self, Thngs},
            Verb,
        },
        resource::{Thng, ThngChange},
    },
    error::ServiceError,
    store::{Conn, Tx, collection_members, keys, listing::Selection, products, thng_locations, thngs},
};

/// Makes a Thng; `project` is what `?project=` names.
///
/// # Errors
/// The key may not, the name is missing, the product is not there, or the database failed.
#[instrument(skip_all)]
pub async fn create(
    app: &App,
    actor: &Actor,
    mut change: ThngChange,
    project: Option<&str>,
) -> Result<Thng, ServiceError> {
    let grant = require(actor, Verb::Create, Thngs)?;
    let now = app.clock.now();
    let id = ThngId::new(now.0, app.random16()?);
    let name = change.name.ok_or_else(super::name_required)?;
    let mut tx = app.db.begin().await?;
    let asked = change.details.common.scopes.take();
    change.details.common.scopes = scopes_for(&mut tx, actor, &grant, asked, project).await?;
    check_product(&mut tx, actor, change.product).await?;
    let mut thng =
        thngs::insert(&mut tx, actor.account, id, name, change.product, change.details, now).await?;
    if let Some(wanted) = change.collections {
        set_collections_of(&mut tx, actor, id, &[], &wanted).await?;
        thng.collections = wanted;
    }
    if let Some(location) = change.location {
        let locations = vec![("location".to_owned(), location)];
        locations::record(&mut tx, actor.account, &mut thng, locations, now).await?;
    }
    properties::write_initial(&mut tx, actor, id.as_str(), change.properties, now).await?;
    thng.properties = properties::shown(&mut tx, actor, id.as_str()).await?;
    tx.commit().await?;
    Ok(thng)
}

/// Reads a Thng by id or `<key>:<value>`.
///
/// # Errors
/// It is not there, the identifier is ambiguous, or the database failed.
#[instrument(skip_all)]
pub async fn read(app: &App, actor: &Actor, reference: &str) -> Result<Thng, ServiceError> {
    let grant = require(actor, Verb::Read, Thngs)?;
    let mut conn = app.db.read().await?;
    let id = resolve_thng(&mut conn, actor.account, reference).await?;
    let found = thngs::find(&mut conn, actor.account, id).await?;
    let seen = found.filter(|row| grant.admits(id.as_str(), row.details.common.scopes.as_ref()));
    let mut thng = seen.ok_or_else(|| ServiceError::not_found("thng", shorten(reference)))?;
    thng.properties = properties::shown(&mut conn, actor, id.as_str()).await?;
    Ok(thng)
}

/// Lists Thngs.
///
/// # Errors
/// The key may not, or the database failed.
#[instrument(skip_all)]
pub async fn list(app: &App, actor: &Actor, request: &ListRequest) -> Result<Page<Thng>, ServiceError> {
    let grant = require(actor, Verb::Read, Thngs)?;
    let mut conn = app.db.read().await?;
    let selection = Selection { account: actor.account, limit: grant.limit(), request, within: &[] };
    let mut page = thngs::list(&mut conn, &selection).await?;
    show_properties(&mut conn, actor, &mut page.items).await?;
    Ok(page)
}

/// Puts the latest values of their properties into Thngs.
pub(super) async fn show_properties(
    conn: &mut Conn,
    actor: &Actor,
    thngs: &mut [Thng],
) -> Result<(), ServiceError> {
    let ids: Vec<String> = thngs.iter().map(|thng| thng.id.to_string()).collect();
    let mut shown = properties::shown_of(conn, actor, &ids).await?;
    for thng in thngs {
        thng.properties = shown.remove(thng.id.as_str()).unwrap_or_default();
    }
    Ok(())
}

/// Merges the members given into a Thng.
///
/// # Errors
/// It or its product is not there, the identifier is ambiguous, or the database failed.
#[instrument(skip_all)]
pub async fn update(
    app: &App,
    actor: &Actor,
    reference: &str,
    mut change: ThngChange,
) -> Result<Thng, ServiceError> {
    let grant = require(actor, Verb::Update, Thngs)?;
    change.details.common.scopes = grant.scopes_of_change(change.details.common.scopes.take());
    let mut tx = app.db.begin().await?;
    let id = resolve_thng(&mut tx, actor.account, reference).await?;
    let stored = thngs::find_locked(&mut tx, actor.account, id)
        .await?
        .filter(|row| grant.admits(id.as_str(), row.details.common.scopes.as_ref()))
        .ok_or_else(|| ServiceError::not_found("thng", shorten(reference)))?;
    // A client that sends back what it read may name a product that is gone by now.
    if change.product != stored.product {
        check_product(&mut tx, actor, change.product).await?;
    }
    let (product, name, now) = (stored.product, stored.name.clone(), app.clock.now());
    let collections = stored.collections.clone();
    let mut thng = stored.apply(change, now);
    set_collections_of(&mut tx, actor, id, &collections, &thng.collections).await?;
    thngs::update(&mut tx, actor.account, &thng).await?;
    thng.properties = properties::shown(&mut tx, actor, id.as_str()).await?;
    let was_renamed = thng.name != name;
    let followed = (was_renamed || thng.product != product)
        && follow_thng(&mut tx, actor.account, id, thng.product, was_renamed, now).await?;
    tx.commit().await?;
    if followed {
        app.hub.wake();
    }
    Ok(thng)
}

/// Removes a Thng; what points at it stays.
///
/// # Errors
/// It is not there, the identifier is ambiguous, or the database failed.
#[instrument(skip_all)]
pub async fn delete(app: &App, actor: &Actor, reference: &str) -> Result<(), ServiceError> {
    let grant = require(actor, Verb::Delete, Thngs)?;
    let mut tx = app.db.begin().await?;
    let id = resolve_thng(&mut tx, actor.account, reference).await?;
    let stored = thngs::find_locked(&mut tx, actor.account, id)
        .await?
        .filter(|row| grant.admits(id.as_str(), row.details.common.scopes.as_ref()))
        .ok_or_else(|| ServiceError::not_found("thng", shorten(reference)))?;
    thngs::delete(&mut tx, actor.account, id).await?;
    collection_members::forget_thng(&mut tx, actor.account, id).await?;
    thng_locations::delete(&mut tx, actor.account, id, None).await?;
    keys::revoke_all(&mut tx, actor.account, id.as_str(), app.clock.now().0).await?;
    // Its name is gone with it; what rules see of its redirections must not depend on when an edge read them.
    let followed = follow_thng(&mut tx, actor.account, id, stored.product, true, app.clock.now()).await?;
    tx.commit().await?;
    if followed {
        app.hub.wake();
    }
    properties::sweep_once(app).await;
    Ok(())
}

async fn check_product(tx: &mut Tx, actor: &Actor, product: Option<ProductId>) -> Result<(), ServiceError> {
    let Some(id) = product else { return Ok(()) };
    // What the key cannot see does not exist for it.
    let grant = require(actor, Verb::Read, Subject::Products).ok();
    let found = products::find(tx, actor.account, id).await?;
    let is_seen = found
        .zip(grant)
        .is_some_and(|(product, grant)| grant.admits(id.as_str(), product.details.common.scopes.as_ref()));
    if !is_seen {
        return Err(ServiceError::refused(
            Code::Invalid,
            format!("product: the product {id} does not exist."),
        ));
    }
    Ok(())
}
