//! Thngs.

use shared::{
    id::{ProductId, ThngId},
    problem::Code,
};
use tracing::instrument;

use super::{
    App,
    access::require,
    assessment::{displays, standing},
    bulk::{AfterCommit, Bulk, CreateEach},
    collections::members::set_collections_of,
    locations,
    named::{self, is_seen},
    properties,
    redirections::follow_thng,
    scopes::scopes_for,
    user_rules,
};
use crate::{
    domain::{
        access::{Actor, ActorKind},
        assessment::rules::is_display,
        authority::refusal,
        grant::Grant,
        listing::ListRequest,
        page::Page,
        permission::{
            Subject::{self, Thngs},
            Verb,
        },
        public_write::confine_thng,
        resource::{Product, Thng, ThngChange},
    },
    error::ServiceError,
    store::{
        self, Tx, cases, collection_members, display_places, documents, item_standings, keys, scan_profiles,
        tenants, thng_locations,
    },
};

/// Makes a Thng; `project` is what `?project=` names.
///
/// # Errors
/// The key lacks the permission, the name is missing, the product does not exist, or another Thng of the product
/// has its serial.
#[instrument(skip_all)]
pub async fn create(
    app: &App,
    actor: &Actor,
    change: ThngChange,
    project: Option<&str>,
) -> Result<Thng, ServiceError> {
    let _ = require(actor, Verb::Create, Thngs)?;
    let _place = app.capacity.write(actor)?;
    let mut tx = app.db.begin().await?;
    let thng = create_in(app, &mut tx, actor, change, project).await?;
    tx.commit().await?;
    Ok(thng)
}

/// [`create`] within a transaction.
pub(super) async fn create_in(
    app: &App,
    tx: &mut Tx,
    actor: &Actor,
    mut change: ThngChange,
    project: Option<&str>,
) -> Result<Thng, ServiceError> {
    let grant = require(actor, Verb::Create, Thngs)?;
    let now = app.clock.now();
    let id = ThngId::new(now.0, app.random16()?);
    let name = change.name.take().ok_or_else(super::name_required)?;
    user_rules::check_creation(tx, actor).await?;
    check_product_right(actor, None, &change)?;
    user_rules::check_write::<Thng>(tx, actor, None, &mut change.details.common).await?;
    let asked = change.details.common.scopes.take();
    change.details.common.scopes = scopes_for(tx, actor, &grant, asked, project).await?;
    check_product(tx, actor, change.product).await?;
    let new = Thng::new(id, name, change.product, change.details, now);
    let mut thng = documents::insert(tx, actor.account, new).await?;
    if let Some(wanted) = change.collections {
        set_collections_of(tx, actor, id, &[], &wanted).await?;
        thng.collections = wanted;
    }
    if let Some(location) = change.location {
        let locations = vec![("location".to_owned(), location)];
        locations::record(tx, actor.account, &mut thng, locations, now).await?;
    }
    properties::write_initial(tx, actor, id.as_str(), change.properties, now).await?;
    thng.properties = properties::shown(tx, actor, id.as_str()).await?;
    if thng.details.common.tags.as_deref().is_some_and(is_display) {
        displays::learn(tx, actor.account, &thng).await?;
    }
    Ok(thng)
}

/// Reads a Thng by id or `<key>:<value>`.
///
/// # Errors
/// It does not exist or the identifier is ambiguous.
#[instrument(skip_all)]
pub async fn read(app: &App, actor: &Actor, reference: &str) -> Result<Thng, ServiceError> {
    named::read(app, actor, reference).await
}

/// Lists Thngs.
///
/// # Errors
/// The key lacks the permission.
#[instrument(skip_all)]
pub async fn list(app: &App, actor: &Actor, request: &ListRequest) -> Result<Page<Thng>, ServiceError> {
    named::list(app, actor, request).await
}

/// Merges the members given into a Thng.
///
/// # Errors
/// It or its product does not exist, the identifier is ambiguous, the key may not change a member, or another Thng
/// of the product has its serial.
#[instrument(skip_all)]
pub async fn update(
    app: &App,
    actor: &Actor,
    reference: &str,
    change: ThngChange,
) -> Result<Thng, ServiceError> {
    let grant = require(actor, Verb::Update, Thngs)?;
    let _place = app.capacity.write(actor)?;
    let mut tx = app.db.begin().await?;
    let (thng, after) = Thng::update_in(app, &mut tx, actor, &grant, reference, change).await?;
    tx.commit().await?;
    after.run(app).await?;
    Ok(thng)
}

/// Removes a Thng; what points at it stays.
///
/// # Errors
/// It does not exist or the identifier is ambiguous.
#[instrument(skip_all)]
pub async fn delete(app: &App, actor: &Actor, reference: &str) -> Result<(), ServiceError> {
    let grant = require(actor, Verb::Delete, Thngs)?;
    let _place = app.capacity.write(actor)?;
    let mut tx = app.db.begin().await?;
    let after = Thng::delete_in(app, &mut tx, actor, &grant, reference).await?;
    tx.commit().await?;
    after.run(app).await?;
    Ok(())
}

impl CreateEach for Thng {
    type Change = ThngChange;

    async fn create_in(
        app: &App,
        tx: &mut Tx,
        actor: &Actor,
        change: ThngChange,
        project: Option<&str>,
    ) -> Result<Self, ServiceError> {
        create_in(app, tx, actor, change, project).await
    }
}

impl Bulk for Thng {
    type Change = ThngChange;

    async fn update_in(
        app: &App,
        tx: &mut Tx,
        actor: &Actor,
        grant: &Grant,
        reference: &str,
        mut change: ThngChange,
    ) -> Result<(Self, AfterCommit), ServiceError> {
        change.details.common.scopes = grant.scopes_of_change(change.details.common.scopes.take());
        let stored: Thng = named::find_locked(tx, actor, grant, reference).await?;
        let id = stored.id;
        if actor.kind == ActorKind::Thng {
            let account = tenants::find_account(tx, actor.account).await?;
            let writable = account.map(|account| account.thng_writable_custom_fields).unwrap_or_default();
            user_rules::forbid(confine_thng(&stored, &mut change, &writable))?;
        }
        check_product_right(actor, Some(&stored), &change)?;
        user_rules::check_write(tx, actor, Some(&stored), &mut change.details.common).await?;
        // A client that sends back what it read may name a product that was deleted meanwhile.
        if change.product != stored.product {
            check_product(tx, actor, change.product).await?;
        }
        let (product, name, now) = (stored.product, stored.name.clone(), app.clock.now());
        let common = stored.details.common.clone();
        let collections = stored.collections.clone();
        let mut thng = stored.apply(change, now);
        set_collections_of(tx, actor, id, &collections, &thng.collections).await?;
        documents::update(tx, actor.account, &thng).await?;
        thng.properties = properties::shown(tx, actor, id.as_str()).await?;
        // Tags such as `display` decide what its scans say.
        let is_marked_anew = standing::is_marked_anew(&common, &thng.details.common);
        if is_marked_anew {
            displays::learn(tx, actor.account, &thng).await?;
        }
        let is_judged_anew = is_marked_anew && standing::judge_again(tx, actor.account, &thng, now).await?;
        let is_told = thng.name != name || is_judged_anew;
        let followed = (is_told || thng.product != product)
            && follow_thng(tx, actor.account, id, thng.product, is_told, now).await?;
        Ok((thng, AfterCommit { wakes_edges: followed, ..AfterCommit::default() }))
    }

    async fn delete_in(
        app: &App,
        tx: &mut Tx,
        actor: &Actor,
        grant: &Grant,
        reference: &str,
    ) -> Result<AfterCommit, ServiceError> {
        let stored: Thng = named::find_locked(tx, actor, grant, reference).await?;
        let id = stored.id;
        documents::delete::<Thng>(tx, actor.account, id).await?;
        store::properties::remove_all(tx, actor.account, id.as_str()).await?;
        collection_members::forget_thng(tx, actor.account, id).await?;
        thng_locations::delete(tx, actor.account, id, None).await?;
        scan_profiles::delete(tx, id).await?;
        item_standings::delete(tx, actor.account, id).await?;
        display_places::delete(tx, actor.account, id).await?;
        cases::delete_of_thng(tx, actor.account, id).await?;
        keys::revoke_all(tx, actor.account, id.as_str(), app.clock.now().0).await?;
        // Its name is gone with it; what rules see of its redirections must not depend on when an edge read them.
        let followed = follow_thng(tx, actor.account, id, stored.product, true, app.clock.now()).await?;
        Ok(AfterCommit {
            wakes_edges: followed,
            revokes_keys: true,
            sweeps_properties: true,
            ..AfterCommit::default()
        })
    }
}

/// Refuses to a user that is confined to its own to say what its Things are instances of.
fn check_product_right(
    actor: &Actor,
    stored: Option<&Thng>,
    change: &ThngChange,
) -> Result<(), ServiceError> {
    let is_moved = change.product.is_some() && change.product != stored.and_then(|stored| stored.product);
    let faults = (is_moved && actor.is_confined_user()).then(|| refusal("product"));
    user_rules::forbid(faults.into_iter().collect())
}

async fn check_product(tx: &mut Tx, actor: &Actor, product: Option<ProductId>) -> Result<(), ServiceError> {
    let Some(id) = product else { return Ok(()) };
    // A product that the key cannot see does not exist for it.
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
