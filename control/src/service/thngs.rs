//! Thngs (decisions 4).

use shared::{
    id::{ProductId, ThngId},
    problem::Code,
};
use tracing::instrument;

use super::{
    App,
    access::require,
    collections::members::set_collections_of,
    locations,
    named::{self, is_seen},
    properties,
    redirections::follow_thng,
    scopes::scopes_for,
};
use crate::{
    domain::{
        access::Actor,
        listing::ListRequest,
        page::Page,
        permission::{
            Subject::{self, Thngs},
            Verb,
        },
        resource::{Product, Thng, ThngChange},
    },
    error::ServiceError,
    store::{self, Tx, collection_members, documents, item_standings, keys, scan_profiles, thng_locations},
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
    let new = Thng::new(id, name, change.product, change.details, now);
    let mut thng = documents::insert(&mut tx, actor.account, new).await?;
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
    named::read(app, actor, reference).await
}

/// Lists Thngs.
///
/// # Errors
/// The key may not, or the database failed.
#[instrument(skip_all)]
pub async fn list(app: &App, actor: &Actor, request: &ListRequest) -> Result<Page<Thng>, ServiceError> {
    named::list(app, actor, request).await
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
    let stored: Thng = named::find_locked(&mut tx, actor, &grant, reference).await?;
    let id = stored.id;
    // A client that sends back what it read may name a product that is gone by now.
    if change.product != stored.product {
        check_product(&mut tx, actor, change.product).await?;
    }
    let (product, name, now) = (stored.product, stored.name.clone(), app.clock.now());
    let collections = stored.collections.clone();
    let mut thng = stored.apply(change, now);
    set_collections_of(&mut tx, actor, id, &collections, &thng.collections).await?;
    documents::update(&mut tx, actor.account, &thng).await?;
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
    let stored: Thng = named::find_locked(&mut tx, actor, &grant, reference).await?;
    let id = stored.id;
    documents::delete::<Thng>(&mut tx, actor.account, id).await?;
    store::properties::remove_all(&mut tx, actor.account, id.as_str()).await?;
    collection_members::forget_thng(&mut tx, actor.account, id).await?;
    thng_locations::delete(&mut tx, actor.account, id, None).await?;
    scan_profiles::delete(&mut tx, id).await?;
    item_standings::delete(&mut tx, actor.account, id).await?;
    keys::revoke_all(&mut tx, actor.account, id.as_str(), app.clock.now().0).await?;
    // Its name is gone with it; what rules see of its redirections must not depend on when an edge read them.
    let followed = follow_thng(&mut tx, actor.account, id, stored.product, true, app.clock.now()).await?;
    tx.commit().await?;
    app.key_lookups.revoked();
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
    let found: Option<Product> = documents::find(tx, actor.account, id).await?;
    let exists = found.zip(grant).is_some_and(|(product, grant)| is_seen(&product, &grant));
    if !exists {
        return Err(ServiceError::refused(
            Code::Invalid,
            format!("product: the product {id} does not exist."),
        ));
    }
    Ok(())
}
